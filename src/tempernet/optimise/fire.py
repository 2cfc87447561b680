"""A step of FIRE, the fast inertial relaxation engine (Bitzek et al. 2006)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.kernels.base import select
from tempernet.kernels.integrator import kick
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights
from tempernet.optimise.search import Search

MIXING, MIXING_DECAY = 0.1, 0.99
GROWTH, SHRINK, DELAY = 1.1, 0.5, 5
LARGEST = 10.0
"""The largest time step, in units of the one at which the motion first turned uphill."""


def fire_step(search: Search, evaluate_fn: EvaluateFn, half_width: Weights | None) -> Search:
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
    grow = ~uphill & (downhill > DELAY)
    largest = jnp.where(uphill & jnp.isinf(largest), LARGEST * dt, largest)
    dt = jnp.where(uphill, dt * SHRINK, jnp.where(grow, jnp.minimum(dt * GROWTH, largest), dt))
    mixing = jnp.where(uphill, MIXING, jnp.where(grow, mixing * MIXING_DECAY, mixing))
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
    return Search(
        select(good, trial, point),
        jax.tree.map(lambda p: jnp.where(good, p, 0), momentum),
        jnp.where(good, dt, dt * SHRINK),
        largest,
        jnp.where(good, mixing, MIXING),
        jnp.where(uphill | ~good, 0, downhill + 1),
        gradients + 1,
    )


def _dot(a: Weights, b: Weights) -> Array:
    return jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(lambda x, y: jnp.sum(x * y), a, b))))


def _norm(a: Weights) -> Array:
    return jnp.sqrt(_dot(a, a))
