"""Priors over the weights of one replica: the paper's uniform box, and a Gaussian.

Both offer exact draws and a log density. The sampler sees a prior as two things: walls at
`half_width` (None for a Gaussian) and an untempered `energy(weights)`, whose gradient joins the
force (zero inside a box).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.errors import ConfigError
from tempernet.model.networks import Network, Weights, cut, template


@dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform in |w_i| < half_width_i (Eq. 6; half_width = sigma/2).

    `half_width` has a number, or an array that broadcasts, for each leaf of `like`, the shapes of
    the weights.
    """

    half_width: Weights
    like: Weights
    mean_square = 1 / 3
    """Of a weight in units of `scale`, under the prior."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", per_leaf("half_width", self.half_width, self.like))

    @classmethod
    def for_network(cls, network: Network, factor: Any = 50.0) -> UniformBox:
        """The paper's box, sigma_i = 2 factor / sqrt(k_i): `factor` times the initialisation (Eq.
        11).

        `factor` is one number (50 for M3 and M1, 1000 for M3star) or one for each layer, in general
        any prefix of the weights' pytree.
        """
        like = template(network)
        factors = per_leaf("factor", factor, like)
        return cls(jax.tree.map(lambda f, k: f / np.sqrt(k), factors, network.fan_in()), like)

    @property
    def scale(self) -> Weights:
        """The unit in which slow observables are given: the half-width."""
        return self.half_width

    @property
    def log_volume(self) -> float:
        """log of the product of sigma_i, in nats."""
        return _sum_over_weights(lambda h: np.log(2 * h), self.half_width, self.like)

    def draw(self, key: Array) -> Weights:
        """One exact draw."""
        return _draw(key, self.like, self.half_width, jax.random.uniform, minval=-1.0, maxval=1.0)

    def energy(self, weights: Weights) -> Array:
        """Minus the log density up to a constant: zero, since walls are not a force."""
        return jnp.zeros((), jnp.result_type(*jax.tree.leaves(weights)))

    def contains(self, weights: Weights) -> Array:
        """Whether every weight lies within the walls."""
        inside = jax.tree.map(lambda w, h: jnp.all(jnp.abs(w) <= h), weights, self.half_width)
        return jnp.all(jnp.stack(jax.tree.leaves(inside)))

    def log_density(self, weights: Weights) -> Array:
        """Normalised log density: -log_volume inside, -inf outside."""
        return jnp.where(self.contains(weights), -self.log_volume, -jnp.inf)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Independent normal weights of mean zero and standard deviation `std`, one for each leaf of
    `like`.
    """

    std: Weights
    like: Weights
    mean_square = 1.0
    """Of a weight in units of `scale`, under the prior."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", per_leaf("std", self.std, self.like))

    @classmethod
    def for_network(cls, network: Network, std: Any = 1.0) -> Gaussian:
        """A Gaussian over a network's weights; `std` is one number or a prefix of the weights'
        pytree.
        """
        return cls(std, template(network))

    @property
    def scale(self) -> Weights:
        """The unit in which slow observables are given: the standard deviation."""
        return self.std

    @property
    def half_width(self) -> None:
        """A Gaussian has no walls."""
        return

    @property
    def log_volume(self) -> float:
        """log of the integral of exp(-energy), in nats: the sum of log(std_i sqrt(2 pi))."""
        return _sum_over_weights(lambda s: np.log(s * math.sqrt(2 * math.pi)), self.std, self.like)

    def draw(self, key: Array) -> Weights:
        """One exact draw."""
        return _draw(key, self.like, self.std, jax.random.normal)

    def energy(self, weights: Weights) -> Array:
        """Minus the log density up to a constant, sum of w_i^2 / (2 std_i^2)."""
        terms = jax.tree.map(lambda w, s: 0.5 * jnp.sum(jnp.square(w / s)), weights, self.std)
        return sum(
            jax.tree.leaves(terms), start=jnp.zeros((), jnp.result_type(*jax.tree.leaves(weights)))
        )

    def contains(self, weights: Weights) -> Array:
        """Everywhere."""
        del weights
        return jnp.bool_(True)

    def log_density(self, weights: Weights) -> Array:
        """Normalised log density."""
        return -self.energy(weights) - self.log_volume


Prior = UniformBox | Gaussian


def per_leaf(name: str, values: Any, like: Weights) -> Weights:
    """Broadcast a prefix pytree of positive numbers to the leaves of `like`."""
    try:
        full = jax.tree.broadcast(values, like)
    except ValueError as error:
        raise ConfigError(
            f"{name} must be one number or fit the weights' structure {jax.tree.structure(like)}, got {values!r}"
        ) from error

    def check(value: Any, leaf: Any) -> np.ndarray:
        try:
            array = np.asarray(value, dtype=np.dtype(leaf.dtype))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{name} must be positive numbers, got {value!r}") from error
        try:
            fits = np.broadcast_shapes(array.shape, leaf.shape) == tuple(leaf.shape)
        except ValueError:
            fits = False
        if not fits:
            raise ConfigError(
                f"{name} of shape {array.shape} does not fit weights of shape {leaf.shape}"
            )
        if not np.all(np.isfinite(array) & (array > 0)):
            raise ConfigError(f"{name} must be positive and finite, got {value!r}")
        return array

    return jax.tree.map(check, full, like)


def _sum_over_weights(
    fn: Callable[[np.ndarray], np.ndarray], scale: Weights, like: Weights
) -> float:
    total = jax.tree.map(
        lambda s, leaf: float(np.sum(np.broadcast_to(fn(np.asarray(s, np.float64)), leaf.shape))),
        scale,
        like,
    )
    return math.fsum(jax.tree.leaves(total))


def _draw(
    key: Array, like: Weights, scale: Weights, sampler: Callable[..., Array], **bounds: float
) -> Weights:
    leaves = jax.tree.leaves(like)
    flat = sampler(key, (sum(leaf.size for leaf in leaves),), jnp.result_type(*leaves), **bounds)
    return jax.tree.map(lambda unit, s: unit * s, cut(flat, like), scale)
