"""Claims about evidences (Sec. 4.4): prior volumes, the two integrals, and the choice between M1
and M3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.paper.claims.claim import (
    DEFAULT,
    ERRORS,
    PAPER,
    Claim,
    Runs,
    Undecided,
    above,
    advised,
    difference,
    faithful,
    found,
    weigh,
    written,
)
from tempernet.report import sentences
from tempernet.results.evidence import EvidenceResults

IMAGES = 500
VOLUMES = {"M3": 28_960.0, "M1": 19_946.0}
INTEGRALS = {
    "M3": Estimate(np.asarray(26_480.0), np.asarray(170.0)),
    "M1": Estimate(np.asarray(19_790.0), np.asarray(10.0)),
}
"""Means of 28 calculations and their standard deviations."""
BAYES_FACTOR = Estimate(np.asarray(-2332.0), np.asarray(math.hypot(173.0, 13.0)))
"""log of M3 against M1."""
ROUNDED = 0.5
"""What the paper's prior volumes may be off by."""
WHERE = "4.4"


def claims(runs: Runs) -> list[Claim]:
    """All of them."""
    return [
        *(volume(runs, name) for name in VOLUMES),
        *(integral(runs, name) for name in INTEGRALS),
        bayes_factor(runs),
        shallow_favoured(runs),
    ]


def volume(runs: Runs, network: str) -> Claim:
    """The log volume of the prior, which needs no sampling."""

    def decide() -> bool:
        made = [name for name in (_name(network, DEFAULT), _name(network, PAPER)) if name in runs]
        run = faithful(runs, made[0] if made else _name(network, DEFAULT), network, IMAGES)
        return abs(run.log_volume - VOLUMES[network]) <= ROUNDED

    name = f"log prior volume of {network}"
    tell = f"{VOLUMES[network]:,.0f}"
    return weigh(
        WHERE, name, tell, lambda p: f"{found(runs, _name(network, p)).log_volume:,.3f}", decide
    )


def integral(runs: Runs, network: str) -> Claim:
    """log of the integral of exp(-E) over the prior's box, on D_500."""

    def decide() -> bool:
        return _agree(_integral(_trusted(runs, network)), INTEGRALS[network])

    name = f"log integral of exp(-E) of {network} on D_500"
    return weigh(
        WHERE,
        name,
        _plain(INTEGRALS[network]),
        lambda p: _told(runs, [network], p, _integral),
        decide,
    )


def bayes_factor(runs: Runs) -> Claim:
    """The size of the log Bayes factor."""

    def decide() -> bool:
        return _agree(_factor(_trusted(runs, "M3"), _trusted(runs, "M1")), BAYES_FACTOR)

    name = "log Bayes factor of M3 against M1 on D_500"
    return weigh(
        WHERE, name, _plain(BAYES_FACTOR), lambda p: _told(runs, ["M3", "M1"], p, _factor), decide
    )


def shallow_favoured(runs: Runs) -> Claim:
    """Its sign."""

    def decide() -> bool:
        return not above(_factor(_trusted(runs, "M3"), _trusted(runs, "M1")))

    name = "The evidence on D_500 favours M1 over M3"
    return weigh(
        WHERE,
        name,
        "clearly: log Bayes factor below 0",
        lambda p: _told(runs, ["M3", "M1"], p, _factor),
        decide,
    )


def _name(network: str, protocol: str) -> str:
    return f"evidence-{network.lower()}-{protocol}"


def _trusted(runs: Runs, network: str) -> EvidenceResults:
    """The temperature path of the paper's model, equilibrated and with estimators that agree."""
    run: EvidenceResults = faithful(runs, _name(network, DEFAULT), network, IMAGES)
    if not run.trusted:
        why = [sentences.disagreement(found) for found in run.disagreements]
        if not run.verdict.good:
            why += [sentences.headline(run.verdict, run.parameter), advised(run)]
        raise Undecided(
            f"a longer {run.path.name} (tempernet resume with its folder, or a larger --scale): "
            + "; ".join(why)
        )
    return run


def _integral(run: EvidenceResults) -> Estimate:
    headline = run.log_integrals[run.headline]
    return Estimate(np.asarray(headline.value), np.asarray(headline.error))


def _factor(deep: EvidenceResults, shallow: EvidenceResults) -> Estimate:
    return difference(deep.log_evidence, shallow.log_evidence)


def _agree(ours: Estimate, paper: Estimate) -> bool:
    """Whether two numbers agree within their errors; ours must not be the larger one."""
    if not float(ours.error) <= float(paper.error):
        raise Undecided(
            f"an error of ours below the paper's {float(paper.error):.3g}, now {float(ours.error):.3g}"
        )
    apart = difference(ours, paper)
    return bool(abs(apart.mean) <= ERRORS * apart.error)


def _told(
    runs: Runs, networks: list[str], protocol: str, number_fn: Callable[..., Estimate]
) -> str:
    """What a protocol gives, and by which path."""
    chosen = [found(runs, _name(network, protocol)) for network in networks]
    warning = "" if all(run.trusted for run in chosen) else ", not to be trusted"
    return f"{written(number_fn(*chosen))} ({chosen[0].method}{warning})"


def _plain(value: Estimate) -> str:
    return f"{float(value.mean):,.0f} ± {float(value.error):.0f}"
