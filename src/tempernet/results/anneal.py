"""Results of a cooling: from the records in its folder to the curve, where it stopped and what it
went back to.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tempernet.annealing.schedule import Schedule
from tempernet.annealing.stopping import Course, follow, least
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import StoreError
from tempernet.optimise.pool import spread
from tempernet.report.formatting import with_error
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE


@dataclass(frozen=True, eq=False)
class Annealed:
    """A cooling as read from its folder. Temperatures fall; only those that are over are here."""

    path: Path
    settings: Any
    provenance: dict[str, Any]
    temperatures: np.ndarray
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
            raise StoreError(f"{self.path} has no validation loss that is a number")
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
    def title(self) -> str:
        """Network, data and replicas in a few words."""
        data = self.provenance["data"]
        name = f"{self.settings.network.name} on {data['n_train']} images of {data['name']}"
        return f"{name}, {self.losses.shape[1]} replicas cooled from T = {self.temperatures[0]:.4g}"

    @property
    def headline(self) -> str:
        """Where it stopped and what it went back to, in a line."""
        best = f"least average validation loss at T = {self.temperatures[self.best]:.3g}"
        last = self.temperatures[-1]
        if self.course.stopped:
            return f"{best}; stopped at T = {last:.3g}, after it had risen for {self.course.risen} temperatures"
        if not self.finished:
            return f"{best} so far, cooled to T = {last:.3g}"
        return f"{best}; cooled to the end, T = {last:.3g}, and no rise beyond the noise"


def load(path: Path) -> Annealed:
    """Read the folder of a cooling, finished or not."""
    folder = RunFolder.open(path, "anneal")
    settings, provenance = folder.settings, folder.read_json(PROVENANCE)
    schedule = Schedule(**schedule_of(settings))
    records = folder.records
    rows, scores = records.load("rounds"), records.load("scores")
    # The last score of a temperature may come before its last round.
    done = min(
        len(scores.get("round", ())) // schedule.draws,
        len(rows.get("energy", ())) // schedule.length,
    )
    if done == 0:
        raise StoreError(
            f"{path} has no temperature that is over yet: {len(rows.get('energy', ()))} rounds so far"
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
    return Annealed(
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


def schedule_of(settings: Any) -> dict[str, Any]:
    """The part of an anneal's settings that is its schedule."""
    return {name: getattr(settings.cooling, name) for name in Schedule.__dataclass_fields__}


def document(found: Annealed) -> dict[str, Any]:
    """What `results.json` and `--json` say."""
    step, replica, draw = found.chosen
    per_temperature = {
        "train_loss": found.train_loss,
        "validation_loss": found.validation_loss,
        "validation_accuracy": found.validation_accuracy,
    }
    return {
        "task": "anneal",
        "network": found.settings.network.name,
        "data": found.provenance["data"],
        "finished": found.finished,
        "headline": found.headline,
        "stopped": found.course.stopped,
        "last_temperature": found.temperatures[-1],
        "best_temperature": found.temperatures[found.best],
        "chosen": {
            "temperature": found.temperatures[step],
            "replica": replica,
            "draw": draw,
            "validation_loss": found.losses[step, replica, draw],
        },
        "test": held_out_scores(found),
        "uninformed_loss": found.provenance["uninformed_loss"],
        "temperatures": [
            {
                "temperature": temperature,
                "time_step": found.time_steps[k],
                "acceptance": found.acceptance[k],
                **{name: value.mean[k] for name, value in per_temperature.items()},
                **{f"{name}_error": value.error[k] for name, value in per_temperature.items()},
            }
            for k, temperature in enumerate(found.temperatures)
        ],
    }


def held_out_scores(found: Annealed) -> dict[str, Any]:
    """On the test set: the chosen network, the ensemble at the best temperature and its members,
    optimised networks.
    """
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


def statements(found: Annealed) -> list[str]:
    """What the cooling says: a line a temperature, where it stopped, and the scores on the test
    set.
    """
    lines = [
        found.title,
        f"{'T':>8s}  {'train loss':>12s}  {'validation':>12s}  {'accuracy':>12s}  {'dt':>8s}  accept",
    ]
    for k, temperature in enumerate(found.temperatures):
        pairs = (found.train_loss, found.validation_loss, found.validation_accuracy)
        numbers = "  ".join(
            f"{with_error(float(p.mean[k]), float(p.error[k])):>12s}" for p in pairs
        )
        mark = "  <- went back to" if k == found.best else ""
        lines.append(
            f"{temperature:8.4g}  {numbers}  {found.time_steps[k]:8.2g}  {found.acceptance[k]:6.2f}{mark}"
        )
    lines.append(found.headline)
    scores = held_out_scores(found)
    if not scores:
        return [*lines, "not finished: nothing has been scored on the test set"]
    step, replica, _ = found.chosen
    chosen, ensemble, single, optimised = (
        scores[name] for name in ("chosen", "ensemble", "single", "optimised")
    )
    at_best = f"at T = {found.temperatures[found.best]:.3g}"
    return [
        *lines,
        f"on {found.provenance['data']['n_test']} test examples:",
        f"  chosen network (replica {replica} at T = {found.temperatures[step]:.3g}): "
        f"loss {chosen['loss']:.4g}, accuracy {chosen['accuracy']:.4f}",
        f"  ensemble of {ensemble['members']} {at_best}: loss {ensemble['loss']:.4g}, "
        f"accuracy {ensemble['accuracy']:.4f}, calibration error {ensemble['calibration']:.3f}",
        f"  its members alone: {_pair(single)}",
        f"  {optimised['networks']} optimised networks, {optimised['reached']} of them with E = 0: {_pair(optimised)}",
        f"  uninformed classifier: loss {found.provenance['uninformed_loss']:.4g}",
    ]


def _pair(scores: dict[str, float]) -> str:
    loss, accuracy = (
        with_error(scores[name], scores[f"{name}_error"]) for name in ("loss", "accuracy")
    )
    return f"loss {loss}, accuracy {accuracy}"


def _averages(series: np.ndarray) -> Estimate:
    """Means and errors (temperatures,) of (temperatures, replicas, draws)."""
    return average(np.moveaxis(series, 0, -1))
