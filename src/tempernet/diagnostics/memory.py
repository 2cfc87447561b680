"""The autocorrelation of replicas, from weights and predictions that a run has kept.

A replica that crosses the ladder and back has surely decorrelated, but it need not travel for it.
Follow a replica from one time at which weights were kept to the next, wherever it went, and compare
its weights w with what they were, w'. With m and m' the mean weights of other copies at the two
rungs, its autocorrelation is

    rho = (w . w' - w . m') / sqrt((w . w - w . m) (w' . w' - w' . m'))

the correlation of w - <w> and w' - <w'> without bias, as m does not know of w. rho is 1 for a
replica that stands still and 0 for one that has decorrelated; it stays above 0 for one that cannot
leave its mode.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 0.05
"""The smallest rho told from 0: unrelated layers of 400 weights have overlaps of 1/20."""


def remembered(weights: NDArray[np.floating], replica: NDArray[np.integer]) -> NDArray[np.float64]:
    """rho of the replicas that arrived at each rung, (K,), NaN if none can be followed.

    Args:
        weights: those at each rung at every time they were kept, (rows, copies, K, ...). The rungs
            need not be all of the ladder's.
        replica: who sat there, (rows, copies, K).
    """
    rows, copies, rungs = replica.shape
    flat = weights.reshape(rows, copies, rungs, -1)
    covariance, variance = np.zeros(rungs), np.zeros(rungs)
    for copy in range(copies):
        others = [
            flat[:, other].mean(axis=0, dtype=np.float64)
            for other in range(copies)
            if other != copy
        ]
        mean = np.mean(others, axis=0) if others else np.zeros(flat.shape[2:])
        for row in range(rows - 1):
            _, came_from, at = np.intersect1d(
                replica[row, copy], replica[row + 1, copy], return_indices=True
            )
            # One copy at one time in double precision: all that a run has kept may be large.
            then = flat[row, copy, came_from].astype(np.float64)
            now = flat[row + 1, copy, at].astype(np.float64)
            from_mean = then - mean[came_from]
            spread_then = np.sum(then * from_mean, axis=1)
            spread_now = np.sum(now * (now - mean[at]), axis=1)
            covariance[at] += np.sum(now * from_mean, axis=1)
            variance[at] += np.sqrt(np.maximum(spread_then * spread_now, 0))
    with np.errstate(invalid="ignore"):
        return covariance / variance


def times_forgotten(share: NDArray[np.float64], lag: float, rounds: int) -> NDArray[np.float64]:
    """The number of autocorrelation times in `rounds`, (K,).

    The autocorrelation falls by a factor of e in lag / log(1/rho) rounds.

    Args:
        share: rho after `lag` rounds, (K,).
        lag: rounds between two times at which weights were kept.
        rounds: the length of the run.
    """
    times: NDArray[np.float64] = np.log(1 / np.clip(share, LEAST, 1)) * rounds / lag
    return times
