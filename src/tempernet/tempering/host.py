"""The host of a sampler: it waits for devices, keeps what is recorded, and is told of progress.

The `Host` of this file keeps everything in memory and never stops: it is the one of Python. A task
in a run folder is another, whose records are files and whose checkpoints are real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    phase: str
    done: int
    total: int
    rounds_per_second: float = float("nan")
    seconds_left: float = float("nan")
    worst_acceptance: float = float("nan")
    worst_swap: float = float("nan")
    round_trips: int = 0
    detail: str = ""
    """Whatever else a task has to tell."""


ReportFn = Callable[[Progress], None]
Row = Mapping[str, ArrayLike]
"""Name -> an array or a number, the same names in every row of a series."""
Facts = Mapping[str, Any]
"""The plain facts of a checkpoint, values of JSON's types by name."""


@dataclass
class Host:
    """The host of a run in Python, which leaves nothing behind but what it returns."""

    report_fn: ReportFn = lambda progress: None
    warn_fn: Callable[[str], None] = lambda text: None
    rows: dict[str, list[dict[str, np.ndarray]]] = field(default_factory=dict)
    """Series -> its rows so far."""

    def wait(self, *results: object) -> None:
        """Return when the devices are done; a host that was asked to stop raises `Stopped`."""
        jax.block_until_ready(results)

    def record(self, series: str, row: Row) -> None:
        """Add a copy of a row to a series."""
        copied = {name: np.array(value) for name, value in row.items()}
        self.rows.setdefault(series, []).append(copied)

    def keep(self, row: Row) -> None:
        """Add a row to the weights that are kept."""
        self.record("weights", row)

    def load(self, series: str) -> dict[str, np.ndarray]:
        """All rows of a series, stacked: name -> (rows, ...). Empty if there are none."""
        rows = self.rows.get(series, [])
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if rows else {}

    def note(self, text: str) -> None:
        """Add a line to the log."""

    def warn(self, text: str) -> None:
        """Tell the user of something wrong."""
        self.warn_fn(text)

    def tell(self, progress: Progress, *, always: bool = False) -> None:
        """Report how far the run is; `always` if the report must not be left out."""
        self.report_fn(progress)

    def show(self, phase: str, done: int = 0, total: int = 1) -> None:
        """Report a phase without rounds."""
        self.tell(Progress(phase, done, total), always=True)

    def checkpoint(self) -> None:
        """Write a checkpoint."""

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint if the last one is old."""

    def stop(self, at: str) -> None:
        """Write a checkpoint of a run that is asked to stop; `at` says in words where it is."""
