"""Averages of correlated series with errors that can be believed.

Series are (copies, draws, ...): every statistic is worked out for each entry of a draw by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

LEAST_DRAWS = 4
"""Fewer draws a copy than this say nothing about their own correlation."""
DRAWS_A_FREEDOM = 4
"""Effective draws that make up a degree of freedom of the variance within copies."""


class Estimate(NamedTuple):
    """A mean and its standard error, each of the shape of one draw."""

    mean: NDArray[np.float64]
    error: NDArray[np.float64]


def average(series: NDArray[np.floating]) -> Estimate:
    """Mean over copies and draws with its standard error, each of the shape of one draw.

    About 68 % of means lie within one error of the truth, 95 % within two.

    Within copies, the variance of the mean is s^2 / ESS (Vehtari et al. 2021). Copies whose means
    differ by more than that have modes slower than a copy, which only the variance between copies
    sees; the larger of the two is taken. Neither is well known: few correlated draws say little of
    their own correlation, and two copies little of how far copies lie apart. So the error is
    stretched as Student's 90 % interval is against the normal one, with the degrees of freedom of
    Welch and Satterthwaite: copies - 1 for what the copies add, and for the rest ESS / 4, the share
    with which short AR(1) series are covered as they should be. Where slow modes rule, two errors
    cover about 91 % with four copies and 85 % with two: copies that agree by chance do not show
    them.
    """
    scaled, shift, width = _scaled(series)
    copies, draws = scaled.shape[:2]
    if draws == 0:
        return Estimate(shift, shift)
    of_copies = scaled.mean(axis=1)
    mean = shift + width * of_copies.mean(axis=0)
    if draws < LEAST_DRAWS and copies == 1:
        return Estimate(mean, np.full_like(mean, np.nan))
    within, freedom = np.zeros_like(mean), np.ones_like(mean)
    if draws >= LEAST_DRAWS:
        own = scaled - of_copies[:, None]
        ess = effective_sample_size(own)
        within = np.square(own).sum(axis=(0, 1)) / (copies * (draws - 1) * ess)
        freedom = np.maximum(1.0, ess / DRAWS_A_FREEDOM)
    between = of_copies.var(axis=0, ddof=1) / copies if copies > 1 else 0.0
    variance = np.maximum(within, between)
    added = np.divide(variance - within, variance, out=np.zeros_like(mean), where=variance > 0)
    degrees = 1 / ((1 - added) ** 2 / freedom + added**2 / max(1, copies - 1))
    return Estimate(mean, width * np.sqrt(variance) * stretch(degrees))


def stretch(degrees: ArrayLike) -> NDArray[np.float64]:
    """Student's 90 % interval over the normal one, for these degrees of freedom, (...,).

    An error that so few degrees of freedom tell must grow by this factor.
    """
    factor: NDArray[np.float64] = stdtrit(degrees, 0.95) / ndtri(0.95)
    return factor


def effective_sample_size(series: NDArray[np.floating]) -> NDArray[np.float64]:
    """ESS of the mean, at most the number of draws; NaN with fewer than 4 a copy.

    What never moves is worth one a copy. The estimate itself can exceed the draws: always if there
    are too few of them to see their correlation.
    """
    scaled, _, _ = _scaled(series)
    if scaled.shape[1] < LEAST_DRAWS:
        return np.full(scaled.shape[2:], np.nan)
    # Imported here: it takes as long as the rest of the package.
    from arviz_stats.base.array import array_stats

    ess = array_stats.ess(scaled, chain_axis=0, draw_axis=1, method="mean")
    copies, draws = scaled.shape[:2]
    return np.where(
        np.ptp(scaled, axis=(0, 1)) == 0, float(copies), np.minimum(ess, copies * draws)
    )


def split_rhat(series: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rank-normalised split R-hat (Vehtari et al. 2021).

    It is 1 when the halves of all copies agree, and inf if they are frozen apart. A single copy has
    halves too. NaN with fewer than 4 draws a copy.
    """
    series = _finite(series)
    if series.shape[1] < LEAST_DRAWS:
        return np.full(series.shape[2:], np.nan)
    half = series.shape[1] // 2
    halves = np.concatenate([series[:, :half], series[:, -half:]])
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_rank_rhat(halves), _rank_rhat(folded))


def drift(series: NDArray[np.floating]) -> NDArray[np.float64]:
    """How many standard errors the mean of the second half lies from that of the first.

    Differences are taken first, draw by draw of the same copy: this keeps what the copies differ
    by, and the drift itself, out of the error.
    """
    series = _finite(series)
    half = series.shape[1] // 2
    change = average(series[:, series.shape[1] - half :] - series[:, :half])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change.mean == 0, 0.0, change.mean / change.error)


def blocks(
    rng: np.random.Generator, copies: int, draws: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of one bootstrap sample: which copies and which draws, (copies, draws) each.

    Copies are drawn with replacement, and in each of them circular blocks of draws. The blocks are
    sqrt(draws) long, longer than the correlation in any series worth averaging. A single copy
    stands for itself.
    """
    length = max(1, round(np.sqrt(draws)))
    chosen = rng.integers(copies, size=copies)
    starts = rng.integers(draws, size=(copies, -(-draws // length)))
    rows = (starts[:, :, None] + np.arange(length)).reshape(copies, -1)[:, :draws] % draws
    return np.broadcast_to(chosen[:, None], rows.shape), rows


def _rank_rhat(halves: NDArray[np.float64]) -> NDArray[np.float64]:
    """R-hat of the normal scores of the ranks, Eqs. 3, 4 and 14 of Vehtari et al. 2021."""
    flat = halves.reshape(-1, *halves.shape[2:])
    shares = (rankdata(flat, axis=0) - 3 / 8) / (len(flat) + 1 / 4)
    scores = ndtri(shares).reshape(halves.shape)
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = scores.mean(axis=1).var(axis=0, ddof=1)
    # Scores are of the order of one: what is below this is rounding in the mean of equal numbers.
    still, together = within < 1e-20, between < 1e-20
    ratio = between / np.where(still, 1.0, within)
    rhat = np.sqrt(ratio + (halves.shape[1] - 1) / halves.shape[1])
    return np.where(still, np.where(together, 1.0, np.inf), rhat)


def _finite(series: NDArray[np.floating]) -> NDArray[np.float64]:
    """Infinities as NaN, which passes through arithmetic without a warning."""
    series = np.asarray(series, np.float64)
    return np.where(np.isfinite(series), series, np.nan)


def _scaled(
    series: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(series - shift) / width, shift, width: squares of huge or tiny numbers are out of range."""
    series = _finite(series)
    if series.shape[1] == 0:
        nothing = np.full(series.shape[2:], np.nan)
        return series, nothing, nothing
    shift = series[0, 0]
    range_ = np.ptp(series, axis=(0, 1))
    width = np.where(range_ > 0, range_, 1.0)
    return (series - shift) / width, shift, width
