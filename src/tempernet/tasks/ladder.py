"""A path of rungs in a run folder: the sampler, its checkpoints, and where it goes on from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from tempernet.config import LadderSettings
from tempernet.store.files import JsonObject
from tempernet.tasks.base import Task
from tempernet.tasks.problem import make_minimiser, make_tuning
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Facts
from tempernet.tempering.sampler import Procedure, Sampler
from tempernet.tempering.scoring import Scoring

S = TypeVar("S", bound=LadderSettings)


class LadderTask(Task[S]):
    """A path of rungs in a run folder."""

    sampler: Sampler

    @abstractmethod
    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the path that the run begins with."""

    @abstractmethod
    def procedure(self) -> Procedure:
        """How the path is sampled."""

    def scoring(self) -> Scoring | None:
        """What is scored and kept on the way, if anything."""
        return None

    def run(self) -> None:
        """Run from where the folder is to the end."""
        self.show("initialise")
        self.engine = self.make_engine(self.begun_tile())
        procedure = self.procedure()
        self.sampler = Sampler(self.engine, procedure, self, scoring=self.scoring())
        if not self.go_back():
            self.note_start()
            self.sampler.begin()
        self.sampler.run()
        self.finish()

    def arrays(self) -> dict[str, np.ndarray]:
        """The position of the sampler."""
        return self.sampler.arrays()

    def meta(self) -> JsonObject:
        """How far the sampler is."""
        return self.sampler.meta()

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a position of the sampler."""
        self.sampler.restore(arrays, meta)


def procedure_of(
    settings: LadderSettings,
    *,
    cooling_rounds: int = Procedure.cooling_rounds,
    cold_to: float | None = None,
) -> Procedure:
    """The procedure that settings ask for.

    Args:
        settings: of the run.
        cooling_rounds: rounds at each temperature of an "annealed" start.
        cold_to: rungs up to this value of the path are its cold end; None for the first one alone.
    """
    return Procedure(
        burn_in=settings.run.burn_in,
        rounds=settings.run.rounds,
        warm_up="ends" if settings.protocol == "paper" else "stages",
        moves_rungs=settings.moves_rungs,
        start=settings.start.weights,
        minimiser=make_minimiser(settings),
        tuning=make_tuning(settings),
        cooling_rounds=cooling_rounds,
        cold_to=cold_to,
    )
