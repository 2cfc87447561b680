"""Claims that hold the test loss against optimisation and the uninformed classifier (Sec. 3.4)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tempernet.paper.claims import losses
from tempernet.paper.claims.claim import (
    DEFAULT,
    Cause,
    Claim,
    Finding,
    Kind,
    Statement,
    Undecided,
    weigh,
)
from tempernet.paper.claims.judging import ERRORS, Runs, above, difference, must_be_equilibrated
from tempernet.paper.claims.losses import SECTION, SIZES, test_loss
from tempernet.results.sweep import SweepResults


def claims(runs: Runs) -> list[Claim]:
    """All claims about levels of the test loss."""
    return [
        *(posterior_against_optimisation(runs, n) for n in SIZES),
        *(hot_against_uninformed(runs, n) for n in SIZES),
        *(hot_against_optimisation(runs, n) for n in SIZES),
        crossing_grows(runs),
        never_informed(runs),
    ]


def posterior_against_optimisation(runs: Runs, n: int) -> Claim:
    """The posterior's test loss is below that of optimised networks."""

    def tell(protocol: str) -> tuple[Finding, ...]:
        run = losses.sweep(runs, "M3", n, protocol)
        rung = losses.posterior(run)
        sampled = losses.loss_at(run, rung, bool(run.verdict.equilibrated[rung]))
        return sampled, losses.optimised(runs, n, protocol)

    def decide() -> bool:
        run = losses.faithful_sweep(runs, "M3", n)
        rung = losses.posterior(run)
        must_be_equilibrated(run, [rung])
        losses.must_be_optimised(runs, n)
        return above(difference(losses.optimised_loss(runs, n, DEFAULT), test_loss(run, rung)))

    statement = Statement(Kind.POSTERIOR_GAIN, SECTION, "M3", n, "much lower")
    return weigh(statement, tell, decide)


def hot_against_uninformed(runs: Runs, n: int) -> Claim:
    """At the highest temperature the network is worse than one that knows nothing."""

    def decide() -> bool:
        run = losses.faithful_sweep(runs, "M3", n)
        must_be_equilibrated(run, [-1])
        return above(test_loss(run, -1), losses.uninformed(run))

    return weigh(
        Statement(Kind.HOT_UNINFORMED, SECTION, "M3", n, "above 2.303"),
        lambda protocol: _hottest(losses.sweep(runs, "M3", n, protocol)),
        decide,
    )


def hot_against_optimisation(runs: Runs, n: int) -> Claim:
    """At the highest temperature the network is worse than optimised ones."""

    def tell(protocol: str) -> tuple[Finding, ...]:
        hottest = _hottest(losses.sweep(runs, "M3", n, protocol))
        return hottest, losses.optimised(runs, n, protocol)

    def decide() -> bool:
        run = losses.faithful_sweep(runs, "M3", n)
        must_be_equilibrated(run, [-1])
        losses.must_be_optimised(runs, n)
        return above(difference(test_loss(run, -1), losses.optimised_loss(runs, n, DEFAULT)))

    statement = Statement(Kind.HOT_OPTIMISED, SECTION, "M3", n, "above")
    return weigh(statement, tell, decide)


class Crossing(NamedTuple):
    """Between which temperatures the test loss rises above the uninformed one, within errors."""

    low: float
    """The highest temperature with a loss clearly below; 0 if there is none."""
    high: float
    """The lowest from which on all are clearly above; inf if the highest is not."""


def crossing(run: SweepResults) -> Crossing:
    """Where the network becomes worse than the uninformed classifier."""
    temperatures = run.temperatures
    told = [test_loss(run, k) for k in range(len(temperatures))]
    distance = np.array([float(loss.mean) - losses.uninformed(run) for loss in told])
    errors = ERRORS * np.array([float(loss.error) for loss in told])
    # NaN is neither below nor above.
    below = np.flatnonzero(distance < -errors)
    not_above = np.flatnonzero(~(distance > errors))
    low = float(temperatures[below[-1]]) if len(below) else 0.0
    first = int(not_above[-1]) + 1 if len(not_above) else 0
    high = float(temperatures[first]) if first < len(temperatures) else math.inf
    return Crossing(low, high)


def crossing_grows(runs: Runs) -> Claim:
    """The crossing with the uninformed loss is at higher temperatures the more data there are."""

    def tell(protocol: str) -> tuple[Finding, ...]:
        findings = []
        for n in SIZES:
            run = losses.sweep(runs, "M3", n, protocol)
            findings.append(Finding({"images": n, **crossing(run)._asdict()}, run.verdict.good))
        return tuple(findings)

    def decide() -> bool:
        crossings = [crossing(losses.equilibrated_sweep(runs, "M3", n)) for n in SIZES]
        pairs = list(pairwise(crossings))
        if any(fewer.low >= more.high for fewer, more in pairs):
            return False
        if all(fewer.high <= more.low for fewer, more in pairs):
            return True
        raise Undecided(Cause.CROSSINGS_OVERLAP)

    return weigh(Statement(Kind.CROSSING, SECTION, "M3", printed="grows"), tell, decide)


def never_informed(runs: Runs) -> Claim:
    """On D_50 the network is worse than the uninformed classifier at all temperatures."""

    def tell(protocol: str) -> Finding:
        run = losses.sweep(runs, "M3", 50, protocol)
        return losses.loss_at(run, losses.least(run), run.verdict.good)

    def decide() -> bool:
        run = losses.equilibrated_sweep(runs, "M3", 50)
        # The least one decides: the others are above it.
        return above(test_loss(run, losses.least(run)), losses.uninformed(run))

    statement = Statement(Kind.NEVER_INFORMED, SECTION, "M3", 50, "all above 2.303")
    return weigh(statement, tell, decide)


def _hottest(run: SweepResults) -> Finding:
    return losses.loss_at(run, -1, bool(run.verdict.equilibrated[-1]))
