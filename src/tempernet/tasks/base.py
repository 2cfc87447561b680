"""What every task does besides its own work: progress, stopping, checkpoints, resuming."""

from __future__ import annotations

import ctypes
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import numpy as np

from tempernet.config import RunSettings
from tempernet.errors import Stopped, StoreError
from tempernet.store import RunFolder
from tempernet.store.checkpoints import Checkpoint
from tempernet.store.files import JsonObject
from tempernet.store.folder import CONFIG, PROVENANCE, STATUS, is_run
from tempernet.tasks.problem import Problem
from tempernet.tasks.provenance import provenance
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Facts, Host, Progress, ReportFn, Row

STATUS_SECONDS = 2.0
S = TypeVar("S", bound=RunSettings)


@dataclass(frozen=True)
class Watch:
    """Who is told how a task gets on, and who may ask it to stop."""

    report_fn: ReportFn = lambda progress: None
    should_stop: Callable[[], bool] = lambda: False
    warn_fn: Callable[[str], None] = lambda text: None


class Task(Host, ABC, Generic[S]):
    """A task in a run folder; `run` goes from where the folder is to the end.

    A task says what a checkpoint of it holds (`arrays`, `meta`), takes one back (`restore`), and
    calls `checkpoint` and `checkpoint_if_due` where its records agree with them. It is the host of
    the samplers that it drives.
    """

    def __init__(
        self, settings: S, problem: Problem, folder: RunFolder, watch: Watch | None = None
    ) -> None:
        self.settings, self.problem, self.folder = settings, problem, folder
        self.watch = watch or Watch()
        self.warnings: list[str] = []
        self.records, self.kept = folder.records, folder.weights
        self.finished = False
        self._status_at = self._checkpoint_at = time.monotonic()

    # What a task provides.

    engine: Engine

    @abstractmethod
    def run(self) -> None:
        """Run from where the folder is to the end."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint."""

    @abstractmethod
    def meta(self) -> JsonObject:
        """The plain facts of a checkpoint, `round` among them: how far the task is."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a checkpoint."""

    # What it can use: beginning and ending.

    def begun_tile(self) -> int | None:
        """The tile that the run began with: it sets the order of additions. None for a new run."""
        begun = is_run(self.folder.path)
        return int(self.folder.read_json(PROVENANCE)["tile"]) if begun else None

    def note_start(self) -> None:
        """Write the settings and where the run comes from; what is there already stays."""
        if is_run(self.folder.path):
            return
        self.folder.write_json(PROVENANCE, provenance(self.settings, self.problem, self.engine))
        self.folder.write_settings(self.settings)
        replicas, protocol = self.engine.num_replicas, self.settings.protocol
        self.note(f"started, {replicas} replicas, protocol {protocol}")

    def go_back(self) -> bool:
        """Go back to the newest whole checkpoint, with the records cut to it.

        False for a folder without one, in which the task begins.
        """
        found, problems = self.folder.checkpoints.latest()
        self._mend_log(found)
        if found is None:
            if problems:
                raise StoreError(f"no checkpoint of {self.folder.path} can be used: {problems[0]}")
            if self.records.series or self.kept.series:
                # A task makes a checkpoint before its first records.
                raise StoreError(
                    f"{self.folder.path} has records but no checkpoint; put it back, or begin a "
                    "new run"
                )
            return False
        for problem in problems:
            self.warn(
                f"{problem}; going back to the checkpoint before, at round {found.meta['round']}"
            )
        damaged = [*self.folder.outdated(found), *self.records.verify(), *self.kept.verify()]
        if damaged:
            raise StoreError(
                f"{damaged[0]}; put the file back, or begin a new run: without it the averages "
                "would be wrong"
            )
        self._note_restart(int(found.meta["round"]))
        self.records.truncate(found.meta["series"])
        self.kept.truncate({"weights": found.meta["weights"]})
        self.restore(found.arrays, found.meta)
        self.folder.write_settings(self.settings)
        return True

    def finish(self) -> None:
        """Write the last checkpoint."""
        self.finished = True
        self.note("finished")
        self.checkpoint()

    # What it can use: the host of samplers.

    def wait(self, *results: object) -> None:
        """Wait until the devices are done or a stop is asked for: JAX would not let a signal in."""
        began = time.monotonic()
        leaves = jax.tree.leaves(results)
        while True:
            if self.watch.should_stop():
                raise Stopped("stopped as asked")
            if all(leaf.is_ready() for leaf in leaves):
                return
            time.sleep(min(0.05, max(5e-4, 0.02 * (time.monotonic() - began))))

    def record(self, series: str, row: Row) -> None:
        """Add a copy of a row to a series of records."""
        self.records.append(series, dict(row))

    def keep(self, row: Row) -> None:
        """Add a row to the weights that are kept."""
        self.kept.append("weights", dict(row))

    def load(self, series: str) -> dict[str, np.ndarray]:
        """All rows of a series that are on disk, stacked."""
        return self.records.load(series)

    def note(self, text: str) -> None:
        """Add a line to the log."""
        self.folder.log.append(text)

    def warn(self, text: str) -> None:
        """Warn whoever watches, and keep the warning for the status."""
        self.warnings.append(text)
        self.note(f"warning: {text}")
        self.watch.warn_fn(text)

    def tell(self, progress: Progress, *, always: bool = False) -> None:
        """Report, and write the status now and then."""
        self.watch.report_fn(progress)
        now = time.monotonic()
        due = always or now - self._status_at > STATUS_SECONDS
        if due and (self.folder.path / CONFIG).exists():
            facts = {**vars(progress), "warnings": self.warnings, "time": time.time()}
            self.folder.write_json(STATUS, facts)
            self._status_at = now

    def checkpoint(self) -> None:
        """Write the records, their manifest, then the checkpoint, which counts lines of the log."""
        self.records.flush()
        self.kept.flush()
        meta = self.meta() | {
            "finished": self.finished,
            "series": {name: self.records.length(name) for name in self.records.series},
            "weights": self.kept.length("weights"),
            "log": self.folder.log.lines,
        }
        self.folder.checkpoints.save(self.arrays(), meta)
        _give_back_memory()
        self._checkpoint_at = time.monotonic()

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint if the last one is older than the settings allow."""
        if time.monotonic() - self._checkpoint_at > self.settings.output.checkpoint_seconds:
            self.checkpoint()

    def stop(self, at: str) -> None:
        """Write the last checkpoint of a run that is asked to stop."""
        self.note(f"stopped {at}")
        self.checkpoint()

    def _mend_log(self, found: Checkpoint | None) -> None:
        """Set a damaged log aside and begin a new one: no result depends on it."""
        wanted = found.log_lines if found else 0
        for problem in self.folder.log.problems(wanted):
            aside = self.folder.log.begin_anew(after=wanted)
            self.warn(f"{problem}; what there is of it is now {aside.name}, and a new log begins")

    def _note_restart(self, at_round: int) -> None:
        """Note in the provenance that the run was resumed, and whether its bits stay the same."""
        noted = self.folder.read_json(PROVENANCE)
        now = provenance(self.settings, self.problem, self.engine)
        if noted["data"]["sha256"] != now["data"]["sha256"]:
            raise StoreError(
                f"the data of {self.folder.path} have changed since the run began: their hash is "
                f"not the one in {PROVENANCE}; put the old data back, or begin a new run"
            )
        changed = [name for name in ("versions", "platform", "devices") if noted[name] != now[name]]
        facts = {name: now[name] for name in ("command", "versions", "platform", "devices")}
        restart = {"round": at_round, "time": time.time(), "bitwise": not changed, **facts}
        restarts = [*noted.get("restarts", []), restart]
        self.folder.write_json(PROVENANCE, {**noted, "restarts": restarts})
        self.note(f"resumed at round {at_round}")
        if changed:
            self.warn(
                f"going on with other {' and '.join(changed)}: the result is valid, but no longer "
                "bit by bit the same"
            )


def _give_back_memory() -> None:
    """Let glibc return freed memory to the system.

    Compilation and growing records leave it in pieces: this saves 150 MB, and the process does
    not grow.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
