"""Averages of correlated series with errors that can be believed. Series are (copies, draws, ...)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats

LEAST_DRAWS = 4
"""Fewer draws a copy than this say nothing about their own correlation."""


class Estimate(NamedTuple):
    """A mean and its standard error, each of the shape of one draw."""

    mean: np.ndarray
    error: np.ndarray


def average(series: np.ndarray) -> Estimate:
    """Mean over copies and draws, with a standard error.

    Two errors are worked out. Within: s / sqrt(ESS), where the effective sample size (Vehtari et al. 2021) sees both the
    autocorrelation of each copy and a disagreement between copies. Between: that of the copies' means. The second sees
    modes slower than a copy but is itself uncertain for few copies; the larger one is given.
    """
    series = np.asarray(series, np.float64)
    copies, draws = series.shape[:2]
    if draws == 0:
        nothing = np.full(series.shape[2:], np.nan)
        return Estimate(nothing, nothing)
    flat = series.reshape(copies * draws, *series.shape[2:])
    errors = [np.full(series.shape[2:], np.nan)]
    if draws >= LEAST_DRAWS:
        errors.append(flat.std(axis=0, ddof=1) / np.sqrt(effective_sample_size(series)))
    if copies > 1:
        errors.append(series.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(copies))
    return Estimate(flat.mean(axis=0), np.fmax.reduce(errors))


def effective_sample_size(series: np.ndarray) -> np.ndarray:
    """ESS of the mean; NaN with fewer than 4 draws a copy. A series that never moves is worth one draw a copy."""
    series = np.asarray(series, np.float64)
    if series.shape[1] < LEAST_DRAWS:
        return np.full(series.shape[2:], np.nan)
    ess = array_stats.ess(_spread(series), chain_axis=0, draw_axis=1, method="mean")
    return np.where(_constant(series), float(len(series)), ess)


def split_rhat(series: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat: 1 when the halves of all copies agree; inf for copies frozen at different values."""
    series = np.asarray(series, np.float64)
    if series.shape[1] < LEAST_DRAWS:
        return np.full(series.shape[2:], np.nan)
    rhat = array_stats.rhat(_spread(series), chain_axis=0, draw_axis=1, method="rank")
    frozen = np.all(np.ptp(series, axis=1) == 0, axis=0)
    return np.where(_constant(series), 1.0, np.where(frozen, np.inf, rhat))


def drift(series: np.ndarray) -> np.ndarray:
    """How many standard errors the mean of the second half lies from that of the first."""
    half = series.shape[1] // 2
    first, second = average(series[:, :half]), average(series[:, -half:] if half else series[:, :0])
    error = np.hypot(first.error, second.error)
    change = second.mean - first.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0, 0.0, change / error)


def blocks(rng: np.random.Generator, copies: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of one bootstrap sample: copies with replacement, and in each of them circular blocks of draws.

    The blocks are sqrt(draws) long, longer than the correlation in any series worth averaging. A single copy stands
    for itself.
    """
    length = max(1, round(np.sqrt(draws)))
    chosen = rng.integers(copies, size=copies)
    starts = rng.integers(draws, size=(copies, -(-draws // length)))
    rows = (starts[:, :, None] + np.arange(length)).reshape(copies, -1)[:, :draws] % draws
    return np.broadcast_to(chosen[:, None], rows.shape), rows


def _constant(series: np.ndarray) -> np.ndarray:
    return np.ptp(series, axis=(0, 1)) == 0


def _spread(series: np.ndarray) -> np.ndarray:
    """The series in units of its own spread: variances of tiny numbers underflow, and constants divide by zero."""
    width = np.ptp(series, axis=(0, 1))
    return (series - series.mean(axis=(0, 1))) / np.where(width > 0, width, 1.0)
