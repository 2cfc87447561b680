"""The search for step sizes, on acceptance curves that are known: two hundred rungs are two hundred
seeds.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tempernet import Tuning
from tempernet.tempering.tuning import (
    check_step,
    found,
    off_target,
    search_finished,
    search_step,
    start_search,
)

RUNGS = 200
BEST = np.geomspace(1e-4, 1e2, RUNGS)
"""The step whose acceptance is 0.65, of each rung."""


def mean_acceptance(step_sizes: np.ndarray) -> np.ndarray:
    """2 Phi(-b eps^2): the acceptance of HMC in many dimensions."""
    at_best = stats.norm.ppf(0.325)
    return 2 * stats.norm.cdf(at_best * (step_sizes / BEST) ** 2)


def measured(
    step_sizes: np.ndarray, random: np.random.RandomState, trajectories: int
) -> np.ndarray:
    """Mean of min(1, e^-dH) with dH normal of mean s^2/2 and variance s^2, whose mean is 2
    Phi(-s/2).
    """
    spread = -2 * stats.norm.ppf(0.325) * np.minimum(step_sizes / BEST, 1e6) ** 2
    noise = random.normal(size=(trajectories, RUNGS))
    return np.mean(np.exp(np.minimum(0, -(0.5 * spread**2 + spread * noise))), axis=0)


def tuned(
    first: np.ndarray, copies: int, tuning: Tuning, largest: float = np.inf
) -> tuple[np.ndarray, int]:
    """The engine's loop on the known curve; also the trajectories of a rung, summed over copies."""
    random = np.random.RandomState(1)
    search, spent = start_search(first, largest), 0
    while not search_finished(search, tuning, copies):
        steps = np.exp(search.log_step)
        assert np.all(np.isfinite(steps)) and np.all(steps <= largest * (1 + 1e-12))
        search = search_step(search, measured(steps, random, copies), tuning, largest)
        spent += copies
    each = -(-tuning.check_trajectories // copies)
    for _ in range(tuning.max_checks - 1):
        steps = found(search, largest)
        search = check_step(search, measured(steps, random, each * copies), each, tuning, largest)
        spent += each * copies
    return found(search, largest), spent


def test_the_synthetic_curve_is_what_is_measured() -> None:
    random = np.random.RandomState(0)
    acceptance = measured(BEST, random, 2000)
    np.testing.assert_allclose(mean_acceptance(BEST), 0.65)
    assert acceptance.mean() == pytest.approx(0.65, abs=0.002)


@pytest.mark.parametrize("copies", [1, 4, 20])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_the_search_lands_in_the_window_from_far_away(factor: float, copies: int) -> None:
    tuning = Tuning()
    steps, spent = tuned(factor * BEST, copies, tuning)
    acceptance = mean_acceptance(steps)
    assert np.mean((acceptance > tuning.low) & (acceptance < tuning.high)) > 0.9
    assert acceptance.min() > 0.5 and acceptance.max() < 0.8
    # No drift to one side: the error of the mean over the rungs is well below a percent.
    assert acceptance.mean() == pytest.approx(tuning.target, abs=0.01)
    assert spent < 60 * copies + 300


def test_the_window_asked_for_is_the_window_found() -> None:
    tuning = Tuning(low=0.75, high=0.85, search_trajectories=200, check_trajectories=200)
    steps, _ = tuned(10 * BEST, 4, tuning)
    acceptance = mean_acceptance(steps)
    assert acceptance.mean() == pytest.approx(0.8, abs=0.02)
    assert np.mean((acceptance > 0.75) & (acceptance < 0.85)) > 0.9


def test_a_rung_that_accepts_everything_ends_at_the_limit() -> None:
    tuning = Tuning()
    search = start_search(np.array([1e-3, 5.0, 100.0]), 7.0)
    steps = 0
    while not search_finished(search, tuning, 4):
        search = search_step(search, np.ones(3), tuning, 7.0)
        steps += 1
    assert steps < 40
    assert np.all(np.exp(search.log_step) <= 7.0 * (1 + 1e-12))
    search = check_step(search, np.ones(3), 15, tuning, 7.0)
    np.testing.assert_allclose(found(search, 7.0), 7.0, rtol=1e-12)
    assert not off_target(found(search, 7.0), np.ones(3), tuning, 7.0).any()


def test_rungs_below_the_limit_are_found_beside_one_at_it() -> None:
    largest = float(BEST[150])
    steps, _ = tuned(1e-3 * BEST, 4, Tuning(), largest)
    np.testing.assert_allclose(steps[170:], largest, rtol=1e-6)
    inside = mean_acceptance(steps)[:140]
    assert np.mean((inside > 0.6) & (inside < 0.7)) > 0.9


@pytest.mark.parametrize("acceptance", [0.0, 1.0, 0.65])
@pytest.mark.parametrize("largest", [3.0, math.inf])
def test_a_curve_without_a_root_still_ends_in_a_number(acceptance: float, largest: float) -> None:
    tuning = Tuning()
    search = start_search(np.array([0.1, 1e4]), largest)
    steps = 0
    while not search_finished(search, tuning, 1):
        search = search_step(search, np.full(2, acceptance), tuning, largest)
        steps += 1
    assert steps <= tuning.search_trajectories + 60
    search = check_step(search, np.full(2, acceptance), 60, tuning, largest)
    ends = found(search, largest)
    assert np.all(np.isfinite(ends)) and np.all(ends > 0) and np.all(ends <= largest)
    assert all(np.all(np.isfinite(part)) for part in search)


def test_a_search_takes_its_trajectories_from_all_copies() -> None:
    tuning = Tuning(search_trajectories=40)
    steps = {}
    for copies in (1, 8):
        search, steps[copies] = start_search(np.array([7.0]), 7.0), 0
        while not search_finished(search, tuning, copies):
            search = search_step(search, np.ones(1), tuning, 7.0)
            steps[copies] += 1
    assert steps == {1: 40, 8: 5}


def test_off_target_is_outside_the_window_unless_the_step_is_the_largest() -> None:
    acceptance = np.array([0.59, 0.61, 0.69, 0.71, 0.71, 0.59])
    step_sizes = np.array([1.0, 1.0, 1.0, 1.0, 5.0, 5.0])
    expected = [True, False, False, True, False, True]
    assert off_target(step_sizes, acceptance, Tuning(), 5.0).tolist() == expected


def test_a_check_moves_the_step_against_its_error() -> None:
    tuning = Tuning()
    search = start_search(np.ones(3), math.inf)._replace(weight=np.full(3, 20.0))
    search = check_step(search, np.array([0.4, 0.65, 0.9]), 60, tuning, math.inf)
    ends = found(search, math.inf)
    assert ends[0] < 0.9 and ends[1] == pytest.approx(1) and ends[2] > 1.1
    # Newton's estimate has weight 60 of 80.
    assert math.log(ends[2]) == pytest.approx(0.75 * 0.25 / 0.65)
