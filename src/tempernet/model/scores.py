"""Scores of networks on held-out examples: loss, accuracy, and the calibration of an ensemble.

Examples go through the network a piece at a time, so that the memory that a score takes stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tempernet.data import Examples
from tempernet.errors import check_count
from tempernet.model.networks import Network, Weights
from tempernet.model.target import Batch, check_network, class_axis, cross_entropy, make_batch

CALIBRATION_BINS = 15


class Score(NamedTuple):
    """Mean loss in nats an example, and the fraction classified correctly."""

    loss: Array
    accuracy: Array


def hold_out(network: Network, examples: Examples, piece: int = 1000) -> Batch:
    """A validation or test set cut into pieces of equal size, the last one padded.

    Only one piece is in flight at a time.

    Args:
        network: the network that will be scored; for a target, `target.network`.
        examples: normalised inputs (n, ...) and labels (n,).
        piece: most examples that a piece has.

    Returns:
        A batch whose arrays have a new leading axis of pieces.
    """
    classes = check_network(network, examples)
    check_count("piece", piece)
    piece = min(piece, len(examples))
    batches = []
    for first in range(0, len(examples), piece):
        rows = slice(first, first + piece)
        some = Examples(examples.x[rows], examples.y[rows])
        batches.append(make_batch(network, some, classes, pad_to=piece))
    pieces: Batch = jax.tree.map(lambda *parts: np.stack(parts), *batches)
    return pieces


def score_fn(network: Network) -> Callable[[Weights, Batch], Score]:
    """Mean loss and accuracy of one replica on what `hold_out` prepared."""

    def of_piece(weights: Weights, batch: Batch) -> Score:
        return _sums(network, network.logits(weights, batch.inputs), batch)

    def fn(weights: Weights, pieces: Batch) -> Score:
        return _mean(jax.lax.map(lambda batch: of_piece(weights, batch), pieces), pieces)

    return fn


def predict_fn(network: Network) -> Callable[[Weights, Batch], tuple[Score, Array]]:
    """As `score_fn`, and the softmax outputs (examples with padding, classes)."""
    axis = class_axis(network)

    def of_piece(weights: Weights, batch: Batch) -> tuple[Score, Array]:
        scores = network.logits(weights, batch.inputs)
        probabilities = jnp.moveaxis(jax.nn.softmax(scores, axis=axis), axis, -1)
        return _sums(network, scores, batch), probabilities

    def fn(weights: Weights, pieces: Batch) -> tuple[Score, Array]:
        sums, probabilities = jax.lax.map(lambda batch: of_piece(weights, batch), pieces)
        return _mean(sums, pieces), probabilities.reshape(-1, probabilities.shape[-1])

    return fn


def _sums(network: Network, scores: Array, batch: Batch) -> Score:
    """Sums of loss and of correct answers over the examples of a piece."""
    axis = class_axis(network)
    correct = jnp.argmax(scores, axis=axis) == jnp.argmax(batch.one_hot, axis=axis)
    loss = cross_entropy(scores, batch.one_hot, axis)
    return Score(jnp.sum(batch.weight * loss), jnp.sum(jnp.where(correct, batch.weight, 0)))


def _mean(sums: Score, pieces: Batch) -> Score:
    num_examples = jnp.sum(pieces.weight)
    return Score(jnp.sum(sums.loss) / num_examples, jnp.sum(sums.accuracy) / num_examples)


class EnsembleScore(NamedTuple):
    """Loss, accuracy and calibration error of an average prediction, each (...,)."""

    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    calibration: NDArray[np.float64]


def ensemble_score(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer]
) -> EnsembleScore:
    """Score average predictions (..., examples, classes) against labels (examples,)."""
    examples = np.arange(len(labels))
    of_truth = probabilities[..., examples, labels]
    tiny = np.finfo(probabilities.dtype).tiny
    loss = -np.log(np.maximum(of_truth, tiny)).mean(axis=-1)
    correct = probabilities.argmax(axis=-1) == labels
    calibration = calibration_error(probabilities.max(axis=-1), correct)
    return EnsembleScore(loss, correct.mean(axis=-1), calibration)


def calibration_error(
    confidence: NDArray[np.floating], correct: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Expected calibration error: |accuracy - confidence| averaged over 15 bins of confidence.

    Args:
        confidence: the largest class probability of each example, (..., examples).
        correct: whether its class is the right one, (..., examples).

    Returns:
        One number an ensemble, (...,).
    """
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gap = correct.astype(np.float64) - confidence
    error = np.zeros(confidence.shape[:-1])
    for index in range(CALIBRATION_BINS):
        error += np.abs(np.where(bins == index, gap, 0).mean(axis=-1))
    return error
