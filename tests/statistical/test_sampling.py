"""Whole runs against known answers: averages within their Monte Carlo errors, wells that only
exchange crosses.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from invariance import GAUSSIAN_IN_BOX, WELLS_IN_GAUSSIAN, Case

import tempernet as tn
from tempernet.diagnostics.statistics import average
from tempernet.tempering.engine import Engine

DEEP_WELLS = Case("deep wells", lambda y: 8.0 * (y**2 - 1) ** 2, True, 2.0, 0.1, dims=1)
LADDER = (0.6, 1.2, 2.5, 6.0, 20.0)


def _share_right(exchange: str, rounds: int) -> tuple[float, float]:
    """Share of samples at y > 0 at the lowest temperature, from starts at y = -1, and its error
    over copies.
    """
    engine = Engine(
        DEEP_WELLS.target(),
        tn.temperature_path(LADDER),
        copies=100,
        dynamics=tn.Dynamics(num_steps=8, num_trajectories=2),
        exchange=exchange,
        devices=2,
        seed=3,
    )
    state = engine.start({"w": np.full((engine.num_replicas, 1), -1.0, np.float32)})
    rungs = engine.rungs(0.1 * np.sqrt(LADDER))
    right = []
    for done in range(rounds):
        state, _ = engine.round(state, rungs)
        if done >= rounds // 4:
            right.append(engine.weights_at(state, 0)["w"][:, 0] > 0)
    by_copy = np.mean(right, axis=0)
    return float(by_copy.mean()), float(by_copy.std(ddof=1) / np.sqrt(len(by_copy)))


def test_exchange_crosses_wells_that_hmc_alone_does_not() -> None:
    stuck, _ = _share_right("none", 200)
    assert stuck < 0.02
    for rule in ("even-odd", "random-pairs"):
        share, error = _share_right(rule, 400)
        assert error < 0.05
        assert abs(share - 0.5) < 3 * error, (rule, share, error)


def _run(case: Case, walls: str, temperatures: tuple[float, ...]) -> tn.Samples:
    """A run by `sample` from starts far from equilibrium."""
    return tn.sample(
        case.target(),
        temperatures,
        rounds=150,
        burn_in=30,
        copies=64,
        dynamics=tn.Dynamics(num_steps=5, num_trajectories=2, walls=walls),  # type: ignore[arg-type]
        tuning=tn.Tuning(search_trajectories=1, check_trajectories=1000, max_checks=2),
        devices=2,
        start="prior",
    )


def _mean_energy(case: Case, temperature: float) -> float:
    grid, cumulative = case.distribution(temperature)
    middle = 0.5 * (grid[1:] + grid[:-1])
    return case.dims * float(np.sum(np.diff(cumulative) * np.asarray(case.energy(middle))))


@pytest.mark.parametrize(
    ("case", "walls"),
    [(GAUSSIAN_IN_BOX, "reflect"), (GAUSSIAN_IN_BOX, "reject"), (WELLS_IN_GAUSSIAN, "reflect")],
)
def test_mean_energies_of_a_tuned_run(case: Case, walls: str) -> None:
    temperatures = (0.1, 1.0, 10.0, np.inf)
    energy = _run(case, walls, temperatures).energy
    means = energy.mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    scores = (
        means.mean(axis=0) - [_mean_energy(case, temperature) for temperature in temperatures]
    ) / error
    assert np.all(np.abs(scores) < 3.5), scores


def test_errors_of_two_copies_cover_the_truth() -> None:
    """Two errors of an average hold 95 %; those of two means alone, without Student's
    factor, do not.
    """
    temperatures = (0.3, 1.0, 10.0, np.inf)
    samples = _run(GAUSSIAN_IN_BOX, "reflect", temperatures)
    exact = np.array([_mean_energy(GAUSSIAN_IN_BOX, temperature) for temperature in temperatures])
    pairs = samples.energy.reshape(-1, 2, *samples.energy.shape[1:])
    found = [average(energy) for energy in pairs]
    assert np.mean([np.abs(mean - exact) < 2 * error for mean, error in found]) > 0.88
    means = pairs.mean(axis=2)
    naive = np.abs(means.mean(axis=1) - exact) < 2 * means.std(axis=1, ddof=1) / np.sqrt(2)
    assert np.mean(naive) < 0.82


def _two_weight_network() -> tn.FunctionNetwork:
    """Scores (0, w . x + 0) of two inputs: two weights, so that quadrature gives every average."""
    return tn.FunctionNetwork(
        lambda key: {"weight": jax.random.uniform(key, (1, 2), minval=-0.5, maxval=0.5)},
        lambda w, x: jnp.concatenate([jnp.zeros((len(x), 1), x.dtype), x @ w["weight"].T], axis=1),
        fan_ins={"weight": 2},
    )


def _real_images(size: int, classes: int, n_train: int) -> tn.data.Dataset:
    """Real images of the first few digits, reduced to size x size."""
    source = tn.mnist16()
    keep = source.y_train < classes
    some = tn.data.Source(
        "few", source.x_train[keep][:2000], source.y_train[keep][:2000], *_none(source), classes
    )
    return some.resized(size).split(n_train)


def _none(source: Any) -> tuple[np.ndarray, np.ndarray]:
    return source.x_test[:0], source.y_test[:0]


@pytest.mark.parametrize("walls", ["reflect", "reject"])
def test_two_weights_on_real_images_against_quadrature(walls: str) -> None:
    data = _real_images(2, 2, 20)
    inputs = data.train.x.reshape(20, -1)[:, :2]
    train = tn.data.Examples(inputs, data.train.y)
    network = _two_weight_network()
    target = tn.Target.classifier(network, train, tn.UniformBox.for_network(network, factor=4.0))
    temperatures = (0.1, 1.0, 10.0)
    samples = tn.sample(
        target,
        temperatures,
        rounds=200,
        burn_in=30,
        copies=64,
        dynamics=tn.Dynamics(num_steps=6, num_trajectories=2, walls=walls),  # type: ignore[arg-type]
        tuning=tn.Tuning(search_trajectories=1, check_trajectories=1000, max_checks=2),
        devices=2,
        tile=96,
    )
    edge = float(jax.tree.leaves(target.prior.half_width)[0])
    cells = 600
    axis = edge * (2 * (np.arange(cells) + 0.5) / cells - 1)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2).astype(np.float32)
    energy = np.asarray(jax.jit(jax.vmap(lambda w: target.energy({"weight": w})))(grid), np.float64)
    for rung, temperature in enumerate(temperatures):
        weight = np.exp(-(energy - energy.min()) / temperature)
        exact = np.sum(weight * energy) / np.sum(weight)
        mean, error = samples.energy[:, :, rung].mean(), _error(samples.energy[:, :, rung])
        assert abs(mean - exact) < 3.5 * error, (temperature, mean, exact, error)
        assert error < 0.05 * exact


def _error(values: np.ndarray) -> float:
    means = values.mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(len(means)))


@pytest.mark.slow
def test_both_walls_agree_on_a_tiny_network_on_real_images() -> None:
    """At length what the two weights above show against quadrature."""
    data = _real_images(2, 3, 30)
    network = tn.MLP((4, 3, 3))
    assert network.num_weights == 27
    target = tn.Target.classifier(
        network, data.train, tn.UniformBox.for_network(network, factor=4.0)
    )
    results = {}
    # The rejecting chain takes steps a tenth as long and needs a long time to forget its start.
    for walls, burn_in, rounds, num_steps in (("reflect", 75, 150, 15), ("reject", 1800, 700, 6)):
        samples = tn.sample(
            target,
            tn.geometric_temperatures(0.1, 10, 13),
            rounds=rounds,
            burn_in=burn_in,
            copies=16,
            dynamics=tn.Dynamics(num_steps=num_steps, num_trajectories=10, walls=walls),  # type: ignore[arg-type]
            tuning=tn.Tuning(search_trajectories=1, check_trajectories=300, max_checks=2),
            devices=2,
            tile=104,
            seed=7,
            # At the minimum many weights lie on a wall, where the rejecting rule holds them for
            # very long.
            start="prior",
        )
        results[walls] = [
            (samples.energy[:, :, rung].mean(), _error(samples.energy[:, :, rung]))
            for rung in range(13)
        ]
    for rung in (0, 6, 12):
        (a, a_error), (b, b_error) = results["reflect"][rung], results["reject"][rung]
        assert abs(a - b) < 3.5 * np.hypot(a_error, b_error), (rung, a, a_error, b, b_error)
        assert np.hypot(a_error, b_error) < 0.02 * a, (rung, a, a_error, b, b_error)
