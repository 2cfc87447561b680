"""Trees of arrays as named arrays, for files, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import jax
import numpy as np

T = TypeVar("T")


def packed(name: str, tree: object) -> dict[str, np.ndarray]:
    """The leaves of a tree as host arrays called `name0`, `name1`, ..."""
    return {f"{name}{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def unpacked(name: str, arrays: Mapping[str, np.ndarray], like: T) -> T:
    """A tree of the structure of `like` from the arrays that `packed` gave; others are ignored."""
    leaves, structure = jax.tree.flatten(like)
    tree: T = jax.tree.unflatten(structure, [arrays[f"{name}{i}"] for i in range(len(leaves))])
    return tree
