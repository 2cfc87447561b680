"""Population annealing, its arithmetic: how far a step goes, who descends from whom, where rungs
start.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tempernet as tn
from tempernet.kernels.base import Point
from tempernet.kernels.hmc import HMCState
from tempernet.paths.path import temperature_path
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import (
    KEPT,
    Cooling,
    Population,
    barrier,
    next_beta,
    resampled,
    step_sizes_at,
    weights_at,
)
from tempernet.tempering.rounds import State
from tempernet.tempering.sampling import starting_weights


@pytest.mark.parametrize("uniform", [0.0, 0.3, 0.999999])
def test_descendants_are_as_many_as_the_weights_say(uniform: float) -> None:
    weights = np.array([0.05, 0.5, 0.25, 0.0, 0.2])
    with np.errstate(divide="ignore"):
        parents = resampled(np.log(weights), uniform)
    counts = np.bincount(parents, minlength=5)
    assert counts.sum() == 5 and counts[3] == 0
    assert np.all(np.abs(counts - 5 * weights) < 1)
    assert resampled(np.full(7, -1e4), uniform).tolist() == list(range(7))


def test_descendants_on_average() -> None:
    weights = np.random.default_rng(0).exponential(size=9)
    uniforms = (np.arange(4000) + 0.5) / 4000
    counts = np.mean(
        [np.bincount(resampled(np.log(weights), u), minlength=9) for u in uniforms], axis=0
    )
    np.testing.assert_allclose(counts, 9 * weights / weights.sum(), atol=1e-3)


def test_a_step_leaves_the_share_asked_for_in_every_copy() -> None:
    """Normal energies of width sigma leave exp(-(step sigma)^2): the widest copy decides."""
    random = np.random.default_rng(1)
    energy = 50 + np.array([[1.0], [4.0]]) * random.normal(size=(2, 20_000))
    step = next_beta(energy, 2.0, 9.0, share=0.7) - 2.0
    assert step == pytest.approx(np.sqrt(np.log(1 / 0.7)) / 4, rel=0.05)
    # The twin that looks at both copies as one population goes further.
    assert next_beta(energy.reshape(1, -1), 2.0, 9.0, share=0.7) - 2.0 > 1.1 * step
    assert next_beta(energy, 2.0, 2.001) == 2.001
    assert next_beta(np.full((2, 5), 3.0), 0.0, 100.0) == 100.0


def made_up(betas: list[float], spread: list[float]) -> Population:
    """One weight a network, which says when it was kept, in which copy, and which of the two."""
    stages = len(betas)
    kept = 100.0 * np.arange(stages)[:, None, None] + 10 * np.arange(3)[:, None] + np.arange(KEPT)
    state = State(
        HMCState(Point({"w": -jnp.arange(20.0)}, jnp.zeros(20), {"w": jnp.zeros(20)})),
        jnp.zeros((3, 6)),
        jnp.int32(17),
    )
    steps = np.arange(1.0, stages + 1)
    return Population(state, betas[-1], steps[-1], np.array(betas), steps, np.array(spread), [kept])


def test_rungs_start_from_what_was_kept_next_to_them() -> None:
    population = made_up([0.0, 0.1, 1.0, 10.0], [1, 1, 1, 1])
    path = temperature_path([0.1, 0.11, 0.12, 0.9, 11.0, np.inf])
    weights = weights_at(population, path, {"w": jnp.zeros(())})["w"]
    assert weights.shape == (18,)
    # Rungs that share a temperature take turns among the two that were kept.
    assert weights[:6].tolist() == [300, 301, 300, 200, 100, 0]
    assert weights[12:].tolist() == [320, 321, 320, 220, 120, 20]
    # Every second copy comes from the cold: as the population now is.
    assert weights[6:12].tolist() == [-6, -7, -8, -9, -10, -11]
    np.testing.assert_allclose(
        step_sizes_at(population, temperature_path([0.1, 1.0, 10.0])), [4, 3, 2]
    )


def test_the_barrier_is_that_of_the_spread_of_energies() -> None:
    """A heat capacity of C gives sqrt(C / pi) for each factor of e in T."""
    betas = np.geomspace(0.1, 10, 400)
    found = barrier(
        made_up(betas.tolist(), (5 / betas).tolist()), temperature_path([0.1, 1.0, 10.0])
    )
    assert np.all(np.diff(found.path.values) > 0)
    assert found.total == pytest.approx(5 * np.log(100) / np.sqrt(np.pi), rel=1e-3)


def test_a_checkpoint_holds_all_of_it() -> None:
    population = made_up([0.1, 1.0], [2.0, 3.0])
    again = Population.restored(population.state._replace(round=jnp.int32(0)), population.arrays())
    assert int(again.state.round) == 17 and (again.beta, again.step_size) == (1.0, 2.0)
    for name, value in population.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], value)


def target() -> tn.Target:
    like = {"w": jax.ShapeDtypeStruct((3,), jnp.float32)}
    return tn.Target.from_energy(lambda w: jnp.sum(w["w"] ** 2), tn.UniformBox(1.0, like))


@pytest.mark.parametrize("temperatures", [[0.1, 1.0, 10.0], [0.1, 1.0, np.inf]])
def test_a_population_arrives_at_the_coldest_rung(temperatures: list[float]) -> None:
    engine = Engine(
        target(),
        temperature_path(temperatures),
        copies=2,
        dynamics=tn.Dynamics(4, 1),
        devices=1,
        seed=5,
    )
    cooling = Cooling(engine, rounds=2)
    population = cooling.start(engine.prior_weights())
    assert population.beta == 1 / temperatures[-1] and not cooling.finished(population)
    while not cooling.finished(population):
        before, population = population, cooling.stage(population)
        assert population.beta > before.beta
    assert population.beta == 10 and len(population.betas) == len(population.kept[0])
    assert population.kept[0].shape[1:] == (2, KEPT, 3)
    weights = starting_weights(engine, "annealed")
    assert weights["w"].shape == (6, 3) and np.abs(weights["w"]).max() <= 1


def test_descendants_keep_to_their_copy() -> None:
    engine = Engine(target(), temperature_path([1.0, 2.0, 3.0]), copies=2, devices=1)
    weights = {"w": np.repeat(0.1 * np.arange(6, dtype=np.float32)[:, None], 3, axis=1)}
    state = engine.descended(engine.start(weights), np.array([[0, 0, 2], [1, 1, 1]]))
    np.testing.assert_allclose(
        engine.energies(state), 0.03 * np.array([[0, 0, 4], [16, 16, 16]]), rtol=1e-5
    )
    np.testing.assert_allclose(
        state.kernel.point.weights["w"][:6, 0], [0, 0, 0.2, 0.4, 0.4, 0.4], rtol=1e-6
    )
