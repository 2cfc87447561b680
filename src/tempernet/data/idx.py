"""The idx format of MNIST: a folder of image and label files, each plain or gzipped."""

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from tempernet.data import checks
from tempernet.data.normalise import MNIST_MEAN_STD
from tempernet.data.source import Source
from tempernet.errors import DataError

# SHA-256 of the 60,000 training labels, a byte each: what makes a folder MNIST, whatever it is
# called.
_MNIST_LABELS_SHA256 = "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"
_UNSIGNED_BYTE = 0x08


def read_idx(folder: str | Path, size: int | tuple[int, int] | None = None) -> Source:
    """Read a folder of idx files of 8-bit images and labels.

    The files are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and, if there is a test set,
    `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`; a dot before `idx` and a final `.gz` are
    allowed. Where there are several spellings of one file, the plain one is read.

    Args:
        folder: where the files are.
        size: side or (height, width) to resize the images to; None keeps them.

    Returns:
        A source with as many classes as the largest label needs. MNIST is recognised by its
        training labels and normalised by its customary mean and standard deviation.
    """
    folder = Path(folder)
    x_train = _read_array(_required(folder, "train-images", 3), 3)
    y_train = _read_array(_required(folder, "train-labels", 1), 1)
    x_test, y_test = x_train[:0], y_train[:0]
    if _find(folder, "t10k-images", 3) or _find(folder, "t10k-labels", 1):
        x_test = _read_array(_required(folder, "t10k-images", 3), 3)
        y_test = _read_array(_required(folder, "t10k-labels", 1), 1)

    is_mnist = hashlib.sha256(y_train.tobytes()).hexdigest() == _MNIST_LABELS_SHA256
    name = folder.resolve().name or "idx"
    source = Source(
        name=name,
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        classes=checks.count_classes(name, y_train, y_test),
        mean_std=MNIST_MEAN_STD if is_mnist else None,
    )
    return source if size is None else source.resized(size)


def _spellings(stem: str, ndim: int) -> list[str]:
    return [f"{stem}{dot}idx{ndim}-ubyte{gz}" for gz in ("", ".gz") for dot in ("-", ".")]


def _find(folder: Path, stem: str, ndim: int) -> Path | None:
    return next(
        (folder / name for name in _spellings(stem, ndim) if (folder / name).is_file()), None
    )


def _required(folder: Path, stem: str, ndim: int) -> Path:
    path = _find(folder, stem, ndim)
    if path is None:
        kind = "no such folder" if not folder.is_dir() else "no such file in it"
        raise DataError(
            f"{folder}: {kind}; one of these is needed: {', '.join(_spellings(stem, ndim))}"
        )
    return path


def _read_array(path: Path, ndim: int) -> np.ndarray:
    """Read one file: two zero bytes, type, number of axes, their lengths (uint32), content."""
    content = _read_bytes(path)
    magic, header = bytes([0, 0, _UNSIGNED_BYTE, ndim]), 4 + 4 * ndim
    if content[:4] != magic:
        raise DataError(
            f"{path} starts with the bytes {content[:4].hex() or 'none'}; "
            f"an idx file of unsigned bytes with {ndim} axes starts with {magic.hex()}: "
            f"check that this is the right file"
        )
    if len(content) < header:
        raise DataError(
            f"{path} has {len(content)} bytes; its header alone needs {header}: get the file again"
        )
    shape = struct.unpack(f">{ndim}I", content[4:header])
    expected, found = math.prod(shape), len(content) - header
    if found != expected:
        fault = "is truncated" if found < expected else "has trailing bytes"
        raise DataError(
            f"{path} {fault}: {found} bytes after the header, where its shape {shape} needs "
            f"exactly {expected}: get the file again"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"cannot read {path}: {error}; a complete idx file, plain or gzipped, is needed: get "
            "it again"
        ) from error
