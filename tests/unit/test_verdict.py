"""The verdict passes what has equilibrated, and names each single fault put into it."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import signal

from tempernet.diagnostics.reasons import Action, Advice, Kind, Reason
from tempernet.diagnostics.verdict import (
    MAX_DRIFT,
    MAX_RHAT,
    MAX_RHAT_FROM_BOTH_SIDES,
    MAX_SIDE_KEPT,
    MIN_DRAWS,
    MIN_FORGOTTEN,
    Verdict,
    judge,
)

COPIES, DRAWS, RUNGS = 4, 300, 12
FAULTY = 5
"""The rung that has the fault."""
SQUARE = "mean_square.1"
LOSS = "validation_loss"
RAMP = np.linspace(0, 1, DRAWS)
NO_TRIPS = Reason(Kind.ROUND_TRIPS, "", 0.0, 1.0)


def equilibrated(seed: int = 0, copies: int = COPIES, draws: int = DRAWS) -> dict[str, np.ndarray]:
    """AR(1) series with several correlation times and scales; the loss is measured less often."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, correlation, every, scale in (
        ("energy", 0.3, 1, 100.0),
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


def only_reasons(observables: Mapping[str, np.ndarray], round_trips: int = 3) -> tuple[Reason, ...]:
    """The reasons at the faulty rung, after seeing that all other rungs pass."""
    verdict = judge(observables, round_trips)
    assert verdict.equilibrated.tolist() == [k != FAULTY for k in range(RUNGS)], verdict.reasons
    assert not verdict.good and verdict.failed == 1
    return verdict.reasons[FAULTY]


def of_kind(reasons: tuple[Reason, ...], kind: Kind) -> Reason:
    (found,) = [reason for reason in reasons if reason.kind == kind]
    return found


def actions(verdict: Verdict) -> list[Action]:
    return [advice.action for advice in verdict.advice]


def test_what_has_equilibrated_passes_on_all_rungs() -> None:
    verdicts = [judge(equilibrated(seed), 1) for seed in range(20)]
    passed = [verdict.good for verdict in verdicts]
    assert np.mean(passed) >= 0.9, [verdict.reasons for verdict in verdicts if not verdict.good]
    good = verdicts[passed.index(True)]
    assert good.failed == 0 and good.causes == {} and good.advice == ()
    assert good.reasons == ((),) * RUNGS
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
    assert verdict.advice == (Advice(Action.ADD_COPIES, ("run.copies",)),)


@pytest.mark.parametrize("name", ["energy", SQUARE, LOSS])
def test_one_copy_apart_in_one_observable_is_found(name: str) -> None:
    series = equilibrated()[name][..., FAULTY]
    series[2] += 3 * series.std()
    reasons = only_reasons(with_fault(name, series))
    rhat = of_kind(reasons, Kind.RHAT)
    assert rhat.observable == name and rhat.value > rhat.limit == MAX_RHAT


def test_a_drift_is_found_by_its_size_and_sign() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    reasons = only_reasons(with_fault(SQUARE, series - 2 * series.std() * RAMP))
    drift = of_kind(reasons, Kind.DRIFT)
    assert drift.observable == SQUARE and drift.value < -drift.limit == -MAX_DRIFT


def test_a_steady_energy_does_not_excuse_weights_that_drift() -> None:
    faulty = with_fault(SQUARE, np.broadcast_to(1e-3 * (50 + 10 * RAMP), (COPIES, DRAWS)))
    faulty["energy"][..., FAULTY] = np.random.default_rng(2).normal(size=(COPIES, DRAWS))
    reasons = only_reasons(faulty)
    drift = of_kind(reasons, Kind.DRIFT)
    assert drift.observable == SQUARE and drift.value > MAX_DRIFT
    # By the energy alone the rung would pass.
    assert judge({"energy": faulty["energy"]}, 1).good


def test_a_chain_that_never_moves_is_found_by_its_effective_draws() -> None:
    frozen = equilibrated()
    for series in frozen.values():
        series[..., FAULTY] = 0.1
    reasons = only_reasons(frozen)
    assert reasons == (Reason(Kind.ESS, "energy", 4.0, 40.0),)


def test_copies_frozen_apart_are_infinitely_apart() -> None:
    reasons = only_reasons(
        with_fault(SQUARE, np.broadcast_to(np.arange(4.0)[:, None], (COPIES, DRAWS)))
    )
    assert Reason(Kind.RHAT, SQUARE, np.inf, MAX_RHAT) in reasons


def test_few_effective_draws_are_found() -> None:
    # Slowly up and down, in all copies and both halves alike, so that these agree.
    wave = np.sin(4 * np.pi * np.arange(DRAWS) / DRAWS) + 0.01 * np.random.default_rng(3).normal(
        size=(COPIES, DRAWS)
    )
    reasons = only_reasons(with_fault(SQUARE, wave))
    assert [reason.label for reason in reasons] == [f"ess:{SQUARE}"]


def test_no_round_trips_speak_against_every_rung() -> None:
    verdict = judge(equilibrated(), 0)
    assert not verdict.equilibrated.any()
    assert verdict.reasons == ((NO_TRIPS,),) * RUNGS
    assert verdict.causes == {Kind.ROUND_TRIPS: RUNGS}
    assert actions(verdict) == [Action.IMPROVE_LADDER]
    assert "ladder.num" in verdict.advice[0].settings


def test_replicas_that_have_forgotten_need_not_travel() -> None:
    forgotten = np.full(RUNGS, MIN_FORGOTTEN)
    verdict = judge(equilibrated(), 0, forgotten=forgotten, side_kept=MAX_SIDE_KEPT)
    assert verdict.good and verdict.advice == ()
    assert verdict.forgotten.tolist() == forgotten.tolist()
    # One rung where they remember, and one where it is not known.
    forgotten[3], forgotten[7] = 1.26, np.nan
    verdict = judge(equilibrated(), 0, forgotten=forgotten, side_kept=0.1)
    assert np.flatnonzero(~verdict.equilibrated).tolist() == [3, 7]
    assert verdict.reasons[3] == (NO_TRIPS, Reason(Kind.MEMORY, "", 1.26, MIN_FORGOTTEN))
    assert verdict.reasons[7] == (NO_TRIPS,)
    assert verdict.causes == {Kind.ROUND_TRIPS: 2, Kind.MEMORY: 1}
    assert actions(verdict)[-1] == Action.DECORRELATE
    alike = judge(equilibrated(), 0, forgotten=forgotten, side_kept=0.1, started_apart=False)
    for other in (alike, judge(equilibrated(), 0)):
        assert Action.DECORRELATE not in actions(other)
    assert judge(equilibrated(), 1, forgotten=forgotten).good
    assert np.isnan(judge(equilibrated(), 1).forgotten).all()


def test_forgetting_is_no_excuse_without_copies_that_started_apart() -> None:
    often = np.full(RUNGS, 50.0)
    alike = judge(equilibrated(), 0, forgotten=often, side_kept=0.0, started_apart=False)
    one = judge(equilibrated(1, copies=1, draws=600), 0, forgotten=often, side_kept=0.0)
    assert alike.reasons == one.reasons == ((NO_TRIPS,),) * RUNGS


def test_forgetting_is_no_excuse_for_replicas_that_keep_to_their_side() -> None:
    often, pair = np.full(RUNGS, 50.0), (0.66, 0.78)
    verdict = judge(equilibrated(), 0, forgotten=often, side_kept=0.79, side_of=pair)
    side = Reason(Kind.SIDE, "", 0.79, MAX_SIDE_KEPT, pair)
    assert verdict.reasons == ((NO_TRIPS, side),) * RUNGS
    assert actions(verdict)[-2] == Action.DECORRELATE
    assert verdict.advice[-1] == Advice(Action.START_BOTH_SIDES, ("start.weights",), "annealed")
    # Not known is not passed, and with round trips nobody asks.
    assert judge(equilibrated(), 0, forgotten=often).reasons == ((NO_TRIPS,),) * RUNGS
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
    assert verdict.reasons[0] == (Reason(Kind.TOO_SHORT, LOSS, float(draws), MIN_DRAWS),)
    assert "run.score_every" in verdict.advice[0].settings
    # What cannot be told is no good number.
    assert verdict.ess.max() == 0 or draws >= 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["energy", LOSS])
def test_what_is_not_finite_is_named(name: str, bad: float) -> None:
    series = equilibrated()[name][..., FAULTY]
    series[1, 3] = bad
    observables = with_fault(name, series)
    assert only_reasons(observables) == (Reason(Kind.NOT_FINITE, name, 1.0, 0.0),)
    verdict = judge(observables, 1)
    assert verdict.rhat[FAULTY] == np.inf and verdict.ess[FAULTY] == 0
    assert Action.CHECK_FINITE in actions(verdict)


def test_a_second_fault_is_named_beside_one_that_is_not_finite() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    series[2] += 3 * series.std()
    observables = with_fault(SQUARE, series)
    observables[LOSS][0, 0, FAULTY] = np.nan
    kinds = [reason.kind for reason in only_reasons(observables)]
    assert kinds[0] == Kind.NOT_FINITE and Kind.RHAT in kinds


def test_replicas_that_turn_back_are_told_to_decorrelate() -> None:
    (held,) = judge(equilibrated(), 0, 0.4).advice
    assert held == Advice(Action.LENGTHEN_TRAJECTORIES, ("dynamics.num_steps",), value=0.4)
    free, unknown = judge(equilibrated(), 0, 0.8), judge(equilibrated(), 0)
    assert actions(free) == actions(unknown) == [Action.IMPROVE_LADDER]
    assert judge(equilibrated(), 1, 0.4).advice == ()


def test_where_replicas_turn_back_is_told() -> None:
    (narrow,) = judge(equilibrated(), 0, 0.4, (2.7, 4.1)).advice
    assert narrow.action == Action.PASS_BOTTLENECK and narrow.where == (2.7, 4.1)
    assert "ladder.temperatures" in narrow.settings
    assert judge(equilibrated(), 1, 0.4, (2.7, 4.1)).advice == ()


def test_advice_fits_the_fault() -> None:
    series = equilibrated()[SQUARE][..., FAULTY]
    drifting = judge(with_fault(SQUARE, series + 3 * series.std() * RAMP), 1)
    assert drifting.advice[0] == Advice(Action.BURN_IN, ("run.burn_in",))
    assert Action.IMPROVE_LADDER not in actions(drifting)
    frozen = equilibrated()
    for observable in frozen.values():
        observable[..., FAULTY] = 0.1
    assert judge(frozen, 1).advice == (Advice(Action.SAMPLE_LONGER, ("run.rounds",)),)
    (apart,) = judge(equilibrated(), 1, started_apart=False).advice
    assert (apart.action, apart.choice) == (Action.START_APART, "apart")


def test_each_kind_of_cause_is_counted_once_a_rung() -> None:
    frozen = {name: np.full_like(series, 0.1) for name, series in equilibrated().items()}
    verdict = judge(frozen, 0)
    assert verdict.causes == {Kind.ESS: RUNGS, Kind.ROUND_TRIPS: RUNGS}
    assert verdict.as_dict() == {
        "equilibrated": False,
        "failed": RUNGS,
        "causes": {"ess": RUNGS, "round_trips": RUNGS},
        "advice": [advice._asdict() for advice in verdict.advice],
    }


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


@pytest.mark.parametrize("name", ["energy", SQUARE, LOSS])
@pytest.mark.parametrize("sign", [1, -1])
def test_heated_and_cooled_copies_have_to_agree_more_closely(name: str, sign: int) -> None:
    observables = equilibrated(draws=1000)
    series = observables[name][..., FAULTY]
    series[1::2] += sign * 0.7 * series.std()
    assert judge(observables, 3).good
    verdict = judge(observables, 3, both_sides=True)
    assert np.flatnonzero(~verdict.equilibrated).tolist() == [FAULTY]
    (reason,) = verdict.reasons[FAULTY]
    assert (reason.label, reason.limit) == (f"rhat:{name}", MAX_RHAT_FROM_BOTH_SIDES)
    assert MAX_RHAT_FROM_BOTH_SIDES < reason.value < MAX_RHAT


def test_reasons_are_numbers_and_names_and_never_sentences() -> None:
    """Nothing in a verdict has to be parsed: texts in it are names without a space."""
    frozen = {name: np.full_like(series, np.nan) for name, series in equilibrated().items()}
    frozen[SQUARE] = np.full_like(frozen[SQUARE], 0.1)
    frozen[LOSS] = frozen[LOSS][:, :3]
    verdict = judge(frozen, 0, forgotten=np.ones(RUNGS), side_kept=1.0, side_of=(1.0, 2.0))
    assert set(verdict.causes) >= {Kind.NOT_FINITE, Kind.TOO_SHORT, Kind.ESS, Kind.SIDE}
    found = [reason for rung in verdict.reasons for reason in rung]
    assert all(type(reason) is Reason and type(reason.kind) is Kind for reason in found)
    assert all(
        type(number) is float for reason in found for number in (reason.value, *reason.where)
    )
    assert all(type(advice) is Advice for advice in verdict.advice)
    names = [name for reason in found for name in (reason.kind, reason.observable)]
    names += [name for advice in verdict.advice for name in (advice.action, *advice.settings)]
    assert not any(" " in name for name in names)
