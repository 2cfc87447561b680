"""Evidences in run folders: by the temperature path, by a bridge with exchange, and by the paper's
sequence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from tempernet import paths
from tempernet.config import EvidenceSettings
from tempernet.errors import NumericsError, Stopped
from tempernet.evidence.estimators import Quadratic
from tempernet.evidence.log_evidence import first_betas, first_temperatures
from tempernet.model.networks import Weights
from tempernet.paths.bridge import Centre
from tempernet.store import RunFolder
from tempernet.store.folder import QUADRATIC
from tempernet.tasks.base import Progress, Task, state_arrays, state_from
from tempernet.tasks.ladder import LadderTask
from tempernet.tasks.problem import Problem, make_engine, make_tuning
from tempernet.tasks.quadratic_fit import QuadraticFit, as_device
from tempernet.tempering.adaptation import Adaptation
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State


def evidence_task(settings: EvidenceSettings, *rest: Any) -> Task:
    """The task that works out an evidence by the method that the settings name."""
    if settings.path.method == "temperature":
        return TemperatureEvidence(settings, *rest)
    return (
        PaperBridge(settings, *rest)
        if settings.protocol == "paper"
        else BridgeEvidence(settings, *rest)
    )


class TemperatureEvidence(LadderTask):
    """Temperatures from 1 or below to infinity. No mode is assumed, and the hottest rung's samples
    are exact draws.
    """

    def __init__(
        self, settings: EvidenceSettings, problem: Problem, folder: RunFolder, *watchers: Any
    ) -> None:
        super().__init__(settings, problem, folder, *watchers)
        self.settings = settings

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the temperatures that the run begins with."""
        wanted = self.settings.path
        path = first_temperatures(
            self.problem.target, wanted.num, wanted.coldest, self.settings.run.seed
        )
        return make_engine(self.settings, self.problem, path, tile)

    @property
    def cold_rungs(self) -> int:
        """The posterior's, and those below it."""
        return int(np.sum(self.adaptation.path.values <= 1))


class BridgeEvidence(LadderTask):
    """All lambdas at once, with exchange and reflecting walls; samples at lambda = 1 are exact
    draws.
    """

    centre: Centre

    def __init__(
        self, settings: EvidenceSettings, problem: Problem, folder: RunFolder, *watchers: Any
    ) -> None:
        super().__init__(settings, problem, folder, *watchers)
        self.settings = settings

    def run(self) -> None:
        """The fit of the quadratic, then the path."""
        self.show("initialise")
        path, bridge = paths.temperature_path([1.0]), self.settings.bridge
        replicas = self.settings.run.copies * self.settings.path.num
        self.engine = make_engine(
            self.settings, self.problem, path, self.begun_tile(), copies=replicas
        )
        self.note_start_once()
        fit = QuadraticFit(self, self.engine, bridge.fit_burn_in, bridge.fit_rounds, apart=False)
        self.centre = fit.run()
        self._note_quadratic()
        super().run()

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the lambdas that the run begins with."""
        lambdas = 1 - first_betas(
            self.problem.target, self.settings.path.num, self.settings.run.seed
        )
        path = paths.bridge_path(lambdas, as_device(self.centre), self.quadratic.draw)
        return make_engine(self.settings, self.problem, path, tile)

    @property
    def quadratic(self) -> Quadratic:
        """What the bridge leads to."""
        return Quadratic(self.centre.weights, self.centre.stiffness, self.problem.target.prior)

    def _note_quadratic(self) -> None:
        """Its integral and J(w0): the samples know nothing of either."""
        said = {
            "log_integral": [self.quadratic.log_integral],
            "centre_energy": [float(self.centre.energy)],
        }
        self.folder.write_json(QUADRATIC, said)


class PaperBridge(Task):
    """Sec. 4.3.1 as printed: independent copies, each with its own w0 and k, go through the lambdas
    in sequence.
    """

    state: State
    centre: Centre
    adaptation: Adaptation
    tuned: int
    """The rung that the step size was last adjusted at."""

    def __init__(
        self, settings: EvidenceSettings, problem: Problem, folder: RunFolder, *watchers: Any
    ) -> None:
        super().__init__(settings, problem, folder, *watchers)
        self.settings = settings
        self.lambdas = np.linspace(0.0, 1.0, settings.path.num)
        self.tuned = -1
        self.each = settings.run.burn_in + settings.run.rounds
        self.total = self.each * len(self.lambdas)

    def run(self) -> None:
        """The fit without walls, then bridge after bridge."""
        self.show("initialise")
        bridge = self.settings.bridge
        at_one = paths.temperature_path([1.0])
        self.engine = make_engine(
            self.settings, self.problem, at_one, self.begun_tile(), walls="none"
        )
        self.note_start_once()
        fit = QuadraticFit(self, self.engine, bridge.fit_burn_in, bridge.fit_rounds, apart=True)
        self.centre = fit.run()
        self._note_quadratics()
        path = paths.bridge_path(self.lambdas[:1], as_device(self.centre), of_copies=True)
        self.engine = make_engine(self.settings, self.problem, path, self.begun_tile())
        self.adaptation = Adaptation.begin(self.engine)
        if not self.restored():
            self.state = self.engine.start(self.centre.weights)
            self.checkpoint()
        began, first = time.monotonic(), self.round
        while self.round < self.total:
            rung, within = divmod(self.round, self.each)
            self.adaptation.path = path.moved(self.lambdas[rung : rung + 1])
            if rung % bridge.tune_every == 0 and self.tuned != rung:
                # Not part of any average or burn-in: the state stays.
                self.adaptation.tune(self.engine, self.state, make_tuning(self.settings))
                self.tuned = rung
            try:
                self._one_round(rung, within)
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

    def _one_round(self, rung: int, within: int) -> None:
        state, on_device = self.engine.round(self.state, self.adaptation.rungs(self.engine))
        self.wait(state, on_device)
        record = jax.device_get(on_device)
        if not np.isfinite(record.phi).all():
            raise NumericsError(
                f"an energy is not finite at lambda = {self.lambdas[rung]:.4g}; nothing of this round is kept"
            )
        self.state = state
        if within >= self.settings.run.burn_in:
            squares = self.engine.mean_squares(state)
            row = {
                "lambda": self.lambdas[rung],
                **{name: record.phi[:, 0, m] for m, name in enumerate(self.engine.path.terms)},
                "acceptance": record.info.acceptance[:, 0],
                "wall_rejections": record.info.wall_rejections[:, 0],
                "nonfinite": record.info.nonfinite[:, 0],
                "step_size": self.adaptation.step_sizes[0],
                "mean_squares": squares[:, 0],
            }
            self.records.append("bridges", row)

    def _note_quadratics(self) -> None:
        prior = self.problem.target.prior

        def of_copy(tree: Weights, copy: int) -> Weights:
            return jax.tree.map(lambda leaf: leaf[copy], tree)

        integrals = [
            Quadratic(
                of_copy(self.centre.weights, c), of_copy(self.centre.stiffness, c), prior
            ).log_integral
            for c in range(self.settings.run.copies)
        ]
        said = {"log_integral": integrals, "centre_energy": [float(e) for e in self.centre.energy]}
        self.folder.write_json(QUADRATIC, said)

    def arrays(self) -> dict[str, np.ndarray]:
        """The position."""
        return state_arrays(self.engine, self.state) | {"step_sizes": self.adaptation.step_sizes}

    def meta(self) -> dict[str, Any]:
        """How far the run is."""
        return {"round": self.round, "tuned": self.tuned}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a position."""
        self.tuned = int(meta["tuned"])
        self.state = state_from(self.engine, arrays, int(meta["round"]))
        self.adaptation.step_sizes = arrays["step_sizes"]
