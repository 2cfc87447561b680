"""Resizing of images with Pillow's bilinear filter, which widens its support when it shrinks an image."""

from typing import Any

import numpy as np
from PIL import Image

from tempernet.data import checks
from tempernet.errors import DataError

_MAX_SIDE = 1024


def resize(name: str, x: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    """Resize images of shape (n, height, width[, channels]) to `size` = side or (height, width).

    Each channel is resized alone, as an 8-bit image (mode L) if `x` is uint8 and as a float32 image (mode F)
    otherwise; for three 8-bit channels the result is that of an RGB image.
    """
    height, width = _sides(size)
    if x.ndim not in (3, 4):
        raise DataError(
            f"{name} has shape {x.shape} and cannot be resized to {height} x {width}; "
            f"allowed are images of shape (n, height, width[, channels]): reshape the data or leave size out"
        )
    if x.shape[1:3] == (height, width):
        return x
    dtype = np.uint8 if x.dtype == np.uint8 else np.float32
    planes = x[..., np.newaxis] if x.ndim == 3 else x
    resized = np.empty((len(x), height, width, planes.shape[3]), dtype)
    for image, out in zip(planes, resized, strict=True):
        for channel in range(planes.shape[3]):
            plane = np.ascontiguousarray(image[..., channel], dtype)
            out[..., channel] = Image.fromarray(plane).resize((width, height), Image.Resampling.BILINEAR)
    return resized.reshape(len(x), height, width, *x.shape[3:])


def _sides(size: Any) -> tuple[int, int]:
    """Return (height, width) of a size given as one side or as both."""
    sides = size if isinstance(size, tuple | list) else (size, size)
    if len(sides) != 2:
        raise DataError(f"size must be one side or (height, width), got {size!r}")
    height, width = (checks.whole_number("each side of size", side, 1, _MAX_SIDE) for side in sides)
    return height, width
