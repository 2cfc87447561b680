"""MNIST at 16 x 16 pixels, embedded in the package.

`mnist16.xz` holds 70,000 images of 16 x 16 bytes, row by row, the 60,000 of the training set first,
in MNIST's order; then their 70,000 labels, a byte each. `scripts/build_mnist16.py` makes it;
`mnist16.LICENSE.md` says where the images come from.
"""

import functools
import hashlib
import lzma
from importlib import resources

import numpy as np

from tempernet.data.normalise import MNIST_MEAN_STD
from tempernet.data.source import Source
from tempernet.errors import DataError

FILE_NAME = "mnist16.xz"
FILE_SHA256 = "a1f254b98b42db5c5da4a8000b2d0386364c55cf7c71e17cbff247dde019ae39"
SIDE = 16
N_TRAIN, N_TEST = 60_000, 10_000


@functools.cache
def mnist16() -> Source:
    """Return MNIST resized to 16 x 16 pixels; read once and shared, with read-only arrays."""
    payload = np.frombuffer(read_payload(), np.uint8)
    n_images = N_TRAIN + N_TEST
    images, labels = np.split(payload, [n_images * SIDE * SIDE])
    x = images.reshape(n_images, SIDE, SIDE)
    return Source(
        name="mnist16",
        x_train=x[:N_TRAIN],
        y_train=labels[:N_TRAIN],
        x_test=x[N_TRAIN:],
        y_test=labels[N_TRAIN:],
        classes=10,
        mean_std=MNIST_MEAN_STD,
    )


def read_payload() -> bytes:
    """Return the decompressed content of the embedded file, if its SHA-256 is right."""
    try:
        content = resources.files("tempernet.data").joinpath(FILE_NAME).read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read the embedded {FILE_NAME}: {error}; reinstall tempernet"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != FILE_SHA256:
        raise DataError(
            f"the embedded {FILE_NAME} has SHA-256 {found}, not {FILE_SHA256}: reinstall tempernet"
        )
    return lzma.decompress(content)
