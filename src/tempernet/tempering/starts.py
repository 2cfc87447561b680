"""Where replicas start: minimised weights, draws of the prior, or both side by side."""

from __future__ import annotations

from typing import Literal, get_args

import jax
import numpy as np
from jax import Array

from tempernet.errors import ConfigError
from tempernet.model.networks import Weights
from tempernet.optimise.minimise import Minimiser
from tempernet.tempering.engine import Engine

Start = Literal["apart", "annealed", "minimised", "prior"]
"""The starts by the names used in settings."""


def starting_weights(engine: Engine, start: Start, minimiser: Minimiser | None = None) -> Weights:
    """Weights of all replicas, leading axis R.

    Args:
        engine: of the replicas.
        start: where they begin. "minimised" and "prior" are what they say; "apart" starts every
            second copy of the ladder from minimised weights and the others from the prior.
            "annealed" begins like "apart": population annealing then takes these weights from the
            hottest rung to all the others (see `population`).
        minimiser: what minimises; None for the default.
    """
    if start not in get_args(Start):
        raise ConfigError(f"start must be one of {', '.join(get_args(Start))}, got {start!r}")
    from_prior = engine.prior_weights()
    if start == "prior":
        return from_prior
    minimised = engine.minimise(engine.init_weights(), minimiser).point.weights
    if start == "minimised":
        return minimised
    odd_copy = np.repeat(np.arange(engine.copies) % 2 == 1, engine.num_rungs)
    return every_second(odd_copy, minimised, from_prior)


def every_second(second: np.ndarray, first_of: Weights, second_of: Weights) -> Weights:
    """Weights of two kinds of start, leading axis R.

    Args:
        second: which replicas take theirs from `second_of`, (R,).
        first_of, second_of: weights of all replicas, leading axis R.
    """

    def chosen(first: Array | np.ndarray, other: Array | np.ndarray) -> np.ndarray:
        return np.where(second.reshape(-1, *[1] * (np.ndim(other) - 1)), other, first)

    return jax.tree.map(chosen, first_of, second_of)
