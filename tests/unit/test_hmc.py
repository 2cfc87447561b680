"""One HMC trajectory: every fate has its count, acceptance is exp(-dH), units are the paper's in
disguise.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy import stats

from tempernet import Dynamics, Gaussian, UniformBox, temperature_path
from tempernet.kernels.base import Info, Point, Rung, Steps, walk
from tempernet.kernels.hmc import HMC, HMCState
from tempernet.kernels.momentum import draw_momentum, kinetic_change
from tempernet.kernels.potential import Potential
from tempernet.model.priors import Prior
from tempernet.paths.bridge import Centre, bridge_path

DIMENSION = 4
LIKE = jax.ShapeDtypeStruct((DIMENSION,), jnp.float32)
BOX = UniformBox(1e3, LIKE)
TERMS = temperature_path([1.0]).terms_fn
ONE = np.float32(1.0)


def evaluator(energy_fn: Callable[[Any], Array]) -> Callable[[Any], Point]:
    return lambda weights: Point(weights, *jax.value_and_grad(energy_fn)(weights))


def kernel_of(
    energy_fn: Callable[[Any], Array], prior: Prior = BOX, masses: Any = ONE, **dynamics: Any
) -> HMC:
    settings = Dynamics(**{"jitter": 0.0, **dynamics})
    return HMC(Potential(evaluator(energy_fn), TERMS, prior), masses, settings)


def start_at(kernel: HMC, weights: Any) -> HMCState:
    return kernel.init(jax.random.key(0), kernel.potential.evaluate_fn(weights))


@functools.cache
def six_trajectories(walls: Any, half_width: float) -> Any:
    """From the origin, in an energy of 0 there and of `energy`, with slope `slope`, everywhere
    else.
    """

    def fn(energy: Array, slope: Array, coefficient: Array) -> tuple[Point, Point, Info]:
        def evaluate_fn(w: Array) -> Point:
            away = jnp.sum(jnp.abs(w)) > 0.1
            return Point(
                w, jnp.where(away, energy, 0), jnp.where(away, slope, jnp.zeros(DIMENSION))
            )

        potential = Potential(evaluate_fn, TERMS, UniformBox(half_width, LIKE))
        kernel = HMC(potential, ONE, Dynamics(walls=walls))
        start = start_at(kernel, jnp.zeros(DIMENSION))
        rung = Rung(coefficient[None], jnp.float32(1.0), Steps(2))
        end, info = walk(kernel, jax.random.key(0), start, rung, 6)
        return start.point, end.point, info

    return jax.jit(fn)


@pytest.mark.parametrize("coefficient", [1.0, 0.0], ids=["T=1", "T=inf"])
@pytest.mark.parametrize(
    ("walls", "half_width", "energy", "slope", "fate"),
    [
        ("reflect", 1e3, 0.0, 0.0, "accepted"),
        ("reject", 1e3, 0.0, 0.0, "accepted"),
        ("reject", 0.03, 0.0, 0.0, "wall_rejections"),
        ("reject", 0.03, 1e30, 0.0, "wall_rejections"),
        ("reject", 0.03, math.nan, 0.0, "nonfinite"),
        ("reflect", 1e3, math.nan, 0.0, "nonfinite"),
        ("reflect", 1e3, math.inf, 0.0, "nonfinite"),
        ("reflect", 1e3, -math.inf, 0.0, "nonfinite"),
        ("reflect", 1e3, 0.0, math.nan, "nonfinite"),
        ("reflect", 1e3, 0.0, math.inf, "nonfinite"),
        ("reject", 1e3, 0.0, math.inf, "nonfinite"),
        ("reflect", 1e3, 1e30, 0.0, "energy"),
    ],
)
def test_every_trajectory_has_one_fate(
    walls: str, half_width: float, energy: float, slope: float, fate: str, coefficient: float
) -> None:
    if fate == "energy" and coefficient == 0:
        fate = "accepted"
    arguments = (jnp.float32(energy), jnp.float32(slope), jnp.float32(coefficient))
    start, end, info = six_trajectories(walls, half_width)(*arguments)
    counts = {
        name: int(getattr(info, name)) for name in ("accepted", "wall_rejections", "nonfinite")
    }
    counts["energy"] = 6 - sum(counts.values())
    assert counts == {"accepted": 0, "wall_rejections": 0, "nonfinite": 0, "energy": 0, fate: 6}
    assert float(info.acceptance) == (1.0 if fate == "accepted" else 0.0)
    if fate == "accepted":
        assert float(jnp.sum(jnp.abs(end.weights))) > 0.1
    else:
        jax.tree.map(np.testing.assert_array_equal, end, start)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(end))


def quartic(weights: dict[str, Array]) -> Array:
    a, b = weights["a"], weights["b"]
    return 0.5 * jnp.sum(a**2) + 0.25 * jnp.sum(b**4) + 0.5 * jnp.sum(a) * jnp.sum(b)


START = {"a": np.array([0.4, -0.9, 0.2]), "b": np.array([1.1, -0.3])}
MASSES = {"a": np.array([2.0, 0.5, 3.0]), "b": np.array(0.7)}
SHAPES = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float64), START)


def quartic_by_hand(a: np.ndarray, b: np.ndarray) -> tuple[float, list[np.ndarray]]:
    energy = 0.5 * np.sum(a**2) + 0.25 * np.sum(b**4) + 0.5 * np.sum(a) * np.sum(b)
    return float(energy), [a + 0.5 * np.sum(b), b**3 + 0.5 * np.sum(a)]


def by_hand(
    momentum: list[np.ndarray],
    dt: float,
    masses: Any,
    temperature: float,
    std: Any = (np.inf, np.inf),
) -> tuple[Any, float]:
    """Five steps in the paper's own units: momenta of variance m T, and exp(-dH/T) at the end.

    The potential is E + T w^2 / (2 std^2): a prior is not tempered, so T multiplies it here.
    """
    weights, m = [START["a"], START["b"]], [masses["a"], masses["b"]]

    def potential(weights: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        energy, gradient = quartic_by_hand(*weights)
        energy += temperature * sum(
            np.sum(w**2 / (2 * s**2)) for w, s in zip(weights, std, strict=True)
        )
        return energy, [
            g + temperature * w / s**2 for g, w, s in zip(gradient, weights, std, strict=True)
        ]

    def hamiltonian() -> float:
        kinetic = sum(np.sum(p**2 / (2 * m_i)) for p, m_i in zip(momentum, m, strict=True))
        return float(potential(weights)[0] + kinetic)

    before = hamiltonian()
    for _ in range(5):
        momentum = [p - 0.5 * dt * g for p, g in zip(momentum, potential(weights)[1], strict=True)]
        weights = [w + dt * p / m_i for w, p, m_i in zip(weights, momentum, m, strict=True)]
        momentum = [p - 0.5 * dt * g for p, g in zip(momentum, potential(weights)[1], strict=True)]
    acceptance = math.exp(min(0.0, -(hamiltonian() - before) / temperature))
    return {"a": weights[0], "b": weights[1]}, acceptance


@functools.cache
def one_trajectory(gaussian: bool) -> Any:
    """A trajectory from START and the momentum that it drew, compiled once."""
    prior = Gaussian(STD, SHAPES) if gaussian else UniformBox(1e3, SHAPES)

    def fn(
        key: Array, masses: Any, temperature: Array, step_size: Array
    ) -> tuple[Any, Point, Info]:
        kernel = kernel_of(quartic, prior, masses)
        start = start_at(kernel, jax.tree.map(jnp.asarray, START))
        end, info = kernel.step(key, start, Rung(1 / temperature[None], step_size, Steps(5)))
        momentum = draw_momentum(jax.random.split(key)[0], start.point.weights, masses)
        return momentum, end.point, info

    return jax.jit(fn)


STD = {"a": 0.8, "b": 1.5}
UNIT_MASSES = {"a": np.ones(3), "b": np.array(1.0)}


@pytest.mark.parametrize("gaussian", [False, True], ids=["box", "gaussian"])
@pytest.mark.parametrize("masses", [UNIT_MASSES, MASSES], ids=["unit", "masses"])
@pytest.mark.parametrize("temperature", [1.0, 0.3, 25.0])
def test_a_trajectory_is_the_papers_with_momenta_times_sqrt_t(
    temperature: float, masses: Any, gaussian: bool
) -> None:
    dt = 0.12 if gaussian else 0.4
    std = (STD["a"], STD["b"]) if gaussian else (np.inf, np.inf)
    acceptances, accepted = [], 0
    with jax.enable_x64(True):
        run = one_trajectory(gaussian)
        for seed in range(6):
            momentum, end, info = run(
                jax.random.key(seed),
                jax.tree.map(jnp.asarray, masses),
                jnp.asarray(temperature),
                jnp.asarray(dt * math.sqrt(temperature)),
            )
            papers = [math.sqrt(temperature) * np.asarray(momentum[leaf]) for leaf in "ab"]
            weights, acceptance = by_hand(papers, dt, masses, temperature, std)
            assert float(info.acceptance) == pytest.approx(acceptance, rel=1e-9)
            expected = weights if info.accepted else START
            jax.tree.map(
                lambda f, e: np.testing.assert_allclose(f, e, atol=1e-11), end.weights, expected
            )
            assert float(end.energy) == pytest.approx(
                quartic_by_hand(*expected.values())[0], rel=1e-9
            )
            acceptances.append(acceptance)
            accepted += int(info.accepted)
    assert min(acceptances) < 1
    assert accepted > 0


def test_the_slope_is_the_gradient_of_the_potential() -> None:
    with jax.enable_x64(True):
        centre = jax.tree.map(lambda leaf: jnp.asarray(leaf) + 0.5, START)
        stiffness = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 3.0), START)
        path = bridge_path([0.0, 1.0], Centre(centre, 0.7, stiffness))
        prior = Gaussian({"a": 0.8, "b": 1.5}, SHAPES)
        potential = Potential(evaluator(quartic), path.terms_fn, prior)
        coefficients = jnp.array([0.6, 0.4])
        weights = jax.tree.map(jnp.asarray, START)
        slope = jax.jit(lambda w: potential.slope(potential.evaluate_fn(w), coefficients))(weights)
        value = jax.jit(jax.grad(lambda w: potential.value(w, quartic(w), coefficients)))
        expected = value(weights)
        jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=1e-12), slope, expected)
        quadratic = sum(1.5 * 0.25 * leaf.size for leaf in START.values())
        by_terms = 0.6 * (float(quartic(weights)) - 0.7) + 0.4 * quadratic
        by_terms += float(
            np.sum(START["a"] ** 2) / (2 * 0.64) + np.sum(START["b"] ** 2) / (2 * 2.25)
        )
        found = potential.value(weights, quartic(weights), coefficients)
        assert float(found) == pytest.approx(by_terms, rel=1e-12)


def free_flights(jitter: float) -> np.ndarray:
    """Step sizes, in units of the rung's, of single steps without a force."""
    with jax.enable_x64(True):
        like = jax.ShapeDtypeStruct((1,), jnp.float64)
        kernel = kernel_of(
            lambda w: 0.0 * jnp.sum(w),
            UniformBox(1e6, like),
            np.float64(1.0),
            jitter=jitter,
        )
        start = start_at(kernel, jnp.zeros(1))
        rung = Rung(jnp.zeros(1), jnp.asarray(2.0), Steps(1))
        keys = jax.random.split(jax.random.key(5), 500)

        def flight(key: Array) -> Array:
            end, _ = kernel.step(key, start, rung)
            momentum = draw_momentum(jax.random.split(key)[0], start.point.weights, np.float64(1.0))
            return end.point.weights[0] / momentum[0]

        return np.asarray(jax.jit(jax.vmap(flight))(keys)) / 2.0


def test_without_jitter_the_step_is_the_rungs() -> None:
    np.testing.assert_allclose(free_flights(0.0), 1.0, rtol=1e-12)


def test_jitter_draws_the_step_uniformly_around_the_rungs() -> None:
    steps = free_flights(0.1)
    assert np.all(np.abs(steps - 1) <= 0.1 + 1e-12)
    assert stats.kstest(steps, stats.uniform(0.9, 0.2).cdf).pvalue > 0.01


def test_momenta_are_normal_with_the_masses_as_variances() -> None:
    weights = {"a": jnp.zeros((2, 3)), "b": jnp.zeros(4)}
    masses = {"a": np.float32(9.0), "b": np.array([1.0, 4.0, 16.0, 0.25], np.float32)}
    keys = jax.random.split(jax.random.key(6), 400)
    momentum = jax.jit(jax.vmap(lambda key: draw_momentum(key, weights, masses)))(keys)
    for leaf, scaled in (
        ("a", momentum["a"] / 3.0),
        ("b", momentum["b"] / np.array([[1, 2, 4, 0.5]], np.float32)),
    ):
        assert stats.kstest(np.asarray(scaled).ravel(), stats.norm.cdf).pvalue > 0.01, leaf
    columns = np.concatenate([momentum["a"].reshape(400, -1), momentum["b"]], axis=1)
    correlation = np.corrcoef(columns.T) - np.eye(10)
    assert np.max(np.abs(correlation)) < 5 / math.sqrt(400)


def test_kinetic_change_keeps_small_differences_of_large_sums() -> None:
    before = {"a": jnp.full(1000, 1.0), "b": jnp.full((10, 10), 2.0)}
    after = {"a": before["a"].at[0].set(1.001), "b": before["b"]}
    masses = {"a": np.float32(2.0), "b": np.float32(5.0)}
    difference = float(np.float32(1.001)) ** 2 - 1
    assert float(kinetic_change(before, after, masses)) == pytest.approx(difference / 4, rel=1e-5)


def test_trajectories_are_single_ones_in_sequence() -> None:
    kernel = kernel_of(lambda w: 2 * jnp.sum(w**2), jitter=0.2)
    rung = Rung(jnp.array([1.0]), jnp.float32(0.7), Steps(3))
    key = jax.random.key(11)
    start = start_at(kernel, jnp.full(DIMENSION, 0.5))
    end, total = jax.jit(lambda: walk(kernel, key, start, rung, 6))()
    one = jax.jit(lambda key, state: kernel.step(key, state, rung))
    state, infos = start, []
    for i in range(6):
        state, info = one(jax.random.fold_in(key, i), state)
        infos.append(info)
    np.testing.assert_allclose(end.point.weights, state.point.weights, rtol=1e-5)
    assert int(total.accepted) == sum(int(info.accepted) for info in infos)
    assert 0 < int(total.accepted) < 6
    mean = np.mean([float(info.acceptance) for info in infos])
    assert float(total.acceptance) == pytest.approx(mean, rel=1e-4)


def test_reflecting_walls_keep_a_replica_in_a_narrow_box() -> None:
    kernel = kernel_of(lambda w: jnp.sum(w), UniformBox(0.05, LIKE))
    start = start_at(kernel, jnp.zeros(DIMENSION))
    rung = Rung(jnp.array([1.0]), jnp.float32(0.3), Steps(4))
    end, info = jax.jit(lambda: walk(kernel, jax.random.key(0), start, rung, 20))()
    assert int(info.wall_rejections) == 0
    assert int(info.accepted) > 0
    assert bool(kernel.potential.prior.contains(end.point.weights))
    assert float(jnp.max(jnp.abs(end.point.weights))) > 0
