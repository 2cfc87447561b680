"""Where a minimisation is, and what one step of any method is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from tempernet.kernels.base import Point
from tempernet.kernels.potential import EvaluateFn
from tempernet.model.networks import Weights


class Search(NamedTuple):
    """One start on its way down; scalars but for the point and the momentum."""

    point: Point
    """Weights, their energy and its gradient."""
    momentum: Weights
    time_step: Array
    largest: Array
    """The largest time step that FIRE will take; inf until it has learnt the scale."""
    mixing: Array
    """How much FIRE steers the momentum towards the force."""
    downhill: Array
    """Steps in a row that went downhill, for FIRE."""
    gradients: Array
    """Gradient evaluations so far."""


StepFn = Callable[[Search, EvaluateFn, Weights | None], Search]
"""(search, evaluate_fn, half-width of the prior's box or None) -> the search one gradient later."""
