"""The verdict on a sweep: what of its records the judge looks at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray

from tempernet.config import SweepSettings
from tempernet.diagnostics.flow import Flow, bottleneck, freedom, sides_kept
from tempernet.diagnostics.memory import remembered, times_forgotten
from tempernet.diagnostics.verdict import Verdict, judge
from tempernet.results.series import Rows, observables_of
from tempernet.results.summary import by_round


def verdict_on(series: xarray.Dataset, settings: SweepSettings, flow: Flow, kept: Rows) -> Verdict:
    """The verdict on the rounds of a sweep that count.

    Args:
        series: observables over these rounds (see `series.series_of`).
        settings: of the sweep.
        flow: the replica flow of these rounds.
        kept: networks kept, arrays (rows, copies, kept temperatures, ...) by name.
    """
    replica, temperatures = by_round(series), series.temperature.values
    narrow, kept_sides = bottleneck(flow.fraction_from_hot), sides_kept(replica)

    def pair(low: int, high: int) -> tuple[float, ...]:
        return float(temperatures[low]), float(temperatures[high])

    most = int(np.argmax(np.nan_to_num(kept_sides))) if len(kept_sides) else 0
    return judge(
        judged_of(series),
        int(flow.round_trips.sum()),
        freedom(replica),
        pair(*narrow) if narrow else (),
        forgotten=forgotten(kept, series),
        side_kept=float(kept_sides[most]) if len(kept_sides) else np.nan,
        side_of=pair(most, most + 1) if len(kept_sides) else (),
        exchanging=settings.dynamics.exchange != "none",
        started_apart=settings.start.weights in ("apart", "annealed"),
        both_sides=settings.start.weights == "annealed",
    )


def judged_of(series: xarray.Dataset, terms: Sequence[str] = ("energy",)) -> dict[str, np.ndarray]:
    """The observables that the verdict looks at, name -> (copies, draws, K).

    Of the held-out losses it takes the validation loss, by which the temperature is chosen, or
    where there is none the test loss.

    Args:
        series: observables by name, with the dimensions copy, draws, rungs (and layer).
        terms: the energy terms of the path.
    """
    found = {}
    for observable in observables_of(terms):
        name = observable.name
        if not observable.judged or name not in series:
            continue
        if name == "test_loss" and "validation_loss" in series:
            continue
        if "layer" not in observable.axes:
            found[name] = series[name].values
            continue
        for layer in range(series.sizes["layer"]):
            found[f"{name}.{layer + 1}"] = series[name].values[..., layer]
    return found


def forgotten(kept: Rows, series: xarray.Dataset) -> np.ndarray:
    """Autocorrelation times of the weights that the run spans, (K,); NaN where unknown.

    The slowest layer counts, or the predictions, where they were kept, if they are slower.

    Args:
        kept: networks kept, arrays (rows, copies, kept temperatures, ...) by name.
        series: observables over the rounds that count.
    """
    temperatures = series.temperature.values
    found = np.full(len(temperatures), np.nan)
    if "replica" not in kept or len(kept["round"]) < 2:
        return found
    leaves = [kept[f"leaf{i}"] for i in range(sum(name.startswith("leaf") for name in kept))]
    layers = np.array_split(np.arange(len(leaves)), series.sizes["layer"])
    followed = [[leaves[i] for i in layer] for layer in layers]
    if "predictions" in kept:
        followed.append([kept["predictions"]])
    share = np.max([_remembered(parts, kept["replica"]) for parts in followed], axis=0)
    lag = float(np.diff(kept["round"]).mean())
    at = np.isin(temperatures, kept["temperature"][-1])
    found[at] = times_forgotten(share, lag, series.sizes["round"])
    return found


def _remembered(leaves: list[np.ndarray], replica: np.ndarray) -> np.ndarray:
    """Autocorrelation of these arrays between one time they were kept and the next, (K,)."""
    flat = [leaf.reshape(*replica.shape, -1) for leaf in leaves]
    return remembered(np.concatenate(flat, axis=-1), replica)
