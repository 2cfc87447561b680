"""The rule that stops the cooling, on curves whose truth is known, beside broken rules that must
fail them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tempernet.annealing import LEAST_REPLICAS
from tempernet.annealing.stopping import Course, follow, least, rise
from tempernet.diagnostics.statistics import average
from tempernet.errors import ConfigError

Rule = Callable[[np.ndarray, int], Course]
REPLICAS, DRAWS = 8, 10


def curve(
    means: np.ndarray | list[float],
    rng: np.random.Generator,
    noise: float = 1.0,
    memory: float = 0.5,
    apart: float = 0.0,
) -> np.ndarray:
    """Losses (temperatures, replicas, draws) around the means: AR(1) noise, and an offset for each
    replica.
    """
    steps = rng.normal(size=(len(means) * DRAWS, REPLICAS))
    for i in range(1, len(steps)):
        steps[i] = memory * steps[i - 1] + np.sqrt(1 - memory**2) * steps[i]
    noisy = noise * steps.reshape(len(means), DRAWS, REPLICAS).swapaxes(1, 2)
    return np.asarray(means)[:, None, None] + noisy + apart * rng.normal(size=(1, REPLICAS, 1))


def by_mean_alone(losses: np.ndarray, patience: int) -> Course:
    """Broken: any rise counts, noise or not."""
    means = losses.mean(axis=(1, 2))
    return _by(losses, patience, lambda k, best: means[k] > means[best])


def without_the_price_of_choosing(losses: np.ndarray, patience: int) -> Course:
    """Broken: the least of many is taken for any other."""

    def risen(k: int, best: int) -> bool:
        difference = rise(losses[k], losses[best])
        return bool(difference.mean > 1.64 * difference.error)

    return _by(losses, patience, risen)


def unpaired(losses: np.ndarray, patience: int) -> Course:
    """Broken: forgets that the same replicas cool on."""

    def risen(k: int, best: int) -> bool:
        now, then = average(losses[k]), average(losses[best])
        return bool(now.mean - then.mean > 4 * np.hypot(now.error, then.error))

    return _by(losses, patience, risen)


def without_patience(losses: np.ndarray, patience: int) -> Course:
    """Broken: stops at the first rise."""
    del patience
    return follow(losses, 1)


def never(losses: np.ndarray, patience: int) -> Course:
    """Broken: cools to the end."""
    return _by(losses, patience, lambda k, best: False)


def _by(losses: np.ndarray, patience: int, risen_fn: Callable[[int, int], bool]) -> Course:
    means, best, risen = losses.mean(axis=(1, 2)), 0, 0
    for k in range(1, len(losses)):
        if means[k] < means[best]:
            best, risen = k, 0
        else:
            risen = risen + 1 if risen_fn(k, best) else 0
        if risen >= patience:
            return Course(best, risen, True)
    return Course(best, risen, False)


def stops(
    rule: Rule, means: np.ndarray | list[float], patience: int, runs: int = 60, **noise: float
) -> float:
    """The share of runs that the rule stops."""
    rng = np.random.default_rng(1)
    return float(np.mean([rule(curve(means, rng, **noise), patience).stopped for _ in range(runs)]))


PLATEAU = np.zeros(25)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.95])
def test_a_noisy_plateau_is_not_a_rise(memory: float) -> None:
    assert stops(follow, PLATEAU, patience=3, memory=memory, apart=3.0) <= 1 / 60
    assert stops(follow, PLATEAU, patience=2, memory=memory, apart=3.0) <= 4 / 60
    assert stops(follow, PLATEAU, patience=1, memory=memory, apart=3.0) <= 16 / 60


@pytest.mark.parametrize("broken", [by_mean_alone, without_the_price_of_choosing])
def test_rules_that_stop_on_noise_are_found_out(broken: Rule) -> None:
    assert stops(broken, PLATEAU, patience=1) > 20 / 60
    assert stops(broken, PLATEAU, patience=3) > 1 / 60


def test_an_error_that_rises_at_once_stops_after_patience_and_goes_back_to_the_first() -> None:
    rising = 4.0 * np.arange(12)
    for patience in (1, 2, 4):
        course = follow(curve(rising, np.random.default_rng(2)), patience)
        assert course == Course(best=0, risen=patience, stopped=True)
    assert stops(follow, rising, patience=3) == 1
    assert stops(never, rising, patience=3) == 0


def test_an_error_that_never_rises_is_cooled_to_the_end() -> None:
    falling = -0.3 * np.arange(25)
    course = follow(curve(falling, np.random.default_rng(3)), 1)
    assert not course.stopped and course.best is not None and course.best > 20
    assert stops(follow, falling, patience=1) == 0
    assert stops(by_mean_alone, falling, patience=1) > 0.2


TWO_MINIMA = [10.0, 5.0, 1.0, 8.0, 9.0, 8.0, -3.0, -4.0, 3.0, 9.0, 15.0, 20.0, 25.0, 30.0]


@pytest.mark.parametrize(("patience", "best"), [(1, 2), (2, 2), (3, 2), (4, 7), (5, 7)])
def test_of_two_minima_patience_decides(patience: int, best: int) -> None:
    losses = curve(TWO_MINIMA, np.random.default_rng(4), noise=0.3)
    course = follow(losses, patience)
    assert course.stopped and course.best == best
    assert without_patience(losses, patience).best == 2


def test_the_rise_must_be_in_a_row() -> None:
    """Up, back to the level of the best, and up again: no three in a row."""
    zigzag = [5.0, 0.0, 8.0, 9.0, 0.1, 8.0, 9.0, 0.1, 8.0, 9.0, 0.1]
    losses = curve(zigzag, np.random.default_rng(5), noise=0.5)
    assert not follow(losses, 3).stopped
    assert follow(losses, 2).stopped


def test_what_replicas_differ_by_does_not_hide_a_rise() -> None:
    rising = [0.0, *3.0 * np.arange(1, 8)]
    assert stops(follow, rising, patience=3, noise=0.5, apart=30.0) == 1
    assert stops(unpaired, rising, patience=3, noise=0.5, apart=30.0) < 0.2


def test_where_it_stops_is_near_the_known_optimum() -> None:
    """A parabola: the best temperature is within its noise of the vertex, and the cooling ends not
    long after it.
    """
    vertex = 12
    means = 0.2 * (np.arange(25.0) - vertex) ** 2
    rng = np.random.default_rng(6)
    for _ in range(20):
        losses = curve(means, rng)
        course = follow(losses, 3)
        assert course.stopped and course.best is not None and abs(course.best - vertex) <= 2
        # The same losses, a temperature at a time: it stops by the twentieth, and not before.
        ends = next(k for k in range(1, 26) if follow(losses[:k], 3).stopped)
        assert vertex + 3 <= ends <= 21


def test_it_looks_only_backwards() -> None:
    """Where it has stopped, more temperatures change nothing."""
    losses = curve(TWO_MINIMA, np.random.default_rng(7), noise=0.3)
    early = follow(losses[:6], 2)
    assert early.stopped and follow(losses, 2) == early


def test_a_loss_that_is_no_number_is_never_the_best_and_counts_as_risen() -> None:
    losses = curve([3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0], np.random.default_rng(8), noise=0.01)
    broken = losses.copy()
    broken[3:, 2, 1] = np.nan
    broken[4, 0, 0] = np.inf
    assert follow(broken, 3) == Course(best=2, risen=3, stopped=True)
    broken = losses.copy()
    broken[0] = -np.inf
    assert follow(broken, 3).best not in (0, None)
    assert follow(np.full((5, 4, 3), np.nan), 1) == Course(best=None, risen=0, stopped=False)


@pytest.mark.parametrize("warns", [np.nan, np.inf])
def test_the_parameters_of_least_error(warns: float) -> None:
    losses = curve(TWO_MINIMA, np.random.default_rng(9))
    losses[3, 5, 2] = -100.0
    losses[4, 0, 0] = warns
    assert least(losses) == (3, 5, 2)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="patience"):
        follow(np.zeros((3, 4, 5)), 0)
    for shape in ((3, 4), (3, 1, 5), (3, 4, 0)):
        with pytest.raises(ConfigError, match="two replicas or more"):
            follow(np.zeros(shape), 1)


def test_nothing_has_happened_yet() -> None:
    assert follow(np.zeros((0, 4, 5)), 1) == Course(None, 0, False)


@pytest.mark.parametrize(("replicas", "stops"), [(LEAST_REPLICAS, True), (2, False)])
def test_as_few_replicas_as_are_allowed_can_stop_and_fewer_hardly_do(
    replicas: int, stops: bool
) -> None:
    means = np.abs(np.arange(20) - 7.0) * np.where(np.arange(20) > 7, 2.0, 1.0)
    courses = [
        follow(curve(means, np.random.default_rng(seed))[:, :replicas], patience=3)
        for seed in range(40)
    ]
    stopped = np.mean([course.stopped for course in courses])
    assert stopped == 1 if stops else stopped < 0.5
