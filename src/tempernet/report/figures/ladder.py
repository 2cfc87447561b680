"""How the ladder works: step sizes, swaps between neighbours, and how replicas travel."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tempernet.report.figures.axis import fit_y, marker_size, temperature_scale
from tempernet.report.figures.sheet import (
    GREY,
    LOOKS,
    Look,
    legend_above,
    look,
    print_style,
    sheet_of,
)
from tempernet.results.sweep import SweepResults

SWAP_RATE_WANTED = 0.2
"""Neighbours that swap less often than this hold replicas up."""
_FOLLOWED = 4
"""Replicas whose path is drawn."""


@print_style()
def steps_figure(results: SweepResults) -> Figure:
    """Step size dt, and rates of acceptance and of rejection at walls, against T."""
    summary = results.summary
    scale = temperature_scale(results.temperatures)
    figure, panel = sheet_of("Step sizes and acceptance", results, (6.6, 5.2))
    upper, lower = panel.subplots(2, 1, sharex=True)
    x = scale.place(results.temperatures)
    steps = summary.time_step.values
    # dt = eps / sqrt(T) is 0 at T = inf, which a logarithmic axis cannot show.
    _points(upper, x[steps > 0], steps[steps > 0], look(0), len(x))
    fit_y(upper, [steps[steps > 0]])
    upper.set_ylabel("step size dt")
    tune = results.settings.tune
    lower.axhspan(tune.low, tune.high, color="0.9", zorder=0)
    _points(lower, x, summary.acceptance.values, look(0), len(x))
    _points(lower, x, summary.wall_rejection_rate.values, look(1), len(x))
    lower.set_ylim(-0.02, 1.02)
    lower.set_ylabel("fraction of trajectories")
    scale.apply(lower)
    handles = [
        look(0).handle("accepted"),
        look(1).handle("rejected at walls"),
        Patch(color="0.9", label=f"acceptance wanted, {tune.low:g} to {tune.high:g}"),
    ]
    legend_above(lower, handles, columns=3)
    return figure


@print_style()
def swaps_figure(results: SweepResults) -> Figure:
    """Swap rate and overlap of energy histograms of each pair of neighbours.

    They stand at the geometric mean of the pair's temperatures.
    """
    summary, barrier = results.summary, results.barrier
    scale = temperature_scale(results.temperatures)
    figure, panel = sheet_of("Swaps between neighbours", results, (6.2, 4.0))
    axes = panel.subplots()
    place = scale.place(results.temperatures)
    x = np.sqrt(place[:-1] * place[1:])
    rate = summary.swap_rate.values[:-1]
    _points(axes, x, rate, look(0), len(x))
    _points(axes, x, summary.overlap.values[:-1], look(1), len(x))
    label = f"{100 * SWAP_RATE_WANTED:.0f} %"
    wanted = axes.axhline(SWAP_RATE_WANTED, color="black", linestyle=":", zorder=1, label=label)
    wanted.set_linewidth(1.2)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("fraction")
    scale.apply(axes)
    axes.set_xlabel("temperature T, geometric mean of the pair")
    title = "" if len(x) else "one rung: no neighbours"
    if len(x) and np.isfinite(barrier.total):
        title = (
            f"barrier Λ = {barrier.total:.1f}: about {barrier.rungs_wanted} temperatures "
            f"recommended, {len(place)} used"
        )
    swap_rate = "swap rate" if np.isfinite(rate).any() or not len(x) else "swap rate (none tried)"
    handles = [look(0).handle(swap_rate), look(1).handle("overlap of energy histograms"), wanted]
    legend_above(axes, handles, title, columns=3)
    return figure


@print_style()
def flow_figure(results: SweepResults) -> Figure:
    """Fraction of replicas that came from the hot end, by rung, and the paths of a few replicas.

    The paths are of replicas of copy 0.
    """
    figure, panel = sheet_of("How replicas travel the ladder", results, (7.8, 4.0))
    left, right = panel.subplots(1, 2, width_ratios=(1, 1.5))
    _draw_fraction(left, results.fraction_from_hot)
    replica = results.series.replica.values[0]
    # Row by row, argsort of who sits where is where each one sits.
    where = np.argsort(replica, axis=1)
    rungs = replica.shape[1]
    gap = max(_FOLLOWED, len(replica) // 6)
    handles = []
    starts = np.unique(np.linspace(0, rungs - 1, _FOLLOWED).round().astype(int))
    for k, start in enumerate(starts):
        style = LOOKS[k]
        path = where[:, replica[0, start]]
        handles += right.plot(
            results.series["round"].values,
            path,
            color=style.colour,
            marker=style.marker,
            markersize=5,
            markevery=(k * gap // _FOLLOWED, gap),
            drawstyle="steps-mid",
            label=f"began at rung {start}",
        )
    right.set_ylim(-0.5 - 0.02 * rungs, rungs - 0.5 + 0.02 * rungs)
    right.set_xlabel("round")
    right.set_ylabel("rung, 0 is the coldest")
    for axis in (left.xaxis, right.yaxis, right.xaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    trips = f"{results.round_trips} round trip{'' if results.round_trips == 1 else 's'}"
    rounds, copies = results.series.sizes["round"], results.series.sizes["copy"]
    noun = "copy" if copies == 1 else "copies"
    legend_above(right, handles, f"{trips} in {rounds} rounds of {copies} {noun}; copy 0:")
    return figure


def _draw_fraction(axes: Axes, fraction: np.ndarray) -> None:
    rungs = len(fraction)
    handles = []
    if rungs > 1:
        label = "ideal: even flow"
        handles = axes.plot([0, rungs - 1], [0, 1], color=GREY, linestyle="--", label=label)
        handles[0].set_linewidth(1.1)
    _points(axes, np.arange(rungs), fraction, look(0), rungs)
    handles.append(look(0).handle("came from the hot end"))
    axes.set_xlim(-0.5 - 0.02 * rungs, rungs - 0.5 + 0.02 * rungs)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("rung, 0 is the coldest")
    axes.set_ylabel("fraction of replicas")
    legend_above(axes, handles, columns=1)


def _points(axes: Axes, x: np.ndarray, y: np.ndarray, style: Look, rungs: int) -> None:
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=marker_size(rungs),
    )
