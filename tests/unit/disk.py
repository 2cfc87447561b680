"""Faults of the disk for tests of the store: writes that fail or are killed, damaged files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tempernet.config import SweepSettings
from tempernet.store import Checkpoints, Records, RunFolder, files
from tempernet.store.folder import PROVENANCE

HUGE = 2**40
POINTS = ("open", "flush", "rename", "folder")


def nothing(path: Path, step: str) -> None:
    """A step of a write in peace."""


class Killed(BaseException):
    """What a kill is to the code that it interrupts: nothing is tidied up."""


class Interrupt:
    """A `before_step` that raises at the n-th step of all writes."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.left, self.error = at, error

    def __call__(self, path: Path, point: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error


def steps_of(action: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps of writes an action takes."""
    counted = []
    monkeypatch.setattr(files, "before_step", lambda path, point: counted.append(point))
    action()
    monkeypatch.setattr(files, "before_step", nothing)
    return len(counted)


def row(number: int) -> dict[str, Any]:
    return {"number": number, "energy": np.full((2, 3), number, np.float32)}


def numbers(records: Records, series: str = "rounds", skip: int = 0) -> list[int]:
    """The rows on disk, each of which is whole."""
    found = records.load(series, skip)
    if not found:
        return []
    np.testing.assert_array_equal(
        found["energy"],
        np.broadcast_to(found["number"][:, None, None], (len(found["number"]), 2, 3)),
    )
    return found["number"].tolist()


def written(folder: Path, *chunks: int) -> Records:
    """Chunks of so many rows of `rounds`, and one of `scores` with every second row."""
    records = Records(folder)
    number = 0
    for rows in chunks:
        for _ in range(rows):
            records.append("rounds", row(number))
            if number % 2:
                records.append("scores", row(number))
            number += 1
        records.flush()
    return records


def spoil(path: Path, how: str) -> None:
    """Damage a file."""
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


DAMAGE = ["missing", "truncated", "empty", "flipped"]


def saved(folder: Path, *values: int) -> Checkpoints:
    checkpoints = Checkpoints(folder)
    for value in values:
        checkpoints.save({"x": np.full(3, value)}, {"round": value, "nested": {"rows": [value]}})
    return checkpoints


def newest(checkpoints: Checkpoints) -> int | None:
    found, _ = checkpoints.latest()
    if found is None:
        return None
    value = found.meta["round"]
    assert found.meta["nested"] == {"rows": [value]} and found.arrays.keys() == {"x"}
    np.testing.assert_array_equal(found.arrays["x"], np.full(3, value))
    return int(value)


def begun(path: Path) -> RunFolder:
    folder = RunFolder.create(path)
    folder.write_settings(SweepSettings())
    folder.write_json(PROVENANCE, {"seed": 1})
    return folder


def pickled() -> bytes:
    """An archive that would run code."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=True, x=np.array([{"a": 1}, None], dtype=object))
    return buffer.getvalue()


def one_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()
