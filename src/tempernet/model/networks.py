"""The protocol by which a network joins in, and adapters for functions and Equinox modules.

A network is three functions. `init(key)` draws the weights of one replica, a pytree.
`logits(weights, inputs)` gives the class scores of many examples. `fan_in()` tells, for every leaf
of the weights, the number k of inputs (bias included) of the neurons it feeds: initialisation,
prior width and masses are all made of k.

`example_axis` says where the examples sit in `inputs` and in the scores: 0 is the usual (examples,
...), and -1 is feature-first, (..., examples), which is how the built-in MLP runs fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.errors import ConfigError, check_callable, refuse

Weights = Any
"""A pytree of arrays: the parameters of one replica, or of many with a leading replica axis."""
Module = Any
"""An Equinox module, which is known only where Equinox is installed."""


@runtime_checkable
class Network(Protocol):
    """What a network must offer; see the module's first lines."""

    @property
    def example_axis(self) -> int:
        """0 for inputs and scores with the examples first, -1 for examples last in both."""

    def init(self, key: Array) -> Weights:
        """Draw the weights of one replica."""

    def logits(self, weights: Weights, inputs: Array) -> Array:
        """Class scores before the softmax, for all examples in `inputs`."""

    def fan_in(self) -> Weights:
        """k for each leaf of the weights: a pytree of numbers of the same structure."""


def must_be_network(network: object) -> None:
    """Raise a ConfigError unless this is a network, and not its class or a plain function."""
    if isinstance(network, type) or not isinstance(network, Network):
        refuse(
            "network",
            network,
            "a network with init, logits, fan_in and example_axis",
            "give an MLP such as tempernet.M3, a FunctionNetwork, or from_equinox(...)",
        )


@dataclass(frozen=True, eq=False)
class FunctionNetwork:
    """A network made of plain functions.

    Args:
        init_fn: `init_fn(key)` draws the weights of one replica, any pytree of arrays.
        logits_fn: `logits_fn(weights, inputs)` maps inputs (examples, ...) to class scores
            (examples, classes); with `example_axis=-1`, inputs (..., examples) to scores (classes,
            examples).
        fan_ins: k for each leaf of the weights, a pytree of numbers. Left out, k is worked out for
            leaves called `weight` (out, in, ...) and `bias`, whether in dicts, NamedTuples or
            modules.
        example_axis: where the examples are, 0 or -1.

    >>> net = FunctionNetwork(lambda key: {"weight": jax.random.normal(key, (3, 5))},
    ...                       lambda w, x: x @ w["weight"].T)
    """

    init_fn: Callable[[Array], Weights]
    logits_fn: Callable[[Weights, Array], Array]
    fan_ins: Weights | None = None
    example_axis: int = 0

    def __post_init__(self) -> None:
        check_callable("init_fn of FunctionNetwork", self.init_fn, "a function of a key")
        check_callable(
            "logits_fn of FunctionNetwork", self.logits_fn, "a function of weights and inputs"
        )
        check_example_axis("example_axis of FunctionNetwork", self.example_axis)

    def init(self, key: Array) -> Weights:
        """Draw the weights of one replica."""
        return self.init_fn(key)

    def logits(self, weights: Weights, inputs: Array) -> Array:
        """Class scores of all examples."""
        return self.logits_fn(weights, inputs)

    def fan_in(self) -> Weights:
        """k for each leaf, as given or as worked out from the names and shapes of the leaves."""
        return _fan_in_by_name(template(self)) if self.fan_ins is None else self.fan_ins


def check_example_axis(name: str, axis: object) -> None:
    """Raise a ConfigError unless the examples come first (0) or last (-1)."""
    if isinstance(axis, bool) or axis not in (0, -1):
        refuse(name, axis, "0 or -1", "0 if the examples come first, -1 if they come last")


def from_equinox(make_module: Callable[[Array], Module]) -> FunctionNetwork:
    """A network from an Equinox module that maps one example to its class scores.

    Its floating-point arrays are the weights that are sampled; everything else stays as it was
    built.

    Args:
        make_module: `make_module(key)` builds the module, as in
            `lambda key: eqx.nn.MLP(256, 10, 40, 2, key=key)`.

    Returns:
        A network of inputs (examples, ...) and scores (examples, classes).
    """
    try:
        import equinox as eqx
    except ImportError as error:
        raise ConfigError(
            "from_equinox needs Equinox, which is not installed: "
            "install the extra with pip install 'tempernet[equinox]'"
        ) from error
    check_callable(
        "make_module",
        make_module,
        "a function of a key that builds a module",
        "wrap it, as in lambda key: eqx.nn.MLP(256, 10, 40, 2, key=key)",
    )
    module = make_module(jax.random.key(0))
    if not isinstance(module, eqx.Module):
        refuse(
            "what make_module returns",
            module,
            "an Equinox module",
            "build one, as in lambda key: eqx.nn.MLP(256, 10, 40, 2, key=key)",
        )
    if not callable(module):
        refuse(
            "the module that make_module builds",
            module,
            "callable on one example",
            "give it a __call__ that maps an example to its class scores",
        )
    static = eqx.filter(module, eqx.is_inexact_array, inverse=True)

    def init_fn(key: Array) -> Weights:
        return eqx.filter(make_module(key), eqx.is_inexact_array)

    def logits_fn(weights: Weights, inputs: Array) -> Array:
        scores: Array = jax.vmap(eqx.combine(weights, static))(inputs)
        return scores

    return FunctionNetwork(init_fn, logits_fn)


def cut(flat: Array, like: Weights) -> Weights:
    """Cut a vector into the leaves of `like`, a pytree of anything with shapes.

    Random weights and momenta are drawn as one vector: a generator for each leaf would take most of
    the compilation.
    """
    leaves, treedef = jax.tree.flatten(like)
    ends = list(itertools.accumulate(leaf.size for leaf in leaves))
    parts = jnp.split(flat, ends[:-1])
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(treedef, shaped)


def template(network: Network) -> Weights:
    """Shapes and dtypes of one replica's weights, without computing any."""
    return jax.eval_shape(network.init, jax.random.key(0))


def _fan_in_by_name(shapes: Weights) -> Weights:
    """k of a `weight` (out, in, ...): the product of its later axes, plus one for a bias."""
    leaves, treedef = jax.tree.flatten_with_path(shapes)
    by_layer: dict[str, dict[str, Any]] = {}
    for path, leaf in leaves:
        by_layer.setdefault(jax.tree_util.keystr(path[:-1]), {})[_leaf_name(path)] = leaf
    fan_ins = []
    for path, _ in leaves:
        layer = by_layer[jax.tree_util.keystr(path[:-1])]
        if not ({"weight"} <= set(layer) <= {"weight", "bias"}) or len(layer["weight"].shape) < 2:
            raise ConfigError(
                f"cannot tell the fan-in of leaf {jax.tree_util.keystr(path)}: a layer must hold "
                f"`weight` (out, in, ...) and at most a `bias`, got {sorted(layer)}; "
                f"give `fan_ins` yourself"
            )
        fan_ins.append(math.prod(layer["weight"].shape[1:]) + ("bias" in layer))
    return jax.tree.unflatten(treedef, fan_ins)


def _leaf_name(path: tuple[Any, ...]) -> str:
    last = path[-1] if path else ""
    return str(getattr(last, "name", getattr(last, "key", last)))
