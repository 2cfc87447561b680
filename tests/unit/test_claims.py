"""The judging of claims: each holds on results made so, fails on others, is else undecided."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import make_evidence, make_optimised, make_results

from tempernet.diagnostics.statistics import Estimate
from tempernet.paper import sentences
from tempernet.paper.claims import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Cause,
    Claim,
    Kind,
    Result,
    Why,
    evidences,
    judge_all,
    ladder,
    levels,
    minima,
    temperatures,
)
from tempernet.paper.claims.claim import Undecided
from tempernet.paper.claims.judging import above, estimate, over_copies
from tempernet.paper.sentences import NO_RUN
from tempernet.results.optimise import OptimiseResults
from tempernet.results.sweep import SweepResults
from tempernet.store import files

LADDER = np.geomspace(0.01, 100, 13)
"""With T = 1 in the middle."""
LOG_T = np.log10(LADDER)


def valley(at: float, least: float = 1.2, steep: float = 2.0) -> np.ndarray:
    """A loss with its minimum at a temperature."""
    return least + steep * (LOG_T - math.log10(at)) ** 2


def rising(cross: float) -> np.ndarray:
    """A loss that rises above the uninformed one at a temperature."""
    return math.log(10) + 0.8 * np.tanh(3 * (LOG_T - math.log10(cross)))


def sweep(n: int, loss: np.ndarray | None = None, network: str = "M3", **made: Any) -> SweepResults:
    return make_results(
        LADDER,
        n_train=n,
        loss=loss,
        network=network,
        copies=4,
        path=Path(f"{network}-d{n}"),
        **made,
    )


def sweeps(
    of: Callable[[int], SweepResults], network: str = "m3", protocol: str = "default"
) -> dict[str, SweepResults]:
    return {f"{network}-d{n}-{protocol}": of(n) for n in (50, 500, 5000)}


def energies(two_peaks: bool, height: float = 40.0) -> np.ndarray:
    """Energies (copies, rounds, K), with one or two peaks where the heat capacity is greatest.

    That is in the middle of the ladder.
    """
    rng = np.random.default_rng(5)
    values = 50 + rng.standard_normal((4, 200, len(LADDER))) * LADDER
    shape = rng.choice([-1.0, 1.0], (4, 200)) if two_peaks else rng.standard_normal((4, 200))
    values[..., 6] += height * shape
    return values


def hot(loss: float) -> np.ndarray:
    return np.where(LADDER > 50, loss, 1.0)


def widths_run(network: str, low: float, high: float, energy: float = 0.0) -> OptimiseResults:
    return make_optimised(network, 500, "paper", widest=np.linspace(low, high, 25), energy=energy)


def with_widths(network: str, low: float, high: float, energy: float = 0.0) -> dict[str, Result]:
    run = widths_run(network, low, high, energy)
    return {f"widths-{network.lower()}-{protocol}": run for protocol in ("paper", "default")}


def losing(n: int) -> dict[str, Result]:
    return {f"optimise-m3-d{n}-default": make_optimised(n_train=n, test_loss=3.0)}


def star(train_loss: float) -> dict[str, Result]:
    return {"widths-m3star-default": make_optimised("M3star", 500, energy=500 * train_loss)}


def integral(network: str, value: float, error: float, **made: Any) -> dict[str, Result]:
    volume = {"M3": 28_960.436, "M1": 19_945.736}[network]
    run = make_evidence(network, value, error, log_volume=made.pop("log_volume", volume), **made)
    return {f"evidence-{network.lower()}-default": run}


def papers(claim: Claim) -> str:
    """What the paper's protocol gives, in words."""
    return sentences.told(claim.statement, claim.papers)


def ours(claim: Claim) -> str:
    """What the default protocol gives, in words."""
    return sentences.told(claim.statement, claim.ours)


FLOOR = minima.FLOOR
STUCK: dict[str, Any] = {"stuck": (0, 6, 12)}
Made = Callable[[], Mapping[str, Result]]
Judged = Callable[[Mapping[str, Result]], Claim]
CASES: dict[str, tuple[Judged, Made, Made, Made]] = {
    # What is judged; results on which it holds, on which it does not, and which do not decide it.
    "floor": (minima.floor, lambda: star(FLOOR + 1e-3), lambda: star(1.3), lambda: star(1.9)),
    "width M3": (
        lambda runs: minima.width(runs, "M3"),
        lambda: with_widths("M3", 25, 35),
        lambda: with_widths("M3", 50, 90),
        lambda: with_widths("M3", 25, 35, energy=7.0),
    ),
    "width M1": (
        lambda runs: minima.width(runs, "M1"),
        lambda: with_widths("M1", 30, 35),
        lambda: with_widths("M1", 10, 20),
        lambda: with_widths("M1", 30, 35, energy=1e-3),
    ),
    "width M3star": (
        lambda runs: minima.width(runs, "M3star"),
        lambda: with_widths("M3star", 700, 1000, energy=500 * FLOOR),
        lambda: with_widths("M3star", 70, 100, energy=500 * FLOOR),
        lambda: with_widths("M3star", 700, 1000, energy=500 * 1.6),
    ),
    "steps": (
        lambda runs: minima.steps(runs, 500),
        lambda: {
            "optimise-m3-d500-paper": make_optimised(n_train=500, protocol="paper", gradients=300)
        },
        lambda: {
            "optimise-m3-d500-paper": make_optimised(n_train=500, protocol="paper", energy=550.0)
        },
        lambda: {
            "optimise-m3-d500-paper": make_optimised(
                n_train=500, protocol="paper", energy=550.0, max_gradients=500
            )
        },
    ),
    "minimum D_500": (
        lambda runs: temperatures.minimum(runs, 500),
        lambda: {"m3-d500-default": sweep(500, valley(1.0))},
        lambda: {"m3-d500-default": sweep(500, valley(10.0))},
        lambda: {"m3-d500-default": sweep(500, valley(1.0), **STUCK)},
    ),
    "minimum D_5000": (
        lambda runs: temperatures.minimum(runs, 5000),
        lambda: {"m3-d5000-default": sweep(5000, valley(10.0))},
        lambda: {"m3-d5000-default": sweep(5000, valley(0.1))},
        lambda: {"m3-d5000-default": sweep(5000, np.full(len(LADDER), 2.0))},
    ),
    "T = 1 against optimisation": (
        lambda runs: levels.posterior_against_optimisation(runs, 50),
        lambda: {"m3-d50-default": sweep(50, valley(1.0)), **losing(50)},
        lambda: {"m3-d50-default": sweep(50, valley(1.0, least=5.0)), **losing(50)},
        lambda: {"m3-d50-default": sweep(50, valley(1.0, least=3.0)), **losing(50)},
    ),
    "hot against uninformed": (
        lambda runs: levels.hot_against_uninformed(runs, 50),
        lambda: {"m3-d50-default": sweep(50, hot(4.0))},
        lambda: {"m3-d50-default": sweep(50, hot(2.0))},
        lambda: {"m3-d50-default": sweep(50, hot(4.0), stuck=(12,))},
    ),
    "hot against optimisation": (
        lambda runs: levels.hot_against_optimisation(runs, 50),
        lambda: {"m3-d50-default": sweep(50, hot(4.0)), **losing(50)},
        lambda: {"m3-d50-default": sweep(50, hot(2.0)), **losing(50)},
        lambda: {"m3-d50-default": sweep(50, hot(4.0))},
    ),
    "crossing": (
        levels.crossing_grows,
        lambda: sweeps(lambda n: sweep(n, rising({50: 0.1, 500: 1.0, 5000: 10.0}[n]))),
        lambda: sweeps(lambda n: sweep(n, rising({50: 10.0, 500: 1.0, 5000: 0.1}[n]))),
        lambda: sweeps(lambda n: sweep(n, rising(1.0))),
    ),
    "never informed": (
        levels.never_informed,
        lambda: {"m3-d50-default": sweep(50, valley(1.0, least=2.8))},
        lambda: {"m3-d50-default": sweep(50, valley(1.0, least=1.8))},
        lambda: {"m3-d50-default": sweep(50, valley(1.0, least=math.log(10)))},
    ),
    "no minimum": (
        lambda runs: temperatures.no_minimum(runs, 50),
        lambda: {"m3star-d50-default": sweep(50, 1.6 + 0.2 * (LOG_T + 2), "M3star")},
        lambda: {"m3star-d50-default": sweep(50, valley(1.0), "M3star")},
        lambda: {"m3star-d50-default": sweep(50, np.full(len(LADDER), 1.8), "M3star")},
    ),
    "as good on D_50": (
        temperatures.as_good_on_few,
        lambda: {
            "m3-d50-default": sweep(50, valley(1.0, 2.0)),
            "m3star-d50-default": sweep(50, valley(1.0, 2.05), "M3star"),
        },
        lambda: {
            "m3-d50-default": sweep(50, valley(1.0, 2.0)),
            "m3star-d50-default": sweep(50, valley(1.0, 3.0), "M3star"),
        },
        lambda: {
            "m3-d50-default": sweep(50, valley(1.0, 2.0)),
            "m3star-d50-default": sweep(50, valley(1.0, 2.2), "M3star"),
        },
    ),
    "below the floor": (
        temperatures.below_floor,
        lambda: {"m3-d500-default": sweep(500, valley(3.0, 1.2))},
        lambda: {"m3-d500-default": sweep(500, valley(3.0, 2.0))},
        lambda: {"m3-d500-default": sweep(500, valley(3.0, 2.0), **STUCK)},
    ),
    "no transition": (
        lambda runs: ladder.no_transition(runs, 500),
        lambda: {"m3-d500-default": sweep(500, energy=energies(two_peaks=False), rounds=200)},
        lambda: {"m3-d500-default": sweep(500, energy=energies(two_peaks=True), rounds=200)},
        lambda: {"m3-d500-default": sweep(500, **STUCK)},
    ),
    "gradual": (
        lambda runs: ladder.gradual(runs, 500),
        lambda: {
            "m3-d500-default": sweep(500, energy=energies(two_peaks=False, height=0.0), rounds=200)
        },
        lambda: {"m3-d500-default": sweep(500, energy=energies(two_peaks=False), rounds=200)},
        lambda: {"m3-d500-default": sweep(500, **STUCK)},
    ),
    "equal swaps": (
        lambda runs: ladder.equal_swaps(runs, 500),
        lambda: {"m3-d500-default": sweep(500, swap_rate=np.full(12, 0.6))},
        lambda: {"m3-d500-default": sweep(500, swap_rate=np.where(np.arange(12) == 6, 0.1, 0.7))},
        lambda: {"m3-d500-default": sweep(500, swap_rate=np.full(12, 0.6), **STUCK)},
    ),
    "volume": (
        lambda runs: evidences.volume(runs, "M3"),
        lambda: integral("M3", 0.0, 1.0),
        lambda: integral("M3", 0.0, 1.0, log_volume=10_690.0),
        lambda: integral("M3", 0.0, 1.0, n_train=50),
    ),
    "integral M3": (
        lambda runs: evidences.integral(runs, "M3"),
        lambda: integral("M3", 26_300.0, 10.0),
        lambda: integral("M3", 28_000.0, 10.0),
        lambda: integral("M3", 26_300.0, 10.0, disagreements=("BAR and MBAR differ",)),
    ),
    "integral M1": (
        lambda runs: evidences.integral(runs, "M1"),
        lambda: integral("M1", 19_800.0, 5.0),
        lambda: integral("M1", 19_300.0, 5.0),
        lambda: integral("M1", 19_300.0, 50.0),
    ),
    "Bayes factor": (
        evidences.bayes_factor,
        lambda: integral("M3", 26_480.0, 10.0) | integral("M1", 19_790.0, 5.0),
        lambda: integral("M3", 28_400.0, 1.0) | integral("M1", 19_400.0, 1.0),
        lambda: integral("M3", 26_480.0, 10.0),
    ),
    "M1 favoured": (
        evidences.shallow_favoured,
        lambda: integral("M3", 28_300.0, 1.0) | integral("M1", 19_400.0, 1.0),
        lambda: integral("M3", 28_500.0, 1.0) | integral("M1", 19_400.0, 1.0),
        lambda: integral("M3", 28_414.7, 1.0) | integral("M1", 19_400.0, 1.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("wanted", [HOLDS, FAILS, UNDECIDED])
def test_a_claim_is_judged_in_every_direction(name: str, wanted: str) -> None:
    judged, *made = CASES[name]
    claim = judged(made[(HOLDS, FAILS, UNDECIDED).index(wanted)]())
    assert claim.verdict == wanted, claim
    assert (claim.why is not None) == (wanted == UNDECIDED)
    # Whatever is found can be said, and the document holds what was said.
    assert all(len(text) > 3 for text in (papers(claim), ours(claim), sentences.verdict(claim)))
    document = json.loads(json.dumps(files.plain(sentences.document(claim)), allow_nan=False))
    assert document["verdict"] == wanted and document["default_protocol"]["text"] == ours(claim)


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_its_sentence(cause: Cause) -> None:
    assert cause in sentences.WHYS or cause is Cause.NOT_EQUILIBRATED


@pytest.mark.parametrize(
    ("failed", "asked", "said"),
    [
        (32, 32, "none of the 32 temperatures of m3 has equilibrated"),
        (3, 32, "3 of the 32 temperatures of m3 have not equilibrated"),
        (1, 1, "m3 has not equilibrated at that temperature"),
    ],
)
def test_why_a_claim_is_undecided_is_said_in_a_few_words(
    failed: int, asked: int, said: str
) -> None:
    why = Why(Cause.NOT_EQUILIBRATED, "m3", {"failed": failed, "asked": asked})
    assert sentences.why(why) == said


@pytest.mark.parametrize("name", CASES)
def test_a_claim_without_its_runs_says_which_to_make(name: str) -> None:
    claim = CASES[name][0]({})
    assert claim.verdict == UNDECIDED and papers(claim) == ours(claim) == NO_RUN
    assert "tempernet reproduce --out STUDY --only" in sentences.verdict(claim)


def test_every_kind_of_claim_is_among_the_cases() -> None:
    among_cases = {judged({}).statement.kind for judged, *_ in CASES.values()}
    assert {claim.statement.kind for claim in judge_all({})} == among_cases == set(Kind)


def test_no_two_claims_are_the_same() -> None:
    names = [sentences.name(claim.statement) for claim in judge_all({})]
    assert len(set(names)) == len(names) == 39


@pytest.mark.parametrize(
    "change",
    [{"network": "M3star"}, {"n_train": 60}, {"prior": "gaussian"}],
)
def test_only_the_papers_own_model_and_data_decide(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"network": "M3", "n_train": 500, "loss": valley(1.0), "copies": 4}
    judged = [
        temperatures.minimum({"m3-d500-default": make_results(LADDER, **given)}, 500)
        for given in (good, good | change)
    ]
    assert [claim.verdict for claim in judged] == [HOLDS, UNDECIDED]
    assert "a larger --scale" in sentences.verdict(judged[1])


def test_the_papers_protocol_is_told_but_does_not_decide() -> None:
    runs = {"m3-d500-paper": sweep(500, valley(1.0), protocol="paper", stuck=(3,))}
    claim = temperatures.minimum(runs, 500)
    assert claim.verdict == UNDECIDED and ours(claim) == NO_RUN
    assert papers(claim).startswith("T = 1 ") and papers(claim).endswith("(not equilibrated)")


def test_rungs_that_a_claim_is_not_about_need_not_be_equilibrated() -> None:
    runs = {"m3-d50-default": sweep(50, hot(4.0), stuck=(0, 1))}
    assert levels.hot_against_uninformed(runs, 50).verdict == HOLDS


def test_alg_3_is_judged_for_its_steps_and_not_fire() -> None:
    runs = {
        "optimise-m3-d50-paper": make_optimised(protocol="paper", gradients=1250),
        "optimise-m3-d50-default": make_optimised(gradients=300),
    }
    claim = minima.steps(runs, 50)
    assert claim.verdict == FAILS
    assert papers(claim).startswith("Alg. 3: 1262") and ours(claim).startswith("FIRE: 312")


@pytest.mark.parametrize(
    ("mean", "error", "found"),
    [
        (1.0, 0.3, True),
        (-1.0, 0.3, False),
        (1.0, 0.4, None),
        (1.0, math.nan, None),
        (math.nan, 0.1, None),
        (0.0, 1.0, None),
    ],
)
def test_only_three_errors_decide(mean: float, error: float, found: bool | None) -> None:
    value = Estimate(np.asarray(mean), np.asarray(error))
    if found is None:
        with pytest.raises(Undecided):
            above(value)
    else:
        assert above(value) is found


def test_one_copy_has_no_error() -> None:
    assert math.isnan(over_copies([1.0]).error)
    # Two copies tell as much of their spread as one degree of freedom does.
    assert over_copies([1.0, 3.0]).mean == 2.0 and over_copies([1.0, 3.0]).error == pytest.approx(
        6.3138 / 1.6449, 1e-4
    )


@pytest.mark.parametrize("copies", [2, 4])
def test_three_errors_between_copies_seldom_decide_by_chance(copies: int) -> None:
    found = [
        over_copies(draws) for draws in np.random.default_rng(3).standard_normal((4000, copies))
    ]
    apart = np.mean([abs(estimate.mean) > 3 * estimate.error for estimate in found])
    assert apart < {2: 0.07, 4: 0.025}[copies]
    # Without the stretch it would be 20 % and 6 %.
    plain = np.mean(
        [
            abs(d.mean()) > 3 * d.std(ddof=1) / copies**0.5
            for d in np.random.default_rng(3).standard_normal((4000, copies))
        ]
    )
    assert plain > {2: 0.15, 4: 0.04}[copies]


def test_networks_short_of_the_minimum_do_not_stand_for_optimisation() -> None:
    def judged(n: int, **made: Any) -> Claim:
        run = make_optimised(n_train=n, test_loss=3.0, **made)
        runs: dict[str, Result] = {f"optimise-m3-d{n}-default": run}
        runs[f"m3-d{n}-default"] = sweep(n, valley(1.0))
        return levels.posterior_against_optimisation(runs, n)

    assert judged(5000).verdict == HOLDS
    short = judged(5000, energy=4.0)
    assert short.verdict == UNDECIDED and "(0 of 25 at E = 0)" in ours(short)
    # The paper's own choice where nothing gets there: the best 100 of 4,000.
    assert judged(5000, energy=4.0, number=100, started=4000).verdict == HOLDS
    assert judged(500, energy=4.0, number=100, started=4000).verdict == UNDECIDED


def test_fire_can_confirm_a_width_of_alg_3_but_not_refute_it() -> None:
    stuck = make_optimised("M3", 500, "paper", widest=np.linspace(50, 90, 25), energy=7.0)

    def judged(low: float, high: float) -> str:
        fire = make_optimised("M3", 500, widest=np.linspace(low, high, 25))
        return minima.width({"widths-m3-paper": stuck, "widths-m3-default": fire}, "M3").verdict

    assert (judged(25, 35), judged(50, 90)) == (HOLDS, UNDECIDED)


def test_the_interval_of_a_median_covers_it() -> None:
    rng = np.random.default_rng(11)
    for number in (25, 100):
        runs = [make_optimised(number=number) for _ in range(600)]
        for run in runs:
            run.starts["gradients"] = rng.exponential(1000, number)
        ends = [minima.median_steps(run) for run in runs]
        assert np.mean([low <= 1000 * math.log(2) <= high for low, _, high in ends]) > 0.94


def test_the_temperature_is_chosen_on_validation_and_told_with_its_test_loss() -> None:
    run = sweep(500, valley(1.0), test_loss=valley(10.0, least=3.0))
    claim = temperatures.minimum({"m3-d500-default": run}, 500)
    assert claim.verdict == HOLDS and ours(claim).startswith("T = 1 ")
    assert "loss 5.0" in ours(claim)


def test_the_crossing_is_where_the_loss_leaves_the_uninformed_one() -> None:
    low, high = levels.crossing(sweep(50, rising(1.4)))
    assert low < 1.4 < high <= LADDER[8]
    assert levels.crossing(sweep(50, np.full(len(LADDER), 3.0))) == (0.0, LADDER[0])
    assert levels.crossing(sweep(50, np.full(len(LADDER), 1.0))) == (LADDER[-1], math.inf)


def test_a_run_that_cannot_tell_is_not_called_missing() -> None:
    run = make_results(np.array([0.01, 0.1, 10.0, 100.0]))
    claim = levels.posterior_against_optimisation({"m3-d50-default": run, **losing(50)}, 50)
    assert claim.verdict == UNDECIDED and papers(claim) == NO_RUN
    assert isinstance(claim.ours, Why) and claim.ours.cause is Cause.NO_POSTERIOR
    assert "no temperature near 1" in ours(claim)


def test_a_claim_keeps_the_numbers_that_it_compares() -> None:
    claim = evidences.integral(integral("M1", 19_800.0, 5.0), "M1")
    assert not isinstance(claim.ours, Why)
    assert [found.trusted for found in claim.ours] == [True]
    assert claim.ours[0].values["number"] == estimate(19_800.0, 5.0)
    assert sentences.document(claim)["paper"] == {
        "text": "19,790 ± 10",
        "value": {"value": 19_790.0, "error": 10.0},
    }
