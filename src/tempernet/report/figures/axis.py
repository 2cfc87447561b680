"""Logarithmic axes with readable ticks, a place for T = inf, and curves with their errors.

Curves are drawn hollow where a run has not equilibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter

from tempernet.report.figures.sheet import Look

HOLLOW = "hollow: not equilibrated, not to be trusted"
_MARGIN = 0.03
"""Share of a logarithmic axis that is left free on either side."""
_LOG_FROM = 5.0
"""An axis is logarithmic if its values span more than this factor."""
_DEEPEST = 1e-6
"""A logarithmic axis goes no deeper than this part of its top; what is lower leaves it."""
_MANTISSAS = (
    ((1,), 3),
    ((1, 3), 4),
    ((1, 2, 5), 3),
    ((1, 2, 3, 5, 7), 3),
    (tuple(range(1, 10)), 3),
)
"""Digits that ticks begin with, and how many ticks are enough; the first that has them is taken."""


class Scale(NamedTuple):
    """Where temperatures stand on an axis.

    They stand where they are, but for T = inf, the prior, which stands past the last.
    """

    low: float
    high: float
    infinity: float
    has_infinity: bool

    def place(self, temperatures: np.ndarray | float) -> np.ndarray:
        """Positions of temperatures, of the same shape."""
        return np.where(np.isinf(temperatures), self.infinity, temperatures)

    def apply(self, axes: Axes) -> None:
        """Make the x axis one of temperatures."""
        axes.set_xscale("log")
        extra = {self.infinity: "∞"} if self.has_infinity else {}
        end = self.infinity if self.has_infinity else self.high
        pad = max((end / self.low) ** _MARGIN, 1.05)
        ticks_from = self.low / pad if self.infinity > self.high else self.low
        ticks_to = end * pad
        if self.has_infinity:
            # Numbers end well before the place of inf, which they do not lead to.
            ticks_to = self.high * (self.infinity / self.high) ** 0.5
        set_log_ticks(axes.xaxis, ticks_from, ticks_to, extra)
        axes.set_xlim(self.low / pad, end * pad)
        axes.set_xlabel("temperature T")

    def mark_posterior(self, axes: Axes) -> list[Line2D]:
        """A thin line at T = 1, if it is on the axis; its legend entry."""
        if self.infinity == self.high or not self.low / 1.02 <= 1.0 <= self.high * 1.02:
            return []
        label = "T = 1, the posterior"
        return [
            axes.axvline(1.0, color="0.45", linewidth=0.8, linestyle="-", zorder=1, label=label)
        ]


def temperature_scale(*ladders: np.ndarray) -> Scale:
    """The scale that holds all temperatures of these ladders, (K,) each."""
    values = np.concatenate([np.asarray(ladder, np.float64) for ladder in ladders])
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(1.0, 1.0, 1.0, True)
    low, high = float(finite.min()), float(finite.max())
    return Scale(low, high, high * max((high / low) ** 0.1, 1.6), bool(np.isinf(values).any()))


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high`: powers of ten, or closer ones over a short range."""
    span = np.log10(high / low)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for mantissas, enough in _MANTISSAS:
        round_ones = [float(f"{m}e{p}") for p in powers for m in mantissas]
        ticks = [tick for tick in round_ones if low <= tick <= high]
        if len(ticks) >= enough:
            return ticks[:: int(np.ceil(span / 7))] if len(ticks) > 9 else ticks
    even = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in even if low <= tick <= high]


def set_log_ticks(
    axis: Axis, low: float, high: float, extra: Mapping[float, str] | None = None
) -> None:
    """Ticks at round numbers, and extra ones.

    Args:
        axis: where they go.
        low: where they begin.
        high: where they end.
        extra: more ticks with their labels, in their own places.
    """
    named = {tick: number(tick, digits=6) for tick in log_ticks(low, high)} | dict(extra or {})
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    between = np.outer(10.0**powers, np.arange(1, 10)).ravel()
    axis.set_major_locator(FixedLocator(list(named)))
    axis.set_major_formatter(FixedFormatter(list(named.values())))
    axis.set_minor_locator(FixedLocator([float(tick) for tick in between if low <= tick <= high]))
    axis.set_minor_formatter(NullFormatter())


def fit_y(axes: Axes, values: Sequence[np.ndarray | float], log: bool | None = None) -> None:
    """Limits of the y axis that hold the finite values.

    Args:
        axes: whose y axis it is.
        values: arrays of any shape.
        log: whether it is logarithmic; by default it is if they span more than a factor of five.
    """
    flat = np.concatenate([np.ravel(np.asarray(value, np.float64)) for value in values])
    flat = flat[np.isfinite(flat)]
    positive = flat[flat > 0]
    if log is None:
        log = bool(positive.size) and positive.max() > _LOG_FROM * positive.min()
    if not log or not positive.size:
        if flat.size:
            pad = 0.06 * float(np.ptp(flat)) or 0.1 * abs(float(flat[0])) or 0.1
            axes.set_ylim(float(flat.min()) - pad, float(flat.max()) + pad)
        return
    high = float(positive.max())
    low = max(float(positive.min()), _DEEPEST * high)
    pad = max((high / low) ** (2 * _MARGIN), 1.05)
    axes.set_yscale("log")
    set_log_ticks(axes.yaxis, low / pad, high * pad)
    axes.set_ylim(low / pad, high * pad)


def in_sight(mean: np.ndarray, error: np.ndarray) -> list[np.ndarray]:
    """What an axis should hold of a curve: its means, and its band unless that is absurdly wide.

    Args:
        mean: (K,).
        error: (K,).
    """
    return [mean, np.clip(mean - error, mean / 4, None), np.clip(mean + error, None, 4 * mean)]


def curve(
    axes: Axes,
    scale: Scale,
    temperatures: np.ndarray,
    mean: np.ndarray,
    error: np.ndarray,
    style: Look,
    equilibrated: np.ndarray | None = None,
) -> None:
    """A line of means with a band of one standard error, and a marker for each temperature.

    T = inf has its marker and an error bar but no line to it, as its place means nothing.

    Args:
        axes: where it is drawn.
        scale: that of the x axis.
        temperatures: (K,).
        mean: (K,).
        error: (K,).
        style: colour, line and marker.
        equilibrated: (K,); markers are hollow where it is false. None for all true.
    """
    x = scale.place(temperatures)
    finite = np.isfinite(temperatures)
    low, high = (mean - error)[finite], (mean + error)[finite]
    axes.plot(x[finite], mean[finite], color=style.colour, linestyle=style.line)
    axes.fill_between(x[finite], low, high, color=style.colour, alpha=0.22, linewidth=0)
    alone = ~finite if finite.sum() > 1 else np.ones_like(finite)
    axes.errorbar(
        x[alone],
        mean[alone],
        error[alone],
        fmt="none",
        ecolor=style.colour,
        elinewidth=1.0,
        capsize=2,
    )
    good = np.ones(len(x), bool) if equilibrated is None else np.asarray(equilibrated, bool)
    size = marker_size(len(x))
    # Hollow ones are larger, so that they are seen among a hundred.
    for chosen, face, points in ((good, style.colour, size), (~good, "white", max(size, 4.0))):
        if chosen.any():
            axes.plot(
                x[chosen],
                mean[chosen],
                linestyle="none",
                marker=style.marker,
                markersize=points,
                markerfacecolor=face,
                markeredgecolor=style.colour,
                markeredgewidth=0.9,
            )


def hollow_handles(*equilibrated: np.ndarray) -> list[Line2D]:
    """The legend entry that says what hollow markers are, if there are any.

    Args:
        equilibrated: which rungs of each run have, (K,) each.
    """
    if all(np.all(rungs) for rungs in equilibrated):
        return []
    hollow = Line2D([], [], linestyle="none", marker="o", markersize=5, label=HOLLOW)
    hollow.set(markerfacecolor="white", markeredgecolor="black", markeredgewidth=0.9)
    return [hollow]


def marker_size(rungs: int) -> float:
    """Points: smaller where there are many."""
    return 5.0 if rungs <= 24 else 4.0 if rungs <= 60 else 3.0


def number(value: float, digits: int = 3) -> str:
    """A positive number for a label: a few digits, ∞, powers of ten for the large and small."""
    if np.isinf(value):
        return "∞"
    if 1e-4 < value < 1e5:
        return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"
    power = int(np.floor(np.log10(value) + 1e-9))
    mantissa = f"{value / 10.0**power:.{digits}g}"
    return rf"$10^{{{power}}}$" if mantissa == "1" else rf"${mantissa}\times 10^{{{power}}}$"
