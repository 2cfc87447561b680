"""What it takes to judge a claim: equilibrated runs of the paper's model, errors that decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tempernet.config import PRIOR_FACTORS, RunSettings
from tempernet.diagnostics.statistics import Estimate, stretch
from tempernet.paper.claims.claim import Cause, Undecided
from tempernet.results.evidence import EvidenceResults
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults

ERRORS = 3.0
"""Standard errors that a difference must have to decide anything: there are dozens of claims."""
HOPELESS = 30.0
"""Two values are called the same if it took errors so many times smaller to tell them apart."""

Result = SweepResults | EvidenceResults | OptimiseResults
Runs = Mapping[str, Result]
"""Loaded results by the name of their step.

Names are such as `m3-d500-default`, `optimise-m3-d50-paper` and `evidence-m1-default`.
"""
R = TypeVar("R", SweepResults, EvidenceResults, OptimiseResults)


def found(runs: Runs, name: str, kind: type[R]) -> R:
    """The run of a name, which must be there and of a kind.

    Args:
        runs: results by the name of their step.
        name: the step.
        kind: the class of its results.
    """
    if name not in runs:
        raise Undecided(Cause.NO_RUN, name)
    run = runs[name]
    if not isinstance(run, kind):
        raise TypeError(f"{name} is a {type(run).__name__}, not a {kind.__name__}")
    return run


def faithful(runs: Runs, name: str, kind: type[R], network: str, images: int) -> R:
    """The run of a name, which must be of the paper's network, prior and data.

    Args:
        runs: results by the name of their step.
        name: the step.
        kind: the class of its results.
        network: M1, M3 or M3star.
        images: the number of training images.
    """
    run = found(runs, name, kind)
    settings, examples = run.settings, int(run.provenance["data"]["n_train"])
    if not is_the_papers(settings, examples, network, images):
        raise Undecided(
            Cause.OTHER_MODEL,
            name,
            network=network,
            images=images,
            network_found=settings.network.name,
            images_found=examples,
        )
    return run


def is_the_papers(settings: RunSettings, examples: int, network: str, images: int) -> bool:
    """Whether a run is of a network of the paper with its prior, on so many of its images.

    Args:
        settings: those of the run.
        examples: the number of training examples that it had.
        network: M1, M3 or M3star.
        images: the number of training images that the paper has.
    """
    prior, data = settings.prior, settings.data
    return (
        settings.network.name == network
        and prior.kind == "box"
        and prior.factor == PRIOR_FACTORS[network]
        and data.source == "mnist16"
        and data.size in (0, 16)
        and examples == images
    )


def must_be_equilibrated(
    run: SweepResults | EvidenceResults, rungs: Sequence[int] | slice = slice(None)
) -> None:
    """Refuse to decide by rungs that have not equilibrated.

    Args:
        run: whose verdict is asked.
        rungs: what the claim is about; a run may have others that have not equilibrated.
    """
    good = run.verdict.equilibrated[rungs]
    if not good.all():
        failed = int((~good).sum())
        raise Undecided(Cause.NOT_EQUILIBRATED, run.name, failed=failed, asked=len(good))


def above(value: Estimate, limit: float = 0.0) -> bool:
    """Whether a value is above a limit, if its error can tell."""
    mean, error = float(value.mean), float(value.error)
    if not (math.isfinite(mean) and math.isfinite(error)):
        raise Undecided(Cause.NO_ERROR)
    distance = abs(mean - limit)
    if distance < ERRORS * error / HOPELESS:
        raise Undecided(Cause.SAME_VALUE, error=error, times=HOPELESS)
    if distance < ERRORS * error:
        longer = (ERRORS * error / distance) ** 2
        raise Undecided(Cause.LARGE_ERROR, error=error, wanted=distance / ERRORS, longer=longer)
    return mean > limit


def within(value: Estimate, low: float, high: float) -> bool:
    """Whether a value lies between two limits, if its error can tell."""
    return above(value, low) and not above(value, high)


def estimate(mean: float, error: float) -> Estimate:
    """A single number with its error."""
    return Estimate(np.asarray(mean), np.asarray(error))


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One less the other, independent of it."""
    return Estimate(np.asarray(one.mean - other.mean), np.hypot(one.error, other.error))


def over_copies(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """Mean of a number over copies, with the error that their spread tells.

    Args:
        values: one a copy, (copies,). The error of a single one is NaN.
    """
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return estimate(float(values.mean()), math.nan)
    error = values.std(ddof=1) / math.sqrt(len(values)) * stretch(len(values) - 1)
    return Estimate(values.mean(), np.asarray(error))
