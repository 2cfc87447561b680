"""What the samples of a ladder say: heat capacity, overlaps, the best temperature."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tempernet.diagnostics.statistics import Estimate, average, blocks

BOOTSTRAP = 1000
INTERVAL = 0.9
HISTOGRAM_BINS = 20


def heat_capacity(energy: np.ndarray, temperatures: np.ndarray) -> Estimate:
    """C = Var(E) / T^2, in units of Boltzmann's constant, from energies (copies, rounds, K)."""
    # From the first one: the mean of equal numbers need not be that number.
    from_first = np.asarray(energy, np.float64) - energy[:1, :1]
    variance = average(np.square(from_first - from_first.mean(axis=(0, 1))))
    # inf is the prior's rung, where C is 0.
    scale = np.asarray(temperatures, np.float64) ** 2
    return Estimate(variance.mean / scale, variance.error / scale)


def histogram_overlap(energy: np.ndarray) -> np.ndarray:
    """Shared area of the energy histograms of neighbours, 0 to 1: (K-1,).

    Bins hold equal shares of both rungs together: equal widths would let one outlier put all the
    rest into a bin.
    """
    rungs = np.moveaxis(np.asarray(energy, np.float64), -1, 0).reshape(energy.shape[-1], -1)
    shared = []
    for lower, upper in pairwise(rungs):
        edges = np.quantile(np.concatenate([lower, upper]), np.linspace(0, 1, HISTOGRAM_BINS + 1))
        counts = [np.histogram(values, edges)[0] / len(values) for values in (lower, upper)]
        shared.append(np.minimum(*counts).sum())
    return np.array(shared)


def bimodality(values: np.ndarray) -> float:
    """Sarle's coefficient (skewness^2 + 1) / kurtosis: 1/3 for normal values, 5/9 for uniform ones,
    1 for two peaks.
    """
    values = np.asarray(values, np.float64)
    if np.ptp(values) == 0:
        return float("nan")
    unit = (values - values.mean()) / values.std()
    return float((np.mean(unit**3) ** 2 + 1) / np.mean(unit**4))


class BestTemperature(NamedTuple):
    """The temperature of least expected loss, with a bootstrap interval, and what can be said about
    it.
    """

    rung: int
    temperature: float
    low: float
    high: float
    at_end: str
    """"lowest" or "highest" if the minimum is at that end of the ladder, else empty."""
    resolved: bool
    """Whether the loss is clearly higher on both sides within the ladder."""
    statement: str


def best_temperature(loss: np.ndarray, temperatures: np.ndarray, seed: int = 0) -> BestTemperature:
    """Least mean of `loss` (copies, draws, K), a validation loss.

    The interval holds 90 % of the minima of bootstrap samples over copies and blocks of draws. The
    minimum is resolved if in 95 % of these samples each end of the ladder has a higher loss than
    the rung chosen. A loss that is not a number is infinite.
    """
    loss = np.nan_to_num(np.asarray(loss, np.float64), nan=np.inf, posinf=np.inf)
    copies, draws, rungs = loss.shape
    mean = loss.mean(axis=(0, 1))
    rung = int(mean.argmin())
    rng = np.random.default_rng(seed)
    samples = np.stack(
        [loss[blocks(rng, copies, draws)].mean(axis=(0, 1)) for _ in range(BOOTSTRAP)]
    )
    minima = np.asarray(temperatures)[samples.argmin(axis=1)]
    low, high = np.quantile(minima, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], method="nearest")
    above = [(samples[:, end] > samples[:, rung]).mean() >= 0.95 for end in (0, rungs - 1)]
    at_end = "" if 0 < rung < rungs - 1 else ("lowest" if rung == 0 else "highest")
    resolved = not at_end and all(above)
    temperature = float(temperatures[rung])
    return BestTemperature(
        rung,
        temperature,
        float(low),
        float(high),
        at_end,
        resolved,
        _statement(temperature, low, high, at_end, above),
    )


def _statement(temperature: float, low: float, high: float, at_end: str, above: list[bool]) -> str:
    interval = f"T = {temperature:.3g}, 90 % interval {low:.3g} to {high:.3g}"
    if at_end:
        side = "below" if at_end == "lowest" else "above"
        return (
            f"{interval}: the {at_end} temperature of the ladder, so the minimum may lie {side} it"
        )
    if not all(above):
        side = " and ".join(
            name for name, clear in zip(("lowest", "highest"), above, strict=True) if not clear
        )
        return f"{interval}, not resolved: the loss at the {side} temperature is as low within its error"
    return interval
