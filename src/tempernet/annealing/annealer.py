"""Simulated annealing by full-batch HMC (Secs. 3.4, 3.5): many replicas cool side by side.

At each temperature the step size follows the acceptance of a few rounds of burn-in, then rounds
count: they are scored on validation data, and when `stopping.follow` says that the error has risen,
the run ends. It goes back to two things: the single network of least validation error, and all
those scored at the temperature of least average error. `anneal` and the task of the command both
drive the `Annealer`, a round at a time.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from tempernet.annealing.position import Position
from tempernet.annealing.schedule import Schedule
from tempernet.annealing.stopping import follow
from tempernet.annealing.validation import ScoreFn
from tempernet.errors import ConfigError, NumericsError
from tempernet.model.networks import Weights
from tempernet.model.scores import Score
from tempernet.paths.temperatures import temperature_path
from tempernet.tempering import tuning as rules
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import Record, Rungs, State
from tempernet.tempering.tuning import Tuning

LEAST_REPLICAS = 4
"""Fewer know so little of their own noise that hardly any rise is beyond it."""


class Annealer:
    """Cools the replicas of an engine of one rung, a round at a time.

    Args:
        engine: of one rung, with a copy for each replica.
        schedule: temperatures, and rounds at each.
        score_fn: validation scores of all replicas.
        tuning: of the first step size, and the acceptance that later ones follow.
    """

    def __init__(
        self, engine: Engine, schedule: Schedule, score_fn: ScoreFn, tuning: Tuning | None = None
    ) -> None:
        if engine.num_rungs != 1 or engine.copies < LEAST_REPLICAS:
            raise ConfigError(
                f"annealing needs one rung and at least {LEAST_REPLICAS} replicas, which tell the "
                f"noise, got {engine.num_rungs} rungs and {engine.copies} replicas"
            )
        self.engine, self.schedule, self.score_fn = engine, schedule, score_fn
        self.tuning = tuning or Tuning()

    def start(self, weights: Weights) -> Position:
        """At the highest temperature, with a step size tuned there; weights (replicas, ...)."""
        engine = self.engine
        first = self._rungs(engine.first_step, 0)
        state, rungs, _ = engine.tune(engine.start(weights), first, self.tuning)
        step = float(rungs.step_sizes[0])
        no_losses = np.empty((0, engine.copies, self.schedule.draws))
        return Position(state, step, self._search(step), no_losses)

    def restored(self, state: State, arrays: Mapping[str, np.ndarray]) -> Position:
        """A position from a checkpoint: the state, and what `Position.arrays` gave."""
        like = self.engine.target.prior.like
        return Position.restored(state, arrays, like, self.schedule.patience)

    def where(self, position: Position) -> tuple[int, int]:
        """The number of the temperature, from the hottest, and the rounds done at it."""
        return divmod(position.round, self.schedule.length)

    def finished(self, position: Position) -> bool:
        """Whether the rule has stopped the run, or it has arrived at its lowest temperature."""
        return position.course.stopped or position.round >= self.schedule.num * self.schedule.length

    def round(self, position: Position) -> tuple[State, Record]:
        """The next round, begun on the devices; `accept` takes it in."""
        temperature, _ = self.where(position)
        return self.engine.round(position.state, self._rungs(position.step_size, temperature))

    def accept(self, position: Position, state: State, record: Record) -> Score | None:
        """Take a round in: tune or score, and decide at the end of a temperature.

        Returns the score of this round, (replicas,) each, if it has one.
        """
        step, done = self.where(position)
        _must_be_finite(record, self.schedule.temperatures[step])
        position.state = state
        score = None
        done += 1
        if done <= self.schedule.burn_in:
            self._tune(position, record, last=done == self.schedule.burn_in)
        elif (done - self.schedule.burn_in) % self.schedule.score_every == 0:
            score = self._score(position)
        if done == self.schedule.length:
            self._end_temperature(position, step)
        return score

    def _tune(self, position: Position, record: Record, last: bool) -> None:
        """Follow the acceptance of this round; the step size at the end of burn-in stays."""
        acceptance = np.asarray(record.info.acceptance).mean(axis=0)
        largest = self.engine.largest_step
        position.search = rules.search_step(position.search, acceptance, self.tuning, largest)
        found = rules.found(position.search, largest) if last else np.exp(position.search.log_step)
        position.step_size = float(found[0])

    def _score(self, position: Position) -> Score:
        score: Score = jax.device_get(self.score_fn(position.state))
        losses = np.asarray(score.loss, np.float64)
        weights = self.engine.weights_at(position.state, 0)
        position.drawn.append((losses, weights))
        best = int(np.where(np.isfinite(losses), losses, np.inf).argmin())
        if losses[best] < position.chosen_loss:
            position.chosen = jax.tree.map(lambda leaf: leaf[best], weights)
            position.chosen_loss = float(losses[best])
        return score

    def _end_temperature(self, position: Position, step: int) -> None:
        """Ask the rule, keep the samples if they are the best so far, and hand the time step on."""
        losses = np.stack([losses for losses, _ in position.drawn], axis=1)
        position.losses = np.concatenate([position.losses, losses[None]])
        position.course = follow(position.losses, self.schedule.patience)
        if position.course.best == step:
            position.ensemble = [weights for _, weights in position.drawn]
        position.drawn = []
        if not self.finished(position):
            # The right dt = eps / sqrt(T) of a quadratic energy is the same at every T.
            hot, cold = self.schedule.temperatures[step : step + 2]
            position.step_size *= float(np.sqrt(cold / hot))
            position.search = self._search(position.step_size)

    def _search(self, step: float) -> rules.Search:
        return rules.start_search(np.array([step]), self.engine.largest_step, near=True)

    def _rungs(self, step: float, temperature: int) -> Rungs:
        path = temperature_path(self.schedule.temperatures[temperature : temperature + 1])
        return self.engine.rungs(step, path)


def _must_be_finite(record: Record, temperature: float) -> None:
    bad = np.flatnonzero(~np.isfinite(np.asarray(record.phi)[:, 0, 0]))
    if len(bad):
        raise NumericsError(
            f"the energy of replica {bad[0]} at T = {temperature:.4g} is not finite; nothing of "
            f"this round is kept: check the energy function and the data"
        )
