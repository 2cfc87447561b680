"""A list of training positions in a text file, one a line."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tempernet.errors import DataError

_MAX_DIGITS = 18  # 18 decimal digits always fit an int64


def read_indices(path: str | Path) -> npt.NDArray[np.int64]:
    """Read positions in a training set, one non-negative integer a line; blank lines are skipped.

    `Source.split(indices=...)` checks that they are distinct and within the training set.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read {path}: {error}; a text file of one position a line is needed"
        ) from error
    positions = []
    for number, line in enumerate(lines, start=1):
        entry = line.strip()
        if not entry:
            continue
        if not (entry.isascii() and entry.isdigit() and len(entry) <= _MAX_DIGITS):
            raise DataError(
                f"{path}, line {number}: {entry[:40]!r} is not a position; "
                f"allowed is one non-negative integer a line: correct or remove it"
            )
        positions.append(int(entry))
    if not positions:
        raise DataError(f"{path} holds 0 positions; at least 1 is needed, one a line")
    return np.array(positions, np.int64)
