"""Fig. 2: energies of all rungs, round by round."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from tempernet.report.figures.axis import fit_y, set_log_ticks, temperature_scale
from tempernet.report.figures.sheet import TEMPERATURE_COLOURS, legend_above, print_style, sheet_of
from tempernet.results.sweep import SweepResults

MOST_POINTS = 150
"""Points of a line; a longer record is drawn as means of a few rounds."""
BEGINNINGS = {
    "apart": ("from minimised weights", "from draws of the prior"),
    "annealed": ("cooled to its temperatures", "heated to them"),
    "minimised": ("from minimised weights", "too"),
    "prior": ("from draws of the prior", "too"),
}
"""How even and odd copies begin; one of each is shown."""


@print_style()
def trajectory_figure(results: SweepResults) -> Figure:
    """Fig. 2: energy per example of every rung against the round, coloured by temperature.

    Copies 0 and 1 stand side by side. Rounds count from the end of burn-in. During burn-in a rung
    has the colour of the temperature it had then.
    """
    before = results.burn_in.sizes["burn_in_round"]
    rounds = np.concatenate([np.arange(1 - before, 1), results.series["round"].values])
    sampled = np.broadcast_to(
        results.temperatures, (results.series.sizes["round"], len(results.temperatures))
    )
    temperatures = np.concatenate([results.burn_in.rung_temperature.values, sampled])
    block = -(-len(rounds) // MOST_POINTS)
    copies = results.series.sizes["copy"]
    shown = [energies_per_example(results, copy) for copy in range(min(copies, 2))]
    figure, panel = sheet_of("Trajectory of the energies", results, (7.2, 4.4))
    panels = panel.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    scale = temperature_scale(results.temperatures)
    low, high = scale.low, scale.high
    if low == high:
        low, high = low / 2, high * 2
    uninformed = float(results.provenance["uninformed_loss"])
    for copy, (axes, energies) in enumerate(zip(panels, shown, strict=True)):
        lines = _lines(rounds, energies, temperatures, low, high, block)
        axes.add_collection(lines)
        label = "uninformed classifier"
        handles: list[Artist] = [
            axes.axhline(uninformed, color="black", linestyle="--", linewidth=1.1, label=label)
        ]
        if before:
            span = axes.axvspan(rounds[0] - 0.5, 0.5, color="0.88", zorder=0, label="burn-in")
            handles.append(span)
        axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
        axes.set_xlabel("round, from the end of burn-in")
        legend_above(axes, handles[copy :: len(shown)], _title(results, copy))
    fit_y(panels[0], [*shown, uninformed])
    means = f", means of {block} rounds" if block > 1 else ""
    panels[0].set_ylabel(f"energy per example E / n{means}")
    bar = panel.colorbar(lines, ax=panels.tolist(), pad=0.02, aspect=30, label="temperature T")
    bar.outline.set_visible(False)
    set_log_ticks(bar.ax.yaxis, low, high)
    return figure


def _title(results: SweepResults, copy: int) -> str:
    """The number of a copy, and how it began."""
    copies = results.series.sizes["copy"]
    if copies == 1:
        return ""
    return f"copy {copy} of {copies}, {BEGINNINGS[results.settings.start.weights][copy]}"


def energies_per_example(results: SweepResults, copy: int) -> np.ndarray:
    """E / n of one copy, burn-in and all: (rounds, K).

    Args:
        results: a run with K rungs.
        copy: which of its copies.
    """
    parts = [results.burn_in.energy.values[copy], results.series.energy.values[copy]]
    return np.concatenate(parts).astype(np.float64) / int(results.provenance["data"]["n_train"])


def _lines(
    rounds: np.ndarray,
    energies: np.ndarray,
    temperatures: np.ndarray,
    low: float,
    high: float,
    block: int,
) -> LineCollection:
    """A line a rung, in pieces of one temperature each: a ladder moves during burn-in.

    Points are means of a block of rounds.
    """
    pieces, colours = [], []
    # The coldest last, on top: they are the calmest.
    for rung in reversed(range(energies.shape[1])):
        moved = np.flatnonzero(temperatures[1:, rung] != temperatures[:-1, rung]) + 1
        for start, end in zip([0, *moved], [*moved, len(rounds)], strict=True):
            firsts = np.arange(start, end, block)
            counts = np.diff([*firsts, end])
            points = np.column_stack([rounds[start:end], energies[start:end, rung]])
            means = np.add.reduceat(points, firsts - start) / counts[:, None]
            if end < len(rounds):
                # A piece reaches the first point of the next, so that the line has no gaps.
                following = slice(end, end + block)
                first = [rounds[following].mean(), energies[following, rung].mean()]
                means = np.vstack([means, first])
            pieces.append(means)
            colours.append(temperatures[start, rung])
    # As pixels: an SVG of a hundred lines of a thousand points is slow to show.
    lines = LineCollection(
        pieces,
        cmap=TEMPERATURE_COLOURS,
        norm=LogNorm(low, high, clip=True),
        linewidths=0.8,
        rasterized=True,
    )
    lines.set_array(np.minimum(colours, high))
    return lines
