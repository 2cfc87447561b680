"""What every task does besides its own work: its folder, progress, stopping, checkpoints, and going
on from one.

Everything between two checkpoints is a function of the first, so a run that was killed goes on as
if it had not been.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tempernet.config import RunSettings
from tempernet.errors import Stopped, StoreError
from tempernet.kernels.integrator import Point
from tempernet.model.target import uninformed_loss
from tempernet.store import RunFolder
from tempernet.store.checkpoints import Checkpoint
from tempernet.store.folder import CONFIG, PROVENANCE, STATUS, is_run
from tempernet.tasks.problem import Problem, model_hash
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State

STATUS_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    """What a run tells of itself while it works."""

    phase: str
    done: int
    total: int
    rounds_per_second: float = float("nan")
    seconds_left: float = float("nan")
    worst_acceptance: float = float("nan")
    worst_swap: float = float("nan")
    round_trips: int = 0
    detail: str = ""
    """Whatever else a task has to tell."""


ReportFn = Callable[[Progress], None]


@dataclass(frozen=True)
class Watch:
    """Who is told how a task gets on, and who may ask it to stop."""

    report_fn: ReportFn = lambda progress: None
    should_stop: Callable[[], bool] = lambda: False
    warn_fn: Callable[[str], None] = lambda text: None


class Task(ABC):
    """A task in a run folder; `run` goes from where the folder is to the end.

    A task says what a checkpoint of it holds (`arrays`, `meta`), takes one back (`restore`), and
    calls `checkpoint` and `checkpoint_if_due` where its records agree with them.
    """

    def __init__(
        self,
        settings: RunSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        self.problem, self.folder = problem, folder
        self.base_settings = settings
        self.watch = watch or Watch()
        self.warnings: list[str] = []
        self.records, self.kept = folder.records, folder.weights
        self.finished = False
        self._status_at = self._checkpoint_at = time.monotonic()

    # What a task provides.

    engine: Engine

    @abstractmethod
    def run(self) -> None:
        """From where the folder is to the end."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint."""

    @abstractmethod
    def meta(self) -> dict[str, Any]:
        """The plain facts of a checkpoint, `round` among them: how far the task is."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a checkpoint."""

    # What it can use.

    def begun_tile(self) -> int | None:
        """The tile that the run began with: it sets the order of additions. None for a new run."""
        begun = is_run(self.folder.path)
        return int(self.folder.read_json(PROVENANCE)["tile"]) if begun else None

    def note_start(self) -> None:
        """Write the settings and where the run comes from."""
        self.folder.write_json(
            PROVENANCE, provenance(self.base_settings, self.problem, self.engine)
        )
        self.folder.write_settings(self.base_settings)
        self.folder.log.append(
            f"started, {self.engine.num_replicas} replicas, protocol {self.base_settings.protocol}"
        )

    def note_start_once(self) -> None:
        """For a task that works before its first checkpoint: a start that was noted already stays."""
        if not is_run(self.folder.path):
            self.note_start()

    def restored(self) -> bool:
        """Go back to the newest whole checkpoint, with the records cut to it; False for a folder
        without one.
        """
        found, problems = self.folder.checkpoints.latest()
        self._mend_log(found)
        if found is None:
            if problems:
                raise StoreError(f"no checkpoint of {self.folder.path} can be used: {problems[0]}")
            if self.records.series or self.kept.series:
                # A task makes a checkpoint before its first records.
                raise StoreError(
                    f"{self.folder.path} has records but no checkpoint; put it back, or begin a new run"
                )
            return False
        for problem in problems:
            self.warn(
                f"{problem}; going back to the checkpoint before, at round {found.meta['round']}"
            )
        damaged = [*self.folder.outdated(found), *self.records.verify(), *self.kept.verify()]
        if damaged:
            raise StoreError(
                f"{damaged[0]}; put the file back, or begin a new run: without it the averages would be wrong"
            )
        self._note_restart(int(found.meta["round"]))
        self._cut_records(found)
        self.restore(found.arrays, found.meta)
        self.folder.write_settings(self.base_settings)
        return True

    def checkpoint(self) -> None:
        """First the records, then the manifest, then the checkpoint, which says how long the log
        must be.
        """
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
        """If the last one is older than the settings allow."""
        if time.monotonic() - self._checkpoint_at > self.base_settings.output.checkpoint_seconds:
            self.checkpoint()

    def finish(self) -> None:
        """The last checkpoint."""
        self.finished = True
        self.folder.log.append("finished")
        self.checkpoint()

    def stop(self, at: str) -> None:
        """The last checkpoint of a run that is asked to stop."""
        self.folder.log.append(f"stopped {at}")
        self.checkpoint()

    def wait(self, *results: Any) -> None:
        """Until the devices are done, or someone asks to stop; a signal is not seen while waiting
        inside JAX.
        """
        began = time.monotonic()
        leaves: list[Any] = jax.tree.leaves(results)
        while True:
            if self.watch.should_stop():
                raise Stopped("stopped as asked")
            if all(leaf.is_ready() for leaf in leaves):
                return
            time.sleep(min(0.05, max(5e-4, 0.02 * (time.monotonic() - began))))

    def warn(self, text: str) -> None:
        """Tell whoever watches, and keep it for the status."""
        self.warnings.append(text)
        self.folder.log.append(f"warning: {text}")
        self.watch.warn_fn(text)

    def show(self, phase: str, done: int = 0, total: int = 1) -> None:
        """A phase without rounds."""
        self.tell(Progress(phase, done, total), always=True)

    def tell(self, progress: Progress, always: bool = False) -> None:
        """Report, and write the status now and then."""
        self.watch.report_fn(progress)
        now = time.monotonic()
        if (always or now - self._status_at > STATUS_SECONDS) and (
            self.folder.path / CONFIG
        ).exists():
            self.folder.write_json(
                STATUS, {**vars(progress), "warnings": self.warnings, "time": time.time()}
            )
            self._status_at = now

    def _mend_log(self, found: Checkpoint | None) -> None:
        """A damaged log is set aside and a new one begun: nothing is worked out from it, and the
        run can go on.
        """
        wanted = found.log_lines if found else 0
        for problem in self.folder.log.problems(wanted):
            aside = self.folder.log.begin_anew(after=wanted)
            self.warn(f"{problem}; what there is of it is now {aside.name}, and a new log begins")

    def _cut_records(self, found: Checkpoint) -> None:
        self.records.truncate(found.meta["series"])
        self.kept.truncate({"weights": found.meta["weights"]})

    def _note_restart(self, at_round: int) -> None:
        """Write into the provenance that the run goes on here, and whether still bit by bit."""
        noted = self.folder.read_json(PROVENANCE)
        now = provenance(self.base_settings, self.problem, self.engine)
        if noted["data"]["sha256"] != now["data"]["sha256"]:
            raise StoreError(
                f"the data of {self.folder.path} have changed since the run began: their hash is not the one in "
                f"{PROVENANCE}; put the old data back, or begin a new run"
            )
        changed = [name for name in ("versions", "platform", "devices") if noted[name] != now[name]]
        facts = {name: now[name] for name in ("command", "versions", "platform", "devices")}
        restart = {"round": at_round, "time": time.time(), "bitwise": not changed, **facts}
        self.folder.write_json(
            PROVENANCE, {**noted, "restarts": [*noted.get("restarts", []), restart]}
        )
        self.folder.log.append(f"resumed at round {at_round}")
        if changed:
            self.warn(
                f"going on with other {' and '.join(changed)}: the result is valid, but no longer bit by bit the same"
            )


def state_arrays(engine: Engine, state: State) -> dict[str, np.ndarray]:
    """A state for a checkpoint, without its round."""
    point = jax.tree.map(lambda leaf: np.asarray(leaf)[: engine.num_replicas], state.point)
    arrays = {f"point{i}": leaf for i, leaf in enumerate(jax.tree.leaves(point))}
    return arrays | {"replica_at": np.asarray(state.replica_at)}


def state_from(engine: Engine, arrays: Mapping[str, np.ndarray], done: int) -> State:
    """A state from a checkpoint, after so many rounds."""
    weights = engine.target.prior.like
    like: Any = Point(weights, jnp.zeros(()), weights)
    leaves = [arrays[f"point{i}"] for i in range(len(jax.tree.leaves(like)))]
    point = engine.layout.put_replicas(jax.tree.unflatten(jax.tree.structure(like), leaves))
    return State(point, jnp.asarray(arrays["replica_at"]), jnp.int32(done))


def provenance(settings: RunSettings, problem: Problem, engine: Engine) -> dict[str, Any]:
    """What shaped the run besides its settings."""
    return {
        "kind": settings.kind,
        "seed": settings.run.seed,
        "command": sys.argv,
        "protocol": settings.protocol,
        "versions": {
            "tempernet": version("tempernet"),
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": np.__version__,
        },
        "platform": platform.platform(),
        "devices": [str(device) for device in engine.layout.mesh.devices.flat],
        "tile": engine.layout.tile,
        "data": {
            "name": problem.data.name,
            "sha256": problem.data.sha256,
            "train_sha256": _train_hash(problem),
            "n_train": len(problem.data.train),
            "n_validation": len(problem.data.validation),
            "n_test": len(problem.data.test),
        },
        "uninformed_loss": uninformed_loss(problem.network.classes),
        "scored_labels": problem.test_labels,
        "trajectories": engine.dynamics.num_trajectories,
        "model": {
            "sha256": model_hash(problem.network, settings),
            "weights": problem.network.num_weights,
            "log_prior_volume": problem.target.prior.log_volume,
        },
        "git": _git_revision(),
        "started": time.time(),
    }


def _give_back_memory() -> None:
    """Let glibc return freed memory, which compilation and growing records leave in pieces: 150 MB,
    and no growth.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _train_hash(problem: Problem) -> str:
    """Names the training examples as the energy reads them, whatever is held out."""
    train = problem.data.train
    return hashlib.sha256(
        np.ascontiguousarray(train.x).tobytes() + np.ascontiguousarray(train.y).tobytes()
    ).hexdigest()


def _git_revision() -> str | None:
    """The revision of the project that the command runs in, if there is one."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
