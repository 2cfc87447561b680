"""Fig. 2: energies of all rungs, round by round."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from tempernet.plots.axis import fit_y, set_log_ticks, temperature_scale
from tempernet.plots.sheet import TEMPERATURE_COLOURS, legend_above, print_style, sheet_of
from tempernet.results import Results


@print_style()
def trajectory_figure(results: Results) -> Figure:
    """Fig. 2: energy per example of every rung of copy 0 against the round, coloured by temperature.

    Rounds count from the end of burn-in. During burn-in a rung has the colour of the temperature it had then.
    """
    before = results.burn_in.sizes["burn_in_round"]
    rounds = np.concatenate([np.arange(1 - before, 1), results.series["round"].values])
    energies = energies_per_example(results, copy=0)
    sampled = np.broadcast_to(results.temperatures, (results.series.sizes["round"], len(results.temperatures)))
    temperatures = np.concatenate([results.burn_in.rung_temperature.values, sampled])
    figure, panel = sheet_of("Trajectory of the energies", results, (7.2, 4.4))
    axes = panel.subplots()
    scale = temperature_scale(results.temperatures)
    low, high = (scale.low, scale.high) if scale.low < scale.high else (scale.low / 2, scale.high * 2)
    lines = _lines(rounds, energies, temperatures, low, high)
    axes.add_collection(lines)
    uninformed = float(results.provenance["uninformed_loss"])
    handles: list[Artist] = [
        axes.axhline(uninformed, color="black", linestyle="--", linewidth=1.1, label="uninformed classifier", zorder=4)
    ]
    if before:
        handles.append(axes.axvspan(rounds[0] - 0.5, 0.5, color="0.88", zorder=0, label="burn-in, does not count"))
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    fit_y(axes, [energies, uninformed])
    axes.set_xlabel("round, from the end of burn-in")
    axes.set_ylabel("energy per example E / n")
    copies = results.series.sizes["copy"]
    legend_above(axes, handles, f"copy 0 of {copies}" if copies > 1 else "")
    bar = panel.colorbar(lines, ax=axes, pad=0.02, aspect=30, label="temperature T")
    bar.outline.set_visible(False)
    set_log_ticks(bar.ax.yaxis, low, high)
    return figure


def energies_per_example(results: Results, copy: int) -> np.ndarray:
    """E / n of one copy, burn-in and all: (rounds, K)."""
    parts = [results.burn_in.energy.values[copy], results.series.energy.values[copy]]
    return np.concatenate(parts).astype(np.float64) / int(results.provenance["data"]["n_train"])


def _lines(
    rounds: np.ndarray, energies: np.ndarray, temperatures: np.ndarray, low: float, high: float
) -> LineCollection:
    """A line a rung, in pieces of one temperature each: a ladder moves during burn-in."""
    pieces, colours = [], []
    # The coldest last, on top: they are the calmest.
    for rung in reversed(range(energies.shape[1])):
        moved = np.flatnonzero(temperatures[1:, rung] != temperatures[:-1, rung]) + 1
        for start, end in zip([0, *moved], [*moved, len(rounds)], strict=True):
            # A piece reaches the first point of the next, so that the line has no gaps.
            part = slice(start, end + 1)
            pieces.append(np.column_stack([rounds[part], energies[part, rung]]))
            colours.append(temperatures[start, rung])
    # As pixels: an SVG of a hundred lines of a thousand points is slow to show.
    lines = LineCollection(
        pieces, cmap=TEMPERATURE_COLOURS, norm=LogNorm(low, high, clip=True), linewidths=0.8, rasterized=True
    )
    lines.set_array(np.minimum(colours, high))
    return lines
