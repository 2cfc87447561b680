"""Minimisation of E from one start: Alg. 3 as printed, and FIRE. The engine runs many starts at
once.

Each start stops by itself at E <= `tolerance` (0 by default: in float32 a network that is certain
of every training image has an energy of exactly 0), and its gradient evaluations are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.errors import ConfigError, check_count
from tempernet.kernels.base import Point, select
from tempernet.kernels.integrator import kick
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights


@dataclass(frozen=True)
class Minimiser:
    """`method` "fire" or "alg3", the initial time step, the budget of gradients and the energy to
    stop at.
    """

    method: Literal["fire", "alg3"] = "fire"
    time_step: float = 0.01
    max_gradients: int = 1000
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in ("fire", "alg3"):
            raise ConfigError(f'method must be "fire" or "alg3", got {self.method!r}')
        if not 0 < self.time_step < math.inf:
            raise ConfigError(f"time_step must be positive and finite, got {self.time_step}")
        check_count("max_gradients", self.max_gradients)
        if math.isnan(self.tolerance):
            raise ConfigError("tolerance must be a number, got nan")

    def run(
        self, start: Weights, evaluate_fn: EvaluateFn, half_width: Weights | None = None
    ) -> Minimum:
        """Minimise from `start`. FIRE stays within the walls; Alg. 3 as printed does not know them."""
        point = evaluate_fn(start)
        step_fn = _alg3_step if self.method == "alg3" else _fire_step
        zero = jax.tree.map(jnp.zeros_like, start)
        time_step = jnp.full_like(point.energy, self.time_step)
        initial = _Search(
            point,
            zero,
            time_step,
            jnp.full_like(time_step, jnp.inf),
            jnp.full_like(time_step, FIRE_MIXING),
            jnp.int32(0),
            jnp.int32(1),
        )

        def unfinished(search: _Search) -> Array:
            return (search.point.energy > self.tolerance) & (search.gradients < self.max_gradients)

        last = jax.lax.while_loop(
            unfinished, lambda search: step_fn(search, evaluate_fn, half_width), initial
        )
        return Minimum(last.point, last.gradients, last.point.energy <= self.tolerance)


class Minimum(NamedTuple):
    """Where a start ended, the gradients it took, and whether it reached the tolerance."""

    point: Point
    gradients: Array
    reached: Array


class _Search(NamedTuple):
    point: Point
    momentum: Weights
    time_step: Array
    largest: Array
    mixing: Array
    downhill: Array
    gradients: Array


def _alg3_step(search: _Search, evaluate_fn: EvaluateFn, half_width: Weights | None) -> _Search:
    """Alg. 3: a Verlet step of mass 1; dt + 0.05 after a step down, else go back, stop, and dt *
    0.95.
    """
    del half_width
    dt = search.time_step
    momentum = kick(search.momentum, search.point.gradient, 0.5 * dt)
    trial = evaluate_fn(jax.tree.map(lambda w, p: w + dt * p, search.point.weights, momentum))
    momentum = kick(momentum, trial.gradient, 0.5 * dt)
    # A comparison with NaN is false, so a broken step counts as upwards; so does -inf.
    down = (trial.energy < search.point.energy) & (trial.energy > -jnp.inf)
    return search._replace(
        point=select(down, trial, search.point),
        momentum=jax.tree.map(lambda p: jnp.where(down, p, 0), momentum),
        time_step=jnp.where(down, dt + 0.05, dt * 0.95),
        gradients=search.gradients + 1,
    )


FIRE_MIXING, FIRE_MIXING_DECAY = 0.1, 0.99
FIRE_GROWTH, FIRE_SHRINK, FIRE_DELAY, FIRE_LARGEST = 1.1, 0.5, 5, 10.0


def _fire_step(search: _Search, evaluate_fn: EvaluateFn, half_width: Weights | None) -> _Search:
    """FIRE (Bitzek et al. 2006) with its published constants, made independent of the scale of E.

    The published method must be told the largest time step, ten times a stable one. Here dt grows
    freely until the motion first turns uphill, which tells the scale, and ten times that dt is the
    largest from then on. A step that climbs by more than |E| is taken back, the momentum dropped
    and dt halved. So the first dt may be wrong by orders of magnitude either way.
    """
    point, momentum, dt, largest, mixing, downhill, gradients = search
    speed, steepness = _norm(momentum), _norm(point.gradient)
    uphill = _dot(momentum, point.gradient) > 0
    # Steer the momentum towards the force: p <- (1 - a) p + a |p| F/|F|; uphill, stop.
    steer = jnp.where(steepness > 0, mixing * speed / steepness, 0)
    momentum = jax.tree.map(
        lambda p, g: jnp.where(uphill, 0, (1 - mixing) * p - steer * g), momentum, point.gradient
    )
    grow = ~uphill & (downhill > FIRE_DELAY)
    largest = jnp.where(uphill & jnp.isinf(largest), FIRE_LARGEST * dt, largest)
    dt = jnp.where(
        uphill, dt * FIRE_SHRINK, jnp.where(grow, jnp.minimum(dt * FIRE_GROWTH, largest), dt)
    )
    mixing = jnp.where(uphill, FIRE_MIXING, jnp.where(grow, mixing * FIRE_MIXING_DECAY, mixing))
    momentum = kick(momentum, point.gradient, dt)
    weights = jax.tree.map(lambda w, p: w + dt * p, point.weights, momentum)
    if half_width is not None:
        # A weight that runs into a wall stops there, or its lost momentum would go on counting as
        # downhill.
        momentum = jax.tree.map(
            lambda w, p, h: jnp.where(jnp.abs(w) > h, 0, p), weights, momentum, half_width
        )
        weights = jax.tree.map(lambda w, h: jnp.clip(w, -h, h), weights, half_width)
    trial = evaluate_fn(weights)
    good = (trial.energy - point.energy <= jnp.abs(point.energy)) & (trial.energy > -jnp.inf)
    return _Search(
        select(good, trial, point),
        jax.tree.map(lambda p: jnp.where(good, p, 0), momentum),
        jnp.where(good, dt, dt * FIRE_SHRINK),
        largest,
        jnp.where(good, mixing, FIRE_MIXING),
        jnp.where(uphill | ~good, 0, downhill + 1),
        gradients + 1,
    )


def _dot(a: Weights, b: Weights) -> Array:
    return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b))))


def _norm(a: Weights) -> Array:
    return jnp.sqrt(_dot(a, a))
