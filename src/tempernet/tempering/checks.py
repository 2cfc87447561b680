"""What must hold of replicas that start or are tuned: finite numbers, and that they move."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from tempernet.errors import ConfigError, NumericsError
from tempernet.kernels.base import Point
from tempernet.model.networks import Weights
from tempernet.tempering.programs import Programs


def check_weights(programs: Programs, weights: Weights) -> None:
    """Refuse starts (leading axis R) of a wrong number or outside the prior's box."""
    replicas = programs.layout.num_replicas
    leading = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(weights)}
    if leading != {(replicas,)}:
        raise ConfigError(
            f"a start needs weights of {replicas} replicas on the leading axis, got {leading}"
        )
    _must_hold(
        replicas,
        jax.jit(jax.vmap(programs.target.prior.contains))(weights),
        ConfigError,
        "lie outside the prior's box; widen the box or start from other weights",
    )


def check_points(programs: Programs, point: Point) -> None:
    """Refuse starts (leading axis padded) whose energy, potential or gradient is not finite."""
    replicas = programs.layout.num_replicas
    _must_hold(
        replicas,
        np.isfinite(point.energy),
        NumericsError,
        "have an energy that is not finite; check the data and the energy function at these "
        "weights",
    )
    _must_hold(
        replicas,
        np.isfinite(jax.jit(programs.potentials)(point)),
        NumericsError,
        "have an energy that divided by the temperature is too large for its type; scale the "
        "energy down",
    )
    _must_hold(
        replicas,
        _all_finite(point.gradient),
        NumericsError,
        "have a gradient that is not finite, so they cannot move; check the energy function at "
        "these weights",
    )


def check_moved(
    moved: NDArray[np.bool_], fates: NDArray[np.int64], walks: NDArray[np.bool_], *, unsettled: bool
) -> None:
    """Refuse a rung whose replicas all stood still while steps became smaller and smaller.

    They accepted nothing, or only steps too small to change a weight: the energy next to them is no
    number, or its gradient is wrong.

    Args:
        moved: whether any weight changed, (copies, K).
        fates: trajectories that were accepted, and that were not finite, (2, K).
        walks: rungs that are not drawn from, (K,).
        unsettled: whether the search for step sizes was given up.
    """
    accepted, nonfinite = fates
    frozen = ~moved.any(axis=0)
    bad = np.flatnonzero(frozen & walks & ((accepted > 0) | unsettled))
    if len(bad):
        raise NumericsError(
            f"no replica of {len(bad)} of {len(walks)} rungs (rung {bad[0]} first) could be "
            f"moved, however small the step; {nonfinite[bad[0]]} trajectories there ended in an "
            f"energy that is not finite: check the energy function and its gradient"
        )


@jax.jit
def differ(before: Weights, after: Weights) -> Array:
    """Whether any weight of each replica (leading axis) differs."""
    changed = jax.tree.map(lambda a, b: (a != b).reshape(len(a), -1).any(axis=1), before, after)
    return jnp.stack(jax.tree.leaves(changed)).any(axis=0)


@jax.jit
def _all_finite(tree: Weights) -> Array:
    """Whether all numbers of each replica (leading axis) are finite."""
    leaves = [
        jnp.isfinite(leaf).reshape(len(leaf), -1).all(axis=1) for leaf in jax.tree.leaves(tree)
    ]
    return jnp.stack(leaves).all(axis=0)


def _must_hold(replicas: int, good: ArrayLike, error: type[Exception], complaint: str) -> None:
    bad = np.flatnonzero(~np.asarray(good)[:replicas])
    if len(bad):
        raise error(f"{len(bad)} of {replicas} starts (replica {bad[0]} first) {complaint}")
