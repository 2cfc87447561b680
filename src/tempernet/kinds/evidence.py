"""The kind of run `evidence`: the log evidence of a network, by temperature or by a bridge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tempernet.config import EvidenceSettings
from tempernet.kinds.kind import Beside, Export, Kind, Option, Parts
from tempernet.store.folder import QUADRATIC, RESULTS_NC

if TYPE_CHECKING:
    from tempernet.report.figures.files import Figures
    from tempernet.results.evidence import EvidenceResults


def _parts() -> Parts[EvidenceSettings, EvidenceResults]:
    """The parts of this kind, imported when they are needed."""
    from tempernet.report import evidence as report
    from tempernet.results import evidence as results
    from tempernet.tasks.evidence import evidence_task
    from tempernet.tasks.plans import plan_evidence

    return Parts(
        task=evidence_task,
        load=results.load,
        glance=partial(results.load, quick=True),
        headline=report.headline,
        document=report.document,
        show=report.show,
        figures=_figures,
        exports={
            "netcdf": Export(RESULTS_NC, results.netcdf, at_end=True),
            "csv": Export("results.csv", lambda found: results.csv_table(found).encode()),
        },
        plan=plan_evidence,
        together=_together,
    )


def _figures(found: EvidenceResults, beside: Beside) -> Figures:
    from tempernet.report import figures

    return {"integrand": lambda: figures.integrand_figure(found)}


def _together(runs: Sequence[EvidenceResults], beside: Beside) -> Figures:
    from tempernet.report import figures
    from tempernet.results.comparison import compare

    return {"comparison": lambda: figures.comparison_figure(compare(list(runs)))}


def _needed_files(settings: EvidenceSettings) -> Sequence[str]:
    """The quadratic that a bridge leads to."""
    return (QUADRATIC,) if settings.path.method == "bridge" else ()


EVIDENCE = Kind(
    settings=EvidenceSettings,
    summary="Estimate the log evidence of a network. That is log prob(labels | images, network), "
    "along a path from the prior or from a quadratic.",
    parts_fn=_parts,
    options=(
        Option("data.n_train", int, "Number of training examples, the same for every class."),
        Option(
            "path.method",
            str,
            '"temperature": from the prior; "bridge": from a quadratic around a minimum.',
        ),
        Option("run.copies", int, "Number of independent copies of the path."),
    ),
    needed_files=_needed_files,
)
