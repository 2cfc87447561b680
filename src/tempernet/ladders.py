"""Where the temperatures should be: equal steps of the communication barrier (Syed et al. 2022).

The barrier Lambda(T) is what replicas have to overcome between the coldest rung and T: for close rungs it grows by the
rate at which swaps are rejected. Rungs at equal steps of it swap equally often, and the number of round trips is
largest, for a given number of replicas, with about 2 Lambda intervals. All functions here take and return arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import erfinv

SATURATED = 0.95
"""Rejection above which a swap rate says no more than that the rungs are far apart."""
LEAST_SHARE = 0.1
"""No interval counts for less than this share of the mean, so that easy stretches keep some rungs."""


class Barrier(NamedTuple):
    """The barrier between neighbours of a ladder."""

    temperatures: np.ndarray
    """(K,)."""
    steps: np.ndarray
    """Barrier of each interval, (K-1,)."""

    @property
    def total(self) -> float:
        """Lambda, from the coldest to the hottest rung."""
        return float(self.steps.sum())

    @property
    def rungs_wanted(self) -> int:
        """About 2 Lambda intervals, where neighbours swap half of the time: the most round trips a gradient."""
        return max(2, math.ceil(2 * self.total) + 1)


def measure_barrier(temperatures: np.ndarray, swap_rate: np.ndarray, mean_energy: np.ndarray) -> Barrier:
    """The barrier from mean swap probabilities (K-1,) and mean energies (K,).

    Let the energies of neighbours be normal with the same width s. Their rejection rate is r = erf(x/2) with
    x = (beta - beta') s, and (beta - beta')(<E>' - <E>) = x^2. The barrier of the interval is x / sqrt(pi): equal to r
    for close rungs, and additive where r saturates at 1. So r gives x as long as it can be measured; beyond, the
    mean energies do, which know how far apart two rungs are that never swap.
    """
    temperatures = np.asarray(temperatures, np.float64)
    rejection = np.clip(1 - np.nan_to_num(np.asarray(swap_rate, np.float64)), 0, 1)
    from_swaps = 2 / math.sqrt(math.pi) * erfinv(np.minimum(rejection, SATURATED))
    beta = 1 / temperatures
    # Mean energies rise with T; where noise says otherwise, the running maximum stands in.
    rise = np.diff(np.maximum.accumulate(mean_energy))
    from_energies = np.sqrt(-np.diff(beta) * rise / math.pi)
    return Barrier(temperatures, np.where(rejection < SATURATED, from_swaps, np.maximum(from_swaps, from_energies)))


def place(barrier: Barrier, num: int) -> np.ndarray:
    """`num` temperatures at equal steps of the barrier, with the same ends."""
    steps = np.maximum(barrier.steps, LEAST_SHARE * barrier.steps.mean())
    if not steps.sum() > 0:
        steps = np.ones_like(steps)
    height = np.concatenate([[0.0], np.cumsum(steps)])
    log_temperature = np.log(barrier.temperatures)
    # Inverse of a monotone function, interpolated monotonically.
    inner = PchipInterpolator(height, log_temperature)(np.linspace(0, height[-1], num)[1:-1])
    return np.concatenate([barrier.temperatures[:1], np.exp(inner), barrier.temperatures[-1:]])


def interpolate_steps(temperatures: np.ndarray, time_steps: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Time steps at other temperatures, linear in log dt against log T."""
    return np.exp(np.interp(np.log(wanted), np.log(temperatures), np.log(time_steps)))
