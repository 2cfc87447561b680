"""Evidences in run folders: by the temperature path, and by a bridge with exchange."""

from __future__ import annotations

from tempernet.config import EvidenceSettings
from tempernet.evidence.first_rungs import first_betas, first_temperatures
from tempernet.evidence.fit import on_device
from tempernet.evidence.quadratic import Quadratic
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder
from tempernet.tasks.base import Task, Watch
from tempernet.tasks.ladder import LadderTask, procedure_of
from tempernet.tasks.paper_bridge import PaperBridge
from tempernet.tasks.problem import Problem, make_engine
from tempernet.tasks.quadratic import fitted, note_quadratics
from tempernet.tempering.engine import Engine
from tempernet.tempering.sampler import Procedure


def evidence_task(
    settings: EvidenceSettings, problem: Problem, folder: RunFolder, watch: Watch | None = None
) -> Task[EvidenceSettings]:
    """The task that estimates an evidence by the method that the settings name.

    Args:
        settings: of the run.
        problem: its data, network and target.
        folder: where it writes.
        watch: who is told how it gets on, and may ask it to stop.
    """
    if settings.path.method == "temperature":
        return TemperatureEvidence(settings, problem, folder, watch)
    if settings.protocol == "paper":
        return PaperBridge(settings, problem, folder, watch)
    return BridgeEvidence(settings, problem, folder, watch)


class TemperatureEvidence(LadderTask[EvidenceSettings]):
    """Temperatures from 1 or below to infinity.

    No mode is assumed, and the hottest rung's samples are exact draws.
    """

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the temperatures that the run begins with."""
        wanted, seed = self.settings.path, self.settings.run.seed
        path = first_temperatures(self.problem.target, wanted.num, wanted.coldest, seed)
        return make_engine(self.settings, self.problem, path, tile)

    def procedure(self) -> Procedure:
        """How the path is sampled; the posterior's rung and those below it are its cold end."""
        return procedure_of(self.settings, cold_to=1.0)


class BridgeEvidence(LadderTask[EvidenceSettings]):
    """All lambdas at once, with exchange and reflecting walls.

    The samples at lambda = 1 are exact draws.
    """

    centre: Centre

    def run(self) -> None:
        """Run the fit of the quadratic, then the path."""
        self.show("initialise")
        at_one = temperature_path([1.0])
        replicas = self.settings.run.copies * self.settings.path.num
        tile = self.begun_tile()
        self.engine = make_engine(self.settings, self.problem, at_one, tile, copies=replicas)
        self.note_start()
        self.centre = fitted(self, apart=False)
        note_quadratics(self, [self.quadratic], [float(self.centre.energy)])
        super().run()

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the lambdas that the run begins with."""
        num, seed = self.settings.path.num, self.settings.run.seed
        lambdas = 1 - first_betas(self.problem.target, num, seed)
        path = bridge_path(lambdas, on_device(self.centre), self.quadratic.draw)
        return make_engine(self.settings, self.problem, path, tile)

    def procedure(self) -> Procedure:
        """How the path is sampled."""
        return procedure_of(self.settings)

    @property
    def quadratic(self) -> Quadratic:
        """What the bridge leads to."""
        return Quadratic(self.centre.weights, self.centre.stiffness, self.problem.target.prior)
