"""Normalisation by two numbers: x -> (x / pixel_range - mean) / std, in pieces to bound memory."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tempernet.errors import DataError

MNIST_MEAN_STD = (0.1307, 0.3081)
_PIECE = 1024


def pixel_range(dtype: np.dtype) -> float:
    """Return what stored pixels are divided by: 255 for 8-bit images, 1 for floats."""
    return 255.0 if dtype == np.uint8 else 1.0


def mean_std(name: str, x: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation over all pixels of `x` divided by its pixel range."""
    mean = sum(float(piece.sum()) for _, piece in _pieces(x)) / x.size
    variance = sum(float(np.square(piece - mean).sum()) for _, piece in _pieces(x)) / x.size
    std = float(np.sqrt(variance))
    # Rounding leaves the std of a constant array a little above 0, so equality is what is tested.
    if std == 0 or x.min() == x.max():
        raise DataError(
            f"{name}: the pixels of the {len(x)} training examples have standard deviation 0 "
            f"(the first is {x.flat[0]}); it must be positive to normalise: choose other examples"
        )
    return mean, std


def normalise(name: str, x: np.ndarray, mean: float, std: float) -> npt.NDArray[np.float32]:
    """Return (x / pixel_range - mean) / std as float32, computed in float64."""
    normalised = np.empty(x.shape, np.float32)
    with np.errstate(over="ignore"):
        for rows, piece in _pieces(x):
            normalised[rows] = (piece - mean) / std
    if not np.isfinite(normalised).all():
        raise DataError(
            f"{name}: pixels up to {np.abs(x).max()} leave float32 when divided by the training "
            f"examples' standard deviation {std}; normalised pixels must be finite: rescale the "
            "data or remove outliers"
        )
    return normalised


def _pieces(x: np.ndarray) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Yield slices of `x` in float64, divided by the pixel range."""
    scale = pixel_range(x.dtype)
    for start in range(0, len(x), _PIECE):
        rows = slice(start, start + _PIECE)
        yield rows, x[rows].astype(np.float64) / scale
