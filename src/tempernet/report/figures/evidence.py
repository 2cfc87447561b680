"""Figures of evidences: the integrand along the path, and models side by side."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tempernet.report.figures.axis import hollow_handles
from tempernet.report.figures.notes import note
from tempernet.report.figures.sheet import legend_above, look, print_style, sheet, sheet_of
from tempernet.report.formatting import with_error
from tempernet.results.comparison import Comparison
from tempernet.results.evidence import EvidenceResults

_ERRORS = 2.0
"""Bars are so many errors long, to either side."""


@print_style()
def integrand_figure(results: EvidenceResults) -> Figure:
    """The integrand <f> at every rung with its error, and what each interval adds to the integral.

    Rungs are spaced by the barrier, so the x axis is the rung; its labels are values of the path's
    parameter.
    """
    mean, error = results.log_evidence
    heading = f"log evidence {with_error(float(mean), float(error))}, by {results.method}"
    figure, panel = sheet_of(heading, results, (8.2, 4.4))
    left, right = panel.subplots(1, 2)
    beta = results.rungs.beta
    x = np.arange(len(beta))
    good, integrand = results.verdict.equilibrated, results.integrand.mean
    colour = look(0).colour
    bars = _ERRORS * results.integrand.error
    left.errorbar(x, integrand, bars, color=colour, linewidth=1.0, capsize=2)
    left.plot(x[good], integrand[good], "o", color=colour, markersize=4)
    left.plot(x[~good], integrand[~good], "o", color=colour, markersize=4, markerfacecolor="white")
    _scale_y(left, integrand)
    by_temperature = results.method == "temperature"
    left.set_ylabel("mean of E" if by_temperature else "mean of E - E(w0) - quadratic")
    left.set_title(f"integrand of Eq. 24, ±{_ERRORS:.0f} errors", loc="left", fontsize=9)
    handles = hollow_handles(good)
    if handles:
        left.legend(handles=handles, loc="best")
    pieces = -np.diff(beta) * 0.5 * (integrand[:-1] + integrand[1:])
    right.bar(x[:-1] + 0.5, pieces, width=0.8, color=look(2).colour)
    right.set_ylabel("part of the integral between neighbours, nats")
    swaps = right.twinx()
    rate = results.recorded.swap_rate
    swaps.plot(x[:-1] + 0.5, rate, color=look(1).colour, marker=".", linewidth=1.0)
    swaps.set_ylim(0, 1)
    swaps.grid(visible=False)
    swaps.spines["right"].set_visible(True)
    swaps.set_ylabel("swaps accepted", color=look(1).colour)
    right.set_title("where the integral comes from", loc="left", fontsize=9)
    for axes in (left, right):
        _label_rungs(axes, results)
    return figure


@print_style()
def comparison_figure(found: Comparison) -> Figure:
    """Log evidences with errors, best on top, and the posterior probability of each model."""
    models = found.models
    trusted = np.array([model.trusted for model in models])
    size = (7.2, 2.2 + 0.5 * len(models))
    notes = [note(model) for model in models]
    figure, panel = sheet("Log evidence", notes, size, alarm=not trusted.all())
    axes = panel.subplots()
    values = np.array([float(model.log_evidence.mean) for model in models])
    errors = np.array([float(model.log_evidence.error) for model in models])
    order = np.argsort(values)
    colour = look(0).colour
    for row, i in enumerate(order):
        face = colour if trusted[i] else "white"
        bar = _ERRORS * errors[i]
        axes.errorbar(
            values[i], row, xerr=bar, fmt="o", color=colour, markerfacecolor=face, capsize=3
        )
    names = [
        f"{model.settings.network.name}, {model.method}, {model.settings.protocol} protocol"
        for model in models
    ]
    labels = [f"{names[i]}\nprobability {found.probabilities[i]:.3g}" for i in order]
    axes.set_yticks(np.arange(len(models)), labels)
    axes.set_ylim(-0.6, len(models) - 0.4)
    axes.set_xlabel(f"log evidence, nats, ±{_ERRORS:.0f} errors")
    handles = hollow_handles(trusted)
    if handles:
        legend_above(axes, handles)
    return figure


def _scale_y(axes: Axes, values: np.ndarray) -> None:
    """Logarithmic if all values have one sign, as E has; linear around 0 if not."""
    if np.all(values > 0):
        axes.set_yscale("log")
    else:
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        axes.set_yscale("symlog", linthresh=max(1.0, float(np.abs(values).min())))


def _label_rungs(axes: Axes, results: EvidenceResults) -> None:
    """A few rungs named by the path's parameter."""
    values = results.rungs.values
    chosen = np.unique(np.linspace(0, len(values) - 1, 6).round().astype(int))
    labels = ["∞" if np.isinf(values[k]) else f"{values[k]:.3g}" for k in chosen]
    axes.set_xticks(chosen, labels)
    by_temperature = results.method == "temperature"
    axes.set_xlabel("temperature T of the rung" if by_temperature else "λ of the rung")
