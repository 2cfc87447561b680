"""What the samples of a sweep say at every temperature: averages with errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from tempernet.diagnostics.flow import sides_kept
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.diagnostics.thermo import bimodality, heat_capacity, histogram_overlap
from tempernet.diagnostics.verdict import Verdict
from tempernet.model.scores import ensemble_score
from tempernet.store.files import JsonObject

SCORED = ("validation_loss", "validation_accuracy", "test_loss", "test_accuracy")


def summarise(series: xarray.Dataset, provenance: JsonObject, verdict: Verdict) -> xarray.Dataset:
    """Averages and standard errors at every temperature.

    Args:
        series: observables over the rounds that count (see `series.series_of`).
        provenance: of the run: its number of training examples and of trajectories a round.
        verdict: on these rounds.

    Returns:
        Variables over `temperature`, those of swaps for a rung and the next hotter one.
    """
    temperatures = series.temperature.values
    # An energy of its own has no examples.
    n_train = max(1, int(provenance["data"]["n_train"]))
    estimates: dict[str, Estimate] = {
        "energy": average(series.energy.values),
        "train_loss": average(series.energy.values / n_train),
        "heat_capacity": heat_capacity(series.energy.values, temperatures),
    }
    for name in SCORED:
        if name in series:
            estimates[name] = average(series[name].values)
    for name in ("loss", "accuracy"):
        if f"full_test_{name}" in series and f"test_{name}" in series:
            estimates[f"full_test_{name}"] = _on_all(series, name, estimates[f"test_{name}"])
    variables: dict[str, Any] = {}
    for name, estimate in estimates.items():
        variables[name] = ("temperature", estimate.mean)
        variables[f"{name}_error"] = ("temperature", estimate.error)
    attempts = series.swap_attempts.values.sum(axis=(0, 1))
    with np.errstate(invalid="ignore"):
        swap_rate = series.swap_probability.values.sum(axis=(0, 1)) / attempts
    overlap = histogram_overlap(series.energy.values)
    trajectories = int(provenance["trajectories"]) * series.sizes["round"] * series.sizes["copy"]
    variables |= {
        "time_step": ("temperature", series.time_step.values[-1]),
        "num_steps": ("temperature", series.num_steps.values[-1]),
        "acceptance": ("temperature", series.acceptance.values.mean(axis=(0, 1))),
        "wall_rejection_rate": (
            "temperature",
            series.wall_rejections.values.sum(axis=(0, 1)) / trajectories,
        ),
        "nonfinite": ("temperature", series.nonfinite.values.sum(axis=(0, 1))),
        # Of a rung and the next hotter one; the hottest has none.
        "swap_rate": ("temperature", np.append(swap_rate, np.nan)),
        "overlap": ("temperature", np.append(overlap, np.nan)),
        "side_kept": ("temperature", np.append(sides_kept(by_round(series)), np.nan)),
        "bimodality": (
            "temperature",
            [bimodality(e) for e in series.energy.values.reshape(-1, len(temperatures)).T],
        ),
        "rhat": ("temperature", verdict.rhat),
        "ess": ("temperature", verdict.ess),
        "drift": ("temperature", verdict.drift),
        "forgotten": ("temperature", verdict.forgotten),
        "equilibrated": ("temperature", verdict.equilibrated),
    }
    squares = average(series.mean_square.values)
    variables["mean_square"] = (("temperature", "layer"), squares.mean)
    variables["mean_square_error"] = (("temperature", "layer"), squares.error)
    return xarray.Dataset(variables, coords={"temperature": temperatures})


def ensemble_scores(
    mean: np.ndarray, provenance: JsonObject, series: xarray.Dataset
) -> xarray.Dataset:
    """Scores of the mean prediction of all copies; the error is the spread between copies.

    Args:
        mean: mean softmax outputs, (copies, K, examples, classes).
        provenance: of the run: the labels of the examples.
        series: whose temperatures they are at.
    """
    labels = np.asarray(provenance["scored_labels"])
    together = ensemble_score(mean.astype(np.float64).mean(axis=0), labels)
    apart = ensemble_score(mean.astype(np.float64), labels)
    copies = len(mean)
    variables: dict[str, Any] = {}
    for name, value, values in zip(together._fields, together, apart, strict=True):
        spread = (
            values.std(axis=0, ddof=1) / np.sqrt(copies)
            if copies > 1
            else np.full_like(value, np.nan)
        )
        variables[f"ensemble_{name}"] = ("temperature", value)
        variables[f"ensemble_{name}_error"] = ("temperature", spread)
    return xarray.Dataset(variables, coords={"temperature": series.temperature.values})


def by_round(series: xarray.Dataset) -> np.ndarray:
    """The replica at each rung: (rounds, copies, K)."""
    return np.asarray(series.replica.transpose("round", "copy", "temperature").values)


def _on_all(series: xarray.Dataset, name: str, on_part: Estimate) -> Estimate:
    """Mean over the samples on the whole test set, which only a few of them were scored on.

    What the part of the test set gives for all samples, plus how far the whole is from the part for
    those few: the difference hardly varies from sample to sample.
    """
    difference = average(series[f"full_test_{name}"].values - series[f"part_test_{name}"].values)
    return Estimate(on_part.mean + difference.mean, np.hypot(on_part.error, difference.error))


def nearest(temperatures: np.ndarray, wanted: float) -> int:
    """The rung nearest to a temperature, in log T."""
    with np.errstate(divide="ignore"):
        return int(np.abs(np.log(temperatures) - np.log(wanted)).argmin())
