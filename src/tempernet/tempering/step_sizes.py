"""The search for step sizes: measure, improve, check; the arithmetic of it is in `tuning`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempernet.tempering import tuning as rules
from tempernet.tempering.tuning import Tuning

MeasureFn = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Step sizes (K,) -> mean acceptance over copies of one trajectory with them, (K,)."""


class StepSizes(NamedTuple):
    """The result of a search."""

    values: NDArray[np.float64]
    """Reduced step sizes, (K,)."""
    acceptance: NDArray[np.float64]
    """Acceptance measured with them, (K,)."""
    unsettled: bool
    """Whether some rung had still not settled when the search was given up."""


def find_step_sizes(
    measure_fn: MeasureFn,
    first: NDArray[np.float64],
    largest: float,
    tuning: Tuning,
    copies: int,
) -> StepSizes:
    """Step sizes that bring the acceptance of every rung into the window.

    Args:
        measure_fn: makes one trajectory of every replica.
        first: step sizes to begin from, (K,).
        largest: none will be larger.
        tuning: the window, and how many trajectories to spend.
        copies: trajectories at each rung that one call of `measure_fn` averages over.
    """
    trajectories = -(-tuning.check_trajectories // copies)

    def check(step_sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        measured = [measure_fn(step_sizes) for _ in range(trajectories)]
        mean: NDArray[np.float64] = np.mean(measured, axis=0)
        return mean

    search = rules.start_search(first, largest)
    while not rules.search_finished(search, tuning, copies):
        search = rules.search_step(search, measure_fn(np.exp(search.log_step)), tuning, largest)
    step_sizes = rules.found(search, largest)
    acceptance = check(step_sizes)
    for _ in range(tuning.max_checks - 1):
        if not rules.off_target(step_sizes, acceptance, tuning, largest).any():
            break
        search = rules.check_step(search, acceptance, trajectories, tuning, largest)
        step_sizes = rules.found(search, largest)
        acceptance = check(step_sizes)
    return StepSizes(step_sizes, acceptance, search.steps >= rules.MAX_UNSETTLED)
