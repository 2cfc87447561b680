"""Target: energies and gradients against numpy and finite differences, padding, and scores in
pieces.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.flatten_util import ravel_pytree

from tempernet import MLP, FunctionNetwork, Gaussian, Target, UniformBox, hold_out, uninformed_loss
from tempernet.data import Examples
from tempernet.model.scores import score_fn
from tempernet.model.target import Batch, class_axis, cross_entropy

CLASSES = 3


def some_examples(num: int = 7, features: int = 4, seed: int = 0) -> Examples:
    random = np.random.RandomState(seed)
    return Examples(
        random.normal(size=(num, features)).astype(np.float32),
        random.randint(0, CLASSES, num).astype(np.int32),
    )


EXAMPLES = some_examples()
LINEAR, LOGISTIC = MLP((4, 5, CLASSES)), MLP((4, 5, CLASSES), output="logistic")


def examples_first(network: MLP) -> FunctionNetwork:
    """The same network with inputs (examples, features) and scores (examples, classes)."""
    return FunctionNetwork(
        network.init, lambda weights, x: network.logits(weights, x.T).T, fan_ins=network.fan_in()
    )


def numpy_losses(network: MLP, weights: Any, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each example, and whether it is classified correctly."""
    hidden = examples.x.astype(np.float64)
    for depth, layer in enumerate(weights):
        hidden = hidden @ np.asarray(layer.weight, np.float64).T + np.asarray(
            layer.bias, np.float64
        )
        if depth < len(weights) - 1 or network.output == "logistic":
            hidden = 1 / (1 + np.exp(-hidden))
    probability = np.exp(hidden) / np.exp(hidden).sum(axis=1, keepdims=True)
    return -np.log(probability[np.arange(len(examples)), examples.y]), hidden.argmax(
        axis=1
    ) == examples.y


def spread(network: MLP, seed: int = 1) -> Any:
    """Weights well away from the initialisation, so that scores differ between examples."""
    return jax.tree.map(lambda leaf: 4 * leaf, jax.jit(network.init)(jax.random.key(seed)))


@pytest.mark.parametrize("network", [LINEAR, LOGISTIC])
@pytest.mark.parametrize("first", [False, True])
def test_energy_is_the_sum_of_cross_entropies(network: MLP, first: bool) -> None:
    used = examples_first(network) if first else network
    target = Target.classifier(used, EXAMPLES, UniformBox.for_network(network))
    weights = spread(network)
    losses, _ = numpy_losses(network, weights, EXAMPLES)
    assert float(jax.jit(target.energy)(weights)) == pytest.approx(losses.sum(), rel=1e-5)
    assert target.num_examples == 7


def finite_differences(
    energy_fn: Callable[[Array], Array], at: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    compiled = jax.jit(energy_fn)
    gradient = np.empty_like(at)
    for i in range(len(at)):
        ahead, behind = at.copy(), at.copy()
        ahead[i] += step
        behind[i] -= step
        gradient[i] = (float(compiled(ahead)) - float(compiled(behind))) / (2 * step)
    return gradient


@pytest.mark.parametrize("network", [LINEAR, LOGISTIC])
def test_gradient_of_a_classifier_is_that_of_finite_differences(network: MLP) -> None:
    target = Target.classifier(network, EXAMPLES, UniformBox.for_network(network))
    with jax.enable_x64(True):
        data = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), target.data)
        flat, unravel = ravel_pytree(spread(network))
        assert flat.dtype == jnp.float64

        def energy_fn(at: Array) -> Array:
            return target.energy_fn(unravel(at), data)

        expected = finite_differences(energy_fn, np.asarray(flat))
        np.testing.assert_allclose(
            jax.jit(jax.grad(energy_fn))(flat), expected, rtol=1e-7, atol=1e-8
        )


def test_gradient_of_a_users_energy_is_that_of_finite_differences() -> None:
    def energy_fn(w: Array) -> Array:
        return jnp.sum(w**4) + jnp.sin(w[0]) * w[1] + jnp.logaddexp(w[2], w[0])

    with jax.enable_x64(True):
        prior = Gaussian(2.0, jax.ShapeDtypeStruct((3,), jnp.float64))
        target = Target.from_energy(energy_fn, prior)
        at = np.array([0.3, -1.2, 0.8])
        assert float(target.energy(jnp.asarray(at))) == pytest.approx(
            float(energy_fn(jnp.asarray(at)))
        )
        expected = finite_differences(target.energy, at)
        np.testing.assert_allclose(jax.grad(target.energy)(jnp.asarray(at)), expected, rtol=1e-8)
    assert target.num_examples == 0


def test_a_users_energy_starts_from_its_prior_unless_told() -> None:
    prior = UniformBox(2.0, jax.ShapeDtypeStruct((3,), jnp.float32))
    key = jax.random.key(3)
    from_prior = Target.from_energy(jnp.sum, prior)
    np.testing.assert_array_equal(from_prior.init_fn(key), prior.draw(key))
    told = Target.from_energy(jnp.sum, prior, lambda key: jnp.ones(3))
    np.testing.assert_array_equal(told.init_fn(key), np.ones(3))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("parts", [2, 4])
def test_data_padded_for_a_split_gives_the_same_energy(parts: int, first: bool) -> None:
    network = examples_first(LINEAR) if first else LINEAR
    target = Target.classifier(network, EXAMPLES, UniformBox.for_network(LINEAR))
    weights = spread(LINEAR)
    energy_fn = jax.jit(target.energy_fn)
    padded, axes = target.split_data(parts)
    assert padded.weight.shape == (-(-7 // parts) * parts,)
    whole = float(energy_fn(weights, target.data))
    assert float(energy_fn(weights, padded)) == pytest.approx(whole, rel=1e-6)
    pieces = jax.tree.map(lambda leaf, axis: np.split(leaf, parts, axis), padded, axes)
    each = [
        float(energy_fn(weights, Batch(*(pieces[leaf][part] for leaf in range(3)))))
        for part in range(parts)
    ]
    assert sum(each) == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("piece", "pieces"), [(7, 1), (100, 1), (3, 3), (1, 7)])
def test_score_in_pieces_is_the_score_of_plain_numpy(piece: int, pieces: int, first: bool) -> None:
    network = examples_first(LINEAR) if first else LINEAR
    weights = spread(LINEAR)
    # Padding is all zeros, which this network puts in class 0: it would count as correct if it
    # counted.
    bias = weights[-1].bias + jnp.array([3.0, 0.0, 0.0])
    weights = (*weights[:-1], weights[-1]._replace(bias=bias))
    held_out = hold_out(network, EXAMPLES, piece)
    assert held_out.weight.shape == (pieces, min(piece, 7))
    score = jax.jit(score_fn(network))(weights, held_out)
    losses, correct = numpy_losses(LINEAR, weights, EXAMPLES)
    assert 0 < correct.mean() < 1
    assert float(score.loss) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(score.accuracy) == pytest.approx(correct.mean(), rel=1e-6)


def test_the_uninformed_loss_is_the_log_of_the_number_of_classes() -> None:
    assert uninformed_loss(10) == pytest.approx(2.302585093)
    weights = jax.tree.map(jnp.zeros_like, LINEAR.init(jax.random.key(0)))
    target = Target.classifier(LINEAR, EXAMPLES, UniformBox.for_network(LINEAR))
    assert float(jax.jit(target.energy)(weights)) / 7 == pytest.approx(
        uninformed_loss(CLASSES), rel=1e-6
    )


def test_a_loss_near_zero_is_precise_for_scores_of_any_size() -> None:
    rounding = float(np.finfo(np.float32).eps)
    worst_naive = 0.0
    for size in (100.0, 87.3, -95.1):
        for loss in (1e-6, 1e-5, 1e-3):
            other = np.float32(size + math.log(math.expm1(loss)))
            exact = math.log1p(math.exp(float(other) - float(np.float32(size))))
            scores = jnp.array([[size, other]], jnp.float32)
            one_hot = jnp.array([[1.0, 0.0]])
            assert abs(float(cross_entropy(scores, one_hot, -1)[0]) - exact) < rounding
            naive = jax.nn.logsumexp(scores) - scores[0, 0]
            worst_naive = max(worst_naive, abs(float(naive) - exact))
    # The textbook form rounds at the size of the scores and must fail the same check.
    assert worst_naive > 4 * rounding


def test_a_hopeless_loss_is_finite() -> None:
    scores, one_hot = jnp.array([[1000.0], [-1000.0]]), jnp.array([[0.0], [1.0]])
    assert float(cross_entropy(scores, one_hot, 0)[0]) == pytest.approx(2000)


def test_class_axis_is_the_one_without_examples() -> None:
    assert class_axis(LINEAR) == 0
    assert class_axis(examples_first(LINEAR)) == -1
