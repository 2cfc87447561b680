"""Heat capacities, overlaps, bimodality and the best temperature, where the answer is known."""

import numpy as np
import pytest
from scipy import stats

from tempernet.diagnostics import thermo
from tempernet.diagnostics.thermo import (
    best_temperature,
    bimodality,
    heat_capacity,
    histogram_overlap,
)

TEMPERATURES = np.geomspace(0.1, 10, 21)


def test_the_heat_capacity_is_the_variance_over_the_squared_temperature() -> None:
    energy = np.array([[[1.0, 10.0], [3.0, 10.0]], [[5.0, 30.0], [7.0, 30.0]]])
    found = heat_capacity(energy, np.array([1.0, 2.0]))
    np.testing.assert_allclose(found.mean, [5.0, 25.0])


def test_the_heat_capacity_of_the_prior_is_zero_and_that_of_a_constant_energy_too() -> None:
    energy = np.random.default_rng(0).normal(size=(2, 50, 2))
    energy[..., 0] = 3.1
    found = heat_capacity(energy, np.array([1.0, np.inf]))
    assert found.mean.tolist() == [0, 0] and found.error.tolist() == [0, 0]


def test_the_heat_capacity_of_a_harmonic_energy_is_half_a_unit_per_dimension() -> None:
    temperatures = np.array([0.01, 1.0, 300.0])
    energy = temperatures * np.random.default_rng(1).gamma(40 / 2, size=(4, 5000, 3))
    found = heat_capacity(energy.astype(np.float32), temperatures)
    np.testing.assert_allclose(found.mean, 20, atol=4 * found.error.max())
    assert found.error.max() < 0.5


def test_identical_energies_overlap_wholly_and_disjoint_ones_not_at_all() -> None:
    one = np.random.default_rng(2).normal(size=(2, 300))
    np.testing.assert_allclose(
        histogram_overlap(np.stack([one, one, one + 20, one + 40], axis=-1)), [1, 0, 0]
    )


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 4.0])
def test_shifted_normal_energies_overlap_by_a_known_area(shift: float) -> None:
    energy = np.random.default_rng(3).normal(size=(4, 10_000, 2)) + np.array([0.0, shift])
    expected = 2 * stats.norm.cdf(-shift / 2)
    assert histogram_overlap(energy.astype(np.float32))[0] == pytest.approx(expected, abs=0.02)


def test_an_outlier_does_not_make_disjoint_energies_overlap() -> None:
    energy = np.random.default_rng(4).uniform(size=(1, 500, 2)) + np.array([0.0, 2.0])
    energy[0, 0, 1] = 1e6
    assert histogram_overlap(energy)[0] < 0.01
    # As it does with bins of equal width.
    edges = np.histogram_bin_edges(energy, 20)
    lower, upper = (np.histogram(energy[..., k], edges)[0] / 500 for k in range(2))
    assert np.minimum(lower, upper).sum() > 0.99


def test_frozen_energies_overlap_if_they_are_the_same() -> None:
    np.testing.assert_allclose(
        histogram_overlap(np.full((1, 10, 1), 2.0) + np.array([0.0, 0.0, 1.0])), [1, 0]
    )
    assert histogram_overlap(np.zeros((2, 10, 1))).shape == (0,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([-1.0, 1.0]), 1.0),
        (np.array([-1.0, -1.0, 1.0]), 1.0),
        (stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000), 1 / 3),
        (np.linspace(0, 1, 100_001), 5 / 9),
        # The exponential has skewness 2 and kurtosis 9.
        (stats.expon.ppf((np.arange(1_000_000) + 0.5) / 1_000_000), 5 / 9),
    ],
)
def test_bimodality_of_known_shapes(values: np.ndarray, expected: float) -> None:
    assert bimodality(values) == pytest.approx(expected, abs=1e-3)
    assert bimodality(1e-3 * values + 7) == pytest.approx(bimodality(values), rel=1e-6)


def test_bimodality_tells_two_peaks_from_one_but_not_where_they_merge() -> None:
    noise = np.random.default_rng(5).normal(size=10_000)
    sides = np.random.default_rng(6).choice([-1.0, 1.0], size=10_000)
    assert bimodality(noise + 5 * sides) > 0.85 > 0.4 > bimodality(noise + 0.5 * sides)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bimodality_of_a_constant_is_unknown(dtype: type) -> None:
    # 0.1 a thousand times has a mean that is not 0.1.
    assert np.isnan(bimodality(np.full(1000, 0.1, dtype)))


def test_bimodality_does_not_lose_its_digits_in_single_precision() -> None:
    values = np.tile(np.array([100_000.0, 100_001.0], np.float32), 5000)
    assert bimodality(values) == pytest.approx(1, abs=1e-9)


def losses(rung: int, noise: float, copies: int = 4, draws: int = 60, seed: int = 0) -> np.ndarray:
    """A parabola in log T with independent noise."""
    curve = np.square(np.log(TEMPERATURES / TEMPERATURES[rung]))
    return curve + noise * np.random.default_rng(seed).normal(
        size=(copies, draws, len(TEMPERATURES))
    )


@pytest.mark.parametrize("copies", [1, 4])
def test_the_best_temperature_of_a_clear_valley(copies: int) -> None:
    best = best_temperature(losses(8, 1e-3, copies), TEMPERATURES)
    assert (best.rung, best.temperature, best.low, best.high) == (8, *[TEMPERATURES[8]] * 3)
    assert best.resolved and best.at_end == "" and best.unresolved_sides == ()


@pytest.mark.parametrize("copies", [1, 4])
def test_noise_widens_the_interval_but_not_beyond_the_valley(copies: int) -> None:
    best = best_temperature(losses(8, 1.0, copies), TEMPERATURES)
    assert (
        best.low < TEMPERATURES[8] < best.high
        and TEMPERATURES[2] < best.low
        and best.high < TEMPERATURES[14]
    )
    assert best.resolved


@pytest.mark.parametrize(("rung", "end"), [(0, "lowest"), (20, "highest")])
def test_a_minimum_at_an_end_is_said_to_be_there(rung: int, end: str) -> None:
    best = best_temperature(losses(rung, 1e-3), TEMPERATURES)
    assert best.rung == rung and best.at_end == end and not best.resolved
    assert best.unresolved_sides == (end,)


def test_a_plateau_is_not_resolved() -> None:
    curve = np.maximum(0, np.log(TEMPERATURES / TEMPERATURES[12]))
    noise = 0.3 * np.random.default_rng(0).normal(size=(4, 60, 21))
    best = best_temperature(curve + noise, TEMPERATURES)
    assert 0 < best.rung < 13 and best.at_end == "" and not best.resolved
    assert best.unresolved_sides == ("lowest",)
    assert best.low <= TEMPERATURES[2] and TEMPERATURES[8] <= best.high <= TEMPERATURES[14]


def test_nothing_is_resolved_in_pure_noise() -> None:
    loss = np.random.default_rng(1).normal(size=(4, 60, 21))
    best = best_temperature(loss, TEMPERATURES)
    assert not best.resolved and best.high / best.low > 10


def test_copies_that_disagree_widen_the_interval() -> None:
    """One valley each, far apart: draws of any one copy know nothing of it."""
    valleys = [losses(rung, 1e-3, copies=1) for rung in (4, 8, 12, 16)]
    best = best_temperature(np.concatenate(valleys), TEMPERATURES)
    assert best.low <= TEMPERATURES[8] and best.high >= TEMPERATURES[12]


def test_the_best_temperature_is_the_same_for_the_same_seed_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thermo, "BOOTSTRAP", 20)
    found = [
        best_temperature(losses(8, 10.0), TEMPERATURES, seed) for seed in (0, 1, 2, 3, 0, 1, 2, 3)
    ]
    assert found[:4] == found[4:] and len(set(found)) > 1


def test_a_loss_that_is_not_a_number_is_no_minimum() -> None:
    loss = losses(8, 1e-3)
    loss[1, 3, 17] = np.nan
    loss[2, 5, 18] = np.inf
    best = best_temperature(loss, TEMPERATURES)
    assert best.rung == 8 and best.resolved


def test_a_single_temperature_and_a_single_draw() -> None:
    best = best_temperature(np.ones((1, 1, 1)), np.array([2.0]))
    assert (best.temperature, best.low, best.high, best.resolved) == (2.0, 2.0, 2.0, False)
