"""Validation scores of the replicas of an engine of one rung: what the stopping rule looks at."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.data import Examples
from tempernet.errors import ConfigError, check_callable
from tempernet.model.networks import Weights
from tempernet.model.scores import Score, hold_out
from tempernet.model.target import Batch
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State

ScoreFn = Callable[[State], Score]
"""Validation loss and accuracy of every replica: (replicas,) each."""


def make_score_fn(engine: Engine, validation: Examples | Callable[[Weights], Array]) -> ScoreFn:
    """Scores of all replicas on examples, or by a loss of one's own, which has no accuracy.

    Args:
        engine: of one rung.
        validation: examples for a target with a network, or a function from the weights of one
            replica to its loss, a scalar.
    """
    if isinstance(validation, Examples):
        if engine.target.network is None:
            raise ConfigError(
                "this target has no network: give a loss of its weights as validation, not examples"
            )
        return held_out_score_fn(engine, hold_out(engine.target.network, validation))
    check_callable("validation", validation, "Examples or a function of weights")
    loss_fn = jax.jit(jax.vmap(validation))

    def score_fn(state: State) -> Score:
        losses = loss_fn(engine.weights_at(state, 0))
        return Score(losses, jnp.full_like(losses, jnp.nan))

    return score_fn


def held_out_score_fn(engine: Engine, held_out: Batch) -> ScoreFn:
    """Scores of all replicas on what `hold_out` prepared."""

    def score_fn(state: State) -> Score:
        by_rung = engine.score(state, held_out)
        return Score(by_rung.loss[:, 0], by_rung.accuracy[:, 0])

    return score_fn
