"""What an annealing run gave: the curve of the losses, and the networks it went back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tempernet.annealing.annealer import Annealer
from tempernet.annealing.position import Position, stacked
from tempernet.annealing.stopping import Course, least
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import NumericsError
from tempernet.model.networks import Weights
from tempernet.tempering.rounds import Record


@dataclass(frozen=True, eq=False, repr=False)
class AnnealingResult:
    """What `anneal` gave. Temperatures fall; those that were not reached are left out."""

    temperatures: np.ndarray
    """(temperatures,), falling."""
    energy: np.ndarray
    """E after each round that counts: (temperatures, replicas, rounds)."""
    acceptance: np.ndarray
    """Mean over replicas and the rounds that count: (temperatures,)."""
    losses: np.ndarray
    """Validation losses: (temperatures, replicas, draws)."""
    course: Course
    """Which temperature was best, and whether the stopping rule ended the run."""
    weights: Weights
    """The network of least validation loss."""
    weights_loss: float
    """Its validation loss: the least of many, so too good to be true of other data."""
    ensemble: Weights
    """All networks scored at the best temperature: leading axis draws x replicas."""

    @property
    def best_temperature(self) -> float:
        """The temperature of least average validation loss."""
        return float(self.temperatures[_known_best(self.course)])

    @property
    def validation_loss(self) -> Estimate:
        """Mean and error of the validation loss, each (temperatures,)."""
        return average(np.moveaxis(self.losses, 0, -1))

    @property
    def chosen(self) -> tuple[int, int, int]:
        """Temperature, replica and draw of `weights`."""
        return least(self.losses)

    def __repr__(self) -> str:
        """The validation loss of each temperature, and the best one."""
        mean, error = self.validation_loss
        rows = zip(self.temperatures, mean, error, strict=True)
        lines = [f"{t:10.4g}  {m:.4g} +- {e:.2g}" for t, m, e in rows]
        ended = "stopped" if self.course.stopped else "cooled to the end"
        best = f"lowest average validation loss at T = {self.best_temperature:.4g}; {ended}"
        return "\n".join(["         T  validation loss", *lines, best])


def collect(annealer: Annealer, position: Position, records: list[Record]) -> AnnealingResult:
    """The result of a run that has ended, with the records of all its rounds."""
    schedule, done = annealer.schedule, len(position.losses)
    _known_best(position.course)

    def counting(values: list[np.ndarray]) -> np.ndarray:
        """(temperatures, replicas, rounds that count)."""
        every = np.stack(values, axis=-1)
        shaped = every.reshape(annealer.engine.copies, done, schedule.length)
        return np.moveaxis(shaped, 1, 0)[..., schedule.burn_in :]

    energy = counting([np.asarray(record.phi)[:, 0, 0] for record in records])
    acceptance = counting([np.asarray(record.info.acceptance)[:, 0] for record in records])
    return AnnealingResult(
        temperatures=schedule.temperatures[:done],
        energy=energy,
        acceptance=acceptance.mean(axis=(1, 2)),
        losses=position.losses,
        course=position.course,
        weights=position.chosen,
        weights_loss=position.chosen_loss,
        ensemble=stacked(position.ensemble),
    )


def _known_best(course: Course) -> int:
    if course.best is None:
        raise NumericsError(
            "no validation loss was a number at any temperature: "
            "check the validation data and the network's outputs"
        )
    return course.best
