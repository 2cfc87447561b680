"""Claims about minima of E: the floor of M3star, widths that chose the priors, Alg. 3's steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tempernet.paper.claims.claim import (
    DEFAULT,
    PAPER,
    Cause,
    Claim,
    Finding,
    Kind,
    Statement,
    Undecided,
    weigh,
)
from tempernet.paper.claims.judging import Runs, faithful, found
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults

FLOOR = math.log1p(9 / math.e)
"""-log(e / (e + 9)): the least loss that scores between 0 and 1 allow in ten classes (Sec. 3.1)."""
ROUNDED = 0.005
"""What 1.46 may be off by."""
FLOAT32 = 1e-3
"""What single precision may take a loss below the floor."""
WIDTHS = {"M3": 30.0, "M1": 33.0, "M3star": 890.0}
STARTS = 20
"""Starts at the minimum whose range is taken for typical.

The paper has 25 minimisations of each network (Sec. 3.2).
"""
FEW_HUNDRED = 1000
"""Steps that are no longer a few hundred."""


def claims(runs: Runs) -> list[Claim]:
    """All claims about minima."""
    return [
        floor(runs),
        *(width(runs, name) for name in WIDTHS),
        *(steps(runs, n) for n in (50, 500)),
    ]


def floor(runs: Runs) -> Claim:
    """No weights of M3star can have a training loss below 1.46, and some come near.

    It is about all weights, so any run of either protocol can decide it.
    """

    def least(protocol: str) -> float:
        sampled = [f"m3star-d{n}-{protocol}" for n in (50, 500)]
        losses = [
            _least_sampled(found(runs, name, SweepResults)) for name in sampled if name in runs
        ]
        minimised = f"widths-m3star-{protocol}"
        if minimised in runs:
            losses.append(float(found(runs, minimised, OptimiseResults).kept["train_loss"].min()))
        if not losses:
            raise Undecided(Cause.NO_RUN, sampled[0])
        return min(losses)

    def decide() -> bool:
        lowest = min(_known(least, PAPER, DEFAULT))
        if lowest < FLOOR - FLOAT32:
            return False
        if lowest > FLOOR + ROUNDED:
            raise Undecided(Cause.ABOVE_FLOOR, least=lowest, floor=FLOOR)
        return True

    statement = Statement(Kind.FLOOR, "3.1", "M3star", printed=1.46)
    return weigh(statement, lambda protocol: Finding({"loss": least(protocol)}), decide)


def width(runs: Runs, network: str) -> Claim:
    """The width max |w| sqrt(k) after minimisation is the paper's, within the range of the starts.

    The number is Alg. 3's. Where that does not get to the minimum, FIRE's minima can confirm it;
    that they have another width would say nothing of Alg. 3.
    """
    stem = f"widths-{network.lower()}"

    def typical(protocol: str) -> bool | None:
        run = faithful(runs, f"{stem}-{protocol}", OptimiseResults, network, 500)
        widest = run.kept["widest"][_at_minimum(run)]
        if len(widest) < STARTS:
            return None
        return bool(widest.min() <= WIDTHS[network] <= widest.max())

    def tell(protocol: str) -> Finding:
        run = found(runs, f"{stem}-{protocol}", OptimiseResults)
        widest, reached = run.kept["widest"], _at_minimum(run)
        chosen = widest[reached] if reached.any() else widest
        return Finding(
            {
                "method": run.method,
                "median": float(np.median(chosen)),
                "low": float(chosen.min()),
                "high": float(chosen.max()),
                "at_minimum": int(reached.sum()),
                "starts": len(widest),
            }
        )

    def decide() -> bool:
        printed = typical(PAPER)
        if printed is not None:
            return printed
        if typical(DEFAULT):
            return True
        raise Undecided(Cause.FEW_MINIMA, f"{stem}-{PAPER}", starts=STARTS)

    section = "4.1" if network == "M1" else "3.2"
    return weigh(Statement(Kind.WIDTH, section, network, 500, WIDTHS[network]), tell, decide)


def steps(runs: Runs, n: int) -> Claim:
    """Alg. 3 needs a few hundred steps to E = 0.

    It is judged by the median over its starts, with its 95 % interval.
    """
    stem = f"optimise-m3-d{n}"

    def tell(protocol: str) -> Finding:
        run = found(runs, f"{stem}-{protocol}", OptimiseResults)
        low, middle, high = median_steps(run)
        return Finding(
            {
                "method": run.method,
                "median": middle,
                "low": low,
                "high": high,
                "budget": run.settings.optimise.max_gradients,
                "least_energy": float(run.starts["energy"].min()),
            }
        )

    def decide() -> bool:
        run = faithful(runs, f"{stem}-{PAPER}", OptimiseResults, "M3", n)
        low, _, high = median_steps(run)
        budget = run.settings.optimise.max_gradients
        if min(low, budget) >= FEW_HUNDRED:
            return False
        if high < FEW_HUNDRED:
            return True
        raise Undecided(Cause.MEDIAN_UNCLEAR, f"{stem}-{PAPER}", steps=FEW_HUNDRED)

    statement = Statement(Kind.STEPS, "3.3.2", "M3", n, "a few hundred steps")
    return weigh(statement, tell, decide)


def median_steps(run: OptimiseResults) -> tuple[float, float, float]:
    """Median of the steps to E = 0 between the ends of its 95 % interval; inf if not reached."""
    taken = np.sort(np.where(run.starts["reached"], run.starts["gradients"], np.inf))
    number = len(taken)
    # The ends are order statistics: the i-th and the i-th from above, counted from 0, miss the
    # median with probability 2 P(B <= i).
    low = max(0, int(binom.ppf(0.025, number, 0.5)) - 1)
    return float(taken[low]), float(taken[number // 2]), float(taken[number - 1 - low])


def _least_sampled(run: SweepResults) -> float:
    return float(run.series.energy.values.min()) / int(run.provenance["data"]["n_train"])


def _known(least_fn: Callable[[str], float], *protocols: str) -> list[float]:
    """What is known of either protocol; a claim about all weights needs only one."""
    values = []
    for protocol in protocols:
        try:
            values.append(least_fn(protocol))
        except Undecided as why:
            missing = why
    if not values:
        raise missing
    return values


def _at_minimum(run: OptimiseResults) -> NDArray[np.bool_]:
    """Which of the starts kept are at the least E: 0, or the floor of a logistic output."""
    network = run.settings.network
    if network.name == "M3star" or network.output == "logistic":
        return np.asarray(run.kept["train_loss"] <= FLOOR + ROUNDED)
    return np.asarray(run.kept["energy"] <= run.settings.optimise.tolerance)
