"""Results of an evidence: from the records in a run folder to log evidences.

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
import xarray

from tempernet.config import EvidenceSettings, SamplingSettings, TaskSettings
from tempernet.diagnostics.flow import Flow, freedom
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.diagnostics.thermo import histogram_overlap
from tempernet.diagnostics.verdict import Verdict, judge
from tempernet.errors import StoreError
from tempernet.evidence import estimators as evidence
from tempernet.evidence.estimators import HEADLINE, LogRatio, PathSamples
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.ladders import Barrier, measure_barrier
from tempernet.paths.path import Path as RungPath
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE, QUADRATIC

NO_CENTRE = Centre(0.0, 0.0, 1.0)
"""For a path whose terms are only read, not worked out."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """What a run recorded of a path, from the posterior to the end that is known."""

    rungs: RungPath
    samples: PathSamples
    known: np.ndarray
    """log of the integral at the end that is known, with J(w0) for a bridge: (copies,), or one for
    all.
    """
    mean_squares: np.ndarray
    """(copies, rounds, K, layers)."""
    swap_rate: np.ndarray
    """(K-1,), NaN without exchange."""
    round_trips: int
    freedom: float
    """Of the replicas (see `flow.freedom`), NaN without exchange."""
    apart: bool = False
    """Whether each copy has a path of its own."""


@dataclass(frozen=True, eq=False)
class EvidenceResults:
    """An evidence as read from its folder."""

    path: Path
    settings: TaskSettings
    provenance: dict[str, Any]
    recorded: Recorded
    log_integrals: dict[str, LogRatio]
    """log of the integral of exp(-E - prior energy), by estimator."""
    halves: tuple[LogRatio, LogRatio]
    """The headline of the first half of the rounds, and of the second."""
    log_volume: float
    integrand: Estimate
    """<f> at each rung, (K,)."""
    overlap: np.ndarray
    """Of the neighbours' histograms, (K-1,)."""
    barrier: Barrier
    verdict: Verdict
    disagreements: list[str]
    finished: bool

    @property
    def rungs(self) -> RungPath:
        """The path."""
        return self.recorded.rungs

    @property
    def method(self) -> str:
        """Temperature or bridge."""
        return "temperature" if self.rungs.parameter == "temperature" else "bridge"

    @property
    def headline(self) -> str:
        """The estimator that is believed; the paper's own under its protocol."""
        return headline_of(self.settings)

    @property
    def log_evidence(self) -> Estimate:
        """The headline."""
        found = self.log_integrals[self.headline]
        return Estimate(np.asarray(found.value - self.log_volume), np.asarray(found.error))

    @property
    def drift(self) -> float:
        """Errors between the two halves."""
        first, second = self.halves
        return (second.value - first.value) / math.hypot(first.error, second.error)

    @property
    def trusted(self) -> bool:
        """Whether the samples have equilibrated and the estimators agree."""
        return self.verdict.good and not self.disagreements

    @property
    def title(self) -> str:
        """Network, data and protocol in a few words."""
        data = self.provenance["data"]
        network = self.settings.network.name
        return f"{network} on {data['n_train']} images of {data['name']}, {self.settings.protocol} protocol"


def headline_of(settings: TaskSettings) -> str:
    """The estimator that is believed: the paper integrates by Simpson's rule."""
    return "simpson" if settings.protocol == "paper" else HEADLINE


def load(path: Path, *, quick: bool = False) -> EvidenceResults:
    """Read a run folder and work out its evidence; `quick` by the headline's estimator alone, for a
    look at a run.
    """
    folder = RunFolder.open(path, "evidence", "sweep")
    settings, provenance = folder.settings, folder.read_json(PROVENANCE)
    recorded = _read(path, settings, folder, provenance)
    samples, headline = recorded.samples, headline_of(settings)
    if samples.phi.shape[1] < 2:
        raise StoreError(
            f"{path} has one round of samples so far; an evidence and its drift need two"
        )
    names = (headline,) if quick else tuple(evidence.ESTIMATORS)
    found = evidence.log_integrals(samples, recorded.known, apart=recorded.apart, names=names)
    half, known, apart = samples.phi.shape[1] // 2, recorded.known, recorded.apart
    first, second = (
        evidence.log_integrals(replace(samples, phi=part), known, apart=apart, names=[headline])[
            headline
        ]
        for part in (samples.phi[:, :half], samples.phi[:, -half:])
    )
    checkpoint, _ = folder.checkpoints.latest()
    for outdated in folder.outdated(checkpoint) if checkpoint else []:
        raise StoreError(f"{outdated}; put the last one back")
    return EvidenceResults(
        path=path,
        settings=settings,
        provenance=provenance,
        recorded=recorded,
        log_integrals=found,
        halves=(first, second),
        log_volume=float(provenance["model"]["log_prior_volume"]),
        integrand=average(samples.slope),
        overlap=histogram_overlap(samples.slope),
        barrier=measure_barrier(recorded.rungs, recorded.swap_rate, samples.phi.mean(axis=(0, 1))),
        verdict=_verdict(recorded, settings),
        disagreements=evidence.disagreements(found, headline),
        finished=bool(checkpoint and checkpoint.meta["finished"]),
    )


def document(results: EvidenceResults) -> dict[str, Any]:
    """What `results.json` and `--json` say."""
    mean, error = results.log_evidence
    headline = results.log_integrals[results.headline]
    return {
        "task": "evidence",
        "method": results.method,
        "protocol": results.settings.protocol,
        "network": results.settings.network.name,
        "prior": results.settings.prior.model_dump(),
        "data": results.provenance["data"],
        "finished": results.finished,
        "rounds": results.recorded.samples.phi.shape[1],
        "copies": results.recorded.samples.phi.shape[0],
        "headline": results.headline,
        "log_evidence": mean,
        "log_evidence_error": error,
        "log_integral": headline.value,
        "log_prior_volume": results.log_volume,
        "estimators": {name: found._asdict() for name, found in results.log_integrals.items()},
        "trusted": results.trusted,
        "disagreements": results.disagreements,
        "drift_between_halves": results.drift,
        "verdict": {
            "equilibrated": results.verdict.good,
            "headline": results.verdict.headline,
            "advice": results.verdict.advice,
        },
        "barrier": {"total": results.barrier.total, "rungs_wanted": results.barrier.rungs_wanted},
        "round_trips": results.recorded.round_trips,
        "rungs": [
            {
                results.rungs.parameter: value,
                "beta": results.rungs.beta[k],
                "integrand": results.integrand.mean[k],
                "integrand_error": results.integrand.error[k],
                "swap_rate": results.recorded.swap_rate[k]
                if k < len(results.recorded.swap_rate)
                else None,
                "overlap": results.overlap[k] if k < len(results.overlap) else None,
                "rhat": results.verdict.rhat[k],
                "ess": results.verdict.ess[k],
                "reasons": results.verdict.reasons[k],
            }
            for k, value in enumerate(results.rungs.values)
        ],
    }


def netcdf(results: EvidenceResults) -> bytes:
    """The recorded terms (copy, round, rung) and what they say, as a NetCDF file."""
    samples, rungs = results.recorded.samples, results.rungs
    variables: dict[str, Any] = {
        name: (("copy", "round", "rung"), samples.phi[..., m]) for m, name in enumerate(rungs.terms)
    }
    variables |= {
        "mean_square": (("copy", "round", "rung", "layer"), results.recorded.mean_squares),
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
        "verdict": results.verdict.headline,
    }
    return bytes(xarray.Dataset(variables, coords, attributes).to_netcdf(engine="h5netcdf"))


def csv_table(results: EvidenceResults) -> str:
    """A line a rung."""
    text = io.StringIO()
    rows = document(results)["rungs"]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "reasons": "; ".join(row["reasons"])} for row in rows)
    return text.getvalue()


def _read(
    path: Path, settings: TaskSettings, folder: RunFolder, provenance: dict[str, Any]
) -> Recorded:
    if not isinstance(settings, EvidenceSettings) or settings.path.method == "temperature":
        known = np.asarray(float(provenance["model"]["log_prior_volume"]))
        return _from_rounds(path, settings, folder, "temperatures", known)
    known = _known(folder)
    if settings.protocol == "paper":
        return _from_sequence(path, settings, folder, known)
    return _from_rounds(path, settings, folder, "lambdas", known)


def _known(folder: RunFolder) -> np.ndarray:
    """log of the quadratic's integral and -J(w0), of each copy or of all."""
    said = folder.read_json(QUADRATIC)
    return np.asarray(said["log_integral"], np.float64) - np.asarray(
        said["centre_energy"], np.float64
    )


def _from_rounds(
    path: Path, settings: Any, folder: RunFolder, parameter: str, known: np.ndarray
) -> Recorded:
    """Rungs sampled side by side; of temperatures, those from T = 1 on."""
    rows = folder.records.load("rounds")
    burn_in, done = settings.run.burn_in, len(next(iter(rows.values()), ()))
    if done <= burn_in:
        raise StoreError(f"{path} has no samples yet: {done} of {burn_in} rounds of burn-in so far")
    values = rows[parameter][-1]
    if parameter == "lambdas":
        which, rungs = np.arange(len(values)), bridge_path(values, NO_CENTRE)
    else:
        which = _from_posterior(path, values)
        rungs = temperature_path(values[which])
    phi, squares = (
        np.moveaxis(stacked[burn_in:], 0, 1)[:, :, which]
        for stacked in (
            np.stack([rows[name] for name in rungs.terms], axis=-1),
            rows["mean_squares"],
        )
    )
    swaps, attempts = (
        rows[name][burn_in:, :, which[:-1]].sum(axis=(0, 1))
        for name in ("swap_probability", "swap_attempts")
    )
    replica = rows["replica"][burn_in:]
    with np.errstate(invalid="ignore"):
        swap_rate = swaps / attempts
    samples = PathSamples(rungs.coefficients, phi)
    round_trips = int(Flow.of(replica, int(which[0]) + 1).round_trips.sum())
    return Recorded(rungs, samples, known, squares, swap_rate, round_trips, freedom(replica))


def _from_sequence(
    path: Path, settings: EvidenceSettings, folder: RunFolder, known: np.ndarray
) -> Recorded:
    """Rungs sampled one after the other, which are known only when all of them are."""
    rows = folder.records.load("bridges")
    rounds, num = settings.run.rounds, settings.path.num
    done = len(next(iter(rows.values()), ())) // rounds
    if done < num:
        raise StoreError(
            f"{path} has no evidence yet: {done} of {num} distributions are sampled so far"
        )

    def by_copy(array: np.ndarray) -> np.ndarray:
        """(rungs x rounds, copies, ...) -> (copies, rounds, rungs, ...)."""
        return np.moveaxis(array.reshape(num, rounds, *array.shape[1:]), (0, 1, 2), (2, 1, 0))

    rungs = bridge_path(rows["lambda"][::rounds], NO_CENTRE)
    phi = np.stack([by_copy(rows[name]) for name in rungs.terms], axis=-1)
    none = np.full(num - 1, np.nan)
    samples, squares = PathSamples(rungs.coefficients, phi), by_copy(rows["mean_squares"])
    return Recorded(rungs, samples, known, squares, none, 0, np.nan, True)


def _from_posterior(path: Path, temperatures: np.ndarray) -> np.ndarray:
    """Which rungs lead from T = 1 to the prior."""
    which = np.flatnonzero(temperatures >= 1.0)
    if not (len(which) > 1 and temperatures[which[0]] == 1.0 and np.isinf(temperatures[-1])):
        raise StoreError(
            f"{path} has no evidence: its temperatures, {temperatures[0]:.3g} to {temperatures[-1]:.3g}, must have 1 "
            "and inf among them; give a sweep ladder.temperatures with both, or run tempernet evidence"
        )
    return which


def _verdict(recorded: Recorded, settings: SamplingSettings) -> Verdict:
    phi, squares = recorded.samples.phi, recorded.mean_squares
    observables = {f"the {name}": phi[..., m] for m, name in enumerate(recorded.rungs.terms)}
    for layer in range(squares.shape[-1]):
        observables[f"the mean square weight of layer {layer + 1}"] = squares[..., layer]
    return judge(
        observables,
        recorded.round_trips,
        recorded.freedom,
        exchanging=settings.dynamics.exchange != "none",
        started_apart=settings.start.weights == "apart",
        noun="rungs",
    )
