"""Scoring: held-out losses now and then, and the networks that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np

from tempernet.errors import check_count
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Host
from tempernet.tempering.observables import (
    ROUND,
    SERIES,
    Cadence,
    HeldOut,
    Moment,
    Observable,
    measured,
)

PREDICTIONS = 200
"""Test examples whose predictions are kept with the weights."""


@dataclass(frozen=True)
class Scoring:
    """How often held-out examples are scored and networks are kept, and of which rungs.

    Attributes:
        held_out: the examples.
        score_every: rounds between two scores.
        keep: how often in a run weights are kept and the whole test set is scored; 0 is once, at
            the end.
        keep_temperatures: weights of the nearest rungs only are kept; all if empty.
    """

    held_out: HeldOut = field(default_factory=HeldOut)
    score_every: int = 5
    keep: int = 5
    keep_temperatures: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_count("score_every", self.score_every)
        check_count("keep", self.keep, least=0)


class Scores:
    """The scores and kept networks of a run so far; their sums are part of a checkpoint."""

    def __init__(
        self, engine: Engine, scoring: Scoring, rounds: int, observables: list[Observable]
    ) -> None:
        self.engine, self.scoring, self.observables = engine, scoring, observables
        self.kept_after = keep_rounds(rounds, scoring.keep)
        test = scoring.held_out.test
        self.examples = 0 if test is None else int(np.sum(np.asarray(test.weight) > 0))
        self.forget()

    ensemble: np.ndarray
    """Sum of softmax outputs over the scores so far: (copies, K, examples, classes)."""
    count: int
    """Scores so far."""

    def forget(self) -> None:
        """Begin without scores: earlier ones were burn-in."""
        test, classes = self.scoring.held_out.test, 0
        if test is not None and self.engine.target.network is not None:
            axis = 0 if self.engine.target.network.example_axis == -1 else -1
            classes = np.shape(test.one_hot[0])[axis]
        shape = (self.engine.copies, self.engine.num_rungs, self.examples, classes)
        self.ensemble, self.count = np.zeros(shape, np.float32), 0

    def take(self, moment: Moment, done: int, host: Host) -> None:
        """Score and keep what is due after `done` of the rounds that count."""
        if done % self.scoring.score_every == 0:
            if moment.predicted is not None:
                self.ensemble += moment.predicted[1]
                self.count += 1
            self._record(moment, "score", host)
        if done in self.kept_after:
            self._record(moment, "keep", host)
            self._keep(moment, host)

    def _record(self, moment: Moment, cadence: Cadence, host: Host) -> None:
        row = measured(self.observables, moment, cadence)
        if row:
            host.record(SERIES[cadence], {ROUND: int(moment.state.round), **row})

    def _keep(self, moment: Moment, host: Host) -> None:
        """Weights at the rungs that are kept, their replicas, and their predictions.

        The autocorrelation of replicas is computed from these.
        """
        engine, state, values = self.engine, moment.state, moment.path.values
        kept = kept_rungs(values, self.scoring.keep_temperatures)
        leaves = [jax.tree.leaves(engine.weights_at(state, rung)) for rung in kept]
        row = {
            ROUND: int(state.round),
            moment.path.parameter: values[kept],
            "replica": np.asarray(state.replica_at)[:, kept],
        }
        if moment.predicted is not None:
            row["predictions"] = moment.predicted[1][:, kept, :PREDICTIONS]
        parts = zip(*leaves, strict=True)
        host.keep(row | {f"leaf{i}": np.stack(part, axis=1) for i, part in enumerate(parts)})

    def arrays(self) -> dict[str, np.ndarray]:
        """The sums so far, for a checkpoint."""
        return {"ensemble": self.ensemble, "scores": np.asarray(self.count)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the sums from a checkpoint."""
        self.ensemble, self.count = np.array(arrays["ensemble"]), int(arrays["scores"])


def keep_rounds(rounds: int, keep: int) -> set[int]:
    """After which of the rounds that count weights are kept: evenly spaced, the last among them."""
    return {round(rounds * (i + 1) / keep) for i in range(keep)} if keep else {rounds}


def kept_rungs(temperatures: np.ndarray, wanted: tuple[float, ...]) -> np.ndarray:
    """The rungs nearest to the wanted temperatures, in log T; all of them if none is wanted."""
    if not wanted:
        return np.arange(len(temperatures))
    distance = np.abs(np.log(temperatures)[:, None] - np.log(np.asarray(wanted)))
    return np.unique(distance.argmin(axis=0))
