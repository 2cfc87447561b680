"""New examples to predict, from an npz file, made like the training data of a run."""

from pathlib import Path

import numpy as np

from tempernet.data import checks, images, npz
from tempernet.data.examples import Dataset
from tempernet.data.normalise import normalise
from tempernet.errors import DataError


def read_inputs(
    path: str | Path, like: Dataset, size: int | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Inputs normalised as `like.train` was, and their labels if the file has any.

    Args:
        path: an npz file with `x`, of the training examples' shape unless `size` is given, and
            optionally `y`.
        like: the data set that the network was trained on.
        size: side that images are resized to first, as the training images were; None keeps them.
    """
    path = Path(path)
    arrays = npz.read_arrays(path, required=("x",), optional=("y",))
    name = f"{path.name}: x"
    x = normalised_inputs(name, arrays["x"], like, size)
    y = None
    if "y" in arrays:
        y = checks.labels(f"{path.name}: y", arrays["y"], like.classes)
        checks.same_length(name, x, "y", y)
    return x, y


def normalised_inputs(
    name: str, x: np.ndarray, like: Dataset, size: int | None = None
) -> np.ndarray:
    """New inputs (examples, ...) resized and normalised as `like.train` was.

    `name` is what a complaint calls them; the rest as in `read_inputs`.
    """
    x = checks.pixels(name, x)
    if len(x) == 0:
        raise DataError(
            f"{name} has no examples; at least one is needed to predict: check how the file was "
            "written"
        )
    given, wanted = x.shape[1:], like.train.x.shape[1:]
    if size is not None:
        x = images.resize(name, x, size)
    if x.shape[1:] != wanted:
        resized = "" if x.shape[1:] == given else f", resized {x.shape[1:]}"
        raise DataError(
            f"{name} has examples of shape {given}{resized}; the run was trained on {wanted}: "
            "reshape or resize them"
        )
    return normalise(name, x, like.mean, like.std)
