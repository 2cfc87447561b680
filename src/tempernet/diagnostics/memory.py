"""What replicas remember of where they were, from weights and predictions that a run has kept.

A replica that crosses the ladder and back has surely forgotten, but it need not travel to forget.
Follow a replica from one time at which weights were kept to the next, wherever it went, and compare
its weights w with what they were, w'. With m and m' the mean weights of other copies at the two
rungs, what it remembers is

    rho = (w . w' - w . m') / sqrt((w . w - w . m) (w' . w' - w' . m'))

the correlation of w - <w> and w' - <w'> without bias, as m does not know of w. rho is 1 for a
replica that stands still and 0 for one that has forgotten; it stays above 0 for one that cannot
leave its mode.
"""

from __future__ import annotations

import numpy as np

LEAST = 0.05
"""What is remembered below this share cannot be told from nothing: a layer of 400 weights has
overlaps of 1/20.
"""


def remembered(weights: np.ndarray, replica: np.ndarray) -> np.ndarray:
    """rho of the replicas that arrived at each rung, (K,), NaN if none can be followed.

    `weights` (rows, copies, K, ...) are those at each rung at every time they were kept, `replica`
    (rows, copies, K) is who sat there. The rungs need not be all of the ladder's.
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
            then, now = (
                flat[row, copy, came_from].astype(np.float64),
                flat[row + 1, copy, at].astype(np.float64),
            )
            spread = np.sum(then * (then - mean[came_from]), axis=1) * np.sum(
                now * (now - mean[at]), axis=1
            )
            covariance[at] += np.sum(now * (then - mean[came_from]), axis=1)
            variance[at] += np.sqrt(np.maximum(spread, 0))
    with np.errstate(invalid="ignore"):
        return covariance / variance


def times_forgotten(share: np.ndarray, lag: float, rounds: int) -> np.ndarray:
    """How often replicas forget in so many rounds, if they remember this share (K,) after `lag` of
    them.

    Memory falls by a factor of e in lag / log(1/rho) rounds.
    """
    return np.log(1 / np.clip(share, LEAST, 1)) * rounds / lag
