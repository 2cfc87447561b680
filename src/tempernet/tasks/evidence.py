"""The evidence by the temperature path: from the prior, whose samples are exact draws, to the posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempernet import paths
from tempernet.config import EvidenceSettings
from tempernet.engine import Engine
from tempernet.store import RunFolder
from tempernet.tasks.base import Task
from tempernet.tasks.ladder import LadderTask
from tempernet.tasks.problem import Problem, make_engine


class TemperatureEvidence(LadderTask):
    """Temperatures from 1 to infinity in a run folder. No mode is assumed."""

    def __init__(self, settings: EvidenceSettings, problem: Problem, folder: RunFolder, *watchers: Any) -> None:
        super().__init__(settings, problem, folder, *watchers)
        self.settings = settings

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the temperatures that the run begins with."""
        with np.errstate(divide="ignore"):
            temperatures = 1 / first_betas(self.settings.path.num, self.problem.target.num_examples)
        return make_engine(self.settings, self.problem, paths.temperature_path(temperatures), tile)


def first_betas(num: int, examples: int) -> np.ndarray:
    """beta from 1 down to 0 before anything is known: geometric as far as draws of the prior feel E at all.

    A network that is sure of wrong answers loses about ten nats an example, more or less by about as much.
    """
    return np.concatenate([np.geomspace(1.0, 0.1 / max(examples, 1), num - 1), [0.0]])


def evidence_task(settings: EvidenceSettings, *rest: Any) -> Task:
    """The task that works out an evidence by the method that the settings name."""
    return TemperatureEvidence(settings, *rest)
