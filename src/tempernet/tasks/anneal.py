"""Annealing in a run folder: cool until the validation error rises, go back, and only then look at
the test set.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from tempernet.annealing import Annealer, Position, Schedule, held_out_score_fn
from tempernet.annealing.position import stacked
from tempernet.config import AnnealSettings
from tempernet.errors import ConfigError, NumericsError, Stopped
from tempernet.model.prediction import predict, scores
from tempernet.paths.temperatures import temperature_path
from tempernet.results import optimise as optimised
from tempernet.results.anneal import schedule_of
from tempernet.store import RunFolder
from tempernet.tasks.base import Progress, Task, state_arrays, state_from
from tempernet.tasks.optimise import free_engine
from tempernet.tasks.problem import Problem, make_engine, make_minimiser, make_tuning
from tempernet.tempering.sampling import starting_weights


class Baseline(NamedTuple):
    """Optimised networks on the test set, and which of them have E = 0: (networks,) each."""

    loss: np.ndarray
    accuracy: np.ndarray
    reached: np.ndarray


class Anneal(Task):
    """A cooling in a run folder."""

    position: Position

    def __init__(
        self, settings: AnnealSettings, problem: Problem, folder: RunFolder, *watchers: Any
    ) -> None:
        super().__init__(settings, problem, folder, *watchers)
        self.settings = settings
        self.schedule = Schedule(**schedule_of(settings))

    def run(self) -> None:
        """From where the folder is to the end."""
        self.show("initialise")
        path = temperature_path(self.schedule.temperatures[:1])
        self.engine = make_engine(self.settings, self.problem, path, self.begun_tile())
        assert self.problem.validation is not None
        score_fn = held_out_score_fn(self.engine, self.problem.validation)
        self.annealer = Annealer(self.engine, self.schedule, score_fn, make_tuning(self.settings))
        if not self.restored():
            self.note_start()
            self.show("tune")
            weights = starting_weights(
                self.engine, self.settings.start.weights, make_minimiser(self.settings)
            )
            self.position = self.annealer.start(weights)
            self.checkpoint()
        began = time.monotonic(), self.position.round
        try:
            while not self.annealer.finished(self.position):
                self._one_round()
                self._report(*began)
                self.checkpoint_if_due()
            if not self.records.length("test"):
                self._look_at_test()
        except Stopped:
            # The round at hand is given up: the position is still the one before it.
            self.stop(f"after round {self.position.round}")
            raise
        self.finish()
        self.show("finished", self.position.round, self.position.round)

    def _one_round(self) -> None:
        annealer, position = self.annealer, self.position
        step, _ = annealer.where(position)
        temperature = self.schedule.temperatures[step]
        time_step = position.step_size / np.sqrt(temperature)
        state, on_device = annealer.round(position)
        self.wait(state, on_device)
        record = jax.device_get(on_device)
        score = annealer.accept(position, state, record)
        row = {name: getattr(record.info, name)[:, 0] for name in record.info._fields}
        facts = {"temperature": temperature, "time_step": time_step}
        self.records.append("rounds", {**facts, "energy": record.phi[:, 0, 0], **row})
        if score is not None:
            held_out = {"validation_loss": score.loss, "validation_accuracy": score.accuracy}
            self.records.append(
                "scores", {"round": position.round, "temperature": temperature, **held_out}
            )
        if annealer.where(position)[0] > step:
            self._log_temperature(temperature)

    def _log_temperature(self, temperature: float) -> None:
        losses, course = self.position.losses, self.position.course
        best = "none" if course.best is None else f"{self.schedule.temperatures[course.best]:.4g}"
        self.folder.log.append(
            f"T = {temperature:.4g} is over, validation loss {losses[-1].mean():.4f}, least at T = {best}, "
            f"{course.risen} risen in a row{'; the cooling stops' if course.stopped else ''}"
        )

    def _look_at_test(self) -> None:
        """Keep what the cooling went back to, and score it on the test set beside plain
        optimisation.
        """
        position, network, data = self.position, self.problem.network, self.problem.data
        if position.course.best is None:
            raise NumericsError(
                "no validation loss was a number at any temperature: check the validation data"
            )
        self.checkpoint()
        optimised = _baseline(self.settings, self.problem) or self._optimised()
        self.show("score")
        temperature = self.schedule.temperatures[position.course.best]
        chosen = scores(network, jax.tree.map(lambda leaf: leaf[None], position.chosen), data.test)
        members = stacked(position.ensemble)
        ensemble = predict(network, members, data.test.x).score(data.test.y)
        single = scores(network, members, data.test)
        shape = (self.schedule.draws, self.engine.copies)
        self.records.append(
            "chosen", {f"leaf{i}": leaf for i, leaf in enumerate(jax.tree.leaves(position.chosen))}
        )
        for draw, weights in enumerate(position.ensemble):
            # As a sweep keeps them: (copies, temperatures, ...).
            row = {f"leaf{i}": leaf[:, None] for i, leaf in enumerate(jax.tree.leaves(weights))}
            self.kept.append(
                "weights", {"round": draw, "temperatures": np.array([temperature]), **row}
            )
        self.records.append(
            "test",
            {f"chosen_{name}": value[0] for name, value in chosen._asdict().items()}
            | {f"ensemble_{name}": value for name, value in ensemble._asdict().items()}
            | {f"member_{name}": value.reshape(shape).T for name, value in single._asdict().items()}
            | {f"optimised_{name}": value for name, value in optimised._asdict().items()},
        )

    def _optimised(self) -> Baseline:
        """As many optimised networks as there are replicas, on the test set."""
        self.show("optimise")
        # With the tile of the cooling: a tile measured anew could change the order of additions.
        engine = free_engine(
            self.settings, self.problem, self.engine.copies, self.engine.layout.tile
        )
        found = engine.minimise(engine.init_weights(), make_minimiser(self.settings))
        self.wait(found)
        scored = scores(
            self.problem.network, jax.device_get(found.point.weights), self.problem.data.test
        )
        return Baseline(
            np.asarray(scored.loss), np.asarray(scored.accuracy), np.asarray(found.reached)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The position."""
        return state_arrays(self.engine, self.position.state) | self.position.arrays()

    def meta(self) -> dict[str, Any]:
        """How far it is."""
        return {"round": self.position.round}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a round."""
        self.position = self.annealer.restored(
            state_from(self.engine, arrays, int(meta["round"])), arrays
        )

    def _report(self, began: float, first: int) -> None:
        done, total = self.position.round, self.schedule.num * self.schedule.length
        rate = (done - first) / max(time.monotonic() - began, 1e-9)
        step, _ = self.annealer.where(self.position)
        temperature = float(self.schedule.temperatures[min(step, self.schedule.num - 1)])
        progress = Progress(
            "cool", done, total, rate, (total - done) / rate, detail=f"T = {temperature:.3g}"
        )
        self.tell(progress)


def check_comparable(settings: AnnealSettings, problem: Problem) -> None:
    """There must be validation examples to stop by, and a run to compare with must be of the same
    data and network.
    """
    if problem.validation is None:
        raise ConfigError(
            f"annealing needs validation examples to stop by, and {problem.data.name} leaves none: "
            f"raise data.n_validation, or train on fewer (data.n_train)"
        )
    _baseline(settings, problem)


def _baseline(settings: AnnealSettings, problem: Problem) -> Baseline | None:
    """Those kept by the optimise run that the settings name, which must be of the same data and
    network.
    """
    if not settings.cooling.optimised:
        return None
    path = Path(settings.cooling.optimised)
    found = optimised.load(path)
    if found.provenance["data"]["sha256"] != problem.data.sha256:
        raise ConfigError(
            f"cooling.optimised = {path} has other data: run `tempernet optimise` with the same [data]"
        )
    if found.settings.network != settings.network:
        raise ConfigError(
            f"cooling.optimised = {path} is of the network {found.settings.network.name}, this run of "
            f"{settings.network.name}: give a run of the same network"
        )
    kept: Any = found.kept
    return Baseline(
        kept["test_loss"],
        kept["test_accuracy"],
        kept["energy"] <= found.settings.optimise.tolerance,
    )
