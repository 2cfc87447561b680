"""What is said of an evidence, and of models compared: documents, tables and lines."""

from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from tempernet.report import sentences
from tempernet.report.formatting import with_error
from tempernet.report.terminal import console_for_output, show_report
from tempernet.results.comparison import Comparison
from tempernet.results.evidence import EvidenceResults, rung_rows


def headline(results: EvidenceResults) -> str:
    """What came out, in a line."""
    found = [sentences.disagreement(each) for each in results.disagreements]
    return "; ".join([sentences.headline(results.verdict, results.parameter), *found])


def show(results: EvidenceResults, written: list[Path]) -> None:
    """The estimators side by side, the evidence, and whether to believe it, on standard output."""
    copies, rounds = results.recorded.samples.phi.shape[:2]
    length = f"{results.method} path, {copies} copies, {rounds} rounds"
    show_report(results, length, estimator_table(results), statements(results), written)


def statements(results: EvidenceResults) -> list[str]:
    """What the run says, in a few lines."""
    mean, error = (float(number) for number in results.log_evidence)
    headline = results.log_integrals[results.headline]
    lines = [
        f"log integral over the prior's support: {with_error(headline.value, headline.error)}",
        f"log prior volume:                      {results.log_volume:.3f}",
        f"log evidence:                          {with_error(mean, error)} ({results.headline})",
        f"drift between the halves: {results.drift:+.1f} errors; "
        f"lowest overlap {results.overlap.min():.2f}, lowest swap rate {_lowest(results):.0%}, "
        f"{results.recorded.round_trips} round trips",
        sentences.barrier(results.barrier, results.rungs.num_rungs, results.parameter),
        *sentences.statements(results.verdict, results.rungs.values, results.parameter),
    ]
    found = [sentences.disagreement(each) for each in results.disagreements]
    return lines + [f"NOT converged: {text}" for text in found]


def show_comparison(found: Comparison, written: list[Path]) -> None:
    """The table of models on standard output."""
    console = console_for_output()
    made = _table(
        "model",
        "method",
        "log integral",
        "log volume",
        "log evidence",
        "log Bayes",
        "probability",
        "",
    )
    for i, model in enumerate(found.models):
        factor = found.log_bayes_factors[i]
        headline = model.log_integrals[model.headline]
        made.add_row(
            f"{model.settings.network.name} ({model.name})",
            f"{model.method}, {model.settings.protocol}",
            with_error(headline.value, headline.error),
            f"{model.log_volume:.3f}",
            with_error(float(model.log_evidence.mean), float(model.log_evidence.error)),
            "0" if i == 0 else with_error(float(factor.mean), float(factor.error)),
            f"{found.probabilities[i]:.3g}",
            "" if model.trusted else "do not trust",
        )
    console.print(made)
    if written:
        console.print(
            "written: " + " ".join(str(path) for path in written), highlight=False, soft_wrap=True
        )


def estimator_table(results: EvidenceResults) -> Table:
    """All estimators of the log evidence, a row each."""
    made = _table("estimator", "log evidence", "error", "between copies", "bootstrap")
    for name, found in results.log_integrals.items():
        made.add_row(
            name,
            f"{found.value - results.log_volume:.2f}",
            f"{found.error:.2f}",
            "-" if math.isnan(found.between) else f"{found.between:.2f}",
            f"{found.bootstrap:.2f}",
        )
    return made


def _table(*headings: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="left" if i == 0 or not heading else "right", no_wrap=True)
    return made


def _lowest(results: EvidenceResults) -> float:
    return float(results.recorded.swap_rate.min())


def document(results: EvidenceResults) -> dict[str, object]:
    """What `results.json` and `--json` say."""
    mean, error = results.log_evidence
    headline = results.log_integrals[results.headline]
    return {
        "kind": results.settings.kind,
        "method": results.method,
        "protocol": results.settings.protocol,
        "network": results.settings.network.name,
        "prior": results.settings.prior.model_dump(),
        "data": results.provenance["data"],
        "finished": results.finished,
        "rounds": results.recorded.samples.phi.shape[1],
        "copies": results.recorded.samples.phi.shape[0],
        "headline": results.headline,
        "log_evidence": mean,
        "log_evidence_error": error,
        "log_integral": headline.value,
        "log_prior_volume": results.log_volume,
        "estimators": {name: found._asdict() for name, found in results.log_integrals.items()},
        "trusted": results.trusted,
        "disagreements": [found._asdict() for found in results.disagreements],
        "drift_between_halves": results.drift,
        "verdict": {
            "headline": sentences.headline(results.verdict, results.parameter),
            **results.verdict.as_dict(),
        },
        "barrier": {"total": results.barrier.total, "rungs_wanted": results.barrier.rungs_wanted},
        "round_trips": results.recorded.round_trips,
        "rungs": rung_rows(results),
    }


def comparison_document(found: Comparison) -> dict[str, object]:
    """What `compare --json` says."""
    return {
        "kind": "comparison",
        "data": found.models[0].provenance["data"],
        "models": [
            {
                "path": str(model.path),
                "network": model.settings.network.name,
                "method": model.method,
                "protocol": model.settings.protocol,
                "log_integral": model.log_integrals[model.headline].value,
                "log_prior_volume": model.log_volume,
                "log_evidence": model.log_evidence.mean,
                "log_evidence_error": model.log_evidence.error,
                "log_bayes_factor": factor.mean,
                "log_bayes_factor_error": factor.error if i else 0.0,
                "probability": found.probabilities[i],
                "probability_low": found.low[i],
                "probability_high": found.high[i],
                "trusted": model.trusted,
            }
            for i, (model, factor) in enumerate(
                zip(found.models, found.log_bayes_factors, strict=True)
            )
        ],
    }
