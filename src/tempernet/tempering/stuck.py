"""Replicas that accept nothing for long, and energies that are not finite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tempernet.errors import NumericsError
from tempernet.paths.path import Path
from tempernet.tempering.rounds import Record

STUCK_ROUNDS = 50
"""Rounds without an accepted trajectory after which a replica counts as stuck."""


class Stuck:
    """For how many rounds each replica has accepted nothing."""

    def __init__(self, copies: int, rungs: int, trajectories: int) -> None:
        self.still = np.zeros((copies, rungs), np.int32)
        """Rounds since each replica last accepted a trajectory: (copies, K)."""
        self.trajectories = trajectories
        """Trajectories of a round."""

    def watch(self, record: Record, path: Path) -> str:
        """Count a round; return a warning about replicas that are stuck, now and then.

        If all of them are, no samples are better than these: a NumericsError.
        """
        rejected = np.asarray(record.info.accepted) == 0
        replica = np.asarray(record.replica)
        before = np.take_along_axis(self.still, replica, axis=1)
        np.put_along_axis(self.still, replica, np.where(rejected, before + 1, 0), axis=1)
        everywhere = self.still.min() >= STUCK_ROUNDS
        longest = self.still.min() if everywhere else self.still.max()
        if longest < STUCK_ROUNDS or longest % STUCK_ROUNDS:
            return ""
        worst = int(np.argmax(np.where(rejected, before, -1)))
        copy, rung = (int(i) for i in np.unravel_index(worst, rejected.shape))
        told = f"{place_of(path, copy, rung)}: {self._cause(record, copy, rung)}"
        if everywhere:
            raise NumericsError(
                f"no replica has accepted a trajectory for {longest} rounds; {told}"
            )
        number = int((self.still >= STUCK_ROUNDS).sum())
        return f"{number} replicas have accepted nothing for {STUCK_ROUNDS} rounds or more; {told}"

    def arrays(self) -> dict[str, np.ndarray]:
        """The position, for a checkpoint."""
        return {"still": self.still}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the position from a checkpoint."""
        self.still = np.array(arrays["still"])

    def _cause(self, record: Record, copy: int, rung: int) -> str:
        """What is known about why the trajectories of a round were rejected."""
        walls = int(record.info.wall_rejections[copy, rung])
        nonfinite = int(record.info.nonfinite[copy, rung])
        if nonfinite:
            ended = "in an energy that is not finite"
            return f"{nonfinite} of {self.trajectories} trajectories ended {ended}"
        if walls:
            ended = "outside the walls; reflecting walls would let it move"
            return f"{walls} of {self.trajectories} trajectories ended {ended}"
        return (
            "the energy rejects all of them: the step size is too large there; a longer burn-in "
            "tunes it again"
        )


def must_be_finite(record: Record, path: Path, done: int) -> None:
    """Refuse a round that ended in an energy that is not finite.

    Args:
        record: of the round.
        path: whose rungs the message names.
        done: rounds before it.
    """
    bad = np.argwhere(~np.isfinite(record.phi).all(axis=-1))
    if len(bad):
        copy, rung = (int(i) for i in bad[0])
        raise NumericsError(
            f"the energy of {place_of(path, copy, rung)} is not finite after round {done}; nothing "
            "of this round is kept: check the energy function and the data"
        )


def place_of(path: Path, copy: int, rung: int) -> str:
    """A copy and a rung in words."""
    symbol = {"temperature": "T"}.get(path.parameter, path.parameter)
    return f"copy {copy} at {symbol} = {path.values[rung]:.4g}"
