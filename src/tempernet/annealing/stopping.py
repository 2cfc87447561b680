"""The stopping rule (Secs. 3.4, 3.5): the validation error has risen beyond its noise.

The rule is a function of the validation losses alone, (temperatures, replicas, draws), hottest
first. The same replicas go on, so two temperatures are compared replica by replica and draw by
draw: what a replica is better or worse by at both drops out. The temperature of least loss so far
is the luckiest of several, so that the next ones look risen when nothing rises; the threshold
therefore grows with their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import ConfigError, check_count

FALSE_RISE = 0.05
"""Chance that the second temperature counts as risen on a plateau.

The k-th after the first has 1/k of it. With patience 1 a plateau of 25 temperatures ends annealing
by chance in up to 19 % of runs, with 2 in up to 3 %, and with 3 in less than 1 %
(`tests/unit/test_cooling.py` measures it).
"""


class Course(NamedTuple):
    """How an annealing run has gone so far."""

    best: int | None
    """Number of the temperature of least average loss, from the hottest; None if there is none."""
    risen: int
    """How many temperatures in a row, up to the last, lie above the best beyond their noise."""
    stopped: bool
    """Whether that has gone on for as long as patience allows."""


def follow(losses: np.ndarray, patience: int) -> Course:
    """The course of validation losses under the rule, up to where it stops.

    A temperature has risen if its mean paired difference to the best of the k before it exceeds z
    errors, z the quantile of Student's t at 1 - 0.05 / k^2 with a degree of freedom for each
    replica but one: k for the choice of the best, and k because it is the k-th time that one looks.
    One that has not risen, or is a new best, begins the count again. A loss that is not a number is
    infinite.

    Args:
        losses: (temperatures, replicas, draws), hottest first.
        patience: temperatures in a row that must have risen.

    >>> course = follow(np.stack(losses_at_each_temperature), patience=3)
    >>> course.stopped, course.best
    """
    check_count("patience", patience)
    losses = np.asarray(losses, np.float64)
    if losses.ndim != 3 or losses.shape[1] < 2 or losses.shape[2] < 1:
        raise ConfigError(
            f"losses must be (temperatures, replicas, draws) with two replicas or more, "
            f"which tell the noise, got shape {losses.shape}"
        )
    means = np.nan_to_num(losses, nan=np.inf, posinf=np.inf, neginf=np.inf).mean(axis=(1, 2))
    best, risen = None, 0
    for k, mean in enumerate(means):
        if np.isfinite(mean) and (best is None or mean < means[best]):
            best, risen = k, 0
        elif best is not None:
            risen = risen + 1 if _has_risen(losses[k], losses[best], candidates=k) else 0
        if risen >= patience:
            return Course(best, risen, stopped=True)
    return Course(best, risen, stopped=False)


def rise(losses: np.ndarray, before: np.ndarray) -> Estimate:
    """Mean difference of the losses (replicas, draws) at two temperatures, and its error."""
    return average(losses - before)


def _has_risen(losses: np.ndarray, best: np.ndarray, candidates: int) -> bool:
    """Whether losses lie above the best of so many temperatures by more than chance."""
    if not np.isfinite(losses).all():
        return True
    difference = rise(losses, best)
    threshold = stdtrit(len(best) - 1, 1 - FALSE_RISE / candidates**2)
    return bool(difference.mean > threshold * difference.error)


def least(losses: np.ndarray) -> tuple[int, int, int]:
    """Temperature, replica and draw of the least of all losses (temperatures, replicas, draws)."""
    finite = np.where(np.isfinite(losses), losses, np.inf)
    temperature, replica, draw = np.unravel_index(int(finite.argmin()), finite.shape)
    return int(temperature), int(replica), int(draw)
