"""What is said of a sweep: its document, its table, and what it found in a few lines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from tempernet.report.formatting import with_error
from tempernet.report.terminal import grouped_reasons, show_report
from tempernet.results.sweep import Samples, at_rung, nearest, transition


def headline(results: Samples) -> str:
    """What came out, in a line."""
    return results.verdict.headline


def document(results: Samples) -> dict[str, Any]:
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
            "equilibrated": results.verdict.good,
            "headline": results.verdict.headline,
            "advice": results.verdict.advice,
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
                "reasons": results.verdict.reasons[k],
            }
            for k, temperature in enumerate(results.temperatures)
        ],
    }


def show(results: Samples, written: list[Path]) -> None:
    """The table, the best temperature, the verdict, and where everything is, on standard output."""
    sizes = results.series.sizes
    length = f"{sizes['copy']} copies, {sizes['round']} rounds"
    show_report(results, length, table(results), statements(results), written)


def table(results: Samples) -> Table:
    """One row a temperature."""
    summary = results.summary
    headings = (
        "T",
        "train loss",
        "test loss",
        "accuracy",
        "ensemble loss",
        "dt",
        "L",
        "accept",
        "swaps",
        "ESS",
        "R-hat",
        "",
    )
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        made.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def pair(name: str, k: int) -> str:
        if name not in summary:
            return "-"
        return with_error(float(summary[name].values[k]), float(summary[f"{name}_error"].values[k]))

    for k, temperature in enumerate(results.temperatures):
        swaps = float(summary.swap_rate.values[k])
        made.add_row(
            f"{temperature:.4g}",
            pair("train_loss", k),
            pair("test_loss", k),
            pair("test_accuracy", k),
            pair("ensemble_loss", k),
            f"{float(summary.time_step.values[k]):.2g}",
            f"{int(summary.num_steps.values[k])}",
            f"{float(summary.acceptance.values[k]):.2f}",
            "" if math.isnan(swaps) else f"{swaps:.0%}",
            f"{float(summary.ess.values[k]):.0f}",
            f"{float(summary.rhat.values[k]):.2f}",
            "" if results.verdict.equilibrated[k] else "not equilibrated",
        )
    return made


def statements(results: Samples) -> list[str]:
    """What the run says, in a few lines."""
    lines = []
    best = results.best
    if best is not None:
        lines.append(f"best temperature (by validation loss): {best.statement}")
        lines.append(f"  test loss at the best T: {_held_out(results, best.rung)}")
    else:
        lines.append(
            "best temperature: not chosen, there is no validation set (data.n_validation) "
            "or no score yet"
        )
    lines.append(
        f"  at T = 1 (nearest):      {_held_out(results, nearest(results.temperatures, 1.0))}"
    )
    lines.append(f"  at the lowest T:         {_held_out(results, 0)}")
    lines.append(f"  uninformed classifier:   {results.provenance['uninformed_loss']:.4f}")
    peak = transition(results)
    height = with_error(peak["heat_capacity"], peak["heat_capacity_error"])
    lines.append(
        f"heat capacity peaks at T = {peak['temperature']:.3g} with {height}; energies there have "
        f"bimodality {peak['bimodality']:.2f} (1/3 normal, 5/9 flat, 1 two peaks)"
    )
    barrier = results.barrier
    lines.append(
        f"barrier {barrier.total:.1f}: about {barrier.rungs_wanted} temperatures recommended, "
        f"{len(results.temperatures)} used; {results.round_trips} round trips{_memory(results)}"
    )
    lines.append(f"verdict: {results.verdict.headline}")
    lines += grouped_reasons(results.verdict, results.temperatures)
    lines += [f"  advice: {text}" for text in results.verdict.advice if not results.verdict.good]
    return lines


def _memory(results: Samples) -> str:
    """How long the run is in autocorrelation times, and how many replicas have not crossed a pair.

    Empty where that cannot be told of all temperatures.
    """
    least = float(np.min(results.summary.forgotten.values))
    kept = results.summary.side_kept.values[:-1]
    if math.isnan(least) or not len(kept) or np.isnan(kept).any():
        return ""
    return (
        f"; the run spans at least {least:.1f} autocorrelation times of the weights, "
        f"and at most {kept.max():.0%} of replicas have not crossed a pair in half of it"
    )


def _held_out(results: Samples, rung: int) -> str:
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
    where = f"{examples} test examples at T = {results.temperatures[rung]:.4g}"
    text = f"{loss}, accuracy {accuracy} on {where}"
    if "ensemble_loss" in summary:
        text += f"; as an ensemble {float(summary.ensemble_loss.values[rung]):.4g}"
    return text
