"""Averages, effective sample sizes and R-hat where they are known exactly, at any scale, and of
series that freeze.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from tempernet.diagnostics.statistics import (
    average,
    blocks,
    drift,
    effective_sample_size,
    split_rhat,
)

INDEPENDENT = np.random.default_rng(0).normal(size=(4, 100, 3))
APART = np.broadcast_to(np.arange(4.0)[:, None, None], (4, 100, 3))
"""Four copies, each frozen at its own value."""


def test_the_mean_is_that_of_all_draws_and_keeps_the_shape_of_one() -> None:
    series = np.random.default_rng(1).normal(size=(2, 30, 3, 5))
    found = average(series)
    np.testing.assert_allclose(found.mean, series.mean(axis=(0, 1)), atol=1e-15)
    assert found.error.shape == (3, 5) and np.all(found.error > 0)
    assert np.shape(average(series[..., 0, 0]).error) == ()


def test_the_error_of_many_independent_draws_is_that_of_the_text_books() -> None:
    series = np.random.default_rng(2).normal(size=(1, 100_000, 1)) * 3
    assert average(series).error[0] == pytest.approx(3 / np.sqrt(100_000), rel=0.02)


@pytest.mark.parametrize("copies", [2, 3, 10])
def test_copies_frozen_apart_have_the_error_of_students_t(copies: int) -> None:
    series = np.broadcast_to(np.random.default_rng(3).normal(size=(copies, 1, 6)), (copies, 50, 6))
    stretch = stats.t.ppf(0.95, copies - 1) / stats.norm.ppf(0.95)
    expected = stretch * series[:, 0].std(axis=0, ddof=1) / np.sqrt(copies)
    np.testing.assert_allclose(average(series).error, expected, rtol=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e5])
def test_a_constant_has_no_error_no_drift_and_is_worth_one_draw_a_copy(value: float) -> None:
    series = np.full((3, 40, 2), value)
    found = average(series)
    assert np.all(found.mean == value) and np.all(found.error == 0)
    assert np.all(drift(series) == 0) and np.all(split_rhat(series) == 1)
    assert np.all(effective_sample_size(series) == 3)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e200])
def test_the_scale_does_not_matter(scale: float) -> None:
    found, expected = average(scale * INDEPENDENT), average(INDEPENDENT)
    np.testing.assert_allclose(found.mean / scale, expected.mean, rtol=1e-10)
    np.testing.assert_allclose(found.error / scale, expected.error, rtol=1e-10)
    np.testing.assert_allclose(
        effective_sample_size(scale * INDEPENDENT), effective_sample_size(INDEPENDENT)
    )
    np.testing.assert_allclose(drift(scale * INDEPENDENT), drift(INDEPENDENT), rtol=1e-9)
    # The two draws beside the median are equally far from it, but for rounding, which swaps their
    # ranks.
    np.testing.assert_allclose(split_rhat(scale * INDEPENDENT), split_rhat(INDEPENDENT), rtol=1e-3)


def test_the_offset_does_not_matter() -> None:
    found, expected = average(INDEPENDENT + 1e9), average(INDEPENDENT)
    np.testing.assert_allclose(found.mean - 1e9, expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.error, expected.error, rtol=1e-5)


def test_energies_in_single_precision_are_added_in_double() -> None:
    series = np.full((4, 5000, 1), 16_777_215.0, np.float32)
    series[:, ::2] = 16_777_213.0
    assert average(series).mean[0] == 16_777_214.0


@pytest.mark.parametrize("draws", [0, 1, 2, 3])
def test_fewer_than_four_draws_say_nothing_about_their_correlation(draws: int) -> None:
    series = INDEPENDENT[:, :draws]
    assert np.isnan(effective_sample_size(series)).all() and np.isnan(split_rhat(series)).all()
    assert np.isnan(average(series[:1]).error).all()
    # The copies still do.
    assert np.isfinite(average(series).error).all() == (draws > 0)
    assert np.isnan(average(series).mean).all() == (draws == 0)


def test_four_draws_are_enough() -> None:
    series = INDEPENDENT[:1, :4]
    for value in (average(series).error, effective_sample_size(series), split_rhat(series)):
        assert np.isfinite(value).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_makes_its_own_column_unknown_and_no_other(bad: float) -> None:
    series = INDEPENDENT.copy()
    series[1, 7, 1] = bad
    for statistic in (
        effective_sample_size,
        split_rhat,
        drift,
        lambda x: average(x).mean,
        lambda x: average(x).error,
    ):
        assert np.isnan(statistic(series)).tolist() == [False, True, False]


def test_never_more_effective_draws_than_draws() -> None:
    alternating = np.tile([1.0, -1.0], 50).reshape(1, 100, 1) + 0.01 * INDEPENDENT[:1, :, :1]
    assert effective_sample_size(alternating)[0] == 100
    assert np.all(effective_sample_size(INDEPENDENT[:, :8]) <= 32)


def test_rhat_is_that_of_arviz_for_several_copies() -> None:
    for series in (
        INDEPENDENT,
        INDEPENDENT[:2, :7],
        INDEPENDENT + 0.5 * APART,
        np.exp(3 * INDEPENDENT),
    ):
        expected = array_stats.rhat(series, chain_axis=0, draw_axis=1, method="rank")
        np.testing.assert_allclose(split_rhat(series), expected, rtol=1e-12)


def test_rhat_is_near_one_for_independent_draws_and_large_for_copies_apart() -> None:
    many = np.random.default_rng(4).normal(size=(4, 400, 50))
    assert split_rhat(many).max() < 1.02
    assert split_rhat(many + 3 * np.arange(4)[:, None, None]).min() > 2
    # The same mean, another width.
    assert split_rhat(many * np.array([1, 1, 1, 5.0])[:, None, None]).min() > 1.1


def test_rhat_of_one_copy_compares_its_halves() -> None:
    one = np.random.default_rng(5).normal(size=(1, 400, 20))
    assert split_rhat(one).max() < 1.05
    assert split_rhat(one + 2 * (np.arange(400) >= 200)[:, None]).min() > 1.5


def test_rhat_is_infinite_for_copies_frozen_apart_and_for_halves_frozen_apart() -> None:
    assert np.all(split_rhat(APART) == np.inf)
    step = np.broadcast_to((np.arange(100) >= 50)[:, None], (4, 100, 3)) + 0.1
    assert np.all(split_rhat(step) == np.inf)


def test_rhat_of_two_values_that_mix_is_near_one() -> None:
    assert np.abs(split_rhat(np.where(INDEPENDENT > 0, 0.1, 0.7)) - 1).max() < 0.05


def test_drift_is_the_change_in_units_of_its_error_and_has_its_sign() -> None:
    noise = np.random.default_rng(6).normal(size=(4, 400, 30))
    ramp = np.linspace(0, 2, 400)[:, None]
    up, down = drift(noise + ramp), drift(noise - ramp)
    assert up.min() > 4 and down.max() < -4
    change = (noise + ramp)[:, 200:].mean(axis=(0, 1)) - (noise + ramp)[:, :200].mean(axis=(0, 1))
    # Differences of independent draws have twice their variance.
    np.testing.assert_allclose(np.median(up / change), 1 / np.sqrt(2 / 800), rtol=0.1)


def test_a_pure_drift_is_infinitely_many_errors_large() -> None:
    line = np.broadcast_to(np.arange(64.0)[:, None], (2, 64, 1))
    assert drift(line)[0] == np.inf and drift(-line)[0] == -np.inf
    # An odd number of draws leaves out the one in the middle.
    assert drift(line[:, :63])[0] == np.inf


def test_copies_apart_do_not_hide_a_drift() -> None:
    noise = np.random.default_rng(7).normal(size=(4, 400, 30))
    apart = noise + np.linspace(0, 2, 400)[:, None] + 50 * np.arange(4)[:, None, None]
    assert drift(apart).min() > 4
    # They do in the difference of two averages, each with its error.
    first, second = average(apart[:, :200]), average(apart[:, 200:])
    assert np.max(np.abs(second.mean - first.mean) / np.hypot(first.error, second.error)) < 1


def test_a_bootstrap_sample_is_copies_with_replacement_in_circular_blocks() -> None:
    copies, rows = blocks(np.random.default_rng(8), 5, 103)
    assert copies.shape == rows.shape == (5, 103)
    assert np.all(copies == copies[:, :1]) and rows.min() >= 0 and rows.max() < 103
    steps = np.diff(rows, axis=1) % 103
    # Blocks of ten, so nine steps of ten are to the next draw.
    inside = np.arange(102) % 10 != 9
    assert np.all(steps[:, inside] == 1) and np.mean(steps[:, ~inside] == 1) < 0.2


def test_bootstrap_samples_take_every_draw_equally_often() -> None:
    rng = np.random.default_rng(9)
    counts = np.zeros((3, 20))
    for _ in range(3000):
        np.add.at(counts, blocks(rng, 3, 20), 1)
    # 60 draws a sample, spread over 60 places; copies and blocks come together, so counts vary more
    # than Poisson's.
    np.testing.assert_allclose(counts / 3000, 1, atol=0.1)


@pytest.mark.parametrize(("copies", "draws"), [(1, 1), (1, 7), (3, 2)])
def test_bootstrap_samples_of_little(copies: int, draws: int) -> None:
    chosen, rows = blocks(np.random.default_rng(10), copies, draws)
    assert (
        chosen.shape == rows.shape == (copies, draws)
        and rows.max() < draws
        and chosen.max() < copies
    )
