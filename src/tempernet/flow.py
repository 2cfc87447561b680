"""Replica flow: how replicas wander between the ends of the ladder, followed round by round.

A replica has come "from the hot end" since it was last at the hottest rung and not yet at the coldest. A round trip is
counted when it is back at the end that it saw first, having seen the other one. In a well-mixing ladder the
fraction of replicas that came from the hot end falls evenly from the hottest rung to the coldest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

COLD, HOT = 1, 2


class Flow:
    """Counts for (copies, K) replicas; its arrays can be saved and restored."""

    def __init__(self, copies: int, rungs: int) -> None:
        self.label = np.zeros((copies, rungs), np.int8)
        """Which end each replica saw last: 0 neither, COLD or HOT."""
        self.home = np.zeros((copies, rungs), np.int8)
        """Which end each replica saw first."""
        self.round_trips = np.zeros(copies, np.int64)
        self.from_hot = np.zeros(rungs, np.int64)
        self.from_cold = np.zeros(rungs, np.int64)

    def update(self, replica: np.ndarray) -> None:
        """One round: `replica` (copies, K) is who sits at each rung."""
        if replica.shape[1] == 1:
            # One rung has no ends to travel between.
            return
        copies = np.arange(len(replica))
        for end, at_end in ((COLD, replica[:, 0]), (HOT, replica[:, -1])):
            crossed = self.label[copies, at_end] == (HOT if end == COLD else COLD)
            self.round_trips += crossed & (self.home[copies, at_end] == end)
            self.label[copies, at_end] = end
            home = self.home[copies, at_end]
            self.home[copies, at_end] = np.where(home == 0, end, home)
        at = np.take_along_axis(self.label, replica.astype(np.int64), axis=1)
        self.from_hot += (at == HOT).sum(axis=0)
        self.from_cold += (at == COLD).sum(axis=0)

    @property
    def fraction_from_hot(self) -> np.ndarray:
        """Of the replicas that have seen an end, those that saw the hot one last: (K,), NaN where none passed."""
        with np.errstate(invalid="ignore"):
            return self.from_hot / (self.from_hot + self.from_cold)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {f"flow_{name}": np.array(value) for name, value in vars(self).items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """From a checkpoint."""
        for name, value in vars(self).items():
            value[...] = arrays[f"flow_{name}"]
