"""The density that is sampled: an energy E(w), a prior, and what the energy reads.

A `Target` is the same thing whether its energy is the cross-entropy of a network on images (Eq. 9)
or a user's own function of a few numbers, so everything that samples takes any of them. Held-out
loss and accuracy of a classifier are worked out here too, a piece of the data at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.data import Examples
from tempernet.errors import ConfigError, DataError
from tempernet.model.networks import Network, Weights, template
from tempernet.model.priors import Prior


class Batch(NamedTuple):
    """Examples as the energy reads them. Examples lie along the network's `example_axis`."""

    inputs: Any
    one_hot: Any
    weight: Any
    """1 for an example that counts, 0 for padding: (examples,)."""


@dataclass(frozen=True, eq=False)
class Target:
    """E(w), the prior, and the data that E reads.

    `energy_fn(weights, data)` is the energy of one replica; where `data` has examples it is a sum
    over them, so that parts of the data may be summed on different devices. `init_fn(key)` draws
    starting weights.
    """

    energy_fn: Callable[[Weights, Any], Array]
    prior: Prior
    init_fn: Callable[[Array], Weights]
    data: Any = ()
    network: Network | None = None

    @classmethod
    def classifier(cls, network: Network, examples: Examples, prior: Prior) -> Target:
        """The sum of cross-entropies of a network over labelled examples (Eq. 9)."""
        classes = check_network(network, examples)
        _check_prior(network, prior)
        batch = make_batch(network, examples, classes)
        return cls(classifier_energy(network), prior, network.init, batch, network)

    @classmethod
    def from_energy(
        cls,
        energy_fn: Callable[[Weights], Array],
        prior: Prior,
        init_fn: Callable[[Array], Weights] | None = None,
    ) -> Target:
        """Any energy function of the weights; starts from draws of the prior unless `init_fn` is
        given.
        """
        return cls(lambda weights, data: energy_fn(weights), prior, init_fn or prior.draw)

    def energy(self, weights: Weights) -> Array:
        """E(w) of one replica on all the data."""
        return self.energy_fn(weights, self.data)

    @property
    def num_examples(self) -> int:
        """Number of training examples; 0 for an energy without data."""
        return len(self.data.weight) if self.network else 0

    def split_data(self, parts: int) -> tuple[Any, Any]:
        """The data padded to a multiple of `parts` examples, and the example axis of each leaf."""
        if self.network is None:
            raise ConfigError(
                f"this target has no examples to split over {parts} devices: data_devices must be 1"
            )
        axes = Batch(self.network.example_axis, self.network.example_axis, 0)
        extra = -self.num_examples % parts

        def pad(leaf: Any, axis: int) -> np.ndarray:
            width = [(0, 0)] * leaf.ndim
            width[axis] = (0, extra)
            return np.pad(leaf, width)

        return jax.tree.map(pad, self.data, axes), axes


def classifier_energy(network: Network) -> Callable[[Weights, Batch], Array]:
    """E(w) = - sum_i log softmax(logits(x_i))[t_i] (Eq. 9), padding left out."""

    def energy_fn(weights: Weights, batch: Batch) -> Array:
        scores = network.logits(weights, batch.inputs)
        return jnp.sum(batch.weight * cross_entropy(scores, batch.one_hot, class_axis(network)))

    return energy_fn


def cross_entropy(scores: Array, one_hot: Array, axis: int) -> Array:
    """Cross-entropy of each example, in nats; `axis` is that of the classes.

    Written as log sum_q exp(z_q - z_t): for a confident network the terms of the sum are small
    beside the 1 of q = t, so that a loss near 0 keeps an absolute error of one rounding, whatever
    the size of z.
    """
    margins = scores - jnp.sum(one_hot * scores, axis=axis, keepdims=True)
    return jax.nn.logsumexp(margins, axis=axis)


def uninformed_loss(classes: int) -> float:
    """Loss an example of the classifier that gives every class the same probability: log(classes)."""
    return math.log(classes)


def class_axis(network: Network) -> int:
    """The axis of the classes in a network's scores, which have two axes."""
    return 0 if network.example_axis == -1 else -1


def make_batch(
    network: Network, examples: Examples, classes: int, pad_to: int | None = None
) -> Batch:
    """Lay examples out for a network; `pad_to` adds examples of weight 0."""
    extra = 0 if pad_to is None else pad_to - len(examples)
    inputs = np.concatenate(
        [examples.x, np.zeros((extra, *examples.x.shape[1:]), examples.x.dtype)]
    )
    one_hot = np.zeros((len(inputs), classes), inputs.dtype)
    one_hot[np.arange(len(examples)), examples.y] = 1
    weight = np.concatenate([np.ones(len(examples), inputs.dtype), np.zeros(extra, inputs.dtype)])
    axis = network.example_axis
    return Batch(
        np.ascontiguousarray(np.moveaxis(inputs, 0, axis)),
        np.ascontiguousarray(np.moveaxis(one_hot, 0, axis)),
        weight,
    )


def check_network(network: Network, examples: Examples) -> int:
    """Number of classes of a network that fits the examples; a clear error for one that does not."""
    if len(examples) == 0:
        raise DataError("there are no examples: at least one is needed")
    if network.example_axis not in (0, -1):
        raise ConfigError(f"a network's example_axis must be 0 or -1, got {network.example_axis}")
    axis = network.example_axis
    shape = list(examples.x.shape[1:])
    shape.insert(0 if axis == 0 else len(shape), len(examples))
    inputs = jax.ShapeDtypeStruct(tuple(shape), examples.x.dtype)
    try:
        scores = jax.eval_shape(
            lambda key, x: network.logits(network.init(key), x), jax.random.key(0), inputs
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the network {network} cannot read inputs of shape {examples.x.shape[1:]} "
            f"({math.prod(examples.x.shape[1:])} numbers an example): {str(error).splitlines()[0]}"
        ) from error
    if scores.ndim != 2 or scores.shape[axis] != len(examples):
        wanted = "(examples, classes)" if axis == 0 else "(classes, examples)"
        raise ConfigError(
            f"a network's scores must be {wanted}, got shape {scores.shape} for {len(examples)} examples"
        )
    classes = scores.shape[class_axis(network)]
    low, high = int(examples.y.min()), int(examples.y.max())
    if low < 0 or high >= classes:
        raise DataError(
            f"labels must lie in 0..{classes - 1}, the network's {classes} classes, got {low if low < 0 else high}"
        )
    return classes


def _check_prior(network: Network, prior: Prior) -> None:
    """The prior must be over this network's weights, and a box must hold the initial ones; checked
    on 8 draws.
    """
    wanted, given = _shapes(template(network)), _shapes(prior.like)
    if wanted != given:
        raise ConfigError(
            f"the prior is over weights of shapes {given}, the network has {wanted}; build the prior with "
            f"{type(prior).__name__}.for_network(network, ...)"
        )
    if prior.half_width is None:
        return
    draws = jax.jit(jax.vmap(network.init))(jax.random.split(jax.random.key(0), 8))
    widest = jax.tree.map(lambda w, h: float(np.max(np.abs(w) / h)), draws, prior.half_width)
    ratio = max(jax.tree.leaves(widest))
    if ratio > 1:
        raise ConfigError(
            f"the prior is narrower than the initial weights: one starts at {ratio:.3g} times the wall; widen the "
            f"box (a factor of at least 1 in UniformBox.for_network) or draw smaller weights"
        )


def _shapes(like: Weights) -> dict[str, tuple[int, ...]]:
    leaves, _ = jax.tree.flatten_with_path(like)
    return {jax.tree_util.keystr(path): tuple(leaf.shape) for path, leaf in leaves}


class Score(NamedTuple):
    """Mean loss in nats an example, and the fraction classified correctly."""

    loss: Array
    accuracy: Array


def hold_out(network: Network, examples: Examples, piece: int = 1000) -> Batch:
    """A validation or test set cut into pieces of equal size (a new leading axis), the last one
    padded.

    Only one piece is in flight at a time, so the memory that a score takes stays bounded.
    """
    classes = check_network(network, examples)
    if piece < 1:
        raise ConfigError(f"piece must be at least 1 example, got {piece}")
    piece = min(piece, len(examples))
    batches = [
        make_batch(
            network,
            Examples(examples.x[i : i + piece], examples.y[i : i + piece]),
            classes,
            pad_to=piece,
        )
        for i in range(0, len(examples), piece)
    ]
    return jax.tree.map(lambda *parts: np.stack(parts), *batches)


def score_fn(network: Network) -> Callable[[Weights, Batch], Score]:
    """Mean loss and accuracy of one replica on what `hold_out` prepared."""

    def fn(weights: Weights, pieces: Batch) -> Score:
        return _mean(
            jax.lax.map(
                lambda batch: _sums(network, network.logits(weights, batch.inputs), batch), pieces
            ),
            pieces,
        )

    return fn


def predict_fn(network: Network) -> Callable[[Weights, Batch], tuple[Score, Array]]:
    """As `score_fn`, and the softmax outputs (examples with padding, classes)."""
    axis = class_axis(network)

    def piece(weights: Weights, batch: Batch) -> tuple[Score, Array]:
        scores = network.logits(weights, batch.inputs)
        return _sums(network, scores, batch), jnp.moveaxis(
            jax.nn.softmax(scores, axis=axis), axis, -1
        )

    def fn(weights: Weights, pieces: Batch) -> tuple[Score, Array]:
        sums, probabilities = jax.lax.map(lambda batch: piece(weights, batch), pieces)
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
