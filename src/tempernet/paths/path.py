"""Paths of rungs: pi_k(w) ∝ exp(-sum_m c[k, m] phi_m(w)) prior(w), a table c and a few energy terms
phi.

A path holds the values of its parameter at the rungs, the table that follows from them, and says
how the terms come from the weights and their energy E. A rung of all zeros is the prior itself. The
prior's own energy is added by the sampler and never multiplied by c. A path may have an end whose
density can be drawn from exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.errors import ConfigError
from tempernet.model.networks import Weights

TermsFn = Callable[..., Array]
"""(weights of one replica, its E, optionally what its copy has of its own) -> its energy terms phi,
shape (M,).
"""


DrawFn = Callable[[Array], Weights]
"""Key -> one exact draw of the weights."""


@dataclass(frozen=True, eq=False)
class Path:
    """Rungs along one parameter: `values` (K,) named `parameter`, and the table `coefficients` (K,
    M) they give.

    At the value `exact_at`, if the path has it, the density can be drawn from: by `draw_fn`, or
    from the prior if that is None. `of_copies` is what the terms of each copy have of their own, a
    pytree with a leading axis of copies.
    """

    parameter: str
    values: np.ndarray
    coefficients_fn: Callable[[np.ndarray], np.ndarray]
    """Values -> c."""
    value_fn: Callable[[np.ndarray], np.ndarray]
    """beta, the coefficient of E, -> values."""
    terms_fn: TermsFn
    terms: tuple[str, ...]
    """What the energy terms are called in records."""
    exact_at: float
    draw_fn: DrawFn | None = None
    of_copies: Any = None
    stays: float | None = None
    """A value between the ends that keeps a rung wherever the others move to."""

    @property
    def coefficients(self) -> np.ndarray:
        """c, (K, M)."""
        return self.coefficients_fn(self.values)

    @property
    def beta(self) -> np.ndarray:
        """The coefficient of the energy E, which every path has: (K,)."""
        return self.coefficients[:, 0]

    @property
    def num_rungs(self) -> int:
        """K, the number of rungs."""
        return len(self.values)

    @property
    def exact(self) -> np.ndarray:
        """Which rungs can be drawn from, (K,)."""
        return self.values == self.exact_at

    def moved(self, values: np.ndarray) -> Path:
        """The same path with its rungs elsewhere."""
        return replace(self, values=np.asarray(values, np.float64))

    def time_steps(self, step_sizes: np.ndarray) -> np.ndarray:
        """The paper's dt = eps / sqrt(T) of reduced step sizes (K,); a path without temperatures
        has T = 1.
        """
        return step_sizes / np.sqrt(self.values) if self.parameter == "temperature" else step_sizes


def temperature_path(
    temperatures: Sequence[float] | np.ndarray, stays: float | None = None
) -> Path:
    """Eq. 10 on a ladder: one term E, c = 1/T. Temperatures increase; inf is the prior; one of them
    may stay.
    """
    values = numbers("temperatures", temperatures)
    if not _increasing(values) or not np.all(values > 0):
        raise ConfigError(
            f"temperatures must be increasing and positive (inf is allowed last), got {_listed(values)}"
        )
    return Path(
        "temperature",
        values,
        coefficients_fn=lambda temperatures: 1 / temperatures[:, None],
        value_fn=lambda beta: 1 / beta,
        terms_fn=_energy_alone,
        terms=("energy",),
        exact_at=np.inf,
        stays=stays,
    )


def geometric_temperatures(low: float, high: float, num: int) -> np.ndarray:
    """`num` temperatures in geometric progression from `low` to `high` (Sec. 3.3)."""
    if not (0 < low < high < np.inf) or num < 2:
        raise ConfigError(
            f"a geometric ladder needs 0 < low < high < inf and at least 2 rungs, got {low}, {high}, {num}"
        )
    return np.geomspace(low, high, num)


def beta_path(betas: Sequence[float] | np.ndarray) -> Path:
    """From the prior (beta = 0) towards the posterior (beta = 1): one term E, c = beta."""
    values = numbers("betas", betas)
    if not _increasing(values) or not np.all(values >= 0):
        raise ConfigError(f"betas must be increasing and not negative, got {_listed(values)}")
    if not np.all(np.isfinite(values)):
        raise ConfigError(f"betas must be finite, got {_listed(values)}")
    return Path(
        "beta",
        values,
        coefficients_fn=lambda betas: betas[:, None],
        value_fn=lambda beta: beta,
        terms_fn=_energy_alone,
        terms=("energy",),
        exact_at=0.0,
    )


class Centre(NamedTuple):
    """What a bridge leads to: w0, E(w0), and the diagonal k, one value for each weight."""

    weights: Weights
    energy: Any
    stiffness: Weights


def bridge_path(
    lambdas: Sequence[float] | np.ndarray,
    centre: Centre,
    draw_fn: DrawFn | None = None,
    *,
    of_copies: bool = False,
) -> Path:
    """From the posterior to a quadratic (Eq. 21): terms E - E(w0) and (w-w0)' k (w-w0) / 2, c =
    (1-lambda, lambda).

    J(w0), the constant that Eq. 21 carries along, shifts every rung alike and is left to the
    estimator. `draw_fn` draws from the quadratic's own density, lambda = 1. With `of_copies` the
    centre's arrays have a leading axis: each copy has its own.
    """
    values = numbers("lambdas", lambdas)
    if not _increasing(values):
        raise ConfigError(f"lambdas must be increasing, got {_listed(values)}")
    if not (values[0] >= 0 and values[-1] <= 1):
        raise ConfigError(f"lambdas must lie in 0..1, got {_listed(values)}")

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


def numbers(name: str, values: Any) -> np.ndarray:
    """The values as an array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} must be numbers, got {values!r}") from error


def _increasing(values: np.ndarray) -> bool:
    """One axis, not empty, strictly increasing and without NaN: comparisons with NaN are false."""
    return (
        values.ndim == 1
        and values.size > 0
        and not np.isnan(values[0])
        and bool(np.all(values[1:] > values[:-1]))
    )


def _energy_alone(weights: Weights, energy: Array, own: None = None) -> Array:
    del weights, own
    return energy[None]


def _listed(values: np.ndarray) -> str:
    return np.array2string(values, threshold=8, precision=6, separator=", ")
