"""The kind of run `sweep`: a ladder of temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tempernet.config import SweepSettings
from tempernet.data import Dataset
from tempernet.errors import ConfigError
from tempernet.kinds.kind import Beside, Export, Kind, Parts
from tempernet.store.folder import RESULTS_NC

if TYPE_CHECKING:
    from tempernet.report.figures.files import Figures
    from tempernet.results.optimise import OptimiseResults
    from tempernet.results.sweep import SweepResults


def images_of(data: Dataset | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Training images (n, h, w) and labels (n,) for Fig. 1; None if the data are no images."""
    if data is None or data.train.x.ndim != 3:
        return None
    return data.train.x, data.train.y


def _parts() -> Parts[SweepSettings, SweepResults]:
    """The parts of this kind, imported when they are needed."""
    from tempernet.report import sweep as report
    from tempernet.results import sweep as results
    from tempernet.results import sweep_files as exported
    from tempernet.results.predict import Members
    from tempernet.tasks.plans import plan_sweep
    from tempernet.tasks.sweep import Sweep

    return Parts(
        task=Sweep,
        load=results.load,
        headline=report.headline,
        document=report.document,
        show=report.show,
        figures=_figures,
        exports={
            "netcdf": Export(RESULTS_NC, exported.netcdf, at_end=True),
            "csv": Export("results.csv", lambda found: exported.csv_table(found).encode()),
        },
        plan=plan_sweep,
        together=_together,
        members=Members(lambda settings: settings.run.burn_in, _best_temperature),
    )


def _best_temperature(path: Path) -> float | None:
    from tempernet.results import sweep as results

    best = results.load(path).best
    return None if best is None else float(best.temperature)


def _figures(found: SweepResults, beside: Beside) -> Figures:
    from tempernet.report import figures

    optimised = _labelled([found], beside.optimised)
    return figures.sweep_figures(found, images_of(beside.data_fn()), optimised)


def _together(runs: Sequence[SweepResults], beside: Beside) -> Figures:
    from tempernet.report import figures

    optimised = _labelled(runs, beside.optimised)
    return {"fig3-loss-compared": lambda: figures.loss_figure(runs, optimised)}


def _labelled(
    sweeps: Sequence[SweepResults], folders: Sequence[Path]
) -> Mapping[str, OptimiseResults]:
    """Optimise runs by the label of the sweep with the same network and data."""
    from tempernet.report import figures
    from tempernet.results import optimise

    def about(run: SweepResults | OptimiseResults) -> object:
        data = run.provenance["data"]
        return run.settings.network, run.settings.data.indices, data["name"], data["n_train"]

    labels = dict(zip(map(about, sweeps), figures.run_labels(sweeps), strict=True))
    found = {}
    for run in map(optimise.load, folders):
        if about(run) not in labels:
            raise ConfigError(
                f"--optimised {run.path} is {run.title}: no sweep given here has that network and "
                "data; draw it beside one that has"
            )
        found[labels[about(run)]] = run
    return found


SWEEP = Kind(
    settings=SweepSettings,
    summary="Sample a ladder of temperatures. Reports train and test loss against T, the best "
    "temperature, and whether the samples have equilibrated.",
    parts_fn=_parts,
    first_preset="quick",
    draws_optimised=True,
)
