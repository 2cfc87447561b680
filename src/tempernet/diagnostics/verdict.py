"""Has a run equilibrated? A verdict for every rung, with reasons and advice as data.

Energy alone is not enough: a frozen chain has a steady energy. So every rung is judged by slow
observables as well (the mean square weight of each layer, the held-out loss), by whether copies
that started apart have met, and by whether its replicas are new ones: come from the other end of
the ladder, or decorrelated from what they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempernet.diagnostics.reasons import Action, Advice, Kind, Reason
from tempernet.diagnostics.statistics import drift, effective_sample_size, split_rhat

MAX_RHAT = 1.1
MAX_RHAT_FROM_BOTH_SIDES = 1.05
"""For heated and cooled copies, which have to meet.

With two copies, their means are then 0.55 standard deviations apart.
"""
MAX_DRIFT = 4.0
"""Standard errors between the halves; of hundreds of tests none should pass this by chance."""
MIN_ESS = 10.0
"""Effective draws a copy, of every observable."""
MIN_FORGOTTEN = 3.0
"""Autocorrelation times that a run without round trips must span: e^-3 is left of the start."""
MAX_SIDE_KEPT = 0.37
"""Share of replicas that need not cross a pair in half a run without round trips: 1/e."""
MIN_FREEDOM = 0.6
"""Below this power of time, slow decorrelation rather than the ladder holds replicas back."""
MIN_DRAWS = 8
"""Draws a copy below which the halves say nothing."""


class Verdict(NamedTuple):
    """What was found, rung by rung."""

    equilibrated: NDArray[np.bool_]
    """Whether each rung has equilibrated, (K,)."""
    reasons: tuple[tuple[Reason, ...], ...]
    """Why a rung has not equilibrated, K of them; empty if it has."""
    advice: tuple[Advice, ...]
    rhat: NDArray[np.float64]
    """The largest R-hat of any observable, (K,)."""
    ess: NDArray[np.float64]
    """Effective draws of the observable that has the fewest, (K,)."""
    drift: NDArray[np.float64]
    """The largest drift of any observable in size, in standard errors, (K,)."""
    forgotten: NDArray[np.float64]
    """Autocorrelation times that the run spans, of weights or predictions; (K,), NaN if unknown."""

    @property
    def good(self) -> bool:
        """Whether every rung has equilibrated."""
        return bool(self.equilibrated.all())

    @property
    def failed(self) -> int:
        """How many rungs have not equilibrated."""
        return int((~self.equilibrated).sum())

    @property
    def causes(self) -> dict[Kind, int]:
        """Each kind of reason that there is, with the number of rungs that have it."""
        counted = Counter(
            kind for rung in self.reasons for kind in {reason.kind for reason in rung}
        )
        return {kind: counted[kind] for kind in Kind if counted[kind]}

    def as_dict(self) -> dict[str, bool | int | dict[str, int] | list[dict[str, object]]]:
        """The verdict on the run as a whole, for a document; the reasons are those of its rungs."""
        return {
            "equilibrated": self.good,
            "failed": self.failed,
            "causes": {str(kind): number for kind, number in self.causes.items()},
            "advice": [advice._asdict() for advice in self.advice],
        }


class _Found(NamedTuple):
    """Statistics of the observables at one rung, (observables,) each."""

    nonfinite: NDArray[np.int64]
    draws: NDArray[np.int64]
    rhat: NDArray[np.float64]
    ess: NDArray[np.float64]
    drift: NDArray[np.float64]


def judge(
    observables: Mapping[str, NDArray[np.floating]],
    round_trips: int,
    freedom: float = np.nan,
    bottleneck: tuple[float, ...] = (),
    *,
    forgotten: NDArray[np.float64] | None = None,
    side_kept: float = np.nan,
    side_of: tuple[float, ...] = (),
    exchanging: bool = True,
    started_apart: bool = True,
    both_sides: bool = False,
) -> Verdict:
    """Judge every rung of a run.

    Args:
        observables: name -> series (copies, draws, K); draws need not be the same for all.
        round_trips: how often replicas crossed the ladder and others crossed back, over all copies.
        freedom: the power of time by which replicas spread over the rungs (`flow.freedom`).
        bottleneck: the values of the two rungs between which replicas turn back, if there are any.
        forgotten: autocorrelation times that the run spans (`memory.times_forgotten`), (K,), NaN
            where that is unknown.
        side_kept: share of replicas that keep to their side of a pair of rungs for half the run,
            where it is largest (`flow.sides_kept`).
        side_of: the values of that pair of rungs.
        exchanging: whether rungs exchange replicas at all.
        started_apart: whether copies started from different weights.
        both_sides: whether every second copy was heated to its rungs and the others cooled to them.
    """
    names = list(observables)
    series = list(observables.values())
    copies, _, rungs = series[0].shape
    nonfinite = np.stack([(~np.isfinite(one)).sum(axis=(0, 1)) for one in series])
    draws = np.array([one.shape[1] for one in series])
    rhat = np.stack([split_rhat(one) for one in series])
    ess = np.stack([effective_sample_size(one) for one in series])
    drifts = np.stack([drift(one) for one in series])
    max_rhat = MAX_RHAT_FROM_BOTH_SIDES if both_sides else MAX_RHAT
    travelled = round_trips > 0 or not exchanging or rungs == 1
    excused = started_apart and copies > 1
    forgotten = np.full(rungs, np.nan) if forgotten is None else forgotten
    reasons = []
    for k in range(rungs):
        found = _Found(nonfinite[:, k], draws, rhat[:, k], ess[:, k], drifts[:, k])
        against = _flaws(names, found) + _reasons(names, found, copies, max_rhat)
        if not travelled:
            against += _old_replicas(float(forgotten[k]), side_kept, side_of, excused=excused)
        reasons.append(tuple(against))
    worst = np.abs(drifts).argmax(axis=0)
    return Verdict(
        equilibrated=np.array([not against for against in reasons]),
        reasons=tuple(reasons),
        advice=_advice(reasons, copies, started_apart, freedom, bottleneck),
        # What cannot be told is the worst there is.
        rhat=np.nan_to_num(rhat, nan=np.inf, posinf=np.inf).max(axis=0),
        ess=np.nan_to_num(ess, nan=0.0).min(axis=0),
        drift=np.take_along_axis(drifts, worst[None], axis=0)[0],
        forgotten=forgotten,
    )


def _flaws(names: list[str], found: _Found) -> list[Reason]:
    """What keeps a rung from being judged."""
    flaws = []
    if found.nonfinite.any():
        first = int((found.nonfinite > 0).argmax())
        flaws.append(Reason(Kind.NOT_FINITE, names[first], float(found.nonfinite[first]), 0.0))
    shortest = int(found.draws.argmin())
    if found.draws[shortest] < MIN_DRAWS:
        number = float(found.draws[shortest])
        flaws.append(Reason(Kind.TOO_SHORT, names[shortest], number, MIN_DRAWS))
    return flaws


def _reasons(names: list[str], found: _Found, copies: int, max_rhat: float) -> list[Reason]:
    """What the observables that can be judged say against a rung. NaN would count against it."""
    which = np.flatnonzero((found.nonfinite == 0) & (found.draws >= MIN_DRAWS))
    if not len(which):
        return []
    apart = which[found.rhat[which].argmax()]
    drifting = which[np.abs(found.drift[which]).argmax()]
    slowest = which[found.ess[which].argmin()]
    rhat, moved, ess = found.rhat[apart], found.drift[drifting], found.ess[slowest]
    against = []
    if not rhat <= max_rhat:
        against.append(Reason(Kind.RHAT, names[apart], float(rhat), max_rhat))
    if not abs(moved) <= MAX_DRIFT:
        against.append(Reason(Kind.DRIFT, names[drifting], float(moved), MAX_DRIFT))
    if not ess >= MIN_ESS * copies:
        against.append(Reason(Kind.ESS, names[slowest], float(ess), MIN_ESS * copies))
    return against


def _old_replicas(
    forgotten: float, side_kept: float, side_of: tuple[float, ...], *, excused: bool
) -> list[Reason]:
    """What speaks against a rung without round trips: its replicas may not have decorrelated.

    Weights may decorrelate while a network stays the same in kind. Then it keeps to its side of a
    transition, and copies that came from one side agree on where that is. So round trips are
    excused only where copies have started apart, and replicas cross every pair of rungs.
    """
    no_trips = Reason(Kind.ROUND_TRIPS, "", 0.0, 1.0)
    if not excused or np.isnan(forgotten) or np.isnan(side_kept):
        return [no_trips]
    against = []
    if forgotten < MIN_FORGOTTEN:
        against.append(Reason(Kind.MEMORY, "", forgotten, MIN_FORGOTTEN))
    if side_kept > MAX_SIDE_KEPT:
        against.append(Reason(Kind.SIDE, "", side_kept, MAX_SIDE_KEPT, side_of))
    return [no_trips, *against] if against else []


def _advice(
    reasons: list[tuple[Reason, ...]],
    copies: int,
    started_apart: bool,
    freedom: float,
    bottleneck: tuple[float, ...],
) -> tuple[Advice, ...]:
    """What to do about the reasons of all rungs."""
    kinds = {reason.kind for rung in reasons for reason in rung}
    advice = []
    if kinds & {Kind.RHAT, Kind.DRIFT}:
        advice.append(Advice(Action.BURN_IN, ("run.burn_in",)))
    if Kind.TOO_SHORT in kinds:
        advice.append(Advice(Action.SCORE_MORE, ("run.rounds", "run.score_every")))
    elif Kind.ESS in kinds:
        advice.append(Advice(Action.SAMPLE_LONGER, ("run.rounds",)))
    if Kind.NOT_FINITE in kinds:
        advice.append(Advice(Action.CHECK_FINITE))
    if Kind.ROUND_TRIPS in kinds:
        advice.append(_advice_on_travel(freedom, bottleneck))
    if started_apart and copies > 1 and kinds & {Kind.MEMORY, Kind.SIDE}:
        advice.append(Advice(Action.DECORRELATE, ("run.rounds",)))
    if started_apart and Kind.SIDE in kinds:
        advice.append(Advice(Action.START_BOTH_SIDES, ("start.weights",), "annealed"))
    if copies < 2:
        advice.append(Advice(Action.ADD_COPIES, ("run.copies",)))
    if not started_apart:
        advice.append(Advice(Action.START_APART, ("start.weights",), "apart"))
    return tuple(advice)


def _advice_on_travel(freedom: float, bottleneck: tuple[float, ...]) -> Advice:
    """What helps replicas to the other end of the ladder, by what holds them back."""
    if bottleneck:
        settings = ("ladder.temperatures", "dynamics.num_steps", "run.rounds")
        return Advice(Action.PASS_BOTTLENECK, settings, where=bottleneck)
    if freedom < MIN_FREEDOM:
        return Advice(Action.LENGTHEN_TRAJECTORIES, ("dynamics.num_steps",), value=freedom)
    return Advice(Action.IMPROVE_LADDER, ("ladder.num", "path.num", "run.rounds"))
