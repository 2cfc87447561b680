"""The temperature sweep (Sec. 3.3): a ladder of temperatures, sampled and scored on held-out
examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from tempernet.config import SweepSettings
from tempernet.store import RunFolder
from tempernet.tasks.base import Watch
from tempernet.tasks.ladder import LadderTask
from tempernet.tasks.problem import Problem, make_engine, temperatures_of
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import Cooling

PREDICTIONS = 200
"""Of how many test examples the predictions are kept with the weights."""


class Sweep(LadderTask):
    """A sweep in a run folder."""

    ensemble: np.ndarray
    """Sum of softmax outputs over the scores so far: (copies, K, examples, classes)."""
    scores: int

    def __init__(
        self,
        settings: SweepSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(settings, problem, folder, watch)
        self.settings = settings

    def make_engine(self, tile: int | None) -> Engine:
        """The engine on the ladder that the run begins with."""
        return make_engine(self.settings, self.problem, temperatures_of(self.settings), tile)

    @property
    def cooling(self) -> Cooling | None:
        """How replicas cool together before the first round, if they do."""
        start = self.settings.start
        return (
            Cooling(self.engine, start.cooling_rounds, self.tuning)
            if start.weights == "annealed"
            else None
        )

    def forget_samples(self) -> None:
        """No predictions yet."""
        examples, classes = len(self.problem.test_labels), self.problem.network.classes
        self.ensemble = np.zeros(
            (self.engine.copies, self.engine.num_rungs, examples, classes), np.float32
        )
        self.scores = 0

    def after_round(self, done: int) -> None:
        """Held-out loss now and then; a few times, on the whole test set, with the weights kept."""
        engine, problem, run, state = self.engine, self.problem, self.settings.run, self.state
        if done % run.score_every == 0:
            test, probabilities = engine.predict(state, problem.test)
            self.ensemble += probabilities
            self.scores += 1
            row = {"round": self.round, "test_loss": test.loss, "test_accuracy": test.accuracy}
            if problem.validation is not None:
                held_out = engine.score(state, problem.validation)
                row |= {"validation_loss": held_out.loss, "validation_accuracy": held_out.accuracy}
            self.records.append("scores", row)
        if done in keep_rounds(run.rounds, run.keep):
            every, some = (
                engine.score(state, examples) for examples in (problem.all_test, problem.test)
            )
            row = {"round": self.round, "test_loss": every.loss, "test_accuracy": every.accuracy}
            self.records.append(
                "full", {**row, "part_loss": some.loss, "part_accuracy": some.accuracy}
            )
            self._keep_weights()

    def _keep_weights(self) -> None:
        temperatures = self.adaptation.path.values
        kept = kept_rungs(temperatures, self.settings.run.keep_temperatures)
        leaves = [jax.tree.leaves(self.engine.weights_at(self.state, rung)) for rung in kept]
        stacked = {
            f"leaf{i}": np.stack(parts, axis=1) for i, parts in enumerate(zip(*leaves, strict=True))
        }
        # Who they are, and what they predict: what a replica remembers is worked out from these.
        _, probabilities = self.engine.predict(self.state, self.problem.test)
        row = {
            "round": self.round,
            "temperatures": temperatures[kept],
            "replica": np.asarray(self.state.replica_at)[:, kept],
            "predictions": probabilities[:, kept, :PREDICTIONS],
        }
        self.kept.append("weights", row | stacked)

    def arrays(self) -> dict[str, np.ndarray]:
        """The position, and the predictions."""
        return super().arrays() | {"ensemble": self.ensemble}

    def meta(self) -> dict[str, Any]:
        """How far the run is."""
        return super().meta() | {"scores": self.scores}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a position."""
        self.ensemble, self.scores = np.array(arrays["ensemble"]), int(meta["scores"])
        super().restore(arrays, meta)


def keep_rounds(rounds: int, keep: int) -> set[int]:
    """After which of the rounds that count weights are kept: evenly spaced, the last one among
    them.
    """
    return {round(rounds * (i + 1) / keep) for i in range(keep)} if keep else {rounds}


def kept_rungs(temperatures: np.ndarray, wanted: tuple[float, ...]) -> np.ndarray:
    """The rungs nearest to the wanted temperatures, in log T; all of them if none is wanted in
    particular.
    """
    if not wanted:
        return np.arange(len(temperatures))
    distance = np.abs(np.log(temperatures)[:, None] - np.log(np.asarray(wanted)))
    return np.unique(distance.argmin(axis=0))
