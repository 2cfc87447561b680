"""The plan of a run, in words."""

from __future__ import annotations

from tempernet.report.formatting import duration
from tempernet.tasks.plan import Plan


def rows(plan: Plan) -> list[tuple[str, str]]:
    """The plan in words, a name and a value a row."""
    most = "at most " if plan.at_most else ""
    return [
        ("protocol", plan.protocol),
        ("network", f"{plan.network}, {plan.weights:,} weights"),
        ("training examples", f"{plan.examples:,}"),
        ("replicas", f"{plan.replicas} ({plan.made_of})"),
        ("length", f"{most}{plan.length}, {plan.seconds_a_round:.3g} s each"),
        ("gradients", f"{most}{plan.gradients:,.0f} of every replica"),
        ("memory", f"{plan.memory / 1e9:.2f} GB"),
        ("disk", f"{plan.disk / 1e6:.0f} MB"),
        ("time here", f"{most}{duration(plan.seconds)}"),
    ]
