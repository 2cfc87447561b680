"""The cooling curve: losses as the temperature falls, where it stopped, what it returned to."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tempernet.report.figures.axis import curve, fit_y, in_sight, temperature_scale
from tempernet.report.figures.notes import named
from tempernet.report.figures.sheet import look, print_style, sheet
from tempernet.report.formatting import with_error
from tempernet.results.anneal import AnnealResults, held_out_scores


@print_style()
def cooling_figure(found: AnnealResults) -> Figure:
    """Loss per example against T, hot on the left, with bands of one standard error.

    The star is the temperature with the lowest average validation loss; the diamond is the single
    network with the lowest validation loss, which as the least of many lies below the curve.
    """
    note = f"{named(found)}: {found.headline}"
    figure, panel = sheet("Cooling", [note, *_on_test(found)], (7.2, 5.0))
    axes = panel.subplots()
    scale = temperature_scale(found.temperatures)
    train, validation = look(0), look(1)
    shown = []
    for style, estimate in ((train, found.train_loss), (validation, found.validation_loss)):
        curve(axes, scale, found.temperatures, estimate.mean, estimate.error, style)
        shown += in_sight(estimate.mean, estimate.error)
    uninformed = float(found.provenance["uninformed_loss"])
    level = axes.axhline(uninformed, color="black", linestyle="--", linewidth=1.1, zorder=1)
    level.set_label("uninformed classifier")
    best = float(found.temperatures[found.best])
    average = float(found.validation_loss.mean[found.best])
    step, replica, draw = found.chosen
    chosen, least = float(found.temperatures[step]), float(found.losses[step, replica, draw])
    handles: list[Artist] = [
        train.handle("training loss"),
        validation.handle("validation loss"),
        level,
        *_mark(axes, best, average, "*", 13, f"lowest average, T = {best:.3g}"),
        *_mark(axes, chosen, least, "D", 6, "single network with the lowest validation loss"),
    ]
    if found.course.stopped:
        last = float(found.temperatures[-1])
        label = f"stopped, T = {last:.3g}"
        handles.append(
            axes.axvline(last, color="0.45", linewidth=0.9, linestyle=":", zorder=1, label=label)
        )
    scale.apply(axes)
    axes.invert_xaxis()
    axes.set_ylabel("loss per example")
    fit_y(axes, [*shown, uninformed, least])
    panel.legend(handles=handles, loc="outside lower center", ncols=2, handlelength=2.8)
    return figure


def _mark(
    axes: Axes, temperature: float, loss: float, marker: str, size: float, label: str
) -> list[Line2D]:
    """A marker at a temperature and a loss; its legend entry."""
    (mark,) = axes.plot([temperature], [loss], ls="none", marker=marker, zorder=6, label=label)
    mark.set(markersize=size, markeredgewidth=0.8)
    mark.set(markerfacecolor=look(1).colour, markeredgecolor="black")
    return [mark]


def _on_test(found: AnnealResults) -> list[str]:
    """The scores on the test set in a sentence; none before the cooling has ended."""
    scores = held_out_scores(found)
    if not scores:
        return []
    chosen, ensemble, optimised = (scores[name] for name in ("chosen", "ensemble", "optimised"))
    mean = with_error(optimised["loss"], optimised["loss_error"])
    return [
        f"Test loss: single network {chosen['loss']:.3g}; "
        f"ensemble of {ensemble['members']} at the star {ensemble['loss']:.3g}; "
        f"mean of {optimised['networks']} optimised networks {mean}"
    ]
