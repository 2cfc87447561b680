"""The sheet a figure is drawn on: heading, panels, small print, and looks of curves.

Colours survive print and colour blindness.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from tempernet.report.figures.notes import Judged, note

_LETTERS = 16.5
"""Letters of small print to an inch."""
SMALL = 8
"""Points; nothing is smaller."""
GREY = "0.35"
ALARM = "#B34700"
"""Vermillion, darker, for small print that must not be overlooked."""
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "path",
    # Names of clip paths and markers in an SVG are hashes of their content and this.
    "svg.hashsalt": "tempernet",
}


class Look(NamedTuple):
    """How one curve differs from the others: no two share any of the three, up to six."""

    colour: str
    line: Literal["-"] | tuple[float, tuple[float, ...]]
    marker: str

    def handle(self, label: str) -> Line2D:
        """Its entry in a legend."""
        handle = Line2D([], [], color=self.colour, linestyle=self.line, label=label)
        handle.set(marker=self.marker, markersize=5)
        return handle


LOOKS = (
    Look("#0072B2", "-", "o"),
    Look("#D55E00", (0, (6.0, 2.0)), "s"),
    Look("#009E73", (0, (6.0, 1.5, 1.5, 1.5)), "^"),
    Look("#CC79A7", (0, (2.5, 1.2)), "D"),
    Look("#E69F00", (0, (8.0, 1.5, 1.5, 1.5, 1.5, 1.5)), "v"),
    Look("#56B4E9", (0, (1.2, 1.2)), "P"),
)
"""Colours of Okabe and Ito (2008)."""

TEMPERATURE_COLOURS = ListedColormap(
    matplotlib.colormaps["viridis"](np.linspace(0, 0.93, 256)), "temperature"
)
"""Viridis without its yellow end, which white paper swallows."""


@contextmanager
def print_style() -> Iterator[None]:
    """Matplotlib's settings while a figure is made or written; the user's are left as they were."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def look(index: int) -> Look:
    """The look of a curve by its number."""
    return LOOKS[index % len(LOOKS)]


def sheet(
    heading: str, notes: Sequence[str], size: tuple[float, float], alarm: bool = False
) -> tuple[Figure, SubFigure]:
    """A figure with a heading and small print, and the part of it where panels go.

    Panels have a part of their own because the layout would put legends outside of them over
    heading and small print.

    Args:
        heading: what it shows.
        notes: the small print, a paragraph each.
        size: width and height in inches.
        alarm: whether the small print must not be overlooked.
    """
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    figure.suptitle(heading, x=0.012, ha="left", fontsize=11, fontweight="bold")
    if notes:
        text = _small_print(notes, size[0])
        colour = ALARM if alarm else GREY
        # Names of data may hold dollars, which are no formulas.
        figure.supxlabel(
            text,
            x=0.012,
            ha="left",
            fontsize=SMALL,
            color=colour,
            linespacing=1.3,
            parse_math=False,
        )
    return figure, figure.add_subfigure(figure.add_gridspec()[0])


def sheet_of(heading: str, run: Judged, size: tuple[float, float]) -> tuple[Figure, SubFigure]:
    """A sheet whose small print names the run, its protocol and its verdict.

    Args:
        heading: what it shows.
        run: whose figure it is.
        size: width and height in inches.
    """
    return sheet(heading, [note(run)], size, alarm=not run.verdict.good)


def legend_above(axes: Axes, handles: Sequence[Artist], title: str = "", columns: int = 2) -> None:
    """A legend over the panel, where it can hide no data, with the panel's title.

    Args:
        axes: the panel.
        handles: the legend's entries.
        title: the panel's title; empty for none.
        columns: of the legend.
    """
    axes.legend(
        handles=handles,
        title=title or None,
        alignment="left",
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        borderpad=0.2,
        columnspacing=1.4,
        handlelength=2.6,
    )


def _small_print(notes: Sequence[str], width: float) -> str:
    """A paragraph a note, to fit `width` inches."""
    wrapper = textwrap.TextWrapper(
        int(_LETTERS * width), subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join(wrapper.fill(text) for text in notes)
