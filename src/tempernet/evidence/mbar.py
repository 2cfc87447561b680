"""The multistate acceptance ratio: log ratios from the samples of all rungs together."""

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tempernet.evidence.samples import PathSamples

MBAR_COLUMNS = 40_000
"""Samples that MBAR is given at most; more are thinned."""


def mbar(samples: PathSamples) -> NDArray[np.float64]:
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
    whole: NDArray[np.float64] = np.repeat(series, every, axis=1)[:, :rounds]
    return whole


def _solve_mbar(reduced: NDArray[np.float64], numbers: NDArray[np.integer]) -> NDArray[np.float64]:
    """Free energies -log Z of the rungs up to a constant, (K,)."""
    with _quiet_pymbar() as pymbar:
        solved = pymbar.MBAR(reduced, numbers, solver_protocol="robust")
        return np.asarray(solved.f_k, np.float64)


@contextlib.contextmanager
def _quiet_pymbar() -> Iterator[Any]:
    """pymbar without its greetings, and with the JAX settings that it needs.

    Afterwards JAX is as it was, which pymbar does not see to.
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
