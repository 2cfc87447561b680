"""What a kernel is: `init` makes a state of a point, `step` moves it and says what became of it.

A kernel moves one replica at one rung and leaves the rung's density as it is. The round, the timing
of tiles and the checkpoints know what stands here and nothing else, so a kernel of one's own is a
file beside `hmc` and an entry in `registry.KERNELS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from tempernet.model.networks import Weights


class Point(NamedTuple):
    """Where a replica is: weights, their energy E and its gradient; none depends on the rung."""

    weights: Weights
    energy: Array
    gradient: Weights


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
    """How many steps a trajectory has."""

    own: int | Array
    longest: Array | None = None
    """The most of any trajectory in the same loop; None if all have the same."""


class Rung(NamedTuple):
    """What a kernel is told of the rung its replica sits at."""

    coefficients: Array
    """Coefficients of the energy terms, (M,)."""
    step_size: Array
    """Reduced, ()."""
    steps: Steps


class KernelState(Protocol):
    """A pytree of arrays that holds, among what else the kernel remembers, the replica's point."""

    @property
    def point(self) -> Point:
        """Where the replica is."""


S = TypeVar("S", bound=KernelState)


class Kernel(Protocol[S]):
    """How a replica moves.

    What a state remembers beside its point must, in equilibrium, be independent of the point and
    have the same distribution at every rung. Exchange then moves states between rungs as they are,
    and wherever a point is replaced (by an exact draw, or by that of another replica) the rest is
    drawn anew by `init`.
    """

    def init(self, key: Array, point: Point) -> S:
        """A state at this point; what else it remembers is drawn from its equilibrium."""

    def step(self, key: Array, state: S, rung: Rung) -> tuple[S, Info]:
        """One trajectory; the same key, state and rung give the same one."""


AnyKernel = Kernel[Any]
"""A kernel of whatever state: whoever makes one from a name knows no more of it."""


class Settings(Protocol):
    """What kernels read of the settings (see `dynamics.Dynamics`)."""

    @property
    def walls(self) -> str:
        """What the walls of a box do: reflect, reject or none."""

    @property
    def jitter(self) -> float:
        """Relative half-width of the range that each trajectory's step size is drawn from."""

    @property
    def persistence(self) -> float:
        """Correlation of the momenta before and after their refreshment."""


def walk(
    kernel: Kernel[S], key: Array, state: S, rung: Rung, number: int | Array
) -> tuple[S, Info]:
    """`number` steps in sequence; the counts are sums over them and `acceptance` is their mean."""

    def body(i: Array, carry: tuple[S, Info]) -> tuple[S, Info]:
        state, total = carry
        state, info = kernel.step(jax.random.fold_in(key, i), state, rung)
        return state, jax.tree.map(jnp.add, total, info)

    none = Info(jnp.zeros_like(state.point.energy), *(jnp.int32(0),) * 3)
    state, total = jax.lax.fori_loop(0, number, body, (state, none))
    mean = total.acceptance / jnp.asarray(number, total.acceptance.dtype)
    return state, total._replace(acceptance=mean)


T = TypeVar("T")


def select(condition: Array, yes: T, no: T) -> T:
    """`yes` where the condition holds, leaf by leaf."""
    chosen: T = jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
    return chosen
