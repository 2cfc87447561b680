"""Priors: volumes against closed forms, exact draws, densities that integrate to one."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tempernet import M1, M3, MLP, Gaussian, M3star, UniformBox
from tempernet.model.mlp import Layer
from tempernet.model.priors import Prior

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
SMALL = MLP((9, 9, 9))


@pytest.mark.parametrize(("network", "log_volume"), [(M3, 28_960.436), (M1, 19_945.736)])
def test_log_volume_of_the_papers_boxes(network: MLP, log_volume: float) -> None:
    assert UniformBox.for_network(network, 50.0).log_volume == pytest.approx(log_volume, abs=5e-4)


def test_log_volume_is_the_sum_over_layers_of_log_sigma() -> None:
    sizes, factor = (256, 40, 40, 40, 10), 1000.0
    expected = sum(
        out * (fan + 1) * math.log(2 * factor / math.sqrt(fan + 1))
        for fan, out in itertools.pairwise(sizes)
    )
    assert UniformBox.for_network(M3star, factor).log_volume == pytest.approx(expected, abs=5e-4)


def test_half_widths_are_the_factor_over_sqrt_fan_in() -> None:
    first, second = UniformBox.for_network(M1, 50.0).half_width
    for leaf in first:
        assert float(leaf) == pytest.approx(50 / math.sqrt(257), rel=1e-6)
    for leaf in second:
        assert float(leaf) == pytest.approx(50 / math.sqrt(41), rel=1e-6)


def test_each_layer_may_have_its_factor() -> None:
    even, uneven = UniformBox.for_network(M1, 50.0), UniformBox.for_network(M1, (50.0, 100.0))
    assert uneven.log_volume - even.log_volume == pytest.approx(410 * math.log(2), abs=1e-6)
    first, second = UniformBox.for_network(M1, (Layer(50.0, 10.0), 20.0)).half_width
    assert float(first.weight) / float(first.bias) == pytest.approx(5, rel=1e-6)
    assert float(second.weight) == float(second.bias) == pytest.approx(20 / math.sqrt(41), rel=1e-6)


def draws(prior: Prior, num: int = 400) -> Any:
    return jax.jit(jax.vmap(prior.draw))(jax.random.split(jax.random.key(7), num))


def assert_unrelated(drawn: Any) -> None:
    """Leaves of one shape are different draws."""
    first, second = (np.asarray(layer.weight).ravel() for layer in drawn)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(first.size)


def test_box_draws_are_uniform_in_every_leaf_and_inside() -> None:
    box = UniformBox.for_network(SMALL, (50.0, 2.0))
    drawn = draws(box)
    assert bool(jnp.all(jax.vmap(box.contains)(drawn)))
    for leaf, half_width in zip(
        jax.tree.leaves(drawn), jax.tree.leaves(box.half_width), strict=True
    ):
        scaled = np.asarray(leaf, np.float64).ravel() / float(half_width)
        assert stats.kstest(scaled, stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert_unrelated(drawn)


def test_gaussian_draws_are_normal_in_every_leaf() -> None:
    prior = Gaussian.for_network(SMALL, (0.1, 20.0))
    drawn = draws(prior)
    for leaf, std in zip(jax.tree.leaves(drawn), jax.tree.leaves(prior.std), strict=True):
        scaled = np.asarray(leaf, np.float64).ravel() / float(std)
        assert stats.kstest(scaled, stats.norm.cdf).pvalue > 0.01
    assert_unrelated(drawn)


@pytest.mark.parametrize("prior", [UniformBox(2.5, SCALAR), Gaussian(0.7, SCALAR)])
def test_density_in_one_dimension_integrates_to_one(prior: Prior) -> None:
    edges = np.linspace(-6, 6, 24_001)
    middles = 0.5 * (edges[1:] + edges[:-1])
    with jax.enable_x64(True):
        density = np.exp(jax.vmap(prior.log_density)(jnp.asarray(middles, jnp.float32)))
    assert float(np.sum(density * np.diff(edges))) == pytest.approx(1, abs=1e-5)


def test_density_of_a_box_is_flat_inside_and_nothing_outside() -> None:
    box = UniformBox(
        {"a": 2.0, "b": 0.5}, {"a": jax.ShapeDtypeStruct((3,), jnp.float32), "b": SCALAR}
    )
    inside = {"a": jnp.array([1.9, -1.9, 0.0]), "b": jnp.float32(-0.49)}
    assert float(box.log_density(inside)) == pytest.approx(-3 * math.log(4.0), rel=1e-6)
    assert box.log_volume == pytest.approx(3 * math.log(4.0), rel=1e-6)
    for outside in (
        {"a": jnp.array([2.1, 0.0, 0.0])},
        {"b": jnp.float32(0.51)},
        {"b": jnp.float32(jnp.nan)},
    ):
        assert not bool(box.contains({**inside, **outside}))
        assert float(box.log_density({**inside, **outside})) == -math.inf
    assert float(box.energy(inside)) == 0


def test_a_wall_may_differ_from_weight_to_weight() -> None:
    box = UniformBox(np.array([1.0, 2.0, 4.0]), jax.ShapeDtypeStruct((3,), jnp.float32))
    assert box.log_volume == pytest.approx(math.log(2 * 4 * 8), rel=1e-6)
    assert bool(box.contains(jnp.array([0.5, 1.5, 3.5])))
    assert not bool(box.contains(jnp.array([1.5, 0.5, 0.5])))


def test_gaussian_closed_forms() -> None:
    prior = Gaussian(
        {"a": 2.0, "b": 0.5}, {"a": jax.ShapeDtypeStruct((3,), jnp.float32), "b": SCALAR}
    )
    assert prior.log_volume == pytest.approx(
        3 * math.log(2 * math.sqrt(2 * math.pi)) + math.log(0.5 * math.sqrt(2 * math.pi)), rel=1e-7
    )
    weights = {"a": jnp.array([2.0, -4.0, 0.0]), "b": jnp.float32(1.0)}
    assert float(prior.energy(weights)) == pytest.approx(0.5 + 2.0 + 2.0, rel=1e-6)
    expected = stats.norm(0, 2.0).logpdf([2.0, -4.0, 0.0]).sum() + stats.norm(0, 0.5).logpdf(1.0)
    assert float(prior.log_density(weights)) == pytest.approx(expected, rel=1e-6)
    assert bool(prior.contains({"a": jnp.full(3, 1e30), "b": jnp.float32(0)}))
    assert prior.half_width is None
