"""Where the rungs of a path should be: equal steps of the communication barrier (Syed et al. 2022).

The barrier Lambda is what replicas have to overcome between the first rung and another: for close
rungs it grows by the rate at which swaps are rejected. Rungs at equal steps of it swap equally
often, and the number of round trips is largest, for a given number of replicas, with about 2 Lambda
intervals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import erf, erfinv

from tempernet.paths.path import Path

SATURATED = 0.95
"""Rejection above which a swap rate says no more than that the rungs are far apart."""
LEAST_SHARE = 0.1
"""Least barrier of an interval, as a share of the mean: easy stretches keep some rungs."""


class Barrier(NamedTuple):
    """The barrier between neighbours of a path."""

    path: Path
    steps: NDArray[np.float64]
    """Barrier of each interval, (K-1,)."""

    @property
    def total(self) -> float:
        """Lambda, from the first to the last rung."""
        return float(self.steps.sum())

    @property
    def rungs_wanted(self) -> int:
        """About 2 Lambda intervals, where neighbours swap half of the time.

        These make the most round trips a gradient.
        """
        return max(2, math.ceil(2 * self.total) + 1)


def measure_barrier(
    path: Path, swap_rate: NDArray[np.float64], mean_phi: NDArray[np.float64]
) -> Barrier:
    """The barrier from what a run on the path measured.

    Args:
        path: of K rungs.
        swap_rate: mean swap probabilities of neighbours, (K-1,); NaN counts as 0.
        mean_phi: mean energy terms, (K, M).

    Let the log weights between neighbours be normal with the same width x at both. Their rejection
    rate is r = erf(x/2), and x^2 = -sum_m (c' - c)_m (<phi>' - <phi>)_m. The barrier of the
    interval is x / sqrt(pi): equal to r for close rungs, and additive where r saturates at 1. So r
    gives x as long as it can be measured; beyond, the mean terms do, which know how far apart two
    rungs are that never swap.
    """
    rejection = np.clip(1 - np.nan_to_num(np.asarray(swap_rate, np.float64)), 0, 1)
    from_swaps = 2 / math.sqrt(math.pi) * erfinv(np.minimum(rejection, SATURATED))
    change_of_c = np.diff(path.coefficients, axis=0)
    change_of_phi = np.diff(np.asarray(mean_phi, np.float64), axis=0)
    squares = -np.sum(change_of_c * change_of_phi, axis=1)
    from_terms = np.sqrt(np.maximum(squares, 0) / math.pi)
    beyond = np.maximum(from_swaps, from_terms)
    return Barrier(path, np.where(rejection < SATURATED, from_swaps, beyond))


def place(barrier: Barrier, num: int) -> NDArray[np.float64]:
    """Values of the path's parameter at equal steps of the barrier, with the same ends.

    If a value of the path stays, the steps on its two sides differ a little, so that it is reached
    in whole steps.

    Args:
        barrier: as measured on the path's rungs.
        num: how many values.

    Returns:
        (num,), in the order of the path.
    """
    path = barrier.path
    steps = np.maximum(barrier.steps, LEAST_SHARE * barrier.steps.mean())
    if not steps.sum() > 0:
        steps = np.ones_like(steps)
    height = np.concatenate([[0.0], np.cumsum(steps)])
    # Inverse of a monotone function, interpolated monotonically.
    place_at = PchipInterpolator(height, stretched(path))

    def between(first: int, last: int, intervals: int) -> NDArray[np.float64]:
        """From one rung of the old path to another, which is left out."""
        inner = place_at(np.linspace(height[first], height[last], intervals + 1)[1:-1])
        values = path.value_fn(np.exp(inner) - _offset(path))
        return np.concatenate([path.values[first : first + 1], values])

    last = path.num_rungs - 1
    if path.stays is None:
        return np.concatenate([between(0, last, num - 1), path.values[-1:]])
    kept = int(np.flatnonzero(path.values == path.stays)[0])
    before = int(np.clip(np.rint((num - 1) * height[kept] / height[-1]), 1, num - 2))
    return np.concatenate(
        [between(0, kept, before), between(kept, last, num - 1 - before), path.values[-1:]]
    )


def swap_rates_at(barrier: Barrier, wanted: Path) -> NDArray[np.float64]:
    """Swap rates to expect between the rungs of another path with the same ends, (K-1,).

    They are 1 - erf(x/2) of its intervals.
    """
    height = np.concatenate([[0.0], np.cumsum(barrier.steps)])
    old, at = (np.log(path.beta + _offset(barrier.path)) for path in (barrier.path, wanted))
    # Ascending, for the interpolation; temperatures ascend where beta descends.
    steps = np.abs(np.diff(PchipInterpolator(-old, height)(-at)))
    rates: NDArray[np.float64] = 1 - erf(math.sqrt(math.pi) / 2 * steps)
    return rates


def interpolate_steps(
    path: Path, step_sizes: NDArray[np.float64], wanted: Path
) -> NDArray[np.float64]:
    """Reduced step sizes at the rungs of another path: log eps is linear in the stretched beta.

    Args:
        path: of K rungs.
        step_sizes: at its rungs, (K,).
        wanted: the other path, of K' rungs.

    Returns:
        Step sizes at the other path's rungs, (K',).
    """
    at, old = np.log(wanted.beta + _offset(path)), stretched(path)
    order = np.argsort(old)
    logs: NDArray[np.float64] = np.interp(at, old[order], np.log(step_sizes)[order])
    return np.exp(logs)


def stretched(path: Path) -> NDArray[np.float64]:
    """The coordinate that rungs are interpolated in, (K,): log beta, shifted if the path has 0."""
    return np.log(path.beta + _offset(path))


def _offset(path: Path) -> float:
    """0, or on a path that reaches beta = 0 the smallest other beta.

    Below it, beta itself is the even coordinate.
    """
    beta = path.beta
    return float(beta[beta > 0].min()) if np.any(beta == 0) else 0.0
