"""Priors over the weights of one replica: the paper's uniform box, and a Gaussian.

Both offer exact draws and a log density. The sampler sees a prior as two things: walls at
`half_width` (None for a Gaussian) and an untempered `energy(weights)`, whose gradient joins the
force (zero inside a box).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.errors import ConfigError, shown
from tempernet.model.networks import Network, Weights, cut, must_be_network, template

PerLeaf = Weights
"""A number, or a prefix of the weights' pytree with numbers or arrays that broadcast."""


@dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform in |w_i| < half_width_i (Eq. 6; half_width = sigma/2).

    Args:
        half_width: a number, or an array that broadcasts, for each leaf of `like`; one number or a
            prefix of the pytree stands for all leaves below it.
        like: the shapes of one replica's weights, a pytree of arrays or of what has their shape and
            dtype.
    """

    half_width: PerLeaf
    like: Weights
    mean_square = 1 / 3
    """Mean square of a weight in units of `scale`, under the prior."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", per_leaf("half_width", self.half_width, self.like))

    @classmethod
    def for_network(cls, network: Network, factor: PerLeaf = 50.0) -> UniformBox:
        """The paper's box, sigma_i = 2 factor / sqrt(k_i) (Eq. 11).

        Args:
            network: the network whose weights the prior is over.
            factor: half-width in units of the initialisation's: one number (50 for M3 and M1, 1000
                for M3star) or one for each layer, in general any prefix of the weights' pytree.
        """
        must_be_network(network)
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
    """Independent normal weights of mean zero.

    Args:
        std: standard deviation, a number or an array that broadcasts for each leaf of `like`; one
            number or a prefix of the pytree stands for all leaves below it.
        like: the shapes of one replica's weights, a pytree of arrays or of what has their shape and
            dtype.
    """

    std: PerLeaf
    like: Weights
    mean_square = 1.0
    """Mean square of a weight in units of `scale`, under the prior."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", per_leaf("std", self.std, self.like))

    @classmethod
    def for_network(cls, network: Network, std: PerLeaf = 1.0) -> Gaussian:
        """A Gaussian over a network's weights.

        Args:
            network: the network whose weights the prior is over.
            std: standard deviation, one number or a prefix of the weights' pytree.
        """
        must_be_network(network)
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
        zero: Array = jnp.zeros((), jnp.result_type(*jax.tree.leaves(weights)))
        total: Array = sum(jax.tree.leaves(terms), start=zero)
        return total

    def contains(self, weights: Weights) -> Array:
        """True: a Gaussian has no walls."""
        del weights
        everywhere: Array = jnp.bool_(True)
        return everywhere

    def log_density(self, weights: Weights) -> Array:
        """Normalised log density."""
        return -self.energy(weights) - self.log_volume


Prior = UniformBox | Gaussian


def per_leaf(name: str, values: PerLeaf, like: Weights) -> Weights:
    """Broadcast a prefix pytree of positive numbers to the leaves of `like`.

    Args:
        name: what the values are called in a complaint about them.
        values: a number or a prefix of `like` with numbers or arrays.
        like: a pytree of arrays, or of what has their shape and dtype.

    Returns:
        The values as arrays of the leaves' dtype, which broadcast to the leaves' shapes.
    """
    _check_like(name, like)
    try:
        full = jax.tree.broadcast(values, like)
    except ValueError as error:
        raise ConfigError(
            f"{name} must be one number or fit the weights' structure {jax.tree.structure(like)}, "
            f"got {values!r}"
        ) from error
    return jax.tree.map(lambda value, leaf: _positive(name, value, leaf), full, like)


def _check_like(name: str, like: Weights) -> None:
    """The shapes that a prior is over must be arrays, or what has their shape and dtype."""
    leaves = jax.tree.leaves(like)
    bad = [leaf for leaf in leaves if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))]
    if bad or not leaves:
        given = shown(bad[0]) if bad else "none"
        raise ConfigError(
            f"like, the shapes of the weights that {name} is for, must be a pytree of arrays, "
            f"got {given}: give the weights of one replica, or use for_network(network)"
        )


def _positive(name: str, value: object, leaf: jax.ShapeDtypeStruct) -> np.ndarray:
    """One value as an array that broadcasts to the shape of its leaf."""
    try:
        array = np.asarray(value, dtype=np.dtype(leaf.dtype))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} must be positive numbers, got {shown(value)}") from error
    try:
        fits = np.broadcast_shapes(array.shape, leaf.shape) == tuple(leaf.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(
            f"{name} of shape {array.shape} does not fit weights of shape {leaf.shape}"
        )
    if not np.all(np.isfinite(array) & (array > 0)):
        raise ConfigError(f"{name} must be positive and finite, got {shown(value)}")
    return array


def _sum_over_weights(
    fn: Callable[[np.ndarray], np.ndarray], scale: Weights, like: Weights
) -> float:
    """Sum of a function of each weight's scale over all weights."""

    def of_leaf(s: np.ndarray, leaf: jax.ShapeDtypeStruct) -> float:
        values = fn(np.asarray(s, np.float64))
        return float(np.sum(np.broadcast_to(values, leaf.shape)))

    return math.fsum(jax.tree.leaves(jax.tree.map(of_leaf, scale, like)))


def _draw(
    key: Array, like: Weights, scale: Weights, sampler: Callable[..., Array], **bounds: float
) -> Weights:
    leaves = jax.tree.leaves(like)
    flat = sampler(key, (sum(leaf.size for leaf in leaves),), jnp.result_type(*leaves), **bounds)
    return jax.tree.map(lambda unit, s: unit * s, cut(flat, like), scale)
