"""The quadratic of a bridge in a run folder: its fit, which can be resumed, and its integral."""

from __future__ import annotations

import time

import jax

from tempernet.config import EvidenceSettings
from tempernet.evidence.fit import FitHost, QuadraticFit
from tempernet.evidence.quadratic import Quadratic
from tempernet.model.networks import Weights
from tempernet.paths.bridge import Centre
from tempernet.store.folder import QUADRATIC
from tempernet.tasks.base import Task
from tempernet.tasks.problem import Problem, make_minimiser, make_tuning


class InFitFolder(FitHost):
    """The host of a fit in the folder `fit` of a task."""

    def __init__(self, task: Task[EvidenceSettings]) -> None:
        super().__init__(task)
        self.task, self.checkpoints = task, task.folder.fit
        self._saved = time.monotonic()

    def checkpoint(self) -> None:
        """Write a checkpoint of the fit."""
        self.checkpoints.save(self.fit.arrays(), self.fit.sampler.meta())
        self._saved = time.monotonic()

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint if the last one is older than the settings allow."""
        if time.monotonic() - self._saved > self.task.settings.output.checkpoint_seconds:
            self.checkpoint()

    def stop(self, at: str) -> None:
        """Write a checkpoint of a fit that is asked to stop."""
        self.checkpoint()


def fitted(task: Task[EvidenceSettings], *, apart: bool) -> Centre:
    """The centre that a fit in the task's folder finds, from where the fit is to its end."""
    settings = task.settings
    host = InFitFolder(task)
    host.fit = QuadraticFit(
        task.engine,
        host,
        burn_in=settings.bridge.fit_burn_in,
        rounds=settings.bridge.fit_rounds,
        apart=apart,
        minimiser=make_minimiser(settings),
        tuning=make_tuning(settings),
    )
    found, problems = host.checkpoints.latest()
    for problem in problems:
        task.warn(problem)
    if found is None:
        host.fit.begin()
    else:
        host.fit.restore(found.arrays, found.meta)
    centre = host.fit.run()
    host.checkpoint()
    return centre


def note_quadratics(
    task: Task[EvidenceSettings], quadratics: list[Quadratic], energies: list[float]
) -> None:
    """Write down the log integral and J(w0) of each quadratic, which the samples do not hold.

    Args:
        task: whose folder they are written to.
        quadratics: one for each copy, or one for all.
        energies: E(w0) of each.
    """
    integrals = [quadratic.log_integral for quadratic in quadratics]
    said = {"log_integral": integrals, "centre_energy": energies}
    task.folder.write_json(QUADRATIC, said)


def quadratics_of(centre: Centre, copies: int, problem: Problem) -> list[Quadratic]:
    """The quadratic of each copy, from a centre whose arrays have a leading axis of copies."""

    def of_copy(tree: Weights, copy: int) -> Weights:
        return jax.tree.map(lambda leaf: leaf[copy], tree)

    prior = problem.target.prior
    return [
        Quadratic(of_copy(centre.weights, copy), of_copy(centre.stiffness, copy), prior)
        for copy in range(copies)
    ]
