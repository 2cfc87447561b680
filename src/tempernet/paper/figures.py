"""The figures of the page: the paper's four, under both protocols, and those that its claims are
judged by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from tempernet.paper.claims import Runs
from tempernet.report import figures
from tempernet.results.comparison import compare

Images = tuple[np.ndarray, np.ndarray]
PROTOCOLS = {
    "default": "the default protocol, which can equilibrate",
    "paper": "the paper's protocol",
}


class Drawn(NamedTuple):
    """A figure in a file."""

    name: str
    caption: str
    png: Path


def draw(runs: Runs, folder: Path, images: Images | None) -> list[Drawn]:
    """Draw every figure that there are runs for, as SVG and PNG."""
    drawn = []
    for name, caption, figure in _figures(runs, images):
        written = figures.save(figure, folder / name)
        drawn.append(Drawn(name, caption, next(file for file in written if file.suffix == ".png")))
    return drawn


def _figures(runs: Runs, images: Images | None) -> Iterator[tuple[str, str, Figure]]:
    """Name, caption and figure, each drawn when it is asked for."""
    if images is not None:
        yield (
            "fig1-images",
            "Fig. 1: random training images, as the networks see them",
            figures.images_figure(*images, 0),
        )
    for protocol, words in PROTOCOLS.items():
        for run in _made(runs, f"m3-d500-{protocol}"):
            caption = f"Fig. 2: energies of all temperatures round by round, M3 on D_500, {words}"
            yield f"fig2-trajectory-{protocol}", caption, figures.trajectory_figure(run)
    for number, network, sizes in ((3, "M3", (50, 500, 5000)), (4, "M3star", (50, 500))):
        for protocol, words in PROTOCOLS.items():
            names = [name for n in sizes if (name := f"{network.lower()}-d{n}-{protocol}") in runs]
            if names:
                caption = f"Fig. {number}: loss of {network} against temperature, {words}"
                figure = figures.loss_figure(_made(runs, *names), _optimised(runs, names))
                yield f"fig{number}-loss-{protocol}", caption, figure
    for n in (50, 500, 5000):
        for run in _made(runs, f"m3-d{n}-default"):
            caption = f"Is there a transition? Heat capacity of M3 on D_{n}, {PROTOCOLS['default']}"
            yield f"heat-capacity-d{n}", caption, figures.heat_capacity_figure(run)
    for protocol, ladder in (
        ("default", "rungs placed by the barrier"),
        ("paper", "a geometric ladder"),
    ):
        for run in _made(runs, f"m3-d500-{protocol}"):
            caption = f"Swaps of neighbours on {ladder}, M3 on D_500, {PROTOCOLS[protocol]}"
            yield f"swaps-{protocol}", caption, figures.swaps_figure(run)
    for protocol, words in PROTOCOLS.items():
        models = _made(runs, f"evidence-m3-{protocol}", f"evidence-m1-{protocol}")
        if models:
            caption = f"Sec. 4.4: evidences on D_500, {words}"
            yield f"evidences-{protocol}", caption, figures.comparison_figure(compare(models))


def _made(runs: Runs, *names: str) -> list[Any]:
    return [runs[name] for name in names if name in runs]


def _optimised(runs: Runs, names: Sequence[str]) -> dict[str, Any]:
    """Standard optimisation beside the sweeps of the same network, data and protocol, by the label
    of the sweep.
    """
    labels = dict(zip(names, figures.run_labels(_made(runs, *names)), strict=True))
    return {
        label: runs[f"optimise-{name}"]
        for name, label in labels.items()
        if f"optimise-{name}" in runs
    }
