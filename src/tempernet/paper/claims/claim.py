"""A claim of the paper as data: what it states, what two protocols give for it, whether it holds.

Sentences are made of it in `tempernet.paper.sentences`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tempernet.diagnostics.statistics import Estimate

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
VERDICTS = (HOLDS, FAILS, UNDECIDED)
PAPER, DEFAULT = "paper", "default"
"""The protocols that a claim is told of: the paper's, and the one that can equilibrate."""

Value = Estimate | float | int | str | bool
Values = Mapping[str, Value]


class Kind(StrEnum):
    """What a claim is about."""

    FLOOR = "floor of the training loss"
    WIDTH = "width after minimisation"
    STEPS = "steps to E = 0"
    BEST = "best temperature"
    POSTERIOR_GAIN = "posterior against optimisation"
    HOT_UNINFORMED = "high temperature against the uninformed classifier"
    HOT_OPTIMISED = "high temperature against optimisation"
    CROSSING = "crossing grows with the data"
    NEVER_INFORMED = "never better than the uninformed classifier"
    NO_MINIMUM = "no minimum"
    FEW_IMAGES = "as good on few images"
    BELOW_FLOOR = "below the floor"
    ONE_PEAK = "no first-order transition"
    GRADUAL = "gradual transition"
    EQUAL_SWAPS = "equal swap rates"
    VOLUME = "prior volume"
    INTEGRAL = "integral"
    BAYES_FACTOR = "Bayes factor"
    SHALLOW = "shallow network favoured"


class Cause(StrEnum):
    """Why a claim is undecided, or a protocol gives no number for it."""

    NO_RUN = "no run"
    OTHER_MODEL = "another model or other data"
    NOT_EQUILIBRATED = "not equilibrated"
    ESTIMATORS_DISAGREE = "estimators disagree"
    NO_ERROR = "error unknown"
    SAME_VALUE = "values cannot be told apart"
    LARGE_ERROR = "error too large"
    ERROR_ABOVE_PAPERS = "error above the paper's"
    NOT_SCORED = "not scored"
    NO_POSTERIOR = "no temperature near 1"
    UNRESOLVED = "minimum not resolved"
    WIDE_INTERVAL = "interval too wide"
    CROSSINGS_OVERLAP = "crossings overlap"
    NOT_MINIMISED = "optimised networks short of E = 0"
    FEW_MINIMA = "too few starts at the minimum"
    ABOVE_FLOOR = "not near the floor"
    MEDIAN_UNCLEAR = "median on neither side"


class Statement(NamedTuple):
    """What the paper says."""

    kind: Kind
    section: str
    network: str = ""
    """The network it is about; empty if it is about several."""
    images: int = 0
    """Number of training images; 0 if it is about several data sets, or none."""
    printed: Value = ""
    """The paper's number, with its error where it has one; else its words."""


class Finding(NamedTuple):
    """What a run gives for a claim."""

    values: Values
    trusted: bool = True
    """Whether it has equilibrated where it was asked."""


class Why(NamedTuple):
    """Why something cannot be told."""

    cause: Cause
    run: str = ""
    """The run that it lies in; empty if it lies in none, or in several."""
    values: Values = MappingProxyType({})


class Claim(NamedTuple):
    """A statement of the paper, and what became of it."""

    statement: Statement
    papers: tuple[Finding, ...] | Why
    """What the paper's protocol gives here, a finding for each run that it takes."""
    ours: tuple[Finding, ...] | Why
    """What the protocol gives that can equilibrate."""
    verdict: str
    """One of `VERDICTS`."""
    why: Why | None
    """Why it is undecided; None if it is decided."""


class Undecided(Exception):  # noqa: N818 - nothing went wrong
    """Why a claim cannot be decided. It never leaves this room."""

    def __init__(self, cause: Cause, run: str = "", **values: Value) -> None:
        super().__init__(cause)
        self.why = Why(cause, run, values)


def weigh(
    statement: Statement,
    tell_fn: Callable[[str], Finding | tuple[Finding, ...]],
    decide_fn: Callable[[], bool | np.bool_],
) -> Claim:
    """Judge a statement.

    Args:
        statement: what the paper says.
        tell_fn: what a protocol gives, by the protocol's name.
        decide_fn: whether the statement holds. Both raise `Undecided` where the runs do not say.
    """
    why = None
    try:
        verdict = HOLDS if decide_fn() else FAILS
    except Undecided as undecided:
        verdict, why = UNDECIDED, undecided.why
    return Claim(statement, _told(tell_fn, PAPER), _told(tell_fn, DEFAULT), verdict, why)


def _told(
    tell_fn: Callable[[str], Finding | tuple[Finding, ...]], protocol: str
) -> tuple[Finding, ...] | Why:
    try:
        told = tell_fn(protocol)
    except Undecided as undecided:
        return undecided.why
    return (told,) if isinstance(told, Finding) else told
