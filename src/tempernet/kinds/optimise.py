"""The kind of run `optimise`: E minimised from many independent starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempernet.config import OptimiseSettings
from tempernet.kinds.kind import Beside, Export, Kind, Option, Parts
from tempernet.store.folder import RESULTS_NC

if TYPE_CHECKING:
    from tempernet.report.figures.files import Figures
    from tempernet.results.optimise import OptimiseResults


def _parts() -> Parts[OptimiseSettings, OptimiseResults]:
    """The parts of this kind, imported when they are needed."""
    from tempernet.report import optimise as report
    from tempernet.results import optimise as results
    from tempernet.results.predict import Members
    from tempernet.tasks.optimise import Optimise
    from tempernet.tasks.plans import plan_optimise

    return Parts(
        task=Optimise,
        load=results.load,
        headline=report.headline,
        document=report.document,
        show=report.show,
        figures=_figures,
        exports={
            "netcdf": Export(RESULTS_NC, results.netcdf, at_end=True),
            "csv": Export("results.csv", results.csv_table),
        },
        plan=plan_optimise,
        members=Members(),
    )


def _figures(found: OptimiseResults, beside: Beside) -> Figures:
    from tempernet.report import figures

    return {"starts": lambda: figures.starts_figure(found)}


OPTIMISE = Kind(
    settings=OptimiseSettings,
    summary="Minimise E from many independent starts. The baseline that sampling is compared with.",
    parts_fn=_parts,
    options=(
        Option(
            "optimise.keep",
            int,
            "Number of networks to keep: with E = 0, otherwise with the lowest energy.",
        ),
        Option("optimise.starts", int, "Largest number of starts."),
    ),
    first_preset="quick",
)
