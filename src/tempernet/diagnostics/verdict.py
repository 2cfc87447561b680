"""Has a run equilibrated? A verdict for every rung, with reasons and what to do.

Energy alone is not enough: a frozen chain has a steady energy. So every rung is judged by slow
observables as well (the mean square weight of each layer, the held-out loss), by whether copies
that started apart have met, and by whether its replicas are new ones: come from the other end of
the ladder, or no longer what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tempernet.diagnostics.statistics import drift, effective_sample_size, split_rhat

MAX_RHAT = 1.1
MAX_RHAT_FROM_BOTH_SIDES = 1.05
"""Of heated and cooled copies, which have to meet: with two copies, their means are 0.55 standard
deviations apart.
"""
MAX_DRIFT = 4.0
"""Standard errors between the halves; of hundreds of tests none should pass this by chance."""
MIN_ESS = 10.0
"""Effective draws a copy, of every observable."""
MIN_FORGOTTEN = 3.0
"""Times that replicas that do not travel must have forgotten: e^-3 is left of where they were at
first.
"""
MAX_SIDE_KEPT = 0.37
"""Of the side of a pair of rungs they were on, what replicas that do not travel may remember half a
run later: 1/e.
"""
MIN_FREEDOM = 0.6
"""Below it, replicas without round trips are held back by their memory, and not by the ladder."""
MIN_DRAWS = 8
"""Draws a copy below which the halves say nothing."""
KINDS = ("R-hat", "drift", "ESS", "no round trips", "too short", "not finite")
"""How a reason begins."""


class Verdict(NamedTuple):
    """What was found, rung by rung (K,), and in words."""

    equilibrated: np.ndarray
    reasons: list[list[str]]
    """Why a rung has not equilibrated; empty if it has."""
    advice: list[str]
    rhat: np.ndarray
    """The worst over the observables."""
    ess: np.ndarray
    """Effective draws of the observable that has the fewest."""
    drift: np.ndarray
    """The largest in size."""
    forgotten: np.ndarray
    """How often replicas there have forgotten what they remember longest, weights or predictions;
    NaN if unknown.
    """
    noun: str = "temperatures"
    """What the rungs are called."""

    @property
    def good(self) -> bool:
        """Whether every rung has equilibrated."""
        return bool(self.equilibrated.all())

    @property
    def headline(self) -> str:
        """One line."""
        total = len(self.equilibrated)
        if self.good:
            return f"equilibrated on all {total} {self.noun}"
        causes = "; ".join(sorted({_kind(reason) for rung in self.reasons for reason in rung}))
        return f"NOT equilibrated on {total - int(self.equilibrated.sum())} of {total} {self.noun} ({causes})"


def judge(
    observables: Mapping[str, np.ndarray],
    round_trips: int,
    freedom: float = np.nan,
    bottleneck: str = "",
    *,
    forgotten: np.ndarray | None = None,
    side_kept: float = np.nan,
    side_of: str = "",
    exchanging: bool = True,
    started_apart: bool = True,
    both_sides: bool = False,
    noun: str = "temperatures",
) -> Verdict:
    """Judge a run by its `observables`, name -> (copies, draws, K); draws need not be the same for
    all.

    `round_trips` is how often replicas crossed the ladder and others crossed back, over all copies,
    `freedom` the power of time by which they spread, and `bottleneck` where they turn back, if
    anywhere in particular (see `flow`). `forgotten` (K,) is how often replicas have forgotten what
    they were (see `memory`), NaN or None if that is unknown, and `side_kept` what they remember of
    the side of `side_of` they were on, where that is most (see `flow`). `both_sides` says that
    every second copy was heated to its rungs and the others were cooled to them.
    """
    names = list(observables)
    copies, _, rungs = next(iter(observables.values())).shape
    draws = np.array([series.shape[1] for series in observables.values()])
    finite = np.stack([np.isfinite(series).all(axis=(0, 1)) for series in observables.values()])
    rhat = np.stack([split_rhat(series) for series in observables.values()])
    ess = np.stack([effective_sample_size(series) for series in observables.values()])
    drifts = np.stack([drift(series) for series in observables.values()])
    max_rhat = MAX_RHAT_FROM_BOTH_SIDES if both_sides else MAX_RHAT
    travelled = round_trips > 0 or not exchanging or rungs == 1
    forgotten = np.full(rungs, np.nan) if forgotten is None else forgotten
    judged = finite & (draws >= MIN_DRAWS)[:, None]
    reasons = [
        _flaws(names, draws, finite[:, k])
        + _reasons(names, judged[:, k], rhat[:, k], ess[:, k], drifts[:, k], copies, max_rhat)
        + (
            []
            if travelled
            else _old_replicas(
                forgotten[k], side_kept, side_of, excused=started_apart and copies > 1
            )
        )
        for k in range(rungs)
    ]
    worst = np.abs(drifts).argmax(axis=0)
    return Verdict(
        equilibrated=np.array([not found for found in reasons]),
        reasons=reasons,
        advice=_advice(reasons, copies, started_apart, freedom, bottleneck),
        # What cannot be told is the worst there is.
        rhat=np.nan_to_num(rhat, nan=np.inf, posinf=np.inf).max(axis=0),
        ess=np.nan_to_num(ess, nan=0.0).min(axis=0),
        drift=np.take_along_axis(drifts, worst[None], axis=0)[0],
        forgotten=forgotten,
        noun=noun,
    )


def _flaws(names: list[str], draws: np.ndarray, finite: np.ndarray) -> list[str]:
    """What keeps a rung from being judged."""
    found = []
    if not finite.all():
        found.append(f"not finite: {names[int(finite.argmin())]}")
    least = int(draws.argmin())
    if draws[least] < MIN_DRAWS:
        found.append(
            f"too short: {draws[least]} draws of {names[least]}, {MIN_DRAWS} are needed at least"
        )
    return found


def _reasons(
    names: list[str],
    judged: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    drifts: np.ndarray,
    copies: int,
    max_rhat: float,
) -> list[str]:
    """What speaks against a rung, of the observables that can be judged. NaN would count against
    it.
    """
    if not judged.any():
        return []
    which = np.flatnonzero(judged)
    apart, drifting = which[rhat[which].argmax()], which[np.abs(drifts[which]).argmax()]
    slowest = which[ess[which].argmin()]
    found = []
    if not rhat[apart] <= max_rhat:
        found.append(f"R-hat {rhat[apart]:.3f} of {names[apart]}, {max_rhat} is allowed at most")
    if not abs(drifts[drifting]) <= MAX_DRIFT:
        found.append(f"drift {drifts[drifting]:+.1f} standard errors of {names[drifting]}")
    if not ess[slowest] >= MIN_ESS * copies:
        found.append(
            f"ESS {ess[slowest]:.0f} of {names[slowest]}, {MIN_ESS * copies:.0f} are needed at least"
        )
    return found


def _old_replicas(forgotten: float, side_kept: float, side_of: str, *, excused: bool) -> list[str]:
    """What speaks against a rung whose replicas do not travel: that they may still be what they
    were.

    Weights may forget while a network stays the same in kind. Then it keeps to its side of a
    transition, and copies that came from one side agree on where that is. So copies have started
    apart, and replicas must pass everywhere.
    """
    told = "no round trips between the ends of the ladder"
    if not excused or np.isnan(forgotten) or np.isnan(side_kept):
        return [told]
    found = []
    if forgotten < MIN_FORGOTTEN:
        found.append(
            f"replicas forgot what they were {forgotten:.1f} times, {MIN_FORGOTTEN:.0f} are needed at least"
        )
    if side_kept > MAX_SIDE_KEPT:
        found.append(
            f"half a run later replicas remember {side_kept:.0%} of their side of {side_of}, "
            f"{MAX_SIDE_KEPT:.0%} are allowed at most"
        )
    return [", and ".join([told, *found])] if found else []


def _advice(
    reasons: list[list[str]], copies: int, started_apart: bool, freedom: float, bottleneck: str
) -> list[str]:
    kinds = {_kind(reason) for rung in reasons for reason in rung}
    advice = []
    if kinds & {"R-hat", "drift"}:
        advice.append(
            "discard more: a longer burn-in (run.burn_in), and reflecting walls if they reject"
        )
    if "too short" in kinds:
        advice.append("sample longer (run.rounds), and score more often (run.score_every)")
    elif "ESS" in kinds:
        advice.append("sample longer (run.rounds)")
    if "not finite" in kinds:
        advice.append("find out what is not finite: the data, the energy, or weights that run away")
    if "no round trips" in kinds and bottleneck:
        advice.append(
            f"let replicas pass {bottleneck}, where they turn back: more rungs there (ladder.temperatures), longer "
            "trajectories (dynamics.num_steps), more rounds"
        )
    elif "no round trips" in kinds and freedom < MIN_FREEDOM:
        advice.append(
            f"let replicas forget: they turn back to the rungs they came from (they spread as time^{freedom:.1f}, free "
            "ones as time^1), which longer trajectories cure (dynamics.num_steps)"
        )
    elif "no round trips" in kinds:
        advice.append(
            "let replicas travel: an adaptive ladder, more rungs (ladder.num or path.num), more rounds"
        )
    if (
        started_apart
        and copies > 1
        and any("replicas" in reason for rung in reasons for reason in rung)
    ):
        advice.append(
            "or sample longer (run.rounds), until replicas have forgotten what and where they were"
        )
    if started_apart and any(" of their side of " in reason for rung in reasons for reason in rung):
        advice.append(
            'or let copies come from both sides of every rung (start.weights = "annealed")'
        )
    if copies < 2:
        advice.append("run at least two copies (run.copies): one cannot disagree with itself")
    if not started_apart:
        advice.append(
            'start copies apart (start.weights = "apart"): copies that start alike agree too soon'
        )
    return advice


def _kind(reason: str) -> str:
    return next(kind for kind in KINDS if reason.startswith(kind))
