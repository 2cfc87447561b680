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
    """Which start it was, from 0."""
    energy: np.ndarray
    gradients: np.ndarray
    reached: np.ndarray
    weights: Weights

    @classmethod
    def of(cls, found: Minimum, first: int, limit: int) -> Pool:
        """What a batch found whose first start has this number; no start from number `limit` on is
        taken.
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
        """The `keep` best: those that reached the tolerance as they came, then by energy, NaN last."""
        left = np.where(self.reached, 0.0, self.energy)
        order = np.lexsort((self.number, np.where(np.isnan(left), np.inf, left), ~self.reached))
        return self.taken(order[:keep])

    def joined(self, other: Pool) -> Pool:
        """The starts of both."""
        return jax.tree.map(lambda a, b: np.concatenate([a, b]), self, other)

    def taken(self, rows: np.ndarray) -> Pool:
        """These rows."""
        return jax.tree.map(lambda leaf: leaf[rows], self)


def enough(reached: int, keep: int, started: int, starts: int) -> bool:
    """Whether to stop: as many as wanted have reached E = 0, or all starts are used up."""
    return reached >= keep or started >= starts


class Spread(NamedTuple):
    """Of a number over the starts kept: mean, standard deviation, and the standard error of the
    mean.
    """

    mean: float
    std: float
    error: float


def spread(values: np.ndarray) -> Spread:
    """Mean and spread over independent starts."""
    values = np.asarray(values, np.float64)
    std = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return Spread(float(values.mean()), std, std / np.sqrt(len(values)))


def success_rate(reached: int, started: int) -> Estimate:
    """The share of starts that reached E = 0, and its error, which is not 0 if all or none did
    (Agresti and Coull).
    """
    share = (reached + 2) / (started + 4)
    return Estimate(
        np.asarray(reached / started), np.asarray(np.sqrt(share * (1 - share) / (started + 4)))
    )


def widest(network: Network, weights: Weights) -> np.ndarray:
    """max_i |w_i| sqrt(k_i) of each network (leading axis): in units of its initial range, how far
    a weight has gone.

    By this number Sec. 3.2 chose the widths of the priors.
    """

    def of_leaf(leaf: np.ndarray, fan_in: int) -> np.ndarray:
        return np.abs(np.asarray(leaf, np.float64)).reshape(len(leaf), -1).max(axis=1) * np.sqrt(
            fan_in
        )

    return np.max(jax.tree.leaves(jax.tree.map(of_leaf, weights, network.fan_in())), axis=0)
