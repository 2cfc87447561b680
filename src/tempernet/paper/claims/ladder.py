"""Claims about the ladder: no sharp transition (Sec. 3.4), and equal swap rates on a geometric one
(Sec. 3.3).
"""

from __future__ import annotations

import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.diagnostics.thermo import bimodality
from tempernet.paper.claims.claim import (
    DEFAULT,
    Claim,
    Runs,
    above,
    faithful,
    found,
    marked,
    must_be_equilibrated,
    over_copies,
    weigh,
    written,
)
from tempernet.paths.ladders import measure_barrier, swap_rates_at
from tempernet.paths.temperatures import geometric_temperatures, temperature_path
from tempernet.results.sweep import SweepResults, transition

SIZES = (50, 500, 5000)
TWO_PEAKS = 5 / 9
"""Sarle's coefficient of a flat distribution: two peaks have more."""
PRONOUNCED = 3.0
"""Times the median over the ladder: a heat capacity above it is a peak."""
NEARLY_EQUAL = 0.5
"""Of the greatest swap rate: what the least must be."""


def claims(runs: Runs) -> list[Claim]:
    """All of them."""
    return [
        *(no_transition(runs, n) for n in SIZES),
        *(gradual(runs, n) for n in SIZES),
        *(equal_swaps(runs, n) for n in SIZES),
    ]


def no_transition(runs: Runs, n: int) -> Claim:
    """No first-order transition: where the heat capacity peaks, the energies have one peak, not
    two.
    """

    def tell(protocol: str) -> str:
        run: SweepResults = found(runs, f"m3-d{n}-{protocol}")
        peak = transition(run)
        text = (
            f"bimodality {written(peak_bimodality(run))} at T = {peak['temperature']:.3g}; least overlap of neighbours "
            f"{peak['least_overlap']:.2f}"
        )
        return marked(text, run.verdict.good)

    def decide() -> bool:
        run = faithful(runs, f"m3-d{n}-{DEFAULT}", "M3", n)
        must_be_equilibrated(run)
        return not above(peak_bimodality(run), TWO_PEAKS)

    name = (
        f"M3 on D_{n} has no first-order transition: energies with one peak (bimodality below 5/9)"
    )
    return weigh("3.4", name, "no sharp jump", tell, decide)


def gradual(runs: Runs, n: int) -> Claim:
    """A gradual transition, which needs no special ladder: the heat capacity has no pronounced
    peak.
    """

    def tell(protocol: str) -> str:
        run: SweepResults = found(runs, f"m3-d{n}-{protocol}")
        height, typical = _heat_capacities(run)
        where = transition(run)["temperature"]
        return marked(
            f"C = {written(height)} at T = {where:.3g}, median {typical:.3g}", run.verdict.good
        )

    def decide() -> bool:
        run = faithful(runs, f"m3-d{n}-{DEFAULT}", "M3", n)
        must_be_equilibrated(run)
        height, typical = _heat_capacities(run)
        return not above(height, PRONOUNCED * typical)

    name = f"M3 on D_{n}: the transition is gradual, heat capacity below {PRONOUNCED:.0f} times its median everywhere"
    return weigh("3.4", name, "gradual", tell, decide)


def _heat_capacities(run: SweepResults) -> tuple[Estimate, float]:
    """The greatest, and the median over the ladder."""
    peak = transition(run)
    height = Estimate(np.asarray(peak["heat_capacity"]), np.asarray(peak["heat_capacity_error"]))
    return height, float(np.median(run.summary.heat_capacity.values))


def equal_swaps(runs: Runs, n: int) -> Claim:
    """A geometric ladder swaps nearly equally often everywhere.

    The default protocol moves its rungs, so what a geometric ladder of as many would give follows
    from its barrier.
    """

    def tell(protocol: str) -> str:
        run: SweepResults = found(runs, f"m3-d{n}-{protocol}")
        rates = np.mean(
            [geometric_rates(run, copy) for copy in range(run.series.sizes["copy"])], axis=0
        )
        how = "measured" if run.settings.ladder.kind == "geometric" else "from the barrier"
        text = f"{rates.min():.0%} to {rates.max():.0%}".replace("%", " %")
        return marked(f"{text}, {how}; least / greatest {written(evenness(run))}", run.verdict.good)

    def decide() -> bool:
        run = faithful(runs, f"m3-d{n}-{DEFAULT}", "M3", n)
        must_be_equilibrated(run)
        return above(evenness(run), NEARLY_EQUAL)

    name = f"M3 on D_{n}: a geometric ladder swaps nearly equally often everywhere (least / greatest above 1/2)"
    return weigh("3.3", name, "nearly equal", tell, decide)


def peak_bimodality(run: SweepResults) -> Estimate:
    """Of the energies where the heat capacity is greatest; with the error between copies."""
    peak = int(np.nan_to_num(run.summary.heat_capacity.values, nan=-np.inf).argmax())
    return over_copies([bimodality(energies) for energies in run.series.energy.values[:, :, peak]])


def evenness(run: SweepResults) -> Estimate:
    """Least over greatest swap rate of a geometric ladder; with the error between copies."""
    rates = [geometric_rates(run, copy) for copy in range(run.series.sizes["copy"])]
    return over_copies([r.min() / r.max() if r.max() > 0 else 0.0 for r in rates])


def geometric_rates(run: SweepResults, copy: int) -> np.ndarray:
    """Swap rates of one copy on a geometric ladder: those measured, or what its barrier tells of
    one.
    """
    series = run.series.isel(copy=copy)
    attempts = series.swap_attempts.values.sum(axis=0)
    # A pair that was never tried has not swapped.
    rates = series.swap_probability.values.sum(axis=0) / np.maximum(attempts, 1)
    if run.settings.ladder.kind == "geometric":
        return rates
    path = temperature_path(run.temperatures)
    barrier = measure_barrier(path, rates, series.energy.values.mean(axis=0)[:, None])
    low, high = float(run.temperatures[0]), float(run.temperatures[-1])
    return swap_rates_at(
        barrier, temperature_path(geometric_temperatures(low, high, len(run.temperatures)))
    )
