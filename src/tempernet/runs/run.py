"""A run of any kind in its folder: begun or resumed, carried out, written and shown."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from tempernet import config
from tempernet.config import RunSettings
from tempernet.errors import Stopped, StoreError
from tempernet.kinds import Beside, Kind
from tempernet.report.terminal import reporter
from tempernet.results.run import Results
from tempernet.runs.stopping import Stopper, seconds
from tempernet.store import RunFolder, files, outcome
from tempernet.store.folder import FIGURES, is_run, must_be_empty
from tempernet.tasks.base import Watch
from tempernet.tasks.problem import Problem, make_problem

S = TypeVar("S", bound=RunSettings)
R = TypeVar("R", bound=Results)
MAY_CHANGE = ("run.rounds:", "run.burn_in:", "output.")
"""Settings that may change when a run is resumed."""


class Finished(NamedTuple):
    """What came out: a document for `--json`, and what shows it to people."""

    document: Mapping[str, object]
    show_fn: Callable[[], None]

    def tell(self, *, quiet: bool, as_json: bool) -> None:
        """Show the results on standard output."""
        if as_json:
            print(json.dumps(files.plain(self.document)))
        elif not quiet:
            self.show_fn()


class Begun(NamedTuple, Generic[S]):
    """A run whose folder is locked."""

    settings: S
    """The settings as the folder has them."""
    problem: Problem
    folder: RunFolder


def run(
    kind: Kind[S, R],
    settings: S,
    path: Path,
    *,
    max_time: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Run from where the folder is to the end; write and show what came out.

    Args:
        kind: of the run.
        settings: of the run.
        path: its folder.
        max_time: a time such as `90m`, after which it stops; None for no limit.
        quiet: print errors only.
        as_json: print the results as JSON.
    """
    max_seconds = None if max_time is None else seconds(max_time)
    advice = f"; go on with: tempernet resume {path}"
    begun = begin(kind, settings, path)
    try:
        with Stopper(max_seconds, advice) as stopping:
            finished = carry_out(kind, begun, stopping, quiet)
    except Stopped as error:
        raise Stopped(f"{error}{advice}") from error
    finally:
        begun.folder.unlock()
    finished.tell(quiet=quiet, as_json=as_json)


def begin(kind: Kind[S, R], settings: S, path: Path) -> Begun[S]:
    """A new run in a folder, or the one that is there, with the folder's lock.

    Nothing is written before settings and data are known to be good.
    """
    if is_run(path):
        folder = RunFolder.open(path)
        folder.lock()
        try:
            settings = _same_but_for_its_length(folder, kind, settings)
            return Begun(settings, _checked_problem(kind, settings), folder)
        except BaseException:
            folder.unlock()
            raise
    must_be_empty(path)
    settings = seeded(settings)
    problem = _checked_problem(kind, settings)
    return Begun(settings, problem, RunFolder.create(path))


def carry_out(
    kind: Kind[S, R], begun: Begun[S], stop_fn: Callable[[], bool], quiet: bool
) -> Finished:
    """Run to the end and write the results."""
    shown = reporter(quiet)
    try:
        if not quiet:
            print(
                f"tempernet: protocol {begun.settings.protocol}, run folder {begun.folder.path}",
                file=sys.stderr,
            )
        watch = Watch(shown, stop_fn, warn)
        kind.parts.task(begun.settings, begun.problem, begun.folder, watch).run()
    finally:
        shown.close()
    return _written(kind, begun)


def seeded(settings: S) -> S:
    """The settings, with a seed drawn if none is given."""
    return settings if settings.run.seed >= 0 else _with_seed(settings, secrets.randbelow(2**31))


def warn(text: str) -> None:
    """Print a warning on standard error."""
    print(f"tempernet: warning: {text}", file=sys.stderr, flush=True)


def make_folder(folder: Path) -> None:
    """Make a folder, or say why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {folder}: {error.strerror}; choose another with --out"
        ) from error


def _checked_problem(kind: Kind[S, R], settings: S) -> Problem:
    problem = make_problem(settings)
    kind.parts.check(settings, problem)
    return problem


def _same_but_for_its_length(folder: RunFolder, kind: Kind[S, R], settings: S) -> S:
    """The settings with the seed of the run; what may not change must be as the folder has it."""
    old = folder.settings(kind.settings)
    if settings.run.seed < 0:
        settings = _with_seed(settings, old.run.seed)
    changed = [
        line for line in config.differences(old, settings) if not line.startswith(MAY_CHANGE)
    ]
    if changed:
        raise StoreError(
            f"{folder.path} holds a run with other settings ({'; '.join(changed)}); choose another "
            "folder with --out, or go on with its own settings: "
            f"tempernet resume {folder.path}"
        )
    return settings


def _with_seed(settings: S, seed: int) -> S:
    run = settings.run.model_copy(update={"seed": seed})
    return settings.model_copy(update={"run": run})


def _written(kind: Kind[S, R], begun: Begun[S]) -> Finished:
    """Write results.json, the files for other programs, and figures if they are wanted."""
    path, parts = begun.folder.path, kind.parts
    found = parts.load(path)
    document = parts.document(found)

    def write() -> list[Path]:
        written = []
        for export in parts.exports.values():
            if export.at_end:
                files.write_atomic(path / export.file, export.content_fn(found))
                written.append(path / export.file)
        if begun.settings.output.figures:
            from tempernet.report.figures import draw

            drawings = parts.figures(found, Beside(lambda: begun.problem.data))
            written += draw(drawings, path / FIGURES)
        return written

    written = outcome.write(path, document, write)
    # Figures are named by their folder.
    named = [file.parent if file.parent.name == FIGURES else file for file in written]
    return Finished(document, lambda: parts.show(found, list(dict.fromkeys(named))))
