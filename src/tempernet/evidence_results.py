"""Results of an evidence: from the records in a run folder to log evidences, and from several of them to a choice.

    log evidence = log integral of exp(-E - prior energy) dw - log prior volume (Sec. 4.4)

A sweep whose ladder has T = 1 and T = inf holds the same samples and is read the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from tempernet import evidence
from tempernet.config import EvidenceSettings, TaskSettings
from tempernet.errors import ConfigError, StoreError
from tempernet.evidence import HEADLINE, LogRatio, PathSamples
from tempernet.flow import Flow
from tempernet.ladders import Barrier, measure_barrier
from tempernet.paths import Path as RungPath
from tempernet.paths import bridge_path, temperature_path
from tempernet.statistics import Estimate, average
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE, RESULTS
from tempernet.thermo import histogram_overlap
from tempernet.verdict import Verdict, judge


@dataclass(frozen=True, eq=False)
class EvidenceResults:
    """An evidence as read from its folder."""

    path: Path
    settings: TaskSettings
    provenance: dict[str, Any]
    rungs: RungPath
    samples: PathSamples
    ratios: dict[str, LogRatio]
    """log Z_last - log Z_first by all estimators: from the posterior to the end that is known."""
    halves: tuple[LogRatio, LogRatio]
    """The headline of the first half of the rounds, and of the second."""
    known: float
    """log of the integral at the end that is known, with J(w0) for a bridge."""
    log_volume: float
    integrand: Estimate
    """<f> at each rung, (K,)."""
    swap_rate: np.ndarray
    overlap: np.ndarray
    """Of the neighbours' histograms, (K-1,)."""
    barrier: Barrier
    round_trips: int
    verdict: Verdict
    disagreements: list[str]
    finished: bool

    @property
    def method(self) -> str:
        """Temperature or bridge."""
        return "temperature" if self.rungs.parameter == "temperature" else "bridge"

    @property
    def log_integrals(self) -> dict[str, LogRatio]:
        """log of the integral of exp(-E - prior energy), by estimator."""
        return {name: ratio._replace(value=self.known - ratio.value) for name, ratio in self.ratios.items()}

    @property
    def log_evidence(self) -> Estimate:
        """The headline."""
        headline = self.log_integrals[HEADLINE]
        return Estimate(np.asarray(headline.value - self.log_volume), np.asarray(headline.error))

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


def load(path: Path) -> EvidenceResults:
    """Read a run folder and work out its evidence."""
    folder = RunFolder.open(path)
    settings, provenance = folder.settings, folder.read_json(PROVENANCE)
    rows = folder.records.load("rounds")
    burn_in, done = settings.run.burn_in, len(next(iter(rows.values()), ()))
    if done <= burn_in:
        raise StoreError(f"{path} has no samples yet: {done} of {burn_in} rounds of burn-in so far")
    rungs, known, which = _path_of(path, settings, folder, provenance, rows)
    counting = {
        name: np.moveaxis(rows[name][burn_in:], 0, 1)[:, :, which] for name in (*rungs.terms, "replica", "mean_squares")
    }
    pairs = which[:-1]
    swaps, attempts = (
        rows[name][burn_in:, :, pairs].sum(axis=(0, 1)) for name in ("swap_probability", "swap_attempts")
    )
    samples = PathSamples(rungs.coefficients, np.stack([counting[name] for name in rungs.terms], axis=-1))
    ratios = evidence.log_ratios(samples)
    half = samples.phi.shape[1] // 2
    first, second = (
        evidence.log_ratio(evidence.ESTIMATORS[HEADLINE](PathSamples(rungs.coefficients, part)))
        for part in (samples.phi[:, :half], samples.phi[:, -half:])
    )
    flow = Flow(len(samples.phi), len(rows["replica"][0, 0]))
    for row in rows["replica"][burn_in:]:
        flow.update(row)
    round_trips = int(flow.round_trips.sum())
    with np.errstate(invalid="ignore"):
        swap_rate = swaps / attempts
    checkpoint, _ = folder.checkpoints.latest()
    return EvidenceResults(
        path=path,
        settings=settings,
        provenance=provenance,
        rungs=rungs,
        samples=samples,
        ratios=ratios,
        halves=(first, second),
        known=known,
        log_volume=float(provenance["model"]["log_prior_volume"]),
        integrand=average(samples.slope),
        swap_rate=swap_rate,
        overlap=histogram_overlap(samples.slope),
        barrier=measure_barrier(rungs, swap_rate, samples.phi.mean(axis=(0, 1))),
        round_trips=round_trips,
        verdict=_verdict(counting, rungs, settings, round_trips),
        disagreements=evidence.disagreements(ratios),
        finished=bool(checkpoint and checkpoint.meta["finished"]),
    )


def document(results: EvidenceResults) -> dict[str, Any]:
    """What `results.json` and `--json` say."""
    mean, error = results.log_evidence
    headline = results.log_integrals[HEADLINE]
    return {
        "task": "evidence",
        "method": results.method,
        "protocol": results.settings.protocol,
        "network": results.settings.network.name,
        "prior": results.settings.prior.model_dump(),
        "data": results.provenance["data"],
        "finished": results.finished,
        "rounds": results.samples.phi.shape[1],
        "copies": results.samples.phi.shape[0],
        "headline": HEADLINE,
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
        "round_trips": results.round_trips,
        "rungs": [
            {
                results.rungs.parameter: value,
                "beta": results.rungs.beta[k],
                "integrand": results.integrand.mean[k],
                "integrand_error": results.integrand.error[k],
                "swap_rate": results.swap_rate[k] if k < len(results.swap_rate) else None,
                "overlap": results.overlap[k] if k < len(results.overlap) else None,
                "rhat": results.verdict.rhat[k],
                "ess": results.verdict.ess[k],
                "reasons": results.verdict.reasons[k],
            }
            for k, value in enumerate(results.rungs.values)
        ],
    }


def write(results: EvidenceResults) -> list[Path]:
    """Write results.json into the run folder."""
    RunFolder(results.path).write_json(RESULTS, document(results))
    return [results.path / RESULTS]


class Comparison(NamedTuple):
    """Models side by side."""

    models: list[EvidenceResults]
    log_bayes_factors: list[Estimate]
    """Of each model against the first."""
    probabilities: np.ndarray
    """Posterior probabilities of the models, which the prior odds enter."""
    low: np.ndarray
    high: np.ndarray
    """Two errors down and up in the model's own log evidence."""


def compare(models: list[EvidenceResults], prior_odds: tuple[float, ...] = ()) -> Comparison:
    """Posterior probabilities of models of the same data (Sec. 4.2); refuses to compare different data."""
    first = models[0]
    for other in models[1:]:
        if other.provenance["data"]["train_sha256"] != first.provenance["data"]["train_sha256"]:
            raise ConfigError(
                f"{first.path} and {other.path} have different training data: evidences can be compared only for the "
                "same examples; give the same data settings to both"
            )
    odds = prior_odds or (1.0,) * len(models)
    if len(odds) != len(models) or not all(math.isfinite(o) and o > 0 for o in odds):
        raise ConfigError(
            f"prior odds must be {len(models)} positive numbers such as 1:1, got {':'.join(map(str, odds))}"
        )
    values, errors = (np.array(numbers) for numbers in zip(*(model.log_evidence for model in models), strict=True))
    log_odds = np.log(odds)

    def probabilities(log_evidences: np.ndarray) -> np.ndarray:
        weights = log_evidences + log_odds
        return np.exp(weights - logsumexp(weights))

    shifts = 2 * np.diag(errors)
    return Comparison(
        models,
        [Estimate(v - values[0], np.hypot(e, errors[0])) for v, e in zip(values, errors, strict=True)],
        probabilities(values),
        np.array([probabilities(values - shift)[i] for i, shift in enumerate(shifts)]),
        np.array([probabilities(values + shift)[i] for i, shift in enumerate(shifts)]),
    )


def compare_document(found: Comparison) -> dict[str, Any]:
    """What `compare --json` says."""
    return {
        "task": "compare",
        "data": found.models[0].provenance["data"],
        "models": [
            {
                "path": str(model.path),
                "network": model.settings.network.name,
                "method": model.method,
                "protocol": model.settings.protocol,
                "log_integral": model.log_integrals[HEADLINE].value,
                "log_prior_volume": model.log_volume,
                "log_evidence": model.log_evidence.mean,
                "log_evidence_error": model.log_evidence.error,
                "log_bayes_factor": factor.mean,
                "log_bayes_factor_error": factor.error if i else 0.0,
                "probability": found.probabilities[i],
                "probability_low": found.low[i],
                "probability_high": found.high[i],
                "trusted": model.trusted,
            }
            for i, (model, factor) in enumerate(zip(found.models, found.log_bayes_factors, strict=True))
        ],
    }


def _path_of(
    path: Path, settings: TaskSettings, folder: RunFolder, provenance: dict[str, Any], rows: dict[str, np.ndarray]
) -> tuple[RungPath, float, np.ndarray]:
    """The path sampled, the log integral at its known end, and which of the recorded rungs it has."""
    volume = float(provenance["model"]["log_prior_volume"])
    if isinstance(settings, EvidenceSettings) and settings.path.method == "bridge":
        quadratic = folder.weights.load("quadratic")
        lambdas = rows["lambdas"][-1]
        known = float(quadratic["log_integral"][0]) - float(quadratic["centre_energy"][0])
        return bridge_path(lambdas, 0.0, 0.0, 1.0), known, np.arange(len(lambdas))
    temperatures = rows["temperatures"][-1]
    which = np.flatnonzero(temperatures >= 1.0)
    if not (len(which) > 1 and temperatures[which[0]] == 1.0 and np.isinf(temperatures[-1])):
        raise StoreError(
            f"{path} has no evidence: its temperatures, {temperatures[0]:.3g} to {temperatures[-1]:.3g}, must have 1 "
            "and inf among them; give a sweep ladder.temperatures with both, or run tempernet evidence"
        )
    return temperature_path(temperatures[which]), volume, which


def _verdict(counting: dict[str, np.ndarray], rungs: RungPath, settings: TaskSettings, round_trips: int) -> Verdict:
    observables = {f"the {'mean ' if name != 'energy' else ''}{name}": counting[name] for name in rungs.terms}
    for layer in range(counting["mean_squares"].shape[-1]):
        observables[f"the mean square weight of layer {layer + 1}"] = counting["mean_squares"][..., layer]
    return judge(
        observables,
        round_trips,
        exchanging=settings.dynamics.exchange != "none",
        started_apart=settings.start.weights == "apart",
    )
