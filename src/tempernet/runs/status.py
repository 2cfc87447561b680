"""How a run is: its heartbeat and its verdict so far, and whether its folder is whole. Reads only."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from tempernet.errors import StoreError
from tempernet.report import sentences
from tempernet.report.formatting import duration
from tempernet.results import anneal as annealed
from tempernet.results import evidence as evidence_results
from tempernet.results import optimise as optimised
from tempernet.results import sweep as results
from tempernet.results.anneal import Annealed
from tempernet.results.optimise import Optimised
from tempernet.store import RunFolder, outcome
from tempernet.store.folder import PROVENANCE, QUADRATIC, STATUS
from tempernet.store.records import Records


def current(path: Path) -> dict[str, Any]:
    """The heartbeat, the verdict so far, the age of the newest checkpoint. A damaged part is
    reported, not fatal.
    """
    folder = RunFolder.open(path)
    try:
        told = folder.read_json(STATUS)
    except StoreError as error:
        told = {"phase": "unknown", "warnings": [str(error)]}
    warnings = list(told.get("warnings", []))
    try:
        found = load(path, folder.settings.task, quick=True)
        finished = found.finished
        if isinstance(found, Annealed | Optimised):
            verdict = found.headline
        else:
            verdict = sentences.headline(found.verdict, found.parameter)
        _, passed_over = folder.checkpoints.latest()
        warnings += [f"{problem}; the checkpoint before it counts" for problem in passed_over]
    except StoreError as error:
        verdict, finished = f"none yet: {error}", False
    age = None
    # A writer may replace the newest checkpoint at any moment.
    with contextlib.suppress(OSError):
        times = [file.stat().st_mtime for file in (path / "checkpoints").glob("*.npz")]
        age = time.time() - max(times) if times else None
    told = {**told, "warnings": warnings}
    return {
        **told,
        "verdict": verdict,
        "finished": finished,
        "checkpoint_age": age,
        "bytes": folder.size(),
    }


def load(path: Path, task: str, *, quick: bool = False) -> Any:
    """The results of a run of any task; `quick`, so far as a status needs them."""
    if task == "evidence":
        return evidence_results.load(path, quick=quick)
    rooms: dict[str, Any] = {"sweep": results, "anneal": annealed, "optimise": optimised}
    return rooms[task].load(path)


def rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    """The status in words."""
    left, rate, age, heard = (
        told.get(name) for name in ("seconds_left", "rounds_per_second", "checkpoint_age", "time")
    )
    lines = [
        ("phase", "finished" if told["finished"] else str(told["phase"])),
        ("round", f"{told.get('done', '?')} of {told.get('total', '?')}"),
        ("rate", "-" if rate is None else f"{rate:.3g} rounds/s"),
        ("time left", "-" if told["finished"] or left is None else duration(left)),
        (
            "last heard of",
            "never" if heard is None else f"{duration(max(0.0, time.time() - heard))} ago",
        ),
        ("last checkpoint", "none" if age is None else f"{duration(age)} ago"),
        ("disk", f"{told['bytes'] / 1e6:.1f} MB"),
        ("verdict", told["verdict"]),
    ]
    return lines + [("warning", text) for text in told.get("warnings", [])]


def problems(path: Path) -> list[str]:
    """Everything that is wrong with a run folder; empty if it is whole."""
    folder = RunFolder.open(path)
    found: list[str] = []

    def tried(read_fn: Any) -> Any:
        try:
            return read_fn()
        except StoreError as error:
            found.append(str(error))
            return None

    if tried(lambda: folder.read_json(PROVENANCE)) is None:
        # Without it nothing says which run the other files should be of.
        return found
    settings = tried(lambda: folder.settings)
    for name in (STATUS, QUADRATIC):
        if (path / name).exists():
            tried(lambda name=name: folder.read_json(name))
    # The checkpoint before the records: a writer at work may only add to them.
    newest, _ = folder.checkpoints.latest()
    found += folder.outdated(newest) if newest is not None and settings is not None else []
    if newest is not None and _is_bridge(settings) and not (path / QUADRATIC).exists():
        found.append(
            f"{path / QUADRATIC} is not there, but bridges were sampled: `tempernet resume` writes it again"
        )
    found += tried(lambda: folder.log.problems(newest.log_lines if newest else 0)) or []
    records: Records | None = tried(lambda: folder.records)
    weights: Records | None = tried(lambda: folder.weights)
    for part in (records, weights):
        found += part.verify() if part is not None else []
    found += folder.checkpoints.verify() + folder.fit.verify()
    if newest is not None:
        wanted = [(records, name, rows) for name, rows in newest.meta["series"].items()]
        for part, name, rows_wanted in [*wanted, (weights, "weights", newest.meta["weights"])]:
            if part is not None and part.length(name) < rows_wanted:
                found.append(
                    f"{part.folder} has {part.length(name)} rows of {name}, the newest checkpoint wants {rows_wanted}"
                )
    elif records is not None and records.series:
        found.append(f"{path / 'checkpoints'} has no whole checkpoint, but rounds were recorded")
    # A writer removes the results before it writes them again.
    if records is not None and settings is not None and not folder.is_being_written:
        finished = newest is not None and bool(newest.meta["finished"])
        found += outcome.problems(
            path, newest.meta["round"] if newest is not None else None, finished
        )
    return found


def _is_bridge(settings: Any) -> bool:
    return settings is not None and settings.task == "evidence" and settings.path.method == "bridge"
