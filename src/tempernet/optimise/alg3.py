"""A step of the paper's Alg. 3, as printed."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tempernet.kernels.base import select
from tempernet.kernels.integrator import kick
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights
from tempernet.optimise.search import Search

GROWTH, SHRINK = 0.05, 0.95


def alg3_step(search: Search, evaluate_fn: EvaluateFn, half_width: Weights | None) -> Search:
    """Alg. 3: a Verlet step of mass 1; dt + 0.05 after a step down, else back, stop, dt * 0.95.

    The paper's algorithm knows no walls: `half_width` is not used.
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
        time_step=jnp.where(down, dt + GROWTH, dt * SHRINK),
        gradients=search.gradients + 1,
    )
