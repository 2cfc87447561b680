"""Standard optimisation (Sec. 3.4): many independent starts, and the best of them kept.

The paper repeats the minimisation until 100 weight vectors have E = 0, or keeps the 100 of least E.
E = 0 is meant as it stands: in float32 the loss of an example is exactly 0 once no wrong class has
a probability above 2^-24 = 6e-8, and FIRE gets there with all images of D_50 and D_500. A
`tolerance` of the minimiser asks for less. Which starts are kept does not depend on how many run at
once: those that reached E = 0, as they come, then the others by their energy.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.model.networks import Network, Weights
from tempernet.optimise.minimise import Minimum

STEPS_SHOWN = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Quantiles of the gradients a start took."""


class Pool(NamedTuple):
    """The best starts so far, best first; leading axis starts everywhere."""

    number: np.ndarray
    """Which start it was, from 0: (starts,)."""
    energy: np.ndarray
    """(starts,)."""
    gradients: np.ndarray
    """Gradient evaluations it took, (starts,)."""
    reached: np.ndarray
    """Whether its energy came down to the tolerance, (starts,)."""
    weights: Weights
    """Where it ended: (starts, ...) each leaf."""

    @classmethod
    def of(cls, found: Minimum, first: int, limit: int) -> Pool:
        """What a batch of starts found.

        Args:
            found: the minima, with a leading axis of starts.
            first: number of the first of them.
            limit: no start from this number on is taken.
        """
        found = jax.device_get(found)
        energy = np.asarray(found.point.energy)
        every = cls(
            np.arange(first, first + len(energy)),
            energy,
            np.asarray(found.gradients),
            np.asarray(found.reached),
            found.point.weights,
        )
        return every.taken(np.flatnonzero(every.number < limit))

    def best(self, keep: int) -> Pool:
        """The `keep` best: those that reached the tolerance as they came, then by energy."""
        left = np.where(self.reached, 0.0, self.energy)
        # NaN last.
        left = np.where(np.isnan(left), np.inf, left)
        order = np.lexsort((self.number, left, ~self.reached))
        return self.taken(order[:keep])

    def joined(self, other: Pool) -> Pool:
        """The starts of both."""
        both: Pool = jax.tree.map(lambda a, b: np.concatenate([a, b]), self, other)
        return both

    def taken(self, rows: np.ndarray) -> Pool:
        """The starts in these rows."""
        some: Pool = jax.tree.map(lambda leaf: leaf[rows], self)
        return some


def enough(reached: int, keep: int, started: int, starts: int) -> bool:
    """Whether to stop: as many as wanted have reached E = 0, or all starts are used up."""
    return reached >= keep or started >= starts


class Spread(NamedTuple):
    """Mean of a number over the starts kept, its standard deviation, and the mean's error."""

    mean: float
    std: float
    error: float


def spread(values: np.ndarray) -> Spread:
    """Mean and spread of values (starts,) over independent starts."""
    values = np.asarray(values, np.float64)
    std = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return Spread(float(values.mean()), std, std / np.sqrt(len(values)))


def success_rate(reached: int, started: int) -> Estimate:
    """The share of starts that reached E = 0, and its error.

    The error is not 0 if all or none did (Agresti and Coull).
    """
    share = (reached + 2) / (started + 4)
    error = np.sqrt(share * (1 - share) / (started + 4))
    return Estimate(np.asarray(reached / started), np.asarray(error))


def widest(network: Network, weights: Weights) -> np.ndarray:
    """max_i |w_i| sqrt(k_i) of each network, (networks,): how far its widest weight has gone.

    It is in units of the range of the initialisation. By this number Sec. 3.2 chose the widths of
    the priors.

    Args:
        network: says k.
        weights: with a leading axis of networks.
    """

    def of_leaf(leaf: np.ndarray, fan_in: int) -> np.ndarray:
        distance = np.abs(np.asarray(leaf, np.float64)).reshape(len(leaf), -1)
        farthest: np.ndarray = distance.max(axis=1) * np.sqrt(fan_in)
        return farthest

    by_leaf = jax.tree.leaves(jax.tree.map(of_leaf, weights, network.fan_in()))
    widest_of_all: np.ndarray = np.max(by_leaf, axis=0)
    return widest_of_all
