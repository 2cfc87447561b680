"""The figures of the page: the paper's four, under both protocols, and those that judge claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tempernet.paper.claims import Runs
from tempernet.report import figures
from tempernet.results.comparison import compare
from tempernet.results.evidence import EvidenceResults
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults

Images = tuple[NDArray[np.generic], NDArray[np.integer]]
"""Training images (n, h, w) and their labels (n,)."""
PROTOCOLS = {
    "default": "the default protocol, which can equilibrate",
    "paper": "the paper's protocol",
}
LADDERS = {"default": "temperatures placed by the barrier", "paper": "a geometric ladder"}
LOSSES = ((3, "M3", (50, 500, 5000)), (4, "M3star", (50, 500)))
"""Number of the figure, network, and sizes of the training sets."""
Captioned = Iterator[tuple[str, str, Figure]]
"""Name, caption and figure, each drawn when it is asked for."""


class Drawn(NamedTuple):
    """A figure in a file."""

    name: str
    caption: str
    png: Path


def draw(runs: Runs, folder: Path, images: Images | None) -> list[Drawn]:
    """Draw every figure that there are runs for, as SVG and PNG.

    Args:
        runs: results by the name of their step.
        folder: where the files go.
        images: what Fig. 1 shows; None leaves it out.
    """
    drawn = []
    for name, caption, figure in _figures(runs, images):
        written = figures.save(figure, folder / name)
        png = next(file for file in written if file.suffix == ".png")
        drawn.append(Drawn(name, caption, png))
    return drawn


def _figures(runs: Runs, images: Images | None) -> Captioned:
    if images is not None:
        caption = "Fig. 1: random training images, as the networks see them"
        yield "fig1-images", caption, figures.images_figure(*images, 0)
    yield from _trajectories(runs)
    yield from _losses(runs)
    yield from _heat_capacities(runs)
    yield from _swaps(runs)
    yield from _evidences(runs)


def _trajectories(runs: Runs) -> Captioned:
    for protocol, words in PROTOCOLS.items():
        for run in _sweeps(runs, [f"m3-d500-{protocol}"]).values():
            caption = f"Fig. 2: energies of all temperatures round by round, M3 on D_500, {words}"
            yield f"fig2-trajectory-{protocol}", caption, figures.trajectory_figure(run)


def _losses(runs: Runs) -> Captioned:
    for number, network, sizes in LOSSES:
        for protocol, words in PROTOCOLS.items():
            made = _sweeps(runs, [f"{network.lower()}-d{n}-{protocol}" for n in sizes])
            if not made:
                continue
            caption = f"Fig. {number}: loss of {network} against temperature, {words}"
            figure = figures.loss_figure(list(made.values()), _optimised(runs, made))
            yield f"fig{number}-loss-{protocol}", caption, figure


def _heat_capacities(runs: Runs) -> Captioned:
    for n in (50, 500, 5000):
        for run in _sweeps(runs, [f"m3-d{n}-default"]).values():
            caption = f"Is there a transition? Heat capacity of M3 on D_{n}, {PROTOCOLS['default']}"
            yield f"heat-capacity-d{n}", caption, figures.heat_capacity_figure(run)


def _swaps(runs: Runs) -> Captioned:
    for protocol, ladder in LADDERS.items():
        for run in _sweeps(runs, [f"m3-d500-{protocol}"]).values():
            caption = f"Swaps of neighbours on {ladder}, M3 on D_500, {PROTOCOLS[protocol]}"
            yield f"swaps-{protocol}", caption, figures.swaps_figure(run)


def _evidences(runs: Runs) -> Captioned:
    for protocol, words in PROTOCOLS.items():
        made = [runs.get(f"evidence-{network}-{protocol}") for network in ("m3", "m1")]
        models = [run for run in made if isinstance(run, EvidenceResults)]
        if models:
            caption = f"Sec. 4.4: evidences on D_500, {words}"
            yield f"evidences-{protocol}", caption, figures.comparison_figure(compare(models))


def _sweeps(runs: Runs, names: Sequence[str]) -> dict[str, SweepResults]:
    """Those sweeps that were made."""
    made = {name: runs.get(name) for name in names}
    return {name: run for name, run in made.items() if isinstance(run, SweepResults)}


def _optimised(runs: Runs, sweeps: dict[str, SweepResults]) -> dict[str, OptimiseResults]:
    """Standard optimisation beside sweeps of the same network, data and protocol.

    The keys are the labels of the sweeps.
    """
    labels = figures.run_labels(list(sweeps.values()))
    beside = {}
    for name, label in zip(sweeps, labels, strict=True):
        run = runs.get(f"optimise-{name}")
        if isinstance(run, OptimiseResults):
            beside[label] = run
    return beside
