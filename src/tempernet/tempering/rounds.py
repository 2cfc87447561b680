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

from tempernet.devices.mesh import Layout, over_replicas
from tempernet.kernels.hmc import Info, Kernel, Steps, select
from tempernet.kernels.integrator import Point
from tempernet.model.networks import Weights
from tempernet.paths.path import DrawFn
from tempernet.tempering.exchange import SwapInfo, SweepFn


class State(NamedTuple):
    """All that moves: the replicas' points (leading axis padded to the layout), who sits where, the
    round.
    """

    point: Point
    replica_at: Array
    """(copies, K): the replica, counted within its copy, that sits at each rung."""
    round: Array


class Rungs(NamedTuple):
    """All that belongs to rungs: coefficients (K, M), reduced step sizes, steps, and which are
    drawn exactly (K,).
    """

    coefficients: Array
    step_sizes: Array
    num_steps: Array
    exact: Array


class Record(NamedTuple):
    """What a round tells, in the order of rungs: shapes (copies, K, ...), for pairs (copies, K-1)."""

    phi: Array
    """Energy terms after the trajectories and before the exchange: (copies, K, M)."""
    info: Info
    """Fates of the round's trajectories; `acceptance` is their mean probability."""
    replica: Array
    """The replica, counted within its copy, that ran them."""
    swaps: SwapInfo


KernelFn = Callable[[Any, Any], Kernel]
"""The data that a device sees, what the replica's copy has of its own -> the kernel that moves a
replica.
"""
RoundFn = Callable[[Array, State, Rungs, Array, Any], tuple[State, Record]]
"""(key, state, rungs, number of trajectories, data) -> (state, record)."""


def make_round(
    kernel_fn: KernelFn,
    sweep_fn: SweepFn,
    layout: Layout,
    copies: int,
    specs: Any,
    draw_fn: DrawFn | None = None,
    of_copies: Any = None,
    *,
    own_lengths: bool = False,
) -> RoundFn:
    """Build the round for `copies` ladders laid out on a mesh; `specs` are the partition specs of
    the data.

    With `draw_fn`, a replica at an exact rung ends the round at a fresh draw instead of at its
    trajectories' end. `of_copies` is what each copy's terms have of their own (see `paths.Path`).
    With `own_lengths` every rung's trajectories have its own number of steps.
    """
    move = over_replicas(
        _advance(kernel_fn, draw_fn, own_lengths=own_lengths),
        layout,
        (specs, PartitionSpec()),
        tile_fn=_in_common,
        length_fn=_num_steps if own_lengths else None,
    )
    replicas = layout.num_replicas

    def round_fn(
        key: Array, state: State, rungs: Rungs, num_trajectories: Array, data: Any
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
        point, phi, info = move((keys, state.point, at_rung, own), (data, num_trajectories))
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
        return State(point, exchanged, state.round + 1), record

    return round_fn


def by_rung(values: Array, replica_at: Array) -> Array:
    """(copies, K, ...) in the order of replicas -> in the order of rungs."""
    return jax.vmap(lambda ladder, order: ladder[order])(values, replica_at)


_Replica = tuple[Array, Point, Rungs, Any]
"""Key, point, what belongs to its rung, and what its copy has of its own."""


class _Tile(NamedTuple):
    """What decides for all replicas of a tile: the most steps, and whether any sits at an exact
    rung.
    """

    longest: Array
    exact: Array


def _num_steps(replicas: _Replica) -> Array:
    return replicas[2].num_steps


def _in_common(replicas: _Replica) -> _Tile:
    rungs = replicas[2]
    return _Tile(rungs.num_steps.max(), rungs.exact.any())


def _advance(
    kernel_fn: KernelFn, draw_fn: DrawFn | None, *, own_lengths: bool
) -> Callable[..., tuple[Point, Array, Info]]:
    def advance(
        replica: _Replica, given: tuple[Any, Array], tile: _Tile
    ) -> tuple[Point, Array, Info]:
        key, point, rung, own = replica
        data, number = given
        kernel = kernel_fn(data, own)
        steps = Steps(rung.num_steps, tile.longest) if own_lengths else None
        point, info = kernel.trajectories(
            key, point, rung.coefficients, rung.step_sizes, number, steps
        )
        if draw_fn is not None:
            draw_key = jax.random.fold_in(key, number)
            # Decided for the tile as a whole, so that tiles without an exact rung are spared the
            # draws.
            point, info = jax.lax.cond(
                tile.exact,
                lambda *moved: _drawn(kernel, draw_fn(draw_key), rung.exact, *moved),
                lambda *moved: moved,
                point,
                info,
            )
        return point, kernel.terms_fn(point.weights, point.energy), info

    return advance


def _drawn(
    kernel: Kernel, weights: Weights, exact: Array, point: Point, info: Info
) -> tuple[Point, Info]:
    """At an exact rung, these weights in place of where the trajectories led."""
    drawn = kernel.evaluate_fn(weights)
    finite = jnp.isfinite(drawn.energy)
    nonfinite = info.nonfinite + (exact & ~finite).astype(jnp.int32)
    return select(exact & finite, drawn, point), info._replace(nonfinite=nonfinite)
