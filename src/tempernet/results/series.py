"""From rows of records to named arrays, as the observables declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    for observable in observables_of(("energy",)):
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


def path_series(rounds: Rows, terms: Sequence[str]) -> xarray.Dataset:
    """The rounds of a path of rungs as named arrays (copy, round, rung, ...).

    Args:
        rounds: observables of the rounds, arrays (rounds, copies, K, ...) by name.
        terms: the energy terms of the path.
    """
    found = [o for o in observables_of(terms) if o.cadence == "round" and o.name in rounds]
    return xarray.Dataset({o.name: _variable(o, rounds[o.name], rung="rung") for o in found})


def one_after_the_other(rounds: Rows, terms: Sequence[str], num: int) -> Rows:
    """Rounds of `num` rungs that were sampled one after the other, as if side by side.

    Args:
        rounds: arrays (num x rounds, copies, 1, ...) by name.
        terms: the energy terms of the path.
        num: number of rungs, with as many rounds each.
    """
    together = {}
    for observable in observables_of(terms):
        if observable.name not in rounds or "pair" in observable.axes:
            continue
        rows, rung = rounds[observable.name], observable.axes.index("rung")
        split = rows.reshape(num, -1, *rows.shape[1:])
        together[observable.name] = np.moveaxis(np.squeeze(split, axis=rung + 2), 0, rung + 1)
    return together


def observables_of(terms: Sequence[str]) -> list[Observable]:
    """The observables of a path with these energy terms, but for the value of the rung."""
    return [*(energy_term(name, m) for m, name in enumerate(terms)), *OBSERVABLES]


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


def _variable(
    observable: Observable, rows: np.ndarray, rung: str = "temperature"
) -> xarray.Variable:
    """The array of an observable, with copies first, and with its unit and meaning."""
    draws = DRAWS[observable.cadence]
    names: Mapping[Axis, str] = {
        "copy": "copy",
        "rung": rung,
        "pair": "pair",
        "layer": "layer",
    }
    dims = [names[axis] for axis in observable.axes]
    attributes = {"units": observable.unit, "long_name": observable.meaning}
    if observable.axes[0] != "copy":
        return xarray.Variable((draws, *dims), rows, attributes)
    return xarray.Variable(("copy", draws, *dims[1:]), np.moveaxis(rows, 0, 1), attributes)
