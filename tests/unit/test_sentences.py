"""What is said of reasons, advice, a best temperature, a disagreement and a barrier."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tempernet.diagnostics.reasons import Action, Advice, Kind, Reason
from tempernet.diagnostics.thermo import BestTemperature
from tempernet.diagnostics.verdict import Verdict
from tempernet.evidence import Disagreement
from tempernet.report import sentences

REASONS = {
    Kind.NOT_FINITE: (
        Reason(Kind.NOT_FINITE, "energy", 1.0, 0.0),
        "1 draw of the energy not finite",
    ),
    Kind.TOO_SHORT: (
        Reason(Kind.TOO_SHORT, "validation_loss", 7.0, 8.0),
        "7 draws of the validation loss in each copy; at least 8 are required",
    ),
    Kind.RHAT: (
        Reason(Kind.RHAT, "mean_square.2", 1.3104, 1.1),
        "R-hat of the mean square weight of layer 2 1.31; at most 1.1 is allowed",
    ),
    Kind.DRIFT: (
        Reason(Kind.DRIFT, "quadratic", -5.25, 4.0),
        "drift of the quadratic term -5.2 standard errors between the halves; "
        "at most 4 are allowed",
    ),
    Kind.ESS: (
        Reason(Kind.ESS, "test_loss", 12.4, 40.0),
        "effective sample size of the test loss 12; at least 40 are required",
    ),
    Kind.ROUND_TRIPS: (
        Reason(Kind.ROUND_TRIPS, "", 0.0, 1.0),
        "no round trips between the ends of the ladder",
    ),
    Kind.MEMORY: (
        Reason(Kind.MEMORY, "", 1.2, 3.0),
        "the run spans 1.2 autocorrelation times of the weights; at least 3 are required",
    ),
    Kind.SIDE: (
        Reason(Kind.SIDE, "", 0.52, 0.37, (0.66, 0.78)),
        "52 % of replicas have not crossed T = 0.66 to 0.78 in half the run; "
        "at most 37 % is allowed",
    ),
}
ADVICE = {
    Action.BURN_IN: "use a longer burn-in (a, b), and reflecting walls if walls reject",
    Action.SAMPLE_LONGER: "sample longer (a, b)",
    Action.SCORE_MORE: "sample longer, or score more often (a, b)",
    Action.CHECK_FINITE: "find what is not finite: the data, the energy, or weights that diverge",
    Action.PASS_BOTTLENECK: "replicas turn back between T = 2.7 and 4.1: place more temperatures "
    "there, use longer trajectories, or sample longer (a, b)",
    Action.LENGTHEN_TRAJECTORIES: "replica diffusion is subdiffusive (t^0.4): "
    "use longer trajectories (a, b)",
    Action.IMPROVE_LADDER: "use an adaptive ladder, more temperatures, or more rounds (a, b)",
    Action.DECORRELATE: "or sample until the weights have decorrelated and replicas have crossed "
    "every pair of temperatures (a, b)",
    Action.START_BOTH_SIDES: 'or start half of the copies by cooling, half by heating (a, b = "c")',
    Action.ADD_COPIES: "run at least two copies (a, b): one alone cannot disagree",
    Action.START_APART: 'start the copies from different weights (a, b = "c"): '
    "copies that start alike agree too soon",
}


def verdict(*reasons: tuple[Reason, ...], advice: tuple[Advice, ...] = ()) -> Verdict:
    numbers = np.zeros(len(reasons))
    good = np.array([not rung for rung in reasons])
    return Verdict(good, reasons, advice, numbers, numbers, numbers, numbers)


@pytest.mark.parametrize("kind", Kind)
def test_a_reason_in_words(kind: Kind) -> None:
    reason, text = REASONS[kind]
    assert sentences.reason(reason) == text


@pytest.mark.parametrize("action", Action)
def test_advice_in_words(action: Action) -> None:
    advice = Advice(action, ("a", "b"), "c", 0.42, (2.7, 4.1))
    assert sentences.advice(advice) == ADVICE[action]


def test_rungs_that_share_a_reason_share_a_line_with_the_worst_value() -> None:
    trips, short = REASONS[Kind.ROUND_TRIPS][0], REASONS[Kind.TOO_SHORT][0]
    rungs = [
        (short, trips, Reason(Kind.RHAT, "energy", rhat, 1.1), Reason(Kind.DRIFT, "energy", d, 4.0))
        for rhat, d in ((1.2, 4.5), (1.31, -7.25))
    ]
    memory = [Reason(Kind.MEMORY, "", times, 3.0) for times in (1.26, 2.5)]
    found = verdict(*rungs, (short, *memory[:1]), (short, *memory[1:], REASONS[Kind.SIDE][0]))
    assert sentences.grouped(found, [0.05, 0.4, 1.0, math.inf]) == [
        "7 draws of the validation loss in each copy (at least 8) at all 4 temperatures",
        "no round trips between the ends of the ladder at 2 temperatures, T = 0.05 to 0.4",
        "R-hat of the energy up to 1.31 (at most 1.1) at 2 temperatures, T = 0.05 to 0.4",
        "drift of the energy up to 7.2 standard errors between the halves (at most 4) "
        "at 2 temperatures, T = 0.05 to 0.4",
        "the run spans as few as 1.3 autocorrelation times of the weights (at least 3) "
        "at 2 temperatures, T = 1 to inf",
        "52 % of replicas have not crossed T = 0.66 to 0.78 in half the run (at most 37 %) "
        "at T = inf",
    ]


def test_what_is_not_known_is_the_worst() -> None:
    unknown = [Reason(Kind.ESS, "energy", value, 40.0) for value in (3.0, math.nan, 5.0)]
    (line,) = sentences.grouped(verdict(*((one,) for one in unknown)), [0.1, 0.2, 0.3], "lambda")
    assert line == "effective sample size of the energy down to nan (at least 40) at all 3 rungs"


def test_the_headline_names_each_cause_once() -> None:
    assert sentences.headline(verdict((), ())) == "equilibrated at all 2 temperatures"
    bad = verdict((), (REASONS[Kind.ESS][0], REASONS[Kind.RHAT][0]), (REASONS[Kind.RHAT][0],))
    assert sentences.headline(bad) == "NOT equilibrated at 2 of 3 temperatures (R-hat; ESS)"
    assert sentences.headline(bad, "lambda") == "NOT equilibrated at 2 of 3 rungs (R-hat; ESS)"


def test_advice_is_shown_where_it_is_needed() -> None:
    advice = Advice(Action.SAMPLE_LONGER, ("run.rounds",))
    shown = sentences.statements(verdict((REASONS[Kind.MEMORY][0],), advice=(advice,)), [1.0])
    assert shown[-1] == "  advice: sample longer (run.rounds)" and len(shown) == 3
    assert len(sentences.statements(verdict((), advice=(advice,)), [1.0])) == 1


@pytest.mark.parametrize(
    ("good", "text"),
    [
        ([False] * 32, "none of the 32 temperatures has equilibrated"),
        ([False, True, False], "only 1 of the 3 temperatures has equilibrated"),
        ([True, True, False], "only 2 of the 3 temperatures have equilibrated"),
        ([False], "the temperature has not equilibrated"),
    ],
)
def test_what_has_not_equilibrated_is_counted(good: list[bool], text: str) -> None:
    assert sentences.not_equilibrated(np.array(good)) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("", True, ()), ""),
        (
            ("lowest", False, ("lowest",)),
            "; at the lowest temperature, so the minimum may lie below it",
        ),
        (
            ("highest", False, ("highest",)),
            "; at the highest temperature, so the minimum may lie above it",
        ),
        (
            ("", False, ("lowest",)),
            "; not resolved: the loss at the lowest temperature is as low within its error",
        ),
        (
            ("", False, ("lowest", "highest")),
            "; not resolved: the loss at the lowest and the highest temperatures is as low "
            "within its error",
        ),
    ],
)
def test_the_best_temperature_in_words(fields: tuple[Any, ...], text: str) -> None:
    best = BestTemperature(8, 0.631, 0.5, 0.7943, *fields)
    assert sentences.best_temperature(best) == f"T = 0.631, 90 % interval 0.5 to 0.794{text}"


def test_estimators_that_differ_and_the_barrier_in_words() -> None:
    found = Disagreement("mbar", "bar", 1.0, 0.424)
    assert sentences.disagreement(found) == (
        "mbar differs from bar by +1.00 nats; the errors allow 0.42"
    )
    barrier: Any = SimpleNamespace(total=32.7, rungs_wanted=67)
    text = "barrier 32.7: about 67 temperatures recommended, 56 used"
    assert sentences.barrier(barrier, 56) == text
