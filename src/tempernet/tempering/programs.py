"""The compiled functions of all replicas that an engine runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.devices.mesh import DATA, Layout, Specs, Tree, compiled, over_replicas
from tempernet.devices.tiles import fastest_tile, untimed_tile
from tempernet.kernels.base import AnyKernel, Info, KernelState, Point, Rung, Steps
from tempernet.kernels.dynamics import Dynamics
from tempernet.kernels.potential import Potential
from tempernet.kernels.registry import KERNELS
from tempernet.model.networks import Weights
from tempernet.model.target import Data, Target
from tempernet.paths.path import Path
from tempernet.tempering.exchange import SWEEPS, repeated
from tempernet.tempering.rounds import RoundFn, State, make_round

MOST_TIMED = 40
LEAST_TIMED = 4
EXAMPLES_TIMED = 20_000
"""A tile is timed by a trajectory of some steps, fewer the more examples there are."""
TINY_STEP = 1e-6
"""The step size of that trajectory: the time does not depend on it."""


@dataclass(frozen=True, eq=False)
class Programs:
    """What is sampled, how, and where, as functions of all replicas, each compiled on first use.

    `masses` has an array for each leaf of the weights; `specs` are the partition specs of the data.
    """

    target: Target
    path: Path
    copies: int
    dynamics: Dynamics
    exchange: str
    num_exchanges: int
    masses: Weights
    layout: Layout
    specs: Specs

    @property
    def own_lengths(self) -> bool:
        """Whether the rungs differ in the number of steps of a trajectory."""
        return self.dynamics.lengths == "distance" and self.path.num_rungs > 1

    def evaluate(self, weights: Weights, data: Data) -> Point:
        """E and its gradient; where the examples are split, the sum of what each part gives."""
        energy, gradient = jax.value_and_grad(self.target.energy_fn)(weights, data)
        if self.layout.mesh.shape[DATA] > 1:
            energy, gradient = jax.lax.psum((energy, gradient), DATA)
        return Point(weights, energy, gradient)

    def potential(self, data: Data, own: Tree) -> Potential:
        """One replica's potential, from the data of its device and what its copy has of its own."""

        def evaluate_fn(weights: Weights) -> Point:
            return self.evaluate(weights, data)

        def terms_fn(weights: Weights, energy: Array) -> Array:
            return self.path.terms_fn(weights, energy, own)

        return Potential(evaluate_fn, terms_fn, self.target.prior)

    def kernel(self, potential: Potential) -> AnyKernel:
        """The kernel that moves one replica."""
        return KERNELS[self.dynamics.kernel](potential, self.masses, self.dynamics)

    @functools.cached_property
    def evaluate_all(self) -> Callable[[Weights, Data], Point]:
        """(weights of all replicas, data) -> their points."""
        run: Callable[[Weights, Data], Point] = compiled(
            over_replicas(self.evaluate, self.layout, self.specs)
        )
        return run

    @functools.cached_property
    def begin(self) -> Callable[[Array, Point], KernelState]:
        """(key, points of all replicas) -> their kernel states, the same on any devices."""
        # To begin takes neither an energy nor its terms.
        kernel = self.kernel(self.potential(None, None))

        def begin(key: Array, points: Point) -> KernelState:
            replicas = jnp.arange(self.layout.padded, dtype=jnp.int32)
            keys = jax.vmap(lambda replica: jax.random.fold_in(key, replica))(replicas)
            states: KernelState = jax.vmap(kernel.init)(keys, points)
            return states

        return jax.jit(begin)

    def kernel_state(self, weights: Weights) -> KernelState:
        """The shapes of one replica's kernel state, from those of its weights."""
        kernel = self.kernel(self.potential(None, None))
        energy = jnp.zeros((), jnp.result_type(*jax.tree.leaves(weights)))
        point = Point(weights, energy, weights)
        shapes: KernelState = jax.eval_shape(kernel.init, jax.random.key(0), point)
        return shapes

    @functools.cached_property
    def round(self) -> RoundFn:
        """One program for rounds and for tuning, whose rounds are of one trajectory."""
        draw_fn = (self.path.draw_fn or self.target.prior.draw) if self.path.exact.any() else None
        round_fn = make_round(
            self.potential,
            self.kernel,
            repeated(SWEEPS[self.exchange], self.num_exchanges),
            self.layout,
            self.copies,
            self.specs,
            draw_fn,
            self.path.of_copies,
            num_steps=None if self.own_lengths else self.dynamics.num_steps,
        )
        everywhere, states = self.layout.everywhere, self.state_shardings
        data = self.layout.shardings(self.specs)
        run: RoundFn = compiled(
            round_fn,
            in_shardings=(everywhere, states, everywhere, everywhere, data),
            out_shardings=(states, everywhere),
        )
        return run

    @property
    def state_shardings(self) -> State:
        """Fixed layouts: no second compilation for a state from a start, a round or a file."""
        parts: Any = (self.layout.by_replica, self.layout.everywhere, self.layout.everywhere)
        return State(*parts)

    @functools.cached_property
    def mean_squares(self) -> Callable[[Weights], Array]:
        """Weights of all replicas -> mean squares in units of the prior's, (R, layers)."""

        def of_layer(layer: Weights) -> Array:
            leaves = jax.tree.leaves(layer)
            mean: Array = sum(jnp.sum(leaf) for leaf in leaves) / sum(leaf.size for leaf in leaves)
            return mean

        def mean_squares(weights: Weights) -> Array:
            scaled = jax.tree.map(lambda w, s: jnp.square(w / s), weights, self.target.prior.scale)
            layers = jax.tree.leaves(scaled, is_leaf=lambda node: node is not scaled)
            return jnp.stack([of_layer(layer) for layer in layers])

        return jax.jit(jax.vmap(mean_squares))

    def potentials(self, point: Point) -> Array:
        """Potentials of all replicas at the rungs they start at, the prior left out."""
        rungs = self.path.num_rungs
        replica = np.minimum(np.arange(len(point.energy)), self.copies * rungs - 1)
        own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[replica // rungs], self.path.of_copies)
        terms = jax.vmap(self.path.terms_fn)(point.weights, point.energy, own)
        rows = self.path.coefficients[replica % rungs]
        return jnp.sum(jnp.asarray(rows, terms.dtype) * terms, axis=1)

    def measured_tile(self, data: Data) -> int:
        """The fastest tile for a network.

        An energy without data is small, and all replicas of a device go at once.
        """
        if self.target.network is None:
            return untimed_tile(self.layout, by_length=self.own_lengths)
        most = max(LEAST_TIMED, EXAMPLES_TIMED // self.target.num_examples)
        steps = Steps(min(MOST_TIMED, most))
        own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], self.path.of_copies)

        def trajectory(weights: Weights, data: Data) -> tuple[KernelState, Info]:
            kernel = self.kernel(self.potential(data, own))
            # Neither the energy nor the gradient has to be right.
            energy = jnp.sum(jax.tree.leaves(weights)[0])
            key = jax.random.key(0)
            state = kernel.init(key, Point(weights, energy, weights))
            coefficients = jnp.asarray(self.path.coefficients[0], energy.dtype)
            rung = Rung(coefficients, jnp.full_like(energy, TINY_STEP), steps)
            return kernel.step(key, state, rung)

        return fastest_tile(
            trajectory,
            self.target.prior.like,
            self.layout,
            data,
            self.specs,
            by_length=self.own_lengths,
        )
