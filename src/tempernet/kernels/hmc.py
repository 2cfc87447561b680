"""Hamiltonian Monte Carlo (Alg. 1) for one replica at one rung; the engine maps it over all
replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.errors import ConfigError, check_count
from tempernet.kernels.integrator import EvaluateFn, Point, velocity_verlet
from tempernet.model.networks import Weights, cut
from tempernet.model.priors import Prior

Walls = Literal["reflect", "reject", "none"]
WALLS = get_args(Walls)
Lengths = Literal["steps", "distance"]
LENGTHS = get_args(Lengths)
MAX_STRETCH = 8
"""A rung's trajectories have at most so many times the mean number of steps."""


@dataclass(frozen=True)
class Dynamics:
    """How a replica moves within a round.

    `num_trajectories` (N_traj) trajectories of `num_steps` (L) Verlet steps. `walls` of a box
    either `reflect` or `reject` a trajectory that ends outside (Alg. 1 as printed); with `none` the
    box is ignored, as Eq. 20 wants it. `jitter` draws the step size of every trajectory uniformly
    within ±jitter of the rung's, independently of the state, so that no trajectory length is in
    step with a harmonic mode; 0 is the paper's fixed dt. `lengths` is what the trajectories of all
    rungs have in common: the number of steps, or the distance eps L, so that a rung with small
    steps makes more of them; `num_steps` is then their mean over the rungs.
    """

    num_steps: int = 100
    num_trajectories: int = 10
    walls: Walls = "reflect"
    jitter: float = 0.1
    lengths: Lengths = "steps"

    def __post_init__(self) -> None:
        for name in ("num_steps", "num_trajectories"):
            check_count(name, getattr(self, name))
        if self.walls not in WALLS:
            raise ConfigError(f"walls must be one of {', '.join(WALLS)}, got {self.walls!r}")
        if not 0 <= self.jitter < 1:
            raise ConfigError(f"jitter must lie in [0, 1), got {self.jitter}")
        if self.lengths not in LENGTHS:
            raise ConfigError(f"lengths must be one of {', '.join(LENGTHS)}, got {self.lengths!r}")

    def steps_of(self, step_sizes: np.ndarray, walk: np.ndarray) -> np.ndarray:
        """L of every rung (K,) with these step sizes; rungs that do not `walk` are drawn from, and
        make one step.
        """
        if self.lengths == "steps" or not walk.any():
            return np.full(len(step_sizes), self.num_steps, np.int32)
        share = 1 / np.asarray(step_sizes, np.float64)
        wanted = np.rint(self.num_steps * share / share[walk].mean())
        return np.where(walk, np.clip(wanted, 1, MAX_STRETCH * self.num_steps), 1).astype(np.int32)


class Info(NamedTuple):
    """What became of a trajectory, or sums of these over several; each trajectory has one fate.

    It is accepted, or `wall_rejections` counts it (it ended outside the box), or `nonfinite` does
    (its energy or momentum was not a finite number), or the energy rejected it.
    """

    acceptance: Array
    """Acceptance probability: min(1, exp(alpha)), 0 outside the box or if not finite."""
    accepted: Array
    wall_rejections: Array
    nonfinite: Array


class Steps(NamedTuple):
    """How many steps a trajectory has, and the most of any that shares its loop; None if all have
    the same.
    """

    own: int | Array
    longest: Array | None = None


TermsFn = Callable[[Weights, Array], Array]
"""(weights of one replica, its E) -> its energy terms phi, shape (M,)."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """One replica's HMC: how energies, terms and prior make a potential, and how the replica moves
    in it.
    """

    evaluate_fn: EvaluateFn
    terms_fn: TermsFn
    prior: Prior
    masses: Weights
    dynamics: Dynamics

    def potential(self, weights: Weights, energy: Array, coefficients: Array) -> Array:
        """u = sum_m c_m phi_m(w) + prior energy, at a rung's coefficients (M,)."""
        return jnp.dot(coefficients, self.terms_fn(weights, energy)) + self.prior.energy(weights)

    def slope(self, point: Point, coefficients: Array) -> Weights:
        """grad u = du/dw + du/dE grad E, from the gradient of E that the point holds."""
        direct, by_energy = jax.grad(self.potential, argnums=(0, 1))(
            point.weights, point.energy, coefficients
        )
        return jax.tree.map(lambda d, g: d + by_energy * g, direct, point.gradient)

    def trajectory(
        self,
        key: Array,
        point: Point,
        coefficients: Array,
        step_size: Array,
        steps: Steps | None = None,
    ) -> tuple[Point, Info]:
        """Alg. 1: draw a momentum, integrate, accept or reject."""
        steps = steps or Steps(self.dynamics.num_steps)
        momentum_key, uniform_key = jax.random.split(key)
        momentum = draw_momentum(momentum_key, point.weights, self.masses)
        for_accept, for_jitter = jax.random.uniform(uniform_key, (2,), step_size.dtype)
        step_size = step_size * (1 + self.dynamics.jitter * (2 * for_jitter - 1))
        reflecting = self.dynamics.walls == "reflect" and self.prior.half_width is not None
        end, end_momentum = velocity_verlet(
            point,
            momentum,
            step_size,
            steps.own,
            evaluate_fn=self.evaluate_fn,
            slope_fn=lambda at: self.slope(at, coefficients),
            masses=self.masses,
            half_width=self.prior.half_width if reflecting else None,
            longest=steps.longest,
        )
        if reflecting:
            # Folding may leave a weight one rounding outside the wall.
            end = end._replace(
                weights=jax.tree.map(
                    lambda w, h: jnp.clip(w, -h, h), end.weights, self.prior.half_width
                )
            )
        log_acceptance = (
            self.potential(point.weights, point.energy, coefficients)
            - self.potential(end.weights, end.energy, coefficients)
            - kinetic_change(momentum, end_momentum, self.masses)
        )
        # A gradient that is not finite has reached the momentum by the last half-kick.
        finite = jnp.isfinite(log_acceptance) & jnp.isfinite(end.energy)
        inside = (
            self.prior.contains(end.weights) if self.dynamics.walls != "none" else jnp.bool_(True)
        )
        acceptance = jnp.where(finite & inside, jnp.exp(jnp.minimum(log_acceptance, 0)), 0)
        accept = for_accept < acceptance
        info = Info(acceptance, _count(accept), _count(finite & ~inside), _count(~finite))
        return select(accept, end, point), info

    def trajectories(
        self,
        key: Array,
        point: Point,
        coefficients: Array,
        step_size: Array,
        number: int | Array,
        steps: Steps | None = None,
    ) -> tuple[Point, Info]:
        """`number` trajectories in sequence; the counts are sums over them and `acceptance` is
        their mean.
        """

        def body(i: Array, carry: tuple[Point, Info]) -> tuple[Point, Info]:
            point, total = carry
            point, info = self.trajectory(
                jax.random.fold_in(key, i), point, coefficients, step_size, steps
            )
            return point, jax.tree.map(jnp.add, total, info)

        none = Info(jnp.zeros_like(point.energy), *(jnp.int32(0),) * 3)
        point, total = jax.lax.fori_loop(0, number, body, (point, none))
        mean = total.acceptance / jnp.asarray(number, total.acceptance.dtype)
        return point, total._replace(acceptance=mean)


def draw_momentum(key: Array, weights: Weights, masses: Weights) -> Weights:
    """p_i ~ N(0, m_i): the paper's N(0, m_i T) in reduced units."""
    leaves = jax.tree.leaves(weights)
    normal = jax.random.normal(key, (sum(leaf.size for leaf in leaves),), jnp.result_type(*leaves))
    return jax.tree.map(lambda p, m: m**0.5 * p, cut(normal, weights), masses)


def kinetic_change(before: Weights, after: Weights, masses: Weights) -> Array:
    """Sum of (p'^2 - p^2) / 2m, differences first: both sums are near d/2 and their difference near
    1.
    """
    changes = jax.tree.map(
        lambda p, q, m: 0.5 * jnp.sum((q - p) * (q + p) / m), before, after, masses
    )
    return jnp.sum(jnp.stack(jax.tree.leaves(changes)))


def select(condition: Array, yes: Point, no: Point) -> Point:
    """`yes` where the condition holds, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _count(happened: Array) -> Array:
    return happened.astype(jnp.int32)
