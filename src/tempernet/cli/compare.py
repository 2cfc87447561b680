"""Commands that use finished runs: models compared by their evidences, and predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tempernet.cli.options import JsonOption, QuietOption, RunDir
from tempernet.errors import ConfigError, StoreError
from tempernet.kinds import KINDS, kind_of


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Run folders of evidences for the same data."),
    ],
    prior_odds: Annotated[
        str, typer.Option(help="Prior odds of the models, such as 1:1; equal by default.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json and a figure; none by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare models by their evidences.

    Prints Bayes factors and posterior probabilities of models of the same data.
    """
    from tempernet.report import figures
    from tempernet.report.evidence import comparison_document, show_comparison
    from tempernet.results import comparison
    from tempernet.results import evidence as evidence_results
    from tempernet.runs.run import make_folder
    from tempernet.store import files

    found = comparison.compare([evidence_results.load(run) for run in runs], _odds(prior_odds))
    document = comparison_document(found)
    written: list[Path] = []
    if out is not None:
        make_folder(out)
        files.write_json(out / "comparison.json", document)
        drawn = figures.save(figures.comparison_figure(found), out / "comparison")
        written = [out / "comparison.json", *drawn]
    if as_json:
        print(json.dumps(files.plain(document)))
    else:
        show_comparison(found, written)


def predict(
    run: RunDir,
    data: Annotated[Path, typer.Option(help="An npz file with x and optionally y.")],
    out: Annotated[Path, typer.Option(help="CSV file to write, one line per example.")],
    temperature: Annotated[
        str, typer.Option(help='Of a sweep: "best", or a number, for the nearest temperature.')
    ] = "best",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Predict new examples with the networks of a run.

    Averages the class probabilities of all networks that the run has kept.
    """
    from tempernet.report.terminal import show_lines
    from tempernet.results.predict import document, predict_from, statements
    from tempernet.store import files

    kind = kind_of(run)
    members = kind.parts.members
    if members is None:
        able = [name for name, each in KINDS.items() if each.parts.members is not None]
        raise StoreError(
            f"{run} is a run of {kind.name}, not of {' or '.join(able)}; "
            "give the folder of such a run"
        )
    found = predict_from(run, kind.settings, members, data, temperature)
    files.write_atomic(out, found.table.encode())
    if as_json:
        print(json.dumps(files.plain(document(found))))
    elif not quiet:
        show_lines(statements(found), [out])


def _odds(text: str) -> tuple[float, ...]:
    """`1:1` as numbers; none if nothing was said."""
    try:
        return tuple(float(part) for part in text.split(":")) if text else ()
    except ValueError as error:
        raise ConfigError(f"--prior-odds needs numbers such as 1:1, got {text!r}") from error
