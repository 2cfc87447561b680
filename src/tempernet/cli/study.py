"""The command that reproduces the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempernet.cli.options import JsonOption, MaxTimeOption, QuietOption


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of the study; created if it does not exist.")],
    scale: Annotated[
        str | None,
        typer.Option(
            help="smoke, hour (default), day or paper; named by the time it takes on two cores."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Parts to run: fig1 to fig4, optimise, widths, evidence, all, or names of steps.",
        ),
    ] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper.

    Its runs, figures and evidences, and a page that says which of its claims hold.
    """
    from tempernet.paper.running import run_study

    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    run_study(out, scale, names, max_time=max_time, quiet=quiet, as_json=as_json)
