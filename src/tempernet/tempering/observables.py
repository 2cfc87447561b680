"""Observables: what a run records, each declared once with its name, axes, cadence and unit.

The sampler measures them, the store keeps them, the results name their axes, the plan counts their
bytes and the exports carry their units, all from the declarations here. To record something more,
add one `Observable` to `OBSERVABLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jax import Array

from tempernet.model.scores import Score
from tempernet.model.target import Batch
from tempernet.paths.path import Path
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import Record, State

Axis = Literal["copy", "rung", "pair", "layer"]
Cadence = Literal["round", "score", "keep"]
SERIES: dict[Cadence, str] = {"round": "rounds", "score": "scores", "keep": "full"}
"""Cadence -> the series of records that holds what is measured at it."""
ROUND = "round"
"""The column of `scores` and `full` that says after which round they were measured."""


class HeldOut(NamedTuple):
    """Held-out examples as the engine scores them (see `hold_out`); None where there are none."""

    test: Batch | None = None
    """The part of the test set that is scored during the run."""
    validation: Batch | None = None
    all_test: Batch | None = None
    """The whole test set, scored a few times."""


NOTHING = HeldOut()


class Moment:
    """The end of a round: its state and record, and what is computed from them, each thing once."""

    def __init__(
        self,
        engine: Engine,
        state: State,
        record: Record,
        path: Path,
        step_sizes: np.ndarray,
        held_out: HeldOut = NOTHING,
    ) -> None:
        self.engine, self.state, self.record = engine, state, record
        self.path, self.step_sizes, self.held_out = path, step_sizes, held_out

    @cached_property
    def mean_squares(self) -> np.ndarray:
        """Mean square weight of each layer, (copies, K, layers)."""
        return self.engine.mean_squares(self.state)

    @cached_property
    def predicted(self) -> tuple[Score, np.ndarray] | None:
        """Scores on the part of the test set; softmax outputs (copies, K, examples, classes)."""
        test = self.held_out.test
        return None if test is None else self.engine.predict(self.state, test)

    @property
    def test(self) -> Score | None:
        """Scores on the part of the test set, as the ensemble's predictions are made."""
        return None if self.predicted is None else self.predicted[0]

    @cached_property
    def part_test(self) -> Score | None:
        """Scores on the part of the test set, by the program that scores the whole."""
        return self._scored(self.held_out.test)

    @cached_property
    def validation(self) -> Score | None:
        """Scores on validation examples, (copies, K) each."""
        return self._scored(self.held_out.validation)

    @cached_property
    def all_test(self) -> Score | None:
        """Scores on the whole test set, (copies, K) each."""
        return self._scored(self.held_out.all_test)

    def _scored(self, examples: Batch | None) -> Score | None:
        return None if examples is None else self.engine.score(self.state, examples)


@dataclass(frozen=True)
class Observable:
    """A quantity that a run records.

    Attributes:
        name: of the array in records and in every export.
        axes: of one measurement, in order.
        measure_fn: the moment it is measured at -> an array with these axes, None where the run has
            no such thing.
        unit: "nats", "1" for pure numbers and counts.
        meaning: what it is, in a few words.
        cadence: after every round, whenever held-out examples are scored, or when weights are kept.
        dtype: as it is stored.
        judged: whether the verdict looks at it.
    """

    name: str
    axes: tuple[Axis, ...]
    measure_fn: Callable[[Moment], np.ndarray | Array | None]
    unit: str
    meaning: str
    cadence: Cadence = "round"
    dtype: str = "float32"
    judged: bool = False

    def num_bytes(self, sizes: Mapping[Axis, int]) -> int:
        """Bytes of one measurement, given the length of each axis."""
        number = 1
        for axis in self.axes:
            number *= sizes[axis]
        return number * np.dtype(self.dtype).itemsize


def _score(
    name: str, part: str, field: Literal["loss", "accuracy"], where: str, cadence: Cadence
) -> Observable:
    def measure(moment: Moment) -> np.ndarray | None:
        score: Score | None = getattr(moment, part)
        return None if score is None else np.asarray(getattr(score, field))

    unit, what = {"loss": ("nats", "mean loss"), "accuracy": ("1", "accuracy")}[field]
    meaning = f"{what} on {where}"
    judged = cadence == "score" and field == "loss"
    return Observable(name, RUNG, measure, unit, meaning, cadence, judged=judged)


RUNG: tuple[Axis, ...] = ("copy", "rung")
PAIR: tuple[Axis, ...] = ("copy", "pair")

OBSERVABLES: list[Observable] = [
    Observable(
        "time_step",
        ("rung",),
        lambda m: m.path.time_steps(m.step_sizes),
        "1",
        "the paper's dt",
        dtype="float64",
    ),
    Observable(
        "num_steps",
        ("rung",),
        lambda m: m.engine.dynamics.steps_of(m.step_sizes, ~m.path.exact),
        "1",
        "Verlet steps of a trajectory, L",
        dtype="int32",
    ),
    Observable(
        "acceptance",
        RUNG,
        lambda m: m.record.info.acceptance,
        "1",
        "mean acceptance probability of the round's trajectories",
    ),
    Observable(
        "accepted",
        RUNG,
        lambda m: m.record.info.accepted,
        "1",
        "trajectories accepted",
        dtype="int32",
    ),
    Observable(
        "wall_rejections",
        RUNG,
        lambda m: m.record.info.wall_rejections,
        "1",
        "trajectories that ended outside the box",
        dtype="int32",
    ),
    Observable(
        "nonfinite",
        RUNG,
        lambda m: m.record.info.nonfinite,
        "1",
        "trajectories that ended in an energy that is not finite",
        dtype="int32",
    ),
    Observable(
        "replica",
        RUNG,
        lambda m: m.record.replica,
        "1",
        "the replica of the copy at the rung during the round",
        dtype="int32",
    ),
    Observable(
        "swap_attempts",
        PAIR,
        lambda m: m.record.swaps.attempts,
        "1",
        "swaps tried between a rung and the next",
        dtype="int32",
    ),
    Observable(
        "swap_accepts",
        PAIR,
        lambda m: m.record.swaps.accepts,
        "1",
        "swaps accepted",
        dtype="int32",
    ),
    Observable(
        "swap_probability",
        PAIR,
        lambda m: m.record.swaps.probability,
        "1",
        "sum of the swap probabilities of the attempts",
    ),
    Observable(
        "mean_square",
        ("copy", "rung", "layer"),
        lambda m: m.mean_squares,
        "prior's half-width or standard deviation, squared",
        "mean square weight of a layer",
        judged=True,
    ),
    _score("test_loss", "test", "loss", "the scored part of the test set", "score"),
    _score("test_accuracy", "test", "accuracy", "the scored part of the test set", "score"),
    _score("validation_loss", "validation", "loss", "validation examples", "score"),
    _score("validation_accuracy", "validation", "accuracy", "validation examples", "score"),
    _score("full_test_loss", "all_test", "loss", "the whole test set", "keep"),
    _score("full_test_accuracy", "all_test", "accuracy", "the whole test set", "keep"),
    _score("part_test_loss", "part_test", "loss", "the scored part of the test set", "keep"),
    _score(
        "part_test_accuracy", "part_test", "accuracy", "the scored part of the test set", "keep"
    ),
]
"""All observables that do not depend on the path."""


def of_path(path: Path) -> list[Observable]:
    """The observables of a run on a path: the value of each rung, its energy terms, all others."""

    where = Observable(
        path.parameter,
        ("rung",),
        lambda m: m.path.values,
        "1",
        "value of the rung",
        dtype="float64",
    )
    return [where, *(energy_term(name, m) for m, name in enumerate(path.terms)), *OBSERVABLES]


def energy_term(name: str, number: int) -> Observable:
    """The energy term of this number, after the trajectories and before the exchange."""

    def measure(moment: Moment) -> np.ndarray:
        return np.asarray(moment.record.phi[..., number])

    return Observable(name, RUNG, measure, "nats", f"energy term: {name}", judged=True)


def measured(
    observables: Iterable[Observable], moment: Moment, cadence: Cadence
) -> dict[str, np.ndarray | Array]:
    """A row of records: name -> measurement.

    Args:
        observables: of the run.
        moment: when they are measured.
        cadence: which of them; those that the run does not have are left out.
    """
    found = {o.name: o.measure_fn(moment) for o in observables if o.cadence == cadence}
    return {name: value for name, value in found.items() if value is not None}


def row_bytes(
    observables: Iterable[Observable], cadence: Cadence, sizes: Mapping[Axis, int]
) -> int:
    """Bytes of one row of a cadence.

    Args:
        observables: of the run.
        cadence: which of them.
        sizes: the length of each axis.
    """
    return sum(o.num_bytes(sizes) for o in observables if o.cadence == cadence)
