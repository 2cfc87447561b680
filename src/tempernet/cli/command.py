"""The command with all its parts, put together from the list of kinds."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from tempernet.cli import compare, look, study
from tempernet.cli.run_commands import command_of, resume
from tempernet.kinds import KINDS


def make_app() -> typer.Typer:
    """The command, with a command of its own for every kind of run that there is."""
    app = typer.Typer(
        name="tempernet",
        help="Bayesian neural networks at finite temperature: "
        "replica-exchange Hamiltonian Monte Carlo.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_tempernet)
    for kind in KINDS.values():
        app.command(name=kind.name, help=kind.summary)(command_of(kind))
    for command in (
        compare.compare,
        compare.predict,
        study.reproduce,
        resume,
        look.init,
        look.presets,
        look.plan,
        look.status,
        look.check,
        look.plot,
        look.export,
    ):
        app.command()(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tempernet {version('tempernet')}")
        raise typer.Exit


def _tempernet(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """What stands before a command."""
