"""Step sizes: trajectories that are not part of the run bring every acceptance to 0.6-0.7.

Here is only the arithmetic, on arrays (K,) of one value a rung; the engine runs the trajectories
and asks for the next step sizes. Acceptance falls as the step grows, so the right log step is the
root of a noisy monotone function. A search by stochastic approximation comes near it: log eps +=
gain (acceptance - target), where the gain shrinks only when the sign of the error changes (Kesten
1958). Far away the sign is constant and the search moves by constant factors; near the root it
settles. From there on every measurement is worth one Newton estimate of the root, log eps +
(acceptance - target) / slope, and the answer is the mean of them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tempernet.errors import ConfigError, check_count


@dataclass(frozen=True)
class Tuning:
    """The window of acceptance, and how many trajectories a rung may spend, summed over copies."""

    low: float = 0.6
    high: float = 0.7
    search_trajectories: int = 40
    check_trajectories: int = 60
    max_checks: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < 1:
            raise ConfigError(f"tuning needs 0 < low < high < 1, got {self.low}, {self.high}")
        for name in ("search_trajectories", "check_trajectories", "max_checks"):
            check_count(name, getattr(self, name))

    @property
    def target(self) -> float:
        """The middle of the window.

        It is near the optimum for a Gaussian in many dimensions (Sec. 3.3.2).
        """
        return 0.5 * (self.low + self.high)


SEARCH_GAIN = 4.0
"""The first gain of the search.

An acceptance of 1 multiplies the step by exp(4 * 0.35) = 4, one of 0 divides it by 13.
"""
SLOPE = 0.65
"""-d acceptance / d log eps at an acceptance of 0.65, for a Gaussian in many dimensions.

There the acceptance is 2 Phi(-b eps^2).
"""


SETTLED_CHANGES = 3
NEAR_CHANGES = 9
"""A gain of 4 / 10: one trajectory's acceptance then moves the step by a quarter at most."""
MAX_UNSETTLED = 60


class Search(NamedTuple):
    """The state of the search, one value a rung (K,) but for the number of steps."""

    log_step: np.ndarray
    changes: np.ndarray
    """How often the error changed its sign."""
    sign: np.ndarray
    root: np.ndarray
    """Mean of the Newton estimates since the search settled.

    It settles when it has turned around a few times, or is at the limit.
    """
    weight: np.ndarray
    """Trajectories in that mean."""
    steps: int


def start_search(step_sizes: np.ndarray, largest: float, *, near: bool = False) -> Search:
    """Begin a search of step sizes.

    Args:
        step_sizes: where it begins, positive, (K,).
        largest: no step size will be larger.
        near: whether they are nearly right: the search then begins with the small gain that it
            would have come down to.
    """
    log_step = np.log(np.minimum(np.asarray(step_sizes, np.float64), largest))
    zero = np.zeros(len(log_step))
    return Search(log_step, zero + (NEAR_CHANGES if near else 0), zero, log_step, zero, 0)


def search_step(search: Search, acceptance: np.ndarray, tuning: Tuning, largest: float) -> Search:
    """One step of the search.

    Args:
        search: where it is.
        acceptance: mean over the copies of a trajectory of each at the current steps, (K,).
        tuning: the window, and how long to search.
        largest: the largest step size.
    """
    error = np.asarray(acceptance, np.float64) - tuning.target
    sign = np.where(error == 0, search.sign, np.sign(error))
    changes = search.changes + (sign * search.sign < 0)
    at_limit = (search.log_step >= np.log(largest)) & (error > 0)
    settled = (changes >= SETTLED_CHANGES) | at_limit
    started = search._replace(weight=np.where(settled, search.weight, 0))
    root, weight = _improved(started, acceptance, settled.astype(float), tuning)
    log_step = np.minimum(search.log_step + SEARCH_GAIN / (1 + changes) * error, np.log(largest))
    return Search(
        log_step, changes, sign, np.where(settled, root, log_step), weight, search.steps + 1
    )


def search_finished(search: Search, tuning: Tuning, copies: int) -> bool:
    """Whether the search is over.

    It is when every rung has had its trajectories since it settled, or when it has gone on far too
    long.
    """
    wanted = -(-tuning.search_trajectories // copies)
    return bool(np.all(search.weight >= wanted)) or search.steps >= wanted + MAX_UNSETTLED


def found(search: Search, largest: float) -> np.ndarray:
    """The step sizes (K,) that the search has arrived at."""
    return np.asarray(np.minimum(np.exp(search.root), largest))


def check_step(
    search: Search, acceptance: np.ndarray, trajectories: int, tuning: Tuning, largest: float
) -> Search:
    """The search after a measurement at the step sizes that it has found.

    Args:
        search: where it is.
        acceptance: of each rung, (K,).
        trajectories: of each copy that the measurement took.
        tuning: the window.
        largest: the largest step size.
    """
    at_found = search._replace(log_step=np.log(found(search, largest)))
    root, weight = _improved(
        at_found, acceptance, np.full(len(search.root), float(trajectories)), tuning
    )
    return at_found._replace(root=root, weight=weight)


def off_target(
    step_sizes: np.ndarray, acceptance: np.ndarray, tuning: Tuning, largest: float
) -> np.ndarray:
    """Which rungs are outside the window, (K,).

    A rung above it that has the largest step is as good as it gets, and is not one of them.

    Args:
        step_sizes: of the rungs, (K,).
        acceptance: of the rungs, (K,).
        tuning: the window.
        largest: the largest step size.
    """
    at_limit = (acceptance > tuning.high) & (step_sizes >= largest * (1 - 1e-6))
    return ((acceptance < tuning.low) | (acceptance > tuning.high)) & ~at_limit


def _improved(
    search: Search, acceptance: np.ndarray, trajectories: np.ndarray, tuning: Tuning
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of Newton estimates and its weight, with one more measurement.

    The measurement is of `trajectories` (K,) at the current log step.
    """
    estimate = search.log_step + (np.asarray(acceptance, np.float64) - tuning.target) / SLOPE
    weight = search.weight + trajectories
    share = np.divide(trajectories, weight, out=np.zeros_like(weight), where=weight > 0)
    return search.root + share * (estimate - search.root), weight
