"""Step sizes: bring the acceptance of every rung to 0.6-0.7, by trajectories that are not part of the run.

Here is only the arithmetic, on arrays (K,) of one value a rung; the engine runs the trajectories and asks for the
next step sizes. Acceptance falls as the step grows, so the right log step is the root of a noisy monotone
function. A search by stochastic approximation finds it: log eps += gain (acceptance - target), where the gain
shrinks only when the sign of the error changes (Kesten 1958). Far away the sign is constant and the search moves by
constant factors; near the root it settles. A measurement then checks the result and corrects it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tempernet.errors import ConfigError


@dataclass(frozen=True)
class Tuning:
    """The window of acceptance, and how many trajectories a rung may spend, summed over copies."""

    low: float = 0.6
    high: float = 0.7
    search_trajectories: int = 60
    check_trajectories: int = 160
    max_checks: int = 6

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < 1:
            raise ConfigError(f"tuning needs 0 < low < high < 1, got {self.low}, {self.high}")
        for name in ("search_trajectories", "check_trajectories", "max_checks"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def target(self) -> float:
        """The middle of the window, near the optimum for a Gaussian in many dimensions (Sec. 3.3.2)."""
        return 0.5 * (self.low + self.high)


SEARCH_GAIN = 4.0
"""First gain: an acceptance of 1 multiplies the step by exp(4 * 0.35) = 4, one of 0 divides it by 13."""
SLOPE = 0.65
"""-d acceptance / d log eps at 0.65 for a Gaussian in many dimensions, where acceptance = 2 Phi(-b eps^2)."""


SETTLED_CHANGES = 3
MAX_UNSETTLED = 60


class Search(NamedTuple):
    """The state of the search, one value a rung (K,) but for the number of steps."""

    log_step: np.ndarray
    changes: np.ndarray
    """How often the error changed its sign."""
    sign: np.ndarray
    mean: np.ndarray
    """Mean of the log steps since the search settled: had turned around a few times, or was at the limit."""
    settled_steps: np.ndarray
    steps: int


def start_search(step_sizes: np.ndarray) -> Search:
    """Begin from any positive step sizes (K,)."""
    log_step = np.log(np.asarray(step_sizes, np.float64))
    zero = np.zeros(len(log_step))
    return Search(log_step, zero, zero, log_step, zero, 0)


def search_step(search: Search, acceptance: np.ndarray, tuning: Tuning, largest: float) -> Search:
    """One step of the search, from the mean acceptance (K,) of a trajectory a copy at the current steps."""
    error = np.asarray(acceptance, np.float64) - tuning.target
    sign = np.sign(error)
    changes = search.changes + (sign * search.sign < 0)
    sign = np.where(sign == 0, search.sign, sign)
    log_step = np.minimum(search.log_step + SEARCH_GAIN / (1 + changes) * error, np.log(largest))
    settled = (changes >= SETTLED_CHANGES) | (log_step >= np.log(largest))
    count = np.where(settled, search.settled_steps + 1, 0)
    mean = np.where(settled, search.mean + (log_step - search.mean) / np.maximum(count, 1), log_step)
    return Search(log_step, changes, sign, mean, count, search.steps + 1)


def search_finished(search: Search, tuning: Tuning, copies: int) -> bool:
    """Whether every rung has had its trajectories since it settled, or the search has gone on far too long."""
    wanted = -(-tuning.search_trajectories // copies)
    return bool(np.all(search.settled_steps >= wanted)) or search.steps >= wanted + MAX_UNSETTLED


def searched(search: Search) -> np.ndarray:
    """The step sizes (K,) that the search has arrived at."""
    return np.exp(search.mean)


def correct(step_sizes: np.ndarray, acceptance: np.ndarray, tuning: Tuning, largest: float) -> np.ndarray:
    """Move the steps whose measured acceptance is outside the window by one Newton step; leave the others."""
    moved = step_sizes * np.exp(np.clip((acceptance - tuning.target) / SLOPE, -1, 1))
    return np.where(off_target(step_sizes, acceptance, tuning, largest), np.minimum(moved, largest), step_sizes)


def off_target(step_sizes: np.ndarray, acceptance: np.ndarray, tuning: Tuning, largest: float) -> np.ndarray:
    """Which rungs (K,) are outside the window; a rung above it with the largest step is as good as it gets."""
    at_limit = (acceptance > tuning.high) & (step_sizes >= largest * (1 - 1e-9))
    return ((acceptance < tuning.low) | (acceptance > tuning.high)) & ~at_limit
