"""The density that is sampled: an energy E(w), a prior, and what the energy reads.

A `Target` is the same thing whether its energy is the cross-entropy of a network on images (Eq. 9)
or a user's own function of a few numbers, so everything that samples takes any of them.
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
from tempernet.errors import ConfigError, DataError, check_callable, check_type
from tempernet.model.networks import (
    Network,
    Weights,
    check_example_axis,
    must_be_network,
    template,
)
from tempernet.model.priors import Gaussian, Prior, UniformBox

Data = Any
"""A pytree of arrays that an energy reads; () for an energy without data."""


class Batch(NamedTuple):
    """Examples as the energy reads them. Examples lie along the network's `example_axis`."""

    inputs: Data
    """(examples, ...) or (..., examples)."""
    one_hot: Data
    """1 for the class of an example, else 0: (examples, classes) or (classes, examples)."""
    weight: Data
    """1 for an example that counts, 0 for padding: (examples,)."""


@dataclass(frozen=True, eq=False)
class Target:
    """E(w), the prior, and the data that E reads.

    Args:
        energy_fn: `energy_fn(weights, data)` is the energy of one replica, a scalar; where `data`
            has examples it is a sum over them, so that parts of the data may be summed on different
            devices.
        prior: over the weights of one replica.
        init_fn: `init_fn(key)` draws starting weights of one replica.
        data: what the energy reads, a pytree of arrays.
        network: the network of a classifier, or None.
    """

    energy_fn: Callable[[Weights, Data], Array]
    prior: Prior
    init_fn: Callable[[Array], Weights]
    data: Data = ()
    network: Network | None = None

    def __post_init__(self) -> None:
        check_callable("energy_fn", self.energy_fn, "a function of the weights that gives E")
        check_type(
            "prior",
            self.prior,
            (UniformBox, Gaussian),
            "a UniformBox or a Gaussian",
            "build one, for a network with UniformBox.for_network(network)",
        )
        check_callable("init_fn", self.init_fn, "a function of a key that draws weights")

    @classmethod
    def classifier(cls, network: Network, examples: Examples, prior: Prior) -> Target:
        """The sum of cross-entropies of a network over labelled examples (Eq. 9).

        Args:
            network: anything with `init`, `logits`, `fan_in` and `example_axis`.
            examples: normalised inputs (n, ...) and labels (n,), below the number of classes.
            prior: over this network's weights, wide enough for its initial ones.
        """
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
        """Any energy function of the weights.

        Args:
            energy_fn: the energy of the weights of one replica, a scalar.
            prior: over these weights.
            init_fn: `init_fn(key)` draws starting weights; None draws them from the prior.
        """
        check_callable("energy_fn", energy_fn, "a function of the weights that gives E")
        draw_fn = getattr(prior, "draw", None) if init_fn is None else init_fn
        # A prior without `draw` is none, which is what is said of it first.
        return cls(lambda weights, data: energy_fn(weights), prior, draw_fn)  # type: ignore[arg-type]

    def energy(self, weights: Weights) -> Array:
        """E(w) of one replica on all the data."""
        return self.energy_fn(weights, self.data)

    @property
    def num_examples(self) -> int:
        """Number of training examples; 0 for an energy without data."""
        return len(self.data.weight) if self.network else 0

    def split_data(self, parts: int) -> tuple[Data, Data]:
        """The data padded to a multiple of `parts` examples, and the example axis of each leaf."""
        if self.network is None:
            raise ConfigError(
                f"this target has no examples to split over {parts} devices: data_devices must be 1"
            )
        axes = Batch(self.network.example_axis, self.network.example_axis, 0)
        extra = -self.num_examples % parts

        def pad(leaf: np.ndarray, axis: int) -> np.ndarray:
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
    """Loss an example of the classifier that thinks all classes equally likely: log(classes)."""
    return math.log(classes)


def class_axis(network: Network) -> int:
    """The axis of the classes in a network's scores, which have two axes."""
    return 0 if network.example_axis == -1 else -1


def make_batch(
    network: Network, examples: Examples, classes: int, pad_to: int | None = None
) -> Batch:
    """Lay examples out for a network.

    Args:
        network: says where the examples go.
        examples: inputs (n, ...) and labels (n,).
        classes: number of classes.
        pad_to: number of examples with the padding, which has weight 0; None adds none.
    """
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
    """Number of classes of a network, which must fit the examples."""
    must_be_network(network)
    check_example_axis("a network's example_axis", network.example_axis)
    check_type(
        "examples",
        examples,
        Examples,
        "Examples",
        "give a group of a data set such as data.train, or Examples(x, y)",
    )
    if len(examples) == 0:
        raise DataError("there are no examples: at least one is needed")
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
            f"a network's scores must be {wanted}, got shape {scores.shape} "
            f"for {len(examples)} examples"
        )
    classes = int(scores.shape[class_axis(network)])
    low, high = int(examples.y.min()), int(examples.y.max())
    if low < 0 or high >= classes:
        raise DataError(
            f"labels must lie in 0..{classes - 1}, the network's {classes} classes, "
            f"got {low if low < 0 else high}"
        )
    return classes


def _check_prior(network: Network, prior: Prior) -> None:
    """The prior must be over this network's weights, and a box must hold the initial ones.

    The latter is checked on 8 draws.
    """
    check_type(
        "prior",
        prior,
        (UniformBox, Gaussian),
        "a UniformBox or a Gaussian",
        "build one with UniformBox.for_network(network)",
    )
    wanted, given = _shapes(template(network)), _shapes(prior.like)
    if wanted != given:
        raise ConfigError(
            f"the prior is over weights of shapes {given}, the network has {wanted}; "
            f"build the prior with {type(prior).__name__}.for_network(network, ...)"
        )
    if prior.half_width is None:
        return
    draws = jax.jit(jax.vmap(network.init))(jax.random.split(jax.random.key(0), 8))
    widest = jax.tree.map(lambda w, h: float(np.max(np.abs(w) / h)), draws, prior.half_width)
    ratio = max(jax.tree.leaves(widest))
    if ratio > 1:
        raise ConfigError(
            f"the prior is narrower than the initial weights: one starts at {ratio:.3g} times the "
            f"wall; widen the box (a factor of at least 1 in UniformBox.for_network) or draw "
            f"smaller weights"
        )


def _shapes(like: Weights) -> dict[str, tuple[int, ...]]:
    leaves, _ = jax.tree.flatten_with_path(like)
    return {jax.tree_util.keystr(path): tuple(leaf.shape) for path, leaf in leaves}
