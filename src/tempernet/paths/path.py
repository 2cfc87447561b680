"""A path of rungs: pi_k(w) ∝ exp(-sum_m c[k, m] phi_m(w)) prior(w), a table c and energy terms phi.

A path holds the values of its parameter at the rungs, the table that follows from them, and says
how the terms come from the weights and their energy E. A rung of all zeros is the prior itself. The
prior's own energy is added by the sampler and never multiplied by c. A path may have an end whose
density can be drawn from exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from jax import Array
from numpy.typing import NDArray

from tempernet.errors import ConfigError, shown
from tempernet.model.networks import Weights

Values = Sequence[float] | NDArray[np.float64]
"""Values of a path's parameter at its rungs, (K,)."""
DrawFn = Callable[[Array], Weights]
"""Key -> one exact draw of the weights."""


class TermsFn(Protocol):
    """Weights of one replica and its E -> its energy terms phi, (M,).

    `own` is what the copy of this replica has of its own, where the path says that copies have.
    """

    def __call__(self, weights: Weights, energy: Array, own: Weights | None = None, /) -> Array:
        """phi, (M,)."""


@dataclass(frozen=True, eq=False)
class Path:
    """Rungs along one parameter, and the table of coefficients that they give."""

    parameter: str
    """What the parameter is called: "temperature", "beta" or "lambda"."""
    values: NDArray[np.float64]
    """The parameter at each rung, (K,)."""
    coefficients_fn: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """Values (K,) -> c, (K, M)."""
    value_fn: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """beta (K,), the coefficient of E, -> values (K,)."""
    terms_fn: TermsFn
    terms: tuple[str, ...]
    """What the M energy terms are called in records."""
    exact_at: float
    """The value at which the density can be drawn from; NaN if there is none."""
    draw_fn: DrawFn | None = None
    """Draws from that density; None draws from the prior."""
    of_copies: Weights | None = None
    """What the terms of each copy have of their own: a pytree with a leading axis of copies."""
    stays: float | None = None
    """A value between the ends that keeps a rung wherever the others move to."""

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """c, (K, M)."""
        return self.coefficients_fn(self.values)

    @property
    def beta(self) -> NDArray[np.float64]:
        """The coefficient of the energy E, which every path has: (K,)."""
        energy: NDArray[np.float64] = self.coefficients[:, 0]
        return energy

    @property
    def num_rungs(self) -> int:
        """K, the number of rungs."""
        return len(self.values)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which rungs can be drawn from, (K,)."""
        return np.equal(self.values, self.exact_at)

    def moved(self, values: Values) -> Path:
        """The same path with its rungs at other values (K,)."""
        return replace(self, values=np.asarray(values, np.float64))

    def time_steps(self, step_sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The paper's dt = eps / sqrt(T) of reduced step sizes (K,); T = 1 without temperatures."""
        return step_sizes / np.sqrt(self.values) if self.parameter == "temperature" else step_sizes


def numbers(name: str, values: object) -> NDArray[np.float64]:
    """The values as an array of floats; a ConfigError that names them if they are none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} must be numbers, got {shown(values)}") from error


def increasing(values: NDArray[np.float64]) -> bool:
    """One axis, not empty, strictly increasing and without NaN."""
    if values.ndim != 1 or values.size == 0 or np.isnan(values[0]):
        return False
    # Comparisons with NaN are false.
    return bool(np.all(values[1:] > values[:-1]))


def listed(values: NDArray[np.float64]) -> str:
    """Values in a message, the middle of many left out."""
    return np.array2string(values, threshold=8, precision=6, separator=", ")


def energy_alone(weights: Weights, energy: Array, own: Weights | None = None) -> Array:
    """The terms of a path that has one, E: (1,)."""
    del weights, own
    return energy[None]
