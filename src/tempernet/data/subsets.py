"""Which examples train and which validate: seeded, stratified, and the same images for ever.

`np.random.RandomState` is frozen by numpy's compatibility policy; the newer `Generator` is not.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tempernet.data import checks
from tempernet.errors import DataError

Positions = npt.NDArray[np.int64]
_MAX_SEED = 2**32 - 1


def choose_training(labels: np.ndarray, classes: int, n_train: int, seed: int) -> Positions:
    """Return `n_train` positions, as many of each class; for one seed a smaller set is a prefix."""
    n_train = checks.whole_number("n_train", n_train, 1)
    seed = checks.whole_number("seed", seed, 0, _MAX_SEED)
    each, rest = divmod(n_train, classes)
    if rest:
        below, above = each * classes, (each + 1) * classes
        nearest = f"{below} or {above}" if below else f"{above}"
        raise DataError(
            f"n_train must be a multiple of the number of classes, {classes}, got {n_train}: ask "
            f"for {nearest}"
        )
    counts = np.bincount(labels, minlength=classes)
    rarest = int(np.argmin(counts))
    if counts[rarest] < each:
        raise DataError(
            f"n_train = {n_train} needs {each} training examples of each class, but class "
            f"{rarest} has {counts[rarest]}; the most allowed is {counts[rarest] * classes}: ask "
            "for fewer or give indices"
        )
    return _stratified_order(labels, classes, np.random.RandomState(seed))[:n_train]


def check_training(indices: npt.ArrayLike, n_source: int) -> Positions:
    """Return a user's training positions, distinct ones in a set of `n_source`, as int64."""
    try:
        given = np.asarray(indices)
    except ValueError as error:
        raise DataError(
            f"indices must be a list of positions, got {indices!r:.80}: {error}"
        ) from error
    if given.ndim != 1 or given.size == 0:
        raise DataError(f"indices must be a list of at least one position, got shape {given.shape}")
    if given.dtype.kind not in "iu":
        raise DataError(
            f"indices must be integers, got dtype {given.dtype}: convert with astype(int)"
        )
    outside = given[(given < 0) | (given >= n_source)]
    if outside.size:
        raise DataError(
            f"indices hold {outside[0]}; positions in this training set are 0..{n_source - 1}: "
            f"check that the indices belong to this data"
        )
    values, counts = np.unique(given, return_counts=True)
    if counts.max() > 1:
        raise DataError(
            f"indices hold {values[np.argmax(counts)]} {counts.max()} times; "
            f"each position is allowed once: remove the duplicates"
        )
    return given.astype(np.int64)


def choose_validation(
    pools: Sequence[np.ndarray], classes: int, n_validation: int, seed: int
) -> list[tuple[Positions, Positions]]:
    """Divide pools of held-out examples into validation and the rest, one pool after another.

    Args:
        pools: the labels of each pool.
        classes: number of classes.
        n_validation: size of the validation set, over all pools; classes are as even as the pools
            allow.
        seed: of a stream that is not the training set's.

    Returns:
        For each pool the positions in it that validate, in drawn order, and those of the rest,
        increasing.
    """
    seed = checks.whole_number("seed", seed, 0, _MAX_SEED)
    held_out = sum(len(labels) for labels in pools)
    wanted = checks.whole_number("n_validation", n_validation, 0)
    if wanted > held_out:
        raise DataError(
            f"n_validation = {wanted} is more than the {held_out} examples that are not training "
            f"data: ask for at most {held_out} or train on fewer"
        )
    random = np.random.RandomState([seed, 1])
    taken = np.zeros(classes, np.int64)
    divided = []
    for labels in pools:
        order = _stratified_order(labels, classes, random, taken)
        chosen, rest = order[:wanted], np.sort(order[wanted:])
        taken = taken + np.bincount(labels[chosen], minlength=classes)
        wanted -= len(chosen)
        divided.append((chosen, rest))
    return divided


def _stratified_order(
    labels: np.ndarray, classes: int, random: np.random.RandomState, taken: np.ndarray | None = None
) -> Positions:
    """Order all positions so that every prefix is as even over the classes as it can be.

    Each class is shuffled; a position's level is its place in its class, counted from the `taken`
    examples that the class already has. Sorting by level, then class, deals the classes out in
    turn.
    """
    shuffled = random.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    counts = np.bincount(labels, minlength=classes)
    first_level = np.cumsum(counts) - counts - (0 if taken is None else taken)
    levels = np.arange(len(labels)) - np.repeat(first_level, counts)
    return by_class[np.lexsort((labels[by_class], levels))].astype(np.int64)
