"""Figures as files: SVG and PNG, whole or not there, the same bytes for the same run."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tempernet.errors import StoreError
from tempernet.report.figures.images import images_figure
from tempernet.report.figures.ladder import flow_figure, steps_figure, swaps_figure
from tempernet.report.figures.loss import ensemble_figure, loss_figure
from tempernet.report.figures.physics import heat_capacity_figure, mean_square_figure
from tempernet.report.figures.sheet import print_style
from tempernet.report.figures.trajectory import trajectory_figure
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults
from tempernet.store.files import write_atomic

Figures = Mapping[str, Callable[[], Figure | None]]
"""Name of its files -> what draws a figure, or None if there is nothing to show."""
DPI = 160
_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
"""What would change from day to day or from version to version."""


def sweep_figures(
    results: SweepResults,
    images: tuple[np.ndarray, np.ndarray] | None = None,
    optimised: Mapping[str, OptimiseResults] | None = None,
) -> Figures:
    """Every figure of a sweep, by the name of its files.

    `images` are the training images (n, h, w) and their labels (n,) for Fig. 1; `optimised` as in
    `loss_figure`.
    """
    return {
        "fig1-images": lambda: (
            None if images is None else images_figure(*images, results.settings.data.seed, results)
        ),
        "fig2-trajectory": lambda: trajectory_figure(results),
        "fig3-loss": lambda: loss_figure([results], optimised),
        "steps": lambda: steps_figure(results),
        "swaps": lambda: swaps_figure(results),
        "flow": lambda: flow_figure(results),
        "heat-capacity": lambda: heat_capacity_figure(results),
        "ensemble": lambda: ensemble_figure(results),
        "mean-square": lambda: mean_square_figure(results),
    }


def draw_all(figures: Figures, folder: Path) -> list[Path]:
    """Draw every figure that there is something for into the folder; returns the files."""
    written: list[Path] = []
    for name, draw_fn in figures.items():
        figure = draw_fn()
        if figure is not None:
            written += save(figure, folder / name)
    return written


def save(figure: Figure, path: Path) -> list[Path]:
    """Write `path`.svg and `path`.png, making the folder if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {path.parent}: {error.strerror}; choose another with --out"
        ) from error
    written = []
    for kind, metadata in _METADATA.items():
        buffer = io.BytesIO()
        with print_style():
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
        file = path.with_name(f"{path.name}.{kind}")
        write_atomic(file, buffer.getvalue())
        written.append(file)
    return written
