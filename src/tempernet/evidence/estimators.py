"""Log ratios of normalising constants along a path, from recorded energy terms, with errors; and
the quadratic's own.

On every path here the coefficients c are linear in beta, the coefficient of E, so with f = dc/dbeta
. phi

    d log Z / d beta = -<f>,        u_{k+1} - u_k = (beta_{k+1} - beta_k) f .

Every estimator of log Z_last - log Z_first is a smooth function of averages over rounds. Each is
given as a series (copies, rounds) of its influence: what a round adds, to first order, so that the
mean of the series is the estimate and `statistics.average` gives its error, correlations in time
and between rungs included.
"""

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import simpson as simpson_rule
from scipy.special import erf, expit, log_ndtr, logsumexp

from tempernet.diagnostics.statistics import average, blocks
from tempernet.model.networks import Weights
from tempernet.model.priors import Gaussian, Prior

HEADLINE = "bar"
"""Needs no integration rule, and each interval only its own two rungs."""
MAX_SPREAD = 3.0
"""Errors that an estimator may lie from the headline."""
MBAR_COLUMNS = 40_000
"""Samples that MBAR is given at most; more are thinned."""
BOOTSTRAP = 200


class LogRatio(NamedTuple):
    """An estimate of a difference of log Z, or of a log Z."""

    value: float
    error: float
    """The larger of what correlations within copies and differences between copies say."""
    between: float
    """Standard error from the differences between copies alone; NaN for one copy."""
    bootstrap: float
    """Standard error by a bootstrap of copies and of blocks of rounds."""


@dataclass(frozen=True, eq=False)
class PathSamples:
    """Recorded energy terms `phi` (copies, rounds, K, M) at the rungs of a path with `coefficients`
    (K, M).
    """

    coefficients: np.ndarray
    phi: np.ndarray

    @property
    def beta(self) -> np.ndarray:
        """The coefficient of E, (K,)."""
        return self.coefficients[:, 0]

    @property
    def slope(self) -> np.ndarray:
        """f = dc/dbeta . phi: (copies, rounds, K)."""
        ends = self.coefficients[-1] - self.coefficients[0]
        return np.asarray(self.phi, np.float64) @ (ends / ends[0])

    @property
    def work(self) -> tuple[np.ndarray, np.ndarray]:
        """u_{k+1} - u_k of the samples of rung k, and of those of rung k + 1: (copies, rounds, K-1)
        each.
        """
        gaps, slope = np.diff(self.beta), self.slope
        return gaps * slope[..., :-1], gaps * slope[..., 1:]


def simpson(samples: PathSamples) -> np.ndarray:
    """Thermodynamic integration (Eq. 24) by Simpson's rule, which for unequal or odd intervals is
    SciPy's.
    """
    rule = simpson_rule(np.eye(len(samples.beta)), x=samples.beta, axis=-1)
    return -samples.slope @ rule


def trapezoid(samples: PathSamples) -> np.ndarray:
    """Thermodynamic integration by trapezoids, corrected by the ends' slopes: d<f>/dbeta = -Var(f).

    The error of a trapezoid is h^2/12 (g'(b) - g'(a)) to leading order (Friel, Hurn and Wyse 2014).
    """
    gaps, slope = np.diff(samples.beta), samples.slope
    variance = np.square(slope - slope.mean(axis=(0, 1)))
    means = 0.5 * gaps * (slope[..., :-1] + slope[..., 1:])
    return -(means + gaps**2 / 12 * np.diff(variance, axis=-1)).sum(axis=-1)


def stepping_stone(samples: PathSamples) -> np.ndarray:
    """Exponential averages upwards: log Z_{k+1}/Z_k = log <exp(-w)>_k (Xie et al. 2011)."""
    return _log_mean(-samples.work[0]).sum(axis=-1)


def stepping_stone_back(samples: PathSamples) -> np.ndarray:
    """Exponential averages downwards: log Z_{k+1}/Z_k = -log <exp(w)>_{k+1}."""
    return -_log_mean(samples.work[1]).sum(axis=-1)


def bar(samples: PathSamples) -> np.ndarray:
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
    return -(free - (here - there) / np.where(slope > 0, slope, np.inf)).sum(axis=-1)


def mbar(samples: PathSamples) -> np.ndarray:
    """The multistate acceptance ratio (Shirts and Chodera 2008), solved by pymbar.

    log Z_i = log sum_n W_ni' with W_ni = e^{f_i - u_i(n)} / sum_k N_k e^{f_k - u_k(n)}, columns of
    which sum to one. Linearised, (1 - W'W N) df = the sum of a round's W, less its share.
    """
    slope, beta = samples.slope, samples.beta
    copies, rounds, rungs = slope.shape
    every = -(-copies * rounds * rungs // MBAR_COLUMNS)
    thinned = slope[:, ::every]
    number = thinned.shape[0] * thinned.shape[1]
    # Only differences of u between rungs count, and these are (beta_i - beta_j) f.
    reduced = (beta - beta[0])[:, None] * thinned.transpose(2, 0, 1).ravel()
    free = _solve_mbar(reduced, np.full(rungs, number))
    log_weights = free[:, None] - reduced
    log_weights -= logsumexp(log_weights, axis=0) + math.log(number)
    weights = np.exp(log_weights)
    response = np.eye(rungs) - number * weights @ weights.T
    # What each round contributes to the sums that should be one: (K, copies, rounds).
    sums = number * weights.reshape(rungs, rungs, copies, -1).sum(axis=1) - 1
    moved = np.linalg.pinv(response) @ sums.reshape(rungs, -1)
    influence = (moved[-1] - moved[0]).reshape(copies, -1)
    series = -(free[-1] - free[0]) + influence
    # A thinned round stands for those that it was taken from.
    return np.repeat(series, every, axis=1)[:, :rounds]


ESTIMATORS = {
    "bar": bar,
    "mbar": mbar,
    "stepping stone": stepping_stone,
    "stepping stone back": stepping_stone_back,
    "simpson": simpson,
    "trapezoid": trapezoid,
}
"""Name -> its series of influences."""


def log_ratio(series: np.ndarray, seed: int = 0) -> LogRatio:
    """The estimate of a series of influences (copies, rounds), with its errors."""
    mean, error = average(series)
    copies, rounds = series.shape
    between = series.mean(axis=1).std(ddof=1) / math.sqrt(copies) if copies > 1 else math.nan
    rng = np.random.default_rng(seed)
    means = [series[blocks(rng, copies, rounds)].mean() for _ in range(BOOTSTRAP)]
    return LogRatio(float(mean), float(error), float(between), float(np.std(means)))


def log_integrals(
    samples: PathSamples,
    known: np.ndarray,
    *,
    apart: bool = False,
    names: Iterable[str] = ESTIMATORS,
) -> dict[str, LogRatio]:
    """log Z_first by all estimators, or those named, from the `known` log Z_last, one number or one
    for each copy.

    `apart`: the copies' paths are not the same, and each is taken by itself.
    """
    parts = [replace(samples, phi=phi[None]) for phi in samples.phi] if apart else [samples]
    offsets = np.broadcast_to(np.asarray(known, np.float64), len(samples.phi))[:, None]
    return {
        name: log_ratio(offsets - np.concatenate([ESTIMATORS[name](part) for part in parts]))
        for name in names
    }


def disagreements(found: dict[str, LogRatio], headline_name: str = HEADLINE) -> list[str]:
    """Estimators that lie further from the headline than both errors allow: the run has not
    converged.
    """
    headline = found[headline_name]
    said = []
    for name, other in found.items():
        allowed = MAX_SPREAD * math.hypot(headline.error, other.error)
        if not abs(other.value - headline.value) <= allowed:
            said.append(
                f"{name} is {other.value - headline.value:+.2f} nats from {headline_name}, more than the {allowed:.2f} "
                "that the errors allow"
            )
    return said


@dataclass(frozen=True, eq=False)
class Quadratic:
    """exp(-(w-w0)' k (w-w0) / 2) times the prior's exp(-energy): its integral is known, and it can
    be drawn from.
    """

    centre: Weights
    """w0."""
    stiffness: Weights
    """k, one a weight."""
    prior: Prior

    @property
    def log_integral(self) -> float:
        """-F0 (Eqs. 19 and 23), over a box that need not be centred on w0, or with a Gaussian
        prior's energy.
        """
        if isinstance(self.prior, Gaussian):
            parts = jax.tree.map(_log_gaussian, self.centre, self.stiffness, self.prior.std)
        else:
            parts = jax.tree.map(_log_box, self.centre, self.stiffness, self.prior.half_width)
        return math.fsum(jax.tree.leaves(parts))

    def draw(self, key: Array) -> Weights:
        """One exact draw."""
        leaves, treedef = jax.tree.flatten(self.prior.like)
        keys = jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))
        if isinstance(self.prior, Gaussian):
            return jax.tree.map(_draw_gaussian, keys, self.centre, self.stiffness, self.prior.std)
        return jax.tree.map(_draw_box, keys, self.centre, self.stiffness, self.prior.half_width)


def _log_box(centre: Any, stiffness: Any, half_width: Any) -> float:
    """Sum of log of the integral of exp(-k (w-w0)^2 / 2) over |w| < h.

    With a, b = sqrt(k) (-h - w0), sqrt(k) (h - w0) it is sqrt(2 pi / k) (Phi(b) - Phi(a)). If w0
    lies inside, a < 0 < b and the difference is a sum; if not, both ends are in one tail, where it
    is taken between logarithms.
    """
    k, w0, h = (np.asarray(value, np.float64) for value in (stiffness, centre, half_width))
    root = np.sqrt(k)
    low, high = np.broadcast_arrays(root * (-h - w0), root * (h - w0))
    inside = 0.5 * (erf(high / math.sqrt(2)) - erf(low / math.sqrt(2)))
    # The tail towards minus infinity: mirror the one above.
    upper, lower = np.where(low > 0, -low, high), np.where(low > 0, -high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = log_ndtr(upper) + np.log1p(-np.exp(log_ndtr(lower) - log_ndtr(upper)))
        log_mass = np.where((low < 0) & (high > 0), np.log(inside), tail)
    return float(np.sum(0.5 * math.log(2 * math.pi) - np.log(root) + log_mass))


def _log_gaussian(centre: Any, stiffness: Any, std: Any) -> float:
    """Sum of log of the integral of exp(-k (w-w0)^2 / 2 - w^2 / 2 s^2), whose precision is p = k +
    1/s^2.
    """
    k, w0, s = (np.asarray(value, np.float64) for value in (stiffness, centre, std))
    precision = k + s**-2
    return float(
        np.sum(0.5 * np.log(2 * math.pi / precision) - 0.5 * k / (precision * s**2) * w0**2)
    )


def _draw_box(key: Array, centre: Any, stiffness: Any, half_width: Any) -> Array:
    centre, root = jnp.asarray(centre), jnp.sqrt(jnp.asarray(stiffness))
    low, high = root * (-half_width - centre), root * (half_width - centre)
    unit = jax.random.truncated_normal(key, low, high, centre.shape, centre.dtype)
    return jnp.clip(centre + unit / root, -half_width, half_width)


def _draw_gaussian(key: Array, centre: Any, stiffness: Any, std: Any) -> Array:
    centre, stiffness = jnp.asarray(centre), jnp.asarray(stiffness)
    precision = stiffness + 1 / jnp.square(std)
    unit = jax.random.normal(key, centre.shape, centre.dtype)
    return stiffness * centre / precision + unit / jnp.sqrt(precision)


def _log_mean(exponents: np.ndarray) -> np.ndarray:
    """Influences of log <exp(x)> over copies and rounds."""
    number = exponents.shape[0] * exponents.shape[1]
    log_mean = logsumexp(exponents, axis=(0, 1)) - math.log(number)
    return log_mean + np.exp(exponents - log_mean) - 1


def _bennett(forward: np.ndarray, backward: np.ndarray) -> float:
    """The root of G, which rises from -1 to 1, by bisection from where it must lie and Newton's
    steps.
    """
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


def _solve_mbar(reduced: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Free energies -log Z of the rungs, up to a constant."""
    with _quiet_pymbar() as pymbar:
        solved = pymbar.MBAR(reduced, numbers, solver_protocol="robust")
        return np.asarray(solved.f_k, np.float64)


@contextlib.contextmanager
def _quiet_pymbar() -> Iterator[Any]:
    """pymbar, without its greetings; JAX as it wants it, and afterwards as it was, which pymbar
    does not see to.
    """
    before = bool(jax.config.read("jax_enable_x64"))
    logging.getLogger("pymbar").setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            jax.numpy_rank_promotion("allow"),
            jax.numpy_dtype_promotion("standard"),
        ):
            warnings.simplefilter("ignore")
            import pymbar

            yield pymbar
    finally:
        jax.config.update("jax_enable_x64", before)
