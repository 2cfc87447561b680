"""Output for a terminal: progress as a bar or as plain lines, tables, and lines of text."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from tempernet.report.formatting import duration
from tempernet.results.run import Results
from tempernet.tempering.host import Progress as Told

LINE_SECONDS = 10.0
PLAIN_WIDTH = 132


class Quiet:
    """Progress that shows nothing."""

    def __call__(self, told: Told) -> None:
        """Ignore the progress."""

    def close(self) -> None:
        """Nothing to close."""


class Lines(Quiet):
    """Plain lines on standard error: one a phase, and one every ten seconds."""

    def __init__(self) -> None:
        self._phase, self._at = "", 0.0

    def __call__(self, told: Told) -> None:
        """Print a line if the phase is new, over, or ten seconds have passed."""
        now = time.monotonic()
        if told.phase == self._phase and now - self._at < LINE_SECONDS and told.done < told.total:
            return
        self._phase, self._at = told.phase, now
        print(f"{told.phase:10s} {_counted(told)}{_details(told)}", file=sys.stderr, flush=True)


class Bar(Quiet):
    """A bar on the terminal."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description:10s}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[text]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: TaskID = self._bar.add_task("", total=None, text="")
        self._bar.start()

    def __call__(self, told: Told) -> None:
        """Move the bar."""
        countless = told.total <= 1
        self._bar.update(
            self._task,
            description=told.phase,
            completed=told.done,
            total=None if countless else told.total,
            text=_counted(told) + _details(told),
        )

    def close(self) -> None:
        """Clear the bar."""
        self._bar.stop()


def reporter(quiet: bool) -> Quiet:
    """A bar on a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        return Quiet()
    return Bar() if sys.stderr.isatty() else Lines()


def _counted(told: Told) -> str:
    return "" if told.total <= 1 else f"{told.done}/{told.total}"


def _details(told: Told) -> str:
    parts = [] if math.isnan(told.rounds_per_second) else [f"{told.rounds_per_second:.3g} rounds/s"]
    if not math.isnan(told.seconds_left):
        parts.append(f"{duration(told.seconds_left)} left")
    if not math.isnan(told.worst_acceptance):
        parts.append(f"acceptance >= {told.worst_acceptance:.2f}")
    if not math.isnan(told.worst_swap):
        parts.append(f"swaps >= {told.worst_swap:.0%}")
    if parts and not told.detail:
        parts.append(f"{told.round_trips} round trips")
    return "".join(f"  {part}" for part in [*parts, told.detail] if part)


def show_report(
    results: Results, length: str, numbers: Table, lines: list[str], written: list[Path]
) -> None:
    """Print the title of a run, its length, a table, what it says, and which files were written.

    Args:
        results: of the run.
        length: how much it has done, in words.
        numbers: the table.
        lines: what it says.
        written: the files.
    """
    console = console_for_output()
    console.print(f"[bold]{results.title}[/bold]", highlight=False)
    console.print(f"{length}{'' if results.finished else ', not finished'}", highlight=False)
    console.print(numbers)
    _say(console, lines, written)


def console_for_output() -> Console:
    """Standard output; wide enough for the table where it is no terminal."""
    return (
        Console()
        if sys.stdout.isatty()
        else Console(width=PLAIN_WIDTH, force_terminal=False, no_color=True)
    )


def as_text(title: str, numbers: Table, lines: Iterable[str], width: int = 100) -> str:
    """A title, a table and lines as plain text: how results print in Python."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=False, no_color=True)
    console.print(title, highlight=False, markup=False)
    console.print(numbers)
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return text.getvalue().rstrip()


def show_rows(rows: Iterable[tuple[str, object]]) -> None:
    """Two columns on standard output."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}s}  {value}")


def show_lines(lines: list[str], written: list[Path]) -> None:
    """Lines on standard output, the first one in bold, and where everything is."""
    console = console_for_output()
    console.print(lines[0], style="bold", highlight=False, markup=False)
    _say(console, lines[1:], written)


def _say(console: Console, lines: list[str], written: list[Path]) -> None:
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    if written:
        console.print(
            "written: " + " ".join(str(path) for path in written), highlight=False, soft_wrap=True
        )
