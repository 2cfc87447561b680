"""Figures of the thermodynamics: is there a phase transition, how far do weights spread?"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tempernet.model.priors import Gaussian, UniformBox
from tempernet.report.figures.axis import (
    curve,
    fit_y,
    hollow_handles,
    in_sight,
    number,
    temperature_scale,
)
from tempernet.report.figures.sheet import legend_above, look, print_style, sheet_of
from tempernet.results.sweep import SweepResults

_NEIGHBOURS = 2
"""Rungs on either side of the peak whose histograms are drawn."""
_MOST_BINS = 80


@print_style()
def heat_capacity_figure(results: SweepResults) -> Figure:
    """C = Var(E) / T^2 against T, and histograms of the energy around its peak.

    Two peaks in a histogram would be a first-order transition, which Sec. 3.4 sees none of.
    """
    summary, temperatures = results.summary, results.temperatures
    scale = temperature_scale(temperatures)
    figure, panel = sheet_of("Heat capacity, and energies at its peak", results, (8.2, 4.4))
    left, right = panel.subplots(1, 2)
    mean, error = summary.heat_capacity.values, summary.heat_capacity_error.values
    curve(left, scale, temperatures, mean, error, look(0), summary.equilibrated.values)
    peak = int(np.nan_to_num(mean, nan=-np.inf).argmax())
    scale.apply(left)
    fit_y(left, [0.0, *in_sight(mean, error)], log=False)
    left.set_ylim(bottom=0)
    left.set_ylabel(r"heat capacity $C = \mathrm{Var}(E) / T^2$")
    at, label = float(scale.place(temperatures[peak])), _where(results, peak)
    line = left.axvline(at, color="black", linestyle=":", linewidth=1.1, zorder=1, label=label)
    legend_above(left, [line, *hollow_handles(summary.equilibrated.values)], columns=1)
    _draw_histograms(right, results, peak)
    return figure


@print_style()
def mean_square_figure(results: SweepResults) -> Figure:
    """Mean square weight of each layer against T, in units of the prior's width.

    The level of the prior itself is a line.
    """
    summary = results.summary
    scale = temperature_scale(results.temperatures)
    figure, panel = sheet_of("Mean square weight of each layer", results, (6.2, 4.2))
    axes = panel.subplots()
    mean, error = summary.mean_square.values, summary.mean_square_error.values
    layers = mean.shape[1]
    good = summary.equilibrated.values
    for layer in range(layers):
        band = mean[:, layer], error[:, layer]
        curve(axes, scale, results.temperatures, *band, look(layer), good)
    box = results.settings.prior.kind == "box"
    level = UniformBox.mean_square if box else Gaussian.mean_square
    label = "the prior alone"
    prior = axes.axhline(level, color="black", linestyle="--", linewidth=1.1, zorder=1, label=label)
    scale.apply(axes)
    posterior = scale.mark_posterior(axes)
    fit_y(axes, [level, *in_sight(mean, error)])
    width = "half-width of the box" if box else "standard deviation"
    axes.set_ylabel(f"mean of (weight / {width})²")
    handles = [look(layer).handle(f"layer {layer + 1}") for layer in range(layers)]
    legend_above(axes, [*handles, prior, *posterior, *hollow_handles(good)], columns=3)
    return figure


def _draw_histograms(axes: Axes, results: SweepResults, peak: int) -> None:
    """Energies of the rungs around the peak; the peak's own is filled."""
    energy = results.series.energy.values.astype(np.float64)
    chosen = range(max(0, peak - _NEIGHBOURS), min(energy.shape[-1], peak + _NEIGHBOURS + 1))
    samples = {rung: energy[..., rung].ravel() for rung in chosen}
    edges = _edges(np.concatenate(list(samples.values())), samples[peak])
    inside = 0 < peak < energy.shape[-1] - 1
    handles = []
    for k, (rung, values) in enumerate(samples.items()):
        counts, _ = np.histogram(values, edges)
        bimodality = results.summary.bimodality.values[rung]
        label = f"{number(results.temperatures[rung])} ({bimodality:.2f})"
        if rung == peak:
            label = f"{'peak' if inside else 'largest'}: {label}"
        filled = np.flatnonzero(counts)
        seen = slice(filled[0], filled[-1] + 1)
        outline = counts[seen] / len(values), edges[filled[0] : filled[-1] + 2]
        style = look(k)
        handles.append(
            axes.stairs(
                *outline,
                color=style.colour,
                linestyle=style.line,
                linewidth=1.8 if rung == peak else 1.1,
                label=label,
            )
        )
        if rung == peak:
            axes.stairs(*outline, color=style.colour, fill=True, alpha=0.25)
    pad = 0.03 * (edges[-1] - edges[0])
    axes.set_xlim(edges[0] - pad, edges[-1] + pad)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("energy E")
    axes.set_ylabel("fraction of samples")
    title = "T (bimodality: 1/3 normal, 5/9 flat, 1 two peaks)"
    if not results.summary.equilibrated.values[list(chosen)].all():
        title += "\nnot all equilibrated: two peaks may be two copies"
    legend_above(axes, handles, title)


def _edges(pooled: np.ndarray, at_peak: np.ndarray) -> np.ndarray:
    """Bins over all energies, of the width that suits the peak's (Freedman and Diaconis)."""
    width = float(np.diff(np.histogram_bin_edges(at_peak, "fd")[:2])[0])
    span = float(np.ptp(pooled))
    bins = int(np.clip(np.ceil(span / width), 8, _MOST_BINS))
    return np.histogram_bin_edges(pooled, bins)


def _where(results: SweepResults, peak: int) -> str:
    """Where the peak is; one at an end of the ladder is no peak."""
    at = f"T = {number(results.temperatures[peak])}"
    if 0 < peak < len(results.temperatures) - 1:
        return f"peak at {at}"
    return f"largest at the {'highest' if peak else 'lowest'} rung, {at}"
