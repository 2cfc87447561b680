"""Figures of a run: the paper's Figs. 1 to 4, and those that say whether they can be believed.

Every function ending in `_figure` returns a matplotlib Figure and touches no global state. `draw`
writes a mapping of names to such functions, `save` writes one figure. The small print of each
figure names its runs, their protocols and their verdicts.
"""

from tempernet.report.figures.cooling import cooling_figure
from tempernet.report.figures.evidence import comparison_figure, integrand_figure
from tempernet.report.figures.files import Figures, draw, save
from tempernet.report.figures.images import images_figure
from tempernet.report.figures.ladder import flow_figure, steps_figure, swaps_figure
from tempernet.report.figures.loss import ensemble_figure, loss_figure, run_labels
from tempernet.report.figures.physics import heat_capacity_figure, mean_square_figure
from tempernet.report.figures.starts import starts_figure
from tempernet.report.figures.sweep import sweep_figures
from tempernet.report.figures.trajectory import trajectory_figure

__all__ = [
    "Figures",
    "comparison_figure",
    "cooling_figure",
    "draw",
    "ensemble_figure",
    "flow_figure",
    "heat_capacity_figure",
    "images_figure",
    "integrand_figure",
    "loss_figure",
    "mean_square_figure",
    "run_labels",
    "save",
    "starts_figure",
    "steps_figure",
    "swaps_figure",
    "sweep_figures",
    "trajectory_figure",
]
