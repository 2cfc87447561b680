"""Population annealing (Hukushima & Iba 2003), for the starts of a ladder with slow transitions.

All replicas of a copy cool together from the hottest rung. Each step of the temperature, from beta
to beta', gives a replica the weight exp(-(beta' - beta) E), by which the population is drawn anew:
likely ones twice, unlikely ones not at all. Then all move for a few rounds. So networks of a kind
that is rare above a transition and common below it multiply on the way, where a ladder has to wait
until each replica has changed its kind. A few members of the population at every step are kept:
those next to the temperature of a rung are where it starts. Every second copy starts from the
coldest members at all of its rungs, and so is heated where the others were cooled: copies come from
both sides of a transition, and they meet only if replicas pass it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tempernet.errors import NumericsError
from tempernet.model.networks import Weights
from tempernet.paths.ladders import Barrier, interpolate_steps
from tempernet.paths.path import Path
from tempernet.tempering import tuning as rules
from tempernet.tempering.engine import COOLING, Engine
from tempernet.tempering.rounds import Record, Rungs, State
from tempernet.tempering.tuning import Tuning

SHARE = 0.7
"""The share of a population that a step of the temperature leaves effective.

The standard deviation of the log weights is then 0.6.
"""
KEPT = 2
"""Members of each copy's population that are kept at every temperature."""
FIRST_ROUNDS = 20
"""Rounds at the hottest temperature, which also find the step size."""
WaitFn = Callable[..., None]
"""Called with what a round gives, and returns when the devices are done."""


@dataclass
class Population:
    """The position of a population annealing: what its next step needs, and what it has kept."""

    state: State
    beta: float
    step_size: float
    betas: np.ndarray
    """1/T of all temperatures so far, (stages,)."""
    step_sizes: np.ndarray
    """Reduced step sizes, (stages,)."""
    spread: np.ndarray
    """Standard deviation of E within a copy: (stages,)."""
    kept: list[np.ndarray]
    """Leaves of the weights that were kept: (stages, copies, KEPT, ...)."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The position without the state, for a checkpoint."""
        named = {name: np.asarray(getattr(self, name)) for name in ("beta", "step_size", *_TABLES)}
        named["round"] = np.asarray(self.state.round)
        leaves = {f"kept{i}": leaf for i, leaf in enumerate(self.kept)}
        return {f"population_{name}": value for name, value in (named | leaves).items()}

    @classmethod
    def restored(cls, state: State, arrays: Mapping[str, np.ndarray]) -> Population:
        """Restore the position from a checkpoint."""
        own = {name.removeprefix("population_"): value for name, value in arrays.items()}
        leaves = [own[f"kept{i}"] for i in range(sum(name.startswith("kept") for name in own))]
        state = state._replace(round=jnp.int32(own["round"]))
        betas, step_sizes, spread = (own[name] for name in _TABLES)
        return cls(
            state, float(own["beta"]), float(own["step_size"]), betas, step_sizes, spread, leaves
        )


_TABLES = ("betas", "step_sizes", "spread")


class Cooling:
    """Cools the replicas of an engine from the hottest to the coldest rung of its path."""

    def __init__(self, engine: Engine, rounds: int, tuning: Tuning | None = None) -> None:
        self.engine, self.rounds, self.tuning = engine, rounds, tuning or Tuning()
        self.first, self.last = float(engine.path.beta.min()), float(engine.path.beta.max())

    def start(self, weights: Weights, wait_fn: WaitFn = lambda *results: None) -> Population:
        """Begin at the hottest rung."""
        state, nothing = self.engine.start(weights), np.empty(0)
        leaves = [
            np.empty((0, self.engine.copies, KEPT, *leaf.shape[1:]))
            for leaf in jax.tree.leaves(weights)
        ]
        begun = Population(
            state, self.first, self.engine.first_step, nothing, nothing, nothing, leaves
        )
        return self._moved(begun, state, self.first, FIRST_ROUNDS, wait_fn)

    def finished(self, population: Population) -> bool:
        """Whether it has arrived at the coldest rung."""
        return population.beta >= self.last

    def stage(self, population: Population, wait_fn: WaitFn = lambda *results: None) -> Population:
        """The next temperature: the population is resampled by its weights, then moved."""
        engine, state = self.engine, population.state
        energy = engine.energies(state)
        beta = next_beta(energy, population.beta, self.last)
        random = np.random.default_rng([engine.seed, COOLING, len(population.betas)])
        parents = np.stack(
            [resampled(-(beta - population.beta) * copy, random.uniform()) for copy in energy]
        )
        return self._moved(population, engine.descended(state, parents), beta, self.rounds, wait_fn)

    def _moved(
        self, before: Population, state: State, beta: float, rounds: int, wait_fn: WaitFn
    ) -> Population:
        """Move for a few rounds at one temperature; the step size follows the acceptance."""
        engine = self.engine
        # The right dt = eps sqrt(beta) of a quadratic energy is the same at every T; where walls
        # limit it, eps is.
        step = (
            before.step_size * (before.beta / beta) ** 0.25 if before.beta > 0 else before.step_size
        )
        search = rules.start_search(
            np.array([step]), engine.largest_step, near=len(before.betas) > 0
        )
        for _ in range(rounds):
            state, record = engine.round(
                state, self._rungs(beta, math.exp(search.log_step[0])), stream=COOLING
            )
            wait_fn(state, record)
            search = rules.search_step(
                search, _acceptance(record, beta), self.tuning, engine.largest_step
            )
        step = math.exp(search.log_step[0])
        energy = engine.energies(state)
        random = np.random.default_rng([engine.seed, COOLING, len(before.betas), 1])
        picked = np.stack(
            [np.resize(random.permutation(engine.num_rungs), KEPT) for _ in range(engine.copies)]
        )
        rows = picked + engine.num_rungs * np.arange(engine.copies)[:, None]
        kept = [np.asarray(leaf)[rows] for leaf in jax.tree.leaves(engine.weights(state))]
        return Population(
            state,
            beta,
            step,
            np.append(before.betas, beta),
            np.append(before.step_sizes, step),
            np.append(before.spread, np.sqrt(energy.var(axis=1).mean())),
            [
                np.concatenate([leaf, new[None]])
                for leaf, new in zip(before.kept, kept, strict=True)
            ],
        )

    def _rungs(self, beta: float, step: float) -> Rungs:
        """All rungs at one temperature, none of them drawn exactly."""
        rungs = self.engine.rungs(step)
        return rungs._replace(
            coefficients=jnp.full_like(rungs.coefficients, beta),
            num_steps=jnp.full_like(rungs.num_steps, self.engine.dynamics.num_steps),
            exact=jnp.zeros_like(rungs.exact),
        )


def _acceptance(record: Record, beta: float) -> np.ndarray:
    """Mean acceptance of all replicas, (1,)."""
    if not np.isfinite(np.asarray(record.phi)).all():
        raise NumericsError(
            f"an energy is not finite while replicas cool, at 1/T = {beta:.4g}: "
            "check the energy function and the data"
        )
    acceptance = np.asarray(record.info.acceptance, np.float64)
    return np.asarray([acceptance.mean()])


def next_beta(energy: np.ndarray, beta: float, last: float, share: float = SHARE) -> float:
    """The next inverse temperature beta', as far from beta as the population allows.

    Weights exp(-(beta' - beta) E) leave an effective share of the R members of a copy, (sum w)^2 /
    (R sum w^2), which is 1 where all weights are equal. It is at least `share` in every copy.

    Args:
        energy: E of the members, (copies, R).
        beta: where the population is.
        last: the largest beta' that is wanted.
        share: the smallest effective share.
    """

    def effective(further: float) -> float:
        weights = np.exp(-(further - beta) * (energy - energy.min(axis=1, keepdims=True)))
        return float((weights.mean(axis=1) ** 2 / np.square(weights).mean(axis=1)).min())

    if effective(last) >= share:
        return last
    near, far = beta, last
    while far - near > 1e-6 * (far - beta):
        middle = (near + far) / 2
        near, far = (middle, far) if effective(middle) >= share else (near, middle)
    return near


def resampled(log_weights: np.ndarray, uniform: float) -> np.ndarray:
    """The parents of the next population, by systematic resampling: (R,).

    A member of weight w has floor(R w / sum w) or one more descendants, R w / sum w on average.

    Args:
        log_weights: of the R members, (R,).
        uniform: a number in [0, 1), which decides for all of them.
    """
    weights = np.exp(log_weights - log_weights.max())
    edges = np.cumsum(weights) / weights.sum()
    number = len(weights)
    return np.minimum(
        np.searchsorted(edges, (uniform + np.arange(number)) / number, side="right"), number - 1
    )


def barrier(population: Population, path: Path) -> Barrier:
    """The barrier between the temperatures of a population, from the spread of their energies.

    Log weights between neighbours are normal with width |beta' - beta| times that of E, and the
    barrier is that over sqrt(pi) (see `ladders.measure_barrier`).
    """
    order, passed = _passed(population, path)
    spread = population.spread[order]
    steps = np.abs(np.diff(passed.beta)) * (spread[1:] + spread[:-1]) / 2 / math.sqrt(math.pi)
    return Barrier(passed, steps)


def step_sizes_at(population: Population, path: Path) -> np.ndarray:
    """Reduced step sizes for the rungs of a path, from those that the population had."""
    order, passed = _passed(population, path)
    return interpolate_steps(passed, population.step_sizes[order], path)


def _passed(population: Population, path: Path) -> tuple[np.ndarray, Path]:
    """The temperatures of a population as a path, and which of them each rung of it is."""
    # beta = 0 is a temperature as good as any other.
    with np.errstate(divide="ignore"):
        values = path.value_fn(population.betas)
    order = np.argsort(values)
    return order, path.moved(values[order])


def weights_at(population: Population, path: Path, like: Weights) -> Weights:
    """Weights for all rungs of a path, leading axis copies x K, from the nearest temperatures kept.

    In every second copy they are those of the coldest temperature, at which the population now is.

    Args:
        population: at the end of its cooling.
        path: whose rungs are to start.
        like: the shapes of one replica's weights.
    """
    least = path.beta[path.beta > 0].min() / 2
    stages, rungs = (np.log(np.maximum(betas, least)) for betas in (population.betas, path.beta))
    nearest = np.abs(rungs[:, None] - stages).argmin(axis=1)
    # Rungs that share a temperature take turns.
    turn = np.array([np.sum(nearest[:k] == stage) % KEPT for k, stage in enumerate(nearest)])

    def start(kept: np.ndarray, coldest: jax.Array) -> np.ndarray:
        weights = np.concatenate(np.moveaxis(kept[nearest, :, turn], 1, 0))
        heated = np.repeat(np.arange(kept.shape[1]) % 2 == 1, path.num_rungs)
        weights[heated] = np.asarray(coldest)[: len(weights)][heated]
        return weights

    leaves = map(start, population.kept, jax.tree.leaves(population.state.kernel.point.weights))
    return jax.tree.unflatten(jax.tree.structure(like), list(leaves))
