"""Sampling a path of rungs: initialise, minimise, tune, burn in, sample; a round at a time, all of
it recorded.

The default protocol finds step sizes and rungs on the way, in stages (see `adaptation`). The
paper's instead tunes by extra trajectories, at the start and at the end of burn-in.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from tempernet.config import LadderSettings
from tempernet.diagnostics.flow import Flow
from tempernet.errors import ConfigError, NumericsError, Stopped
from tempernet.model.networks import Weights
from tempernet.paths.ladders import place
from tempernet.store import RunFolder
from tempernet.tasks.base import Progress, Task, Watch, state_arrays, state_from
from tempernet.tasks.problem import Problem, make_minimiser, make_tuning
from tempernet.tempering.adaptation import Adaptation, is_measured, stage_ends
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import Cooling, Population, barrier, step_sizes_at, weights_at
from tempernet.tempering.rounds import Record, State
from tempernet.tempering.sampling import starting_weights

COOL, BURN_IN, SAMPLE = "cool", "burn-in", "sample"
STUCK_ROUNDS = 50
"""Rounds without an accepted trajectory after which a replica counts as stuck."""


class LadderTask(Task):
    """A path of rungs in a run folder."""

    def __init__(
        self,
        settings: LadderSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(settings, problem, folder, watch)
        self.ladder_settings = settings
        self.tuning = make_tuning(settings)
        self.tunes_on_the_way = settings.protocol != "paper"
        self.burn_in = settings.run.burn_in
        self.total = settings.run.burn_in + settings.run.rounds
        self.stages = stage_ends(self.burn_in, stages=self.tunes_on_the_way)
        self._phase_began: tuple[float, int] = (time.monotonic(), 0)

    # What a task provides.

    @abstractmethod
    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the path that the run begins with."""

    def starting_weights(self) -> Weights:
        """Weights of all replicas."""
        settings = self.ladder_settings
        start = "apart" if self.cooling is not None else settings.start.weights
        return starting_weights(self.engine, start, make_minimiser(settings))

    @property
    def cooling(self) -> Cooling | None:
        """How replicas cool together before the first round, if they do."""
        return None

    @property
    def cold_rungs(self) -> int:
        """How many rungs are the cold end that replicas travel from and to."""
        return 1

    def forget_samples(self) -> None:
        """Drop what was summed up over samples that are now burn-in."""

    def after_round(self, done: int) -> None:
        """What is done besides, after `done` of the rounds that count."""

    # Where it is, all of it in a checkpoint.

    state: State
    population: Population | None
    """Replicas that cool together, before the first round."""
    adaptation: Adaptation
    flow: Flow
    still: np.ndarray
    """For how many rounds each replica has accepted nothing: (copies, K)."""
    begun_stage: bool
    """Whether the stage that begins at this round has begun."""

    @property
    def round(self) -> int:
        """Rounds done, burn-in included; those of a population that cools are none of them."""
        return 0 if self.population is not None else int(self.state.round)

    def run(self) -> None:
        """From where the folder is to the end."""
        self.show("initialise")
        self.engine = self.make_engine(self.begun_tile())
        self.adaptation = Adaptation.begin(self.engine)
        self.flow = Flow(self.engine.copies, self.engine.num_rungs)
        self.still = np.zeros((self.engine.copies, self.engine.num_rungs), np.int32)
        self.begun_stage = False
        self.population = None
        self.forget_samples()
        if not self.restored():
            self.note_start_once()
            self.show("minimise")
            weights = self.starting_weights()
            if self.cooling is not None:
                self.show(COOL)
                self.population = self.cooling.start(weights, self.wait)
                self.state = self.population.state
            else:
                self.state = self.engine.start(weights)
        if self.population is not None:
            self._cool()
        self._phase_began = (time.monotonic(), self.round)
        while True:
            if not self.begun_stage:
                self._begin_stage()
            if self.round >= self.total:
                break
            try:
                self._one_round()
            except Stopped:
                # The round at hand is given up: the position is still the one before it.
                self.stop(f"after round {self.round}")
                raise
            self.checkpoint_if_due()
        self.finish()

    def _cool(self) -> None:
        """Down to the coldest rung; then the rungs, their step sizes and their first replicas are
        those found.
        """
        cooling, adaptation = self.cooling, self.adaptation
        assert cooling is not None and self.population is not None
        while not cooling.finished(self.population):
            try:
                self.population = cooling.stage(self.population, self.wait)
                self.state = self.population.state
            except Stopped:
                # The temperature at hand is given up: the position is still the one before it.
                self.stop("while replicas cool")
                raise
            self._report_cooling()
            self.checkpoint_if_due()
        found = barrier(self.population, adaptation.path)
        self.folder.log.append(
            f"cooled in {len(self.population.betas)} steps, "
            f"barrier {found.total:.1f} asks for {found.rungs_wanted} rungs"
        )
        path = adaptation.path
        if self.ladder_settings.moves_rungs:
            path = path.moved(place(found, path.num_rungs))
        adaptation.path, adaptation.step_sizes = path, step_sizes_at(self.population, path)
        self.state = self.engine.start(
            weights_at(self.population, path, self.engine.target.prior.like)
        )
        self.population = None

    def _begin_stage(self) -> None:
        """Between two stages of burn-in, or before the samples: fix the step sizes found, move
        adaptive rungs.
        """
        last = self.round >= self.burn_in
        adaptation, largest = self.adaptation, self.engine.largest_step
        measured = adaptation.measured
        if self.round > 0 and self.tunes_on_the_way:
            adaptation.settle(largest)
            rates = measured.mean_acceptance
            self.folder.log.append(
                f"round {self.round}: acceptance was {rates.min():.2f} to {rates.max():.2f}"
            )
        else:
            self._tune(last)
        if self.ladder_settings.moves_rungs and measured.rounds > 0 and not last:
            barrier = adaptation.move()
            self.folder.log.append(
                f"round {self.round}: rungs moved, barrier {barrier.total:.1f} asks for {barrier.rungs_wanted} rungs, "
                f"swaps were {np.nanmin(measured.swap_rate):.2f} to {np.nanmax(measured.swap_rate):.2f}"
            )
        adaptation.begin_stage(largest)
        self.begun_stage = True
        if last:
            self.flow = Flow(self.engine.copies, self.engine.num_rungs)
        self._phase_began = (time.monotonic(), self.round)
        self.checkpoint()

    def _tune(self, last: bool) -> None:
        """Step sizes by trajectories that are no part of the run."""
        self.show("tune")
        if last:
            moved, acceptance = self.adaptation.tune(self.engine, self.state, self.tuning)
            self.folder.log.append(
                f"round {self.round}: tuned, acceptance {acceptance.min():.2f} to {acceptance.max():.2f}"
            )
        else:
            # A first guess: it will be improved during burn-in, or tuned again at its end.
            moved = self.adaptation.guess(self.engine, self.state, self.tuning)
        if self.tunes_on_the_way:
            # Tuning's trajectories are so much more burn-in; in the paper they are no part of the
            # simulation.
            self.state = moved

    def _one_round(self) -> None:
        engine, adaptation, began = self.engine, self.adaptation, self.round
        sampling = began >= self.burn_in
        state, on_device = engine.round(self.state, adaptation.rungs(engine))
        self.wait(state, on_device)
        squares = engine.mean_squares(state)
        record = jax.device_get(on_device)
        self._must_be_finite(record)
        self.state = state
        self.records.append("rounds", self._row(record, squares))
        if not sampling and self.tunes_on_the_way:
            adaptation.learn(record, self.tuning, engine.largest_step)
        if sampling or is_measured(self.stages, began):
            adaptation.measured.add(record)
        self.flow.update(np.asarray(record.replica), self.cold_rungs)
        self._watch_stuck(record)
        if sampling:
            self.after_round(self.round - self.burn_in)
        if self.round in self.stages:
            self.begun_stage = False
        self._report()

    def _row(self, record: Record, squares: Any) -> dict[str, Any]:
        path = self.adaptation.path
        return {
            f"{path.parameter}s": path.values,
            "time_steps": path.time_steps(self.adaptation.step_sizes),
            "num_steps": self.engine.dynamics.steps_of(self.adaptation.step_sizes, ~path.exact),
            **{name: record.phi[..., m] for m, name in enumerate(path.terms)},
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

    def _where(self, copy: int, rung: int) -> str:
        path = self.adaptation.path
        symbol = {"temperature": "T"}.get(path.parameter, path.parameter)
        return f"copy {copy} at {symbol} = {path.values[rung]:.4g}"

    def _must_be_finite(self, record: Record) -> None:
        bad = np.argwhere(~np.isfinite(record.phi).all(axis=-1))
        if len(bad):
            raise NumericsError(
                f"the energy of {self._where(*bad[0])} is not finite after round "
                f"{self.round}; nothing of this round is kept: check the energy function and the data"
            )

    def _watch_stuck(self, record: Record) -> None:
        """Warn of replicas that have long accepted nothing, and stop if that is all of them: no
        samples are better.
        """
        rejected = np.asarray(record.info.accepted) == 0
        before = np.take_along_axis(self.still, np.asarray(record.replica), axis=1)
        np.put_along_axis(
            self.still, np.asarray(record.replica), np.where(rejected, before + 1, 0), axis=1
        )
        longest = self.still.min() if self.still.min() >= STUCK_ROUNDS else self.still.max()
        if longest < STUCK_ROUNDS or longest % STUCK_ROUNDS:
            return
        copy, rung = (
            int(i)
            for i in np.unravel_index(
                int(np.argmax(np.where(rejected, before, -1))), rejected.shape
            )
        )
        cause = _cause(record, copy, rung, self.engine.dynamics.num_trajectories)
        where = self._where(copy, rung)
        if self.still.min() >= STUCK_ROUNDS:
            raise NumericsError(
                f"no replica has accepted a trajectory for {longest} rounds; {where}: {cause}"
            )
        number = int((self.still >= STUCK_ROUNDS).sum())
        self.warn(
            f"{number} replicas have accepted nothing for {STUCK_ROUNDS} rounds or more; {where}: {cause}"
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The position."""
        own = {"still": self.still}
        if self.population is not None:
            own |= self.population.arrays()
        return (
            state_arrays(self.engine, self.state)
            | self.adaptation.arrays()
            | self.flow.arrays()
            | own
        )

    def meta(self) -> dict[str, Any]:
        """How far the run is."""
        cooling = self.population is not None
        return {
            "round": self.round,
            "burn_in": self.burn_in,
            "begun_stage": self.begun_stage,
            "cooling": cooling,
        }

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a position, with samples turned into burn-in if the settings now ask for more
        of it.
        """
        self.state = state_from(self.engine, arrays, int(meta["round"]))
        if meta.get("cooling"):
            self.population = Population.restored(self.state, arrays)
        self.adaptation.restore(arrays)
        self.flow.restore(arrays)
        self.still = np.array(arrays["still"])
        self.begun_stage = bool(meta["begun_stage"])
        before = int(meta["burn_in"])
        if self.burn_in < before:
            raise ConfigError(
                f"run.burn_in can only grow when a run goes on, from {before}, got {self.burn_in}"
            )
        if self.burn_in > before:
            self.forget_samples()
            self.flow = Flow(self.engine.copies, self.engine.num_rungs)
            self.adaptation.begin_stage(self.engine.largest_step)
            self.warn(
                f"burn-in grows from {before} to {self.burn_in} rounds: samples from before its end no longer count"
            )

    def _report_cooling(self) -> None:
        """How many rungs the population has passed."""
        assert self.population is not None
        betas = self.engine.path.beta
        passed = int(np.sum(betas <= self.population.beta * (1 + 1e-9)))
        self.tell(Progress(COOL, passed, len(betas), detail=f"T = {1 / self.population.beta:.3g}"))

    def _report(self) -> None:
        done, since = self.round, self._phase_began
        rate = (done - since[1]) / max(time.monotonic() - since[0], 1e-9)
        measured = self.adaptation.measured
        tried = len(measured.swap_attempts) > 0 and bool(np.all(measured.swap_attempts))
        sampling = done > self.burn_in
        progress = Progress(
            phase=SAMPLE if sampling else BURN_IN,
            done=done - self.burn_in if sampling else done,
            total=self.total - self.burn_in if sampling else self.burn_in,
            rounds_per_second=rate,
            seconds_left=(self.total - done) / rate,
            worst_acceptance=float(measured.mean_acceptance.min())
            if measured.rounds
            else float("nan"),
            worst_swap=float(np.min(measured.swap_rate)) if tried else float("nan"),
            round_trips=int(self.flow.round_trips.sum()),
        )
        # A run that has ended says so.
        self.tell(progress, always=done == self.total)


def _cause(record: Record, copy: int, rung: int, trajectories: int) -> str:
    """What is known about why the trajectories of a round were rejected."""
    walls, nonfinite = (
        int(counts[copy, rung]) for counts in (record.info.wall_rejections, record.info.nonfinite)
    )
    if nonfinite:
        return f"{nonfinite} of {trajectories} trajectories ended in an energy that is not finite"
    if walls:
        return f"{walls} of {trajectories} trajectories ended outside the walls; reflecting walls would let it move"
    return "the energy rejects all of them: the step size is too large there; a longer burn-in tunes it again"
