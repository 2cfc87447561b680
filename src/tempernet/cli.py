"""The `tempernet` command.

Exit codes: 0 done; 2 the command line or a setting is wrong; 3 the data cannot be used; 4 the numbers cannot be
trusted; 5 a run folder cannot be written, read or trusted; 6 stopped before the end, and can be resumed; 1 a bug.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tempernet import config
from tempernet.errors import ConfigError, DataError, NumericsError, Stopped, StoreError, TempernetError
from tempernet.stopping import EXIT_STOPPED, Stopper, seconds

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

SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ladder.num=56.")
]
PresetOption = Annotated[str | None, typer.Option(help="Begin from a preset; `tempernet presets` lists them.")]
ProtocolOption = Annotated[str | None, typer.Option(help='"default", or "paper": as the paper prints it.')]
DataOption = Annotated[str | None, typer.Option(help="An npz file or a folder of idx files.")]
NetworkOption = Annotated[str | None, typer.Option(help="M1, M3, M3star, or layer sizes such as 64-32-32-5.")]
SettingsFile = Annotated[Path | None, typer.Argument(metavar="[SETTINGS.toml]", help="A file of settings.")]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]
MaxTimeOption = Annotated[str | None, typer.Option(help="Stop after this time, such as 45s, 90m or 3h.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]


class Task(StrEnum):
    """What settings can be written for."""

    sweep = "sweep"


class Format(StrEnum):
    """What a run can be exported to."""

    netcdf = "netcdf"
    csv = "csv"


@app.command()
def sweep(
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; made if it is not there.")] = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample a ladder of temperatures: train and test loss against T, the best T, and whether to believe it."""
    settings = _resolve(settings_file, preset, protocol, assignments, data, network)
    name = preset or (settings_file.stem if settings_file else "custom" if data or network else "quick")
    path = out or Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    _run_sweep(settings, path, max_time, quiet, as_json)


@app.command()
def resume(
    run: RunDir,
    rounds: Annotated[int | None, typer.Option(help="Rounds that count, in total.")] = None,
    burn_in: Annotated[int | None, typer.Option(help="Rounds of burn-in, in total: samples become burn-in.")] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was stopped, or make it longer."""
    from tempernet.store import RunFolder

    settings = RunFolder.open(run).settings
    longer = {name: value for name, value in (("rounds", rounds), ("burn_in", burn_in)) if value is not None}
    if longer:
        settings = config.settings_from({**settings.model_dump(), "run": {**settings.run.model_dump(), **longer}})
    _run_sweep(settings, run, max_time, quiet, as_json)


@app.command()
def init(task: Annotated[Task, typer.Argument(help="What to write settings for.")] = Task.sweep) -> None:
    """Print every setting with its default and what it is for."""
    del task
    print(config.template(), end="")


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
    """Say what a sweep will take: replicas, gradients, memory, disk, and the time it will take here."""
    from tempernet.formatting import duration
    from tempernet.tasks.plan import make_plan, rows
    from tempernet.terminal import plan_table

    settings = _resolve(settings_file, preset, protocol, assignments, data, network)
    found = make_plan(_seeded(settings))
    if as_json:
        print(json.dumps({**vars(found), "replicas": found.replicas}))
    else:
        plan_table(rows(found, settings, duration(found.seconds)))


@app.command()
def status(
    run: RunDir,
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again every few seconds, until the run is finished.")] = False,
) -> None:
    """Say how far a run is, its verdict so far, and its warnings."""
    from tempernet.tasks.status import current, rows
    from tempernet.terminal import plan_table

    while True:
        told = current(run)
        if as_json:
            print(json.dumps(told), flush=True)
        else:
            plan_table(rows(told))
        if not watch or told["finished"]:
            return
        time.sleep(WATCH_SECONDS)
        print(flush=True)


@app.command()
def check(run: RunDir) -> None:
    """Verify every hash of a run folder and the agreement of its parts; exit code 5 if something is wrong."""
    from tempernet.tasks.status import problems

    found = problems(run)
    for problem in found:
        print(problem)
    if found:
        raise StoreError(f"{run}: {len(found)} problems")
    print(f"{run} is whole")


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders.")],
    out: Annotated[Path | None, typer.Option(help="Where to; default: `figures` in the first run folder.")] = None,
) -> None:
    """Draw the figures of a run; of several, train and test loss against T in one figure."""
    from tempernet import plots, results
    from tempernet.store.folder import FIGURES

    found = [results.load(run) for run in runs]
    folder = out or runs[0] / FIGURES
    if len(found) == 1:
        written = plots.draw_all(found[0], folder, _images(found[0]))
        results.note_rewritten(runs[0], written)
    else:
        _make(folder)
        written = plots.save(plots.loss_figure(found), folder / "fig3-loss-compared")
    print(f"written: {len(written)} files in {folder}")


@app.command()
def export(
    run: RunDir,
    to: Annotated[
        Format, typer.Option(help="netcdf: all series and averages; csv: a line a temperature.")
    ] = Format.netcdf,
    out: Annotated[Path | None, typer.Option(help="File to write; default: results.nc or results.csv in DIR.")] = None,
) -> None:
    """Write the results of a run to a file for other programs."""
    from tempernet import results
    from tempernet.store import files
    from tempernet.store.folder import RESULTS_NC

    found = results.load(run)
    content = results.netcdf(found) if to is Format.netcdf else results.csv_table(found).encode()
    path = out or run / (RESULTS_NC if to is Format.netcdf else "results.csv")
    files.write_atomic(path, content)
    results.note_rewritten(run, [path])
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
    settings_file: Path | None,
    preset: str | None,
    protocol: str | None,
    assignments: list[str] | None,
    data: str | None,
    network: str | None,
) -> config.Settings:
    extra: dict[str, Any] = {}
    if data is not None:
        # All of a user's own training data, unless told otherwise.
        extra["data"] = {"source": data, "n_train": 0}
    if network is not None:
        extra["network"] = {"name": network}
    if preset is None and settings_file is None and not extra:
        preset = "quick"
    return config.resolve(
        preset=preset, file=settings_file, protocol=protocol, assignments=assignments or (), extra=extra
    )


def _seeded(settings: config.Settings) -> config.Settings:
    """With a seed drawn if none is given."""
    if settings.run.seed >= 0:
        return settings
    return settings.model_copy(update={"run": settings.run.model_copy(update={"seed": secrets.randbelow(2**31)})})


def _run_sweep(settings: config.Settings, path: Path, max_time: str | None, quiet: bool, as_json: bool) -> None:
    from tempernet import plots, results
    from tempernet.store import files
    from tempernet.store.folder import FIGURES, RESULTS, RESULTS_NC
    from tempernet.tasks.problem import make_problem
    from tempernet.tasks.sweep import Sweep
    from tempernet.terminal import reporter, show

    max_seconds = None if max_time is None else seconds(max_time)
    settings = _settings_for(path, settings)
    figures = settings.output.figures
    problem = make_problem(settings)
    folder = _folder(path)
    # Once more with the lock: another process may have begun a run here in the meantime.
    settings = _settings_for(path, settings)
    shown = reporter(quiet)

    def warn(text: str) -> None:
        print(f"tempernet: warning: {text}", file=sys.stderr, flush=True)

    try:
        with Stopper(max_seconds, f"; go on with: tempernet resume {path}") as stopping:
            if not quiet:
                print(f"tempernet: protocol {settings.protocol}, run folder {path}", file=sys.stderr)
            Sweep(settings, problem, folder, shown, stopping, warn).run()
            shown.close()
            found = results.load(path)
            draw_fn = (lambda: plots.draw_all(found, path / FIGURES, _images(found))) if figures else list
            results.write(found, draw_fn)
    except Stopped as error:
        raise Stopped(f"{error}; go on with: tempernet resume {path}") from error
    finally:
        shown.close()
        folder.unlock()
    if as_json:
        print(json.dumps(files.plain(results.document(found))))
    elif not quiet:
        show(found, [path / name for name in (RESULTS, RESULTS_NC, *([FIGURES] if figures else []))])


def _settings_for(path: Path, settings: config.Settings) -> config.Settings:
    """The settings with their seed; those of a run that is there already must be the same but for what may change."""
    from tempernet.store import RunFolder
    from tempernet.store.folder import is_run, must_be_empty

    if not is_run(path):
        must_be_empty(path)
        return _seeded(settings)
    old = RunFolder.open(path).settings
    if settings.run.seed < 0:
        settings = settings.model_copy(update={"run": settings.run.model_copy(update={"seed": old.run.seed})})
    may_change = ("run.rounds:", "run.burn_in:", "output.")
    changed = [line for line in config.differences(old, settings) if not line.startswith(may_change)]
    if changed:
        raise StoreError(
            f"{path} holds a run with other settings ({'; '.join(changed)}); choose another folder with --out, or "
            f"go on with its own settings: tempernet resume {path}"
        )
    return settings


def _folder(path: Path) -> Any:
    """The run folder, new or there already, with its lock."""
    from tempernet.store import RunFolder
    from tempernet.store.folder import is_run

    if not is_run(path):
        return RunFolder.create(path)
    folder = RunFolder.open(path)
    folder.lock()
    return folder


def _images(found: Any) -> Any:
    """Stored training images and labels for Fig. 1; None if the data are not images or not there any more."""
    from tempernet.tasks.problem import load_data

    try:
        train = load_data(found.settings).train
    except TempernetError:
        return None
    return (train.x, train.y) if train.x.ndim == 3 else None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {folder}: {error.strerror}; choose another with --out") from error
