"""Results of an evidence: from the records of a path to log evidences.

    log evidence = log integral of exp(-E - prior energy) dw - log prior volume (Sec. 4.4)

A sweep whose ladder has T = 1 and T = inf holds the same samples and is read the same way.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tempernet.config import EvidenceSettings, LadderSettings, SweepSettings
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.diagnostics.thermo import histogram_overlap
from tempernet.diagnostics.verdict import Verdict, judge
from tempernet.errors import StoreError
from tempernet.evidence import estimators as evidence
from tempernet.evidence.estimators import HEADLINE, Disagreement, LogRatio
from tempernet.paths.ladders import Barrier, measure_barrier
from tempernet.paths.path import Path as RungPath
from tempernet.results.judging import judged_of
from tempernet.results.path_records import RecordedPath, in_sequence, side_by_side
from tempernet.results.run import Brief, name_of, open_run, subject
from tempernet.store import RunFolder
from tempernet.store.files import JsonObject
from tempernet.store.folder import QUADRATIC


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceResults(Brief):
    """An evidence as read from its folder."""

    path: Path | None
    settings: LadderSettings
    provenance: JsonObject
    recorded: RecordedPath
    log_integrals: dict[str, LogRatio]
    """log of the integral of exp(-E - prior energy), by estimator."""
    halves: tuple[LogRatio, LogRatio]
    """The headline of the first half of the rounds, and of the second."""
    log_volume: float
    integrand: Estimate
    """<f> at each rung, (K,)."""
    overlap: np.ndarray
    """Overlap of the histograms of neighbouring rungs, (K-1,)."""
    barrier: Barrier
    verdict: Verdict
    disagreements: tuple[Disagreement, ...]
    finished: bool

    @property
    def rungs(self) -> RungPath:
        """The path of rungs."""
        return self.recorded.rungs

    @property
    def parameter(self) -> str:
        """What the rungs are values of."""
        return self.rungs.parameter

    @property
    def method(self) -> str:
        """Which path it is: "temperature" or "bridge"."""
        return "temperature" if self.rungs.parameter == "temperature" else "bridge"

    @property
    def headline(self) -> str:
        """The estimator that is believed; the paper's own under its protocol."""
        return headline_of(self.settings)

    @property
    def log_evidence(self) -> Estimate:
        """The log evidence by the headline's estimator, with its error."""
        found = self.log_integrals[self.headline]
        return Estimate(np.asarray(found.value - self.log_volume), np.asarray(found.error))

    @property
    def drift(self) -> float:
        """The second half less the first, in units of their standard error."""
        first, second = self.halves
        return (second.value - first.value) / math.hypot(first.error, second.error)

    @property
    def trusted(self) -> bool:
        """Whether the samples have equilibrated and the estimators agree."""
        return self.verdict.good and not self.disagreements

    @property
    def name(self) -> str:
        """Its folder's name, or "this run" for one that was made in Python."""
        return name_of(self.path)

    @property
    def title(self) -> str:
        """Network, data and protocol in a few words."""
        return f"{subject(self.settings, self.provenance)}, {self.settings.protocol} protocol"


def headline_of(settings: LadderSettings) -> str:
    """The estimator that is believed: the paper integrates by Simpson's rule."""
    return "simpson" if settings.protocol == "paper" else HEADLINE


def load(path: Path, *, quick: bool = False) -> EvidenceResults:
    """Read a run folder and work out its evidence.

    `quick` is by the headline's estimator alone, for a look at a run.
    """
    folder, settings, provenance = open_run(path, EvidenceSettings, SweepSettings)
    recorded = _read(str(path), settings, folder, provenance)
    checkpoint, _ = folder.checkpoints.latest()
    for outdated in folder.outdated(checkpoint) if checkpoint else []:
        raise StoreError(f"{outdated}; put the last one back")
    finished = bool(checkpoint and checkpoint.meta["finished"])
    return results_of(recorded, settings, provenance, path=path, finished=finished, quick=quick)


def results_of(
    recorded: RecordedPath,
    settings: LadderSettings,
    provenance: JsonObject,
    *,
    path: Path | None = None,
    finished: bool = True,
    quick: bool = False,
) -> EvidenceResults:
    """The results of an evidence from what it recorded.

    Args:
        recorded: the path, its samples and its swaps.
        settings: of the run.
        provenance: what shaped it besides.
        path: its folder; None for a run that was made in Python.
        finished: whether it has come to its end.
        quick: use the headline's estimator alone, for a look at a run.
    """
    samples, headline = recorded.samples, headline_of(settings)
    if samples.phi.shape[1] < 2:
        raise StoreError(
            f"{path} has one round of samples so far; an evidence and its drift need two"
        )
    names = (headline,) if quick else tuple(evidence.ESTIMATORS)
    known, apart = recorded.known, recorded.apart
    found = evidence.log_integrals(samples, known, apart=apart, names=names)
    half = samples.phi.shape[1] // 2
    first, second = (
        evidence.log_integrals(replace(samples, phi=part), known, apart=apart, names=[headline])
        for part in (samples.phi[:, :half], samples.phi[:, -half:])
    )
    return EvidenceResults(
        path=path,
        settings=settings,
        provenance=provenance,
        recorded=recorded,
        log_integrals=found,
        halves=(first[headline], second[headline]),
        log_volume=float(provenance["model"]["log_prior_volume"]),
        integrand=average(samples.slope),
        overlap=histogram_overlap(samples.slope),
        barrier=measure_barrier(recorded.rungs, recorded.swap_rate, samples.phi.mean(axis=(0, 1))),
        verdict=_verdict(recorded, settings),
        disagreements=evidence.disagreements(found, headline),
        finished=finished,
    )


def rung_rows(results: EvidenceResults) -> list[dict[str, object]]:
    """What is known of each rung, a row a rung."""
    recorded, verdict = results.recorded, results.verdict
    swap_rate, overlap = (
        np.append(pairs, np.nan) for pairs in (recorded.swap_rate, results.overlap)
    )
    return [
        {
            results.rungs.parameter: value,
            "beta": results.rungs.beta[k],
            "integrand": results.integrand.mean[k],
            "integrand_error": results.integrand.error[k],
            "swap_rate": swap_rate[k],
            "overlap": overlap[k],
            "rhat": verdict.rhat[k],
            "ess": verdict.ess[k],
            "reasons": [reason._asdict() for reason in verdict.reasons[k]],
        }
        for k, value in enumerate(results.rungs.values)
    ]


def netcdf(results: EvidenceResults) -> bytes:
    """Every observable (copy, round, rung, ...) and what they say, as a NetCDF file."""
    rungs = results.rungs
    variables: dict[str, Any] = {
        "swap_rate": ("pair", results.recorded.swap_rate),
        "overlap": ("pair", results.overlap),
        "integrand": ("rung", results.integrand.mean),
        "integrand_error": ("rung", results.integrand.error),
        "equilibrated": ("rung", results.verdict.equilibrated),
        "log_integral": ("estimator", [found.value for found in results.log_integrals.values()]),
        "log_integral_error": (
            "estimator",
            [found.error for found in results.log_integrals.values()],
        ),
    }
    coords: dict[str, Any] = {
        rungs.parameter: ("rung", rungs.values),
        "beta": ("rung", rungs.beta),
        "estimator": list(results.log_integrals),
    }
    attributes = {
        "title": results.title,
        "protocol": results.settings.protocol,
        "log_evidence": float(results.log_evidence.mean),
        "log_evidence_error": float(results.log_evidence.error),
        "log_prior_volume": results.log_volume,
        "equilibrated": int(results.verdict.good),
    }
    found = results.recorded.series.assign_coords(coords).assign(variables)
    return bytes(found.assign_attrs(attributes).to_netcdf(engine="h5netcdf"))


def csv_table(results: EvidenceResults) -> str:
    """What is known of each rung as CSV, a line a rung."""
    text = io.StringIO()
    rows = rung_rows(results)
    protocol = results.settings.protocol
    writer = csv.DictWriter(text, [*rows[0], "protocol"], lineterminator="\n")
    writer.writeheader()
    for row, reasons in zip(rows, results.verdict.reasons, strict=True):
        labels = "; ".join(reason.label for reason in reasons)
        writer.writerow({**row, "reasons": labels, "protocol": protocol})
    return text.getvalue()


def _read(
    name: str, settings: LadderSettings, folder: RunFolder, provenance: JsonObject
) -> RecordedPath:
    if isinstance(settings, EvidenceSettings) and settings.path.method == "bridge":
        said = folder.read_json(QUADRATIC)
        # log of the quadratic's integral and -J(w0), of each copy or of all.
        known = np.subtract(said["log_integral"], said["centre_energy"])
        if settings.protocol == "paper":
            return in_sequence(name, settings, folder.records.load("bridges"), known)
        return side_by_side(name, settings, folder.records.load("rounds"), "lambda", known)
    known = np.asarray(float(provenance["model"]["log_prior_volume"]))
    return side_by_side(name, settings, folder.records.load("rounds"), "temperature", known)


def _verdict(recorded: RecordedPath, settings: LadderSettings) -> Verdict:
    return judge(
        judged_of(recorded.series, recorded.rungs.terms),
        recorded.round_trips,
        recorded.freedom,
        exchanging=settings.dynamics.exchange != "none",
        started_apart=settings.start.weights == "apart",
    )
