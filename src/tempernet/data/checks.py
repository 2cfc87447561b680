"""What an array of examples or a count must satisfy before anything is computed from it."""

import numpy as np

from tempernet.errors import DataError

MAX_CLASSES = 65_536
_PIXEL_TYPES = (np.uint8, np.float16, np.float32, np.float64)


def whole_number(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` as an int if it is a whole number from `low` to `high` (None: no limit)."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if number >= low and (high is None or number <= high):
            return number
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise DataError(f"{name} must be an integer {allowed}, got {value!r}")


def pixels(name: str, x: np.ndarray) -> np.ndarray:
    """Return `x` read-only in native byte order if it holds examples that a network can take."""
    _is_array(name, x)
    if x.dtype.type not in _PIXEL_TYPES:
        raise DataError(
            f"{name} has dtype {x.dtype}; allowed are uint8 (0..255), float16, float32 and "
            "float64: convert it first"
        )
    if x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise DataError(
            f"{name} has shape {x.shape}; allowed are (n, features), (n, height, width) and "
            f"(n, height, width, channels) with no empty axis after the first: reshape it"
        )
    if x.dtype != np.uint8:
        usable = np.abs(x) <= np.finfo(np.float32).max
        if not usable.all():
            where = tuple(int(i) for i in np.argwhere(~usable)[0])
            raise DataError(
                f"{name} holds {x[where]} at position {where}; pixels must be finite and within "
                f"float32: remove or replace such values"
            )
    return read_only(x.astype(x.dtype.newbyteorder("="), copy=False))


def labels(name: str, y: np.ndarray, classes: int) -> np.ndarray:
    """Return `y` as read-only int32 if every label is an integer in 0..classes-1."""
    label_array(name, y)
    _all_labels(name, y, y < classes, f"in 0..{classes - 1}")
    return read_only(y.astype(np.int32))


def count_classes(name: str, y_train: np.ndarray, y_test: np.ndarray) -> int:
    """Return as many classes as the largest label needs."""
    label_array(f"{name}: y_train", y_train)
    label_array(f"{name}: y_test", y_test)
    return max(int(y.max(initial=0)) for y in (y_train, y_test)) + 1


def label_array(name: str, y: np.ndarray) -> None:
    """Raise unless `y` is a one-dimensional array of integers, none of them negative."""
    _is_array(name, y)
    if y.dtype.kind not in "iu":
        raise DataError(
            f"{name} has dtype {y.dtype}; labels must be integers, one a class: convert with "
            "astype(int)"
        )
    if y.ndim != 1:
        raise DataError(f"{name} has shape {y.shape}; labels must have shape (n,): flatten them")
    _all_labels(name, y, y >= 0, "from 0 up")


def same_length(x_name: str, x: np.ndarray, y_name: str, y: np.ndarray) -> None:
    """Raise unless there is one label for each example."""
    if len(x) != len(y):
        raise DataError(
            f"{x_name} has {len(x)} examples and {y_name} has {len(y)} labels; "
            f"allowed is one label for each example: check that the two belong together"
        )


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of `array` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _all_labels(name: str, y: np.ndarray, allowed: np.ndarray, rule: str) -> None:
    if not allowed.all():
        first = int(np.argmin(allowed))
        raise DataError(
            f"{name}[{first}] is {y[first]}; labels must be integers {rule}: "
            f"renumber the labels or give the right number of classes"
        )


def _is_array(name: str, value: object) -> None:
    if not isinstance(value, np.ndarray):
        raise DataError(
            f"{name} must be a numpy array, got {type(value).__name__}: pass it through "
            "numpy.asarray"
        )
