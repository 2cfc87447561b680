"""Programs that a step of the study compiles are kept for the next."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from tempernet.devices.tiles import processor

FOLDER = "programs"
CACHE = "jax_compilation_cache_dir"


@contextlib.contextmanager
def compiling(path: Path, *, tiny: bool) -> Iterator[None]:
    """Within it, compiled programs are kept in a folder, unless the user keeps them elsewhere.

    Programs are machine code, which another processor may not know, and JAX does not look: each
    kind of processor has a folder of its own.

    Args:
        path: the study's folder.
        tiny: whether compiling takes longer than running. Then programs are compiled as fast as
            they can be, and a step that is resumed by itself has other roundings.
    """
    changed: dict[str, bool | float | str] = {}
    if tiny:
        changed["jax_disable_most_optimizations"] = True
    if not jax.config.values[CACHE]:
        kind = hashlib.sha256(processor().encode()).hexdigest()[:16]
        changed[CACHE] = str(path / FOLDER / kind)
        changed["jax_persistent_cache_min_compile_time_secs"] = 0.0
    before = {name: jax.config.values[name] for name in changed}
    try:
        _configure(changed)
        yield
    finally:
        _configure(before)


def _configure(changed: dict[str, bool | float | str]) -> None:
    # JAX has no type for it.
    update_fn: Callable[[str, bool | float | str], None] = jax.config.update
    for name, value in changed.items():
        update_fn(name, value)
    # JAX looks at its settings once.
    compilation_cache.reset_cache()
