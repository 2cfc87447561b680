"""Hamiltonian Monte Carlo (Alg. 1): every trajectory begins with a momentum of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
from jax import Array

from tempernet.kernels.base import Info, Point, Rung, Settings, select
from tempernet.kernels.momentum import draw_momentum
from tempernet.kernels.potential import Potential
from tempernet.kernels.trajectory import propose
from tempernet.model.networks import Weights


class HMCState(NamedTuple):
    """Nothing is remembered but the point."""

    point: Point


@dataclass(frozen=True, eq=False)
class HMC:
    """Draw a momentum, integrate, accept or reject."""

    potential: Potential
    masses: Weights
    settings: Settings

    def init(self, key: Array, point: Point) -> HMCState:
        """The point itself."""
        del key
        return HMCState(point)

    def step(self, key: Array, state: HMCState, rung: Rung) -> tuple[HMCState, Info]:
        """Alg. 1."""
        momentum_key, uniform_key = jax.random.split(key)
        momentum = draw_momentum(momentum_key, state.point.weights, self.masses)
        for_accept, for_jitter = jax.random.uniform(uniform_key, (2,), rung.step_size.dtype)
        proposal = propose(
            self.potential, self.masses, self.settings, rung, state.point, momentum, for_jitter
        )
        accept = for_accept < proposal.acceptance
        point = select(accept, proposal.point, state.point)
        return HMCState(point), proposal.info(accept)
