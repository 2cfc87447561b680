"""A user's own data from a numpy .npz file; nothing in it is ever unpickled."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from tempernet.data import checks
from tempernet.data.source import Source
from tempernet.errors import DataError

_REQUIRED = ("x_train", "y_train")
_OPTIONAL = ("x_test", "y_test")
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(
    path: str | Path, size: int | tuple[int, int] | None = None, classes: int | None = None
) -> Source:
    """Read `x_train`, `y_train` and, if there are any, `x_test` and `y_test` from an npz file.

    Args:
        path: a file written by `numpy.savez` or `numpy.savez_compressed`. x has shape (n,
            features), (n, height, width) or (n, height, width, channels), uint8 or float; y has
            integers, shape (n,).
        size: side or (height, width) to resize images to; None keeps them.
        classes: number of classes; None takes as many as the largest label needs.
    """
    path = Path(path)
    arrays = read_arrays(path, _REQUIRED, _OPTIONAL)
    x_train, y_train = arrays["x_train"], arrays["y_train"]
    x_test, y_test = arrays.get("x_test", x_train[:0]), arrays.get("y_test", y_train[:0])
    if classes is None:
        classes = checks.count_classes(path.stem, y_train, y_test)
    source = Source(path.stem, x_train, y_train, x_test, y_test, classes)
    return source if size is None else source.resized(size)


def read_arrays(
    path: Path, required: tuple[str, ...], optional: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file.

    Args:
        path: the file.
        required: keys that it must have.
        optional: keys of which it must have all or none.
    """
    allowed = f"{' and '.join(required)}, and optionally {' with '.join(optional)}"
    if not path.is_file():
        raise DataError(f"{path}: no such file; an npz file with {allowed} is needed")
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} is not an npz file; one with {allowed} is needed: write it with numpy.savez"
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            _check_keys(path, archive.files, required, optional, allowed)
            return {key: _read_member(path, archive, key, allowed) for key in archive.files}
    except DataError:
        raise
    except _UNREADABLE as error:
        raise DataError(
            f"cannot read {path}: {error}; it must be a complete npz file: write it again"
        ) from error


def _read_member(path: Path, archive: np.lib.npyio.NpzFile, key: str, allowed: str) -> np.ndarray:
    try:
        array = archive[key]
    except _UNREADABLE as error:
        raise DataError(
            f"cannot read {key} of {path}: {error}; it must be an array of uint8, float or "
            f"integers, not of objects: convert it and write the file again"
        ) from error
    # numpy hands back the bytes of a member that is not in its format; a 0-d array has no examples
    # to slice.
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        raise DataError(
            f"{key} of {path} is not an array of examples; {allowed} must be: use numpy.savez"
        )
    return array


def _check_keys(
    path: Path, keys: list[str], required: tuple[str, ...], optional: tuple[str, ...], allowed: str
) -> None:
    unknown = sorted(set(keys) - {*required, *optional})
    if unknown:
        raise DataError(
            f"{path} has the unknown key {unknown[0]!r}; allowed are {allowed}: rename or drop it"
        )
    needed = required + (optional if set(keys) & set(optional) else ())
    missing = [key for key in needed if key not in keys]
    if missing:
        raise DataError(f"{path} lacks the key {missing[0]!r}; allowed are {allowed}: add it")
