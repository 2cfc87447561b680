"""What a kernel is: persistent momenta by hand, and a third kernel by one class and one entry."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from tempernet import MLP, ConfigError, Dynamics, Engine, Target, UniformBox, temperature_path
from tempernet.data import Examples
from tempernet.kernels.base import Info, Point, Rung, Settings, Steps, select
from tempernet.kernels.hmc import HMC
from tempernet.kernels.horowitz import Horowitz, HorowitzState
from tempernet.kernels.momentum import draw_momentum, refreshed
from tempernet.kernels.potential import Potential
from tempernet.kernels.registry import KERNELS
from tempernet.model.networks import Weights
from tempernet.tempering.rounds import State

pytestmark = pytest.mark.usefixtures("quick_programs")

LIKE = jax.ShapeDtypeStruct((3,), jnp.float32)
BOX = UniformBox(1.0, LIKE)
TERMS = temperature_path([1.0]).terms_fn
ONES = np.ones(3, np.float32)
NETWORK = MLP((3, 2))
EXAMPLES = Examples(np.eye(3, dtype=np.float32), np.array([0, 1, 0], np.int32))
CLASSIFIER = Target.classifier(NETWORK, EXAMPLES, UniformBox.for_network(NETWORK, 5.0))


def horowitz(persistence: float, energy_fn: Any = lambda w: 2 * jnp.sum(w**2)) -> Horowitz:
    def evaluate(weights: Any) -> Point:
        return Point(weights, *jax.value_and_grad(energy_fn)(weights))

    settings = Dynamics(kernel="horowitz", persistence=persistence, jitter=0.0)
    return Horowitz(Potential(evaluate, TERMS, BOX), ONES, settings)


def rung(step_size: float, steps: int = 3) -> Rung:
    return Rung(jnp.ones(1), jnp.float32(step_size), Steps(steps))


def at(kernel: Horowitz, weights: Any, momentum: Any) -> HorowitzState:
    point = kernel.potential.evaluate_fn(jnp.asarray(weights, jnp.float32))
    return HorowitzState(point, jnp.asarray(momentum, jnp.float32))


def test_a_rejected_trajectory_turns_back_and_an_accepted_one_goes_on() -> None:
    kernel = horowitz(0.999999)
    start = at(kernel, [0.1, -0.2, 0.3], [0.5, -0.4, 0.2])
    step = jax.jit(lambda key, state, size: kernel.step(key, state, rung(size)))
    end, info = step(jax.random.key(0), start, 0.01)
    assert int(info.accepted) == 1
    np.testing.assert_allclose(
        end.point.weights, start.point.weights + 0.03 * start.momentum, atol=2e-3
    )
    assert float(jnp.dot(end.momentum, start.momentum)) > 0
    broken = horowitz(0.999999, lambda w: jnp.where(w[0] == jnp.float32(0.1), 0.0, jnp.nan) * w[0])
    start = at(broken, [0.1, -0.2, 0.3], [0.5, -0.4, 0.2])
    end, info = jax.jit(lambda: broken.step(jax.random.key(0), start, rung(0.1)))()
    assert int(info.accepted) == 0 and int(info.nonfinite) == 1
    np.testing.assert_array_equal(end.point.weights, start.point.weights)
    np.testing.assert_allclose(end.momentum, -start.momentum, atol=5e-3)


def test_a_momentum_is_mirrored_at_a_wall_and_persists_so() -> None:
    """Free flight from 0.9 by 0.3 ends at 0.8, on the way back."""
    kernel = horowitz(0.999999, lambda w: 0.0 * jnp.sum(w))
    start = at(kernel, [0.9, 0.0, 0.0], [1.0, 0.5, 0.0])
    end, info = jax.jit(lambda: kernel.step(jax.random.key(0), start, rung(0.1)))()
    assert int(info.accepted) == 1
    np.testing.assert_allclose(end.point.weights, [0.8, 0.15, 0.0], atol=3e-3)
    np.testing.assert_allclose(end.momentum, [-1.0, 0.5, 0.0], atol=5e-3)


def test_without_persistence_it_is_hmc() -> None:
    kernel = horowitz(0.0)
    plain = HMC(kernel.potential, kernel.masses, kernel.settings)
    start = at(kernel, [0.1, -0.2, 0.3], [0.5, -0.4, 0.2])
    for seed in range(3):
        key = jax.random.key(seed)
        end, info = kernel.step(key, start, rung(0.5))
        expected, same = plain.step(key, plain.init(key, start.point), rung(0.5))
        np.testing.assert_array_equal(end.point.weights, expected.point.weights)
        assert float(info.acceptance) == float(same.acceptance)


def test_a_refreshed_momentum_has_its_variance_and_its_correlation() -> None:
    weights, masses = jnp.zeros(40000), np.float32(4.0)
    old, new = (draw_momentum(jax.random.key(seed), weights, masses) for seed in (0, 1))
    found = np.asarray(refreshed(old, new, 0.7))
    assert found.std() == pytest.approx(2.0, rel=0.02)
    assert np.corrcoef(found, old)[0, 1] == pytest.approx(0.7, abs=0.02)


class CountingState(NamedTuple):
    point: Point
    count: Array  # type: ignore[assignment]
    angle: Array


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """Metropolis, and a count of its steps."""

    potential: Potential
    masses: Weights
    settings: Settings

    def init(self, key: Array, point: Point) -> CountingState:
        return CountingState(point, jnp.int32(0), jax.random.uniform(key))

    def step(self, key: Array, state: CountingState, rung: Rung) -> tuple[CountingState, Info]:
        move_key, accept_key = jax.random.split(key)
        move = draw_momentum(move_key, state.point.weights, self.masses)
        weights = jax.tree.map(lambda w, p: w + rung.step_size * p, state.point.weights, move)
        point = self.potential.evaluate_fn(weights)
        value = self.potential.value
        change = value(point.weights, point.energy, rung.coefficients) - value(
            state.point.weights, state.point.energy, rung.coefficients
        )
        inside = self.potential.prior.contains(weights)
        acceptance = jnp.where(inside, jnp.exp(jnp.minimum(-change, 0)), 0)
        accept = jax.random.uniform(accept_key) < acceptance
        moved = state._replace(point=select(accept, point, state.point), count=state.count + 1)
        zero = jnp.int32(0)
        return moved, Info(acceptance, accept.astype(jnp.int32), zero, zero)


@pytest.fixture(scope="module")
def walking() -> Any:
    KERNELS["walk"] = RandomWalk
    yield Dynamics(num_steps=1, num_trajectories=3, kernel="walk", lengths="steps")
    del KERNELS["walk"]


def started(dynamics: Dynamics, **options: Any) -> tuple[Engine, State]:
    path = temperature_path([0.5, 1.0, math.inf])
    engine = Engine(CLASSIFIER, path, copies=2, dynamics=dynamics, devices=1, **options)
    return engine, engine.start(engine.init_weights())


def test_a_third_kernel_is_timed_rounded_and_checkpointed(
    walking: Dynamics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine, begun = started(walking)
    assert list((tmp_path / "tempernet" / "tiles").iterdir())
    state, record = engine.round(begun, engine.rungs(0.3))
    # At the exact rung the state begins anew with the draw.
    assert np.asarray(state.kernel.count)[:6].tolist() == [3, 3, 0] * 2  # type: ignore[attr-defined]
    assert 0 < int(record.info.accepted.sum()) <= 18
    assert len(np.unique(np.asarray(begun.kernel.angle)[:6])) == 6  # type: ignore[attr-defined]

    saved = engine.packed(state)
    assert all(isinstance(value, np.ndarray) for value in saved.values())
    again = engine.unpacked({**saved, "others": np.zeros(3)}, 1)
    expected, same = (engine.round(s, engine.rungs(0.3))[0] for s in (state, again))
    jax.tree.map(np.testing.assert_array_equal, expected, same)


def test_persistent_momenta_go_through_rounds_tuning_and_checkpoints() -> None:
    dynamics = Dynamics(num_steps=3, num_trajectories=2, kernel="horowitz")
    engine, begun = started(dynamics, tile=3)
    momenta = np.asarray(jax.tree.leaves(begun.kernel.momentum)[0])  # type: ignore[attr-defined]
    assert len(np.unique(momenta[:6])) == momenta[:6].size
    tuned, rungs, _ = engine.tune(begun, engine.rungs(0.1))
    state, record = engine.round(tuned, rungs)
    assert np.isfinite(np.asarray(record.phi)).all()
    again = engine.unpacked(engine.packed(state), int(state.round))
    expected, same = (engine.round(s, rungs)[0] for s in (state, again))
    jax.tree.map(np.testing.assert_array_equal, expected, same)
    # Descendants of one replica are where it is, and leave it each in a direction of its own.
    family = engine.descended(state, np.zeros((2, 3), int))
    weights = jax.tree.leaves(engine.weights(family))[0]
    assert (weights[:3] == weights[0]).all() and (weights[3:] == weights[3]).all()
    moved = np.asarray(jax.tree.leaves(family.kernel.momentum)[0])[:6]  # type: ignore[attr-defined]
    assert len(np.unique(moved)) == moved.size


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "nuts"}, ("kernel", "hmc, horowitz", "nuts")),
        ({"persistence": 1.0}, ("persistence", "[0, 1)", "1.0")),
    ],
)
def test_settings_of_kernels_are_checked(options: dict[str, Any], said: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as error:
        replace(Dynamics(), **options)
    assert all(part in str(error.value) for part in said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": [1.0]}, "target must be a tempernet.Target, got [1.0]"),
        (
            {"path": [1.0]},
            "path must be a path such as tempernet.temperature_path gives, got [1.0]",
        ),
        ({"dynamics": {}}, "dynamics must be a tempernet.Dynamics, got {}"),
        ({"exchange": ["none"]}, "exchange must be one of"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], said: str) -> None:
    arguments = {"target": CLASSIFIER, "path": temperature_path([1.0]), "devices": 1, **given}
    with pytest.raises(ConfigError) as error:
        Engine(arguments.pop("target"), arguments.pop("path"), **arguments)
    assert said in str(error.value)
