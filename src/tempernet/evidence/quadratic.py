"""The quadratic that a bridge leads to (Sec. 4): its integral is known, and it can be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.special import erf, log_ndtr

from tempernet.model.networks import Weights
from tempernet.model.priors import Gaussian, Prior

Numbers = float | Array | NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """exp(-(w-w0)' k (w-w0) / 2) times the prior's exp(-energy), with a known integral."""

    centre: Weights
    """w0, a pytree of the shapes of one replica's weights."""
    stiffness: Weights
    """k, one value for each weight."""
    prior: Prior

    @property
    def log_integral(self) -> float:
        """log of the integral, -F0 (Eqs. 19 and 23).

        The integral is over a box that need not be centred on w0, or has a Gaussian prior's energy.
        """
        if isinstance(self.prior, Gaussian):
            parts = jax.tree.map(_log_gaussian, self.centre, self.stiffness, self.prior.std)
        else:
            parts = jax.tree.map(_log_box, self.centre, self.stiffness, self.prior.half_width)
        return math.fsum(jax.tree.leaves(parts))

    def draw(self, key: Array) -> Weights:
        """One exact draw of weights."""
        leaves, treedef = jax.tree.flatten(self.prior.like)
        keys = jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))
        if isinstance(self.prior, Gaussian):
            return jax.tree.map(_draw_gaussian, keys, self.centre, self.stiffness, self.prior.std)
        return jax.tree.map(_draw_box, keys, self.centre, self.stiffness, self.prior.half_width)


def _log_box(centre: Numbers, stiffness: Numbers, half_width: Numbers) -> float:
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


def _log_gaussian(centre: Numbers, stiffness: Numbers, std: Numbers) -> float:
    """Sum of log of the integral of exp(-k (w-w0)^2 / 2 - w^2 / 2 s^2).

    The precision of its integrand is p = k + 1/s^2.
    """
    k, w0, s = (np.asarray(value, np.float64) for value in (stiffness, centre, std))
    precision = k + s**-2
    return float(
        np.sum(0.5 * np.log(2 * math.pi / precision) - 0.5 * k / (precision * s**2) * w0**2)
    )


def _draw_box(key: Array, centre: Numbers, stiffness: Numbers, half_width: Numbers) -> Array:
    centre, root = jnp.asarray(centre), jnp.sqrt(jnp.asarray(stiffness))
    low, high = root * (-half_width - centre), root * (half_width - centre)
    unit = jax.random.truncated_normal(key, low, high, centre.shape, centre.dtype)
    return jnp.clip(centre + unit / root, -half_width, half_width)


def _draw_gaussian(key: Array, centre: Numbers, stiffness: Numbers, std: Numbers) -> Array:
    centre, stiffness = jnp.asarray(centre), jnp.asarray(stiffness)
    precision = stiffness + 1 / jnp.square(std)
    unit = jax.random.normal(key, centre.shape, centre.dtype)
    return stiffness * centre / precision + unit / jnp.sqrt(precision)
