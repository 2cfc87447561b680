"""A population that cools has the right share of two wells that nothing crosses; without weights it
has not.
"""

import numpy as np
import pytest
from invariance import Case

import tempernet as tn
from tempernet.tempering import population
from tempernet.tempering.engine import Engine

pytestmark = pytest.mark.usefixtures("quick_programs")
UNEVEN = Case("uneven wells", lambda y: 10.0 * (y**2 - 1) ** 2 + 0.8 * y, True, 2.0, 0.1, dims=1)
REPLICAS, COPIES = 64, 40


def _shares() -> tuple[np.ndarray, np.ndarray]:
    """Share of the left well at T = 0.5, and the mean energy, of each copy: (copies,) both."""
    rungs = np.append(np.geomspace(0.5, 50, REPLICAS - 1), np.inf)
    engine = Engine(
        UNEVEN.target(),
        tn.temperature_path(rungs),
        copies=COPIES,
        dynamics=tn.Dynamics(num_steps=4, num_trajectories=1),
        devices=2,
        seed=2,
    )
    cooling = population.Cooling(engine, rounds=1)
    found = cooling.start(engine.prior_weights())
    while not cooling.finished(found):
        found = cooling.stage(found)
    left = (
        np.asarray(found.state.kernel.point.weights["w"])[: engine.num_replicas, 0].reshape(
            COPIES, REPLICAS
        )
        < 0
    )
    return left.mean(axis=1), engine.energies(found.state).mean(axis=1)


def _score(values: np.ndarray, exact: float) -> float:
    return float((values.mean() - exact) / (values.std(ddof=1) / np.sqrt(len(values))))


def _exact() -> tuple[float, float]:
    grid, cumulative = UNEVEN.distribution(0.5)
    middle = (grid[1:] + grid[:-1]) / 2
    weight = np.diff(cumulative)
    return float(weight[middle < 0].sum()), float(
        np.sum(weight * np.asarray(UNEVEN.energy(middle)))
    )


def test_a_population_has_the_right_share_of_each_well(monkeypatch: pytest.MonkeyPatch) -> None:
    share, energy = _exact()
    shares, energies = _shares()
    assert abs(_score(shares, share)) < 3.5 and abs(_score(energies, energy)) < 3.5, (
        shares.mean(),
        share,
    )
    assert shares.std(ddof=1) / np.sqrt(COPIES) < 0.02
    # The twin that only moves keeps the share that it had when the wells parted.
    monkeypatch.setattr(
        population, "resampled", lambda log_weights, uniform: np.arange(len(log_weights))
    )
    kept, _ = _shares()
    assert _score(kept, share) < -10, (kept.mean(), share)
