"""The logistic multilayer perceptrons of the paper (Sec. 3.1), laid out feature-first.

Weights are (out, in) and inputs (features, examples), so that no pass of the gradient needs a
transpose of what is large.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.errors import ConfigError, shown
from tempernet.model.networks import Weights, cut

LANES = 16
"""Examples that a product of matrices takes at once: the SIMD width in float32."""
MAX_OVER = 6
"""Largest remainder of a batch that is split off and multiplied by itself."""
MAX_WHOLE = 112
"""Largest batch, without its remainder, that is split."""


class Layer(NamedTuple):
    """One dense layer: `weight` is (out, in), `bias` is (out,), or what is said of each of them."""

    weight: Weights
    bias: Weights


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with logistic hidden units and a linear or logistic output layer.

    Args:
        sizes: the units of each layer from input to output, so `MLP((256, 40, 10))` is the paper's
            M1.
        output: "linear" or "logistic". A softmax is applied to the output either way; with
            "logistic" the scores lie in (0, 1).
    """

    sizes: tuple[int, ...]
    output: Literal["linear", "logistic"] = "linear"

    def __post_init__(self) -> None:
        if isinstance(self.sizes, Iterable):
            object.__setattr__(self, "sizes", tuple(self.sizes))
        is_tuple = isinstance(self.sizes, tuple) and len(self.sizes) >= 2
        if not is_tuple or any(not _is_size(size) for size in self.sizes):
            raise ConfigError(
                f"MLP sizes must be at least two positive whole numbers, input to output, "
                f"got {shown(self.sizes)}: give them as in MLP((256, 40, 10))"
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
        """Draw each weight and bias uniformly within ±1/sqrt(k), k its fan-in with the bias."""
        # Sec. 3.2.
        flat = jax.random.uniform(key, (self.num_weights,), minval=-1.0, maxval=1.0)
        unit = cut(flat, self._shapes)
        drawn: tuple[Layer, ...] = jax.tree.map(lambda u, k: u * k**-0.5, unit, self.fan_in())
        return drawn

    @property
    def _shapes(self) -> tuple[Layer, ...]:
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        array = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
        return tuple(Layer(array((o, i)), array((o,))) for i, o in pairs)

    def logits(self, weights: tuple[Layer, ...], inputs: Array) -> Array:
        """Scores (classes, examples) of inputs (..., examples), whose first axes are flattened."""
        scores = _affine(weights[0], inputs.reshape(-1, inputs.shape[-1]), _first_product)
        for layer in weights[1:]:
            scores = _affine(layer, jax.nn.sigmoid(scores), _product)
        return jax.nn.sigmoid(scores) if self.output == "logistic" else scores

    def fan_in(self) -> tuple[Layer, ...]:
        """k = inputs + 1 for the weights and the biases of each layer."""
        return tuple(Layer(i + 1, i + 1) for i in self.sizes[:-1])


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1


def _affine(layer: Layer, inputs: Array, product: Callable[[Array, Array], Array]) -> Array:
    shift: Array = layer.bias[:, None]
    return product(layer.weight, inputs) + shift


@jax.custom_vjp
def _product(weight: Array, inputs: Array) -> Array:
    """weight @ inputs. In the backward pass weight.T is laid out anew before it is multiplied.

    Left to itself the compiler reads it in place, by a slower product than it has for the others: 6
    % of a step of M3 on D_50, 2 % on D_500.
    """
    return weight @ inputs


@jax.custom_vjp
def _first_product(weight: Array, inputs: Array) -> Array:
    """weight @ inputs of the layer whose inputs all replicas share; a small remainder apart.

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
    across: Array = jax.lax.optimization_barrier(weight.T)
    return slope @ inputs.T, across @ slope


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
