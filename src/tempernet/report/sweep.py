"""What is said of a sweep: its document, its table, and what it found in a few lines."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tempernet.report import sentences
from tempernet.report.formatting import with_error
from tempernet.report.sweep_table import table
from tempernet.report.terminal import show_report
from tempernet.results.summary import nearest
from tempernet.results.sweep import SweepResults, at_rung, transition


def headline(results: SweepResults) -> str:
    """What came out, in a line."""
    return sentences.headline(results.verdict)


def document(results: SweepResults) -> dict[str, object]:
    """What `results.json` and `--json` say."""
    summary = results.summary
    best = results.best
    names = [str(name) for name in summary.data_vars if summary[name].dims == ("temperature",)]
    return {
        "kind": results.settings.kind,
        "protocol": results.settings.protocol,
        "network": results.settings.network.name,
        "data": results.provenance["data"],
        "finished": results.finished,
        "rounds": results.series.sizes["round"],
        "copies": results.series.sizes["copy"],
        "verdict": {
            "headline": sentences.headline(results.verdict),
            **results.verdict.as_dict(),
        },
        "best_temperature": None if best is None else best._asdict(),
        "test_loss": {
            **({} if best is None else {"best": at_rung(results, best.rung)}),
            "posterior": at_rung(results, nearest(results.temperatures, 1.0)),
            "lowest": at_rung(results, 0),
        },
        "uninformed_loss": results.provenance["uninformed_loss"],
        "barrier": {"total": results.barrier.total, "rungs_wanted": results.barrier.rungs_wanted},
        "round_trips": results.round_trips,
        "transition": transition(results),
        "temperatures": [
            {
                "temperature": temperature,
                **{name: summary[name].values[k] for name in names},
                "mean_square": summary.mean_square.values[k],
                "reasons": [reason._asdict() for reason in results.verdict.reasons[k]],
            }
            for k, temperature in enumerate(results.temperatures)
        ],
    }


def show(results: SweepResults, written: list[Path]) -> None:
    """The table, the best temperature, the verdict, and where everything is, on standard output."""
    sizes = results.series.sizes
    length = f"{sizes['copy']} copies, {sizes['round']} rounds"
    show_report(results, length, table(results), statements(results), written)


def statements(results: SweepResults) -> list[str]:
    """What the run says, in a few lines."""
    lines = [*at_the_best(results)]
    for words, rung in (
        ("at T = 1 (nearest):    ", nearest(results.temperatures, 1.0)),
        ("at the lowest T:       ", 0),
    ):
        lines.append(f"  {words}  {_held_out(results, rung)}")
    lines.append(f"  uninformed classifier:   {results.provenance['uninformed_loss']:.4f}")
    peak = transition(results)
    height = with_error(peak["heat_capacity"], peak["heat_capacity_error"])
    lines.append(
        f"heat capacity peaks at T = {peak['temperature']:.3g} with {height}; energies there have "
        f"bimodality {peak['bimodality']:.2f} (1/3 normal, 5/9 flat, 1 two peaks)"
    )
    barrier = sentences.barrier(results.barrier, len(results.temperatures))
    lines.append(f"{barrier}; {results.round_trips} round trips{_decorrelation(results)}")
    return lines + sentences.statements(results.verdict, results.temperatures)


def summary_lines(results: SweepResults) -> list[str]:
    """The best temperature, if one was chosen, and the verdict."""
    best = at_the_best(results) if results.best is not None else []
    return best + sentences.statements(results.verdict, results.temperatures)


def at_the_best(results: SweepResults) -> list[str]:
    """The best temperature and the test loss there, or why none was chosen."""
    best = results.best
    if best is None:
        return [
            "best temperature: not chosen, as there is no validation set (data.n_validation) "
            "or no score yet"
        ]
    return [
        f"best temperature (by validation loss): {sentences.best_temperature(best)}",
        f"  test loss at the best T: {_held_out(results, best.rung)}",
    ]


def _decorrelation(results: SweepResults) -> str:
    """How far the weights decorrelate, and replicas cross, where all rungs can tell."""
    least = float(np.min(results.summary.forgotten.values))
    kept = results.summary.side_kept.values[:-1]
    if math.isnan(least) or not len(kept) or np.isnan(kept).any():
        return ""
    return (
        f"; the run spans at least {least:.1f} autocorrelation times of the weights; in half of it "
        f"at most {100 * kept.max():.0f} % of replicas have not crossed a pair of temperatures"
    )


def _held_out(results: SweepResults, rung: int) -> str:
    summary = results.summary
    full = "full_test_loss" in summary
    if not full and "test_loss" not in summary:
        return "not scored yet"
    prefix = "full_" if full else ""
    loss, accuracy = (
        with_error(
            float(summary[f"{prefix}{n}"].values[rung]),
            float(summary[f"{prefix}{n}_error"].values[rung]),
        )
        for n in ("test_loss", "test_accuracy")
    )
    examples = (
        results.provenance["data"]["n_test"] if full else len(results.provenance["scored_labels"])
    )
    at = f"T = {results.temperatures[rung]:.4g}"
    text = f"{loss}, accuracy {accuracy} on {examples} test examples at {at}"
    if "ensemble_loss" in summary:
        text += f"; as an ensemble {float(summary.ensemble_loss.values[rung]):.4g}"
    return text
