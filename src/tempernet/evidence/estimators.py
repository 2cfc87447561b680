"""Estimators of the log ratio of normalising constants along a path, side by side, with errors.

Every estimator of log Z_last - log Z_first is a smooth function of averages over rounds. Each is
given as a series (copies, rounds) of its influence: what a round adds, to first order, so that the
mean of the series is the estimate and `statistics.average` gives its error, correlations in time
and between rungs included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import simpson as simpson_rule
from scipy.special import logsumexp

from tempernet.diagnostics.statistics import average, blocks
from tempernet.evidence.bar import bar
from tempernet.evidence.mbar import mbar
from tempernet.evidence.samples import PathSamples

HEADLINE = "bar"
"""The estimator that is believed: it needs no integration rule, only neighbouring rungs."""
MAX_SPREAD = 3.0
"""How many standard errors an estimator may lie from the headline."""
BOOTSTRAP = 200


class LogRatio(NamedTuple):
    """An estimate of a difference of log Z, or of a log Z."""

    value: float
    error: float
    """Standard error: the larger of those from within copies and from between copies."""
    between: float
    """Standard error from the differences between copies alone; NaN for one copy."""
    bootstrap: float
    """Standard error by a bootstrap of copies and of blocks of rounds."""


class Disagreement(NamedTuple):
    """An estimator that lies further from the headline than both errors allow."""

    estimator: str
    headline: str
    """The estimator that is believed."""
    difference: float
    """The estimator less the headline, in nats."""
    allowed: float
    """What the two errors allow, in nats."""


def simpson(samples: PathSamples) -> NDArray[np.float64]:
    """Thermodynamic integration (Eq. 24) by Simpson's rule.

    For unequal intervals, or an odd number of them, the rule is SciPy's.
    """
    rule = simpson_rule(np.eye(len(samples.beta)), x=samples.beta, axis=-1)
    series: NDArray[np.float64] = -samples.slope @ rule
    return series


def trapezoid(samples: PathSamples) -> NDArray[np.float64]:
    """Thermodynamic integration by trapezoids, corrected by the ends' slopes: d<f>/dbeta = -Var(f).

    The error of a trapezoid is h^2/12 (g'(b) - g'(a)) to leading order (Friel, Hurn and Wyse 2014).
    """
    gaps, slope = np.diff(samples.beta), samples.slope
    variance = np.square(slope - slope.mean(axis=(0, 1)))
    means = 0.5 * gaps * (slope[..., :-1] + slope[..., 1:])
    correction = gaps**2 / 12 * np.diff(variance, axis=-1)
    series: NDArray[np.float64] = -(means + correction).sum(axis=-1)
    return series


def stepping_stone(samples: PathSamples) -> NDArray[np.float64]:
    """Exponential averages upwards: log Z_{k+1}/Z_k = log <exp(-w)>_k (Xie et al. 2011)."""
    series: NDArray[np.float64] = _log_mean(-samples.work[0]).sum(axis=-1)
    return series


def stepping_stone_back(samples: PathSamples) -> NDArray[np.float64]:
    """Exponential averages downwards: log Z_{k+1}/Z_k = -log <exp(w)>_{k+1}."""
    series: NDArray[np.float64] = -_log_mean(samples.work[1]).sum(axis=-1)
    return series


ESTIMATORS = {
    "bar": bar,
    "mbar": mbar,
    "stepping stone": stepping_stone,
    "stepping stone back": stepping_stone_back,
    "simpson": simpson,
    "trapezoid": trapezoid,
}
"""Name -> its series of influences."""


def log_ratio(series: NDArray[np.float64], seed: int = 0) -> LogRatio:
    """The estimate of a series of influences (copies, rounds), with its errors."""
    mean, error = average(series)
    copies, rounds = series.shape
    between = series.mean(axis=1).std(ddof=1) / math.sqrt(copies) if copies > 1 else math.nan
    rng = np.random.default_rng(seed)
    means = [series[blocks(rng, copies, rounds)].mean() for _ in range(BOOTSTRAP)]
    return LogRatio(float(mean), float(error), float(between), float(np.std(means)))


def log_integrals(
    samples: PathSamples,
    known: ArrayLike,
    *,
    apart: bool = False,
    names: Iterable[str] = ESTIMATORS,
) -> dict[str, LogRatio]:
    """log Z_first by each estimator, from the log Z_last that is known.

    Args:
        samples: the energy terms recorded along the path.
        known: log Z_last, one number or one for each copy, (copies,).
        apart: whether the copies' paths are not the same, and each is taken by itself.
        names: the estimators to use, by their names in `ESTIMATORS`.
    """
    parts = [replace(samples, phi=phi[None]) for phi in samples.phi] if apart else [samples]
    offsets = np.broadcast_to(np.asarray(known, np.float64), len(samples.phi))[:, None]
    estimates = {}
    for name in names:
        series = np.concatenate([ESTIMATORS[name](part) for part in parts])
        estimates[name] = log_ratio(offsets - series)
    return estimates


def disagreements(
    estimates: dict[str, LogRatio], headline: str = HEADLINE
) -> tuple[Disagreement, ...]:
    """Estimators that lie further from the headline than both errors allow.

    If there are any, the run has not converged.

    Args:
        estimates: by the name of the estimator, the headline among them.
        headline: the name of the estimator that is believed.
    """
    believed = estimates[headline]
    found = []
    for name, other in estimates.items():
        difference = other.value - believed.value
        allowed = MAX_SPREAD * math.hypot(believed.error, other.error)
        if not abs(difference) <= allowed:
            found.append(Disagreement(name, headline, difference, allowed))
    return tuple(found)


def _log_mean(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Influences of log <exp(x)> over copies and rounds."""
    number = exponents.shape[0] * exponents.shape[1]
    log_mean = logsumexp(exponents, axis=(0, 1)) - math.log(number)
    series: NDArray[np.float64] = log_mean + np.exp(exponents - log_mean) - 1
    return series
