"""Bennett's acceptance ratio: log ratios of normalising constants between neighbouring rungs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tempernet.evidence.samples import PathSamples


def bar(samples: PathSamples) -> NDArray[np.float64]:
    """Bennett's acceptance ratio between neighbours.

    With as many samples at both, F = -log Z_{k+1}/Z_k solves G(F) = <s(F - w)>_k - <s(w - F)>_{k+1}
    = 0, where s(x) = 1 / (1 + e^-x). To first order a round moves F by -G of the round over G'.
    """
    forward, backward = samples.work
    pairs = forward.shape[-1]
    free = np.array(
        [_bennett(forward[..., k].ravel(), backward[..., k].ravel()) for k in range(pairs)]
    )
    here, there = expit(free - forward), expit(backward - free)
    slope = (here * (1 - here) + there * (1 - there)).mean(axis=(0, 1))
    moved = (here - there) / np.where(slope > 0, slope, np.inf)
    series: NDArray[np.float64] = -(free - moved).sum(axis=-1)
    return series


def _bennett(forward: NDArray[np.float64], backward: NDArray[np.float64]) -> float:
    """The root of G, which rises from -1 to 1, by Newton's steps kept in a bisected interval."""
    low = min(forward.min(), backward.min()) - 50.0
    high = max(forward.max(), backward.max()) + 50.0
    free = 0.5 * (forward.mean() + backward.mean())
    for _ in range(200):
        here, there = expit(free - forward), expit(backward - free)
        excess = here.mean() - there.mean()
        low, high = (low, free) if excess > 0 else (free, high)
        slope = (here * (1 - here)).mean() + (there * (1 - there)).mean()
        step = excess / slope if slope > 0 else math.inf
        newton = free - step
        new = newton if low < newton < high else 0.5 * (low + high)
        if abs(new - free) <= 1e-12 * max(1.0, abs(new)):
            return float(new)
        free = new
    return float(free)
