"""Reasons and advice of a verdict, as data: sentences are made where they are shown.

An observable goes by the name it is recorded under: `energy`, `quadratic`, `mean_square.1` for the
mean square weight of layer 1, `validation_loss`, `test_loss`.
"""

from __future__ import annotations

from enum import StrEnum
from math import nan
from typing import NamedTuple


class Kind(StrEnum):
    """What speaks against a rung."""

    NOT_FINITE = "not_finite"
    """Draws that are not finite; `value` of them, 0 is the limit."""
    TOO_SHORT = "too_short"
    """Too few draws a copy to judge by."""
    RHAT = "rhat"
    """Copies, or halves of them, whose distributions differ."""
    DRIFT = "drift"
    """Halves whose means differ, in standard errors."""
    ESS = "ess"
    """Too few effective draws of all copies together."""
    ROUND_TRIPS = "round_trips"
    """No replica has gone between the ends of the path and back."""
    MEMORY = "memory"
    """Too few autocorrelation times of the weights, without round trips."""
    SIDE = "side"
    """Replicas that have not crossed the pair of rungs `where`, without round trips."""


class Reason(NamedTuple):
    """Why a rung has not equilibrated."""

    kind: Kind
    observable: str
    """The observable that shows it most, or empty."""
    value: float
    limit: float
    """The value that would just do."""
    where: tuple[float, ...] = ()
    """Values of the path's parameter that it is about, such as the pair of rungs not crossed."""

    @property
    def label(self) -> str:
        """Kind and observable in a word, for a cell of a table: `rhat:energy`."""
        return f"{self.kind}:{self.observable}" if self.observable else str(self.kind)


class Action(StrEnum):
    """What to do about it."""

    BURN_IN = "burn_in"
    SAMPLE_LONGER = "sample_longer"
    SCORE_MORE = "score_more"
    """Sample longer and score more often."""
    CHECK_FINITE = "check_finite"
    PASS_BOTTLENECK = "pass_bottleneck"
    """Help replicas over the rungs `where`, between which they turn back."""
    LENGTHEN_TRAJECTORIES = "lengthen_trajectories"
    """Replicas spread over the rungs as time^`value`, where free ones have a power of 1."""
    IMPROVE_LADDER = "improve_ladder"
    DECORRELATE = "decorrelate"
    """Instead, sample until the weights have decorrelated."""
    START_BOTH_SIDES = "start_both_sides"
    """Instead, let half of the copies come from above and half from below."""
    ADD_COPIES = "add_copies"
    START_APART = "start_apart"


class Advice(NamedTuple):
    """What to do about a verdict, and the settings that do it."""

    action: Action
    settings: tuple[str, ...] = ()
    """Names of settings to raise, or the one to set to `choice`."""
    choice: str = ""
    value: float = nan
    where: tuple[float, ...] = ()
