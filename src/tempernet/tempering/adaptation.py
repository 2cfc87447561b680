"""Adaptation: what burn-in does to the step sizes and to the places of the rungs.

Burn-in is a few stages, each twice as long as the one before. Within a stage the acceptance of
every round improves the step sizes; between stages the rungs of an adaptive path move to where the
barrier measured in the stage puts them. The last half of burn-in runs on the path that the samples
are taken on, and at its end the step sizes are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tempernet.paths.ladders import Barrier, interpolate_steps, measure_barrier, place
from tempernet.paths.path import Path
from tempernet.tempering import tuning as rules
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import Record, Rungs, State
from tempernet.tempering.tuning import Tuning

FIRST_TRAJECTORIES = 8
"""Trajectories of a rung, summed over copies, for a first guess of its step size.

They count once the search has turned around a few times.
"""
SETTLING = 3
"""The first 1/3 of a stage is not measured: the rungs have just moved."""


@dataclass
class Measured:
    """Sums over the rounds of a stage, for the barrier and for what is shown.

    Swaps are of pairs, (K-1,), `phi` is of energy terms, (K, M), and `acceptance` of rungs, (K,).
    """

    swap_probability: np.ndarray
    swap_attempts: np.ndarray
    phi: np.ndarray
    acceptance: np.ndarray
    rounds: np.ndarray

    @classmethod
    def none(cls, path: Path) -> Measured:
        """Nothing measured yet."""
        rungs, terms = path.coefficients.shape
        pairs = np.zeros(rungs - 1)
        return cls(pairs, pairs.copy(), np.zeros((rungs, terms)), np.zeros(rungs), np.zeros(()))

    def add(self, record: Record) -> None:
        """One more round, averaged over copies."""
        self.swap_probability += record.swaps.probability.sum(axis=0)
        self.swap_attempts += record.swaps.attempts.sum(axis=0)
        self.phi += np.asarray(record.phi, np.float64).mean(axis=0)
        self.acceptance += record.info.acceptance.mean(axis=0)
        self.rounds += 1

    @property
    def swap_rate(self) -> np.ndarray:
        """Mean swap probability of each pair; NaN where none was tried."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.swap_probability / self.swap_attempts)

    @property
    def mean_acceptance(self) -> np.ndarray:
        """Mean acceptance of each rung, (K,); 0 if nothing was measured."""
        return self.acceptance / max(float(self.rounds), 1.0)


@dataclass
class Adaptation:
    """Where the rungs are, how large their steps, and how far the stage at hand is."""

    path: Path
    step_sizes: np.ndarray
    """Reduced step sizes, (K,)."""
    search: rules.Search
    measured: Measured

    @classmethod
    def begin(cls, engine: Engine) -> Adaptation:
        """At the engine's path, with step sizes that are still to be found."""
        step_sizes = np.full(engine.num_rungs, engine.first_step)
        search = rules.start_search(step_sizes, engine.largest_step)
        return cls(engine.path, step_sizes, search, Measured.none(engine.path))

    def rungs(self, engine: Engine) -> Rungs:
        """As the engine wants them."""
        return engine.rungs(self.step_sizes, self.path)

    def guess(self, engine: Engine, state: State, tuning: Tuning) -> State:
        """A first guess of the step sizes, by a few trajectories.

        Args:
            engine: what samples.
            state: where its replicas are.
            tuning: the window of the acceptance.

        Returns:
            The state in which the trajectories end; they count as burn-in of it.
        """
        roughly = replace(
            tuning, search_trajectories=FIRST_TRAJECTORIES, check_trajectories=1, max_checks=1
        )
        return self.tune(engine, state, roughly)[0]

    def tune(self, engine: Engine, state: State, tuning: Tuning) -> tuple[State, np.ndarray]:
        """Tune the step sizes by trajectories that are no part of the run.

        Args:
            engine: what samples.
            state: where its replicas are.
            tuning: the window of the acceptance, and how long to search.

        Returns:
            The state in which the trajectories end, and the acceptance of each rung, (K,).
        """
        moved, rungs, acceptance = engine.tune(state, self.rungs(engine), tuning)
        self.step_sizes = np.asarray(rungs.step_sizes, np.float64)
        return moved, acceptance

    def learn(self, record: Record, tuning: Tuning, largest: float) -> None:
        """Improve the step sizes by the acceptance of a round of burn-in."""
        acceptance = np.asarray(record.info.acceptance).mean(axis=0)
        self.search = rules.search_step(self.search, acceptance, tuning, largest)
        self.step_sizes = np.exp(self.search.log_step)

    def settle(self, largest: float) -> None:
        """Take the step sizes that the stage has found."""
        self.step_sizes = rules.found(self.search, largest)

    def move(self) -> Barrier:
        """Move the rungs to equal steps of the barrier that the stage has measured; return it."""
        measured = self.measured
        barrier = measure_barrier(self.path, measured.swap_rate, measured.phi / measured.rounds)
        moved = self.path.moved(place(barrier, self.path.num_rungs))
        self.step_sizes = interpolate_steps(self.path, self.step_sizes, moved)
        self.path = moved
        return barrier

    def begin_stage(self, largest: float) -> None:
        """Begin to measure anew."""
        self.search = rules.start_search(self.step_sizes, largest, near=True)
        self.measured = Measured.none(self.path)

    def arrays(self) -> dict[str, np.ndarray]:
        """The position, for a checkpoint."""
        found = {
            f"measured_{name}": np.asarray(value) for name, value in vars(self.measured).items()
        }
        found |= {
            f"search_{name}": np.asarray(value) for name, value in self.search._asdict().items()
        }
        return found | {"path_values": self.path.values, "step_sizes": self.step_sizes}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the position from a checkpoint."""
        self.path = self.path.moved(arrays["path_values"])
        self.step_sizes = arrays["step_sizes"]
        searched: dict[str, Any] = {name: arrays[f"search_{name}"] for name in rules.Search._fields}
        self.search = rules.Search(**{**searched, "steps": int(searched["steps"])})
        self.measured = Measured(
            **{name: np.array(arrays[f"measured_{name}"]) for name in vars(self.measured)}
        )


def stage_ends(burn_in: int, *, stages: bool = True) -> list[int]:
    """Rounds at which a stage of burn-in begins or ends, increasing.

    They are 0, three more whose distance doubles, and the end of burn-in.

    Args:
        burn_in: rounds of burn-in.
        stages: whether there are stages; if not, only 0 and the end are given.
    """
    inner = {burn_in // 8, burn_in // 4, burn_in // 2} if stages else set()
    return sorted({0, *inner, burn_in})


def is_measured(ends: list[int], done: int) -> bool:
    """Whether the round after `done` others counts for what its stage measures.

    The first third of a stage does not.
    """
    start = max((end for end in ends if end <= done), default=0)
    end = min((end for end in ends if end > done), default=None)
    return end is None or done - start >= (end - start) // SETTLING
