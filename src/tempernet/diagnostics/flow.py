"""Replica flow: how replicas wander between the ends of the ladder, followed round by round.

A replica has come "from the hot end" since it was last at the hottest rung and not yet at the
coldest. Replicas are alike, so a round trip of a copy is a crossing of the ladder upwards and one
downwards, whichever replicas made them: on average as many as replicas complete, without waiting
for the same one to return. In a well-mixing ladder the fraction of replicas that came from the hot
end falls evenly from the hottest rung to the coldest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

COLD, HOT = 1, 2
LAGS = 10, 40
"""Rounds over which `freedom` compares how far replicas get."""
REACH = 5
"""Rungs on either side of a pair whose replicas `sides_kept` follows; K / 8 if K is below 40."""


class Flow:
    """Counts for (copies, K) replicas; its arrays can be saved and restored."""

    def __init__(self, copies: int, rungs: int) -> None:
        self.label = np.zeros((copies, rungs), np.int8)
        """Which end each replica saw last: 0 neither, COLD or HOT."""
        self.up = np.zeros(copies, np.int64)
        """Crossings from the coldest rung to the hottest."""
        self.down = np.zeros(copies, np.int64)
        self.from_hot = np.zeros(rungs, np.int64)
        self.from_cold = np.zeros(rungs, np.int64)

    @classmethod
    def of(cls, replica: NDArray[np.integer], cold: int = 1) -> Flow:
        """The flow of a whole record.

        Args:
            replica: who sat at each rung, (rounds, copies, K).
            cold: how many rungs, from the coldest on, are the cold end.
        """
        flow = cls(*replica.shape[1:])
        for row in replica:
            flow.update(row, cold)
        return flow

    def update(self, replica: NDArray[np.integer], cold: int = 1) -> None:
        """Count one round.

        Args:
            replica: who sits at each rung, (copies, K).
            cold: how many rungs, from the coldest on, are the cold end.
        """
        if replica.shape[1] == 1:
            # One rung has no ends to travel between.
            return
        copies = np.arange(len(replica))
        coldest = (copies[:, None], replica[:, :cold])
        hottest = (copies, replica[:, -1])
        self.down += (self.label[coldest] == HOT).sum(axis=1)
        self.up += self.label[hottest] == COLD
        self.label[coldest] = COLD
        self.label[hottest] = HOT
        at = np.take_along_axis(self.label, replica.astype(np.int64), axis=1)
        self.from_hot += (at == HOT).sum(axis=0)
        self.from_cold += (at == COLD).sum(axis=0)

    @property
    def round_trips(self) -> NDArray[np.int64]:
        """Round trips of each copy, (copies,)."""
        return np.minimum(self.up, self.down)

    @property
    def fraction_from_hot(self) -> NDArray[np.float64]:
        """The share of replicas that saw the hot end last, among those that have seen one: (K,).

        NaN at rungs where none of these passed.
        """
        with np.errstate(invalid="ignore"):
            return self.from_hot / (self.from_hot + self.from_cold)

    def arrays(self) -> dict[str, NDArray[np.integer]]:
        """All counts by name, copied, for a checkpoint."""
        return {f"flow_{name}": np.array(value) for name, value in vars(self).items()}

    def restore(self, arrays: Mapping[str, NDArray[np.integer]]) -> None:
        """Restore the counts from a checkpoint."""
        for name, value in vars(self).items():
            value[...] = arrays[f"flow_{name}"]


def bottleneck(fraction_from_hot: NDArray[np.float64]) -> tuple[int, int] | None:
    """The rungs between which replicas turn back, or None if there are no such rungs.

    In even flow the fraction that came from the hot end falls from 3/4 to 1/4 over half of the
    ladder. Where that takes less than a quarter, replicas hardly pass however often they swap:
    they are in one state below, in another above, and seldom change.

    Args:
        fraction_from_hot: (K,), as in `Flow.fraction_from_hot`.
    """
    cold = np.flatnonzero(fraction_from_hot <= 0.25)
    hot = np.flatnonzero(fraction_from_hot >= 0.75)
    if not len(cold) or not len(hot):
        return None
    low, high = int(cold[-1]), int(hot[0])
    return (low, high) if 0 < high - low < (len(fraction_from_hot) - 1) / 4 else None


def freedom(replica: NDArray[np.integer]) -> float:
    """The power of time by which replicas spread over the rungs.

    Replicas that decorrelate within a round diffuse: their mean square displacement grows in
    proportion to time, a power of 1. Those that stay in their mode turn back to the rungs they came
    from, however often they swap, and the power is near 0: subdiffusion. NaN if the record is
    too short to tell, or the ladder so short that its ends tell instead.

    Args:
        replica: who sat at each rung, (rounds, copies, K).
    """
    short, long = LAGS
    rounds, _, rungs = replica.shape
    if rounds < 4 * long:
        return np.nan
    # Rounds in between tell little more, and those of a run of days would fill the memory.
    rung = np.argsort(replica[::short], axis=2)
    near, far = (
        np.mean(np.square(rung[lag:] - rung[:-lag], dtype=np.float64)) for lag in (1, long // short)
    )
    # Replicas that are anywhere have (K^2 - 1) / 6.
    if not 0 < far < rungs**2 / 12:
        return np.nan
    return float(np.log(far / near) / np.log(long / short))


def sides_kept(replica: NDArray[np.integer]) -> NDArray[np.float64]:
    """The share of replicas on their old side of each pair of rungs, half a record later: (K - 1,).

    P(below | was below) - P(below | was above), for replicas that were within reach of the pair. It
    is 1 where nothing passes and 0 where sides have decorrelated; free diffusion that has got sigma
    rungs away leaves about 2 / sigma. Replicas of two kinds with a transition between them keep
    their sides however often neighbours swap, and copies may agree on how many there are of each
    kind because none has changed. NaN if the record is too short.

    Args:
        replica: who sat at each rung, (rounds, copies, K).
    """
    rounds, _, rungs = replica.shape
    lag, reach = rounds // 2, max(1, min(REACH, rungs // 8))
    if rounds < 2:
        return np.full(rungs - 1, np.nan)
    # A thousand moments tell as much as all of them.
    moments = np.unique(np.linspace(0, rounds - lag - 1, 1000).astype(int))
    before, after = (np.argsort(replica[moments + later], axis=2) for later in (0, lag))
    kept = np.empty(rungs - 1)
    for pair in range(rungs - 1):
        below = after <= pair
        was_below = (before <= pair) & (before > pair - reach)
        was_above = (before > pair) & (before <= pair + reach)
        kept[pair] = below[was_below].mean() - below[was_above].mean()
    return kept
