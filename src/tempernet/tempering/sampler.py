"""The one loop that samples a path of rungs: start, warm up and adapt, sample, record.

The command, `tempernet.sample`, `tempernet.log_evidence`, the fit of a bridge's quadratic and a
study all drive a `Sampler`. Everything between two checkpoints is a function of the first, so a run
that was killed goes on as if it had not been.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import jax
import numpy as np

from tempernet.diagnostics.flow import Flow
from tempernet.errors import ConfigError, Stopped, check_count
from tempernet.model.networks import Weights
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.ladders import place
from tempernet.paths.path import Path
from tempernet.tempering.adaptation import Adaptation, is_measured, stage_ends
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Facts, Host, Progress
from tempernet.tempering.observables import SERIES, HeldOut, Moment, measured, of_path
from tempernet.tempering.population import (
    Cooling,
    Population,
    barrier,
    step_sizes_at,
    weights_at,
)
from tempernet.tempering.rounds import Record, State
from tempernet.tempering.scoring import Scores, Scoring
from tempernet.tempering.starts import Start, starting_weights
from tempernet.tempering.stuck import Stuck, must_be_finite
from tempernet.tempering.tuning import Tuning

COOL, BURN_IN, SAMPLE = "cool", "burn-in", "sample"


@dataclass(frozen=True)
class Procedure:
    """How a path is sampled.

    Attributes:
        burn_in: rounds before the samples count.
        rounds: rounds that count.
        warm_up: when step sizes are tuned. "stages": by the acceptance of every round of burn-in,
            whose rungs may move between its stages. "ends": by trajectories that are no part of the
            run, before and after burn-in, as the paper has it. "once": so before it alone.
        moves_rungs: whether the rungs move to equal steps of the communication barrier.
        start: where replicas begin.
        cooling_rounds: rounds at each temperature of an "annealed" start.
        cold_to: rungs up to this value of the path are the cold end, which replicas travel from
            and to; None for the first rung alone.
    """

    burn_in: int = 100
    rounds: int = 200
    warm_up: Literal["stages", "ends", "once"] = "stages"
    moves_rungs: bool = True
    start: Start = "apart"
    cooling_rounds: int = 3
    minimiser: Minimiser = field(default_factory=Minimiser)
    tuning: Tuning = field(default_factory=Tuning)

    cold_to: float | None = None

    def __post_init__(self) -> None:
        check_count("burn_in", self.burn_in, least=0)
        check_count("rounds", self.rounds)
        check_count("cooling_rounds", self.cooling_rounds)

    @property
    def total(self) -> int:
        """Rounds in all."""
        return self.burn_in + self.rounds


class Sampler:
    """Samples the path of an engine by a procedure, and tells a host of it.

    `records` says whether the observables of rounds are recorded; `scoring` adds held-out scores
    and kept networks. `after_round_fn(state)` is called after each round that counts.

    >>> sampler = Sampler(engine, Procedure(burn_in=50, rounds=100), host)
    >>> sampler.begin()
    >>> sampler.run()
    """

    def __init__(
        self,
        engine: Engine,
        procedure: Procedure,
        host: Host,
        *,
        scoring: Scoring | None = None,
        records: bool = True,
        after_round_fn: Callable[[State], None] = lambda state: None,
    ) -> None:
        self.engine, self.procedure, self.host = engine, procedure, host
        self.after_round_fn, self.records = after_round_fn, records
        self.observables = of_path(engine.path)
        self.held_out = scoring.held_out if scoring else HeldOut()
        self.scores = (
            Scores(engine, scoring, procedure.rounds, self.observables) if scoring else None
        )
        self.stages = stage_ends(procedure.burn_in, stages=procedure.warm_up == "stages")
        self.adaptation = Adaptation.begin(engine)
        self.flow = Flow(engine.copies, engine.num_rungs)
        self.stuck = Stuck(engine.copies, engine.num_rungs, engine.dynamics.num_trajectories)
        self.population: Population | None = None
        self.begun_stage = False
        self._since = time.monotonic(), 0

    # Where it is, all of it in a checkpoint.

    state: State
    population: Population | None
    """Replicas that cool together, before the first round."""
    adaptation: Adaptation
    flow: Flow
    begun_stage: bool
    """Whether the stage that begins at this round has begun."""

    @property
    def round(self) -> int:
        """Rounds done, burn-in included; those of a population that cools are none of them."""
        return 0 if self.population is not None else int(self.state.round)

    @property
    def path(self) -> Path:
        """The path where its rungs are now."""
        return self.adaptation.path

    # The loop.

    def begin(self, weights: Weights | None = None) -> None:
        """Begin at these weights (leading axis R), or where the procedure starts."""
        procedure = self.procedure
        if weights is None:
            self.host.show("minimise")
            weights = starting_weights(self.engine, procedure.start, procedure.minimiser)
        if procedure.start == "annealed":
            self.host.show(COOL)
            self.population = self._cooling().start(weights, self.host.wait)
            self.state = self.population.state
        else:
            self.state = self.engine.start(weights)

    def run(self) -> None:
        """Sample from the present position to the end."""
        while self.population is not None:
            self._guarded(self._cool, "while replicas cool")
        self._since = time.monotonic(), self.round
        while True:
            if not self.begun_stage:
                self._begin_stage()
            if self.round >= self.procedure.total:
                return
            self._guarded(self._one_round, f"after round {self.round}")

    def _guarded(self, step_fn: Callable[[], None], where: str) -> None:
        """Make a step; if asked to stop, give it up and stay at the position before it."""
        try:
            step_fn()
        except Stopped:
            self.host.stop(where)
            raise
        self.host.checkpoint_if_due()

    def _cooling(self) -> Cooling:
        return Cooling(self.engine, self.procedure.cooling_rounds, self.procedure.tuning)

    def _cool(self) -> None:
        """Cool the population by a step; from the coldest, start the replicas of all rungs."""
        cooling = self._cooling()
        assert self.population is not None
        if cooling.finished(self.population):
            self._spread_out(self.population)
            return
        self.population = cooling.stage(self.population, self.host.wait)
        self.state = self.population.state
        betas, beta = self.engine.path.beta, self.population.beta
        passed = int(np.sum(betas <= beta * (1 + 1e-9)))
        self.host.tell(Progress(COOL, passed, len(betas), detail=f"T = {1 / beta:.3g}"))

    def _spread_out(self, population: Population) -> None:
        """Place the rungs, their step sizes and first replicas as the population has found them."""
        path = self.path
        found = barrier(population, path)
        self.host.note(
            f"cooled in {len(population.betas)} steps, barrier {found.total:.1f}: about "
            f"{found.rungs_wanted} rungs recommended"
        )
        if self.procedure.moves_rungs:
            path = path.moved(place(found, path.num_rungs))
        self.adaptation.path = path
        self.adaptation.step_sizes = step_sizes_at(population, path)
        like = self.engine.target.prior.like
        self.state = self.engine.start(weights_at(population, path, like))
        self.population = None

    def _begin_stage(self) -> None:
        """Between two stages of burn-in, or before the samples: fix step sizes, move rungs."""
        last = self.round >= self.procedure.burn_in
        adaptation, largest = self.adaptation, self.engine.largest_step
        measured_ = adaptation.measured
        if self.procedure.warm_up == "stages" and self.round > 0:
            adaptation.settle(largest)
            rates = measured_.mean_acceptance
            self.host.note(
                f"round {self.round}: acceptance was {rates.min():.2f} to {rates.max():.2f}"
            )
        elif self.round == 0 or self.procedure.warm_up == "ends":
            self._tune(last or self.procedure.warm_up == "once")
        if self.procedure.moves_rungs and measured_.rounds > 0 and not last:
            barrier_ = adaptation.move()
            swaps = measured_.swap_rate
            self.host.note(
                f"round {self.round}: rungs moved, barrier {barrier_.total:.1f}: about "
                f"{barrier_.rungs_wanted} rungs recommended, swaps were {np.nanmin(swaps):.2f} to "
                f"{np.nanmax(swaps):.2f}"
            )
        adaptation.begin_stage(largest)
        self.begun_stage = True
        if last:
            self.flow = Flow(self.engine.copies, self.engine.num_rungs)
        self._since = time.monotonic(), self.round
        self.host.checkpoint()

    def _tune(self, thoroughly: bool) -> None:
        """Tune the step sizes by trajectories that are no part of the run."""
        self.host.show("tune")
        tuning = self.procedure.tuning
        if thoroughly:
            moved, acceptance = self.adaptation.tune(self.engine, self.state, tuning)
            self.host.note(
                f"round {self.round}: tuned, acceptance {acceptance.min():.2f} to "
                f"{acceptance.max():.2f}"
            )
        else:
            # A first guess: burn-in improves it, or it is tuned again at the end of burn-in.
            moved = self.adaptation.guess(self.engine, self.state, tuning)
        if self.procedure.warm_up == "stages":
            # These trajectories are so much more burn-in; in the paper they are none.
            self.state = moved

    def _one_round(self) -> None:
        engine, adaptation, began = self.engine, self.adaptation, self.round
        sampling = began >= self.procedure.burn_in
        state, on_device = engine.round(self.state, adaptation.rungs(engine))
        self.host.wait(state, on_device)
        record: Record = jax.device_get(on_device)
        must_be_finite(record, self.path, began)
        self.state = state
        moment = Moment(engine, state, record, self.path, adaptation.step_sizes, self.held_out)
        if self.records:
            self.host.record(SERIES["round"], measured(self.observables, moment, "round"))
        if not sampling and self.procedure.warm_up == "stages":
            adaptation.learn(record, self.procedure.tuning, engine.largest_step)
        if sampling or is_measured(self.stages, began):
            adaptation.measured.add(record)
        self.flow.update(np.asarray(record.replica), self.cold_rungs)
        if complaint := self.stuck.watch(record, self.path):
            self.host.warn(complaint)
        if sampling:
            if self.scores is not None:
                self.scores.take(moment, self.round - self.procedure.burn_in, self.host)
            self.after_round_fn(state)
        if self.round in self.stages:
            self.begun_stage = False
        self._report()

    @property
    def cold_rungs(self) -> int:
        """How many rungs make up the cold end, where round trips begin and end."""
        end = self.procedure.cold_to
        return 1 if end is None else max(1, int(np.sum(self.path.values <= end)))

    # Checkpoints.

    def arrays(self) -> dict[str, np.ndarray]:
        """The position as arrays."""
        found = self.engine.packed(self.state) | self.adaptation.arrays() | self.flow.arrays()
        found |= self.stuck.arrays()
        if self.population is not None:
            found |= self.population.arrays()
        return found | (self.scores.arrays() if self.scores is not None else {})

    def meta(self) -> dict[str, int | bool]:
        """The position as plain facts."""
        return {
            "round": self.round,
            "burn_in": self.procedure.burn_in,
            "begun_stage": self.begun_stage,
            "cooling": self.population is not None,
        }

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a position; samples become burn-in if there is to be more of that now."""
        before, burn_in = int(meta["burn_in"]), self.procedure.burn_in
        if burn_in < before:
            raise ConfigError(
                f"run.burn_in can only grow when a run goes on, from {before}, got {burn_in}"
            )
        self.state = self.engine.unpacked(arrays, int(meta["round"]))
        if meta["cooling"]:
            self.population = Population.restored(self.state, arrays)
        self.adaptation.restore(arrays)
        self.flow.restore(arrays)
        self.stuck.restore(arrays)
        if self.scores is not None:
            self.scores.restore(arrays)
        self.begun_stage = bool(meta["begun_stage"])
        if burn_in > before:
            if self.scores is not None:
                self.scores.forget()
            self.flow = Flow(self.engine.copies, self.engine.num_rungs)
            self.adaptation.begin_stage(self.engine.largest_step)
            self.host.warn(
                f"burn-in grows from {before} to {burn_in} rounds: samples from before its end no "
                "longer count"
            )

    def _report(self) -> None:
        done, (began, first) = self.round, self._since
        rate = (done - first) / max(time.monotonic() - began, 1e-9)
        burn_in, total = self.procedure.burn_in, self.procedure.total
        measured_ = self.adaptation.measured
        tried = len(measured_.swap_attempts) > 0 and bool(np.all(measured_.swap_attempts))
        sampling = done > burn_in
        progress = Progress(
            phase=SAMPLE if sampling else BURN_IN,
            done=done - burn_in if sampling else done,
            total=total - burn_in if sampling else burn_in,
            rounds_per_second=rate,
            seconds_left=(total - done) / rate,
            worst_acceptance=float(measured_.mean_acceptance.min())
            if measured_.rounds
            else float("nan"),
            worst_swap=float(np.min(measured_.swap_rate)) if tried else float("nan"),
            round_trips=int(self.flow.round_trips.sum()),
        )
        # A run that has ended says so.
        self.host.tell(progress, always=done == total)
