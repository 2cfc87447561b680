"""HMC with partial momentum refreshment (Horowitz 1991): trajectories carry their momentum on.

Before a trajectory the momentum becomes a p + sqrt(1 - a^2) p' with p' ~ N(0, m), a the
`persistence`; a = 0 is HMC. Each of the three moves leaves exp(-u(w) - p^2 / 2m) as it is: the
refreshment; the trajectory with its end reversed, accepted or not; and p -> -p after it, always. So
an accepted trajectory goes on as it arrives, and a rejected one turns back the way it came.

In reduced units the momenta at every rung are N(0, m), independent of the weights: the paper's
N(0, m T) divided by sqrt(T). When the replicas at rungs j and k exchange, the joint density goes
from exp(-u_j(w) - K(p) - u_k(w') - K(p')) to exp(-u_k(w) - K(p) - u_j(w') - K(p')), where K does
not depend on the rung: it drops out of the swap rule, and the momenta need no rescaling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
from jax import Array

from tempernet.kernels.base import Info, Point, Rung, Settings, select
from tempernet.kernels.momentum import draw_momentum, flipped, refreshed
from tempernet.kernels.potential import Potential
from tempernet.kernels.trajectory import propose
from tempernet.model.networks import Weights


class HorowitzState(NamedTuple):
    """A point and the momentum it was reached with."""

    point: Point
    momentum: Weights


@dataclass(frozen=True, eq=False)
class Horowitz:
    """Refresh a part of the momentum, integrate, accept or turn back."""

    potential: Potential
    masses: Weights
    settings: Settings

    def init(self, key: Array, point: Point) -> HorowitzState:
        """The point with a momentum drawn from N(0, m)."""
        return HorowitzState(point, draw_momentum(key, point.weights, self.masses))

    def step(self, key: Array, state: HorowitzState, rung: Rung) -> tuple[HorowitzState, Info]:
        """One refreshment and one trajectory."""
        momentum_key, uniform_key = jax.random.split(key)
        fresh = draw_momentum(momentum_key, state.point.weights, self.masses)
        momentum = refreshed(state.momentum, fresh, self.settings.persistence)
        for_accept, for_jitter = jax.random.uniform(uniform_key, (2,), rung.step_size.dtype)
        proposal = propose(
            self.potential, self.masses, self.settings, rung, state.point, momentum, for_jitter
        )
        accept = for_accept < proposal.acceptance
        onwards = HorowitzState(proposal.point, proposal.momentum)
        back = HorowitzState(state.point, flipped(momentum))
        return select(accept, onwards, back), proposal.info(accept)
