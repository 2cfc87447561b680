"""Velocity Verlet in reduced units: momenta N(0, m), step size eps, one gradient a step.

The reduced potential is u = sum_m c_m phi_m(w) + prior energy, that is E/T for a temperature. With
the paper's momenta p' = sqrt(T) p and time step dt = eps / sqrt(T) the motion in w is the same, and
the prior's rung c = 0 needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.kernels.base import Point
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights

SlopeFn = Callable[[Point], Weights]
"""Point -> gradient of the reduced potential at a rung, from what the point already holds."""


def fold(position: Array, momentum: Array, half_width: Array) -> tuple[Array, Array]:
    """Reflect a free flight at the walls ±h, as often as it meets them.

    With n = floor((w + h) / 2h) the number of walls crossed, w -> (-1)^n (w - 2 h n) and p ->
    (-1)^n p: the unfolded flight is mapped isometrically, so the drift stays reversible and
    volume-preserving.
    """
    crossed = jnp.floor((position + half_width) * (0.5 / half_width))
    sign = 1 - 2 * (crossed - 2 * jnp.floor(0.5 * crossed))
    return sign * (position - 2 * half_width * crossed), sign * momentum


def drift(
    weights: Weights,
    momentum: Weights,
    step_size: Array,
    masses: Weights,
    half_width: Weights | None,
) -> tuple[Weights, Weights]:
    """w += eps p / m, folded at the walls if there are any."""
    moved = jax.tree.map(lambda w, p, m: w + step_size * (p * (1 / m)), weights, momentum, masses)
    if half_width is None:
        return moved, momentum
    folded = jax.tree.map(fold, moved, momentum, half_width)
    pair = jax.tree.structure((0, 0))
    position, reflected = jax.tree.transpose(jax.tree.structure(moved), pair, folded)
    return position, reflected


def kick(momentum: Weights, slope: Weights, step_size: Array) -> Weights:
    """p -= eps grad u."""
    return jax.tree.map(lambda p, s: p - step_size * s, momentum, slope)


def velocity_verlet(
    point: Point,
    momentum: Weights,
    step_size: Array,
    num_steps: int | Array,
    *,
    evaluate_fn: EvaluateFn,
    slope_fn: SlopeFn,
    masses: Weights,
    half_width: Weights | None = None,
    longest: Array | None = None,
) -> tuple[Point, Weights]:
    """`num_steps` of half-kick, drift, force, half-kick, from a point whose gradient is known.

    The half-kicks of neighbouring steps use the same force and are done as one, after the drift:
    the last step's is then half a kick too long, which is given back. In this order a step reads no
    gradient but the one it has just worked out, and the compiler keeps no copy of the old one.

    Replicas with different `num_steps` can share a loop of `longest` steps: one that has made its
    own stands still, by steps of size 0, while the others go on.
    """
    momentum = kick(momentum, slope_fn(point), 0.5 * step_size)

    def step(done: Array, phase: tuple[Point, Weights]) -> tuple[Point, Weights]:
        point, momentum = phase
        size = step_size if longest is None else jnp.where(done < num_steps, step_size, 0)
        weights, momentum = drift(point.weights, momentum, size, masses, half_width)
        point = evaluate_fn(weights)
        return point, kick(momentum, slope_fn(point), size)

    point, momentum = jax.lax.fori_loop(
        0, num_steps if longest is None else longest, step, (point, momentum)
    )
    return point, kick(momentum, slope_fn(point), -0.5 * step_size)
