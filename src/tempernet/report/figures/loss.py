"""Figs. 3 and 4: loss against temperature; and what averaging predictions gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tempernet.diagnostics.thermo import INTERVAL, BestTemperature
from tempernet.report.figures.axis import (
    Scale,
    curve,
    fit_y,
    hollow_handles,
    in_sight,
    temperature_scale,
)
from tempernet.report.figures.notes import best, named, note
from tempernet.report.figures.sheet import (
    GREY,
    Look,
    legend_above,
    look,
    print_style,
    sheet,
    sheet_of,
)
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults


@print_style()
def loss_figure(
    runs: Sequence[SweepResults], optimised: Mapping[str, OptimiseResults] | None = None
) -> Figure:
    """Figs. 3 and 4: train and test loss per example against T, with one standard error.

    A star is the best temperature, chosen on the validation set.

    Args:
        runs: one or more sweeps.
        optimised: runs of "standard optimisation", by the label that `run_labels` gives to the
            sweep they belong to, or by any other. The mean loss of each is a line with a band of
            one standard error.
    """
    labels = run_labels(runs)
    scale = temperature_scale(*(run.temperatures for run in runs))
    panels = [("train_loss", "training loss per example")]
    if any("test_loss" in run.summary for run in runs):
        panels.append(("test_loss", "test loss per example"))
    size = (4.2 + 3.6 * (len(panels) - 1), 4.3 + 0.3 * len(runs))
    notes = [note(run) + (f"; best {best(run.best)}" if run.best else "") for run in runs]
    notes += [f"Standard optimisation: {named(found)}" for found in (optimised or {}).values()]
    alarm = not all(run.verdict.good for run in runs)
    figure, panel = sheet("Loss against temperature", notes, size, alarm)
    row = panel.subplots(1, len(panels), squeeze=False)[0]
    handles: list[Artist] = []
    if len(runs) > 1:
        handles = [look(k).handle(label) for k, label in enumerate(labels)]
    marks: dict[str, Artist] = {}
    for axes, (name, title) in zip(row, panels, strict=True):
        shown: list[np.ndarray | float] = []
        for k, run in enumerate(runs):
            shown += _draw_run(axes, scale, run, name, look(k), marks)
        shown += _draw_optimised(axes, labels, optimised or {}, name, marks)
        for level in {run.provenance["uninformed_loss"] for run in runs}:
            shown.append(_uninformed(axes, level, marks))
        scale.apply(axes)
        for line in scale.mark_posterior(axes):
            marks["posterior"] = line
        axes.set_ylabel(title)
        fit_y(axes, shown)
    order = ("uninformed", "optimised", "posterior", "best")
    handles += [marks[name] for name in order if name in marks]
    handles += hollow_handles(*(run.summary.equilibrated.values for run in runs))
    panel.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3 if len(panels) > 1 and len(handles) > 4 else 2,
        handlelength=2.8,
    )
    return figure


@print_style()
def ensemble_figure(results: SweepResults) -> Figure | None:
    """Loss, accuracy and calibration error of averaged predictions, beside those of single samples.

    None if nothing has been scored.
    """
    summary = results.summary
    if "ensemble_loss" not in summary or "test_loss" not in summary:
        return None
    scale = temperature_scale(results.temperatures)
    figure, panel = sheet_of("What averaging predictions gains", results, (7.8, 4.0))
    left, right = panel.subplots(1, 2)
    uninformed = float(results.provenance["uninformed_loss"])
    drawn = [
        (left, "test_loss", look(0), "single sample"),
        (left, "ensemble_loss", look(1), "average of samples"),
        (right, "test_accuracy", look(0), "accuracy, single sample"),
        (right, "ensemble_accuracy", look(1), "accuracy, average"),
        (right, "ensemble_calibration", look(2), "calibration error, average"),
    ]
    handles: dict[Axes, list[Artist]] = {left: [], right: []}
    shown: list[np.ndarray | float] = [uninformed]
    for axes, name, style, label in drawn:
        if name not in summary:
            continue
        mean, error = summary[name].values, summary[f"{name}_error"].values
        curve(axes, scale, results.temperatures, mean, error, style, summary.equilibrated.values)
        handles[axes].append(style.handle(label))
        if axes is left:
            shown += in_sight(mean, error)
    level: dict[str, Artist] = {}
    _uninformed(left, uninformed, level)
    handles[left].append(level["uninformed"])
    for axes in (left, right):
        scale.apply(axes)
        posterior = scale.mark_posterior(axes)
        if axes is left:
            handles[left] += posterior
    handles[right] += hollow_handles(summary.equilibrated.values)
    fit_y(left, shown)
    right.set_ylim(0, 1.02)
    left.set_ylabel("test loss per example")
    right.set_ylabel("fraction of test examples")
    for axes in (left, right):
        legend_above(axes, handles[axes], columns=1)
    return figure


def run_labels(runs: Sequence[SweepResults]) -> list[str]:
    """A short name for each run: its number of images, and whatever else the runs differ in.

    Args:
        runs: sweeps that stand in one figure.
    """
    columns = [[f"{int(run.provenance['data']['n_train'])} images" for run in runs]]
    rest = (
        [run.settings.network.name for run in runs],
        [str(run.provenance["data"]["name"]) for run in runs],
        [f"{run.settings.protocol} protocol" for run in runs],
    )
    columns = [rest[0], *columns] if len(set(rest[0])) > 1 else columns
    columns += [column for column in rest[1:] if len(set(column)) > 1]
    labels = [", ".join(parts) for parts in zip(*columns, strict=True)]
    if len(set(labels)) < len(labels):
        labels = [f"{label}, {run.name}" for label, run in zip(labels, runs, strict=True)]
    return labels


def _draw_run(
    axes: Axes, scale: Scale, run: SweepResults, name: str, style: Look, marks: dict[str, Artist]
) -> list[np.ndarray | float]:
    """One run's curve, with its best temperature among test losses; what must be in sight."""
    if name not in run.summary:
        return []
    mean, error = run.summary[name].values, run.summary[f"{name}_error"].values
    curve(axes, scale, run.temperatures, mean, error, style, run.summary.equilibrated.values)
    if name == "test_loss" and run.best is not None:
        _draw_best(axes, scale, run.best, float(mean[run.best.rung]), colour=_face(run, style))
        marks["best"] = _best_handle(style.colour if "best" not in marks else GREY)
    return [*in_sight(mean, error)]


def _draw_best(axes: Axes, scale: Scale, best: BestTemperature, loss: float, colour: str) -> None:
    """A star at the best temperature, and a bar for its interval, which need not hold the star."""
    ends = [float(scale.place(best.low)), float(scale.place(best.high))]
    axes.plot(ends, [loss, loss], color="black", linewidth=1.6, marker="|", markersize=10, zorder=5)
    at = float(scale.place(best.temperature))
    (star,) = axes.plot([at], [loss], linestyle="none", marker="*", markersize=11, zorder=6)
    star.set(markerfacecolor=colour, markeredgecolor="black", markeredgewidth=0.7)


def _face(run: SweepResults, style: Look) -> str:
    """Hollow, like any other marker, if the best rung has not equilibrated."""
    good = run.best is not None and run.summary.equilibrated.values[run.best.rung]
    return style.colour if good else "white"


def _draw_optimised(
    axes: Axes,
    labels: Sequence[str],
    optimised: Mapping[str, OptimiseResults],
    name: str,
    marks: dict[str, Artist],
) -> list[np.ndarray | float]:
    """A line for each; the legend says of a training loss of 0, which a log axis cannot show."""
    shown: list[np.ndarray | float] = []
    for label, found in optimised.items():
        mean, _, error = found.spreads[name]
        if mean <= 0:
            continue
        colour = look(labels.index(label)).colour if label in labels else GREY
        axes.axhline(mean, color=colour, linestyle=":", linewidth=1.4, zorder=1)
        if np.isfinite(error):
            low, high = mean - error, mean + error
            axes.axhspan(low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
        shown.append(mean)
    if optimised:
        colour = GREY if len(optimised) > 1 or len(labels) > 1 else look(0).colour
        zero = all(found.spreads["train_loss"].mean == 0 for found in optimised.values())
        short = not all(found.all_reached for found in optimised.values())
        text = "standard optimisation"
        if zero:
            text += " (training loss 0)"
        elif short:
            text += " (not all at E = 0)"
        marks["optimised"] = Line2D([], [], color=colour, linestyle=":", linewidth=1.4, label=text)
    return shown


def _uninformed(axes: Axes, level: float, marks: dict[str, Artist]) -> float:
    marks["uninformed"] = axes.axhline(
        level, color="black", linestyle="--", linewidth=1.1, zorder=1, label="uninformed classifier"
    )
    return level


def _best_handle(colour: str) -> Line2D:
    label = f"best T by validation loss, {INTERVAL:.0%} interval".replace("%", " %")
    star = Line2D([], [], marker="*", markersize=11, color="black", linewidth=1.6, label=label)
    star.set(markerfacecolor=colour, markeredgecolor="black", markeredgewidth=0.7)
    return star
