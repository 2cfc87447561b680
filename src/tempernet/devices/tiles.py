"""Tiles: how many replicas a device should advance at a time, measured and not guessed.

Too few and the matrix products are small; too many and weights, momenta and activations leave the
cache. The tile sets the order of additions, and two that are equally fast would win by chance: what
a machine has measured is kept in its cache folder, so that the same run begun again gives the same
bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from tempernet.devices.mesh import REPLICA, Layout, Specs, compiled, over_replicas
from tempernet.model.networks import Weights
from tempernet.model.target import Data

MAX_BYTES = 200e6
"""Tiles whose working memory on a device exceeds this are not used."""
REPLICAS_TIMED = 16
"""Replicas a device that each measurement runs, if there are as many."""
FIRST_TILE = 8
TILES_BY_LENGTH = 8
"""Tiles a device of an energy that is not timed, where replicas of like lengths share one."""
LONGEST = 3
"""Trajectories of the coldest rung in units of the mean, where every rung has its own length."""
REPEATS = 5
Stopwatch = Callable[[], float]
"""Seconds that one run of a tile takes, for each of its replicas."""


def untimed_tile(layout: Layout, *, by_length: bool) -> int:
    """All replicas of a device at once, or in a few tiles where they differ in length."""
    tiles = TILES_BY_LENGTH if by_length else 1
    devices = int(layout.mesh.shape[REPLICA])
    return -(-layout.num_replicas // (devices * tiles))


def fastest_tile(
    trajectory_fn: Callable[[Weights, Data], object],
    like: Weights,
    layout: Layout,
    data: Data,
    specs: Specs,
    *,
    by_length: bool,
) -> int:
    """The tile that advances a replica fastest, as this machine has measured it first.

    All devices work at once. From a tile of 8, larger ones are tried while they are faster, or else
    smaller ones.

    Args:
        trajectory_fn: (weights, data) of one replica -> anything: a short piece of its work.
        like: shapes of the weights of one replica.
        layout: devices and number of replicas.
        data, specs: what the energy reads, on the devices, and its partition specs.
        by_length: a tile runs as long as its longest replica, and the others wait. Of n tiles a
            device, lengths from 0 to a times the mean make it 1 + a/2n times the mean, whatever
            their density in between; the ladders of sweeps and evidences have a near 3.
    """
    devices = layout.mesh.shape[REPLICA]
    share = -(-layout.num_replicas // devices)

    def stopwatch(tile: int) -> Stopwatch:
        tiles = max(1, min(REPLICAS_TIMED, share) // tile)
        trial = replace(layout, num_replicas=tiles * tile * devices, tile=tile)
        waiting = 0.5 * LONGEST * tile / share if by_length else 0.0
        run = _stopwatch(trajectory_fn, like, trial, data, specs)
        return lambda: (1 + waiting) * run()

    one_each = replace(layout, num_replicas=devices, tile=1)
    program, _ = _lowered(trajectory_fn, like, one_each, data, specs)
    machine = f"{jax.__version__} {layout.mesh.devices.flat[0].device_kind} {processor()}"
    work = f"{machine} {layout.num_replicas} {by_length} {program.as_text()}"
    return _remembered(work, lambda: _fastest(stopwatch, share), share)


def _fastest(stopwatch_fn: Callable[[int], Stopwatch], share: int) -> int:
    best = min(FIRST_TILE, share)
    champion = stopwatch_fn(best)
    for larger in (True, False):
        began = best
        tile = min(2 * best, share) if larger else best // 2
        while tile >= 1 and tile != best and _is_faster(challenger := stopwatch_fn(tile), champion):
            best, champion = tile, challenger
            tile = min(2 * best, share) if larger else best // 2
        if best != began:
            break
    return best


def _is_faster(challenger: Stopwatch, champion: Stopwatch) -> bool:
    """By the best of a few runs, in turn: a machine that is busy for a while is busy for both."""
    times = np.array([(challenger(), champion()) for _ in range(REPEATS)])
    return bool(np.less(*times.min(axis=0)))


def _remembered(what: str, measured: Callable[[], int], most: int) -> int:
    """The tile kept for this work on this machine, or else the measured one, which is then kept."""
    path = cache_folder() / "tiles" / hashlib.sha256(what.encode()).hexdigest()[:32]
    if (known := _read_tile(path, most)) is not None:
        return known
    tile = measured()
    # Of two runs that begin at once, both take the tile that is kept first. A cache that cannot be
    # written is no loss.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and _read_tile(path, most) is None:
            path.unlink()
        mine = path.with_name(f"{path.name}.{os.getpid()}")
        mine.write_text(f"{tile}\n")
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(mine)
        mine.unlink()
    return _read_tile(path, most) or tile


def _read_tile(path: Path, most: int) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        tile = int(path.read_text())
        if 1 <= tile <= most:
            return tile
    return None


def cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "tempernet"
    try:
        return Path.home() / ".cache" / "tempernet"
    except RuntimeError:
        # A user without a home.
        return Path(tempfile.gettempdir()) / "tempernet"


def processor() -> str:
    """The processor's name and what it can do.

    Machines that share a folder share neither tiles nor programs.
    """
    with contextlib.suppress(OSError):
        said = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        told = {name.strip(): text.strip() for name, _, text in said}
        if found := [told[name] for name in ("model name", "flags", "Features") if name in told]:
            return " ".join(found)
    return f"{platform.machine()} {platform.processor()}"


def _stopwatch(
    trajectory_fn: Callable[[Weights, Data], object],
    like: Weights,
    layout: Layout,
    data: Data,
    specs: Specs,
) -> Stopwatch:
    """Seconds a replica of one run, after a first one; infinite if a tile takes too much memory."""
    program, arguments = _lowered(trajectory_fn, like, layout, data, specs)
    run = program.compile()
    memory = run.memory_analysis()
    if memory is not None and memory.temp_size_in_bytes > MAX_BYTES:
        return lambda: np.inf
    jax.block_until_ready(run(*arguments))

    def seconds() -> float:
        began = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        return (time.perf_counter() - began) / layout.num_replicas

    return seconds


def _lowered(
    trajectory_fn: Callable[[Weights, Data], object],
    like: Weights,
    layout: Layout,
    data: Data,
    specs: Specs,
) -> tuple[jax.stages.Lowered, tuple[Weights, Data]]:
    """The program of all replicas of a layout, and the weights and data it runs on."""
    zeros = jax.tree.map(
        lambda leaf: np.zeros((layout.num_replicas, *leaf.shape), leaf.dtype), like
    )
    arguments = (layout.put_replicas(zeros), data)
    return compiled(over_replicas(trajectory_fn, layout, specs)).lower(*arguments), arguments
