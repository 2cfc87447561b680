"""The `tempernet` command.

Exit codes: 0 done; 2 the command line or a setting is wrong; 3 the data cannot be used; 4 the
numbers cannot be trusted; 5 a run folder cannot be written, read or trusted; 6 stopped before the
end, and can be resumed; 1 a bug.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib.metadata import version
from typing import Annotated

import typer

from tempernet.cli import compare, look, study
from tempernet.cli.run_commands import command_of, resume
from tempernet.devices import configure
from tempernet.errors import (
    ConfigError,
    DataError,
    NumericsError,
    Stopped,
    StoreError,
    TempernetError,
)
from tempernet.kinds import KINDS
from tempernet.runs.stopping import EXIT_STOPPED

EXIT_CODES: dict[type[TempernetError], int] = {
    ConfigError: 2,
    DataError: 3,
    NumericsError: 4,
    StoreError: 5,
    Stopped: EXIT_STOPPED,
}


def main() -> None:
    """Run the command; one line on standard error and an exit code for what can go wrong."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        # Before anything uses JAX.
        configure()
        make_app()()
    except TempernetError as error:
        if debug:
            traceback.print_exc()
        print(f"tempernet: {error}", file=sys.stderr, flush=True)
        code = next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
        if isinstance(error, Stopped):
            # A round may still be running on the devices; what is needed is on disk.
            sys.stdout.flush()
            os._exit(code)
        sys.exit(code)


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
