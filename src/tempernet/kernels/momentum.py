"""Momenta: p_i ~ N(0, m_i) at every rung, in reduced units."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.model.networks import Weights, cut


def draw_momentum(key: Array, weights: Weights, masses: Weights) -> Weights:
    """p_i ~ N(0, m_i): the paper's N(0, m_i T) in reduced units."""
    leaves = jax.tree.leaves(weights)
    normal = jax.random.normal(key, (sum(leaf.size for leaf in leaves),), jnp.result_type(*leaves))
    return jax.tree.map(lambda p, m: m**0.5 * p, cut(normal, weights), masses)


def refreshed(momentum: Weights, fresh: Weights, persistence: float) -> Weights:
    """a p + sqrt(1 - a^2) p' (Horowitz 1991): N(0, m) again for independent p, p' ~ N(0, m)."""
    share = math.sqrt(1 - persistence**2)
    return jax.tree.map(lambda p, new: persistence * p + share * new, momentum, fresh)


def flipped(momentum: Weights) -> Weights:
    """-p."""
    return jax.tree.map(jnp.negative, momentum)


def kinetic_change(before: Weights, after: Weights, masses: Weights) -> Array:
    """Sum of (p'^2 - p^2) / 2m.

    Differences come first: both sums are near d/2 and their difference near 1.
    """
    changes = jax.tree.map(
        lambda p, q, m: 0.5 * jnp.sum((q - p) * (q + p) / m), before, after, masses
    )
    return jnp.sum(jnp.stack(jax.tree.leaves(changes)))
