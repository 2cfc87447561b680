"""Resizing of images with Pillow's bilinear filter, whose support widens as an image shrinks."""

import numpy as np
from PIL import Image

from tempernet.data import checks
from tempernet.errors import DataError

_MAX_SIDE = 1024
_AT_ONCE = 1000


def resize(name: str, x: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    """Resize images of shape (n, height, width[, channels]) to `size` = side or (height, width).

    Each channel is resized alone, as an 8-bit image (mode L) if `x` is uint8 and as a float32 image
    (mode F) otherwise; for three 8-bit channels the result is that of an RGB image.
    """
    height, width = _sides(size)
    if x.ndim not in (3, 4):
        raise DataError(
            f"{name} has shape {x.shape} and cannot be resized to {height} x {width}; "
            f"allowed are images of shape (n, height, width[, channels]): reshape the data or "
            "leave size out"
        )
    if x.shape[1:3] == (height, width):
        return x
    dtype = np.uint8 if x.dtype == np.uint8 else np.float32
    channels = x.shape[3:]
    resized = np.empty((len(x), *channels, height, width), dtype)
    for first in range(0, len(x), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        planes = np.moveaxis(x[part], 3, 1) if channels else x[part]
        across = _resize_rows(planes.astype(dtype, copy=False), width)
        resized[part] = _resize_rows(across.swapaxes(-1, -2), height).swapaxes(-1, -2)
    return np.ascontiguousarray(np.moveaxis(resized, 1, 3) if channels else resized)


def _resize_rows(rows: np.ndarray, length: int) -> np.ndarray:
    """Resize the last axis, all rows at once, as those of one tall image whose height stays.

    Pillow resizes in two passes as well, with a rounding in between. So square images come out to
    the bit as they do one by one, which takes ten times as long; of others Pillow may choose to do
    the columns first.
    """
    tall = np.ascontiguousarray(rows.reshape(-1, rows.shape[-1]))
    image = Image.fromarray(tall).resize((length, len(tall)), Image.Resampling.BILINEAR)
    return np.asarray(image).reshape(*rows.shape[:-1], length)


def _sides(size: object) -> tuple[int, int]:
    """Return (height, width) of a size given as one side or as both."""
    sides = size if isinstance(size, tuple | list) else (size, size)
    if len(sides) != 2:
        raise DataError(f"size must be one side or (height, width), got {size!r}")
    height, width = (checks.whole_number("each side of size", side, 1, _MAX_SIDE) for side in sides)
    return height, width
