"""Minimisation: Alg. 3 step by step, FIRE at any scale, and starts that stop by themselves."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from tempernet import M3, MLP, Engine, Minimiser, Target, UniformBox, mnist16, temperature_path
from tempernet.data import Examples
from tempernet.kernels.base import Point
from tempernet.optimise.minimise import Minimum

STIFFNESS = np.array([1.0, 10.0, 100.0], np.float32)
START = np.array([1.0, -2.0, 0.5], np.float32)


def quadratic(w: Array) -> Array:
    return 0.5 * jnp.sum(STIFFNESS * w**2)


def evaluate(w: Array) -> Point:
    return Point(w, *jax.value_and_grad(quadratic)(w))


@functools.cache
def compiled(method: Any, tolerance: float, time_step: float, max_gradients: int = 2000) -> Any:
    settings = Minimiser(method, time_step, max_gradients, tolerance)
    return jax.jit(jax.vmap(lambda start: settings.run(start, evaluate)))


@pytest.mark.parametrize(
    ("method", "time_step"), [("alg3", 0.01), ("fire", 0.01), ("fire", 1e-5), ("fire", 1.0)]
)
def test_a_quadratic_is_minimised_from_any_time_step(method: str, time_step: float) -> None:
    found = compiled(method, 1e-6, time_step)(jnp.asarray(START)[None])
    assert bool(found.reached[0])
    assert 0 <= float(found.point.energy[0]) <= 1e-6
    np.testing.assert_allclose(found.point.weights[0], 0, atol=2e-3)
    assert float(quadratic(found.point.weights[0])) == pytest.approx(
        float(found.point.energy[0]), rel=1e-5
    )
    assert 1 < int(found.gradients[0]) < (1000 if method == "fire" else 2000)


@pytest.mark.parametrize("scale", [1e-4, 1e6])
def test_fire_does_not_mind_the_scale_of_the_energy(scale: float) -> None:
    def run(w: Array) -> Minimum:
        def evaluate_fn(w: Array) -> Point:
            return Point(w, *jax.value_and_grad(lambda w: scale * quadratic(w))(w))

        return Minimiser(tolerance=scale * 1e-6, max_gradients=2000).run(w, evaluate_fn)

    found = jax.jit(run)(jnp.asarray(START))
    assert bool(found.reached)
    assert int(found.gradients) < 1000


def alg3_by_hand(time_step: float, num_steps: int) -> tuple[list[np.ndarray], list[bool]]:
    """Positions after each step of Alg. 3 in plain numpy, and whether the step went down."""
    stiffness = STIFFNESS.astype(np.float64)
    w, p, dt = START.astype(np.float64), np.zeros(3), time_step
    positions, downs = [w], []
    for _ in range(num_steps):
        moved = p - 0.5 * dt * stiffness * w
        trial = w + dt * moved
        moved = moved - 0.5 * dt * stiffness * trial
        down = np.sum(stiffness * trial**2) < np.sum(stiffness * w**2)
        w, p = (trial, moved) if down else (w, np.zeros(3))
        dt = dt + 0.05 if down else dt * 0.95
        positions.append(w)
        downs.append(bool(down))
    return positions, downs


def test_alg3_by_hand_step_by_step() -> None:
    positions, downs = alg3_by_hand(0.02, 40)
    assert downs[:2] == [True, True]
    assert 5 < sum(downs) < 35
    with jax.enable_x64(True):
        stiffness = STIFFNESS.astype(np.float64)

        def evaluate_fn(w: Array) -> Point:
            return Point(w, 0.5 * jnp.sum(stiffness * w**2), stiffness * w)

        start = jnp.asarray(START.astype(np.float64))
        for num_steps in (1, 2, 3, 4, 5, 7, 12, 40):
            # The gradient at the start is the first of the budget.
            found = Minimiser("alg3", 0.02, num_steps + 1).run(start, evaluate_fn)
            assert int(found.gradients) == num_steps + 1
            assert not bool(found.reached)
            np.testing.assert_allclose(
                found.point.weights, positions[num_steps], rtol=1e-10, atol=1e-13
            )
            np.testing.assert_allclose(
                found.point.gradient, stiffness * found.point.weights, rtol=1e-12
            )


@pytest.mark.parametrize("method", ["fire", "alg3"])
def test_each_start_stops_by_itself(method: str) -> None:
    scales = np.array([0.0, 1e-3, 1e-2, 1.0], np.float32)
    starts = jnp.asarray(scales[:, None] * START[None, :])
    together = compiled(method, 1e-6, 0.01)(starts)
    assert bool(jnp.all(together.reached))
    gradients = [int(g) for g in together.gradients]
    assert gradients[0] == 1
    assert len(set(gradients)) == 4
    for i in range(4):
        alone = compiled(method, 1e-6, 0.01)(starts[i : i + 1])
        assert int(alone.gradients[0]) == gradients[i]
        np.testing.assert_allclose(
            alone.point.weights[0], together.point.weights[i], rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("method", ["fire", "alg3"])
def test_the_budget_is_kept(method: str) -> None:
    found = compiled(method, 0.0, 1e-4, 10)(jnp.asarray(START)[None])
    assert int(found.gradients[0]) == 10
    assert not bool(found.reached[0])
    assert float(found.point.energy[0]) < float(quadratic(jnp.asarray(START)))


def visits(
    settings: Minimiser, half_width: Any = None, bad_beyond: float = np.inf
) -> tuple[Minimum, np.ndarray]:
    """Run op by op, and keep all points whose gradient was asked for. The minimum: (3, 0.2)."""
    visited = []

    def evaluate_fn(w: Array) -> Point:
        visited.append(np.asarray(w))
        away = w - np.array([3.0, 0.2], np.float32)
        energy = jnp.where(jnp.any(jnp.abs(w) > bad_beyond), jnp.nan, jnp.sum(away**2))
        return Point(w, energy, 2 * away)

    with jax.disable_jit():
        found = settings.run(jnp.array([-0.5, -0.5]), evaluate_fn, half_width)
    return found, np.array(visited)


@pytest.mark.parametrize("method", ["fire", "alg3"])
def test_gradients_are_counted(method: Any) -> None:
    found, visited = visits(Minimiser(method, 0.05, 25))
    assert int(found.gradients) == len(visited) == 25


def test_fire_stays_within_the_walls() -> None:
    found, visited = visits(Minimiser("fire", 0.1, 60), np.float32(1.0))
    assert np.max(np.abs(visited)) == 1.0
    assert np.max(np.abs(found.point.weights)) == 1.0


def test_fire_finds_a_minimum_that_lies_on_a_wall() -> None:
    """A weight pressed against its wall must not drive the others' time step."""
    found, _ = visits(Minimiser("fire", 0.1, 100), np.float32(1.0))
    np.testing.assert_allclose(found.point.weights, [1.0, 0.2], atol=0.01)


@pytest.mark.parametrize("method", ["fire", "alg3"])
def test_a_step_to_an_energy_that_is_no_number_is_taken_back(method: Any) -> None:
    found, visited = visits(Minimiser(method, 0.2, 40), bad_beyond=1.0)
    assert np.max(np.abs(visited)) > 1.0
    assert np.max(np.abs(found.point.weights)) <= 1.0
    assert np.isfinite(found.point.energy)


def test_a_small_network_learns_its_examples() -> None:
    random = np.random.RandomState(0)
    y = np.arange(9, dtype=np.int32) % 3
    x = (np.eye(3)[y] + 0.1 * random.normal(size=(9, 3))).astype(np.float32)
    network = MLP((3, 3))
    target = Target.classifier(network, Examples(x, y), UniformBox.for_network(network, 100.0))
    engine = Engine(target, temperature_path([1.0]), copies=3, devices=1, tile=3)
    starts = engine.init_weights()
    for method in ("fire", "alg3"):
        settings: Any = {
            "method": method,
            "time_step": 0.1,
            "max_gradients": 2000,
            "tolerance": 0.05,
        }
        found = engine.minimise(starts, Minimiser(**settings))
        assert bool(jnp.all(found.reached))
        energies = jax.vmap(target.energy)(found.point.weights)
        np.testing.assert_allclose(found.point.energy, energies, rtol=1e-4)
        assert float(jnp.max(energies)) <= 0.05 * (1 + 1e-4)


def test_fire_fits_fifty_images_from_every_start() -> None:
    target = Target.classifier(M3, mnist16().split(50).train, UniformBox.for_network(M3))
    engine = Engine(target, temperature_path([1.0]), copies=8, devices=2, tile=4)
    settings = Minimiser(tolerance=1e-3, max_gradients=1000)
    found = engine.minimise(engine.init_weights(), settings)
    assert found.gradients.shape == (8,)
    assert bool(jnp.all(found.reached))
    assert float(jnp.max(found.point.energy)) <= 1e-3
    assert bool(jnp.all(jax.vmap(target.prior.contains)(found.point.weights)))
