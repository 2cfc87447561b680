"""Where an annealing run is: all that its next round depends on, and what it would go back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from tempernet.annealing.stopping import Course, follow
from tempernet.model.networks import Weights
from tempernet.tempering.rounds import State
from tempernet.tempering.tuning import Search


@dataclass
class Position:
    """The state of the replicas, the search for a step size, and the best networks so far."""

    state: State
    step_size: float
    """Reduced: eps = dt sqrt(T)."""
    search: Search
    losses: np.ndarray
    """Validation losses of all temperatures that are over: (temperatures, replicas, draws)."""
    course: Course = field(default_factory=lambda: Course(None, 0, False))
    drawn: list[tuple[np.ndarray, Weights]] = field(default_factory=list)
    """Losses (replicas,) and weights of the scores so far at this temperature."""
    ensemble: list[Weights] = field(default_factory=list)
    """Weights of all scores at the best temperature that is over, each (replicas, ...)."""
    chosen: Weights | None = None
    """The one network of least validation loss."""
    chosen_loss: float = np.inf
    """Its validation loss."""

    @property
    def round(self) -> int:
        """Rounds done at all temperatures."""
        return int(self.state.round)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the state, for a checkpoint."""
        chosen = [] if self.chosen is None else [self.chosen]
        search = {f"search_{name}": np.asarray(value) for name, value in _items(self.search)}
        return {
            "step_size": np.asarray(self.step_size),
            **search,
            "losses": self.losses,
            "chosen_loss": np.asarray(self.chosen_loss),
            "drawn_losses": np.array([losses for losses, _ in self.drawn]),
            **_packed("drawn", [weights for _, weights in self.drawn]),
            **_packed("ensemble", self.ensemble),
            **_packed("chosen", chosen),
        }

    @classmethod
    def restored(
        cls, state: State, arrays: Mapping[str, np.ndarray], like: Weights, patience: int
    ) -> Position:
        """A position from a checkpoint.

        Args:
            state: of the replicas.
            arrays: what `arrays` gave.
            like: the shapes of one replica's weights.
            patience: of the schedule.
        """
        search: dict[str, Any] = {name: arrays[f"search_{name}"] for name in Search._fields}
        search["steps"] = int(search["steps"])
        drawn = zip(arrays["drawn_losses"], _unpacked("drawn", arrays, like), strict=True)
        chosen = _unpacked("chosen", arrays, like)
        return cls(
            state,
            float(arrays["step_size"]),
            Search(**search),
            arrays["losses"],
            follow(arrays["losses"], patience),
            list(drawn),
            _unpacked("ensemble", arrays, like),
            chosen[0] if chosen else None,
            float(arrays["chosen_loss"]),
        )


def stacked(parts: list[Weights]) -> Weights:
    """Weights of several draws, a leading axis of replicas each, as one list of networks."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _items(search: Search) -> list[tuple[str, np.ndarray | int]]:
    return list(search._asdict().items())


def _packed(name: str, trees: list[Weights]) -> dict[str, np.ndarray]:
    """Weights of several draws as arrays with an axis of draws; nothing for none."""
    leaves = zip(*(jax.tree.leaves(tree) for tree in trees), strict=True)
    return {f"{name}{i}": np.stack(parts) for i, parts in enumerate(leaves)}


def _unpacked(name: str, arrays: Mapping[str, np.ndarray], like: Weights) -> list[Weights]:
    if f"{name}0" not in arrays:
        return []
    leaves = [arrays[f"{name}{i}"] for i in range(len(jax.tree.leaves(like)))]
    structure = jax.tree.structure(like)
    return [
        jax.tree.unflatten(structure, [leaf[draw] for leaf in leaves])
        for draw in range(len(leaves[0]))
    ]
