"""A trajectory of the reduced dynamics from a given momentum, and whether to accept its end.

With jitter the step size is drawn for each trajectory, independently of the state. For any one step
size the map (w, p) -> (w', -p') preserves volume and is its own inverse, reflecting walls included,
so min(1, exp(-dH)) leaves exp(-u(w) - p^2 / 2m) as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.kernels.base import Info, Point, Rung, Settings
from tempernet.kernels.integrator import velocity_verlet
from tempernet.kernels.momentum import kinetic_change
from tempernet.kernels.potential import Potential
from tempernet.model.networks import Weights


class Proposal(NamedTuple):
    """The end of a trajectory."""

    point: Point
    momentum: Weights
    """As it arrives, not reversed."""
    acceptance: Array
    """Probability to accept: min(1, exp(-dH)), 0 outside the box or if not finite."""
    inside: Array
    finite: Array

    def info(self, accept: Array) -> Info:
        """The fate of the trajectory."""
        return Info(
            self.acceptance,
            _count(accept),
            _count(self.finite & ~self.inside),
            _count(~self.finite),
        )


def propose(
    potential: Potential,
    masses: Weights,
    settings: Settings,
    rung: Rung,
    point: Point,
    momentum: Weights,
    for_jitter: Array,
) -> Proposal:
    """Integrate from a point with a momentum; `for_jitter`, uniform in 0..1, sets the step size."""
    prior, coefficients = potential.prior, rung.coefficients
    step_size = rung.step_size * (1 + settings.jitter * (2 * for_jitter - 1))
    reflecting = settings.walls == "reflect" and prior.half_width is not None
    end, end_momentum = velocity_verlet(
        point,
        momentum,
        step_size,
        rung.steps.own,
        evaluate_fn=potential.evaluate_fn,
        slope_fn=lambda at: potential.slope(at, coefficients),
        masses=masses,
        half_width=prior.half_width if reflecting else None,
        longest=rung.steps.longest,
    )
    if reflecting:
        # Folding may leave a weight one rounding outside the wall.
        end = end._replace(
            weights=jax.tree.map(lambda w, h: jnp.clip(w, -h, h), end.weights, prior.half_width)
        )
    log_acceptance = (
        potential.value(point.weights, point.energy, coefficients)
        - potential.value(end.weights, end.energy, coefficients)
        - kinetic_change(momentum, end_momentum, masses)
    )
    # A gradient that is not finite has reached the momentum by the last half-kick.
    finite = jnp.isfinite(log_acceptance) & jnp.isfinite(end.energy)
    inside = prior.contains(end.weights) if settings.walls != "none" else jnp.bool_(True)
    acceptance = jnp.where(finite & inside, jnp.exp(jnp.minimum(log_acceptance, 0)), 0)
    return Proposal(end, end_momentum, acceptance, inside, finite)


def _count(happened: Array) -> Array:
    return happened.astype(jnp.int32)
