"""The networks that a run has kept, at one of its temperatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tempernet.errors import ConfigError, StoreError
from tempernet.results.summary import nearest

BEST = "best"
NEAR = 1.02
"""A temperature may lie outside of those kept by this factor: it was read off, and rounded."""


class KeptAt(NamedTuple):
    """Networks kept at a temperature; 0 if they were optimised."""

    leaves: dict[str, np.ndarray]
    """Leaves of their weights by name, leading axis networks."""
    temperature: float


def kept_at(
    kept: Mapping[str, np.ndarray], wanted: float | str, best: float | None, name: str
) -> KeptAt:
    """The networks kept at a temperature.

    Args:
        kept: arrays (rows, copies, kept temperatures, ...) by name.
        wanted: "best", or a number, for which the nearest temperature is taken.
        best: the best temperature; None if there is none.
        name: what an error message calls the run.
    """
    if not kept or not len(kept["round"]):
        raise StoreError(f"{name} has kept no weights yet; go on with: tempernet resume {name}")
    temperatures = kept["temperature"][-1]
    rung = _rung(temperatures, wanted, best, name)
    leaves = {
        key: array[:, :, rung].reshape(-1, *array.shape[3:])
        for key, array in kept.items()
        if key.startswith("leaf")
    }
    return KeptAt(leaves, float(temperatures[rung]))


def _rung(temperatures: np.ndarray, wanted: float | str, best: float | None, name: str) -> int:
    """Which of the temperatures with kept networks is wanted."""
    listed = "T = " + ", ".join(f"{t:.4g}" for t in temperatures)
    if wanted == BEST:
        if len(temperatures) == 1:
            return 0
        if best is None:
            raise ConfigError(
                f"{name} has no best temperature: there was no validation set; name one of {listed}"
            )
        value = best
    else:
        try:
            value = float(wanted)
        except (TypeError, ValueError):
            value = float("nan")
        if not value >= 0:
            raise ConfigError(
                f'the temperature must be "best" or a number from 0 up, got {wanted!r}'
            )
    if not temperatures[0] / NEAR <= value <= temperatures[-1] * NEAR:
        raise ConfigError(f"{name} has kept no weights at T = {value:.6g}, only at {listed}")
    same = np.flatnonzero(temperatures == value)
    return int(same[0]) if len(same) else nearest(temperatures, value)
