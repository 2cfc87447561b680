"""A claim of the paper, and what it takes to judge one: runs that are there, are the paper's, and
have equilibrated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tempernet.config import PRIOR_FACTORS
from tempernet.diagnostics.statistics import Estimate, stretch
from tempernet.report import sentences
from tempernet.report.formatting import with_error

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
VERDICTS = (HOLDS, FAILS, UNDECIDED)
ERRORS = 3.0
"""Standard errors that a difference must have to decide anything: there are dozens of claims."""
PAPER, DEFAULT = "paper", "default"
NO_RUN = "no run"

Runs = Mapping[str, Any]
"""Loaded results by the name of their step: `m3-d500-default`, `optimise-m3-d50-paper`,
`evidence-m1-default`.
"""


class Claim(NamedTuple):
    """A row of the table."""

    where: str
    """Section of the paper."""
    name: str
    paper: str
    """What the paper says."""
    protocol: str
    """What its protocol gives here."""
    ours: str
    """What the equilibrated sampler gives."""
    verdict: str
    wanted: str
    """What it would take to decide it; empty if it is decided."""


class Undecided(Exception):  # noqa: N818 - nothing went wrong
    """What it would take to decide a claim. It never leaves this room."""


class Missing(Undecided):
    """A run that is not there."""


def weigh(
    where: str,
    name: str,
    paper: str,
    tell_fn: Callable[[str], str],
    decide_fn: Callable[[], bool | np.bool_],
) -> Claim:
    """A claim: `tell_fn(protocol)` says what a protocol gives, `decide_fn()` whether the claim
    holds.

    Both raise `Undecided` where the runs do not allow it.
    """
    try:
        verdict, wanted = HOLDS if decide_fn() else FAILS, ""
    except Undecided as why:
        verdict, wanted = UNDECIDED, str(why)
    return Claim(
        where, name, paper, _told(tell_fn, PAPER), _told(tell_fn, DEFAULT), verdict, wanted
    )


def _told(tell_fn: Callable[[str], str], protocol: str) -> str:
    try:
        return tell_fn(protocol)
    except Missing:
        return NO_RUN
    except Undecided as why:
        return f"cannot tell; it would take {why}"


def found(runs: Runs, name: str) -> Any:
    """A run by its name."""
    if name not in runs:
        raise Missing(
            f"the run {name}, which is not there: tempernet reproduce --out STUDY --only {name}"
        )
    return runs[name]


def faithful(runs: Runs, name: str, network: str, images: int) -> Any:
    """A run by its name, which must be of the paper's network, prior and data."""
    run = found(runs, name)
    settings, examples = run.settings, int(run.provenance["data"]["n_train"])
    right = (
        settings.network.name == network
        and settings.prior.kind == "box"
        and settings.prior.factor == PRIOR_FACTORS[network]
        and settings.data.source == "mnist16"
        and settings.data.size in (0, 16)
        and examples == images
    )
    if not right:
        raise Undecided(
            f"{network} on {images} images of 16x16, where {name} has {settings.network.name} on {examples}: a larger "
            "--scale"
        )
    return run


def must_be_equilibrated(run: Any, rungs: Sequence[int] | slice = slice(None)) -> None:
    """A claim about these rungs is judged only if the run's verdict on them is good."""
    good = run.verdict.equilibrated[rungs]
    if not good.all():
        raise Undecided(
            f"a longer {run.path.name} (tempernet resume with its folder, or a larger --scale): "
            f"{sentences.not_equilibrated(good, run.parameter)}; {advised(run)}"
        )


def advised(run: Any) -> str:
    """What the verdict of a run advises."""
    return "; ".join(sentences.advice(found, run.parameter) for found in run.verdict.advice)


def above(value: Estimate, limit: float = 0.0) -> bool:
    """Whether a value is above a limit, if its error can tell."""
    mean, error = float(value.mean), float(value.error)
    if not (math.isfinite(mean) and math.isfinite(error)):
        raise Undecided("an error of the number: at least two copies, and more rounds")
    if abs(mean - limit) < ERRORS * error:
        if abs(mean - limit) < ERRORS * error / 30:
            raise Undecided(
                f"errors more than 30 times smaller than {error:.2g}: the two cannot be told apart"
            )
        more = (ERRORS * error / (mean - limit)) ** 2
        raise Undecided(
            f"an error below {abs(mean - limit) / ERRORS:.2g}, now {error:.2g}: about {more:.1f} x the rounds"
        )
    return mean > limit


def within(value: Estimate, low: float, high: float) -> bool:
    """Whether a value lies between two limits, if its error can tell."""
    return above(value, low) and not above(value, high)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One less the other, independent of it."""
    return Estimate(np.asarray(one.mean - other.mean), np.hypot(one.error, other.error))


def over_copies(values: Sequence[float] | np.ndarray) -> Estimate:
    """Mean of a number that each copy has, with the error that their spread tells; NaN for one
    copy.
    """
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return Estimate(values.mean(), np.asarray(math.nan))
    error = values.std(ddof=1) / math.sqrt(len(values)) * stretch(len(values) - 1)
    return Estimate(values.mean(), np.asarray(error))


def written(value: Estimate) -> str:
    """A number with its error."""
    return with_error(float(value.mean), float(value.error))


def marked(text: str, good: bool | np.bool_) -> str:
    """Text on a run, with a warning if its verdict is not good."""
    return text if good else f"{text} (not equilibrated)"
