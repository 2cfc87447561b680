"""Fig. 1: what the network sees."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tempernet.errors import DataError
from tempernet.report.figures.notes import Judged, note
from tempernet.report.figures.sheet import SMALL, print_style, sheet

SIDE = 8
"""The figure has at most SIDE x SIDE images."""
_GAP = 0.12
"""Gap between images, in parts of their width."""


@print_style()
def images_figure(
    images: np.ndarray, labels: np.ndarray, seed: int, results: Judged | None = None
) -> Figure:
    """Fig. 1: up to 64 random training images with their labels.

    Args:
        images: (n, h, w).
        labels: (n,).
        seed: chooses the images.
        results: the run that the small print names, if any.
    """
    images, labels = np.asarray(images), np.asarray(labels)
    if images.ndim != 3 or len(images) != len(labels) or not len(images):
        raise DataError(
            f"images must be (n, h, w) with n labels, got {images.shape} with {labels.shape}"
        )
    chosen = np.random.default_rng(seed).permutation(len(images))[: SIDE**2]
    height, width = images.shape[1:]
    gap = max(1, round(_GAP * width))
    rows = -(-len(chosen) // SIDE)
    shown = images[chosen].astype(np.float64)
    mosaic = np.full((rows * (height + gap) - gap, SIDE * (width + gap) - gap), np.nan)
    heading = f"The {len(chosen)} training images"
    if len(chosen) < len(images):
        heading = f"{len(chosen)} random training images"
    size = (5.0, 0.8 + 4.7 * mosaic.shape[0] / mosaic.shape[1])
    notes = [] if results is None else [note(results)]
    alarm = results is not None and not results.verdict.good
    figure, panel = sheet(heading, notes, size, alarm)
    axes = panel.subplots()
    for position, (image, label) in enumerate(zip(shown, labels[chosen], strict=True)):
        top, left = position // SIDE * (height + gap), position % SIDE * (width + gap)
        mosaic[top : top + height, left : left + width] = image
        written = axes.text(left, top, f"{label}", ha="left", va="top")
        written.set(fontsize=SMALL, color="#0072B2", fontweight="bold")
    axes.imshow(mosaic, cmap="gray_r", vmin=shown.min(), vmax=shown.max(), interpolation="nearest")
    axes.set_axis_off()
    return figure
