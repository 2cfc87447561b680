"""What claims about the test loss read from a run: losses at temperatures, and the best of them."""

from __future__ import annotations

import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.diagnostics.thermo import BestTemperature
from tempernet.paper.claims.claim import DEFAULT, Cause, Finding, Undecided
from tempernet.paper.claims.judging import (
    Runs,
    estimate,
    faithful,
    found,
    must_be_equilibrated,
)
from tempernet.results.optimise import OptimiseResults
from tempernet.results.summary import nearest
from tempernet.results.sweep import SweepResults, at_rung

SIZES = (50, 500, 5000)
SECTION = "3.4"
NEAR_ONE = 1.25
"""How far from T = 1 the rung may be that stands for it."""
SELECTED, SELECTED_FROM = 100, 4000
"""Networks that stand for standard optimisation where none has E = 0, and of how many starts.

They are the ones with the least E.
"""


def sweep(runs: Runs, network: str, n: int, protocol: str = DEFAULT) -> SweepResults:
    """The sweep of a network on n images by a protocol."""
    return found(runs, _name(network, n, protocol), SweepResults)


def faithful_sweep(runs: Runs, network: str, n: int) -> SweepResults:
    """The default sweep, which must be of the paper's network and data."""
    return faithful(runs, _name(network, n, DEFAULT), SweepResults, network, n)


def equilibrated_sweep(runs: Runs, network: str, n: int) -> SweepResults:
    """The default sweep of the paper's network and data, equilibrated at all temperatures."""
    run = faithful_sweep(runs, network, n)
    must_be_equilibrated(run)
    return run


def test_loss(run: SweepResults, rung: int) -> Estimate:
    """Test loss at a rung; on the whole test set where it was scored."""
    told = at_rung(run, rung)
    if "test_loss" not in told:
        raise Undecided(Cause.NOT_SCORED, run.name, scored="test")
    return estimate(told["test_loss"], told["test_loss_error"])


def loss_at(run: SweepResults, rung: int, trusted: bool) -> Finding:
    """The test loss at a rung, with its temperature."""
    return Finding(
        {"loss": test_loss(run, rung), "temperature": float(run.temperatures[rung])}, trusted
    )


def posterior(run: SweepResults) -> int:
    """The rung that stands for T = 1."""
    rung = nearest(run.temperatures, 1.0)
    temperature = float(run.temperatures[rung])
    if not 1 / NEAR_ONE <= temperature <= NEAR_ONE:
        raise Undecided(Cause.NO_POSTERIOR, run.name, nearest=temperature)
    return rung


def best(run: SweepResults) -> BestTemperature:
    """The best temperature by the validation loss."""
    if run.best is None:
        raise Undecided(Cause.NOT_SCORED, run.name, scored="validation")
    return run.best


def resolved(run: SweepResults) -> BestTemperature:
    """The best temperature, which the ladder must resolve."""
    chosen = best(run)
    if not chosen.resolved:
        raise Undecided(
            Cause.UNRESOLVED,
            run.name,
            temperature=chosen.temperature,
            low=chosen.low,
            high=chosen.high,
        )
    return chosen


def least(run: SweepResults) -> int:
    """The rung with the least test loss."""
    means = [float(test_loss(run, k).mean) for k in range(len(run.temperatures))]
    return int(np.nanargmin(means))


def uninformed(run: SweepResults) -> float:
    """The loss of the classifier that knows nothing."""
    return float(run.provenance["uninformed_loss"])


def optimised_loss(runs: Runs, n: int, protocol: str) -> Estimate:
    """Mean test loss of the optimised networks kept, of M3 on n images."""
    kept = found(runs, f"optimise-m3-d{n}-{protocol}", OptimiseResults).spreads["test_loss"]
    return estimate(kept.mean, kept.error)


def optimised(runs: Runs, n: int, protocol: str) -> Finding:
    """The loss of optimised networks, with how many of them really are at the minimum."""
    run = found(runs, f"optimise-m3-d{n}-{protocol}", OptimiseResults)
    energies = run.kept["energy"]
    return Finding(
        {
            "loss": optimised_loss(runs, n, protocol),
            "reached": len(energies) if run.all_reached else int((energies <= 0).sum()),
            "networks": len(energies),
        }
    )


def must_be_optimised(runs: Runs, n: int) -> None:
    """Refuse to decide by networks that are not at the minimum.

    The paper keeps networks with E = 0, and on D_5000, where none got there, the best 100 of 4,000.
    """
    name = f"optimise-m3-d{n}-{DEFAULT}"
    run = faithful(runs, name, OptimiseResults, "M3", n)
    starts, kept = run.starts["energy"], run.kept["energy"]
    selected = len(starts) >= SELECTED_FROM and len(kept) <= SELECTED
    if not run.all_reached and not (n == 5000 and selected):
        raise Undecided(
            Cause.NOT_MINIMISED,
            name,
            reached=int(run.starts["reached"].sum()),
            starts=len(starts),
            kept=len(kept),
        )


def _name(network: str, n: int, protocol: str) -> str:
    return f"{network.lower()}-d{n}-{protocol}"
