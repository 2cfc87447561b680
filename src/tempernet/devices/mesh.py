"""A mesh of devices, the layout of replicas on it, and a function of one mapped over all replicas.

The mesh has two axes. `replica` splits the replicas; within a device they go through the function
in tiles that fit the cache, one tile after another. `data` splits the examples of each replica, for
data sets that outgrow a device; a function then sums over it with `jax.lax.psum(..., DATA)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tempernet.devices.setup import ENVIRONMENT, cores, warn_if_not_configured
from tempernet.errors import ConfigError

REPLICA, DATA = "replica", "data"
_WIDTH = "xla_cpu_prefer_vector_width"

Tree = Any
"""A pytree of arrays."""
Specs = Any
"""A pytree of partition specs or shardings, one for each array."""
Mapped = Callable[..., Tree]
"""A function of arrays, or the compiled program of one, which can also be lowered."""
_T = TypeVar("_T")


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
        return -(-self.num_replicas // (self._devices * self.tile))

    @property
    def padded(self) -> int:
        """Replicas with the padding."""
        return self._devices * self.tiles * self.tile

    @property
    def _devices(self) -> int:
        return int(self.mesh.shape[REPLICA])

    def with_tile(self, tile: int) -> Layout:
        """Tiles of at most this size, evened out so that the last one is not nearly empty."""
        share = -(-self.num_replicas // self._devices)
        tiles = -(-share // tile)
        return replace(self, tile=-(-share // tiles))

    @property
    def by_replica(self) -> NamedSharding:
        """Leading axis split over the replica devices."""
        return NamedSharding(self.mesh, _spec(REPLICA))

    @property
    def everywhere(self) -> NamedSharding:
        """The whole on every device."""
        return NamedSharding(self.mesh, _spec())

    def shardings(self, specs: Specs) -> Specs:
        """Partition specs as shardings on this mesh."""
        return jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), specs)

    def put_replicas(self, tree: _T) -> _T:
        """Lay arrays (num_replicas, ...) out on the mesh, padded by repeats of the last replica."""
        extra = self.padded - self.num_replicas

        def put(leaf: np.ndarray | Array) -> Array:
            array = np.asarray(leaf)
            if extra:
                array = np.concatenate([array, np.repeat(array[-1:], extra, axis=0)])
            on_devices: Array = jax.device_put(array, self.by_replica)
            return on_devices

        laid_out: _T = jax.tree.map(put, tree)
        return laid_out

    def put_data(self, tree: _T, specs: Specs) -> _T:
        """Lay data out on the mesh by its partition specs (see `example_specs`)."""
        laid_out: _T = jax.tree.map(jax.device_put, tree, self.shardings(specs))
        return laid_out


def example_specs(tree: Tree, example_axes: Tree = None) -> Specs:
    """Partition specs of data: each array split along its example axis, or whole everywhere.

    Args:
        tree: the data, a pytree of arrays.
        example_axes: the example axis of each array, or None for whole arrays on every device.
    """
    if example_axes is None:
        return jax.tree.map(lambda _: _spec(), tree)
    return jax.tree.map(
        lambda leaf, axis: _spec(*[None] * (axis % leaf.ndim), DATA), tree, example_axes
    )


def make_mesh(num_devices: int | None = None, data_devices: int = 1) -> Mesh:
    """A mesh of devices, with the axes (replica, data).

    Args:
        num_devices: how many; by default all, on CPU at most one a core.
        data_devices: how many of them lie along `data`; a divisor of their number.
    """
    devices = jax.devices()
    is_asked = num_devices is not None
    if num_devices is None:
        num_devices = min(len(devices), cores()) if devices[0].platform == "cpu" else len(devices)
        num_devices = max(num_devices, data_devices)
    if not 1 <= num_devices <= len(devices):
        raise ConfigError(
            f"devices must lie in 1..{len(devices)}, what JAX started with, got {num_devices}; "
            f"call tempernet.configure(devices=...) or set {ENVIRONMENT} before JAX is first used "
            f"to start with more"
        )
    if data_devices < 1 or num_devices % data_devices:
        raise ConfigError(f"data_devices must divide the {num_devices} devices, got {data_devices}")
    warn_if_not_configured(num_devices, is_asked=is_asked)
    grid = np.array(devices[:num_devices]).reshape(num_devices // data_devices, data_devices)
    return Mesh(grid, (REPLICA, DATA))


def compiled(fn: Callable[..., Tree], **options: object) -> jax.stages.Wrapped:
    """`jax.jit` of a program of all replicas, whose loops use vectors of 512 bits if they can.

    XLA's own choice is 256, and only its matrix products are wider: 4 % of a step of M3 on D_50 and
    on D_500. Said by program, so that it leaves a user's own JAX code alone; and not at all if the
    user's flags say a width.

    Args:
        fn: a function of arrays.
        options: of `jax.jit`.
    """
    wide = jax.default_backend() == "cpu" and _WIDTH not in os.environ.get("XLA_FLAGS", "")
    said: Any = {"compiler_options": {_WIDTH: 512} if wide else None, **options}
    return jax.jit(fn, **said)


def over_replicas(
    fn: Mapped,
    layout: Layout,
    specs: Specs,
    *,
    tile_fn: Callable[[Tree], Tree] | None = None,
    length_fn: Callable[[Tree], Array] | None = None,
) -> Mapped:
    """Map `fn(replica_arguments, data)` over the leading axis of its first argument.

    Devices by `shard_map`, tiles by `lax.map`, replicas of a tile by `vmap`.

    Args:
        fn: of the arguments of one replica, the data that its device sees, and with `tile_fn` what
            the replicas of its tile have in common.
        layout: where the replicas are.
        specs: partition specs of the data, which say what part of it each device sees.
        tile_fn: replicas of a tile (tile, ...) -> what they have in common.
        length_fn: replicas of a device -> how much work each has to do, (replicas,). A device then
            puts its replicas of like lengths into the same tiles.
    """
    tiles, tile = layout.tiles, layout.tile

    def on_device(replicas: Tree, data: Tree) -> Tree:
        def one_tile(some: Tree) -> Tree:
            common = () if tile_fn is None else (tile_fn(some),)
            return jax.vmap(lambda one: fn(one, data, *common))(some)

        def in_tiles(replicas: Tree) -> Tree:
            split = jax.tree.map(lambda a: a.reshape(tiles, tile, *a.shape[1:]), replicas)
            done = jax.lax.map(one_tile, split)
            return jax.tree.map(lambda a: a.reshape(tiles * tile, *a.shape[2:]), done)

        if length_fn is None:
            return in_tiles(replicas)
        order = jnp.argsort(length_fn(replicas))
        done = in_tiles(jax.tree.map(lambda a: a[order], replicas))
        back = jnp.argsort(order)
        return jax.tree.map(lambda a: a[back], done)

    replica = _spec(REPLICA)
    return jax.shard_map(
        on_device, mesh=layout.mesh, in_specs=(replica, specs), out_specs=replica, check_vma=False
    )


def _spec(*axes: str | None) -> PartitionSpec:
    return PartitionSpec(*axes)
