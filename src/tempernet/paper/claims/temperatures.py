"""Claims about the temperature of the least test loss, Figs. 3 and 4 (Sec. 3.4)."""

from __future__ import annotations

import math

from tempernet.paper.claims import losses
from tempernet.paper.claims.claim import Cause, Claim, Finding, Kind, Statement, Undecided, weigh
from tempernet.paper.claims.judging import Runs, above, difference, within
from tempernet.paper.claims.losses import SECTION, SIZES, test_loss
from tempernet.paper.claims.minima import FLOOR
from tempernet.results.sweep import SweepResults

AROUND = 2.0
"""T ~ 1 is between 1 / AROUND and AROUND."""
APPROXIMATELY = 0.1
"""Share of a loss that another may differ by and be approximately the same."""


def claims(runs: Runs) -> list[Claim]:
    """All claims about the least test loss."""
    return [
        *(minimum(runs, n) for n in SIZES),
        *(no_minimum(runs, n) for n in SIZES[:2]),
        as_good_on_few(runs),
        below_floor(runs),
    ]


def minimum(runs: Runs, n: int) -> Claim:
    """Where the test loss of M3 is least; the temperature is chosen on the validation set."""

    def decide() -> bool:
        best = losses.resolved(losses.equilibrated_sweep(runs, "M3", n))
        low, high = (1.0, math.inf) if n == 5000 else (1 / AROUND, AROUND)
        if low < best.low and best.high < high:
            return True
        if best.high <= low or best.low >= high:
            return False
        raise Undecided(Cause.WIDE_INTERVAL, low=best.low, high=best.high)

    printed = "T > 1" if n == 5000 else "T ~ 1"
    return weigh(
        Statement(Kind.BEST, SECTION, "M3", n, printed),
        lambda protocol: _best(losses.sweep(runs, "M3", n, protocol)),
        decide,
    )


def no_minimum(runs: Runs, n: int) -> Claim:
    """The test loss of M3star is least at T << 1, with no minimum within the ladder."""

    def decide() -> bool:
        run = losses.equilibrated_sweep(runs, "M3star", n)
        best = losses.best(run)
        if best.resolved or best.at_end == "highest":
            return False
        fall = difference(test_loss(run, losses.posterior(run)), test_loss(run, 0))
        return above(fall)

    return weigh(
        Statement(Kind.NO_MINIMUM, SECTION, "M3star", n, "no minimum"),
        lambda protocol: _best(losses.sweep(runs, "M3star", n, protocol)),
        decide,
    )


def as_good_on_few(runs: Runs) -> Claim:
    """On D_50 M3star generalises approximately as well as M3."""

    def tell(protocol: str) -> tuple[Finding, ...]:
        findings = []
        for network in ("M3star", "M3"):
            run = losses.sweep(runs, network, 50, protocol)
            loss = test_loss(run, losses.best(run).rung)
            findings.append(Finding({"network": network, "loss": loss}, run.verdict.good))
        return tuple(findings)

    def decide() -> bool:
        pair = [losses.equilibrated_sweep(runs, network, 50) for network in ("M3star", "M3")]
        star, plain = (test_loss(run, losses.best(run).rung) for run in pair)
        allowed = APPROXIMATELY * float(plain.mean)
        return within(difference(star, plain), -allowed, allowed)

    statement = Statement(Kind.FEW_IMAGES, SECTION, images=50, printed="approximately as well")
    return weigh(statement, tell, decide)


def below_floor(runs: Runs) -> Claim:
    """On D_500 the best test loss of M3 is below what M3star can reach at all."""

    def tell(protocol: str) -> Finding:
        run = losses.sweep(runs, "M3", 500, protocol)
        return losses.loss_at(run, losses.best(run).rung, run.verdict.good)

    def decide() -> bool:
        run = losses.equilibrated_sweep(runs, "M3", 500)
        return not above(test_loss(run, losses.best(run).rung), FLOOR)

    return weigh(Statement(Kind.BELOW_FLOOR, SECTION, "M3", 500, "below 1.46"), tell, decide)


def _best(run: SweepResults) -> Finding:
    best = losses.best(run)
    return Finding(
        {
            "temperature": best.temperature,
            "low": best.low,
            "high": best.high,
            "resolved": best.resolved,
            "loss": test_loss(run, best.rung),
        },
        run.verdict.good,
    )
