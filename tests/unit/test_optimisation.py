"""Which starts are kept, whatever the batches; and what is said of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tempernet import M3, Engine, Minimiser, Target, UniformBox, mnist16, temperature_path
from tempernet.kernels.base import Point
from tempernet.optimise.minimise import Minimum
from tempernet.optimise.pool import Pool, enough, spread, success_rate, widest


def found(energy: np.ndarray, tolerance: float = 0.0) -> Minimum:
    """Minima with these energies, whose weights tell them apart."""
    weights = {"w": jnp.asarray(energy)[:, None] * jnp.ones((1, 2))}
    reached = jnp.asarray(energy) <= tolerance
    return Minimum(
        Point(weights, jnp.asarray(energy), weights),
        jnp.arange(len(energy), dtype=jnp.int32),
        reached,
    )


def kept(
    energies: np.ndarray, keep: int, batch: int, limit: int | None = None, tolerance: float = 0.0
) -> Pool:
    """The pool after all batches."""
    pool = None
    for first in range(0, len(energies), batch):
        new = Pool.of(
            found(energies[first : first + batch], tolerance), first, limit or len(energies)
        )
        pool = (new if pool is None else pool.joined(new)).best(keep)
    assert pool is not None
    return pool


ENERGIES = np.array([3.0, 0.0, 7.0, 1.0, 0.0, np.nan, 2.0, 0.0, 1.0, 5.0], np.float32)


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 10])
def test_batches_do_not_matter(batch: int) -> None:
    """E = 0 as they come, then the least energy, ties as they come; NaN last."""
    assert kept(ENERGIES, 10, batch).number.tolist() == [1, 4, 7, 3, 8, 6, 0, 9, 2, 5]
    few = kept(ENERGIES, 4, batch)
    assert few.number.tolist() == [1, 4, 7, 3]
    np.testing.assert_array_equal(few.weights["w"][:, 0], few.energy)
    assert few.reached.tolist() == [True, True, True, False]


def test_within_the_tolerance_it_is_the_order_that_counts() -> None:
    assert kept(ENERGIES, 3, 5, tolerance=2.0).number.tolist() == [1, 3, 4]


def test_starts_beyond_the_last_are_not_taken() -> None:
    assert kept(ENERGIES, 10, 4, limit=6).number.tolist() == [1, 4, 3, 0, 2, 5]


@pytest.mark.parametrize(
    ("reached", "started", "stop"),
    [(99, 200, False), (100, 200, True), (140, 200, True), (0, 4000, True)],
)
def test_when_to_stop(reached: int, started: int, stop: bool) -> None:
    assert enough(reached, 100, started, 4000) == stop


def test_mean_and_spread() -> None:
    values = np.random.default_rng(0).normal(2.0, 3.0, 10_000)
    found = spread(values)
    assert found.mean == values.mean() and found.std == values.std(ddof=1)
    assert found.error == pytest.approx(0.03, rel=0.03)
    assert np.isnan(spread(np.ones(1)).error)


def test_success_rate_and_its_error() -> None:
    half = success_rate(500, 1000)
    assert half.mean == 0.5 and half.error == pytest.approx(np.sqrt(0.25 / 1000), rel=0.01)
    every = success_rate(20, 20)
    assert every.mean == 1 and 0.03 < every.error < 0.1


def test_the_widest_weight_is_in_units_of_its_initial_range() -> None:
    weights = jax.tree.map(np.array, jax.vmap(M3.init)(jax.random.split(jax.random.key(0), 3)))
    initial = widest(M3, weights)
    assert initial.shape == (3,) and np.all((initial > 0.99) & (initial <= 1 + 1e-6))
    # 40 inputs and a bias feed the last layer, 256 and a bias the first.
    weights[-1].bias[1, 4] = -7.0
    weights[0].weight[2, 3, 100] = 2.0
    np.testing.assert_allclose(
        widest(M3, weights)[1:], [7 * np.sqrt(41), 2 * np.sqrt(257)], rtol=1e-6
    )


def test_fire_reaches_zero_itself_on_fifty_images() -> None:
    """What E = 0 means: exactly 0 in float32, where no wrong class of any image is more probable
    than 6e-8.
    """
    data = mnist16().split(50)
    target = Target.classifier(M3, data.train, UniformBox.for_network(M3))
    engine = Engine(target, temperature_path([1.0]), copies=4, devices=2, tile=2)
    minima = engine.minimise(engine.init_weights(), Minimiser(max_gradients=1000))
    pool = Pool.of(minima, 0, 4)
    assert pool.reached.all() and (pool.energy == 0).all()
    # Sec. 3.2 found 30 for M3.
    assert np.all((widest(M3, pool.weights) > 15) & (widest(M3, pool.weights) < 50))
    for member in range(4):
        hidden = data.train.x.reshape(50, -1).T.astype(np.float64)
        layers = [
            jax.tree.map(lambda leaf, m=member: np.asarray(leaf[m], np.float64), layer)
            for layer in pool.weights
        ]
        for i, layer in enumerate(layers):
            hidden = layer.weight @ hidden + layer.bias[:, None]
            if i < len(layers) - 1:
                hidden = 1 / (1 + np.exp(-hidden))
        margins = hidden - hidden[data.train.y, np.arange(50)]
        odds = np.sort(np.exp(margins), axis=0)
        assert np.all(odds[-1] == 1) and odds[:-1].max() < 6.1e-8
