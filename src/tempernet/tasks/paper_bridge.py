"""Sec. 4.3.1 as printed: independent copies sample the distributions of the bridge in sequence."""

from __future__ import annotations

import time
from collections.abc import Mapping

import jax
import numpy as np

from tempernet.config import EvidenceSettings
from tempernet.errors import Stopped
from tempernet.evidence.fit import on_device
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder
from tempernet.store.files import JsonObject
from tempernet.tasks.base import Task, Watch
from tempernet.tasks.problem import Problem, make_engine, make_tuning
from tempernet.tasks.quadratic import fitted, note_quadratics, quadratics_of
from tempernet.tempering.adaptation import Adaptation
from tempernet.tempering.host import Facts, Progress
from tempernet.tempering.observables import Moment, measured, of_path
from tempernet.tempering.rounds import Record, State
from tempernet.tempering.stuck import must_be_finite

SERIES = "bridges"


class PaperBridge(Task[EvidenceSettings]):
    """Each copy has its own w0 and k, and goes through the lambdas one after the other."""

    state: State
    centre: Centre
    adaptation: Adaptation
    tuned: int
    """The rung that the step size was last adjusted at."""

    def __init__(
        self,
        settings: EvidenceSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(settings, problem, folder, watch)
        self.lambdas = np.linspace(0.0, 1.0, settings.path.num)
        self.tuned = -1
        self.each = settings.run.burn_in + settings.run.rounds
        self.total = self.each * len(self.lambdas)

    def run(self) -> None:
        """Run the fit without walls, then one bridge after the other."""
        self.show("initialise")
        settings, problem, tile = self.settings, self.problem, self.begun_tile()
        at_one = temperature_path([1.0])
        self.engine = make_engine(settings, problem, at_one, tile, walls="none")
        self.note_start()
        self.centre = fitted(self, apart=True)
        quadratics = quadratics_of(self.centre, settings.run.copies, problem)
        note_quadratics(
            self, quadratics, [float(energy) for energy in np.asarray(self.centre.energy)]
        )
        path = bridge_path(self.lambdas[:1], on_device(self.centre), of_copies=True)
        self.engine = make_engine(settings, problem, path, self.begun_tile())
        self.adaptation = Adaptation.begin(self.engine)
        if not self.go_back():
            self.state = self.engine.start(self.centre.weights)
            self.checkpoint()
        began, first = time.monotonic(), self.round
        while self.round < self.total:
            rung, within = divmod(self.round, self.each)
            self.adaptation.path = path.moved(self.lambdas[rung : rung + 1])
            if rung % settings.bridge.tune_every == 0 and self.tuned != rung:
                # Not part of any average or burn-in: the state stays.
                self.adaptation.tune(self.engine, self.state, make_tuning(settings))
                self.tuned = rung
            try:
                self._one_round(within)
            except Stopped:
                self.stop(f"after round {self.round}")
                raise
            rate = (self.round - first) / max(time.monotonic() - began, 1e-9)
            left = (self.total - self.round) / rate
            self.tell(Progress("bridge", self.round, self.total, rate, left))
            self.checkpoint_if_due()
        self.finish()

    @property
    def round(self) -> int:
        """Trajectories done."""
        return int(self.state.round)

    def _one_round(self, within: int) -> None:
        state, on_device_ = self.engine.round(self.state, self.adaptation.rungs(self.engine))
        self.wait(state, on_device_)
        record: Record = jax.device_get(on_device_)
        must_be_finite(record, self.adaptation.path, self.round)
        self.state = state
        if within >= self.settings.run.burn_in:
            path, step_sizes = self.adaptation.path, self.adaptation.step_sizes
            moment = Moment(self.engine, state, record, path, step_sizes)
            self.record(SERIES, measured(of_path(path), moment, "round"))

    def arrays(self) -> dict[str, np.ndarray]:
        """The position, for a checkpoint."""
        return self.engine.packed(self.state) | {"step_sizes": self.adaptation.step_sizes}

    def meta(self) -> JsonObject:
        """How far the run is, for a checkpoint."""
        return {"round": self.round, "tuned": self.tuned}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a position."""
        self.tuned = int(meta["tuned"])
        self.state = self.engine.unpacked(arrays, int(meta["round"]))
        self.adaptation.step_sizes = arrays["step_sizes"]
