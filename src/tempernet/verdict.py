"""Has a run equilibrated? A verdict for every rung, with reasons and what to do.

Energy alone is not enough: a frozen chain has a steady energy. So every rung is judged by slow observables as well
(the mean square weight of each layer, the held-out loss), by whether copies that started apart have met, and by whether
replicas travel the ladder at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tempernet.statistics import drift, effective_sample_size, split_rhat

MAX_RHAT = 1.1
MAX_DRIFT = 4.0
"""Standard errors between the halves; of hundreds of tests none should pass this by chance."""
MIN_ESS = 10.0
"""Effective draws a copy, of every observable."""


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

    @property
    def good(self) -> bool:
        """Whether every rung has equilibrated."""
        return bool(self.equilibrated.all())

    @property
    def headline(self) -> str:
        """One line."""
        total = len(self.equilibrated)
        if self.good:
            return f"equilibrated on all {total} temperatures"
        causes = sorted({_kind(reason) for rung in self.reasons for reason in rung})
        return f"NOT equilibrated on {total - int(self.equilibrated.sum())} of {total} temperatures ({'; '.join(causes)})"


def judge(
    observables: Mapping[str, np.ndarray],
    round_trips: int,
    *,
    exchanging: bool = True,
    started_apart: bool = True,
) -> Verdict:
    """Judge a run by its `observables`, name -> (copies, draws, K); draws need not be the same for all.

    `round_trips` is the number of replicas' trips between the ends of the ladder and back, over all copies.
    """
    names = list(observables)
    rungs = next(iter(observables.values())).shape[-1]
    copies = next(iter(observables.values())).shape[0]
    rhat = np.stack([split_rhat(series) for series in observables.values()])
    ess = np.stack([effective_sample_size(series) for series in observables.values()])
    drifts = np.stack([drift(series) for series in observables.values()])
    travelled = round_trips > 0 or not exchanging or rungs == 1
    reasons = [_reasons(names, rhat[:, k], ess[:, k], drifts[:, k], copies, travelled) for k in range(rungs)]
    worst = np.abs(drifts).argmax(axis=0)
    return Verdict(
        equilibrated=np.array([not found for found in reasons]),
        reasons=reasons,
        advice=_advice(reasons, copies, started_apart),
        rhat=_worst(rhat, np.max, np.inf),
        ess=_worst(ess, np.min, 0.0),
        drift=np.take_along_axis(drifts, worst[None], axis=0)[0],
    )


def _reasons(
    names: list[str], rhat: np.ndarray, ess: np.ndarray, drifts: np.ndarray, copies: int, travelled: bool
) -> list[str]:
    """Comparisons are written so that NaN, too few draws to tell, counts against the rung."""
    found = []
    if np.isnan(rhat).any():
        found.append("too short: fewer than 4 draws to judge by")
    elif not (rhat <= MAX_RHAT).all():
        worst = int(rhat.argmax())
        found.append(f"R-hat {rhat[worst]:.2f} of {names[worst]}")
    if not (np.abs(drifts) <= MAX_DRIFT).all() and not np.isnan(rhat).any():
        worst = int(np.nan_to_num(np.abs(drifts), nan=np.inf).argmax())
        found.append(f"drift {drifts[worst]:+.1f} standard errors of {names[worst]}")
    if (ess < MIN_ESS * copies).any():
        least = int(np.nanargmin(ess))
        found.append(f"ESS {ess[least]:.0f} of {names[least]}")
    if not travelled:
        found.append("no round trips between the ends of the ladder")
    return found


def _advice(reasons: list[list[str]], copies: int, started_apart: bool) -> list[str]:
    kinds = {_kind(reason) for rung in reasons for reason in rung}
    advice = []
    if kinds & {"R-hat", "drift"}:
        advice.append("discard more: a longer burn-in (run.burn_in), and reflecting walls if they reject")
    if kinds & {"ESS", "too short"}:
        advice.append("sample longer (run.rounds)")
    if "no round trips" in kinds:
        advice.append("let replicas travel: an adaptive ladder, more rungs (ladder.num), more rounds")
    if copies < 2:
        advice.append("run at least two copies (run.copies): one cannot disagree with itself")
    if not started_apart:
        advice.append('start copies apart (start.weights = "apart"): copies that start alike agree too soon')
    return advice


def _kind(reason: str) -> str:
    return next(kind for kind in ("R-hat", "drift", "ESS", "no round trips", "too short") if reason.startswith(kind))


def _worst(values: np.ndarray, choose: object, missing: float) -> np.ndarray:
    """The worst over observables (axis 0), where what cannot be told is the worst there is."""
    return choose(np.where(np.isnan(values), missing, values), axis=0)  # type: ignore[operator]
