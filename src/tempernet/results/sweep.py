"""Results of a sweep: from the records in its folder to named arrays, a summary, and files to
export.

`load_series` reads what the rounds recorded into an xarray Dataset with the dimensions copy, round
and temperature; `summarise` adds what they say. Reading changes nothing in the folder and works
while a run goes on.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from tempernet import config
from tempernet.config import Settings
from tempernet.diagnostics.flow import Flow, bottleneck, freedom, sides_kept
from tempernet.diagnostics.memory import remembered, times_forgotten
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.diagnostics.thermo import (
    BestTemperature,
    best_temperature,
    bimodality,
    heat_capacity,
    histogram_overlap,
)
from tempernet.diagnostics.verdict import Verdict, judge
from tempernet.errors import StoreError
from tempernet.model.scores import ensemble_score
from tempernet.paths.ladders import Barrier, measure_barrier
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder, files
from tempernet.store.folder import PROVENANCE, RESULTS_NC

PER_RUNG = ("energy", "acceptance", "accepted", "wall_rejections", "nonfinite", "replica")
PER_PAIR = ("swap_attempts", "swap_accepts", "swap_probability")
PER_SCORE = ("validation_loss", "validation_accuracy", "test_loss", "test_accuracy")


@dataclass(frozen=True, eq=False)
class Results:
    """A run as read from its folder."""

    path: Path
    settings: Settings
    provenance: dict[str, Any]
    series: xarray.Dataset
    """Of the rounds that count."""
    burn_in: xarray.Dataset
    """Of the rounds before, where `rung_temperature` may change with the round."""
    summary: xarray.Dataset
    """One value a temperature."""
    verdict: Verdict
    best: BestTemperature | None
    barrier: Barrier
    round_trips: int
    fraction_from_hot: np.ndarray
    finished: bool

    @property
    def temperatures(self) -> np.ndarray:
        """(K,)."""
        return self.summary.temperature.values

    @property
    def title(self) -> str:
        """Network, data and protocol in a few words."""
        data = self.provenance["data"]["name"]
        number = int(self.provenance["data"]["n_train"])
        return f"{self.settings.network.name} on {number} images of {data}, {self.settings.protocol} protocol"


def load(path: Path) -> Results:
    """Read a run folder and work out what it says."""
    folder = RunFolder.open(path, "sweep")
    settings, provenance = folder.settings, folder.read_json(PROVENANCE)
    records = folder.records
    rows = records.load("rounds")
    burn_in, done = settings.run.burn_in, len(next(iter(rows.values()), ()))
    if done <= burn_in:
        raise StoreError(f"{path} has no samples yet: {done} of {burn_in} rounds of burn-in so far")
    before = {name: array[:burn_in] for name, array in rows.items()}
    counting = {name: array[burn_in:] for name, array in rows.items()}
    scores, full = (_after(records.load(name), burn_in) for name in ("scores", "full"))
    series = _dataset(counting, scores, full)
    checkpoint, _ = folder.checkpoints.latest()
    for outdated in folder.outdated(checkpoint) if checkpoint else []:
        raise StoreError(f"{outdated}; put the last one back")
    finished = bool(checkpoint and checkpoint.meta["finished"])
    replica = counting["replica"]
    flow = Flow.of(replica)
    kept = _after(folder.weights.load("weights"), burn_in)
    verdict = _verdict(series, settings, flow, _forgotten(kept, series))
    summary = summarise(series, provenance, verdict)
    if checkpoint and checkpoint.meta["scores"]:
        summary = summary.merge(
            _ensemble(checkpoint.arrays["ensemble"] / checkpoint.meta["scores"], provenance, series)
        )
    best = None
    if "validation_loss" in series and series.sizes["score"]:
        best = best_temperature(series.validation_loss.values, series.temperature.values)
    return Results(
        path=path,
        settings=settings,
        provenance=provenance,
        series=series,
        burn_in=_burn_in(before),
        summary=summary,
        verdict=verdict,
        best=best,
        barrier=measure_barrier(
            temperature_path(series.temperature.values),
            summary.swap_rate.values[:-1],
            summary.energy.values[:, None],
        ),
        round_trips=int(flow.round_trips.sum()),
        fraction_from_hot=flow.fraction_from_hot,
        finished=finished,
    )


def summarise(
    series: xarray.Dataset, provenance: dict[str, Any], verdict: Verdict
) -> xarray.Dataset:
    """Averages with errors for every temperature."""
    temperatures = series.temperature.values
    n_train = int(provenance["data"]["n_train"])
    estimates: dict[str, Estimate] = {
        "energy": average(series.energy.values),
        "train_loss": average(series.energy.values / n_train),
        "heat_capacity": heat_capacity(series.energy.values, temperatures),
    }
    for name in PER_SCORE:
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
        "side_kept": ("temperature", np.append(sides_kept(_by_round(series)), np.nan)),
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


def document(results: Results) -> dict[str, Any]:
    """What `results.json` and `--json` say."""
    summary = results.summary
    best = results.best
    names = [str(name) for name in summary.data_vars if summary[name].dims == ("temperature",)]
    return {
        "protocol": results.settings.protocol,
        "network": results.settings.network.name,
        "data": results.provenance["data"],
        "finished": results.finished,
        "rounds": results.series.sizes["round"],
        "copies": results.series.sizes["copy"],
        "verdict": {
            "equilibrated": results.verdict.good,
            "headline": results.verdict.headline,
            "advice": results.verdict.advice,
        },
        "best_temperature": None if best is None else best._asdict(),
        "test_loss": {
            **({} if best is None else {"best": at_rung(results, best.rung)}),
            "posterior": at_rung(results, nearest(results.temperatures, 1.0)),
            "lowest": at_rung(results, 0),
        },
        "uninformed_loss": results.provenance["uninformed_loss"],
        "barrier": {"total": results.barrier.total, "rungs_wanted": results.barrier.rungs_wanted},
        "round_trips": results.round_trips,
        "transition": transition(results),
        "temperatures": [
            {
                "temperature": temperature,
                **{name: summary[name].values[k] for name in names},
                "mean_square": summary.mean_square.values[k],
                "reasons": results.verdict.reasons[k],
            }
            for k, temperature in enumerate(results.temperatures)
        ],
    }


def transition(results: Results) -> dict[str, Any]:
    """Where the heat capacity peaks, and whether the energies there have one peak or two (Sec.
    3.4's question).
    """
    summary = results.summary
    peak = int(np.argmax(summary.heat_capacity.values))
    overlap = summary.overlap.values[:-1]
    return {
        "temperature": summary.temperature.values[peak],
        "heat_capacity": summary.heat_capacity.values[peak],
        "heat_capacity_error": summary.heat_capacity_error.values[peak],
        "bimodality": summary.bimodality.values[peak],
        "least_overlap": float(np.min(overlap)) if len(overlap) else None,
    }


def nearest(temperatures: np.ndarray, wanted: float) -> int:
    """The rung nearest to a temperature, in log T."""
    with np.errstate(divide="ignore"):
        return int(np.abs(np.log(temperatures) - np.log(wanted)).argmin())


def write_netcdf(results: Results) -> list[Path]:
    """Write results.nc into the run folder."""
    path = results.path / RESULTS_NC
    files.write_atomic(path, netcdf(results))
    return [path]


def netcdf(results: Results) -> bytes:
    """The series and the summary as one NetCDF file, with the burn-in in a group of its own."""
    tree = xarray.DataTree.from_dict(
        {"/": results.series.merge(_prefixed(results.summary)), "/burn_in": results.burn_in}
    )
    tree.attrs.update(
        protocol=results.settings.protocol,
        title=results.title,
        verdict=results.verdict.headline,
        config=config.to_toml(results.settings),
    )
    buffer = tree.to_netcdf(engine="h5netcdf")
    return bytes(buffer)


def csv_table(results: Results) -> str:
    """The summary, a line a temperature."""
    summary = results.summary
    names = [str(name) for name in summary.data_vars if summary[name].dims == ("temperature",)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["temperature", *names, "reasons", "protocol"])
    for k, temperature in enumerate(results.temperatures):
        values = [summary[name].values[k] for name in names]
        reasons = "; ".join(results.verdict.reasons[k])
        writer.writerow([repr(float(temperature)), *values, reasons, results.settings.protocol])
    return text.getvalue()


def _prefixed(summary: xarray.Dataset) -> xarray.Dataset:
    """Names that do not clash with those of the series."""
    return summary.rename({name: f"mean_{name}" for name in summary.data_vars})


def at_rung(results: Results, rung: int) -> dict[str, Any]:
    """Held-out numbers at a rung: on the whole test set where it was scored, else on the part."""
    summary = results.summary
    found: dict[str, Any] = {"temperature": summary.temperature.values[rung]}
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


def _after(rows: dict[str, np.ndarray], burn_in: int) -> dict[str, np.ndarray]:
    """The rows of rounds that count, their rounds counted from the end of burn-in; empty if there
    are none.
    """
    if not rows or not (rows["round"] > burn_in).any():
        return {}
    counting = {name: array[rows["round"] > burn_in] for name, array in rows.items()}
    return {**counting, "round": counting["round"] - burn_in}


def _on_all(series: xarray.Dataset, name: str, on_part: Estimate) -> Estimate:
    """Mean over the samples on the whole test set, which only a few of them were scored on.

    What the part of the test set gives for all samples, plus how far the whole is from the part for
    those few: the difference hardly varies from sample to sample.
    """
    difference = average(series[f"full_test_{name}"].values - series[f"part_test_{name}"].values)
    return Estimate(on_part.mean + difference.mean, np.hypot(on_part.error, difference.error))


def _dataset(
    rows: dict[str, np.ndarray], scores: dict[str, np.ndarray], full: dict[str, np.ndarray]
) -> xarray.Dataset:
    """Rows (round, copy, ...) as named arrays (copy, round, temperature, ...)."""

    def by_copy(array: np.ndarray) -> np.ndarray:
        return np.moveaxis(array, 0, 1)

    variables: dict[str, Any] = {
        name: (("copy", "round", "temperature"), by_copy(rows[name])) for name in PER_RUNG
    }
    variables |= {name: (("copy", "round", "pair"), by_copy(rows[name])) for name in PER_PAIR}
    variables["mean_square"] = (
        ("copy", "round", "temperature", "layer"),
        by_copy(rows["mean_squares"]),
    )
    variables["time_step"] = (("round", "temperature"), rows["time_steps"])
    variables["num_steps"] = (("round", "temperature"), rows["num_steps"])
    coords: dict[str, Any] = {
        "temperature": rows["temperatures"][-1],
        "round": np.arange(1, len(rows["energy"]) + 1),
        "copy": np.arange(rows["energy"].shape[1]),
    }
    if scores:
        variables |= {
            n: (("copy", "score", "temperature"), by_copy(scores[n]))
            for n in PER_SCORE
            if n in scores
        }
        coords["score"] = scores["round"]
    if full:
        for name in ("loss", "accuracy"):
            for stored, called in (
                (f"test_{name}", f"full_test_{name}"),
                (f"part_{name}", f"part_test_{name}"),
            ):
                variables[called] = (("copy", "kept", "temperature"), by_copy(full[stored]))
        coords["kept"] = full["round"]
    return xarray.Dataset(variables, coords=coords)


def _burn_in(rows: dict[str, np.ndarray]) -> xarray.Dataset:
    names = ("energy", "acceptance", "replica")
    variables: dict[str, Any] = {
        name: (("copy", "burn_in_round", "rung"), np.moveaxis(rows[name], 0, 1)) for name in names
    }
    variables["rung_temperature"] = (("burn_in_round", "rung"), rows["temperatures"])
    variables["time_step"] = (("burn_in_round", "rung"), rows["time_steps"])
    variables["num_steps"] = (("burn_in_round", "rung"), rows["num_steps"])
    return xarray.Dataset(variables)


def _forgotten(kept: dict[str, np.ndarray], series: xarray.Dataset) -> np.ndarray:
    """How often replicas have forgotten what they remember longest, weights or predictions: (K,),
    NaN if unknown.
    """
    temperatures = series.temperature.values
    found = np.full(len(temperatures), np.nan)
    if "replica" not in kept or len(kept["round"]) < 2:
        return found
    leaves = [kept[f"leaf{i}"] for i in range(sum(name.startswith("leaf") for name in kept))]
    layers = np.array_split(np.arange(len(leaves)), series.sizes["layer"])
    followed = [[leaves[i] for i in layer] for layer in layers] + [[kept["predictions"]]]
    share = np.max([_remembered(parts, kept["replica"]) for parts in followed], axis=0)
    lag = float(np.diff(kept["round"]).mean())
    found[np.isin(temperatures, kept["temperatures"][-1])] = times_forgotten(
        share, lag, series.sizes["round"]
    )
    return found


def _remembered(leaves: list[np.ndarray], replica: np.ndarray) -> np.ndarray:
    """Of all weights of a layer, or of the predictions."""
    return remembered(
        np.concatenate([leaf.reshape(*replica.shape, -1) for leaf in leaves], axis=-1), replica
    )


def _by_round(series: xarray.Dataset) -> np.ndarray:
    """Who sat where: (rounds, copies, K)."""
    return np.asarray(series.replica.transpose("round", "copy", "temperature").values)


def _verdict(
    series: xarray.Dataset, settings: Settings, flow: Flow, forgotten: np.ndarray
) -> Verdict:
    observables = {"the energy": series.energy.values}
    for layer in range(series.sizes["layer"]):
        observables[f"the mean square weight of layer {layer + 1}"] = series.mean_square.values[
            ..., layer
        ]
    for name in ("validation_loss", "test_loss"):
        if name in series:
            observables[f"the {name.replace('_', ' ')}"] = series[name].values
            break
    replica, temperatures = _by_round(series), series.temperature.values

    def between(low: int, high: int) -> str:
        return f"T = {temperatures[low]:.3g} to {temperatures[high]:.3g}"

    narrow = bottleneck(flow.fraction_from_hot)
    kept = sides_kept(replica)
    most = int(np.argmax(np.nan_to_num(kept))) if len(kept) else 0
    return judge(
        observables,
        int(flow.round_trips.sum()),
        freedom(replica),
        between(*narrow) if narrow else "",
        forgotten=forgotten,
        side_kept=float(kept[most]) if len(kept) else np.nan,
        side_of=between(most, most + 1) if len(kept) else "",
        exchanging=settings.dynamics.exchange != "none",
        started_apart=settings.start.weights in ("apart", "annealed"),
        both_sides=settings.start.weights == "annealed",
    )


def _ensemble(
    mean: np.ndarray, provenance: dict[str, Any], series: xarray.Dataset
) -> xarray.Dataset:
    """Scores of the average prediction of all copies, with the spread between copies as its error."""
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
