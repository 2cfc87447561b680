"""Claims about evidences (Sec. 4.4): prior volumes, two integrals, the choice between M1 and M3."""

from __future__ import annotations

import math
from collections.abc import Callable

from tempernet.diagnostics.statistics import Estimate
from tempernet.paper.claims.claim import (
    DEFAULT,
    PAPER,
    Cause,
    Claim,
    Finding,
    Kind,
    Statement,
    Undecided,
    Values,
    weigh,
)
from tempernet.paper.claims.judging import (
    ERRORS,
    Runs,
    above,
    difference,
    estimate,
    faithful,
    found,
    must_be_equilibrated,
)
from tempernet.results.evidence import EvidenceResults

IMAGES = 500
VOLUMES = {"M3": 28_960.0, "M1": 19_946.0}
INTEGRALS = {"M3": estimate(26_480.0, 170.0), "M1": estimate(19_790.0, 10.0)}
"""Means of 28 calculations and their standard deviations."""
BAYES_FACTOR = estimate(-2332.0, math.hypot(173.0, 13.0))
"""log of M3 against M1."""
ROUNDED = 0.5
"""What the paper's prior volumes may be off by."""
SECTION = "4.4"


def claims(runs: Runs) -> list[Claim]:
    """All claims about evidences."""
    return [
        *(volume(runs, name) for name in VOLUMES),
        *(integral(runs, name) for name in INTEGRALS),
        bayes_factor(runs),
        shallow_favoured(runs),
    ]


def volume(runs: Runs, network: str) -> Claim:
    """The log volume of the prior, which needs no sampling."""

    def tell(protocol: str) -> Finding:
        run = found(runs, _name(network, protocol), EvidenceResults)
        return Finding({"log_volume": run.log_volume})

    def decide() -> bool:
        names = [_name(network, protocol) for protocol in (DEFAULT, PAPER)]
        made = [name for name in names if name in runs]
        name = made[0] if made else names[0]
        run = faithful(runs, name, EvidenceResults, network, IMAGES)
        return abs(run.log_volume - VOLUMES[network]) <= ROUNDED

    statement = Statement(Kind.VOLUME, SECTION, network, printed=VOLUMES[network])
    return weigh(statement, tell, decide)


def integral(runs: Runs, network: str) -> Claim:
    """log of the integral of exp(-E) over the prior's box, on D_500."""

    def decide() -> bool:
        return _agree(_integral(_trusted(runs, network)), INTEGRALS[network])

    return weigh(
        Statement(Kind.INTEGRAL, SECTION, network, IMAGES, INTEGRALS[network]),
        lambda protocol: _told(runs, [network], protocol, _integral),
        decide,
    )


def bayes_factor(runs: Runs) -> Claim:
    """The size of the log Bayes factor."""

    def decide() -> bool:
        return _agree(_factor(_trusted(runs, "M3"), _trusted(runs, "M1")), BAYES_FACTOR)

    return weigh(
        Statement(Kind.BAYES_FACTOR, SECTION, images=IMAGES, printed=BAYES_FACTOR),
        lambda protocol: _told(runs, ["M3", "M1"], protocol, _factor),
        decide,
    )


def shallow_favoured(runs: Runs) -> Claim:
    """The sign of the log Bayes factor."""

    def decide() -> bool:
        return not above(_factor(_trusted(runs, "M3"), _trusted(runs, "M1")))

    printed = "clearly: log Bayes factor below 0"
    return weigh(
        Statement(Kind.SHALLOW, SECTION, images=IMAGES, printed=printed),
        lambda protocol: _told(runs, ["M3", "M1"], protocol, _factor),
        decide,
    )


def _name(network: str, protocol: str) -> str:
    return f"evidence-{network.lower()}-{protocol}"


def _trusted(runs: Runs, network: str) -> EvidenceResults:
    """The temperature path of the paper's model, equilibrated, with estimators that agree."""
    run = faithful(runs, _name(network, DEFAULT), EvidenceResults, network, IMAGES)
    must_be_equilibrated(run)
    if not run.trusted:
        number = len(run.disagreements)
        raise Undecided(Cause.ESTIMATORS_DISAGREE, run.name, disagreements=number)
    return run


def _integral(run: EvidenceResults) -> Estimate:
    headline = run.log_integrals[run.headline]
    return estimate(headline.value, headline.error)


def _factor(deep: EvidenceResults, shallow: EvidenceResults) -> Estimate:
    return difference(deep.log_evidence, shallow.log_evidence)


def _agree(ours: Estimate, paper: Estimate) -> bool:
    """Whether two numbers agree within their errors; ours must not be the larger one."""
    if not float(ours.error) <= float(paper.error):
        raise Undecided(
            Cause.ERROR_ABOVE_PAPERS, error=float(ours.error), papers=float(paper.error)
        )
    apart = difference(ours, paper)
    return bool(abs(apart.mean) <= ERRORS * apart.error)


def _told(
    runs: Runs, networks: list[str], protocol: str, number_fn: Callable[..., Estimate]
) -> Finding:
    """What a protocol gives, and by which path."""
    chosen = [found(runs, _name(network, protocol), EvidenceResults) for network in networks]
    values: Values = {"number": number_fn(*chosen), "method": chosen[0].method}
    return Finding(values, all(run.trusted for run in chosen))
