"""Paths: the table of coefficients, the energy terms, and the paper's time steps."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tempernet import geometric_temperatures, temperature_path
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.temperatures import beta_path


def test_temperatures_make_a_table_of_inverse_temperatures() -> None:
    path = temperature_path([0.25, 1.0, 8.0, math.inf])
    assert (path.parameter, path.num_rungs) == ("temperature", 4)
    np.testing.assert_array_equal(path.values, [0.25, 1.0, 8.0, math.inf])
    np.testing.assert_array_equal(path.coefficients, [[4.0], [1.0], [0.125], [0.0]])
    np.testing.assert_array_equal(path.terms_fn({"w": jnp.ones(2)}, jnp.float32(7.5)), [7.5])


def test_betas_are_the_coefficients() -> None:
    path = beta_path([0.0, 0.25, 1.0])
    assert (path.parameter, path.num_rungs) == ("beta", 3)
    np.testing.assert_array_equal(path.coefficients, [[0.0], [0.25], [1.0]])
    np.testing.assert_array_equal(path.terms_fn({"w": jnp.ones(2)}, jnp.float32(7.5)), [7.5])


CENTRE = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
STIFFNESS = {"a": jnp.array([3.0, 5.0]), "b": jnp.array([[7.0]])}


def test_a_bridge_ends_in_the_posterior_and_in_the_quadratic() -> None:
    path = bridge_path([0.0, 0.25, 1.0], Centre(CENTRE, 2.0, STIFFNESS))
    assert (path.parameter, path.num_rungs) == ("lambda", 3)
    np.testing.assert_array_equal(path.coefficients, [[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]])


def test_the_terms_of_a_bridge() -> None:
    path = bridge_path([0.0, 1.0], Centre(CENTRE, 2.0, STIFFNESS))
    np.testing.assert_array_equal(path.terms_fn(CENTRE, jnp.float32(2.0)), [0.0, 0.0])
    away = {"a": CENTRE["a"] + jnp.array([1.0, -2.0]), "b": CENTRE["b"] + 4.0}
    quadratic = 0.5 * (3 * 1 + 5 * 4 + 7 * 16)
    np.testing.assert_allclose(path.terms_fn(away, jnp.float32(12.0)), [10.0, quadratic], rtol=1e-6)


def test_the_quadratic_of_a_bridge_pulls_towards_the_centre() -> None:
    path = bridge_path([0.0, 1.0], Centre(CENTRE, 2.0, STIFFNESS))
    away = {"a": CENTRE["a"] + jnp.array([1.0, -2.0]), "b": CENTRE["b"] + 4.0}
    slope = jax.grad(lambda weights: path.terms_fn(weights, jnp.float32(0.0))[1])(away)
    np.testing.assert_allclose(slope["a"], [3.0, -10.0])
    np.testing.assert_allclose(slope["b"], [[28.0]])


def test_the_papers_time_step_is_the_reduced_one_over_sqrt_t() -> None:
    steps = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(
        temperature_path([0.25, 4.0, math.inf]).time_steps(steps), [0.2, 0.1, 0.0]
    )
    np.testing.assert_array_equal(beta_path([0.0, 0.5, 1.0]).time_steps(steps), steps)
    bridge = bridge_path([0.0, 0.5, 1.0], Centre(CENTRE, 0.0, STIFFNESS))
    np.testing.assert_array_equal(bridge.time_steps(steps), steps)


def test_a_geometric_ladder_has_its_ends_and_a_constant_ratio() -> None:
    ladder = geometric_temperatures(1e-4, 10.0, 6)
    assert len(ladder) == 6
    assert ladder[0] == pytest.approx(1e-4, rel=1e-15)
    assert ladder[-1] == pytest.approx(10.0, rel=1e-15)
    np.testing.assert_allclose(ladder[1:] / ladder[:-1], 10.0)
    assert temperature_path(ladder).num_rungs == 6
