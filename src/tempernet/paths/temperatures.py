"""Paths with one term, the energy: ladders of temperatures, and beta from the prior up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempernet.errors import ConfigError
from tempernet.paths.path import Path, Values, energy_alone, increasing, listed, numbers


def temperature_path(temperatures: Values, stays: float | None = None) -> Path:
    """Eq. 10 on a ladder of temperatures: one term E, c = 1/T.

    Args:
        temperatures: (K,), positive and increasing; inf, the prior itself, is allowed last.
        stays: a temperature of the ladder that keeps a rung wherever the others move to.
    """
    values = numbers("temperatures", temperatures)
    if not increasing(values) or not np.all(values > 0):
        raise ConfigError(
            f"temperatures must be increasing and positive (inf is allowed last), "
            f"got {listed(values)}"
        )
    return Path(
        "temperature",
        values,
        coefficients_fn=lambda temperatures: 1 / temperatures[:, None],
        value_fn=lambda beta: 1 / beta,
        terms_fn=energy_alone,
        terms=("energy",),
        exact_at=np.inf,
        stays=stays,
    )


def geometric_temperatures(low: float, high: float, num: int) -> NDArray[np.float64]:
    """`num` temperatures in geometric progression from `low` to `high` (Sec. 3.3), (num,)."""
    if not (0 < low < high < np.inf) or num < 2:
        raise ConfigError(
            f"a geometric ladder needs 0 < low < high < inf and at least 2 rungs, "
            f"got {low}, {high}, {num}"
        )
    return np.geomspace(low, high, num)


def beta_path(betas: Values) -> Path:
    """From the prior (beta = 0) towards the posterior (beta = 1): one term E, c = beta.

    Args:
        betas: (K,), increasing, finite and not negative.
    """
    values = numbers("betas", betas)
    if not increasing(values) or not np.all(values >= 0):
        raise ConfigError(f"betas must be increasing and not negative, got {listed(values)}")
    if not np.all(np.isfinite(values)):
        raise ConfigError(f"betas must be finite, got {listed(values)}")
    return Path(
        "beta",
        values,
        coefficients_fn=lambda betas: betas[:, None],
        value_fn=lambda beta: beta,
        terms_fn=energy_alone,
        terms=("energy",),
        exact_at=0.0,
    )
