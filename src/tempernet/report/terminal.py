"""What a person sees: progress as a bar or plain lines, the table of temperatures, the verdict."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from tempernet.report import sentences
from tempernet.report.formatting import duration, with_error
from tempernet.results.sweep import Results, nearest, transition
from tempernet.tasks.base import Progress as Told

LINE_SECONDS = 10.0
PLAIN_WIDTH = 132


class Quiet:
    """Shows nothing."""

    def __call__(self, told: Told) -> None:
        """Ignore what is told."""

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


def show(results: Results, written: list[Path]) -> None:
    """The table, the best temperature, the verdict, and where everything is, on standard output."""
    sizes = results.series.sizes
    length = f"{sizes['copy']} copies, {sizes['round']} rounds"
    show_report(results, length, table(results), statements(results), written)


def show_report(
    results: Any, length: str, numbers: Table, lines: list[str], written: list[Path]
) -> None:
    """The title of a run, how much it has done, a table, what it says, and where everything is."""
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


def table(results: Results) -> Table:
    """One row a temperature."""
    summary = results.summary
    headings = (
        "T",
        "train loss",
        "test loss",
        "accuracy",
        "ensemble loss",
        "dt",
        "L",
        "accept",
        "swaps",
        "ESS",
        "R-hat",
        "",
    )
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        made.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def pair(name: str, k: int) -> str:
        if name not in summary:
            return "-"
        return with_error(float(summary[name].values[k]), float(summary[f"{name}_error"].values[k]))

    for k, temperature in enumerate(results.temperatures):
        swaps = float(summary.swap_rate.values[k])
        made.add_row(
            f"{temperature:.4g}",
            pair("train_loss", k),
            pair("test_loss", k),
            pair("test_accuracy", k),
            pair("ensemble_loss", k),
            f"{float(summary.time_step.values[k]):.2g}",
            f"{int(summary.num_steps.values[k])}",
            f"{float(summary.acceptance.values[k]):.2f}",
            "" if math.isnan(swaps) else f"{swaps:.0%}",
            f"{float(summary.ess.values[k]):.0f}",
            f"{float(summary.rhat.values[k]):.2f}",
            "" if results.verdict.equilibrated[k] else "not equilibrated",
        )
    return made


def statements(results: Results) -> list[str]:
    """What the run says, in a few lines."""
    lines = []
    best = results.best
    if best is not None:
        lines.append(f"best temperature (by validation loss): {sentences.best_temperature(best)}")
        lines.append(f"  test loss at the best T: {_held_out(results, best.rung)}")
    else:
        lines.append(
            "best temperature: not chosen, as there is no validation set (data.n_validation) "
            "or no score yet"
        )
    lines.append(
        f"  at T = 1 (nearest):      {_held_out(results, nearest(results.temperatures, 1.0))}"
    )
    lines.append(f"  at the lowest T:         {_held_out(results, 0)}")
    lines.append(f"  uninformed classifier:   {results.provenance['uninformed_loss']:.4f}")
    peak = transition(results)
    height = with_error(peak["heat_capacity"], peak["heat_capacity_error"])
    lines.append(
        f"heat capacity peaks at T = {peak['temperature']:.3g} with {height}; energies there have "
        f"bimodality {peak['bimodality']:.2f} (1/3 normal, 5/9 flat, 1 two peaks)"
    )
    barrier = sentences.barrier(results.barrier, len(results.temperatures))
    lines.append(f"{barrier}; {results.round_trips} round trips{_decorrelation(results)}")
    return lines + sentences.statements(results.verdict, results.temperatures)


def _decorrelation(results: Results) -> str:
    """How far the weights decorrelate, and replicas cross, where all rungs can tell."""
    least = float(np.min(results.summary.forgotten.values))
    kept = results.summary.side_kept.values[:-1]
    if math.isnan(least) or not len(kept) or np.isnan(kept).any():
        return ""
    return (
        f"; the run spans at least {least:.1f} autocorrelation times of the weights; in half of it "
        f"at most {100 * kept.max():.0f} % of replicas have not crossed a pair of temperatures"
    )


def _held_out(results: Results, rung: int) -> str:
    summary = results.summary
    full = "full_test_loss" in summary
    if not full and "test_loss" not in summary:
        return "not scored yet"
    prefix = "full_" if full else ""
    loss, accuracy = (
        with_error(
            float(summary[f"{prefix}{n}"].values[rung]),
            float(summary[f"{prefix}{n}_error"].values[rung]),
        )
        for n in ("test_loss", "test_accuracy")
    )
    examples = (
        results.provenance["data"]["n_test"] if full else len(results.provenance["scored_labels"])
    )
    at = f"T = {results.temperatures[rung]:.4g}"
    text = f"{loss}, accuracy {accuracy} on {examples} test examples at {at}"
    if "ensemble_loss" in summary:
        text += f"; as an ensemble {float(summary.ensemble_loss.values[rung]):.4g}"
    return text


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


def plan_table(rows: list[tuple[str, Any]]) -> None:
    """Two columns on standard output."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}s}  {value}")
