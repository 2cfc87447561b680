"""What can be read off the state of an engine: energies, weights, scores."""

from __future__ import annotations

from typing import TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from tempernet.devices.mesh import Layout
from tempernet.errors import check_type
from tempernet.model.networks import Weights
from tempernet.model.scores import Score
from tempernet.model.target import Batch
from tempernet.tempering.programs import Programs
from tempernet.tempering.rounds import State
from tempernet.tempering.scorer import Scorer

T = TypeVar("T")


class Reader:
    """Reads the states of replicas that are laid out as the programs say."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._scorer = Scorer(programs.target.network, programs.layout)

    @property
    def layout(self) -> Layout:
        """Where the replicas are."""
        return self._programs.layout

    @property
    def num_rungs(self) -> int:
        """K, the number of rungs."""
        return self._programs.path.num_rungs

    @property
    def num_replicas(self) -> int:
        """R = copies x K."""
        return self._programs.copies * self.num_rungs

    def score(self, state: State, held_out: Batch) -> Score:
        """Loss and accuracy on a set from `hold_out`, in the order of rungs: (copies, K)."""
        check_type("held_out", held_out, Batch, "what tempernet.hold_out gives")
        score = self._scorer.score(state.kernel.point.weights, held_out)
        return self._by_rung(state, self._fetched(score))

    def predict(self, state: State, held_out: Batch) -> tuple[Score, np.ndarray]:
        """As `score`, and the softmax outputs of every rung: (copies, K, examples, classes)."""
        check_type("held_out", held_out, Batch, "what tempernet.hold_out gives")
        found = self._scorer.predict(state.kernel.point.weights, held_out)
        score, probabilities = self._by_rung(state, self._fetched(found))
        counts = np.asarray(held_out.weight).reshape(-1) > 0
        return score, np.asarray(probabilities)[:, :, counts]

    def energies(self, state: State) -> NDArray[np.float64]:
        """E of all replicas, in their own order: (copies, K)."""
        energies = np.asarray(self._fetched(state.kernel.point.energy), np.float64)
        return energies.reshape(self._programs.copies, self.num_rungs)

    def weights(self, state: State) -> Weights:
        """The weights of all replicas on the host, in their own order: leading axis R."""
        return self._fetched(state.kernel.point.weights)

    def weights_at(self, state: State, rung: int) -> Weights:
        """The weights that sit at a rung: leading axis copies."""
        rows = self._rows_by_rung(state)[:, rung]
        return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.kernel.point.weights)

    def mean_squares(self, state: State) -> np.ndarray:
        """Mean square weight of each layer in units of the prior's: (copies, K, layers).

        A layer is a child of the weights' pytree. The unit is the half-width of a box, where the
        prior itself has 1/3, or the standard deviation of a Gaussian, where it has 1.
        """
        squares = self._programs.mean_squares(state.kernel.point.weights)
        return np.asarray(self._by_rung(state, self._fetched(squares)))

    def _by_rung(self, state: State, by_replica: T) -> T:
        """Arrays in the order of replicas (R, ...) in the order of rungs: (copies, K, ...)."""
        rows = self._rows_by_rung(state)
        ordered: T = jax.tree.map(lambda leaf: leaf[rows], by_replica)
        return ordered

    def _rows_by_rung(self, state: State) -> NDArray[np.intp]:
        """The row of the replica that sits at each rung: (copies, K)."""
        first = np.arange(self._programs.copies)[:, None] * self.num_rungs
        return np.asarray(first + np.asarray(state.replica_at), np.intp)

    def _fetched(self, tree: T) -> T:
        """Arrays on the host, without the padding.

        Every operation on arrays that are spread over devices is one more program that all of them
        have to run. With many on their way, a device was seen to wait in an all-gather, for ever,
        for one that had no room to begin it.
        """
        host: T = jax.tree.map(lambda leaf: np.asarray(leaf)[: self.num_replicas], tree)
        return host
