"""Velocity Verlet and its walls: reversible, of second order, isometric, the textbook's loop."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.flatten_util import ravel_pytree
from scipy import stats

from tempernet.kernels.base import Point
from tempernet.kernels.integrator import drift, fold, kick, velocity_verlet


def energy_fn(weights: dict[str, Array]) -> Array:
    """Anharmonic, and coupled between the leaves."""
    a, b = weights["a"], weights["b"]
    return 0.5 * jnp.sum(a**2) + 0.25 * jnp.sum(b**4) + 0.3 * jnp.sum(a) * jnp.sin(jnp.sum(b))


def evaluate(weights: dict[str, Array]) -> Point:
    return Point(weights, *jax.value_and_grad(energy_fn)(weights))


def slope(point: Point) -> Any:
    return point.gradient


WEIGHTS = {"a": np.array([0.4, -0.9, 0.2]), "b": np.array([[1.1, -0.3]])}
MOMENTUM = {"a": np.array([1.5, 0.3, -0.8]), "b": np.array([[-0.7, 2.0]])}
ONES = {"a": np.ones(3), "b": np.array(1.0)}
MASSES = {"a": np.array([2.0, 0.5, 3.0]), "b": np.array(0.7)}
BOX = {"a": np.array(1.0), "b": np.array(1.2)}


def arrays(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


@functools.cache
def compiled(walls: bool) -> Any:
    """One compilation for all numbers of steps, step sizes and masses."""

    def fn(
        weights: Any, momentum: Any, step_size: Array, num_steps: Any, masses: Any
    ) -> tuple[Point, Any]:
        return velocity_verlet(
            evaluate(weights),
            momentum,
            step_size,
            num_steps,
            evaluate_fn=evaluate,
            slope_fn=slope,
            masses=masses,
            half_width=BOX if walls else None,
        )

    return jax.jit(fn)


def run(
    weights: Any,
    momentum: Any,
    step_size: float,
    num_steps: int,
    masses: Any = ONES,
    walls: bool = False,
) -> tuple[Point, Any]:
    return compiled(walls)(
        arrays(weights), arrays(momentum), jnp.asarray(step_size), num_steps, arrays(masses)
    )


def assert_close(found: Any, expected: Any, atol: float = 1e-12) -> None:
    jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=0, atol=atol), found, expected)


@pytest.mark.parametrize("walls", [False, True], ids=["free", "walls"])
@pytest.mark.parametrize("masses", [ONES, MASSES], ids=["unit", "masses"])
def test_a_trajectory_runs_back_to_where_it_came_from(masses: Any, walls: bool) -> None:
    with jax.enable_x64(True):
        end, momentum = run(WEIGHTS, MOMENTUM, 0.1, 60, masses, walls)
        moved = max(float(jnp.max(jnp.abs(end.weights[leaf] - WEIGHTS[leaf]))) for leaf in "ab")
        assert moved > 0.1
        flipped = jax.tree.map(jnp.negative, momentum)
        back, momentum = run(end.weights, flipped, 0.1, 60, masses, walls)
        assert_close(back.weights, WEIGHTS, 1e-11)
        assert_close(jax.tree.map(jnp.negative, momentum), MOMENTUM, 1e-11)


def hamiltonian(point: Point, momentum: Any, masses: Any) -> float:
    kinetic = jax.tree.map(lambda p, m: jnp.sum(p**2 / (2 * m)), momentum, masses)
    return float(point.energy + sum(jax.tree.leaves(kinetic), jnp.zeros(())))


def test_the_energy_error_falls_as_the_square_of_the_step() -> None:
    def error(num_steps: int) -> float:
        """Root mean square over ends at several times: one end alone may be where the error crosses
        0.
        """
        start = hamiltonian(evaluate(arrays(WEIGHTS)), arrays(MOMENTUM), arrays(MASSES))
        errors = []
        for periods in (1, 2, 3):
            end = run(WEIGHTS, MOMENTUM, 0.7 / num_steps, periods * num_steps, MASSES)
            errors.append(hamiltonian(*end, arrays(MASSES)) - start)
        return float(np.sqrt(np.mean(np.square(errors))))

    with jax.enable_x64(True):
        errors = [error(num_steps) for num_steps in (20, 40, 80)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.1)


def gradient(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of `energy_fn` by hand."""
    return a + 0.3 * np.sin(b.sum()), b**3 + 0.3 * a.sum() * np.cos(b.sum())


def textbook(step_size: float, num_steps: int, walls: bool) -> tuple[Any, Any]:
    """Half-kick, drift, bounce weight by weight, force, half-kick; two forces a step, in plain
    numpy.
    """
    w, p, m = ([tree["a"], tree["b"]] for tree in (WEIGHTS, MOMENTUM, MASSES))
    for _ in range(num_steps):
        p = [p_i - 0.5 * step_size * g_i for p_i, g_i in zip(p, gradient(*w), strict=True)]
        w = [w_i + step_size * p_i / m_i for w_i, p_i, m_i in zip(w, p, m, strict=True)]
        if walls:
            bounced = [
                np.vectorize(bounce)(w_i, p_i, BOX[leaf])
                for w_i, p_i, leaf in zip(w, p, "ab", strict=True)
            ]
            w, p = [pair[0] for pair in bounced], [pair[1] for pair in bounced]
        p = [p_i - 0.5 * step_size * g_i for p_i, g_i in zip(p, gradient(*w), strict=True)]
    return dict(zip("ab", w, strict=True)), dict(zip("ab", p, strict=True))


def bounce(position: float, momentum: float, half_width: float) -> tuple[float, float]:
    """Reflect at one wall after another until inside."""
    while abs(position) > half_width:
        position = math.copysign(2 * half_width, position) - position
        momentum = -momentum
    return position, momentum


@pytest.mark.parametrize("walls", [False, True], ids=["free", "walls"])
def test_the_loop_with_merged_kicks_is_the_textbooks(walls: bool) -> None:
    with jax.enable_x64(True):
        end, momentum = run(WEIGHTS, MOMENTUM, 0.15, 25, MASSES, walls)
        expected = textbook(0.15, 25, walls)
        assert_close((end.weights, momentum), expected)
        assert_close(end, evaluate(end.weights))
        if walls:
            free, _ = run(WEIGHTS, MOMENTUM, 0.15, 25, MASSES)
            assert float(jnp.max(jnp.abs(free.weights["b"] - end.weights["b"]))) > 0.1


@pytest.mark.parametrize("walls", [False, True], ids=["free", "walls"])
def test_a_replica_that_shares_a_longer_loop_makes_its_own_steps(walls: bool) -> None:
    def shared(num_steps: Any) -> Any:
        return velocity_verlet(
            evaluate(arrays(WEIGHTS)),
            arrays(MOMENTUM),
            jnp.asarray(0.15),
            num_steps,
            evaluate_fn=evaluate,
            slope_fn=slope,
            masses=arrays(MASSES),
            half_width=BOX if walls else None,
            longest=jnp.asarray(25),
        )

    with jax.enable_x64(True):
        ends = jax.vmap(shared)(jnp.array([1, 11, 25]))
        for i, num_steps in enumerate((1, 11, 25)):
            own = run(WEIGHTS, MOMENTUM, 0.15, num_steps, MASSES, walls)
            assert_close(jax.tree.map(lambda leaf, i=i: leaf[i], ends), own)


def test_a_step_costs_one_gradient() -> None:
    calls = 0

    def counted(weights: Any) -> Point:
        nonlocal calls
        calls += 1
        return Point(weights, jnp.sum(weights**2), 2 * weights)

    start = Point(jnp.ones(2), jnp.float32(2.0), jnp.full(2, 2.0))
    with jax.disable_jit():
        velocity_verlet(
            start,
            jnp.ones(2),
            jnp.float32(0.1),
            7,
            evaluate_fn=counted,
            slope_fn=slope,
            masses=np.float32(1.0),
        )
    assert calls == 7


def test_folding_changes_nothing_inside() -> None:
    position = jnp.linspace(-1.99, 1.99, 41)
    folded, momentum = fold(position, position + 1, jnp.float32(2.0))
    np.testing.assert_array_equal(folded, position)
    np.testing.assert_array_equal(momentum, position + 1)


def test_folding_is_bouncing_as_often_as_it_takes() -> None:
    random = np.random.RandomState(0)
    position = np.concatenate([random.uniform(-40, 40, 500), [1.3, -1.3, 3.9 + 1e-9, -3.9 - 1e-9]])
    momentum = random.normal(size=position.shape)
    with jax.enable_x64(True):
        folded = fold(jnp.asarray(position), jnp.asarray(momentum), jnp.asarray(np.float64(1.3)))
    expected = np.array(
        [bounce(w, p, 1.3) for w, p in zip(position[:500], momentum[:500], strict=True)]
    )
    np.testing.assert_allclose(np.stack(folded, axis=1)[:500], expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.abs(folded[0][500:]), 1.3, rtol=1e-8)
    bounces = np.round(np.abs(position) / 2.6)
    assert bounces.max() > 10 and {0, 1, 2, 3} <= set(bounces)


def test_a_drift_moves_by_velocity_and_a_kick_by_force() -> None:
    with jax.enable_x64(True):
        w, p, mass = jnp.array([0.5, -0.5]), jnp.array([3.0, 1.0]), np.array([2.0, 4.0])
        free, momentum = drift(w, p, jnp.asarray(0.1), mass, None)
        np.testing.assert_allclose(free, [0.65, -0.475], rtol=1e-15)
        np.testing.assert_array_equal(momentum, p)
        folded, momentum = drift(w, p, jnp.asarray(1.0), mass, np.array([1.0, 1.0]))
        np.testing.assert_allclose(folded, [0.0, -0.25], atol=1e-15)
        np.testing.assert_array_equal(momentum, [-3.0, 1.0])
        np.testing.assert_allclose(kick(p, jnp.array([1.0, -2.0]), jnp.asarray(0.5)), [2.5, 2.0])


@pytest.mark.parametrize("walls", [False, True], ids=["free", "walls"])
def test_a_trajectory_keeps_the_volume_of_phase_space(walls: bool) -> None:
    with jax.enable_x64(True):
        phase, unravel = ravel_pytree((arrays(WEIGHTS), arrays(MOMENTUM)))

        def flow(phase: Array) -> Array:
            weights, momentum = unravel(phase)
            end, momentum = run(weights, momentum, 0.15, 8, MASSES, walls)
            return ravel_pytree((end.weights, momentum))[0]

        determinant = np.linalg.det(jax.jit(jax.jacfwd(flow))(phase))
    assert abs(determinant) == pytest.approx(1, abs=1e-12)


def test_a_fold_is_an_isometry() -> None:
    with jax.enable_x64(True):
        for position in (0.3, 1.7, -9.4):
            jacobian = jax.jacobian(
                lambda at: jnp.stack(fold(at[0], at[1], jnp.asarray(np.float64(1.0))))
            )(jnp.array([position, 0.8]))
            np.testing.assert_allclose(jacobian @ jacobian.T, np.eye(2), atol=1e-15)


def test_folding_keeps_a_uniform_density_uniform() -> None:
    random = np.random.RandomState(4)
    position = random.uniform(-2, 2, 20_000) + random.normal(0, 3.0, 20_000)
    with jax.enable_x64(True):
        folded, _ = fold(jnp.asarray(position), jnp.asarray(position), jnp.asarray(np.float64(2.0)))
    uniform = stats.uniform(-2, 4).cdf
    assert stats.kstest(np.asarray(folded), uniform).pvalue > 0.01
    # Stopping at the walls instead must fail the same check.
    assert stats.kstest(np.clip(position, -2, 2), uniform).pvalue < 1e-6
