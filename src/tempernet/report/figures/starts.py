"""The starts of an optimisation: how fast they get to E = 0, and how those kept do."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tempernet.report.figures.notes import named
from tempernet.report.figures.sheet import look, print_style, sheet
from tempernet.results.optimise import OptimiseResults


@print_style()
def starts_figure(found: OptimiseResults) -> Figure:
    """The share of starts at E = 0 against gradients, and the test loss of those kept."""
    notes = [f"{named(found)}: {found.headline}"]
    figure, panel = sheet("Standard optimisation", notes, (8.2, 4.0))
    left, right = panel.subplots(1, 2)
    _success(left, found)
    _losses(right, found)
    return figure


def _success(axes: Axes, found: OptimiseResults) -> None:
    """The cumulated share of all starts, which ends at the success rate."""
    started = len(found.starts["reached"])
    taken = np.sort(found.starts["gradients"][found.starts["reached"]])
    budget = found.settings.optimise.max_gradients
    x = np.concatenate([[0], taken, [budget]])
    share = np.concatenate([np.arange(len(taken) + 1), [len(taken)]]) / started
    axes.step(x, share, where="post", color=look(0).colour)
    axes.set_xlim(0, budget)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("gradients")
    axes.set_ylabel("share of starts that have reached E = 0")


def _losses(axes: Axes, found: OptimiseResults) -> None:
    """A histogram of the test loss, with an uninformed classifier's beside it."""
    losses = found.kept["test_loss"]
    axes.hist(losses[np.isfinite(losses)], bins="auto", color=look(0).colour, label="those kept")
    uninformed = float(found.provenance["uninformed_loss"])
    axes.axvline(uninformed, color="black", linestyle="--", label="uninformed classifier")
    axes.set_xlabel("test loss")
    axes.set_ylabel("number of starts kept")
    axes.legend(loc="best")
