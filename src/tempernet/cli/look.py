"""Commands that look: at settings, at what a run will take, at a run and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tempernet import config
from tempernet.cli.options import (
    DataOption,
    JsonOption,
    NetworkOption,
    PresetOption,
    ProtocolOption,
    RunDir,
    SetOption,
    SettingsFile,
    kind_names,
    resolved,
)
from tempernet.errors import ConfigError, StoreError
from tempernet.kinds import KINDS, Beside, kind_named, kind_of

WATCH_SECONDS = 5.0


def init(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Kind of run; a sweep by default.",
            autocompletion=kind_names,
        ),
    ] = None,
) -> None:
    """Print all settings with their defaults.

    As a commented TOML file.
    """
    print(config.template(kind_named(kind).settings), end="")


def presets() -> None:
    """List the presets."""
    width = max(map(len, config.PRESETS))
    for name, preset in config.PRESETS.items():
        print(f"{name:{width}s}  {preset.what}")


def plan(
    settings_file: SettingsFile = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of run; by default that of the settings file, or a sweep.",
            autocompletion=kind_names,
        ),
    ] = None,
    preset: PresetOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate what a run will take.

    Replicas, gradients, memory, disk, and the time on this machine.
    """
    from tempernet.report.plan import rows
    from tempernet.report.terminal import show_rows
    from tempernet.runs.run import seeded

    if kind is None and settings_file is not None:
        said = config.read_toml(settings_file).get("kind")
        kind = None if said is None else str(said)
    planned = kind_named(kind)
    settings = resolved(
        planned,
        settings_file=settings_file,
        preset=preset,
        protocol=protocol,
        assignments=assignments,
        data=data,
        network=network,
    )
    found = planned.parts.plan(seeded(settings))
    if as_json:
        print(json.dumps(asdict(found)))
    else:
        show_rows(rows(found))


def status(
    run: RunDir,
    as_json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat every few seconds until the run has finished.")
    ] = False,
) -> None:
    """Show the progress of a run.

    With its verdict so far and its warnings.
    """
    from tempernet.paper.study import Study, is_study
    from tempernet.report.terminal import show_rows
    from tempernet.runs.status import current, rows

    study = is_study(run)
    while True:
        told: Mapping[str, object]
        if study:
            told = state = Study.open(run).status()
            lines = list(state["steps"].items())
        else:
            told = status = current(run)
            lines = rows(status)
        if as_json:
            print(json.dumps(told), flush=True)
        else:
            show_rows(lines)
        if not watch or told["finished"]:
            return
        time.sleep(WATCH_SECONDS)
        print(flush=True)


def check(run: RunDir) -> None:
    """Check that a run folder is intact.

    Verifies every hash and that the parts agree. The exit code is 5 if something is wrong.
    """
    from tempernet.paper.study import Study, is_study
    from tempernet.runs.status import problems

    found = Study.open(run).problems() if is_study(run) else problems(run)
    for problem in found:
        print(problem)
    if found:
        raise StoreError(f"{run}: {len(found)} problems")
    print(f"{run} is whole")


def plot(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run folders, all of one kind.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the figures; default: `figures` in the first run folder."),
    ] = None,
    optimised: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of an optimise run, drawn as a line; may be repeated."),
    ] = None,
) -> None:
    """Draw the figures of a run.

    Several sweeps, or several evidences, are drawn in one figure.
    """
    from tempernet.report import figures
    from tempernet.store import outcome
    from tempernet.store.folder import FIGURES
    from tempernet.tasks.problem import data_still_there

    kind = kind_of(runs[0])
    parts, folder = kind.parts, out or runs[0] / FIGURES
    if optimised and not kind.draws_optimised:
        raise ConfigError(f"--optimised is not for {runs[0]}, a run of {kind.name}")
    if len(runs) > 1 and parts.together is None:
        raise ConfigError(f"runs of {kind.name} are drawn one at a time, got {len(runs)}")
    found = [parts.load(run) for run in runs]
    beside = Beside(lambda: data_still_there(found[0].settings), optimised or ())
    if parts.together is not None and len(runs) > 1:
        written = figures.draw(parts.together(found, beside), folder)
    else:
        written = figures.draw(parts.figures(found[0], beside), folder)
        outcome.note_rewritten(runs[0], written)
    print(f"written: {len(written)} files in {folder}")


def _formats() -> list[str]:
    """All formats that there are, for completion; the first is the default."""
    formats = [name for kind in KINDS.values() for name in kind.parts.exports]
    return list(dict.fromkeys(formats))


def export(
    run: RunDir,
    to: Annotated[
        str | None,
        typer.Option(
            help="netcdf (default): all series and averages; "
            "csv: one line per temperature, rung or start.",
            autocompletion=_formats,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: results.nc or results.csv in DIR.")
    ] = None,
) -> None:
    """Export the results of a run."""
    from tempernet.store import files, outcome

    kind = kind_of(run)
    exports = kind.parts.exports
    wanted = next(iter(exports)) if to is None else to
    if wanted not in exports:
        raise ConfigError(
            f"a run of {kind.name} is exported to {' or '.join(exports)}, got --to {wanted}"
        )
    export = exports[wanted]
    content = export.content_fn(kind.parts.load(run))
    path = out or run / export.file
    files.write_atomic(path, content)
    outcome.note_rewritten(run, [path])
    print(path)
