"""How a replica moves within a round: the settings of its trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tempernet.errors import ConfigError, check_count
from tempernet.kernels.registry import KERNELS

Walls = Literal["reflect", "reject", "none"]
WALLS = get_args(Walls)
Lengths = Literal["steps", "distance"]
LENGTHS = get_args(Lengths)
MAX_STRETCH = 8
"""A rung's trajectories have at most so many times the mean number of steps."""


@dataclass(frozen=True)
class Dynamics:
    """How a replica moves within a round: `num_trajectories` trajectories by a kernel.

    Args:
        num_steps: L, Verlet steps of a trajectory.
        num_trajectories: N_traj, trajectories between exchanges.
        walls: of a box, either `reflect` or `reject` a trajectory that ends outside (Alg. 1 as
            printed); with `none` the box is ignored, as Eq. 20 wants it.
        jitter: the step size of every trajectory is drawn uniformly within +-jitter of the rung's,
            independently of the state, so that no trajectory length is in step with a harmonic
            mode; 0 is the paper's fixed dt.
        lengths: what the trajectories of all rungs have in common: the number of `steps`, or the
            `distance` eps L, so that a rung with small steps makes more of them; `num_steps` is
            then their mean over the rungs.
        kernel: a name in `registry.KERNELS`: `hmc` draws the momentum of every trajectory anew,
            `horowitz` refreshes a part of it.
        persistence: of `horowitz`, the correlation of momenta before and after their refreshment
            between two trajectories, from 0 (none persists, as in HMC) to below 1.
    """

    num_steps: int = 100
    num_trajectories: int = 10
    walls: Walls = "reflect"
    jitter: float = 0.1
    lengths: Lengths = "distance"
    kernel: str = "hmc"
    persistence: float = 0.9

    def __post_init__(self) -> None:
        for name in ("num_steps", "num_trajectories"):
            check_count(name, getattr(self, name))
        choices = {"walls": WALLS, "lengths": LENGTHS, "kernel": tuple(KERNELS)}
        for name, allowed in choices.items():
            if (given := getattr(self, name)) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {given!r}")
        for name in ("jitter", "persistence"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {value}")

    def steps_of(
        self, step_sizes: NDArray[np.float64], walk: NDArray[np.bool_]
    ) -> NDArray[np.int32]:
        """L of every rung (K,) with these step sizes; rungs that do not `walk` make one step."""
        if self.lengths == "steps" or not walk.any():
            return np.full(len(step_sizes), self.num_steps, np.int32)
        share = 1 / np.asarray(step_sizes, np.float64)
        wanted = np.rint(self.num_steps * share / share[walk].mean())
        most = MAX_STRETCH * self.num_steps
        return np.where(walk, np.clip(wanted, 1, most), 1).astype(np.int32)
