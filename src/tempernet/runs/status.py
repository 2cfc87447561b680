"""The status of a run: its heartbeat, its verdict so far, and whether its folder is whole.

Reads only.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tempernet.config import RunSettings
from tempernet.errors import StoreError
from tempernet.kinds import AnyKind, kind_of
from tempernet.report.formatting import duration
from tempernet.store import RunFolder, outcome
from tempernet.store.checkpoints import Checkpoint
from tempernet.store.files import JsonObject
from tempernet.store.folder import PROVENANCE, STATUS
from tempernet.store.records import Records

T = TypeVar("T")


def current(path: Path) -> JsonObject:
    """The heartbeat, the verdict so far, the age of the newest checkpoint.

    A damaged part is reported, not fatal.
    """
    folder = RunFolder.open(path)
    try:
        told = folder.read_json(STATUS)
    except StoreError as error:
        told = {"phase": "unknown", "warnings": [str(error)]}
    warnings = list(told.get("warnings", []))
    try:
        parts = kind_of(path).parts
        found = (parts.glance or parts.load)(path)
        verdict, finished = parts.headline(found), found.finished
        _, passed_over = folder.checkpoints.latest()
        warnings += [f"{problem}; the checkpoint before it counts" for problem in passed_over]
    except StoreError as error:
        verdict, finished = f"none yet: {error}", False
    return {
        **told,
        "warnings": warnings,
        "verdict": verdict,
        "finished": finished,
        "checkpoint_age": _checkpoint_age(path),
        "bytes": folder.size(),
    }


def rows(told: JsonObject) -> list[tuple[str, str]]:
    """The status in words, a name and a value a row."""
    finished = told["finished"]
    left, rate = told.get("seconds_left"), told.get("rounds_per_second")
    age, heard = told.get("checkpoint_age"), told.get("time")
    lines = [
        ("phase", "finished" if finished else str(told["phase"])),
        ("round", f"{told.get('done', '?')} of {told.get('total', '?')}"),
        ("rate", "-" if rate is None else f"{rate:.3g} rounds/s"),
        ("time left", "-" if finished or left is None else duration(left)),
        ("last heard of", "never" if heard is None else _ago(time.time() - heard)),
        ("last checkpoint", "none" if age is None else _ago(age)),
        ("disk", f"{told['bytes'] / 1e6:.1f} MB"),
        ("verdict", told["verdict"]),
    ]
    return lines + [("warning", text) for text in told.get("warnings", [])]


def problems(path: Path) -> list[str]:
    """Everything that is wrong with a run folder; empty if it is whole."""
    folder = RunFolder.open(path)
    found: list[str] = []

    def tried(read_fn: Callable[[], T]) -> T | None:
        try:
            return read_fn()
        except StoreError as error:
            found.append(str(error))
            return None

    if tried(lambda: folder.read_json(PROVENANCE)) is None:
        # Without it nothing says which run the other files should be of.
        return found
    kind = tried(lambda: kind_of(path))
    settings = None if kind is None else tried(lambda: folder.settings(kind.settings))
    if (path / STATUS).exists():
        tried(lambda: folder.read_json(STATUS))
    # The checkpoint before the records: a writer at work may only add to them.
    newest, _ = folder.checkpoints.latest()
    if settings is not None:
        found += folder.outdated(newest) if newest is not None else []
        for name in _needed(kind, settings):
            if (path / name).exists():
                tried(lambda name=name: folder.read_json(name))  # type: ignore[misc]
            elif newest is not None:
                found.append(
                    f"{path / name} is not there, but the run needs it: "
                    "`tempernet resume` writes it again"
                )
    found += tried(lambda: folder.log.problems(newest.log_lines if newest else 0)) or []
    records = tried(lambda: folder.records)
    weights = tried(lambda: folder.weights)
    for part in (records, weights):
        found += part.verify() if part is not None else []
    found += folder.checkpoints.verify() + folder.fit.verify()
    found += _lost_rows(path, newest, records, weights)
    # A writer removes the results before it writes them again.
    if records is not None and settings is not None and not folder.is_being_written:
        finished = newest is not None and bool(newest.meta["finished"])
        at_round = newest.meta["round"] if newest is not None else None
        found += outcome.problems(path, at_round, finished)
    return found


def _needed(kind: AnyKind | None, settings: RunSettings) -> list[str]:
    """Files that the folder of a run with these settings must hold."""
    return [] if kind is None else list(kind.needed_files(settings))


def _lost_rows(
    path: Path, newest: Checkpoint | None, records: Records | None, weights: Records | None
) -> list[str]:
    """What the newest checkpoint counts on and the records do not have."""
    if newest is None:
        if records is None or not records.series:
            return []
        return [f"{path / 'checkpoints'} has no whole checkpoint, but rounds were recorded"]
    wanted = [(records, name, rows) for name, rows in newest.meta["series"].items()]
    wanted.append((weights, "weights", newest.meta["weights"]))
    lost = []
    for part, name, rows_wanted in wanted:
        if part is not None and part.length(name) < rows_wanted:
            lost.append(
                f"{part.folder} has {part.length(name)} rows of {name}, "
                f"the newest checkpoint wants {rows_wanted}"
            )
    return lost


def _checkpoint_age(path: Path) -> float | None:
    """Seconds since the newest checkpoint was written; None if there is none."""
    # A writer may replace the newest checkpoint at any moment.
    with contextlib.suppress(OSError):
        times = [file.stat().st_mtime for file in (path / "checkpoints").glob("*.npz")]
        return time.time() - max(times) if times else None
    return None


def _ago(seconds: float) -> str:
    return f"{duration(max(0.0, seconds))} ago"
