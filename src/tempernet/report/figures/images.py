"""Fig. 1: what the network sees."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tempernet.errors import DataError
from tempernet.report.figures.sheet import SMALL, note, print_style, sheet
from tempernet.results.sweep import SweepResults

SIDE = 8
"""The figure has at most SIDE x SIDE images."""
_GAP = 0.12
"""Between images, in parts of their width."""


@print_style()
def images_figure(
    images: np.ndarray, labels: np.ndarray, seed: int, results: SweepResults | None = None
) -> Figure:
    """Fig. 1: 64 random training images (n, h, w) with their labels (n,); small print of `results`,
    if given.
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
    figure, panel = sheet(
        f"{len(chosen)} random training images"
        if len(chosen) < len(images)
        else f"The {len(chosen)} training images",
        [] if results is None else [note(results)],
        (5.0, 0.8 + 4.7 * mosaic.shape[0] / mosaic.shape[1]),
        alarm=results is not None and not results.verdict.good,
    )
    axes = panel.subplots()
    for position, (image, label) in enumerate(zip(shown, labels[chosen], strict=True)):
        top, left = position // SIDE * (height + gap), position % SIDE * (width + gap)
        mosaic[top : top + height, left : left + width] = image
        axes.text(
            left,
            top,
            f"{label}",
            fontsize=SMALL,
            color="#0072B2",
            fontweight="bold",
            ha="left",
            va="top",
        )
    axes.imshow(mosaic, cmap="gray_r", vmin=shown.min(), vmax=shown.max(), interpolation="nearest")
    axes.set_axis_off()
    return figure
