"""tempernet's engine as the benchmark runs it: default settings, one trajectory a round."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from task import STEP_SIZE
from timing import Sampler

from tempernet import Dynamics, Engine, Target, temperature_path
from tempernet.kernels.dynamics import Walls


def engine_sampler(
    target: Target,
    weights: Any,
    temperatures: np.ndarray,
    num_steps: int,
    *,
    walls: Walls = "reflect",
    reproducible: bool = False,
) -> Sampler:
    """Rounds of an `Engine`: momenta, L Verlet steps between walls, accept, even-odd exchange."""
    dynamics = Dynamics(num_steps, 1, walls=walls, lengths="steps")
    engine = Engine(
        target,
        temperature_path(temperatures),
        dynamics=dynamics,
        # As the peers have them.
        masses=1.0,
        reproducible=reproducible,
    )
    state, rungs = engine.start(weights), engine.rungs(STEP_SIZE)
    start_energy = float(np.mean(engine.energies(state)))

    def advance() -> float:
        nonlocal state
        state, record = jax.block_until_ready(engine.round(state, rungs))
        return float(record.info.acceptance.mean())

    details = {
        "tile": engine.layout.tile,
        "devices": engine.layout.mesh.size,
        "start_energy": start_energy,
    }
    return Sampler(advance, details)
