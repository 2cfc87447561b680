"""Prediction by an ensemble: the mean of the softmax outputs of several networks, and its score.

Weights have a leading axis of members. One member and one piece of the examples are in flight at a
time, so the memory that it takes depends on neither number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tempernet.data import Examples
from tempernet.errors import NumericsError
from tempernet.model.networks import Network, Weights
from tempernet.model.scores import (
    EnsembleScore,
    Score,
    ensemble_score,
    hold_out,
    predict_fn,
    score_fn,
)
from tempernet.model.target import Batch


class Prediction(NamedTuple):
    """Class probabilities of an ensemble, and of how many members."""

    probabilities: NDArray[np.float64]
    """(examples, classes)."""
    members: int

    @property
    def classes(self) -> NDArray[np.int64]:
        """The most probable class of each example, (examples,)."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def score(self, labels: NDArray[np.integer]) -> EnsembleScore:
        """Loss, accuracy and calibration error against labels (examples,)."""
        return ensemble_score(self.probabilities, labels)

    def table(self, labels: NDArray[np.integer] | None = None) -> str:
        """CSV: index, p_0, p_1, ..., predicted, and the label if labels (examples,) are given."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heads = [f"p_{q}" for q in range(self.probabilities.shape[1])]
        writer.writerow(["index", *heads, "predicted", *([] if labels is None else ["label"])])
        for i, (row, found) in enumerate(zip(self.probabilities, self.classes, strict=True)):
            # Seven digits: what a float32 softmax has.
            numbers = [f"{p:.7g}" for p in row]
            writer.writerow([i, *numbers, found, *([] if labels is None else [labels[i]])])
        return text.getvalue()


def predict(network: Network, weights: Weights, inputs: NDArray[np.float32]) -> Prediction:
    """The mean softmax of all members on new inputs.

    Args:
        network: of the members.
        weights: a pytree of arrays with a leading axis of members.
        inputs: normalised as the training examples were, (examples, ...).
    """
    held_out = hold_out(network, Examples(inputs, np.zeros(len(inputs), np.int32)))
    sums = np.asarray(jax.jit(_summed_fn(network))(_on_device(weights), held_out), np.float64)
    members = len(jax.tree.leaves(weights)[0])
    mean = sums[np.asarray(held_out.weight).reshape(-1) > 0] / members
    if not np.isfinite(mean).all():
        raise NumericsError(
            "a network's prediction is not a number: its weights or the data are too large"
        )
    return Prediction(mean, members)


def scores(network: Network, weights: Weights, examples: Examples) -> Score:
    """Loss and accuracy of each member on examples, (members,) each.

    Args:
        network: of the members.
        weights: a pytree of arrays with a leading axis of members.
        examples: normalised inputs (n, ...) and labels (n,).
    """
    one, held_out = score_fn(network), hold_out(network, examples)

    def every(weights: Weights, held_out: Batch) -> Score:
        mapped: Score = jax.lax.map(lambda member: one(member, held_out), weights)
        return mapped

    found: Score = jax.device_get(jax.jit(every)(_on_device(weights), held_out))
    return found


def _summed_fn(network: Network) -> Callable[[Weights, Batch], Array]:
    """The sum of the softmax outputs of all members: (examples with padding, classes)."""
    one = predict_fn(network)

    def total(weights: Weights, held_out: Batch) -> Array:
        first = jax.tree.map(lambda leaf: leaf[0], weights)
        zero = jnp.zeros_like(jax.eval_shape(one, first, held_out)[1])

        def add(total: Array, member: Weights) -> tuple[Array, None]:
            return total + one(member, held_out)[1], None

        return jax.lax.scan(add, zero, weights)[0]

    return total


def _on_device(weights: Weights) -> Weights:
    return jax.tree.map(jnp.asarray, weights)
