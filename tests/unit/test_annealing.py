"""Cooling a target whose best temperature is known in closed form, and what `anneal` refuses.

The energy is k/2 |w - a|^2 and the prior N(0, 1), so at temperature T every weight has the variance
u = 1 / (k/T + 1) and the mean a (1 - u). The validation loss |w - a/2|^2 then has the mean A (1/2 -
u)^2 + d u with A = |a|^2: least at u = 1/2 - d / (2A), and higher at both ends.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from tempernet import ConfigError, Dynamics, Gaussian, Target, Tuning, anneal
from tempernet.annealing import AnnealingResult, Schedule
from tempernet.errors import NumericsError

pytestmark = pytest.mark.usefixtures("quick_programs")

WEIGHTS, STIFFNESS = 2, 3.0
TRUTH = np.full(WEIGHTS, 5.0, np.float32)
SQUARE = float(TRUTH @ TRUTH)


def energy(w: Array) -> Array:
    return 0.5 * STIFFNESS * jnp.sum(jnp.square(w - TRUTH))


def validation(w: Array) -> Array:
    return jnp.sum(jnp.square(w - 0.5 * TRUTH))


def expected(temperatures: np.ndarray) -> np.ndarray:
    u = 1 / (STIFFNESS / temperatures + 1)
    return SQUARE * (0.5 - u) ** 2 + WEIGHTS * u


def best() -> float:
    u = 0.5 - WEIGHTS / (2 * SQUARE)
    return STIFFNESS * u / (1 - u)


TARGET = Target.from_energy(energy, Gaussian(1.0, np.zeros(WEIGHTS, np.float32)))
OPTIONS: dict[str, Any] = {
    "high": 300.0,
    "low": 0.01,
    "num": 21,
    "rounds": 16,
    "dynamics": Dynamics(num_steps=8, num_trajectories=4),
    "tuning": Tuning(search_trajectories=8, check_trajectories=8),
    "devices": 1,
    "seed": 3,
}


@pytest.fixture(scope="module")
def cooled() -> AnnealingResult:
    return anneal(TARGET, validation, **OPTIONS)


def test_it_stops_after_the_known_optimum_and_goes_back_to_it(cooled: AnnealingResult) -> None:
    assert cooled.course.stopped and cooled.course.risen == 3
    temperatures = Schedule(300.0, 0.01, 21).temperatures
    nearest = int(np.argmin(np.abs(np.log(temperatures / best()))))
    assert cooled.course.best is not None and abs(cooled.course.best - nearest) <= 1
    assert cooled.best_temperature == temperatures[cooled.course.best]
    assert nearest + 3 <= len(cooled.temperatures) - 1 <= nearest + 7


def test_the_curve_is_the_exact_one(cooled: AnnealingResult) -> None:
    found = cooled.validation_loss
    score = (found.mean - expected(cooled.temperatures)) / found.error
    assert np.abs(score).max() < 4 and np.square(score).mean() < 2
    # A curve that is off by a temperature is found out.
    shifted = expected(cooled.temperatures * (0.01 / 300.0) ** (1 / 20))
    assert np.abs((found.mean - shifted) / found.error).max() > 6


def test_the_energy_is_the_exact_one(cooled: AnnealingResult) -> None:
    u = 1 / (STIFFNESS / cooled.temperatures + 1)
    exact = 0.5 * STIFFNESS * (SQUARE * u**2 + WEIGHTS * u)
    means = cooled.energy.mean(axis=2)
    error = means.std(axis=1, ddof=1) / np.sqrt(means.shape[1])
    score = (means.mean(axis=1) - exact) / error
    assert np.abs(score).max() < 5 and np.square(score).mean() < 3


def test_what_it_goes_back_to_is_the_least_loss_of_all(cooled: AnnealingResult) -> None:
    assert cooled.weights_loss == cooled.losses.min()
    assert float(validation(cooled.weights)) == pytest.approx(cooled.weights_loss, rel=1e-6)
    step, replica, draw = cooled.chosen
    assert cooled.losses[step, replica, draw] == cooled.losses.min()


def test_the_ensemble_is_that_of_the_best_temperature(cooled: AnnealingResult) -> None:
    losses = jax.vmap(validation)(cooled.ensemble).reshape(16, 8).T
    np.testing.assert_allclose(losses, cooled.losses[cooled.course.best], rtol=1e-5)


def test_step_sizes_follow_the_temperature(cooled: AnnealingResult) -> None:
    """Too large a step is rejected, too small a one always accepted."""
    assert np.all((cooled.acceptance > 0.4) & (cooled.acceptance < 0.99))


def test_a_loss_that_only_falls_is_cooled_to_the_end() -> None:
    """The training energy itself falls with T: with it for validation nothing stops the cooling."""
    cooled = anneal(TARGET, energy, **{**OPTIONS, "num": 12, "patience": 1})
    assert not cooled.course.stopped and len(cooled.temperatures) == 12 and cooled.course.best == 11


def test_a_loss_that_is_no_number_anywhere_is_an_error() -> None:
    few = {**OPTIONS, "num": 2, "rounds": 2}
    with pytest.raises(NumericsError, match="no validation loss was a number"):
        anneal(TARGET, lambda w: jnp.sum(w) * jnp.nan, **few)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"replicas": 3}, "replicas must be a whole number, at least 4"),
        ({"patience": 0}, "patience"),
        ({"burn_in": 0}, "burn_in"),
        ({"score_every": 30}, "score_every must be at most rounds"),
        ({"high": 0.001}, "low < high"),
        ({"num": 1}, "at least 2"),
        ({"start": "hot"}, "start must be"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        anneal(TARGET, validation, **{**OPTIONS, **wrong})


def test_examples_need_a_network_and_a_loss_must_be_one() -> None:
    from tempernet.data import Examples

    examples = Examples(np.zeros((3, 2), np.float32), np.zeros(3, np.int32))
    with pytest.raises(ConfigError, match="no network"):
        anneal(TARGET, examples, **OPTIONS)
    wrong: Any = [1.0, 2.0]
    with pytest.raises(ConfigError, match="validation must be"):
        anneal(TARGET, wrong, **OPTIONS)


def test_a_position_comes_back_from_its_arrays_at_any_round() -> None:
    """Cut in the middle of burn-in, between two scores and at the end of a temperature, it goes on
    to the same end.
    """
    from tempernet import Engine, temperature_path
    from tempernet.annealing import Annealer, Position, make_score_fn

    schedule = Schedule(30.0, 1.0, num=3, burn_in=2, rounds=3, patience=1)
    engine = Engine(
        TARGET, temperature_path([30.0]), copies=4, dynamics=Dynamics(3, 1), devices=1, seed=2
    )
    annealer = Annealer(
        engine, schedule, make_score_fn(engine, validation), Tuning(0.6, 0.7, 2, 2, 1)
    )

    def ahead(position: Position, rounds: int) -> Position:
        for _ in range(rounds):
            if not annealer.finished(position):
                annealer.accept(position, *annealer.round(position))
        return position

    begun = annealer.start(engine.prior_weights())
    straight = ahead(annealer.restored(begun.state, begun.arrays()), 15)
    assert straight.round == 15 or straight.course.stopped
    for cut in (1, 4, 5, 8, 10):
        half = ahead(annealer.restored(begun.state, begun.arrays()), cut)
        ended = ahead(annealer.restored(half.state, half.arrays()), 15)
        found, wanted = ended.arrays(), straight.arrays()
        assert sorted(found) == sorted(wanted) and ended.course == straight.course
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)
