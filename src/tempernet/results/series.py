"""From rows of records to named arrays, as the observables declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray

from tempernet.tempering.observables import (
    OBSERVABLES,
    ROUND,
    Axis,
    Cadence,
    Observable,
    energy_term,
)

Rows = dict[str, np.ndarray]
"""Name -> (rows, ...), the rows of a series of records."""
DRAWS: dict[Cadence, str] = {"round": "round", "score": "score", "keep": "kept"}
"""Cadence -> the dimension that counts its draws."""


class Recorded(NamedTuple):
    """Everything that a sweep has recorded."""

    rounds: Rows
    scores: Rows
    full: Rows
    """Scores on the whole test set, a few times."""
    weights: Rows
    """Networks kept, with `replica` and `predictions`."""
    ensemble: np.ndarray | None
    """Mean softmax outputs over the scores: (copies, K, examples, classes)."""


def after(rows: Rows, burn_in: int) -> Rows:
    """The rows of rounds that count, counted from the end of burn-in; empty if there are none."""
    if not rows or not (rows[ROUND] > burn_in).any():
        return {}
    counting = {name: array[rows[ROUND] > burn_in] for name, array in rows.items()}
    return {**counting, ROUND: counting[ROUND] - burn_in}


def series_of(rounds: Rows, scores: Rows, full: Rows) -> xarray.Dataset:
    """What a sweep recorded as named arrays (copy, draws, temperature, ...).

    Args:
        rounds: observables of the rounds, arrays (rounds, copies, ...) by name.
        scores: held-out scores, arrays (scores, copies, K) by name.
        full: scores on the whole test set, arrays (kept, copies, K) by name.
    """
    by_cadence: dict[Cadence, Rows] = {"round": rounds, "score": scores, "keep": full}
    variables = {}
    for observable in [energy_term("energy", 0), *OBSERVABLES]:
        rows = by_cadence[observable.cadence]
        if observable.name in rows:
            variables[observable.name] = _variable(observable, rows[observable.name])
    coords: dict[str, np.ndarray] = {
        "temperature": rounds["temperature"][-1],
        "round": np.arange(1, len(rounds["energy"]) + 1),
        "copy": np.arange(rounds["energy"].shape[1]),
    }
    if scores:
        coords["score"] = scores[ROUND]
    if full:
        coords["kept"] = full[ROUND]
    return xarray.Dataset(variables, coords=coords)


def burn_in_of(rounds: Rows) -> xarray.Dataset:
    """The rounds of burn-in, in which the rungs may move."""
    variables = {
        name: (("copy", "burn_in_round", "rung"), np.moveaxis(rounds[name], 0, 1))
        for name in ("energy", "acceptance", "replica")
    }
    of_rungs = {
        "rung_temperature": "temperature",
        "time_step": "time_step",
        "num_steps": "num_steps",
    }
    moving = {
        name: (("burn_in_round", "rung"), rounds[column]) for name, column in of_rungs.items()
    }
    return xarray.Dataset({**variables, **moving})


def _variable(observable: Observable, rows: np.ndarray) -> xarray.Variable:
    """The array of an observable, with copies first, and with its unit and meaning."""
    draws = DRAWS[observable.cadence]
    names: Mapping[Axis, str] = {
        "copy": "copy",
        "rung": "temperature",
        "pair": "pair",
        "layer": "layer",
    }
    dims = [names[axis] for axis in observable.axes]
    attributes = {"units": observable.unit, "long_name": observable.meaning}
    if observable.axes[0] != "copy":
        return xarray.Variable((draws, *dims), rows, attributes)
    return xarray.Variable(("copy", draws, *dims[1:]), np.moveaxis(rows, 0, 1), attributes)
