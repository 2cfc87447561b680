"""Claims about the ladder: no sharp transition (Sec. 3.4), equal swaps on a geometric one (3.3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempernet.diagnostics.statistics import Estimate
from tempernet.diagnostics.thermo import bimodality
from tempernet.paper.claims.claim import DEFAULT, Claim, Finding, Kind, Statement, Values, weigh
from tempernet.paper.claims.judging import (
    Runs,
    above,
    estimate,
    faithful,
    found,
    must_be_equilibrated,
    over_copies,
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
"""Share of the greatest swap rate that the least must have."""


def claims(runs: Runs) -> list[Claim]:
    """All claims about the ladder."""
    return [
        *(no_transition(runs, n) for n in SIZES),
        *(gradual(runs, n) for n in SIZES),
        *(equal_swaps(runs, n) for n in SIZES),
    ]


def no_transition(runs: Runs, n: int) -> Claim:
    """No first-order transition: where the heat capacity peaks, energies have one peak, not two."""

    def tell(protocol: str) -> Finding:
        run = _sweep(runs, n, protocol)
        peak = transition(run)
        least = peak["least_overlap"]
        values: Values = {
            "bimodality": peak_bimodality(run),
            "temperature": float(peak["temperature"]),
            "least_overlap": math.nan if least is None else least,
        }
        return Finding(values, run.verdict.good)

    def decide() -> bool:
        return not above(peak_bimodality(_equilibrated(runs, n)), TWO_PEAKS)

    return weigh(Statement(Kind.ONE_PEAK, "3.4", "M3", n, "no sharp jump"), tell, decide)


def gradual(runs: Runs, n: int) -> Claim:
    """A gradual transition, which needs no special ladder: no pronounced peak of heat capacity."""

    def tell(protocol: str) -> Finding:
        run = _sweep(runs, n, protocol)
        return Finding(heat_capacities(run)._asdict(), run.verdict.good)

    def decide() -> bool:
        found_there = heat_capacities(_equilibrated(runs, n))
        return not above(found_there.greatest, PRONOUNCED * found_there.median)

    return weigh(Statement(Kind.GRADUAL, "3.4", "M3", n, "gradual"), tell, decide)


def equal_swaps(runs: Runs, n: int) -> Claim:
    """A geometric ladder swaps nearly equally often everywhere.

    The default protocol moves its rungs, so what a geometric ladder of as many would give follows
    from its barrier.
    """

    def tell(protocol: str) -> Finding:
        run = _sweep(runs, n, protocol)
        rates = np.mean(_rates_of_copies(run), axis=0)
        values: Values = {
            "low": float(rates.min()),
            "high": float(rates.max()),
            "measured": run.settings.ladder.kind == "geometric",
            "evenness": evenness(run),
        }
        return Finding(values, run.verdict.good)

    def decide() -> bool:
        return above(evenness(_equilibrated(runs, n)), NEARLY_EQUAL)

    return weigh(Statement(Kind.EQUAL_SWAPS, "3.3", "M3", n, "nearly equal"), tell, decide)


class HeatCapacities(NamedTuple):
    """The greatest heat capacity of a ladder, where it is, and the median over the ladder."""

    greatest: Estimate
    temperature: float
    median: float


def heat_capacities(run: SweepResults) -> HeatCapacities:
    """The heat capacity at its peak, and what is typical of the ladder."""
    peak = transition(run)
    return HeatCapacities(
        estimate(peak["heat_capacity"], peak["heat_capacity_error"]),
        float(peak["temperature"]),
        float(np.median(run.summary.heat_capacity.values)),
    )


def peak_bimodality(run: SweepResults) -> Estimate:
    """Bimodality of the energies where the heat capacity peaks, with the error between copies."""
    capacity = np.nan_to_num(run.summary.heat_capacity.values, nan=-np.inf)
    peak = int(capacity.argmax())
    return over_copies([bimodality(energies) for energies in run.series.energy.values[:, :, peak]])


def evenness(run: SweepResults) -> Estimate:
    """Least over greatest swap rate of a geometric ladder, with the error between copies."""
    ratios = []
    for rates in _rates_of_copies(run):
        ratios.append(float(rates.min() / rates.max()) if rates.max() > 0 else 0.0)
    return over_copies(ratios)


def geometric_rates(run: SweepResults, copy: int) -> NDArray[np.float64]:
    """Swap rates of one copy on a geometric ladder, measured or from its barrier: (K-1,).

    Args:
        run: a sweep of K temperatures.
        copy: which of its copies.
    """
    series = run.series.isel(copy=copy)
    attempts = series.swap_attempts.values.sum(axis=0)
    # A pair that was never tried has not swapped.
    rates = np.asarray(series.swap_probability.values.sum(axis=0) / np.maximum(attempts, 1))
    if run.settings.ladder.kind == "geometric":
        return rates
    path = temperature_path(run.temperatures)
    barrier = measure_barrier(path, rates, series.energy.values.mean(axis=0)[:, None])
    low, high = float(run.temperatures[0]), float(run.temperatures[-1])
    geometric = geometric_temperatures(low, high, len(run.temperatures))
    return swap_rates_at(barrier, temperature_path(geometric))


def _rates_of_copies(run: SweepResults) -> list[NDArray[np.float64]]:
    return [geometric_rates(run, copy) for copy in range(run.series.sizes["copy"])]


def _sweep(runs: Runs, n: int, protocol: str) -> SweepResults:
    return found(runs, f"m3-d{n}-{protocol}", SweepResults)


def _equilibrated(runs: Runs, n: int) -> SweepResults:
    """The default run of the paper's M3 on n of its images, equilibrated at all temperatures."""
    run = faithful(runs, f"m3-d{n}-{DEFAULT}", SweepResults, "M3", n)
    must_be_equilibrated(run)
    return run
