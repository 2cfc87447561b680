"""Networks: sizes, initialisation, scores against plain numpy, and a user's own network all the way
through.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from tempernet import (
    M1,
    M3,
    MLP,
    Dynamics,
    Engine,
    FunctionNetwork,
    M3star,
    Target,
    UniformBox,
    from_equinox,
    hold_out,
    temperature_path,
)
from tempernet.data import Examples
from tempernet.model.mlp import Layer, _first_product, network_by_name
from tempernet.model.networks import Network, template
from tempernet.model.target import classifier_energy, make_batch

pytestmark = pytest.mark.usefixtures("quick_programs")


def count(weights: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(weights))


def logistic(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def numpy_scores(network: MLP, weights: Any, x: np.ndarray) -> np.ndarray:
    """Scores (examples, classes) of x (examples, features), one example at a time."""
    rows = []
    for example in x:
        hidden = example
        for depth, (weight, bias) in enumerate(weights):
            z = np.array([np.dot(row, hidden) for row in np.asarray(weight)]) + np.asarray(bias)
            last = depth == len(weights) - 1
            hidden = z if last and network.output == "linear" else logistic(z)
        rows.append(hidden)
    return np.array(rows)


@pytest.mark.parametrize(("network", "parameters"), [(M3, 13_970), (M3star, 13_970), (M1, 10_690)])
def test_the_papers_networks_have_the_papers_number_of_parameters(
    network: MLP, parameters: int
) -> None:
    assert network.num_weights == parameters
    assert count(template(network)) == parameters


def test_the_papers_networks_differ_as_the_paper_says() -> None:
    assert M3.sizes == M3star.sizes == (256, 40, 40, 40, 10)
    assert M1.sizes == (256, 40, 10)
    assert (M3.output, M3star.output, M1.output) == ("linear", "logistic", "linear")
    assert M3.classes == 10


def test_initial_weights_fill_plus_minus_one_over_sqrt_fan_in() -> None:
    weights = MLP((63, 20, 20, 20)).init(jax.random.key(1))
    for layer, k in zip(weights, (64, 21, 21), strict=True):
        for leaf in layer:
            assert np.max(np.abs(leaf)) <= 1 / math.sqrt(k)
            # The largest of n uniform draws is within 8/n of the bound but for a chance of e^-8.
            assert np.max(np.abs(leaf)) >= (1 - 8 / leaf.size) / math.sqrt(k)
    # Layers of one shape are different draws.
    assert not np.any(weights[1].weight == weights[2].weight)
    assert not np.any(weights[1].bias == weights[2].bias)


@pytest.mark.parametrize("output", ["linear", "logistic"])
@pytest.mark.parametrize("sizes", [(6, 3), (6, 5, 4, 3)])
def test_scores_are_those_of_plain_numpy(sizes: tuple[int, ...], output: Any) -> None:
    network = MLP(sizes, output=output)
    x = np.random.RandomState(0).normal(size=(7, 6))
    with jax.enable_x64(True):
        weights = jax.tree.map(lambda leaf: 3 * leaf, jax.jit(network.init)(jax.random.key(2)))
        scores = jax.jit(network.logits)(weights, jnp.asarray(x.T))
        assert scores.dtype == jnp.float64
        np.testing.assert_allclose(
            scores.T, numpy_scores(network, weights, x), rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("examples", [1, 2, 16, 18, 22, 50, 64, 100, 118, 500])
def test_examples_cut_off_from_the_first_product_change_nothing(examples: int) -> None:
    rng = np.random.default_rng(examples)
    weight, inputs, slope = (
        jnp.asarray(rng.normal(size=shape), jnp.float32)
        for shape in ((3, 5), (5, examples), (3, examples))
    )
    found, back = jax.vjp(_first_product, weight, inputs)
    wanted, wanted_back = jax.vjp(jnp.matmul, weight, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
        back(slope),
        wanted_back(slope),
    )


def test_an_mlp_flattens_images_row_by_row() -> None:
    network = MLP((6, 4, 3))
    weights = network.init(jax.random.key(0))
    images = np.random.RandomState(0).normal(size=(5, 2, 3)).astype(np.float32)
    flat = network.logits(weights, jnp.asarray(images.reshape(5, 6).T))
    np.testing.assert_array_equal(
        network.logits(weights, jnp.asarray(np.moveaxis(images, 0, -1))), flat
    )


def test_m3star_cannot_lose_less_than_its_floor() -> None:
    """The best scores of a logistic output are 1 for the right class and 0 for the nine others."""
    batch = make_batch(
        M3star, Examples(np.zeros((4, 256), np.float32), np.full(4, 3, np.int32)), 10
    )
    certain = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), template(M3star))
    bias = np.where(np.arange(10) == 3, 100.0, -100.0).astype(np.float32)
    weights = (*certain[:-1], certain[-1]._replace(bias=bias))
    energy = jax.jit(classifier_energy(M3star))(weights, batch)
    assert float(energy) / 4 == pytest.approx(-math.log(math.e / (math.e + 9)), abs=1e-6)
    assert float(energy) / 4 == pytest.approx(1.46115, abs=5e-6)


def test_fan_in_counts_the_bias() -> None:
    assert MLP((5, 4, 3)).fan_in() == (Layer(6, 6), Layer(5, 5))


def test_networks_by_name() -> None:
    assert network_by_name("M3") is M3
    assert network_by_name("M3star") is M3star
    assert network_by_name("M1") is M1
    assert network_by_name("64-32-5") == MLP((64, 32, 5))


def linear_classifier(key: Array) -> dict[str, Array]:
    weight_key, bias_key = jax.random.split(key)
    return {
        "weight": jax.random.uniform(weight_key, (3, 4), minval=-0.4, maxval=0.4),
        "bias": jax.random.uniform(bias_key, (3,), minval=-0.4, maxval=0.4),
    }


def linear_scores(weights: dict[str, Array], inputs: Array) -> Array:
    return inputs @ weights["weight"].T + weights["bias"][None, :]


class Convolutional(eqx.Module):
    """One convolution and one dense layer, for an image of 16 x 16."""

    conv: eqx.nn.Conv2d
    dense: eqx.nn.Linear

    def __init__(self, key: Array) -> None:
        conv_key, dense_key = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(1, 2, kernel_size=5, stride=3, key=conv_key)
        self.dense = eqx.nn.Linear(32, 3, key=dense_key)

    def __call__(self, image: Array) -> Array:
        return self.dense(jnp.tanh(self.conv(image[None])).reshape(-1))


def examples_of(shape: tuple[int, ...], num: int = 11) -> Examples:
    random = np.random.RandomState(3)
    return Examples(
        random.normal(size=(num, *shape)).astype(np.float32),
        random.randint(0, 3, num).astype(np.int32),
    )


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (FunctionNetwork(linear_classifier, linear_scores), (4,)),
        (from_equinox(Convolutional), (16, 16)),
    ],
    ids=["function", "equinox"],
)
def test_a_users_network_goes_all_the_way(network: FunctionNetwork, shape: tuple[int, ...]) -> None:
    assert isinstance(network, Network)
    examples = examples_of(shape)
    target = Target.classifier(network, examples, UniformBox.for_network(network, 5.0))
    dynamics = Dynamics(num_steps=2, num_trajectories=1)
    engine = Engine(target, temperature_path([1.0, 10.0]), dynamics=dynamics, devices=1, tile=2)
    first = engine.start(engine.init_weights())
    state, record = engine.round(first, engine.rungs(1e-3))
    assert int(record.info.accepted.sum()) == 2
    score = engine.score(state, hold_out(network, examples, piece=4))
    for rung in range(2):
        weights = jax.tree.map(lambda leaf: leaf[0], engine.weights_at(state, rung))
        scores = np.asarray(network.logits(weights, jnp.asarray(examples.x)), np.float64)
        chosen = scores[np.arange(len(examples)), examples.y]
        loss = np.mean(np.log(np.exp(scores).sum(axis=1)) - chosen)
        assert float(score.loss[0, rung]) == pytest.approx(loss, rel=1e-5)
        right = np.mean(np.argmax(scores, axis=1) == examples.y)
        assert float(score.accuracy[0, rung]) == pytest.approx(right, rel=1e-6)


def test_the_scores_of_an_equinox_network_are_those_of_its_module() -> None:
    network = from_equinox(Convolutional)
    module = Convolutional(jax.random.key(5))
    images = jnp.asarray(examples_of((16, 16)).x)
    expected = jnp.stack([module(image) for image in images])
    weights = network.init(jax.random.key(5))
    np.testing.assert_allclose(network.logits(weights, images), expected, rtol=1e-5, atol=1e-6)


class Shuffled(eqx.Module):
    """A dense layer that reads its inputs in an order of its own: an integer array, which is no
    weight.
    """

    order: Array
    dense: eqx.nn.Linear

    def __init__(self, key: Array) -> None:
        self.order = jnp.array([2, 0, 1])
        self.dense = eqx.nn.Linear(3, 2, key=key)

    def __call__(self, x: Array) -> Array:
        return self.dense(x[self.order])


def test_the_integer_arrays_of_an_equinox_module_stay_as_built() -> None:
    network = from_equinox(Shuffled)
    weights = network.init(jax.random.key(0))
    assert count(weights) == 8
    x = jnp.asarray(np.random.RandomState(0).normal(size=(4, 3)).astype(np.float32))
    expected = jnp.stack([Shuffled(jax.random.key(0))(row) for row in x])
    np.testing.assert_allclose(network.logits(weights, x), expected, rtol=1e-5, atol=1e-6)


def test_fan_in_of_convolution_and_dense_layers_is_worked_out() -> None:
    fan_in = from_equinox(Convolutional).fan_in()
    assert (fan_in.conv.weight, fan_in.conv.bias) == (26, 26)
    assert (fan_in.dense.weight, fan_in.dense.bias) == (33, 33)


def test_fan_in_without_a_bias_has_no_one_added() -> None:
    network = from_equinox(lambda key: eqx.nn.Linear(7, 2, use_bias=False, key=key))
    assert jax.tree.leaves(network.fan_in()) == [7]
    wide = from_equinox(
        lambda key: eqx.nn.Conv2d(3, 4, kernel_size=(2, 5), use_bias=False, key=key)
    )
    assert jax.tree.leaves(wide.fan_in()) == [30]


class Affine(NamedTuple):
    weight: Any
    bias: Any


def test_fan_in_of_named_tuples_and_nested_dicts_is_worked_out() -> None:
    def init(key: Array) -> dict[str, Any]:
        del key
        return {
            "first": Affine(jnp.zeros((5, 4)), jnp.zeros(5)),
            "second": {"weight": jnp.zeros((2, 5))},
        }

    network = FunctionNetwork(init, lambda weights, x: x)
    assert network.fan_in() == {"first": Affine(5, 5), "second": {"weight": 5}}


def test_fan_ins_given_are_taken_as_they_are() -> None:
    network = FunctionNetwork(
        lambda key: {"scale": jnp.ones(3)}, lambda weights, x: x, {"scale": 9}
    )
    assert network.fan_in() == {"scale": 9}
    box = UniformBox.for_network(network, 6.0)
    np.testing.assert_allclose(box.half_width["scale"], 2.0)
