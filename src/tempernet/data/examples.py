"""The examples a network sees: normalised inputs with labels, and a data set of three groups."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tempernet.data import checks
from tempernet.errors import DataError


@dataclass(frozen=True, eq=False)
class Examples:
    """Normalised inputs with their labels.

    Args:
        x: float32 of shape (n, *input_shape).
        y: int32 of shape (n,), the number of each example's class.
    """

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, array, dtype in (("x", self.x, np.float32), ("y", self.y, np.int32)):
            found = getattr(array, "dtype", type(array).__name__)
            if found != dtype:
                raise DataError(
                    f"{name} of Examples must be a {dtype.__name__} array, got {found}: convert "
                    "it first"
                )
        checks.label_array("y", self.y)
        checks.same_length("x", self.x, "y", self.y)
        object.__setattr__(self, "x", checks.read_only(self.x))
        object.__setattr__(self, "y", checks.read_only(self.y))

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """What one run trains on and is tested on; no example is in two of the three groups.

    Attributes:
        name: the source's name.
        train: the training examples, in the order of `indices`.
        validation: held-out examples for choosing settings; empty unless asked for.
        test: the other held-out examples: official test examples first, then unused training
            examples, each in the source's order. Empty if the source has no test set and every
            training example is used.
        classes: number of classes.
        indices: positions of `train` in the source's training set, int64.
        mean, std: `x` is (stored / pixel_range - mean) / std.
        sha256: hash of the stored pixels and labels of the three groups, in order, with what fixes
            their normalisation. Two runs with the same hash used the same data.
    """

    name: str
    train: Examples
    validation: Examples
    test: Examples
    classes: int
    indices: npt.NDArray[np.int64]
    mean: float
    std: float
    sha256: str
