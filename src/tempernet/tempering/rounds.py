"""The round: N_traj trajectories of every replica at its rung, then exchange. A pure function.

Random numbers come from fold_in(fold_in(key, round), replica), never from a device, so that any
number of devices draws the same ones. Weights never cross devices; the exchange sees only the
energy terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from tempernet.devices.mesh import Layout, Specs, Tree, over_replicas
from tempernet.kernels.base import AnyKernel, Info, KernelState, Rung, Steps, select, walk
from tempernet.kernels.potential import Potential
from tempernet.model.target import Data
from tempernet.paths.path import DrawFn
from tempernet.tempering.exchange import SwapInfo, SweepFn


class State(NamedTuple):
    """All that moves: the replicas, which rung each sits at, and the round."""

    kernel: KernelState
    """The kernel's state of every replica; the leading axis is padded to the layout."""
    replica_at: Array
    """(copies, K): the replica, counted within its copy, that sits at each rung."""
    round: Array


class Rungs(NamedTuple):
    """What belongs to the rungs."""

    coefficients: Array
    """Coefficients of the energy terms, (K, M)."""
    step_sizes: Array
    """Reduced step sizes, (K,)."""
    num_steps: Array
    """Steps of a trajectory, (K,)."""
    exact: Array
    """Which rungs are drawn from exactly, (K,)."""


class Record(NamedTuple):
    """Results of a round in the order of rungs: (copies, K, ...), of pairs (copies, K-1)."""

    phi: Array
    """Energy terms after the trajectories and before the exchange: (copies, K, M)."""
    info: Info
    """Counts over the round's trajectories; `acceptance` is their mean probability."""
    replica: Array
    """The replica, counted within its copy, that ran them."""
    swaps: SwapInfo


PotentialFn = Callable[[Data, Tree], Potential]
"""(data that a device sees, what a replica's copy has of its own) -> the replica's potential."""
KernelFn = Callable[[Potential], AnyKernel]
"""A replica's potential -> the kernel that moves it."""
RoundFn = Callable[[Array, State, Rungs, Array, Data], tuple[State, Record]]
"""(key, state, rungs, number of trajectories, data) -> (state, record)."""


def make_round(
    potential_fn: PotentialFn,
    kernel_fn: KernelFn,
    sweep_fn: SweepFn,
    layout: Layout,
    copies: int,
    specs: Specs,
    draw_fn: DrawFn | None = None,
    of_copies: Tree = None,
    *,
    num_steps: int | None = None,
) -> RoundFn:
    """Build the round for `copies` ladders laid out on a mesh.

    Args:
        potential_fn, kernel_fn: how a replica moves.
        sweep_fn: the exchange of one copy.
        layout: of the replicas.
        copies: number of ladders.
        specs: partition specs of the data.
        draw_fn: if given, a replica at an exact rung ends the round at a fresh draw instead of at
            its trajectories' end.
        of_copies: what each copy's terms have of their own (see `paths.Path`).
        num_steps: of every trajectory; None if each rung has its own number.
    """
    move = over_replicas(
        _advance(potential_fn, kernel_fn, draw_fn, num_steps),
        layout,
        (specs, PartitionSpec()),
        tile_fn=_in_common,
        length_fn=_num_steps if num_steps is None else None,
    )
    replicas = layout.num_replicas

    def round_fn(
        key: Array, state: State, rungs: Rungs, num_trajectories: Array, data: Data
    ) -> tuple[State, Record]:
        trajectory_key, exchange_key = jax.random.split(jax.random.fold_in(key, state.round))
        ids = jnp.arange(layout.padded, dtype=jnp.int32)
        keys = jax.vmap(lambda replica: jax.random.fold_in(trajectory_key, replica))(ids)
        # argsort inverts the permutation; padding repeats the last replica and is dropped after the
        # move.
        rung_of = jnp.argsort(state.replica_at, axis=1).reshape(-1)[jnp.minimum(ids, replicas - 1)]
        copy_of = jnp.minimum(ids, replicas - 1) // (replicas // copies)
        own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[copy_of], of_copies)
        at_rung = jax.tree.map(lambda leaf: leaf[rung_of], rungs)
        moved, phi, info = move((keys, state.kernel, at_rung, own), (data, num_trajectories))
        phi, info = jax.tree.map(
            lambda leaf: leaf[:replicas].reshape(copies, -1, *leaf.shape[1:]), (phi, info)
        )

        def sweep(copy: Array, replica_at: Array, terms: Array) -> tuple[Array, SwapInfo]:
            copy_key = jax.random.fold_in(exchange_key, copy)
            return sweep_fn(copy_key, state.round, replica_at, terms, rungs.coefficients)

        exchanged, swaps = jax.vmap(sweep)(
            jnp.arange(copies, dtype=jnp.int32), state.replica_at, phi
        )
        phi, info = jax.tree.map(lambda leaf: by_rung(leaf, state.replica_at), (phi, info))
        record = Record(phi, info, state.replica_at, swaps)
        return State(moved, exchanged, state.round + 1), record

    return round_fn


def by_rung(values: Array, replica_at: Array) -> Array:
    """(copies, K, ...) in the order of replicas -> in the order of rungs."""
    ordered: Array = jax.vmap(lambda ladder, order: ladder[order])(values, replica_at)
    return ordered


_Replica = tuple[Array, Any, Rungs, Any]
"""Key, kernel state, what belongs to its rung, and what its copy has of its own."""


class _Tile(NamedTuple):
    """What decides for all replicas of a tile."""

    longest: Array
    """The most steps of any."""
    exact: Array
    """Whether any sits at an exact rung."""


def _num_steps(replicas: _Replica) -> Array:
    return replicas[2].num_steps


def _in_common(replicas: _Replica) -> _Tile:
    rungs = replicas[2]
    return _Tile(rungs.num_steps.max(), rungs.exact.any())


def _advance(
    potential_fn: PotentialFn, kernel_fn: KernelFn, draw_fn: DrawFn | None, num_steps: int | None
) -> Callable[..., tuple[Any, Array, Info]]:
    """What one replica does in a round, as `over_replicas` wants it."""

    def advance(
        replica: _Replica, given: tuple[Any, Array], tile: _Tile
    ) -> tuple[Any, Array, Info]:
        key, state, at, own = replica
        data, number = given
        potential = potential_fn(data, own)
        kernel = kernel_fn(potential)
        # A number known to the compiler is a loop without a mask.
        steps = Steps(at.num_steps, tile.longest) if num_steps is None else Steps(num_steps)
        state, info = walk(kernel, key, state, Rung(at.coefficients, at.step_sizes, steps), number)
        if draw_fn is not None:
            draw_key = jax.random.fold_in(key, number)

            def drawn(state: Any, info: Info) -> tuple[Any, Info]:
                return _drawn(potential, kernel, draw_fn, draw_key, at.exact, state, info)

            # Decided for the tile as a whole, so that tiles without an exact rung are spared the
            # draws.
            state, info = jax.lax.cond(tile.exact, drawn, lambda *moved: moved, state, info)
        point = state.point
        return state, potential.terms_fn(point.weights, point.energy), info

    return advance


def _drawn(
    potential: Potential,
    kernel: AnyKernel,
    draw_fn: DrawFn,
    key: Array,
    exact: Array,
    state: Any,
    info: Info,
) -> tuple[Any, Info]:
    """At an exact rung, an exact draw in place of where the trajectories led."""
    point = potential.evaluate_fn(draw_fn(key))
    # The draw is independent of all that was before, so what the kernel remembers begins anew too.
    begun = kernel.init(jax.random.fold_in(key, 0), point)
    finite = jnp.isfinite(point.energy)
    nonfinite = info.nonfinite + (exact & ~finite).astype(jnp.int32)
    return select(exact & finite, begun, state), info._replace(nonfinite=nonfinite)
