"""The reduced potential of a rung, u = sum_m c_m phi_m(w) + prior energy, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.kernels.base import Point
from tempernet.model.networks import Weights
from tempernet.model.priors import Prior

EvaluateFn = Callable[[Weights], Point]
"""Weights -> the point with its energy and gradient: the one expensive call."""
TermsFn = Callable[[Weights, Array], Array]
"""(weights of one replica, its E) -> its energy terms phi, shape (M,)."""


@dataclass(frozen=True, eq=False)
class Potential:
    """How energy, energy terms and prior of one replica make a potential at any rung."""

    evaluate_fn: EvaluateFn
    terms_fn: TermsFn
    prior: Prior

    def value(self, weights: Weights, energy: Array, coefficients: Array) -> Array:
        """u = sum_m c_m phi_m(w) + prior energy, at a rung's coefficients (M,)."""
        return jnp.dot(coefficients, self.terms_fn(weights, energy)) + self.prior.energy(weights)

    def slope(self, point: Point, coefficients: Array) -> Weights:
        """grad u = du/dw + du/dE grad E, from the gradient of E that the point holds."""
        direct, by_energy = jax.grad(self.value, argnums=(0, 1))(
            point.weights, point.energy, coefficients
        )
        return jax.tree.map(lambda d, g: d + by_energy * g, direct, point.gradient)
