"""Devices: one a core, a mesh of them, and a function of one replica mapped over all replicas.

The mesh has two axes. `replica` splits the replicas; within a device they go through the function
in tiles that fit the cache, one tile after another. `data` splits the examples of each replica, for
data sets that outgrow a device; a function then sums over it with `jax.lax.psum(..., DATA)`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tempernet.errors import ConfigError

REPLICA, DATA = "replica", "data"
MAX_DEVICES = 8
PATIENCE = 10**8
"""Seconds that a CPU device waits for the others."""
_WAITING = (
    "xla_cpu_collective_call_terminate_timeout_seconds",
    "xla_cpu_collective_call_warn_stuck_timeout_seconds",
)


_WIDTH = "xla_cpu_prefer_vector_width"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wait_for_late_devices() -> None:
    """Let CPU devices wait for each other for as long as it takes, unless the user has said how
    long.

    XLA ends the process if a device waits 40 s for another one at a collective. On a busy machine
    the devices come to the end of a long round further apart than that, and they do come. XLA reads
    its flags when JAX starts.
    """
    given = os.environ.get("XLA_FLAGS", "")
    missing = [f"--{flag}={PATIENCE}" for flag in _WAITING if flag not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *missing]).strip()


def one_device_per_core() -> None:
    """Ask JAX for a CPU device a core, at most 8, unless the user has asked for a number or JAX has
    started.

    JAX fixes its devices at first use, so this runs when tempernet is imported.
    `TEMPERNET_DEVICES=4` in the environment asks for another number.
    """
    asked = os.environ.get("TEMPERNET_DEVICES", "")
    if asked and not (asked.isdigit() and 1 <= int(asked) <= MAX_DEVICES):
        raise ConfigError(
            f"TEMPERNET_DEVICES must be a whole number from 1 to {MAX_DEVICES}, got {asked!r}"
        )
    by_flag = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    chosen: int = jax.config.jax_num_cpu_devices  # type: ignore[attr-defined]
    if chosen >= 0 or by_flag:
        return
    # JAX has started already: its devices stay as they are.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", int(asked) if asked else min(cores(), MAX_DEVICES))


@dataclass(frozen=True)
class Layout:
    """Where the replicas are: the mesh, their number, and the tile that a device takes at a time.

    `padded` replicas are kept, the smallest number from `num_replicas` up that fills all tiles of
    all devices.
    """

    mesh: Mesh
    num_replicas: int
    tile: int

    @property
    def tiles(self) -> int:
        """Tiles that each device works through."""
        return -(-self.num_replicas // (self.mesh.shape[REPLICA] * self.tile))

    @property
    def padded(self) -> int:
        """Replicas with the padding."""
        return self.mesh.shape[REPLICA] * self.tiles * self.tile

    def with_tile(self, tile: int) -> Layout:
        """Tiles of at most this size, evened out so that the last one is not nearly empty."""
        share = -(-self.num_replicas // self.mesh.shape[REPLICA])
        tiles = -(-share // tile)
        return replace(self, tile=-(-share // tiles))

    @property
    def by_replica(self) -> NamedSharding:
        """Leading axis split over the replica devices."""
        return NamedSharding(self.mesh, PartitionSpec(REPLICA))

    @property
    def everywhere(self) -> NamedSharding:
        """The whole on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def shardings(self, specs: Any) -> Any:
        """Partition specs as shardings on this mesh."""
        return jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), specs)

    def put_replicas(self, tree: Any) -> Any:
        """Lay a tree with a leading axis of `num_replicas` out on the mesh, padded by repeats of
        the last.
        """
        extra = self.padded - self.num_replicas

        def put(leaf: Any) -> jax.Array:
            array = np.asarray(leaf)
            if extra:
                array = np.concatenate([array, np.repeat(array[-1:], extra, axis=0)])
            return jax.device_put(array, self.by_replica)

        return jax.tree.map(put, tree)

    def put_data(self, tree: Any, specs: Any) -> Any:
        """Lay data out on the mesh by its partition specs (see `example_specs`)."""
        return jax.tree.map(jax.device_put, tree, self.shardings(specs))


def example_specs(tree: Any, example_axes: Any = None) -> Any:
    """Partition specs of data: each leaf split along its example axis, or whole on every device if
    None.
    """
    if example_axes is None:
        return jax.tree.map(lambda _: PartitionSpec(), tree)
    return jax.tree.map(
        lambda leaf, axis: PartitionSpec(*[None] * (axis % leaf.ndim), DATA), tree, example_axes
    )


def make_mesh(num_devices: int | None = None, data_devices: int = 1) -> Mesh:
    """A mesh of `num_devices` (default: all, on CPU at most one a core), `data_devices` of them
    along `data`.
    """
    devices = jax.devices()
    if num_devices is None:
        num_devices = min(len(devices), cores()) if devices[0].platform == "cpu" else len(devices)
        num_devices = max(num_devices, data_devices)
    if not 1 <= num_devices <= len(devices):
        raise ConfigError(
            f"devices must lie in 1..{len(devices)}, what JAX started with, got {num_devices}; set "
            f"TEMPERNET_DEVICES before JAX is first used to start with more"
        )
    if data_devices < 1 or num_devices % data_devices:
        raise ConfigError(f"data_devices must divide the {num_devices} devices, got {data_devices}")
    grid = np.array(devices[:num_devices]).reshape(num_devices // data_devices, data_devices)
    return Mesh(grid, (REPLICA, DATA))


def compiled(fn: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` of a program of all replicas, whose loops use vectors of 512 bits where the
    processor has them.

    XLA's own choice is 256, and only its matrix products are wider: 4 % of a step of M3 on D_50 and
    on D_500. Said by program, so that it leaves a user's own JAX code alone; and not at all if the
    user's flags say a width.
    """
    wide = jax.default_backend() == "cpu" and _WIDTH not in os.environ.get("XLA_FLAGS", "")
    return jax.jit(fn, compiler_options={_WIDTH: 512} if wide else None, **options)


def over_replicas(
    fn: Callable[..., Any],
    layout: Layout,
    specs: Any,
    *,
    tile_fn: Callable[[Any], Any] | None = None,
    length_fn: Callable[[Any], Array] | None = None,
) -> Callable[..., Any]:
    """Map `fn(replica_arguments, data)` over the leading axis of its first argument.

    Devices by `shard_map`, tiles by `lax.map`, replicas of a tile by `vmap`. Each device sees the
    part of `data` that its partition `specs` give it. With `tile_fn(replicas)`, what the replicas
    of a tile have in common, `fn` is given that as a third argument. With `length_fn(replicas)`,
    how much work each has to do, a device puts its replicas of like lengths into the same tiles.
    """
    tiles, tile = layout.tiles, layout.tile

    def on_device(replicas: Any, data: Any) -> Any:
        def one_tile(some: Any) -> Any:
            common = () if tile_fn is None else (tile_fn(some),)
            return jax.vmap(lambda one: fn(one, data, *common))(some)

        def in_tiles(replicas: Any) -> Any:
            split = jax.tree.map(lambda a: a.reshape(tiles, tile, *a.shape[1:]), replicas)
            return jax.tree.map(
                lambda a: a.reshape(tiles * tile, *a.shape[2:]), jax.lax.map(one_tile, split)
            )

        if length_fn is None:
            return in_tiles(replicas)
        order = jnp.argsort(length_fn(replicas))
        done = in_tiles(jax.tree.map(lambda a: a[order], replicas))
        back = jnp.argsort(order)
        return jax.tree.map(lambda a: a[back], done)

    replica = PartitionSpec(REPLICA)
    return jax.shard_map(
        on_device, mesh=layout.mesh, in_specs=(replica, specs), out_specs=replica, check_vma=False
    )
