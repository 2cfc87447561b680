"""The temperature sweep (Sec. 3.3): a ladder of temperatures, scored on held-out examples."""

from __future__ import annotations

from tempernet.config import SweepSettings
from tempernet.tasks.ladder import LadderTask, procedure_of
from tempernet.tasks.problem import make_engine, temperatures_of
from tempernet.tempering.engine import Engine
from tempernet.tempering.observables import HeldOut
from tempernet.tempering.sampler import Procedure
from tempernet.tempering.scoring import Scoring


class Sweep(LadderTask[SweepSettings]):
    """A sweep in a run folder."""

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the ladder that the run begins with."""
        return make_engine(self.settings, self.problem, temperatures_of(self.settings), tile)

    def procedure(self) -> Procedure:
        """How the ladder is sampled."""
        return procedure_of(self.settings, cooling_rounds=self.settings.start.cooling_rounds)

    def scoring(self) -> Scoring:
        """When held-out examples are scored, and when weights are kept."""
        problem, run = self.problem, self.settings.run
        held_out = HeldOut(problem.test, problem.validation, problem.all_test)
        return Scoring(held_out, run.score_every, run.keep, run.keep_temperatures)
