"""Annealing in a run folder: cool until the validation loss rises, then go back.

The test set is looked at once the cooling has ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import jax
import numpy as np
from numpy.typing import ArrayLike

from tempernet.annealing.annealer import Annealer
from tempernet.annealing.position import Position, stacked
from tempernet.annealing.validation import held_out_score_fn
from tempernet.config import AnnealSettings
from tempernet.errors import NumericsError, Stopped
from tempernet.model.prediction import predict, scores
from tempernet.model.weights import packed
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder
from tempernet.store.files import JsonObject
from tempernet.tasks.base import Task, Watch
from tempernet.tasks.baseline import Baseline, stored_baseline
from tempernet.tasks.optimise import free_engine
from tempernet.tasks.problem import (
    Problem,
    make_engine,
    make_minimiser,
    make_schedule,
    make_tuning,
)
from tempernet.tempering.host import Facts, Progress
from tempernet.tempering.observables import SERIES, Moment, measured, of_path
from tempernet.tempering.starts import starting_weights


class Anneal(Task[AnnealSettings]):
    """A cooling in a run folder."""

    position: Position

    def __init__(
        self,
        settings: AnnealSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(settings, problem, folder, watch)
        self.schedule = make_schedule(settings)

    def run(self) -> None:
        """Run from where the folder is to the end."""
        self.show("initialise")
        path = temperature_path(self.schedule.temperatures[:1])
        self.engine = make_engine(self.settings, self.problem, path, self.begun_tile())
        assert self.problem.validation is not None
        score_fn = held_out_score_fn(self.engine, self.problem.validation)
        self.annealer = Annealer(self.engine, self.schedule, score_fn, make_tuning(self.settings))
        if not self.go_back():
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
        path = self.engine.path.moved(np.array([temperature]))
        step_sizes = np.array([position.step_size])
        state, on_device = annealer.round(position)
        self.wait(state, on_device)
        record = jax.device_get(on_device)
        score = annealer.accept(position, state, record)
        moment = Moment(self.engine, state, record, path, step_sizes)
        self.record(SERIES["round"], measured(of_path(path), moment, "round"))
        if score is not None:
            held_out = {"validation_loss": score.loss, "validation_accuracy": score.accuracy}
            self.record("scores", {"round": position.round, "temperature": temperature, **held_out})
        if annealer.where(position)[0] > step:
            self._log_temperature(temperature)

    def _log_temperature(self, temperature: float) -> None:
        losses, course = self.position.losses, self.position.course
        best = "none" if course.best is None else f"{self.schedule.temperatures[course.best]:.4g}"
        self.note(
            f"T = {temperature:.4g} is over, validation loss {losses[-1].mean():.4f}, lowest at "
            f"T = {best}, {course.risen} risen in a row"
            f"{'; the cooling stops' if course.stopped else ''}"
        )

    def _look_at_test(self) -> None:
        """Keep what the cooling went back to, and score it beside plain optimisation."""
        position, network, data = self.position, self.problem.network, self.problem.data
        if position.course.best is None:
            raise NumericsError(
                "no validation loss was a number at any temperature: check the validation data"
            )
        self.checkpoint()
        optimised = stored_baseline(self.settings, self.problem) or self._optimised()
        self.show("score")
        temperature = self.schedule.temperatures[position.course.best]
        chosen = scores(network, jax.tree.map(lambda leaf: leaf[None], position.chosen), data.test)
        members = stacked(position.ensemble)
        ensemble = predict(network, members, data.test.x).score(data.test.y)
        single = scores(network, members, data.test)
        shape = (self.schedule.draws, self.engine.copies)
        self.record("chosen", packed("leaf", position.chosen))
        for draw, weights in enumerate(position.ensemble):
            # As a sweep keeps them: (copies, temperatures, ...).
            one_rung = jax.tree.map(lambda leaf: leaf[:, None], weights)
            facts: dict[str, ArrayLike] = {"round": draw, "temperature": np.array([temperature])}
            self.keep(facts | packed("leaf", one_rung))
        self.record(
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
        """The position, for a checkpoint."""
        return self.engine.packed(self.position.state) | self.position.arrays()

    def meta(self) -> JsonObject:
        """How far the task is, for a checkpoint."""
        return {"round": self.position.round}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a round."""
        self.position = self.annealer.restored(
            self.engine.unpacked(arrays, int(meta["round"])), arrays
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
