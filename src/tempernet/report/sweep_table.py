"""The table of a sweep: a row a temperature, in full or short."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from rich.table import Table

from tempernet.report.formatting import with_error
from tempernet.results.summary import nearest
from tempernet.results.sweep import SweepResults

SHORT = 16
"""Rows of a short table."""
CellFn = Callable[[SweepResults, int], str]


def _pair(name: str) -> CellFn:
    """A cell with an average of the summary and its error."""

    def cell(results: SweepResults, rung: int) -> str:
        summary = results.summary
        if name not in summary:
            return "-"
        mean, error = (summary[key].values[rung] for key in (name, f"{name}_error"))
        return with_error(float(mean), float(error))

    return cell


def _number(name: str, form: str) -> CellFn:
    """A cell with a number of the summary, empty where it is not known."""

    def cell(results: SweepResults, rung: int) -> str:
        value = float(results.summary[name].values[rung])
        return "" if math.isnan(value) else format(value, form)

    return cell


COLUMNS: dict[str, CellFn] = {
    "T": lambda results, rung: f"{results.temperatures[rung]:.4g}",
    "train loss": _pair("train_loss"),
    "test loss": _pair("test_loss"),
    "accuracy": _pair("test_accuracy"),
    "ensemble loss": _pair("ensemble_loss"),
    "dt": _number("time_step", ".2g"),
    "L": _number("num_steps", ".0f"),
    "accept": _number("acceptance", ".2f"),
    "swaps": _number("swap_rate", ".0%"),
    "ESS": _number("ess", ".0f"),
    "R-hat": _number("rhat", ".2f"),
    "": lambda results, rung: "" if results.verdict.equilibrated[rung] else "not equilibrated",
}
"""Heading -> its cell."""
SHORT_COLUMNS = ("T", "train loss", "test loss", "accuracy", "swaps", "ESS", "R-hat", "")


def table(results: SweepResults) -> Table:
    """All columns, one row a temperature."""
    return _table(results, COLUMNS, range(len(results.temperatures)))


def short_table(results: SweepResults) -> Table:
    """A few columns and at most 16 rows, with the ends, T = 1 and the best temperature."""
    return _table(results, SHORT_COLUMNS, _rows(results))


def _rows(results: SweepResults) -> list[int]:
    """Which temperatures a short table shows."""
    total = len(results.temperatures)
    if total <= SHORT:
        return list(range(total))
    wanted = {0, total - 1, nearest(results.temperatures, 1.0)}
    wanted |= set() if results.best is None else {results.best.rung}
    spread = np.linspace(0, total - 1, SHORT).round().astype(int).tolist()
    free = [rung for rung in spread if rung not in wanted]
    # The evenly spaced ones give way to those that are wanted.
    every = len(free) / max(1, SHORT - len(wanted))
    chosen = [free[int(i * every)] for i in range(min(len(free), SHORT - len(wanted)))]
    return sorted(wanted | set(chosen))


def _table(results: SweepResults, headings: Iterable[str], rows: Iterable[int]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    chosen = list(headings)
    for heading in chosen:
        made.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for rung in rows:
        made.add_row(*(COLUMNS[heading](results, rung) for heading in chosen))
    return made
