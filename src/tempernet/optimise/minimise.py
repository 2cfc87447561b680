"""Minimisation of E from one start, by Alg. 3 as printed or by FIRE.

The engine runs many starts at once. Each start stops by itself at E <= `tolerance` (0 by
default: in float32 a network that is certain of every training image has an energy of exactly 0),
and its gradient evaluations are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.errors import ConfigError, check_count, refuse
from tempernet.kernels.base import Point
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights
from tempernet.optimise import fire
from tempernet.optimise.alg3 import alg3_step
from tempernet.optimise.fire import fire_step
from tempernet.optimise.search import Search, StepFn


@dataclass(frozen=True)
class Minimiser:
    """How to minimise: the method, its first time step, and when to stop."""

    method: Literal["fire", "alg3"] = "fire"
    """"fire", or "alg3" for the paper's."""
    time_step: float = 0.01
    """The first one; both methods adapt it."""
    max_gradients: int = 1000
    """Gradient evaluations that a start may take."""
    tolerance: float = 0.0
    """The energy to stop at."""

    def __post_init__(self) -> None:
        if self.method not in ("fire", "alg3"):
            raise ConfigError(f'method must be "fire" or "alg3", got {self.method!r}')
        if not _is_number(self.time_step) or not 0 < self.time_step < math.inf:
            refuse("time_step", self.time_step, "positive and finite")
        check_count("max_gradients", self.max_gradients)
        if not _is_number(self.tolerance) or math.isnan(self.tolerance):
            refuse("tolerance", self.tolerance, "a number")

    def run(
        self, start: Weights, evaluate_fn: EvaluateFn, half_width: Weights | None = None
    ) -> Minimum:
        """Minimise from one start.

        Args:
            start: weights of one replica.
            evaluate_fn: weights -> their energy and its gradient.
            half_width: of the prior's box, for each leaf, or None. FIRE stays within these walls;
                Alg. 3 as printed does not know them.
        """
        point = evaluate_fn(start)
        step_fn: StepFn = alg3_step if self.method == "alg3" else fire_step
        zero = jax.tree.map(jnp.zeros_like, start)
        time_step = jnp.full_like(point.energy, self.time_step)
        initial = Search(
            point,
            zero,
            time_step,
            jnp.full_like(time_step, jnp.inf),
            jnp.full_like(time_step, fire.MIXING),
            jnp.int32(0),
            jnp.int32(1),
        )

        def unfinished(search: Search) -> Array:
            return (search.point.energy > self.tolerance) & (search.gradients < self.max_gradients)

        last = jax.lax.while_loop(
            unfinished, lambda search: step_fn(search, evaluate_fn, half_width), initial
        )
        return Minimum(last.point, last.gradients, last.point.energy <= self.tolerance)


class Minimum(NamedTuple):
    """Where a start ended; with a leading axis where many were run."""

    point: Point
    gradients: Array
    """Gradient evaluations it took."""
    reached: Array
    """Whether its energy came down to the tolerance."""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
