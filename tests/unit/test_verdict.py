"""The verdict passes what has equilibrated, and names each single fault put into it."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import signal

from tempernet.diagnostics.verdict import MAX_SIDE_KEPT, MIN_DRAWS, MIN_FORGOTTEN, Verdict, judge
from tempernet.report.terminal import grouped_reasons

COPIES, DRAWS, RUNGS = 4, 300, 12
FAULTY = 5
"""The rung that has the fault."""
SQUARE = "the mean square weight of layer 1"
LOSS = "the validation loss"
RAMP = np.linspace(0, 1, DRAWS)


def equilibrated(seed: int = 0, copies: int = COPIES, draws: int = DRAWS) -> dict[str, np.ndarray]:
    """Observables of AR(1) series with several correlation times and scales; the loss is measured
    less often.
    """
    rng = np.random.default_rng(seed)
    found = {}
    for name, correlation, every, scale in (
        ("the energy", 0.3, 1, 100.0),
        (SQUARE, 0.6, 1, 1e-3),
        (LOSS, 0.3, 5, 0.1),
    ):
        kicks = rng.normal(size=(copies, draws, RUNGS))
        kicks[:, 1:] *= np.sqrt(1 - correlation**2)
        series = signal.lfilter([1], [1, -correlation], kicks, axis=1)
        found[name] = scale * (50 + series[:, ::every])
    return found


def with_fault(name: str, series: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Equilibrated but for one observable at one rung."""
    found = equilibrated(seed)
    found[name] = found[name].copy()
    found[name][..., FAULTY] = series
    return found


def only_reasons(observables: Mapping[str, np.ndarray], round_trips: int = 3) -> list[str]:
    """The reasons at the faulty rung, after seeing that all other rungs pass."""
    verdict = judge(observables, round_trips)
    assert verdict.equilibrated.tolist() == [k != FAULTY for k in range(RUNGS)], verdict.reasons
    assert not verdict.good and verdict.headline.startswith(
        "NOT equilibrated on 1 of 12 temperatures ("
    )
    return verdict.reasons[FAULTY]


def test_what_has_equilibrated_passes_on_all_rungs() -> None:
    verdicts = [judge(equilibrated(seed), 1) for seed in range(20)]
    passed = [verdict.good for verdict in verdicts]
    assert np.mean(passed) >= 0.9, [verdict.reasons for verdict in verdicts if not verdict.good]
    good = verdicts[passed.index(True)]
    assert good.headline == "equilibrated on all 12 temperatures" and good.advice == []
    assert not any(good.reasons)
    for value in (good.rhat, good.ess, good.drift):
        assert value.shape == (RUNGS,) and np.isfinite(value).all()
    assert good.rhat.max() < 1.1 and good.ess.min() >= 40 and np.abs(good.drift).max() < 4


def test_one_copy_and_single_precision_pass_too() -> None:
    one = {
        name: series.astype(np.float32)
        for name, series in equilibrated(1, copies=1, draws=600).items()
    }
    verdict = judge(one, 1)
    assert verdict.good, verdict.reasons
    assert len(verdict.advice) == 1 and "run.copies" in verdict.advice[0]


@pytest.mark.parametrize("name", ["the energy", SQUARE, LOSS])
def test_one_copy_apart_in_one_observable_is_found(name: str) -> None:
    series = equilibrated()[name][..., FAULTY]
    series[2] += 3 * series.std()
    reasons = only_reasons(with_fault(name, series))
    assert any(
        reason.startswith("R-hat") and reason.endswith(f"of {name}, 1.1 is allowed at most")
        for reason in reasons
    )


def test_a_drift_is_found_by_its_size_and_sign() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    reasons = only_reasons(with_fault(SQUARE, series - 2 * series.std() * RAMP))
    assert any(
        reason.startswith("drift -") and reason.endswith(f"standard errors of {SQUARE}")
        for reason in reasons
    )


def test_a_steady_energy_does_not_excuse_weights_that_drift() -> None:
    faulty = with_fault(SQUARE, np.broadcast_to(1e-3 * (50 + 10 * RAMP), (COPIES, DRAWS)))
    faulty["the energy"][..., FAULTY] = np.random.default_rng(2).normal(size=(COPIES, DRAWS))
    reasons = only_reasons(faulty)
    assert any(reason.startswith("drift +") and SQUARE in reason for reason in reasons)
    # By the energy alone the rung would pass.
    assert judge({"the energy": faulty["the energy"]}, 1).good


def test_a_chain_that_never_moves_is_found_by_its_effective_draws() -> None:
    frozen = equilibrated()
    for series in frozen.values():
        series[..., FAULTY] = 0.1
    reasons = only_reasons(frozen)
    assert reasons == ["ESS 4 of the energy, 40 are needed at least"]


def test_copies_frozen_apart_are_infinitely_apart() -> None:
    reasons = only_reasons(
        with_fault(SQUARE, np.broadcast_to(np.arange(4.0)[:, None], (COPIES, DRAWS)))
    )
    assert f"R-hat inf of {SQUARE}, 1.1 is allowed at most" in reasons


def test_few_effective_draws_are_found() -> None:
    # Slowly up and down, in all copies and both halves alike, so that these agree.
    wave = np.sin(4 * np.pi * np.arange(DRAWS) / DRAWS) + 0.01 * np.random.default_rng(3).normal(
        size=(COPIES, DRAWS)
    )
    reasons = only_reasons(with_fault(SQUARE, wave))
    assert len(reasons) == 1 and reasons[0].startswith("ESS") and SQUARE in reasons[0]


def test_no_round_trips_speak_against_every_rung() -> None:
    verdict = judge(equilibrated(), 0)
    assert not verdict.equilibrated.any()
    assert verdict.reasons == [["no round trips between the ends of the ladder"]] * RUNGS
    assert verdict.headline == "NOT equilibrated on 12 of 12 temperatures (no round trips)"
    assert len(verdict.advice) == 1 and "ladder.num" in verdict.advice[0]


def test_replicas_that_have_forgotten_need_not_travel() -> None:
    forgotten = np.full(RUNGS, MIN_FORGOTTEN)
    verdict = judge(equilibrated(), 0, forgotten=forgotten, side_kept=MAX_SIDE_KEPT)
    assert (
        verdict.good and verdict.advice == [] and verdict.forgotten.tolist() == forgotten.tolist()
    )
    # One rung where they remember, and one where it is not known.
    forgotten[3], forgotten[7] = 1.26, np.nan
    verdict = judge(equilibrated(), 0, forgotten=forgotten, side_kept=0.1)
    assert np.flatnonzero(~verdict.equilibrated).tolist() == [3, 7]
    told = "no round trips between the ends of the ladder"
    assert verdict.reasons[3] == [
        f"{told}, and replicas forgot what they were 1.3 times, 3 are needed at least"
    ]
    assert verdict.reasons[7] == [told]
    longer = "or sample longer (run.rounds), until replicas have forgotten what and where they were"
    assert verdict.advice[-1] == longer
    assert (
        longer
        not in judge(
            equilibrated(), 0, forgotten=forgotten, side_kept=0.1, started_apart=False
        ).advice
    )
    assert longer not in judge(equilibrated(), 0).advice
    assert verdict.headline == "NOT equilibrated on 2 of 12 temperatures (no round trips)"
    assert judge(equilibrated(), 1, forgotten=forgotten).good
    assert np.isnan(judge(equilibrated(), 1).forgotten).all()


def test_forgetting_is_no_excuse_without_copies_that_started_apart() -> None:
    often, told = np.full(RUNGS, 50.0), "no round trips between the ends of the ladder"
    alike = judge(equilibrated(), 0, forgotten=often, side_kept=0.0, started_apart=False)
    assert alike.reasons == [[told]] * RUNGS
    one = judge(equilibrated(1, copies=1, draws=600), 0, forgotten=often, side_kept=0.0)
    assert one.reasons == [[told]] * RUNGS


def test_forgetting_is_no_excuse_for_replicas_that_keep_to_their_side() -> None:
    often, told = np.full(RUNGS, 50.0), "no round trips between the ends of the ladder"
    verdict = judge(equilibrated(), 0, forgotten=often, side_kept=0.79, side_of="T = 0.66 to 0.78")
    kept = "half a run later replicas remember 79% of their side of T = 0.66 to 0.78, 37% are allowed at most"
    assert verdict.reasons == [[f"{told}, and {kept}"]] * RUNGS
    assert verdict.advice[-2].startswith("or sample longer") and "annealed" in verdict.advice[-1]
    # Not known is not passed, and with round trips nobody asks.
    assert judge(equilibrated(), 0, forgotten=often).reasons == [[told]] * RUNGS
    assert judge(equilibrated(), 1, forgotten=often, side_kept=0.79).good


def test_forgetting_excuses_nothing_else() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    series[2] += 3 * series.std()
    verdict = judge(with_fault(SQUARE, series), 0, forgotten=np.full(RUNGS, 50.0), side_kept=0.0)
    assert np.flatnonzero(~verdict.equilibrated).tolist() == [FAULTY]


def test_round_trips_are_not_asked_for_where_there_can_be_none() -> None:
    assert judge(equilibrated(), 0, exchanging=False).good
    assert judge({name: series[..., :1] for name, series in equilibrated().items()}, 0).good


@pytest.mark.parametrize("draws", [0, 1, 3, 4, MIN_DRAWS - 1])
@pytest.mark.parametrize("copies", [1, 4])
def test_too_short_a_series_is_named(copies: int, draws: int) -> None:
    observables = equilibrated(copies=copies, draws=600)
    observables[LOSS] = observables[LOSS][:, :draws]
    verdict = judge(observables, 1)
    assert not verdict.equilibrated.any()
    assert verdict.reasons[0] == [f"too short: {draws} draws of {LOSS}, 8 are needed at least"]
    assert "run.score_every" in verdict.advice[0]
    # What cannot be told is no good number.
    assert verdict.ess.max() == 0 or draws >= 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["the energy", LOSS])
def test_what_is_not_finite_is_named(name: str, bad: float) -> None:
    series = equilibrated()[name][..., FAULTY]
    series[1, 3] = bad
    observables = with_fault(name, series)
    assert only_reasons(observables) == [f"not finite: {name}"]
    verdict = judge(observables, 1)
    assert verdict.rhat[FAULTY] == np.inf and verdict.ess[FAULTY] == 0
    assert any("not finite" in line for line in verdict.advice)


def test_a_second_fault_is_named_beside_one_that_is_not_finite() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    series[2] += 3 * series.std()
    observables = with_fault(SQUARE, series)
    observables[LOSS][0, 0, FAULTY] = np.nan
    kinds = [reason.split()[0] for reason in only_reasons(observables)]
    assert kinds[0] == "not" and "R-hat" in kinds


def advice(verdict: Verdict) -> str:
    return "\n".join(verdict.advice)


def test_replicas_that_turn_back_are_told_to_forget() -> None:
    held = judge(equilibrated(), 0, 0.4).advice
    assert len(held) == 1 and "time^0.4" in held[0] and "dynamics.num_steps" in held[0]
    assert judge(equilibrated(), 0, 0.8).advice == judge(equilibrated(), 0).advice != held
    assert judge(equilibrated(), 1, 0.4).advice == []


def test_where_replicas_turn_back_is_told() -> None:
    told = judge(equilibrated(), 0, 0.4, "T = 2.7 to 4.1").advice
    assert len(told) == 1 and "pass T = 2.7 to 4.1" in told[0] and "ladder.temperatures" in told[0]
    assert judge(equilibrated(), 1, 0.4, "T = 2.7 to 4.1").advice == []


def test_advice_fits_the_fault() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    drifting = judge(with_fault(SQUARE, series + 3 * series.std() * RAMP), 1)
    assert "run.burn_in" in advice(drifting) and "ladder" not in advice(drifting)
    frozen = equilibrated()
    for observable in frozen.values():
        observable[..., FAULTY] = 0.1
    assert judge(frozen, 1).advice == ["sample longer (run.rounds)"]
    assert 'start.weights = "apart"' in advice(judge(equilibrated(), 1, started_apart=False))


def test_a_headline_lists_each_cause_once() -> None:
    frozen = {name: np.full_like(series, 0.1) for name, series in equilibrated().items()}
    assert (
        judge(frozen, 0).headline
        == "NOT equilibrated on 12 of 12 temperatures (ESS; no round trips)"
    )


def test_heated_and_cooled_copies_that_have_met_pass() -> None:
    often = np.full(RUNGS, 50.0)
    passed = [
        judge(equilibrated(seed), 0, forgotten=often, side_kept=0.3, both_sides=True).good
        for seed in range(20)
    ]
    assert np.mean(passed) >= 0.9
    # They are asked for no less than others.
    assert not judge(
        equilibrated(), 0, forgotten=often / 100, side_kept=0.3, both_sides=True
    ).equilibrated.any()
    assert not judge(
        equilibrated(), 0, forgotten=often, side_kept=0.5, both_sides=True
    ).equilibrated.any()


@pytest.mark.parametrize("name", ["the energy", SQUARE, LOSS])
@pytest.mark.parametrize("sign", [1, -1])
def test_heated_and_cooled_copies_have_to_agree_more_closely(name: str, sign: int) -> None:
    observables = equilibrated(draws=1000)
    series = observables[name][..., FAULTY]
    series[1::2] += sign * 0.7 * series.std()
    assert judge(observables, 3).good
    verdict = judge(observables, 3, both_sides=True)
    assert np.flatnonzero(~verdict.equilibrated).tolist() == [FAULTY]
    (reason,) = verdict.reasons[FAULTY]
    assert reason.startswith("R-hat 1.0") and reason.endswith(f"of {name}, 1.05 is allowed at most")
    assert f"  R-hat of {name}: 1 temperature, T = 5" in grouped_reasons(
        verdict, np.arange(float(RUNGS))
    )


def test_rungs_that_share_a_reason_share_a_line() -> None:
    found = equilibrated()
    found[SQUARE][0, :, FAULTY] += 1
    found[LOSS] = found[LOSS][:, :4]
    lines = grouped_reasons(judge(found, 1), np.arange(1.0, RUNGS + 1))
    assert lines[0] == f"  too short a series of {LOSS}: {RUNGS} temperatures, T = 1 to {RUNGS}"
    assert f"  R-hat of {SQUARE}: 1 temperature, T = {FAULTY + 1}" in lines
