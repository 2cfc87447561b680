"""What is said of a cooling: its document, and what it found in a few lines."""

from __future__ import annotations

from pathlib import Path

from tempernet.report.formatting import with_error
from tempernet.report.terminal import show_lines
from tempernet.results.anneal import AnnealResults, held_out_scores


def headline(found: AnnealResults) -> str:
    """What came out, in a line."""
    return found.headline


def document(found: AnnealResults) -> dict[str, object]:
    """What `results.json` and `--json` say."""
    step, replica, draw = found.chosen
    return {
        "kind": found.settings.kind,
        "protocol": found.settings.protocol,
        "network": found.settings.network.name,
        "data": found.provenance["data"],
        "finished": found.finished,
        "headline": found.headline,
        "stopped": found.course.stopped,
        "last_temperature": found.temperatures[-1],
        "best_temperature": found.temperatures[found.best],
        "chosen": {
            "temperature": found.temperatures[step],
            "replica": replica,
            "draw": draw,
            "validation_loss": found.losses[step, replica, draw],
        },
        "test": held_out_scores(found),
        "uninformed_loss": found.provenance["uninformed_loss"],
        "temperatures": [
            {"temperature": temperature, **{name: x[k] for name, x in found.curves.items()}}
            for k, temperature in enumerate(found.temperatures)
        ],
    }


def show(found: AnnealResults, written: list[Path]) -> None:
    """The same on standard output, and where everything is."""
    show_lines(statements(found), written)


def statements(found: AnnealResults) -> list[str]:
    """A line a temperature, where the cooling stopped, and the scores on the test set."""
    headings = ("train loss", "validation", "accuracy")
    names = "  ".join(f"{heading:>12s}" for heading in headings)
    lines = [found.title, f"{'T':>8s}  {names}  {'dt':>8s}  accept"]
    for k, temperature in enumerate(found.temperatures):
        pairs = (found.train_loss, found.validation_loss, found.validation_accuracy)
        numbers = "  ".join(
            f"{with_error(float(p.mean[k]), float(p.error[k])):>12s}" for p in pairs
        )
        mark = "  <- lowest" if k == found.best else ""
        steps = f"{found.time_steps[k]:8.2g}  {found.acceptance[k]:6.2f}"
        lines.append(f"{temperature:8.4g}  {numbers}  {steps}{mark}")
    lines.append(found.headline)
    scores = held_out_scores(found)
    if not scores:
        return [*lines, "not finished: nothing has been scored on the test set"]
    step, replica, _ = found.chosen
    chosen, ensemble, single, optimised = (
        scores[name] for name in ("chosen", "ensemble", "single", "optimised")
    )
    at_best = f"at T = {found.temperatures[found.best]:.3g}"
    return [
        *lines,
        f"on {found.provenance['data']['n_test']} test examples:",
        f"  chosen network (replica {replica} at T = {found.temperatures[step]:.3g}): "
        f"loss {chosen['loss']:.4g}, accuracy {chosen['accuracy']:.4f}",
        f"  ensemble of {ensemble['members']} {at_best}: loss {ensemble['loss']:.4g}, "
        f"accuracy {ensemble['accuracy']:.4f}, calibration error {ensemble['calibration']:.3f}",
        f"  its members alone: {_pair(single)}",
        f"  {optimised['networks']} optimised networks, {optimised['reached']} of them with E = 0: "
        f"{_pair(optimised)}",
        f"  uninformed classifier: loss {found.provenance['uninformed_loss']:.4g}",
    ]


def _pair(scores: dict[str, float]) -> str:
    loss, accuracy = (
        with_error(scores[name], scores[f"{name}_error"]) for name in ("loss", "accuracy")
    )
    return f"loss {loss}, accuracy {accuracy}"
