"""What is said of an optimisation: its document, and what it found in a few lines."""

from __future__ import annotations

from pathlib import Path

from tempernet.optimise.pool import STEPS_SHOWN
from tempernet.report.formatting import with_error
from tempernet.report.terminal import show_lines
from tempernet.results.optimise import SCORED, OptimiseResults


def headline(found: OptimiseResults) -> str:
    """What came out, in a line."""
    return found.headline


def document(found: OptimiseResults) -> dict[str, object]:
    """What `results.json` and `--json` say."""
    gradients = found.gradients
    return {
        "kind": found.settings.kind,
        "protocol": found.settings.protocol,
        "network": found.settings.network.name,
        "data": found.provenance["data"],
        "minimiser": found.settings.optimise.minimiser,
        "starts": len(found.starts["energy"]),
        "reached": int(found.starts["reached"].sum()),
        "success_rate": found.success.mean,
        "success_rate_error": found.success.error,
        "gradients": None
        if gradients is None
        else dict(zip(map(str, STEPS_SHOWN), gradients, strict=True)),
        "kept": len(found.kept["number"]),
        "all_reached": found.all_reached,
        "largest_energy": found.kept["energy"].max(),
        **{name: value._asdict() for name, value in found.spreads.items()},
        "uninformed_loss": found.provenance["uninformed_loss"],
        "in_prior": found.kept["in_prior"].mean(),
        "each": {name: found.kept[name] for name in ("number", "energy", *SCORED)},
    }


def show(found: OptimiseResults, written: list[Path]) -> None:
    """The same on standard output, and where everything is."""
    show_lines(statements(found), written)


def statements(found: OptimiseResults) -> list[str]:
    """What the optimisation says, in a few lines."""
    lines = [found.title, found.headline]
    lines.append(
        f"success rate {with_error(float(found.success.mean), float(found.success.error))}"
    )
    gradients = found.gradients
    if gradients is not None:
        least, lower, median, upper, most = gradients
        lines.append(
            f"gradients to get there: median {median:.0f}, "
            f"half of them {lower:.0f} to {upper:.0f}, all {least:.0f} to {most:.0f}"
        )
    names = ("train loss", "train accuracy", "test loss", "test accuracy", "max |w| sqrt(k)")
    for name, value in zip(names, found.spreads.values(), strict=True):
        lines.append(f"{name:16s} {with_error(value.mean, value.error)}, spread {value.std:.3g}")
    largest = f"largest max |w| sqrt(k): {found.kept['widest'].max():.3g}"
    prior = found.settings.prior
    if prior.kind == "box":
        inside, kept = int(found.kept["in_prior"].sum()), len(found.kept["in_prior"])
        box = f"the prior's box, of half-width {prior.factor:g} in this unit"
        largest += f"; {inside} of {kept} lie in {box}"
    lines.append(largest)
    lines.append(f"uninformed classifier: test loss {found.provenance['uninformed_loss']:.4f}")
    return lines
