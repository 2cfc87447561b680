"""Networks: the logistic MLPs of the paper, and the protocol by which a user's own network joins
in.

A network is three functions. `init(key)` draws the weights of one replica, a pytree.
`logits(weights, inputs)` gives the class scores of many examples. `fan_in()` tells, for every leaf
of the weights, the number k of inputs (bias included) of the neurons it feeds: initialisation,
prior width and masses are all made of k.

`example_axis` says where the examples sit in `inputs` and in the scores: 0 is the usual (examples,
...), and -1 is feature-first, (..., examples), which is how the built-in MLP runs fastest.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.errors import ConfigError

Weights = Any
"""A pytree of arrays: the parameters of one replica, or of many with a leading replica axis."""
LANES, MAX_OVER, MAX_WHOLE = 16, 6, 112
"""Numbers of examples that a product takes at once, that are cut off, and that something is cut off
from.
"""


@runtime_checkable
class Network(Protocol):
    """What a network must offer; see the module's first lines."""

    @property
    def example_axis(self) -> int:
        """0 for inputs (examples, ...) and scores (examples, classes), -1 for examples last in
        both.
        """

    def init(self, key: Array) -> Weights:
        """Draw the weights of one replica."""

    def logits(self, weights: Weights, inputs: Array) -> Array:
        """Class scores before the softmax, for all examples in `inputs`."""

    def fan_in(self) -> Weights:
        """k for each leaf of the weights: a pytree of numbers of the same structure."""


class Layer(NamedTuple):
    """One dense layer: `weight` is (out, in), `bias` is (out,)."""

    weight: Any
    bias: Any


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with logistic hidden units and a linear or logistic output layer.

    `sizes` counts the units of each layer from input to output, so `MLP((256, 40, 10))` is the
    paper's M1. A softmax is applied to the output either way; with `output="logistic"` the scores
    lie in (0, 1).
    """

    sizes: tuple[int, ...]
    output: Literal["linear", "logistic"] = "linear"

    def __post_init__(self) -> None:
        if isinstance(self.sizes, Iterable):
            object.__setattr__(self, "sizes", tuple(self.sizes))
        if (
            not isinstance(self.sizes, tuple)
            or len(self.sizes) < 2
            or any(not isinstance(s, int) or s < 1 for s in self.sizes)
        ):
            raise ConfigError(
                f"MLP sizes must be at least two positive whole numbers, input to output, got {self.sizes}"
            )
        if self.output not in ("linear", "logistic"):
            raise ConfigError(f'MLP output must be "linear" or "logistic", got {self.output!r}')

    @property
    def example_axis(self) -> int:
        """Examples come last: neither pass of the gradient then needs a transpose."""
        return -1

    @property
    def classes(self) -> int:
        """Number of output units."""
        return self.sizes[-1]

    @property
    def num_weights(self) -> int:
        """Number of parameters, biases included."""
        return sum((i + 1) * o for i, o in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def init(self, key: Array) -> tuple[Layer, ...]:
        """Draw every weight and bias uniformly within ±1/sqrt(k), k its fan-in with the bias (Sec.
        3.2).
        """
        unit = cut(
            jax.random.uniform(key, (self.num_weights,), minval=-1.0, maxval=1.0), self._shapes
        )
        return jax.tree.map(lambda u, k: u * k**-0.5, unit, self.fan_in())

    @property
    def _shapes(self) -> tuple[Layer, ...]:
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        array = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
        return tuple(Layer(array((o, i)), array((o,))) for i, o in pairs)

    def logits(self, weights: tuple[Layer, ...], inputs: Array) -> Array:
        """Scores (classes, examples) of inputs (..., examples), whose leading axes are flattened."""
        scores = _affine(weights[0], inputs.reshape(-1, inputs.shape[-1]), _first_product)
        for layer in weights[1:]:
            scores = _affine(layer, jax.nn.sigmoid(scores), _product)
        return jax.nn.sigmoid(scores) if self.output == "logistic" else scores

    def fan_in(self) -> tuple[Layer, ...]:
        """k = inputs + 1 for the weights and the biases of each layer."""
        return tuple(Layer(i + 1, i + 1) for i in self.sizes[:-1])


def _affine(layer: Layer, inputs: Array, product: Callable[[Array, Array], Array]) -> Array:
    return product(layer.weight, inputs) + layer.bias[:, None]


@jax.custom_vjp
def _product(weight: Array, inputs: Array) -> Array:
    """weight @ inputs. In the backward pass weight.T is laid out anew before it is multiplied.

    Left to itself the compiler reads it in place, by a slower product than it has for the others: 6
    % of a step of M3 on D_50, 2 % on D_500.
    """
    return weight @ inputs


@jax.custom_vjp
def _first_product(weight: Array, inputs: Array) -> Array:
    """weight @ inputs of the layer whose inputs all replicas share; a few examples apart from the
    others.

    Products go by 16 examples, so that 50 take as long as 64. The 2 that are over cost less by
    themselves: 3 % of a step of M3 on D_50. Of some hundred examples the last 16 are too few to
    matter, and in the other layers, where products are small, a second one costs as much as it
    saves.
    """
    whole, over = LANES * (inputs.shape[1] // LANES), inputs.shape[1] % LANES
    if not (0 < whole <= MAX_WHOLE and 0 < over <= MAX_OVER):
        return weight @ inputs
    return jnp.concatenate([weight @ inputs[:, :whole], weight @ inputs[:, whole:]], axis=1)


def _product_backward(factors: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    weight, inputs = factors
    return slope @ inputs.T, jax.lax.optimization_barrier(weight.T) @ slope


_product.defvjp(
    lambda weight, inputs: (_product(weight, inputs), (weight, inputs)), _product_backward
)
_first_product.defvjp(
    lambda weight, inputs: (_first_product(weight, inputs), (weight, inputs)), _product_backward
)


M3 = MLP((256, 40, 40, 40, 10))
"""The paper's deep network M^(3), 13,970 parameters."""
M3star = MLP((256, 40, 40, 40, 10), output="logistic")
"""M^(3*): M3 with a logistic output layer, whose loss cannot fall below 1.46115 an example."""
M1 = MLP((256, 40, 10))
"""The paper's shallow network M^(1), 10,690 parameters."""

NAMED = {"M3": M3, "M3star": M3star, "M1": M1}


def network_by_name(name: str) -> MLP:
    """`M3`, `M3star`, `M1`, or the layer sizes of a linear-output MLP such as `64-32-32-5`."""
    if name in NAMED:
        return NAMED[name]
    if re.fullmatch(r"\d+(-\d+)+", name):
        return MLP(tuple(int(size) for size in name.split("-")))
    raise ConfigError(
        f"network must be one of {', '.join(NAMED)} or sizes such as 256-40-10, got {name!r}"
    )


@dataclass(frozen=True, eq=False)
class FunctionNetwork:
    """A network made of plain functions.

    `init_fn(key)` draws the weights, `logits_fn(weights, inputs)` maps inputs (examples, ...) to
    scores (examples, classes) unless `example_axis` is -1, and `fan_ins` is k for each leaf. Left
    out, k is worked out for leaves called `weight` (out, in, ...) and `bias`, whether in dicts,
    NamedTuples or modules.

    >>> net = FunctionNetwork(lambda key: {"weight": jax.random.normal(key, (3, 5))},
    ...                       lambda w, x: x @ w["weight"].T)
    """

    init_fn: Callable[[Array], Weights]
    logits_fn: Callable[[Weights, Array], Array]
    fan_ins: Weights | None = None
    example_axis: int = 0

    def init(self, key: Array) -> Weights:
        """Draw the weights of one replica."""
        return self.init_fn(key)

    def logits(self, weights: Weights, inputs: Array) -> Array:
        """Class scores of all examples."""
        return self.logits_fn(weights, inputs)

    def fan_in(self) -> Weights:
        """k for each leaf, as given or as worked out from the names and shapes of the leaves."""
        return _fan_in_by_name(template(self)) if self.fan_ins is None else self.fan_ins


def from_equinox(make_module: Callable[[Array], Any]) -> FunctionNetwork:
    """A network from an Equinox module that maps one example to its class scores.

    `make_module(key)` builds the module, as in `lambda key: eqx.nn.MLP(256, 10, 40, 2, key=key)`.
    Its floating-point arrays are the weights that are sampled; everything else stays as it was
    built.
    """
    import equinox as eqx

    static = eqx.filter(make_module(jax.random.key(0)), eqx.is_inexact_array, inverse=True)

    def init_fn(key: Array) -> Weights:
        return eqx.filter(make_module(key), eqx.is_inexact_array)

    def logits_fn(weights: Weights, inputs: Array) -> Array:
        return jax.vmap(eqx.combine(weights, static))(inputs)

    return FunctionNetwork(init_fn, logits_fn)


def cut(flat: Array, like: Weights) -> Weights:
    """Cut a vector into the leaves of `like`, anything with shapes.

    Random weights and momenta are drawn as one vector: a generator for each leaf would take most of
    the compilation.
    """
    leaves, treedef = jax.tree.flatten(like)
    parts = jnp.split(flat, list(itertools.accumulate(leaf.size for leaf in leaves))[:-1])
    return jax.tree.unflatten(
        treedef, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    )


def template(network: Network) -> Weights:
    """Shapes and dtypes of one replica's weights, without computing any."""
    return jax.eval_shape(network.init, jax.random.key(0))


def _fan_in_by_name(shapes: Weights) -> Weights:
    """k of `weight` (out, in, ...) is the product of the axes after the first, plus one if there is
    a bias.
    """
    leaves, treedef = jax.tree.flatten_with_path(shapes)
    by_layer: dict[str, dict[str, Any]] = {}
    for path, leaf in leaves:
        by_layer.setdefault(jax.tree_util.keystr(path[:-1]), {})[_leaf_name(path)] = leaf
    fan_ins = []
    for path, _ in leaves:
        layer = by_layer[jax.tree_util.keystr(path[:-1])]
        if not ({"weight"} <= set(layer) <= {"weight", "bias"}) or len(layer["weight"].shape) < 2:
            raise ConfigError(
                f"cannot tell the fan-in of leaf {jax.tree_util.keystr(path)}: a layer must hold `weight` "
                f"(out, in, ...) and at most a `bias`, got {sorted(layer)}; give `fan_ins` yourself"
            )
        fan_ins.append(math.prod(layer["weight"].shape[1:]) + ("bias" in layer))
    return jax.tree.unflatten(treedef, fan_ins)


def _leaf_name(path: tuple[Any, ...]) -> str:
    last = path[-1] if path else ""
    return str(getattr(last, "name", getattr(last, "key", last)))
