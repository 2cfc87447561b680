"""Thermodynamics of a ladder's samples: heat capacity, overlaps, the best temperature."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempernet.diagnostics.statistics import Estimate, average, blocks

BOOTSTRAP = 1000
INTERVAL = 0.9
CLEAR = 0.95
"""Share of bootstrap samples in which an end of the ladder must be worse than the minimum."""
HISTOGRAM_BINS = 20


def heat_capacity(energy: NDArray[np.floating], temperatures: NDArray[np.floating]) -> Estimate:
    """Heat capacity C = Var(E) / T^2 in units of Boltzmann's constant, (K,).

    Args:
        energy: (copies, rounds, K).
        temperatures: (K,); C is 0 where they are infinite.
    """
    # From the first one: the mean of equal numbers need not be that number.
    from_first = np.asarray(energy, np.float64) - energy[:1, :1]
    variance = average(np.square(from_first - from_first.mean(axis=(0, 1))))
    # inf is the prior's rung, where C is 0.
    scale = np.asarray(temperatures, np.float64) ** 2
    return Estimate(variance.mean / scale, variance.error / scale)


def histogram_overlap(energy: NDArray[np.floating]) -> NDArray[np.float64]:
    """Shared area of the energy histograms of neighbours, 0 to 1: (K-1,).

    Bins hold equal shares of both rungs together: equal widths would let one outlier put all the
    rest into a bin.

    Args:
        energy: (copies, rounds, K).
    """
    rungs = np.moveaxis(np.asarray(energy, np.float64), -1, 0).reshape(energy.shape[-1], -1)
    shared = []
    for lower, upper in pairwise(rungs):
        edges = np.quantile(np.concatenate([lower, upper]), np.linspace(0, 1, HISTOGRAM_BINS + 1))
        counts = [np.histogram(values, edges)[0] / len(values) for values in (lower, upper)]
        shared.append(np.minimum(*counts).sum())
    return np.array(shared)


def bimodality(values: NDArray[np.floating]) -> float:
    """Sarle's coefficient (skewness^2 + 1) / kurtosis of `values` (n,).

    It is 1/3 for normal values, 5/9 for uniform ones, 1 for two peaks.
    """
    values = np.asarray(values, np.float64)
    if np.ptp(values) == 0:
        return float("nan")
    unit = (values - values.mean()) / values.std()
    return float((np.mean(unit**3) ** 2 + 1) / np.mean(unit**4))


class BestTemperature(NamedTuple):
    """The temperature of least expected loss, with a bootstrap interval."""

    rung: int
    temperature: float
    low: float
    high: float
    at_end: str
    """"lowest" or "highest" if the minimum is at that end of the ladder, else empty."""
    resolved: bool
    """Whether the loss is clearly higher on both sides within the ladder."""
    unresolved_sides: tuple[str, ...]
    """Ends of the ladder, "lowest" or "highest", where the loss is as low within its error."""


def best_temperature(
    loss: NDArray[np.floating], temperatures: NDArray[np.floating], seed: int = 0
) -> BestTemperature:
    """The temperature with the least mean loss.

    The interval holds 90 % of the minima of bootstrap samples over copies and blocks of draws. The
    minimum is resolved if in 95 % of these samples each end of the ladder has a higher loss than
    the rung chosen. A loss that is not a number is infinite.

    Args:
        loss: a validation loss, (copies, draws, K).
        temperatures: (K,), increasing.
        seed: of the bootstrap.
    """
    loss = np.nan_to_num(np.asarray(loss, np.float64), nan=np.inf, posinf=np.inf)
    copies, draws, rungs = loss.shape
    rung = int(loss.mean(axis=(0, 1)).argmin())
    rng = np.random.default_rng(seed)
    samples = np.stack(
        [loss[blocks(rng, copies, draws)].mean(axis=(0, 1)) for _ in range(BOOTSTRAP)]
    )
    minima = np.asarray(temperatures)[samples.argmin(axis=1)]
    low, high = np.quantile(minima, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], method="nearest")
    ends = {"lowest": 0, "highest": rungs - 1}
    unresolved = tuple(
        name for name, end in ends.items() if (samples[:, end] > samples[:, rung]).mean() < CLEAR
    )
    return BestTemperature(
        rung=rung,
        temperature=float(temperatures[rung]),
        low=float(low),
        high=float(high),
        at_end=next((name for name, end in ends.items() if rung == end), ""),
        resolved=not unresolved,
        unresolved_sides=unresolved,
    )
