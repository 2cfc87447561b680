"""The temperature sweep (Sec. 3.3): initialise, minimise, tune, burn in, sample; a round at a time, all of it recorded.

Burn-in is a few stages, each twice as long as the one before. Within a stage the acceptance of every round improves the
step sizes; between stages an adaptive ladder moves to where the barrier measured in the stage puts it. The last
half of burn-in runs on the ladder that the samples are taken on, and at its end the step sizes are fixed. The paper's
protocol instead tunes by extra trajectories. Everything between two checkpoints is a function of the first, so a
run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tempernet import tuning as rules
from tempernet.config import Settings
from tempernet.engine import Engine
from tempernet.errors import ConfigError, NumericsError, Stopped, StoreError
from tempernet.flow import Flow
from tempernet.integrator import Point
from tempernet.ladders import interpolate_steps, measure_barrier, place
from tempernet.paths import temperature_path
from tempernet.rounds import Record, Rungs, State
from tempernet.sampling import first_step, starting_weights
from tempernet.store import RunFolder
from tempernet.store.folder import CONFIG, PROVENANCE, STATUS, is_run
from tempernet.target import uninformed_loss
from tempernet.tasks.problem import Problem, make_engine, make_minimiser, make_tuning, model_hash

BURN_IN, SAMPLE = "burn-in", "sample"
PHASES = ("initialise", "minimise", "tune", BURN_IN, SAMPLE)
STATUS_SECONDS = 2.0
STUCK_ROUNDS = 50
"""Rounds without an accepted trajectory after which a replica counts as stuck."""
FIRST_TRAJECTORIES = 8
"""Of a rung, summed over copies, for a first guess of its step size, after the search has turned around a few times."""
SETTLING = 3
"""The first 1/3 of a stage is not measured: the ladder has just moved."""


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


ReportFn = Callable[[Progress], None]


@dataclass
class Measured:
    """Sums over the rounds of a stage, for the barrier, and for what is shown: all (K,) or (K-1,)."""

    swap_probability: np.ndarray
    swap_attempts: np.ndarray
    energy: np.ndarray
    acceptance: np.ndarray
    rounds: np.ndarray

    @classmethod
    def none(cls, rungs: int) -> Measured:
        """Nothing measured yet."""
        pairs = np.zeros(rungs - 1)
        return cls(pairs, pairs.copy(), np.zeros(rungs), np.zeros(rungs), np.zeros(()))

    def add(self, record: Record) -> None:
        """One more round, averaged over copies."""
        self.swap_probability += record.swaps.probability.sum(axis=0)
        self.swap_attempts += record.swaps.attempts.sum(axis=0)
        self.energy += record.phi[..., 0].mean(axis=0)
        self.acceptance += record.info.acceptance.mean(axis=0)
        self.rounds += 1

    @property
    def swap_rate(self) -> np.ndarray:
        """Mean swap probability of each pair; NaN where none was tried."""
        with np.errstate(invalid="ignore"):
            return self.swap_probability / self.swap_attempts


@dataclass
class Position:
    """Where a run is: all that a checkpoint holds."""

    state: State
    temperatures: np.ndarray
    step_sizes: np.ndarray
    """Reduced, (K,)."""
    search: rules.Search
    """How far the tuning of this stage is."""
    tuned: bool
    """Whether the stage that begins at this round has begun."""
    measured: Measured
    flow: Flow
    ensemble: np.ndarray
    """Sum of softmax outputs over the scores so far: (copies, K, examples, classes)."""
    still: np.ndarray
    """For how many rounds each replica has accepted nothing: (copies, K)."""
    scores: int = 0
    finished: bool = False

    @property
    def round(self) -> int:
        """Rounds done, burn-in included."""
        return int(self.state.round)


class Sweep:
    """A sweep in a run folder."""

    def __init__(
        self,
        settings: Settings,
        problem: Problem,
        folder: RunFolder,
        report_fn: ReportFn | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        warn_fn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings, self.problem, self.folder = settings, problem, folder
        self.report_fn = report_fn or (lambda progress: None)
        self.should_stop, self.warn_fn = should_stop, warn_fn
        self.warnings: list[str] = []
        self.records, self.kept = folder.records, folder.weights
        self.tunes_on_the_way = settings.protocol != "paper"
        self.stages = stage_ends(settings)
        self.total = settings.run.burn_in + settings.run.rounds
        self._status_at = self._checkpoint_at = time.monotonic()
        self._phase_began: tuple[float, int] = (time.monotonic(), 0)

    def run(self) -> None:
        """From where the folder is to the end."""
        self._show("initialise", 0, 1)
        # The tile sets the order of additions: a resumed run takes the one it began with.
        begun = is_run(self.folder.path)
        tile = int(self.folder.read_json(PROVENANCE)["tile"]) if begun else None
        self.engine = make_engine(self.settings, self.problem, tile)
        position = self._restored() or self._begun()
        self.folder.write_settings(self.settings)
        self._phase_began = (time.monotonic(), position.round)
        while True:
            if not position.tuned:
                self._begin_stage(position)
            if position.round >= self.total:
                break
            try:
                self._one_round(position)
            except Stopped:
                # The round at hand is given up: the position is still the one before it.
                self._checkpoint(position)
                self.folder.log(f"stopped after round {position.round}")
                raise
            if time.monotonic() - self._checkpoint_at > self.settings.output.checkpoint_seconds:
                self._checkpoint(position)
        position.finished = True
        self._checkpoint(position)
        self.folder.log("sampling finished")

    def _begun(self) -> Position:
        """The start: weights, minimised if the settings say so, at the first ladder."""
        engine = self.engine
        self.folder.write_json(PROVENANCE, provenance(self.settings, self.problem, engine))
        self.folder.write_settings(self.settings)
        self.folder.log(f"started, {engine.num_replicas} replicas, protocol {self.settings.protocol}")
        self._show("minimise", 0, 1)
        start = self.settings.start
        state = engine.start(starting_weights(engine, start.weights, make_minimiser(self.settings)))
        rungs = engine.num_rungs
        predicted = (engine.copies, rungs, len(self.problem.test_labels), self.problem.network.classes)
        return Position(
            state=state,
            temperatures=np.array(engine.path.values),
            step_sizes=np.full(rungs, first_step(engine)),
            search=rules.start_search(np.full(rungs, first_step(engine)), engine.largest_step),
            tuned=False,
            measured=Measured.none(rungs),
            flow=Flow(engine.copies, rungs),
            ensemble=np.zeros(predicted, np.float32),
            still=np.zeros((engine.copies, rungs), np.int32),
        )

    def _begin_stage(self, position: Position) -> None:
        """Between two stages of burn-in, or before the samples: fix the step sizes found, move an adaptive ladder."""
        last = position.round >= self.settings.run.burn_in
        if position.round > 0 and self.tunes_on_the_way:
            position.step_sizes = rules.found(position.search, self.engine.largest_step)
            measured = position.measured.acceptance / np.maximum(position.measured.rounds, 1)
            self.folder.log(f"round {position.round}: acceptance was {measured.min():.2f} to {measured.max():.2f}")
        else:
            self._tune(position, last)
        if self.settings.ladder.kind == "adaptive" and position.measured.rounds > 0 and not last:
            self._move_ladder(position)
        position.search = rules.start_search(position.step_sizes, self.engine.largest_step, near=True)
        position.measured = Measured.none(self.engine.num_rungs)
        position.tuned = True
        if last:
            position.flow = Flow(self.engine.copies, self.engine.num_rungs)
        self._phase_began = (time.monotonic(), position.round)
        self._checkpoint(position)

    def _tune(self, position: Position, last: bool) -> None:
        """Step sizes by trajectories that are no part of the run."""
        self._show("tune", 0, 1)
        tuning = make_tuning(self.settings)
        if not last:
            # A first guess: it will be improved during burn-in, or tuned again at its end.
            tuning = replace(tuning, search_trajectories=FIRST_TRAJECTORIES, check_trajectories=1, max_checks=1)
        moved, rungs, acceptance = self.engine.tune(position.state, self._rungs(position), tuning)
        if self.settings.protocol != "paper":
            # Tuning's trajectories are so much more burn-in; in the paper they are no part of the simulation.
            position.state = moved
        position.step_sizes = np.asarray(rungs.step_sizes, np.float64)
        self.folder.log(f"round {position.round}: tuned, acceptance {acceptance.min():.2f} to {acceptance.max():.2f}")

    def _move_ladder(self, position: Position) -> None:
        measured, old = position.measured, position.temperatures
        barrier = measure_barrier(old, measured.swap_rate, measured.energy / measured.rounds)
        position.temperatures = place(barrier, len(old))
        time_steps = temperature_path(old).time_steps(position.step_sizes)
        interpolated = interpolate_steps(old, time_steps, position.temperatures)
        position.step_sizes = interpolated * np.sqrt(position.temperatures)
        self.folder.log(
            f"round {position.round}: ladder moved, barrier {barrier.total:.1f} asks for {barrier.rungs_wanted} rungs, "
            f"swaps were {np.nanmin(measured.swap_rate):.2f} to {np.nanmax(measured.swap_rate):.2f}"
        )

    def _one_round(self, position: Position) -> None:
        engine, run = self.engine, self.settings.run
        began = position.round
        sampling = began >= run.burn_in
        state, on_device = engine.round(position.state, self._rungs(position))
        self._wait(state, on_device)
        squares = engine.mean_squares(state)
        record = jax.device_get(on_device)
        _must_be_finite(record, position)
        position.state = state
        self.records.append("rounds", _row(record, squares, position))
        stage_start = max((end for end in self.stages if end <= began), default=0)
        stage_end = min((end for end in self.stages if end > began), default=self.total)
        if not sampling and self.tunes_on_the_way:
            acceptance = record.info.acceptance.mean(axis=0)
            tuning, largest = make_tuning(self.settings), engine.largest_step
            position.search = rules.search_step(position.search, acceptance, tuning, largest)
            position.step_sizes = np.exp(position.search.log_step)
        if sampling or began - stage_start >= (stage_end - stage_start) // SETTLING:
            position.measured.add(record)
        position.flow.update(np.asarray(record.replica))
        self._watch_stuck(position, record)
        done = position.round
        if sampling:
            self._score(position, done - run.burn_in)
        if done in self.stages:
            position.tuned = False
        self._report(position)

    def _watch_stuck(self, position: Position, record: Record) -> None:
        """Warn of replicas that have long accepted nothing, and stop if that is all of them: no samples are better."""
        rejected = np.asarray(record.info.accepted) == 0
        before = np.take_along_axis(position.still, np.asarray(record.replica), axis=1)
        np.put_along_axis(position.still, np.asarray(record.replica), np.where(rejected, before + 1, 0), axis=1)
        longest = position.still.min() if position.still.min() >= STUCK_ROUNDS else position.still.max()
        if longest < STUCK_ROUNDS or longest % STUCK_ROUNDS:
            return
        copy, rung = np.unravel_index(int(np.argmax(np.where(rejected, before, -1))), rejected.shape)
        cause = _cause(record, int(copy), int(rung), self.settings.dynamics.num_trajectories)
        where = f"copy {copy} at T = {position.temperatures[rung]:.4g}"
        if position.still.min() >= STUCK_ROUNDS:
            raise NumericsError(f"no replica has accepted a trajectory for {longest} rounds; {where}: {cause}")
        number = int((position.still >= STUCK_ROUNDS).sum())
        self._warn(f"{number} replicas have accepted nothing for {STUCK_ROUNDS} rounds or more; {where}: {cause}")

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self.folder.log(f"warning: {text}")
        self.warn_fn(text)

    def _wait(self, *results: Any) -> None:
        """Until the devices are done, or someone asks to stop; a signal is not seen while waiting inside JAX."""
        began = time.monotonic()
        leaves = jax.tree.leaves(results)
        while True:
            if self.should_stop():
                raise Stopped("stopped as asked")
            if all(leaf.is_ready() for leaf in leaves):
                return
            time.sleep(min(0.05, max(5e-4, 0.02 * (time.monotonic() - began))))

    def _score(self, position: Position, done: int) -> None:
        """Held-out loss now and then; a few times, on the whole test set, with the weights kept."""
        engine, problem, run = self.engine, self.problem, self.settings.run
        if done % run.score_every == 0:
            test, probabilities = engine.predict(position.state, problem.test)
            position.ensemble += probabilities
            position.scores += 1
            row = {"round": position.round, "test_loss": test.loss, "test_accuracy": test.accuracy}
            if problem.validation is not None:
                held_out = engine.score(position.state, problem.validation)
                row |= {"validation_loss": held_out.loss, "validation_accuracy": held_out.accuracy}
            self.records.append("scores", row)
        if done in keep_rounds(run.rounds, run.keep):
            every, some = (engine.score(position.state, examples) for examples in (problem.all_test, problem.test))
            row = {"round": position.round, "test_loss": every.loss, "test_accuracy": every.accuracy}
            self.records.append("full", {**row, "part_loss": some.loss, "part_accuracy": some.accuracy})
            self._keep_weights(position)

    def _keep_weights(self, position: Position) -> None:
        kept = kept_rungs(position.temperatures, self.settings.run.keep_temperatures)
        leaves = [jax.tree.leaves(self.engine.weights_at(position.state, rung)) for rung in kept]
        stacked = {f"leaf{i}": np.stack(parts, axis=1) for i, parts in enumerate(zip(*leaves, strict=True))}
        self.kept.append("weights", {"round": position.round, "temperatures": position.temperatures[kept], **stacked})

    def _rungs(self, position: Position) -> Rungs:
        return self.engine.rungs(position.step_sizes, temperature_path(position.temperatures))

    def _checkpoint(self, position: Position) -> None:
        """First the records, then the manifest, then the checkpoint."""
        self.records.flush()
        self.kept.flush()
        point = jax.tree.map(lambda leaf: np.asarray(leaf)[: self.engine.num_replicas], position.state.point)
        arrays = {f"point{i}": leaf for i, leaf in enumerate(jax.tree.leaves(point))}
        arrays |= {f"measured_{name}": np.asarray(value) for name, value in vars(position.measured).items()}
        arrays |= {f"search_{name}": np.asarray(getattr(position.search, name)) for name in rules.Search._fields[:-1]}
        arrays |= position.flow.arrays() | {
            "replica_at": np.asarray(position.state.replica_at),
            "temperatures": position.temperatures,
            "step_sizes": position.step_sizes,
            "ensemble": position.ensemble,
            "still": position.still,
        }
        series = {name: self.records.length(name) for name in ("rounds", "scores", "full")}
        meta = {
            "round": position.round,
            "burn_in": self.settings.run.burn_in,
            "tuned": position.tuned,
            "search_steps": position.search.steps,
            "scores": position.scores,
            "finished": position.finished,
            "series": series,
            "weights": self.kept.length("weights"),
        }
        self.folder.checkpoints.save(arrays, meta)
        self._checkpoint_at = time.monotonic()

    def _restored(self) -> Position | None:
        """The newest whole checkpoint, with the records cut to it; None for a folder without one."""
        found, problems = self.folder.checkpoints.latest()
        if found is None:
            if problems:
                raise StoreError(f"no checkpoint of {self.folder.path} can be used: {problems[0]}")
            return None
        for problem in problems:
            self._warn(f"{problem}; going back to the checkpoint before, at round {found.meta['round']}")
        damaged = [*self.folder.outdated(found), *self.records.verify(), *self.kept.verify()]
        if damaged:
            raise StoreError(
                f"{damaged[0]}; put the file back, or begin a new run: without it the averages would be wrong"
            )
        arrays, meta = found
        self._note_restart(int(meta["round"]))
        self.records.truncate(meta["series"])
        self.kept.truncate({"weights": meta["weights"]})
        engine = self.engine
        weights = self.problem.target.prior.like
        like: Any = Point(weights, jnp.zeros(()), weights)
        leaves = [arrays[f"point{i}"] for i in range(len(jax.tree.leaves(like)))]
        state = State(
            engine.layout.put_replicas(jax.tree.unflatten(jax.tree.structure(like), leaves)),
            jnp.asarray(arrays["replica_at"]),
            jnp.int32(meta["round"]),
        )
        flow = Flow(engine.copies, engine.num_rungs)
        flow.restore(arrays)
        measured = Measured(**{name: np.array(arrays[f"measured_{name}"]) for name in vars(Measured.none(2))})
        searched: Any = {name: arrays[f"search_{name}"] for name in rules.Search._fields[:-1]}
        position = Position(
            state=state,
            temperatures=arrays["temperatures"],
            step_sizes=arrays["step_sizes"],
            search=rules.Search(**searched, steps=meta["search_steps"]),
            tuned=meta["tuned"],
            measured=measured,
            flow=flow,
            ensemble=arrays["ensemble"],
            still=arrays["still"],
            scores=meta["scores"],
        )
        self._lengthen_burn_in(position, int(meta["burn_in"]))
        return position

    def _lengthen_burn_in(self, position: Position, before: int) -> None:
        """Turn samples back into burn-in if the settings now ask for more of it than the checkpoint had."""
        wanted = self.settings.run.burn_in
        if wanted == before:
            return
        if wanted < before:
            raise ConfigError(f"run.burn_in can only grow when a run goes on, from {before}, got {wanted}")
        position.ensemble = np.zeros_like(position.ensemble)
        position.scores = 0
        position.measured = Measured.none(self.engine.num_rungs)
        position.flow = Flow(self.engine.copies, self.engine.num_rungs)
        position.search = rules.start_search(position.step_sizes, self.engine.largest_step, near=True)
        self._warn(f"burn-in grows from {before} to {wanted} rounds: samples from before its end no longer count")

    def _note_restart(self, at_round: int) -> None:
        """Write into the provenance that the run goes on here, and whether still bit by bit."""
        noted = self.folder.read_json(PROVENANCE)
        now = provenance(self.settings, self.problem, self.engine)
        if noted["data"]["sha256"] != now["data"]["sha256"]:
            raise StoreError(
                f"the data of {self.folder.path} have changed since the run began: their hash is not the one in "
                f"{PROVENANCE}; put the old data back, or begin a new run"
            )
        changed = [name for name in ("versions", "platform", "devices") if noted[name] != now[name]]
        facts = {name: now[name] for name in ("command", "versions", "platform", "devices")}
        restart = {"round": at_round, "time": time.time(), "bitwise": not changed, **facts}
        self.folder.write_json(PROVENANCE, {**noted, "restarts": [*noted.get("restarts", []), restart]})
        self.folder.log(f"resumed at round {at_round}")
        if changed:
            self._warn(
                f"going on with other {' and '.join(changed)}: the result is valid, but no longer bit by bit the same"
            )

    def _report(self, position: Position) -> None:
        burn_in = self.settings.run.burn_in
        done = position.round
        since, first = self._phase_began
        rate = (done - first) / max(time.monotonic() - since, 1e-9)
        measured = position.measured
        acceptance = measured.acceptance / max(float(measured.rounds), 1.0)
        sampling = done > burn_in
        progress = Progress(
            phase=SAMPLE if sampling else BURN_IN,
            done=done - burn_in if sampling else done,
            total=self.total - burn_in if sampling else burn_in,
            rounds_per_second=rate,
            seconds_left=(self.total - done) / rate,
            worst_acceptance=float(acceptance.min()) if measured.rounds else float("nan"),
            worst_swap=float(np.min(measured.swap_rate)) if np.all(measured.swap_attempts) else float("nan"),
            round_trips=int(position.flow.round_trips.sum()),
        )
        self._tell(progress)

    def _show(self, phase: str, done: int, total: int) -> None:
        self._tell(Progress(phase, done, total), always=True)

    def _tell(self, progress: Progress, always: bool = False) -> None:
        self.report_fn(progress)
        now = time.monotonic()
        if (always or now - self._status_at > STATUS_SECONDS) and (self.folder.path / CONFIG).exists():
            self.folder.write_json(STATUS, {**vars(progress), "warnings": self.warnings, "time": time.time()})
            self._status_at = now


def stage_ends(settings: Settings) -> list[int]:
    """Rounds at which a stage of burn-in begins or ends: 0, three more of doubling distance, and the end of burn-in.

    The paper's protocol has one stage.
    """
    burn_in = settings.run.burn_in
    inner = {burn_in // 8, burn_in // 4, burn_in // 2} if settings.protocol != "paper" else set()
    return sorted({0, *inner, burn_in})


def keep_rounds(rounds: int, keep: int) -> set[int]:
    """After which of the rounds that count weights are kept: evenly spaced, the last one among them."""
    return {round(rounds * (i + 1) / keep) for i in range(keep)} if keep else {rounds}


def kept_rungs(temperatures: np.ndarray, wanted: tuple[float, ...]) -> np.ndarray:
    """The rungs nearest to the wanted temperatures, in log T; all of them if none is wanted in particular."""
    if not wanted:
        return np.arange(len(temperatures))
    distance = np.abs(np.log(temperatures)[:, None] - np.log(np.asarray(wanted)))
    return np.unique(distance.argmin(axis=0))


def provenance(settings: Settings, problem: Problem, engine: Engine) -> dict[str, Any]:
    """What shaped the run besides its settings."""
    return {
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
            "n_train": len(problem.data.train),
            "n_validation": len(problem.data.validation),
            "n_test": len(problem.data.test),
        },
        "uninformed_loss": uninformed_loss(problem.network.classes),
        "scored_labels": problem.test_labels,
        "trajectories": settings.dynamics.num_trajectories,
        "model": {"sha256": model_hash(problem.network, settings), "weights": problem.network.num_weights},
        "git": _git_revision(),
        "started": time.time(),
    }


def _git_revision() -> str | None:
    """The revision of the project that the command runs in, if there is one."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None


def _cause(record: Record, copy: int, rung: int, trajectories: int) -> str:
    """What is known about why the trajectories of a round were rejected."""
    walls, nonfinite = (int(counts[copy, rung]) for counts in (record.info.wall_rejections, record.info.nonfinite))
    if nonfinite:
        return f"{nonfinite} of {trajectories} trajectories ended in an energy that is not finite"
    if walls:
        return f"{walls} of {trajectories} trajectories ended outside the walls; reflecting walls would let it move"
    return "the energy rejects all of them: the step size is too large there; a longer burn-in tunes it again"


def _row(record: Record, squares: Any, position: Position) -> dict[str, Any]:
    return {
        "temperatures": position.temperatures,
        "time_steps": temperature_path(position.temperatures).time_steps(position.step_sizes),
        "energy": record.phi[..., 0],
        "acceptance": record.info.acceptance,
        "accepted": record.info.accepted,
        "wall_rejections": record.info.wall_rejections,
        "nonfinite": record.info.nonfinite,
        "replica": record.replica,
        "swap_attempts": record.swaps.attempts,
        "swap_accepts": record.swaps.accepts,
        "swap_probability": record.swaps.probability,
        "mean_squares": squares,
    }


def _must_be_finite(record: Record, position: Position) -> None:
    bad = np.argwhere(~np.isfinite(record.phi[..., 0]))
    if len(bad):
        copy, rung = bad[0]
        raise NumericsError(
            f"the energy of copy {copy} at T = {position.temperatures[rung]:.4g} is not finite after round "
            f"{position.round}; nothing of this round is kept: check the energy function and the data"
        )
