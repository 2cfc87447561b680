"""Sentences about facts: why a rung has not equilibrated, what to do, what a run found.

A fact is data (`diagnostics.reasons`, `diagnostics.thermo`, `evidence.estimators`); its words are
made here and nowhere else. `parameter` is what a path calls its rungs' values: temperature, lambda.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tempernet.diagnostics.reasons import Action, Advice, Kind, Reason
from tempernet.diagnostics.thermo import INTERVAL, BestTemperature
from tempernet.diagnostics.verdict import Verdict
from tempernet.evidence.estimators import Disagreement
from tempernet.paths.ladders import Barrier

TEMPERATURE = "temperature"
CAUSES = {
    Kind.NOT_FINITE: "not finite",
    Kind.TOO_SHORT: "too few draws",
    Kind.RHAT: "R-hat",
    Kind.DRIFT: "drift",
    Kind.ESS: "ESS",
    Kind.ROUND_TRIPS: "no round trips",
    Kind.MEMORY: "autocorrelation of the weights",
    Kind.SIDE: "replicas that do not cross",
}
"""A few words for each kind of reason, for a headline."""
LEAST = (Kind.TOO_SHORT, Kind.ESS, Kind.ROUND_TRIPS, Kind.MEMORY)
"""Kinds whose limit is the least value allowed; that of the others is the largest."""
ACTIONS = {
    Action.BURN_IN: "use a longer burn-in ({settings}), and reflecting walls if walls reject",
    Action.SAMPLE_LONGER: "sample longer ({settings})",
    Action.SCORE_MORE: "sample longer, or score more often ({settings})",
    Action.CHECK_FINITE: "find what is not finite: the data, the energy, or weights that diverge",
    Action.PASS_BOTTLENECK: "replicas turn back between {where}: place more {rungs} there, "
    "use longer trajectories, or sample longer ({settings})",
    Action.LENGTHEN_TRAJECTORIES: "replica diffusion is subdiffusive (t^{value:.1f}): "
    "use longer trajectories ({settings})",
    Action.IMPROVE_LADDER: "use an adaptive ladder, more {rungs}, or more rounds ({settings})",
    Action.DECORRELATE: "or sample until the weights have decorrelated and replicas have crossed "
    "every pair of {rungs} ({settings})",
    Action.START_BOTH_SIDES: "or start half of the copies by cooling, half by heating "
    '({settings} = "{choice}")',
    Action.ADD_COPIES: "run at least two copies ({settings}): one alone cannot disagree",
    Action.START_APART: 'start the copies from different weights ({settings} = "{choice}"): '
    "copies that start alike agree too soon",
}
"""What is said of each action."""


def observable(name: str) -> str:
    """The words for an observable: `mean square weight of layer 1` for `mean_square.1`."""
    quantity, _, layer = name.partition(".")
    if quantity == "mean_square":
        return f"mean square weight of layer {layer}"
    return {"quadratic": "quadratic term"}.get(name, name.replace("_", " "))


def reason(found: Reason, parameter: str = TEMPERATURE) -> str:
    """Why one rung has not equilibrated."""
    demand = _demand(found)
    if not demand:
        return _finding(found, parameter)
    verb = "required" if found.kind in LEAST else "allowed"
    return f"{_finding(found, parameter)}; {demand} {_be(_limit(found))} {verb}"


def grouped(
    verdict: Verdict, values: NDArray[np.floating] | Sequence[float], parameter: str = TEMPERATURE
) -> list[str]:
    """A line for each reason that rungs share, with its worst value and the rungs that have it.

    Args:
        verdict: of K rungs.
        values: the rungs' values, such as temperatures, (K,).
        parameter: what they are values of.
    """
    groups: dict[tuple[Kind, str, tuple[float, ...]], list[tuple[Reason, float]]] = {}
    for value, reasons in zip(values, verdict.reasons, strict=True):
        for found in reasons:
            key = (found.kind, found.observable, found.where)
            groups.setdefault(key, []).append((found, float(value)))
    lines = []
    for members in groups.values():
        worst = max((found for found, _ in members), key=_badness)
        several = len({found.value for found, _ in members}) > 1
        demand = f" ({_demand(worst)})" if _demand(worst) else ""
        rungs = _rungs([value for _, value in members], len(values), parameter)
        lines.append(f"{_finding(worst, parameter, several)}{demand} at {rungs}")
    return lines


def advice(found: Advice, parameter: str = TEMPERATURE) -> str:
    """What to do, with the settings that do it."""
    return ACTIONS[found.action].format(
        settings=", ".join(found.settings),
        choice=found.choice,
        rungs=_noun(2, parameter),
        value=found.value,
        where=_span(found.where, parameter, " and "),
    )


def headline(verdict: Verdict, parameter: str = TEMPERATURE) -> str:
    """The verdict in a line."""
    total = len(verdict.equilibrated)
    if verdict.good:
        return f"equilibrated at {_all(total, parameter)}"
    causes = "; ".join(CAUSES[kind] for kind in verdict.causes)
    return f"NOT equilibrated at {verdict.failed} of {_counted(total, parameter)} ({causes})"


def statements(
    verdict: Verdict, values: NDArray[np.floating] | Sequence[float], parameter: str = TEMPERATURE
) -> list[str]:
    """The verdict with its reasons and, unless all is well, what to do.

    Args:
        verdict: of K rungs.
        values: the rungs' values, such as temperatures, (K,).
        parameter: what they are values of.
    """
    lines = [f"verdict: {headline(verdict, parameter)}"]
    lines += [f"  {line}" for line in grouped(verdict, values, parameter)]
    if not verdict.good:
        lines += [f"  advice: {advice(found, parameter)}" for found in verdict.advice]
    return lines


def not_equilibrated(equilibrated: NDArray[np.bool_], parameter: str = TEMPERATURE) -> str:
    """How many of the rungs asked, (n,), have not equilibrated.

    >>> not_equilibrated(np.zeros(32, bool))
    'none of the 32 temperatures has equilibrated'
    """
    total, good = len(equilibrated), int(equilibrated.sum())
    if total == 1:
        return f"the {_noun(1, parameter)} has not equilibrated"
    if good == 0:
        return f"none of the {_counted(total, parameter)} has equilibrated"
    return f"only {good} of the {_counted(total, parameter)} {_have(good)} equilibrated"


def best_temperature(best: BestTemperature) -> str:
    """Where the best temperature is, and whether the ladder resolves it."""
    interval = f"T = {best.temperature:.3g}, {_interval(best)}"
    if best.at_end:
        side = "below" if best.at_end == "lowest" else "above"
        return f"{interval}; at the {best.at_end} temperature, so the minimum may lie {side} it"
    if best.resolved:
        return interval
    sides = " and the ".join(best.unresolved_sides)
    noun = _noun(len(best.unresolved_sides), TEMPERATURE)
    return f"{interval}; not resolved: the loss at the {sides} {noun} is as low within its error"


def disagreement(found: Disagreement) -> str:
    """How far an estimator of the evidence lies from the one that is believed."""
    apart = f"{found.estimator} differs from {found.headline} by {found.difference:+.2f} nats"
    return f"{apart}; the errors allow {found.allowed:.2f}"


def barrier(found: Barrier, used: int, parameter: str = TEMPERATURE) -> str:
    """The communication barrier, and how many rungs it takes.

    >>> barrier(found, 56)
    'barrier 32.7: about 67 temperatures recommended, 56 used'
    """
    recommended = _counted(found.rungs_wanted, parameter)
    return f"barrier {found.total:.1f}: about {recommended} recommended, {used} used"


def _finding(found: Reason, parameter: str, several: bool = False) -> str:
    """The value in words, without its limit; `several` if it is the worst of different values."""
    of = observable(found.observable)
    to = "" if not several else "down to " if found.kind in LEAST else "up to "
    match found.kind:
        case Kind.NOT_FINITE:
            return f"{to}{_draws(found.value)} of the {of} not finite"
        case Kind.TOO_SHORT:
            return f"{to}{_draws(found.value)} of the {of} in each copy"
        case Kind.RHAT:
            return f"R-hat of the {of} {to}{found.value:.4g}"
        case Kind.DRIFT:
            size = f"{abs(found.value):.1f}" if several else f"{found.value:+.1f}"
            return f"drift of the {of} {to}{size} standard errors between the halves"
        case Kind.ESS:
            return f"effective sample size of the {of} {to}{found.value:.0f}"
        case Kind.ROUND_TRIPS:
            return "no round trips between the ends of the ladder"
        case Kind.MEMORY:
            few = "as few as " if several else ""
            return f"the run spans {few}{found.value:.1f} autocorrelation times of the weights"
        case Kind.SIDE:
            pair = _span(found.where, parameter) or f"a pair of {_noun(2, parameter)}"
            return f"{_percent(found.value)} of replicas have not crossed {pair} in half the run"


def _demand(found: Reason) -> str:
    """`at most 1.1`; empty where the finding says it."""
    if found.kind in (Kind.NOT_FINITE, Kind.ROUND_TRIPS):
        return ""
    return f"at {'least' if found.kind in LEAST else 'most'} {_limit(found)}"


def _limit(found: Reason) -> str:
    return _percent(found.limit) if found.kind is Kind.SIDE else f"{found.limit:.4g}"


def _badness(found: Reason) -> float:
    """Larger is worse, and what is not known is worst."""
    if math.isnan(found.value):
        return math.inf
    return -found.value if found.kind in LEAST else abs(found.value)


def _rungs(values: list[float], total: int, parameter: str) -> str:
    """`12 temperatures, T = 0.05 to 0.4`."""
    if len(values) == 1:
        return _span((values[0],), parameter)
    if len(values) == total:
        return _all(total, parameter)
    return f"{_counted(len(values), parameter)}, {_span((values[0], values[-1]), parameter)}"


def _span(values: Sequence[float], parameter: str, between: str = " to ") -> str:
    if not values:
        return ""
    return f"{_symbol(parameter)} = {between.join(f'{value:.3g}' for value in values)}"


def _symbol(parameter: str) -> str:
    return "T" if parameter == TEMPERATURE else parameter


def _noun(number: int, parameter: str) -> str:
    noun = TEMPERATURE if parameter == TEMPERATURE else "rung"
    return noun if number == 1 else f"{noun}s"


def _counted(number: int, parameter: str) -> str:
    return f"{number} {_noun(number, parameter)}"


def _all(total: int, parameter: str) -> str:
    return f"the only {_noun(1, parameter)}" if total == 1 else f"all {_counted(total, parameter)}"


def _interval(best: BestTemperature) -> str:
    return f"{_percent(INTERVAL)} interval {best.low:.3g} to {best.high:.3g}"


def _draws(number: float) -> str:
    return f"{number:.0f} draw{'' if number == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _be(amount: str) -> str:
    """The verb for an amount: three are required, 1.1 is allowed, 37 % is."""
    return "are" if amount.isdigit() and amount != "1" else "is"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
