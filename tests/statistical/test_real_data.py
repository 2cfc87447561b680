"""On the paper's networks and images: what minimisation and tuning must achieve there."""

import numpy as np
import pytest

import tempernet as tn
from tempernet.tempering.engine import Engine


def _engine(network: tn.MLP, n_train: int, temperatures: list[float], **options: object) -> Engine:
    data = tn.mnist16().split(n_train)
    target = tn.Target.classifier(
        network, data.train, tn.UniformBox.for_network(network, factor=50)
    )
    return Engine(target, tn.temperature_path(temperatures), devices=2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_train", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_fire_takes_95_percent_of_its_starts_down_within_1000_gradients(n_train: int) -> None:
    engine = _engine(tn.M3, n_train, [1.0], copies=40, tile=10)
    ends = engine.minimise(engine.init_weights(), tn.Minimiser(tolerance=1e-3, max_gradients=1000))
    assert np.max(ends.gradients) <= 1000
    assert np.mean(np.asarray(ends.point.energy) < 1e-3) >= 0.95


def test_tuning_from_steps_a_thousand_times_too_small_and_too_large() -> None:
    temperatures = [0.01, 1.0, 100.0, np.inf]
    engine = _engine(tn.M1, 50, temperatures, copies=8, tile=16, dynamics=tn.Dynamics(num_steps=10))
    state = engine.start(
        engine.minimise(engine.init_weights(), tn.Minimiser(tolerance=1e-3)).point.weights
    )
    middle = engine.rungs(1e-2)
    for _ in range(4):
        # From a minimum the right step falls as the weights warm up: what is compared must not.
        state, middle, acceptance = engine.tune(state, middle)
    for factor in (1e-3, 1e3):
        _, rungs, acceptance = engine.tune(
            state, engine.rungs(factor * np.asarray(middle.step_sizes))
        )
        # The prior's rung flies freely between the walls: every step size is accepted, up to the
        # largest.
        assert float(rungs.step_sizes[-1]) == pytest.approx(engine.largest_step, rel=1e-5)
        assert acceptance[-1] > 0.99
        # 64 trajectories measure the acceptance to about 0.04.
        assert np.all((acceptance[:-1] > 0.52) & (acceptance[:-1] < 0.78)), acceptance
        assert np.all(np.abs(np.log(np.asarray(rungs.step_sizes / middle.step_sizes))) < 0.3)
