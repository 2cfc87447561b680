"""Results of a cooling: the curve, where it stopped, and what it went back to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray

from tempernet.annealing.stopping import Course, follow, least
from tempernet.config import AnnealSettings
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import StoreError
from tempernet.optimise.pool import spread
from tempernet.results.run import Brief, columns, csv_lines, name_of, netcdf_file, open_run, subject
from tempernet.store.files import JsonObject
from tempernet.tasks.problem import make_schedule


@dataclass(frozen=True, eq=False, repr=False)
class AnnealResults(Brief):
    """A cooling as read from its folder, with the temperatures that are over."""

    path: Path | None
    settings: AnnealSettings
    provenance: JsonObject
    temperatures: np.ndarray
    """The temperatures that are over, decreasing, (temperatures,); the next five have its shape."""
    time_steps: np.ndarray
    acceptance: np.ndarray
    train_loss: Estimate
    validation_loss: Estimate
    validation_accuracy: Estimate
    losses: np.ndarray
    """Validation losses: (temperatures, replicas, draws)."""
    course: Course
    test: dict[str, np.ndarray]
    """What `tasks.anneal` found on the test set once the cooling had ended; empty before."""

    @property
    def best(self) -> int:
        """The temperature of least average validation loss."""
        if self.course.best is None:
            raise StoreError(f"{self.name} has no validation loss that is a number")
        return self.course.best

    @property
    def chosen(self) -> tuple[int, int, int]:
        """Temperature, replica and draw of the single network of least validation loss."""
        return least(self.losses)

    @property
    def finished(self) -> bool:
        """Whether the cooling has ended and been scored."""
        return bool(self.test)

    @property
    def name(self) -> str:
        """Its folder's name, or "this run" for one that was made in Python."""
        return name_of(self.path)

    @property
    def title(self) -> str:
        """Network, data, replicas and protocol in a few words."""
        replicas = f"{self.losses.shape[1]} replicas cooled from T = {self.temperatures[0]:.4g}"
        protocol = f"{self.settings.protocol} protocol"
        return f"{subject(self.settings, self.provenance)}, {replicas}, {protocol}"

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """What is known of each temperature, with errors: (temperatures,) each."""
        estimates = {
            "train_loss": self.train_loss,
            "validation_loss": self.validation_loss,
            "validation_accuracy": self.validation_accuracy,
        }
        known = {"time_step": self.time_steps, "acceptance": self.acceptance}
        return known | columns(estimates)

    @property
    def headline(self) -> str:
        """Where it stopped and what it went back to, in a line."""
        best = f"least average validation loss at T = {self.temperatures[self.best]:.3g}"
        last = self.temperatures[-1]
        if self.course.stopped:
            risen = f"after it had risen for {self.course.risen} temperatures"
            return f"{best}; stopped at T = {last:.3g}, {risen}"
        if not self.finished:
            return f"{best} so far, cooled to T = {last:.3g}"
        return f"{best}; cooled to the end, T = {last:.3g}, and no rise beyond the noise"


def load(path: Path) -> AnnealResults:
    """Read the folder of a cooling, finished or not."""
    folder, settings, provenance = open_run(path, AnnealSettings)
    schedule = make_schedule(settings)
    records = folder.records
    rows, scores = records.load("rounds"), records.load("scores")
    # The last score of a temperature may come before its last round.
    done = min(
        len(scores.get("round", ())) // schedule.draws,
        len(rows.get("energy", ())) // schedule.length,
    )
    if done == 0:
        raise StoreError(
            f"{path} has no temperature that is over yet: "
            f"{len(rows.get('energy', ()))} rounds so far"
        )
    energy, acceptance, steps = (
        rows[name][: done * schedule.length].reshape(done, schedule.length, -1)[
            :, schedule.burn_in :
        ]
        for name in ("energy", "acceptance", "time_step")
    )
    losses, accuracies = (
        scores[name][: done * schedule.draws].reshape(done, schedule.draws, -1).swapaxes(1, 2)
        for name in ("validation_loss", "validation_accuracy")
    )
    return AnnealResults(
        path=path,
        settings=settings,
        provenance=provenance,
        temperatures=schedule.temperatures[:done],
        time_steps=steps[:, -1, 0],
        acceptance=acceptance.mean(axis=(1, 2)),
        train_loss=_averages(energy.swapaxes(1, 2) / int(provenance["data"]["n_train"])),
        validation_loss=_averages(losses),
        validation_accuracy=_averages(accuracies),
        losses=losses.astype(np.float64),
        course=follow(losses, schedule.patience),
        test={name: array[0] for name, array in records.load("test").items()},
    )


def csv_table(found: AnnealResults) -> bytes:
    """The curve, a line a temperature."""
    rows = []
    for k, temperature in enumerate(found.temperatures):
        numbers = {name: values[k] for name, values in found.curves.items()}
        chosen = {"best": k == found.best, "protocol": found.settings.protocol}
        rows.append({"temperature": float(temperature), **numbers, **chosen})
    return csv_lines(rows)


def netcdf(found: AnnealResults) -> bytes:
    """The curve, and the validation loss of every replica at every draw."""
    curves = {name: ("temperature", values) for name, values in found.curves.items()}
    losses = (("temperature", "replica", "draw"), found.losses)
    temperatures = {"temperature": found.temperatures}
    dataset = xarray.Dataset({**curves, "validation_losses": losses}, temperatures)
    found_so_far = {"headline": found.headline, "best_temperature": found.temperatures[found.best]}
    return netcdf_file(dataset.assign_attrs(found_so_far), found)


def held_out_scores(found: AnnealResults) -> dict[str, dict[str, float]]:
    """On the test set: the chosen network, the ensemble and its members, optimised networks."""
    if not found.finished:
        return {}
    test = found.test
    single = {name: average(test[f"member_{name}"]) for name in ("loss", "accuracy")}
    optimised = {name: spread(test[f"optimised_{name}"]) for name in ("loss", "accuracy")}
    return {
        "chosen": {name: float(test[f"chosen_{name}"]) for name in ("loss", "accuracy")},
        "ensemble": {
            "members": test["member_loss"].size,
            **{
                name: float(test[f"ensemble_{name}"])
                for name in ("loss", "accuracy", "calibration")
            },
        },
        "single": {
            **{name: float(value.mean) for name, value in single.items()},
            **{f"{name}_error": float(value.error) for name, value in single.items()},
        },
        "optimised": {
            "networks": len(test["optimised_loss"]),
            "reached": int(test["optimised_reached"].sum()),
            **{name: value.mean for name, value in optimised.items()},
            **{f"{name}_error": value.error for name, value in optimised.items()},
            **{f"{name}_std": value.std for name, value in optimised.items()},
        },
    }


def _averages(series: np.ndarray) -> Estimate:
    """Means and errors (temperatures,) of (temperatures, replicas, draws)."""
    return average(np.moveaxis(series, 0, -1))
