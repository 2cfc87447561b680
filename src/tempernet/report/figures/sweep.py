"""The figures of a sweep, by their names; `draw` makes files of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tempernet.report.figures.files import Figures
from tempernet.report.figures.images import images_figure
from tempernet.report.figures.ladder import flow_figure, steps_figure, swaps_figure
from tempernet.report.figures.loss import ensemble_figure, loss_figure
from tempernet.report.figures.physics import heat_capacity_figure, mean_square_figure
from tempernet.report.figures.trajectory import trajectory_figure
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults


def sweep_figures(
    results: SweepResults,
    images: tuple[NDArray[np.generic], NDArray[np.integer]] | None = None,
    optimised: Mapping[str, OptimiseResults] | None = None,
) -> Figures:
    """The figures of a sweep.

    Args:
        results: the run.
        images: training images (n, h, w) and their labels (n,) for Fig. 1; None leaves it out.
        optimised: runs of standard optimisation to show beside it, as in `loss_figure`.
    """
    pictures: Figures = {}
    if images is not None:
        seed = results.settings.data.seed
        pictures = {"fig1-images": lambda: images_figure(*images, seed, results)}
    return {
        **pictures,
        "fig2-trajectory": lambda: trajectory_figure(results),
        "fig3-loss": lambda: loss_figure([results], optimised),
        "steps": lambda: steps_figure(results),
        "swaps": lambda: swaps_figure(results),
        "flow": lambda: flow_figure(results),
        "heat-capacity": lambda: heat_capacity_figure(results),
        "ensemble": lambda: ensemble_figure(results),
        "mean-square": lambda: mean_square_figure(results),
    }
