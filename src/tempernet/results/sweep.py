"""Results of a sweep: from what it recorded to named arrays, averages and a verdict.

Reading changes nothing in a run folder and works while the run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np
import xarray

from tempernet.config import SweepSettings
from tempernet.diagnostics.flow import Flow
from tempernet.diagnostics.thermo import BestTemperature, best_temperature
from tempernet.diagnostics.verdict import Verdict
from tempernet.errors import StoreError
from tempernet.paths.ladders import Barrier, measure_barrier
from tempernet.paths.temperatures import temperature_path
from tempernet.results.judging import verdict_on
from tempernet.results.run import Brief, name_of, open_run, subject
from tempernet.results.series import Recorded, Rows, after, burn_in_of, series_of
from tempernet.results.summary import ensemble_scores, nearest, summarise
from tempernet.store.files import JsonObject


@dataclass(frozen=True, eq=False, repr=False)
class SweepResults(Brief):
    """A sweep: what it recorded, and what that says. K is the number of temperatures.

    Attributes:
        path: the run folder; None for samples that were made in Python.
        settings: all settings of the run.
        provenance: what shaped it besides: data, versions, devices.
        series: every observable by its name, with its unit, over the rounds that count; dimensions
            are copy, round, temperature, pair, layer, score and kept.
        burn_in: the rounds before, in which `rung_temperature` (burn_in_round, rung) may change.
        summary: averages and standard errors at each temperature.
        verdict: whether each temperature has equilibrated, and the reasons where not.
        best: the temperature of the lowest validation loss; None without validation examples.
        barrier: the communication barrier between neighbouring temperatures.
        round_trips: crossings of the ladder up and down, over all copies.
        fraction_from_hot: share of replicas at each rung that came from the hottest one, (K,).
        finished: whether the run has come to its end.
        kept: networks kept, arrays (rows, copies, kept temperatures, ...) by name.
        ensemble: mean softmax outputs, (copies, K, examples, classes); None if nothing was scored.
    """

    path: Path | None
    settings: SweepSettings
    provenance: JsonObject
    series: xarray.Dataset
    burn_in: xarray.Dataset
    summary: xarray.Dataset
    verdict: Verdict
    best: BestTemperature | None
    barrier: Barrier
    round_trips: int
    fraction_from_hot: np.ndarray
    finished: bool
    kept: Mapping[str, np.ndarray] = field(default_factory=dict)
    ensemble: np.ndarray | None = None

    @property
    def temperatures(self) -> np.ndarray:
        """The temperatures, increasing, (K,)."""
        return np.asarray(self.summary.temperature.values)

    @property
    def parameter(self) -> str:
        """What the rungs are values of."""
        return "temperature"

    @property
    def name(self) -> str:
        """Its folder's name, or "this run" for one that was made in Python."""
        return name_of(self.path)

    @property
    def title(self) -> str:
        """Network, data and protocol in a few words."""
        return f"{subject(self.settings, self.provenance)}, {self.settings.protocol} protocol"


class Said(TypedDict):
    """What is worked out of the series of a sweep."""

    summary: xarray.Dataset
    verdict: Verdict
    best: BestTemperature | None
    barrier: Barrier
    round_trips: int
    fraction_from_hot: np.ndarray


def said_by(
    series: xarray.Dataset,
    settings: SweepSettings,
    provenance: JsonObject,
    kept: Rows,
    ensemble: np.ndarray | None,
) -> Said:
    """Averages, verdict, best temperature, barrier and replica flow of a sweep.

    Args:
        series: observables over the rounds that count (see `series.series_of`).
        settings: of the sweep.
        provenance: what shaped it besides.
        kept: networks kept, arrays (rows, copies, kept temperatures, ...) by name.
        ensemble: mean softmax outputs, (copies, K, examples, classes); None if nothing was scored.
    """
    replica = np.asarray(series.replica.transpose("round", "copy", "temperature").values)
    flow = Flow.of(replica)
    verdict = verdict_on(series, settings, flow, kept)
    summary = summarise(series, provenance, verdict)
    if ensemble is not None:
        summary = summary.merge(ensemble_scores(ensemble, provenance, series))
    temperatures, best = series.temperature.values, None
    if "validation_loss" in series and series.sizes["score"]:
        best = best_temperature(series.validation_loss.values, temperatures)
    return Said(
        summary=summary,
        verdict=verdict,
        best=best,
        barrier=measure_barrier(
            temperature_path(temperatures),
            summary.swap_rate.values[:-1],
            summary.energy.values[:, None],
        ),
        round_trips=int(flow.round_trips.sum()),
        fraction_from_hot=flow.fraction_from_hot,
    )


def results_of(
    recorded: Recorded,
    settings: SweepSettings,
    provenance: JsonObject,
    *,
    path: Path | None = None,
    finished: bool = True,
) -> SweepResults:
    """The results of a sweep from what it recorded, burn-in included.

    Args:
        recorded: rounds, scores and networks.
        settings: of the sweep.
        provenance: what shaped it besides.
        path: its folder; None for samples that were made in Python.
        finished: whether it has come to its end.
    """
    burn_in, rounds = settings.run.burn_in, recorded.rounds
    before = {name: array[:burn_in] for name, array in rounds.items()}
    counting = {name: array[burn_in:] for name, array in rounds.items()}
    scores, full = after(recorded.scores, burn_in), after(recorded.full, burn_in)
    kept = after(recorded.weights, burn_in)
    series = series_of(counting, scores, full)
    return SweepResults(
        path=path,
        settings=settings,
        provenance=provenance,
        series=series,
        burn_in=burn_in_of(before),
        finished=finished,
        kept=kept,
        ensemble=recorded.ensemble,
        **said_by(series, settings, provenance, kept, recorded.ensemble),
    )


def load(path: Path) -> SweepResults:
    """Read a run folder and work out what it says."""
    folder, settings, provenance = open_run(path, SweepSettings)
    records = folder.records
    rounds = records.load("rounds")
    burn_in, done = settings.run.burn_in, len(next(iter(rounds.values()), ()))
    if done <= burn_in:
        raise StoreError(f"{path} has no samples yet: {done} of {burn_in} rounds of burn-in so far")
    checkpoint, _ = folder.checkpoints.latest()
    for outdated in folder.outdated(checkpoint) if checkpoint else []:
        raise StoreError(f"{outdated}; put the last one back")
    ensemble = None
    if checkpoint and (count := int(checkpoint.arrays["scores"])):
        ensemble = checkpoint.arrays["ensemble"] / count
    scores, full = records.load("scores"), records.load("full")
    weights = folder.weights.load("weights")
    return results_of(
        Recorded(rounds, scores, full, weights, ensemble),
        settings,
        provenance,
        path=path,
        finished=bool(checkpoint and checkpoint.meta["finished"]),
    )


class Transition(TypedDict):
    """Where the heat capacity peaks, and what the energies look like there."""

    temperature: float
    heat_capacity: float
    heat_capacity_error: float
    bimodality: float
    """1/3 for a normal distribution, 5/9 for a flat one, 1 for two peaks."""
    least_overlap: float | None
    """The smallest overlap of neighbouring histograms; None for a single temperature."""


def transition(results: SweepResults) -> Transition:
    """Where the heat capacity peaks, and whether energies have one peak or two there (Sec. 3.4)."""
    summary = results.summary
    peak = int(np.argmax(summary.heat_capacity.values))
    overlap = summary.overlap.values[:-1]
    return Transition(
        temperature=summary.temperature.values[peak],
        heat_capacity=summary.heat_capacity.values[peak],
        heat_capacity_error=summary.heat_capacity_error.values[peak],
        bimodality=summary.bimodality.values[peak],
        least_overlap=float(np.min(overlap)) if len(overlap) else None,
    )


def at_rung(results: SweepResults, rung: int) -> dict[str, float]:
    """Held-out numbers at a rung: on the whole test set where it was scored, else on the part."""
    summary = results.summary
    found: dict[str, float] = {"temperature": summary.temperature.values[rung]}
    for name in ("test_loss", "test_accuracy"):
        source = f"full_{name}" if f"full_{name}" in summary else name
        if source in summary:
            found |= {
                name: summary[source].values[rung],
                f"{name}_error": summary[f"{source}_error"].values[rung],
            }
    for name in ("ensemble_loss", "ensemble_accuracy", "ensemble_calibration"):
        if name in summary:
            found[name] = summary[name].values[rung]
    return found


__all__ = [
    "SweepResults",
    "at_rung",
    "load",
    "nearest",
    "results_of",
    "said_by",
    "summarise",
    "transition",
]
