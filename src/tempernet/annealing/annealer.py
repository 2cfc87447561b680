"""Simulated annealing by full-batch HMC (Secs. 3.4, 3.5): many replicas cool side by side.

At each temperature the step size follows the acceptance of a few rounds of burn-in, then rounds
count: they are scored on validation data, and when `cooling.follow` says that the error has risen,
the cooling ends. It goes back to two things: the single network of least validation error, and all
those scored at the temperature of least average error. `anneal` is the front door in Python; the
task of the command drives the same `Annealer`, a round at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.annealing.stopping import Course, follow, least
from tempernet.data import Examples
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import ConfigError, NumericsError, check_count
from tempernet.model.networks import Weights
from tempernet.model.target import Batch, Score, Target, hold_out
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.path import geometric_temperatures, temperature_path
from tempernet.tempering import tuning as rules
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import Record, State
from tempernet.tempering.starts import Start, starting_weights
from tempernet.tempering.tuning import Tuning

LEAST_REPLICAS = 4
"""Fewer know so little of their own noise that hardly any rise is beyond it."""
ScoreFn = Callable[[State], Score]
"""Validation loss and accuracy of every replica: (replicas,) each."""


@dataclass(frozen=True)
class Schedule:
    """`num` temperatures from `high` down to `low`, a constant factor apart, and what is done at
    each.
    """

    high: float = 100.0
    low: float = 0.1
    num: int = 25
    burn_in: int = 5
    """Rounds before those that count; the step size is tuned on them."""
    rounds: int = 10
    score_every: int = 1
    patience: int = 3
    """Temperatures in a row that the validation error must have risen at."""

    def __post_init__(self) -> None:
        for name in ("burn_in", "rounds", "score_every", "patience"):
            check_count(name, getattr(self, name))
        if self.score_every > self.rounds:
            raise ConfigError(
                f"score_every must be at most rounds, {self.rounds}, or nothing is scored, got {self.score_every}"
            )
        geometric_temperatures(self.low, self.high, self.num)

    @property
    def temperatures(self) -> np.ndarray:
        """(num,), falling."""
        return geometric_temperatures(self.low, self.high, self.num)[::-1]

    @property
    def length(self) -> int:
        """Rounds at a temperature."""
        return self.burn_in + self.rounds

    @property
    def draws(self) -> int:
        """Scores at a temperature."""
        return self.rounds // self.score_every


@dataclass
class Position:
    """Where a cooling is: all that the next round depends on, and what it would go back to."""

    state: State
    step_size: float
    """Reduced: eps = dt sqrt(T)."""
    search: rules.Search
    losses: np.ndarray
    """Validation losses of all temperatures that are over: (temperatures, replicas, draws)."""
    course: Course = field(default_factory=lambda: Course(None, 0, False))
    drawn: list[tuple[np.ndarray, Weights]] = field(default_factory=list)
    """Losses (replicas,) and weights of the scores so far at this temperature."""
    ensemble: list[Weights] = field(default_factory=list)
    """Weights of all scores at the best temperature that is over, a leading axis of replicas each."""
    chosen: Weights = None
    """The one network of least validation loss."""
    chosen_loss: float = np.inf

    @property
    def round(self) -> int:
        """Rounds done at all temperatures."""
        return int(self.state.round)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the state, for a checkpoint."""
        chosen = [] if self.chosen is None else [self.chosen]
        return {
            "step_size": np.asarray(self.step_size),
            **{
                f"search_{name}": np.asarray(value) for name, value in self.search._asdict().items()
            },
            "losses": self.losses,
            "chosen_loss": np.asarray(self.chosen_loss),
            "drawn_losses": np.array([losses for losses, _ in self.drawn]),
            **_packed("drawn", [weights for _, weights in self.drawn]),
            **_packed("ensemble", self.ensemble),
            **_packed("chosen", chosen),
        }


class Annealer:
    """Cools the replicas of an engine of one rung, a round at a time."""

    def __init__(
        self, engine: Engine, schedule: Schedule, score_fn: ScoreFn, tuning: Tuning | None = None
    ) -> None:
        if engine.num_rungs != 1 or engine.copies < LEAST_REPLICAS:
            raise ConfigError(
                f"a cooling needs one rung and at least {LEAST_REPLICAS} replicas, which tell its noise, got "
                f"{engine.num_rungs} rungs and {engine.copies} replicas"
            )
        self.engine, self.schedule, self.score_fn = engine, schedule, score_fn
        self.tuning = tuning or Tuning()

    def start(self, weights: Weights) -> Position:
        """At the highest temperature, with a step size tuned there."""
        engine = self.engine
        state, rungs, _ = engine.tune(
            engine.start(weights), self._rungs(engine.first_step, 0), self.tuning
        )
        step = float(rungs.step_sizes[0])
        return Position(
            state, step, self._search(step), np.empty((0, engine.copies, self.schedule.draws))
        )

    def restored(self, state: State, arrays: Mapping[str, np.ndarray]) -> Position:
        """A position from a checkpoint."""
        like = self.engine.target.prior.like
        search: Any = {name: arrays[f"search_{name}"] for name in rules.Search._fields}
        chosen = _unpacked("chosen", arrays, like)
        return Position(
            state,
            float(arrays["step_size"]),
            rules.Search(**search | {"steps": int(search["steps"])}),
            arrays["losses"],
            follow(arrays["losses"], self.schedule.patience),
            list(zip(arrays["drawn_losses"], _unpacked("drawn", arrays, like), strict=True)),
            _unpacked("ensemble", arrays, like),
            chosen[0] if chosen else None,
            float(arrays["chosen_loss"]),
        )

    def where(self, position: Position) -> tuple[int, int]:
        """The number of the temperature, from the hottest, and the rounds done at it."""
        return divmod(position.round, self.schedule.length)

    def finished(self, position: Position) -> bool:
        """Whether the rule has stopped the cooling, or it has arrived at its lowest temperature."""
        return position.course.stopped or position.round >= self.schedule.num * self.schedule.length

    def round(self, position: Position) -> tuple[State, Record]:
        """The next round, begun on the devices; `accept` takes it in."""
        return self.engine.round(
            position.state, self._rungs(position.step_size, self.where(position)[0])
        )

    def accept(self, position: Position, state: State, record: Record) -> Score | None:
        """Take a round in: tune or score, and at the end of a temperature decide; returns the score
        if there is one.
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
        """Follow the acceptance of this round; the step size found at the end of burn-in stays."""
        acceptance, largest = (
            np.asarray(record.info.acceptance).mean(axis=0),
            self.engine.largest_step,
        )
        position.search = rules.search_step(position.search, acceptance, self.tuning, largest)
        found = rules.found(position.search, largest) if last else np.exp(position.search.log_step)
        position.step_size = float(found[0])

    def _score(self, position: Position) -> Score:
        score = jax.device_get(self.score_fn(position.state))
        losses = np.asarray(score.loss, np.float64)
        weights = self.engine.weights_at(position.state, 0)
        position.drawn.append((losses, weights))
        best = int(np.where(np.isfinite(losses), losses, np.inf).argmin())
        if losses[best] < position.chosen_loss:
            position.chosen = jax.tree.map(lambda leaf: leaf[best], weights)
            position.chosen_loss = float(losses[best])
        return score

    def _end_temperature(self, position: Position, step: int) -> None:
        """Ask the rule, keep the samples if they are the best so far, and hand the time step dt to
        what comes next.
        """
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

    def _rungs(self, step: float, temperature: int) -> Any:
        return self.engine.rungs(
            step, temperature_path(self.schedule.temperatures[temperature : temperature + 1])
        )


@dataclass(frozen=True, eq=False)
class Annealed:
    """What a cooling gave. Temperatures fall; those that were not reached are left out."""

    temperatures: np.ndarray
    energy: np.ndarray
    """E after each round that counts: (temperatures, replicas, rounds)."""
    acceptance: np.ndarray
    """Mean over replicas and the rounds that count: (temperatures,)."""
    losses: np.ndarray
    """Validation losses: (temperatures, replicas, draws)."""
    course: Course
    weights: Weights
    """The network of least validation loss."""
    weights_loss: float
    """Its validation loss: the least of many, so too good to be true of other data."""
    ensemble: Weights
    """All networks scored at the best temperature: leading axis draws x replicas."""

    @property
    def best_temperature(self) -> float:
        """Of least average validation loss."""
        return float(self.temperatures[_known(self.course)])

    @property
    def validation_loss(self) -> Estimate:
        """Mean and error of the validation loss, each (temperatures,)."""
        return average(np.moveaxis(self.losses, 0, -1))

    @property
    def chosen(self) -> tuple[int, int, int]:
        """Temperature, replica and draw of `weights`."""
        return least(self.losses)


def anneal(
    target: Target,
    validation: Examples | Callable[[Weights], Array],
    *,
    high: float = 100.0,
    low: float = 0.1,
    num: int = 25,
    replicas: int = 8,
    burn_in: int = 5,
    rounds: int = 10,
    score_every: int = 1,
    patience: int = 3,
    start: Start = "prior",
    minimiser: Minimiser | None = None,
    tuning: Tuning | None = None,
    progress_fn: Callable[[str, int, int], None] | None = None,
    **engine_options: Any,
) -> Annealed:
    """Cool `replicas` of a target from `high` to `low`, until the validation error rises for
    `patience` temperatures.

    `validation` is a set of examples that is neither trained nor tested on, or for an energy of
    one's own any loss of the weights of one replica. At each of `num` temperatures `burn_in` rounds
    tune the step size and `rounds` count, every `score_every`-th of them scored.
    `progress_fn(phase, done, total)` is called after each round. Other options go to `Engine`.

    >>> cooled = anneal(target, data.validation, high=30, patience=2, seed=1)
    >>> cooled.best_temperature, cooled.weights, cooled.ensemble
    """
    schedule = Schedule(high, low, num, burn_in, rounds, score_every, patience)
    check_count("replicas", replicas, least=LEAST_REPLICAS)
    engine = Engine(target, temperature_path([high]), copies=replicas, **engine_options)
    annealer = Annealer(engine, schedule, make_score_fn(engine, validation), tuning)
    position = annealer.start(starting_weights(engine, start, minimiser))
    report = progress_fn or (lambda phase, done, total: None)
    records: list[Record] = []
    while not annealer.finished(position):
        state, on_device = annealer.round(position)
        record = jax.device_get(on_device)
        annealer.accept(position, state, record)
        records.append(record)
        report("cool", position.round, num * schedule.length)
    return _collect(annealer, position, records)


def make_score_fn(engine: Engine, validation: Examples | Callable[[Weights], Array]) -> ScoreFn:
    """Scores of all replicas on examples, or by a loss of one's own, which has no accuracy."""
    if isinstance(validation, Examples):
        if engine.target.network is None:
            raise ConfigError(
                "this target has no network: give a loss of its weights as validation, not examples"
            )
        return held_out_score_fn(engine, hold_out(engine.target.network, validation))
    if not callable(validation):
        raise ConfigError(
            f"validation must be Examples or a function of weights, got {type(validation).__name__}"
        )
    loss_fn = jax.jit(jax.vmap(validation))

    def score_fn(state: State) -> Score:
        losses = loss_fn(engine.weights_at(state, 0))
        return Score(losses, jnp.full_like(losses, jnp.nan))

    return score_fn


def held_out_score_fn(engine: Engine, held_out: Batch) -> ScoreFn:
    """Scores of all replicas on what `hold_out` prepared."""
    return lambda state: jax.tree.map(lambda leaf: leaf[:, 0], engine.score(state, held_out))


def stacked(parts: list[Weights]) -> Weights:
    """Weights of several draws, a leading axis of replicas each, as one list of networks."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _packed(name: str, trees: list[Weights]) -> dict[str, np.ndarray]:
    """Weights of several draws as arrays with an axis of draws; nothing for none."""
    leaves = zip(*(jax.tree.leaves(tree) for tree in trees), strict=True)
    return {f"{name}{i}": np.stack(parts) for i, parts in enumerate(leaves)}


def _unpacked(name: str, arrays: Mapping[str, np.ndarray], like: Weights) -> list[Weights]:
    if f"{name}0" not in arrays:
        return []
    leaves = [arrays[f"{name}{i}"] for i in range(len(jax.tree.leaves(like)))]
    structure = jax.tree.structure(like)
    return [
        jax.tree.unflatten(structure, [leaf[draw] for leaf in leaves])
        for draw in range(len(leaves[0]))
    ]


def _collect(annealer: Annealer, position: Position, records: list[Record]) -> Annealed:
    schedule, done = annealer.schedule, len(position.losses)
    _known(position.course)

    def counting(values: list[Any]) -> np.ndarray:
        """(temperatures, replicas, rounds that count)."""
        shaped = np.stack(values, axis=-1).reshape(annealer.engine.copies, done, schedule.length)
        return np.moveaxis(shaped, 1, 0)[..., schedule.burn_in :]

    return Annealed(
        temperatures=schedule.temperatures[:done],
        energy=counting([record.phi[:, 0, 0] for record in records]),
        acceptance=counting([record.info.acceptance[:, 0] for record in records]).mean(axis=(1, 2)),
        losses=position.losses,
        course=position.course,
        weights=position.chosen,
        weights_loss=position.chosen_loss,
        ensemble=stacked(position.ensemble),
    )


def _known(course: Course) -> int:
    if course.best is None:
        raise NumericsError(
            "no validation loss was a number at any temperature: check the validation data and the network's outputs"
        )
    return course.best


def _must_be_finite(record: Record, temperature: float) -> None:
    bad = np.flatnonzero(~np.isfinite(np.asarray(record.phi)[:, 0, 0]))
    if len(bad):
        raise NumericsError(
            f"the energy of replica {bad[0]} at T = {temperature:.4g} is not finite; nothing of this round is kept: "
            f"check the energy function and the data"
        )
