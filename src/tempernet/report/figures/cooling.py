"""The cooling curve: train and validation loss as the temperature falls, where it stopped, what it
went back to.
"""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tempernet.report.figures.axis import curve, fit_y, in_sight, temperature_scale
from tempernet.report.figures.sheet import look, print_style, sheet
from tempernet.report.formatting import with_error
from tempernet.results.anneal import AnnealResults, held_out_scores


@print_style()
def cooling_figure(found: AnnealResults) -> Figure:
    """Loss per example against T, hot on the left, with bands of one standard error.

    The star is the temperature gone back to; the diamond is the single network of least validation
    loss, which as the least of many lies below the curve.
    """
    figure, panel = sheet(
        "Cooling", [f"{found.title}: {found.headline}", *_on_test(found)], (7.2, 5.0)
    )
    axes = panel.subplots()
    scale = temperature_scale(found.temperatures)
    train, validation = look(0), look(1)
    shown = []
    for style, estimate in ((train, found.train_loss), (validation, found.validation_loss)):
        curve(axes, scale, found.temperatures, estimate.mean, estimate.error, style)
        shown += in_sight(estimate.mean, estimate.error)
    uninformed = float(found.provenance["uninformed_loss"])
    step, replica, draw = found.chosen
    least = float(found.losses[step, replica, draw])
    best = float(found.temperatures[found.best])
    handles: list[Artist] = [
        train.handle("training loss"),
        validation.handle("validation loss"),
        axes.axhline(
            uninformed,
            color="black",
            linestyle="--",
            linewidth=1.1,
            zorder=1,
            label="uninformed classifier",
        ),
        *_mark(
            axes,
            best,
            float(found.validation_loss.mean[found.best]),
            "*",
            13,
            f"least average, T = {best:.3g}",
        ),
        *_mark(
            axes,
            float(found.temperatures[step]),
            least,
            "D",
            6,
            "single network of least validation loss",
        ),
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
    colour = look(1).colour
    return axes.plot(
        [temperature],
        [loss],
        ls="none",
        marker=marker,
        ms=size,
        mfc=colour,
        mec="black",
        mew=0.8,
        zorder=6,
        label=label,
    )


def _on_test(found: AnnealResults) -> list[str]:
    """The scores on the test set in a sentence; none before the cooling has ended."""
    scores = held_out_scores(found)
    if not scores:
        return []
    optimised = scores["optimised"]
    loss = with_error(optimised["loss"], optimised["loss_error"])
    return [
        f"Test loss: single network {scores['chosen']['loss']:.3g}; ensemble of {scores['ensemble']['members']} at the "
        f"star {scores['ensemble']['loss']:.3g}; mean of {optimised['networks']} optimised networks {loss}"
    ]
