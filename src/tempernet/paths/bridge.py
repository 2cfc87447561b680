"""The bridge from the posterior to a quadratic whose integral is known (Sec. 4, Eq. 21)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.errors import ConfigError
from tempernet.model.networks import Weights
from tempernet.paths.path import DrawFn, Path, Values, increasing, listed, numbers


class Centre(NamedTuple):
    """What a bridge leads to: w0, E(w0), and the diagonal k, one value for each weight."""

    weights: Weights
    energy: Array | np.ndarray | float
    stiffness: Weights


def bridge_path(
    lambdas: Values,
    centre: Centre,
    draw_fn: DrawFn | None = None,
    *,
    of_copies: bool = False,
) -> Path:
    """Eq. 21: terms E - E(w0) and (w-w0)' k (w-w0) / 2, c = (1-lambda, lambda).

    J(w0), the constant that Eq. 21 carries along, shifts every rung alike and is left to the
    estimator.

    Args:
        lambdas: (K,), increasing, from 0 (the posterior) to at most 1 (the quadratic).
        centre: w0, E(w0) and k of one replica.
        draw_fn: draws from the quadratic's own density, lambda = 1; None if nothing does.
        of_copies: the centre's arrays have a leading axis, each copy has its own.
    """
    values = numbers("lambdas", lambdas)
    if not increasing(values):
        raise ConfigError(f"lambdas must be increasing, got {listed(values)}")
    if not (values[0] >= 0 and values[-1] <= 1):
        raise ConfigError(f"lambdas must lie in 0..1, got {listed(values)}")

    def terms_fn(weights: Weights, energy: Array, own: Centre | None = None) -> Array:
        at = own if own is not None else centre
        squares = jax.tree.map(
            lambda w, w0, k: 0.5 * jnp.sum(k * jnp.square(w - w0)),
            weights,
            at.weights,
            at.stiffness,
        )
        quadratic = sum(jax.tree.leaves(squares), start=jnp.zeros_like(energy))
        return jnp.stack([energy - at.energy, quadratic])

    return Path(
        "lambda",
        values,
        coefficients_fn=lambda lambdas: np.stack([1 - lambdas, lambdas], axis=1),
        value_fn=lambda beta: 1 - beta,
        terms_fn=terms_fn,
        terms=("energy", "quadratic"),
        exact_at=np.nan if draw_fn is None else 1.0,
        draw_fn=draw_fn,
        of_copies=centre if of_copies else None,
    )
