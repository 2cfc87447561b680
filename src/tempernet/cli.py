"""The `tempernet` command.

Exit codes: 0 done; 2 the command line or a setting is wrong; 3 the data cannot be used; 4 the numbers cannot be
trusted; 5 a run folder cannot be written, read or trusted; 6 stopped before the end, and can be resumed; 1 a bug.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tempernet import config
from tempernet.errors import ConfigError, DataError, NumericsError, Stopped, StoreError, TempernetError

EXIT_CODES: dict[type[TempernetError], int] = {
    ConfigError: 2,
    DataError: 3,
    NumericsError: 4,
    StoreError: 5,
    Stopped: 6,
}

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
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample a ladder of temperatures: train and test loss against T, the best T, and whether to believe it."""
    settings = _resolve(settings_file, preset, protocol, assignments, data, network)
    name = preset or (settings_file.stem if settings_file else "custom" if data or network else "quick")
    path = out or Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    _run_sweep(settings, path, quiet, as_json)


@app.command()
def resume(
    run: RunDir,
    rounds: Annotated[int | None, typer.Option(help="Rounds that count, in total.")] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was stopped, or make it longer."""
    from tempernet.store import RunFolder
    from tempernet.store.folder import CONFIG

    RunFolder.open(run)
    settings = config.settings_from(config.read_toml(run / CONFIG))
    if rounds is not None:
        longer = settings.run.model_copy(update={"rounds": rounds})
        settings = config.settings_from({**settings.model_dump(), "run": longer.model_dump()})
    _run_sweep(settings, run, quiet, as_json)


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
    from tempernet.tasks.plan import make_plan, rows
    from tempernet.terminal import duration, plan_table

    settings = _resolve(settings_file, preset, protocol, assignments, data, network)
    found = make_plan(_seeded(settings))
    if as_json:
        print(json.dumps({**vars(found), "replicas": found.replicas}))
    else:
        plan_table(rows(found, settings, duration(found.seconds)))


@app.command()
def status(run: RunDir, as_json: JsonOption = False) -> None:
    """Say how far a run is, and its verdict so far."""
    from tempernet import results
    from tempernet.store import RunFolder
    from tempernet.store.folder import STATUS
    from tempernet.terminal import duration, plan_table

    told = RunFolder.open(run).read_json(STATUS)
    try:
        found = results.load(run)
        verdict, finished = found.verdict.headline, found.finished
    except StoreError as error:
        verdict, finished = f"none yet ({error})", False
    if as_json:
        print(json.dumps({**told, "verdict": verdict, "finished": finished}))
        return
    left = told.get("seconds_left")
    rate = told.get("rounds_per_second")
    plan_table(
        [
            ("phase", "finished" if finished else told["phase"]),
            ("round", f"{told['done']} of {told['total']}"),
            ("rate", "-" if rate is None else f"{rate:.3g} rounds/s"),
            ("time left", "-" if finished or left is None else duration(left)),
            ("last heard of", f"{duration(max(0.0, time.time() - told['time']))} ago"),
            ("verdict", verdict),
        ]
    )


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


def _run_sweep(settings: config.Settings, path: Path, quiet: bool, as_json: bool) -> None:
    from tempernet import plots, results
    from tempernet.store import files
    from tempernet.store.folder import FIGURES
    from tempernet.tasks.problem import make_problem
    from tempernet.tasks.sweep import Sweep
    from tempernet.terminal import reporter, show

    settings = _settings_for(path, settings)
    problem = make_problem(settings)
    folder = _folder(path)
    shown = reporter(quiet)
    try:
        with _signals() as stopping:
            if not quiet:
                print(f"tempernet: protocol {settings.protocol}, run folder {path}", file=sys.stderr)
            Sweep(settings, problem, folder, shown, stopping).run()
    except Stopped as error:
        raise Stopped(f"{error}; go on with: tempernet resume {path}") from error
    finally:
        shown.close()
    found = results.load(path)
    written = results.write(found)
    if settings.output.figures:
        plots.draw_all(found, path / FIGURES, _images(found))
        written.append(path / FIGURES)
    folder.unlock()
    if as_json:
        print(json.dumps(files.plain(results.document(found))))
    elif not quiet:
        show(found, written)


def _settings_for(path: Path, settings: config.Settings) -> config.Settings:
    """The settings with their seed; those of a run that is there already must be the same but for what may change."""
    from tempernet.store.folder import CONFIG, is_run, must_be_empty

    if not is_run(path):
        must_be_empty(path)
        return _seeded(settings)
    old = config.settings_from(config.read_toml(path / CONFIG))
    if settings.run.seed < 0:
        settings = settings.model_copy(update={"run": settings.run.model_copy(update={"seed": old.run.seed})})
    changed = [line for line in config.differences(old, settings) if not line.startswith(("run.rounds:", "output."))]
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


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """The first SIGINT or SIGTERM asks to stop, the second one ends the process at once."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        print("stopping: writing a checkpoint (again to abort at once)", file=sys.stderr, flush=True)

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
