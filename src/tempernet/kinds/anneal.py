"""The kind of run `anneal`: replicas that cool until the validation error rises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tempernet.config import AnnealSettings
from tempernet.kinds.kind import Beside, Export, Kind, Option, Parts
from tempernet.store.folder import RESULTS_NC

if TYPE_CHECKING:
    from tempernet.report.figures.files import Figures
    from tempernet.results.anneal import AnnealResults


def _parts() -> Parts[AnnealSettings, AnnealResults]:
    """The parts of this kind, imported when they are needed."""
    from tempernet.report import anneal as report
    from tempernet.results import anneal as results
    from tempernet.results.predict import Members
    from tempernet.tasks.anneal import Anneal
    from tempernet.tasks.baseline import check_comparable
    from tempernet.tasks.plans import plan_anneal

    return Parts(
        task=Anneal,
        load=results.load,
        headline=report.headline,
        document=report.document,
        show=report.show,
        figures=_figures,
        exports={
            "netcdf": Export(RESULTS_NC, results.netcdf, at_end=True),
            "csv": Export("results.csv", results.csv_table),
        },
        plan=plan_anneal,
        check=check_comparable,
        members=Members(),
    )


def _figures(found: AnnealResults, beside: Beside) -> Figures:
    from tempernet.report import figures

    return {"cooling": lambda: figures.cooling_figure(found)}


ANNEAL = Kind(
    settings=AnnealSettings,
    summary="Cool until the validation loss rises. Returns the network with the lowest validation "
    "loss, and all networks at the temperature where its average is lowest.",
    parts_fn=_parts,
    options=(
        Option(
            "cooling.patience",
            int,
            "Stop after this many temperatures in a row with a higher loss.",
        ),
        Option("cooling.optimised", Path, "Folder of an optimise run to compare with."),
    ),
    first_preset="quick",
)
