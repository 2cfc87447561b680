"""The `tempernet` command.

Exit codes: 0 done; 2 the command line or a setting is wrong; 3 the data cannot be used; 4 the
numbers cannot be trusted; 5 a run folder cannot be written, read or trusted; 6 stopped before the
end, and can be resumed; 1 a bug.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tempernet import config
from tempernet.errors import (
    ConfigError,
    DataError,
    NumericsError,
    Stopped,
    StoreError,
    TempernetError,
)
from tempernet.runs.run import images_of, make_folder, run_study, run_task, seeded
from tempernet.runs.stopping import EXIT_STOPPED

EXIT_CODES: dict[type[TempernetError], int] = {
    ConfigError: 2,
    DataError: 3,
    NumericsError: 4,
    StoreError: 5,
    Stopped: EXIT_STOPPED,
}

WATCH_SECONDS = 5.0

app = typer.Typer(
    name="tempernet",
    help="Bayesian neural networks at finite temperature: replica-exchange Hamiltonian Monte Carlo.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

OutOption = Annotated[Path | None, typer.Option(help="Folder of the run; made if it is not there.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ladder.num=56."),
]
PresetOption = Annotated[
    str | None, typer.Option(help="Begin from a preset; `tempernet presets` lists them.")
]
ProtocolOption = Annotated[
    str | None, typer.Option(help='"default", or "paper": as the paper prints it.')
]
DataOption = Annotated[str | None, typer.Option(help="An npz file or a folder of idx files.")]
NetworkOption = Annotated[
    str | None, typer.Option(help="M1, M3, M3star, or layer sizes such as 64-32-32-5.")
]
SettingsFile = Annotated[
    Path | None, typer.Argument(metavar="[SETTINGS.toml]", help="A file of settings.")
]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]
MaxTimeOption = Annotated[
    str | None, typer.Option(help="Stop after this time, such as 45s, 90m or 3h.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON on standard output.")
]


class Task(StrEnum):
    """What settings can be written for."""

    sweep = "sweep"
    evidence = "evidence"
    anneal = "anneal"
    optimise = "optimise"


class Format(StrEnum):
    """What a run can be exported to."""

    netcdf = "netcdf"
    csv = "csv"


@app.command()
def sweep(
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    out: OutOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample a ladder of temperatures: train and test loss against T, the best T, and whether to
    believe it.
    """
    settings = _resolve("sweep", settings_file, preset, protocol, assignments, data, network)
    name = preset or (
        settings_file.stem if settings_file else "custom" if data or network else "quick"
    )
    run_task(settings, out or _new_folder(name), max_time, quiet, as_json)


@app.command()
def evidence(
    settings_file: SettingsFile = None,
    out: OutOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    n_train: Annotated[
        int | None, typer.Option(help="Training examples, as many of each class.")
    ] = None,
    network: NetworkOption = None,
    method: Annotated[
        str | None,
        typer.Option(
            help='"temperature": from the prior; "bridge": from a quadratic around a minimum.'
        ),
    ] = None,
    copies: Annotated[int | None, typer.Option(help="Independent copies.")] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Work out the log evidence of a network: log prob(labels | images, network)."""
    options: dict[str, dict[str, Any]] = {
        "data": {"n_train": n_train},
        "path": {"method": method},
        "run": {"copies": copies},
    }
    settings = _resolve(
        "evidence", settings_file, None, protocol, assignments, data, network, options
    )
    run_task(
        settings, out or _new_folder(f"evidence-{settings.network.name}"), max_time, quiet, as_json
    )


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of evidences of the same data.")
    ],
    prior_odds: Annotated[
        str, typer.Option(help="Odds of the models before the data, such as 1:1.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json and a figure; default: none.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Choose between models by their evidences: Bayes factors and posterior probabilities."""
    from tempernet.report import figures
    from tempernet.report.evidence import comparison_document, show_comparison
    from tempernet.results import comparison
    from tempernet.results import evidence as evidence_results
    from tempernet.store import files

    found = comparison.compare([evidence_results.load(run) for run in runs], _odds(prior_odds))
    document = comparison_document(found)
    written: list[Path] = []
    if out is not None:
        make_folder(out)
        files.write_json(out / "comparison.json", document)
        written = [
            out / "comparison.json",
            *figures.save(figures.comparison_figure(found), out / "comparison"),
        ]
    if as_json:
        print(json.dumps(files.plain(document)))
    else:
        show_comparison(found, written)


@app.command()
def anneal(
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    out: OutOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    patience: Annotated[
        int | None, typer.Option(help="Temperatures in a row with a risen validation loss.")
    ] = None,
    optimised: Annotated[
        Path | None, typer.Option(help="Folder of an optimise run to compare with.")
    ] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Cool many replicas until the validation error rises; go back to the network and the
    temperature of the least.
    """
    options = {
        "cooling": {
            "patience": patience,
            "optimised": None if optimised is None else str(optimised),
        }
    }
    settings = _resolve(
        "anneal", settings_file, preset, protocol, assignments, data, network, options
    )
    run_task(
        settings, out or _new_folder(f"anneal-{settings.network.name}"), max_time, quiet, as_json
    )


@app.command()
def optimise(
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    out: OutOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    keep: Annotated[
        int | None, typer.Option(help="Starts to keep: with E = 0, else the best.")
    ] = None,
    starts: Annotated[int | None, typer.Option(help="Starts at most.")] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Minimise E from many independent starts: what sampling is compared with."""
    options = {"optimise": {"keep": keep, "starts": starts}}
    settings = _resolve(
        "optimise", settings_file, preset, protocol, assignments, data, network, options
    )
    run_task(
        settings, out or _new_folder(f"optimise-{settings.network.name}"), max_time, quiet, as_json
    )


@app.command()
def predict(
    run: RunDir,
    data: Annotated[Path, typer.Option(help="An npz file with x and optionally y.")],
    out: Annotated[Path, typer.Option(help="CSV file to write: a line an example.")],
    temperature: Annotated[
        str, typer.Option(help='Of a sweep: "best", or a number; the nearest is taken.')
    ] = "best",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Predict new examples by the stored weights of a sweep, an anneal or an optimise run, as an
    ensemble.
    """
    from tempernet.report.terminal import show_lines
    from tempernet.results.predict import document, predict_from, statements
    from tempernet.store import files

    found = predict_from(run, data, temperature)
    files.write_atomic(out, found.table.encode())
    if as_json:
        print(json.dumps(files.plain(document(found))))
    elif not quiet:
        show_lines(statements(found), [out])


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of the study; made if it is not there.")],
    scale: Annotated[
        str | None,
        typer.Option(help="smoke, hour, day or paper: about how long it takes on two cores."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="fig1 to fig4, optimise, widths, evidence, all, or names of steps.",
        ),
    ] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper: its figures, runs and evidences, and a page that says which of its
    claims hold.
    """
    run_study(out, scale, None if only is None else _listed(only), max_time, quiet, as_json)


@app.command()
def resume(
    run: RunDir,
    rounds: Annotated[int | None, typer.Option(help="Rounds that count, in total.")] = None,
    burn_in: Annotated[
        int | None, typer.Option(help="Rounds of burn-in, in total: samples become burn-in.")
    ] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was stopped, or make it longer."""
    from tempernet.paper.study import is_study
    from tempernet.store import RunFolder

    longer = {
        name: value
        for name, value in (("rounds", rounds), ("burn_in", burn_in))
        if value is not None
    }
    if is_study(run):
        if longer:
            raise ConfigError(
                f"{run} is a study: make one of the runs in {run / 'runs'} longer, then resume {run}"
            )
        run_study(run, None, None, max_time, quiet, as_json)
        return
    settings = RunFolder.open(run).settings
    if longer:
        settings = config.settings_from(
            {**settings.model_dump(), "run": {**settings.run.model_dump(), **longer}}
        )
    run_task(settings, run, max_time, quiet, as_json)


@app.command()
def init(
    task: Annotated[Task, typer.Argument(help="What to write settings for.")] = Task.sweep,
) -> None:
    """Print every setting with its default and what it is for."""
    print(config.template(task), end="")


@app.command()
def presets() -> None:
    """List the presets."""
    width = max(map(len, config.PRESETS))
    for name, (what, _) in config.PRESETS.items():
        print(f"{name:{width}s}  {what}")


@app.command()
def plan(
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a sweep will take: replicas, gradients, memory, disk, and the time it will take
    here.
    """
    from tempernet.report.formatting import duration
    from tempernet.report.terminal import plan_table
    from tempernet.tasks.plan import make_plan, rows

    settings = _resolve("sweep", settings_file, preset, protocol, assignments, data, network)
    found = make_plan(seeded(settings))
    if as_json:
        print(json.dumps({**vars(found), "replicas": found.replicas}))
    else:
        plan_table(rows(found, settings, duration(found.seconds)))


@app.command()
def status(
    run: RunDir,
    as_json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Again every few seconds, until the run is finished.")
    ] = False,
) -> None:
    """Say how far a run is, its verdict so far, and its warnings."""
    from tempernet.paper.study import Study, is_study
    from tempernet.report.terminal import plan_table
    from tempernet.runs.status import current, rows

    study = is_study(run)
    while True:
        told = Study.open(run).status() if study else current(run)
        if as_json:
            print(json.dumps(told), flush=True)
        else:
            plan_table(list(told["steps"].items()) if study else rows(told))
        if not watch or told["finished"]:
            return
        time.sleep(WATCH_SECONDS)
        print(flush=True)


@app.command()
def check(run: RunDir) -> None:
    """Verify every hash of a run folder and the agreement of its parts; exit code 5 if something is
    wrong.
    """
    from tempernet.paper.study import Study, is_study
    from tempernet.runs.status import problems

    found = Study.open(run).problems() if is_study(run) else problems(run)
    for problem in found:
        print(problem)
    if found:
        raise StoreError(f"{run}: {len(found)} problems")
    print(f"{run} is whole")


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; default: `figures` in the first run folder.")
    ] = None,
    optimised: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of an optimise run, whose loss is a line; may be repeated."),
    ] = None,
) -> None:
    """Draw the figures of a run; of several sweeps, train and test loss against T in one figure."""
    from tempernet.report import figures
    from tempernet.results import anneal as annealed
    from tempernet.results import evidence as evidence_results
    from tempernet.results import sweep as results
    from tempernet.store import RunFolder, outcome
    from tempernet.store.folder import FIGURES

    folder = out or runs[0] / FIGURES
    task = RunFolder.open(runs[0]).settings.task
    if len(runs) == 1 and not optimised and task in ("anneal", "evidence"):
        if task == "anneal":
            written = figures.draw(figures.anneal_figures(annealed.load(runs[0])), folder)
        else:
            written = figures.draw(
                figures.evidence_figures(evidence_results.load(runs[0])), folder
            )
        outcome.note_rewritten(runs[0], written)
        print(f"written: {len(written)} files in {folder}")
        return
    found = [results.load(run) for run in runs]
    beside = _beside(found, optimised or [])
    if len(found) == 1:
        written = figures.draw(
            figures.sweep_figures(found[0], images_of(found[0]), beside), folder
        )
        outcome.note_rewritten(runs[0], written)
    else:
        make_folder(folder)
        written = figures.save(figures.loss_figure(found, beside), folder / "fig3-loss-compared")
    print(f"written: {len(written)} files in {folder}")


@app.command()
def export(
    run: RunDir,
    to: Annotated[
        Format, typer.Option(help="netcdf: all series and averages; csv: a line a rung.")
    ] = Format.netcdf,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: results.nc or results.csv in DIR.")
    ] = None,
) -> None:
    """Write the results of a sweep or an evidence to a file for other programs."""
    from tempernet.results import evidence as evidence_results
    from tempernet.results import sweep as results
    from tempernet.store import RunFolder, files, outcome
    from tempernet.store.folder import RESULTS_NC

    room: Any = evidence_results if RunFolder.open(run).settings.task == "evidence" else results
    found = room.load(run)
    content = room.netcdf(found) if to is Format.netcdf else room.csv_table(found).encode()
    path = out or run / (RESULTS_NC if to is Format.netcdf else "results.csv")
    files.write_atomic(path, content)
    outcome.note_rewritten(run, [path])
    print(path)


def main() -> None:
    """Run the command; one line on standard error and an exit code for what can go wrong."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
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


def _resolve(
    task: str,
    settings_file: Path | None,
    preset: str | None,
    protocol: str | None,
    assignments: list[str] | None,
    data: str | None,
    network: str | None,
    options: dict[str, dict[str, Any]] | None = None,
) -> Any:
    """Settings from what the command line says; `options` are those of a task, None where nothing
    was said.
    """
    extra: dict[str, Any] = {}
    if data is not None:
        # All of a user's own training data, unless told otherwise.
        extra["data"] = {"source": data, "n_train": 0}
    if network is not None:
        extra["network"] = {"name": network}
    for table, values in (options or {}).items():
        said = {name: value for name, value in values.items() if value is not None}
        if said:
            extra[table] = extra.get(table, {}) | said
    if (
        task != "evidence"
        and preset is None
        and settings_file is None
        and data is None
        and network is None
    ):
        preset = "quick"
    return config.resolve(
        task,
        preset=preset,
        file=settings_file,
        protocol=protocol,
        assignments=assignments or (),
        extra=extra,
    )


def _new_folder(name: str) -> Path:
    """A folder named by the time, for a run that was given none."""
    return Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _listed(text: str) -> list[str]:
    """`fig3,evidence` as names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _odds(text: str) -> tuple[float, ...]:
    """`1:1` as numbers; none if nothing was said."""
    try:
        return tuple(float(part) for part in text.split(":")) if text else ()
    except ValueError as error:
        raise ConfigError(f"--prior-odds needs numbers such as 1:1, got {text!r}") from error


def _beside(sweeps: list[Any], folders: list[Path]) -> dict[str, Any]:
    """Optimise runs by the label of the sweep with the same network and data."""
    from tempernet.report import figures
    from tempernet.results import optimise as optimised

    def about(run: Any) -> tuple[Any, ...]:
        data = run.provenance["data"]
        return run.settings.network, run.settings.data.indices, data["name"], data["n_train"]

    labels = dict(zip([about(sweep) for sweep in sweeps], figures.run_labels(sweeps), strict=True))
    found = {}
    for run in map(optimised.load, folders):
        if about(run) not in labels:
            raise ConfigError(
                f"--optimised {run.path} is {run.title}: no sweep given here has that network and data; draw it beside "
                f"one that has"
            )
        found[labels[about(run)]] = run
    return found
