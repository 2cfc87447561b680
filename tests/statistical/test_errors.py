"""Do errors and intervals hold what they promise? Hundreds of seeds each, beside errors known to be
too small.
"""

import numpy as np
import pytest
from scipy import signal, stats

from tempernet.diagnostics import thermo
from tempernet.diagnostics.statistics import Estimate, average, drift, effective_sample_size
from tempernet.diagnostics.thermo import best_temperature, heat_capacity

SEEDS = 500
"""The last axis of a series."""


def autoregressive(
    seed: int,
    copies: int,
    draws: int,
    correlation: float,
    *,
    offsets: float = 0.0,
    seeds: int = SEEDS,
) -> np.ndarray:
    """AR(1) of mean 0 and variance 1 from its own distribution, and for each copy an offset of its
    own.
    """
    rng = np.random.default_rng(seed)
    kicks = rng.normal(size=(copies, draws, seeds))
    kicks[:, 1:] *= np.sqrt(1 - correlation**2)
    return signal.lfilter([1], [1, -correlation], kicks, axis=1) + offsets * rng.normal(
        size=(copies, 1, seeds)
    )


def coverage(found: Estimate, truth: float = 0.0) -> tuple[float, float]:
    """Shares of the seeds within one error and within two."""
    off = np.abs(found.mean - truth) / found.error
    return float(np.mean(off < 1)), float(np.mean(off < 2))


def holds(shares: tuple[float, float], least: tuple[float, float] = (0.66, 0.94)) -> bool:
    """Whether so many are within one error, but not absurdly many, and within two, three binomial
    errors aside.
    """
    noise = [3 * np.sqrt(p * (1 - p) / SEEDS) for p in least]
    return least[0] - noise[0] <= shares[0] < 0.9 and shares[1] >= least[1] - noise[1]


def naive(series: np.ndarray) -> Estimate:
    """The error of independent draws."""
    flat = series.reshape(-1, series.shape[-1])
    return Estimate(flat.mean(axis=0), flat.std(axis=0, ddof=1) / np.sqrt(len(flat)))


def within_only(series: np.ndarray) -> Estimate:
    """The errors of the copies, put together as if the copies had nothing slower in them."""
    errors = np.stack([average(copy[None]).error for copy in series])
    return Estimate(series.mean(axis=(0, 1)), np.sqrt(np.square(errors).sum(axis=0)) / len(series))


@pytest.mark.parametrize("draws", [200, 1000])
@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_error_of_a_mean_covers_the_truth(correlation: float, copies: int, draws: int) -> None:
    series = autoregressive(1, copies, draws, correlation)
    assert holds(coverage(average(series))), coverage(average(series))
    assert holds(coverage(naive(series))) == (correlation == 0)


@pytest.mark.parametrize(("copies", "within_two"), [(2, 0.8), (4, 0.9)])
@pytest.mark.parametrize(
    ("correlation", "draws", "offsets"), [(0.0, 200, 0.5), (0.5, 200, 1.0), (0.9, 200, 1.0)]
)
def test_modes_slower_than_a_copy_are_covered(
    correlation: float, draws: int, offsets: float, copies: int, within_two: float
) -> None:
    # Two copies that agree by chance cannot know that they should not, so fewer are within two
    # errors.
    series = autoregressive(2, copies, draws, correlation, offsets=offsets)
    assert holds(coverage(average(series)), (0.66, within_two)), coverage(average(series))
    assert not holds(coverage(within_only(series)), (0.66, within_two))


def test_the_error_within_copies_is_good_enough_where_nothing_is_slower() -> None:
    assert holds(coverage(within_only(autoregressive(3, 4, 400, 0.5))))


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_effective_sample_size_is_that_of_an_autoregressive_series(
    correlation: float, copies: int
) -> None:
    ess = effective_sample_size(autoregressive(4, copies, 2000, correlation, seeds=60))
    expected = copies * 2000 * (1 - correlation) / (1 + correlation)
    assert np.median(ess) == pytest.approx(expected, rel=0.08)
    assert np.all(ess < 1.6 * expected) and np.all(ess > expected / 1.9)


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize(("correlation", "draws"), [(0.0, 100), (0.5, 300), (0.9, 1000)])
def test_drift_is_rarely_four_errors_by_chance_and_is_seen_where_there_is_one(
    correlation: float, draws: int, copies: int
) -> None:
    series = autoregressive(5, copies, draws, correlation)
    found = drift(series)
    # About 0.1 % may be, so that three of 500 are a lot.
    assert np.sum(np.abs(found) > 4) <= 3
    # Not for being too large an error: some are beyond one.
    assert 0.15 < np.mean(np.abs(found) > 1) < 0.4
    ramp = 6 * np.linspace(0, 1, draws)[:, None]
    assert np.mean(drift(series[..., :100] + ramp) > 4) > 0.85
    assert np.mean(drift(series[..., :100] - ramp) < -4) > 0.85


def test_drift_with_a_naive_error_cries_wolf() -> None:
    series = autoregressive(5, 4, 1000, 0.9)
    first, second = naive(series[:, :500]), naive(series[:, 500:])
    found = (second.mean - first.mean) / np.hypot(first.error, second.error)
    assert np.sum(np.abs(found) > 4) > 100


def energies(kind: str, series: np.ndarray) -> tuple[np.ndarray, float]:
    """Energies as the device has them, in single precision, with their variance; the gamma ones are
    skew.
    """
    if kind == "gamma":
        return (1e5 + 7 * stats.gamma.ppf(stats.norm.cdf(series), 3.0)).astype(np.float32), 49 * 3.0
    return (1e5 + 7 * series).astype(np.float32), 49.0


@pytest.mark.parametrize(("copies", "draws"), [(1, 1000), (4, 400)])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["normal", "gamma"])
def test_the_error_of_the_heat_capacity_covers_the_truth(
    kind: str, correlation: float, copies: int, draws: int
) -> None:
    energy, variance = energies(kind, autoregressive(6, copies, draws, correlation))
    found = heat_capacity(energy, np.full(SEEDS, 2.0))
    assert holds(coverage(found, variance / 4)), coverage(found, variance / 4)
    assert found.mean.mean() == pytest.approx(variance / 4, rel=0.01)
    # The variance of independent normal energies has the relative error sqrt(2 / N); others have a
    # larger one.
    text_book = Estimate(found.mean, found.mean * np.sqrt(2 / (copies * draws)))
    assert holds(coverage(text_book, variance / 4)) == (kind == "normal" and correlation == 0)


LADDER = np.geomspace(0.1, 10, 41)


def valley(
    seed: int, copies: int, correlation: float, *, shared: bool, seeds: int = 120
) -> np.ndarray:
    """Losses (seeds, copies, draws, rungs): a parabola in log T about rung 15, with noise.

    The noise tilts the parabola, so that its minimum moves by whole rungs, or is independent at
    every rung.
    """
    position = np.arange(41) - 15.0
    draws = 150
    if shared:
        tilt = autoregressive(seed, copies, draws, correlation, seeds=seeds)
        noise = 60 * np.moveaxis(tilt, -1, 0)[..., None] * position
    else:
        flat = autoregressive(seed, copies, draws, correlation, seeds=41 * seeds)
        noise = 100 * np.moveaxis(flat.reshape(copies, draws, seeds, 41), 2, 0)
    return position**2 + noise


def intervals_hold(losses: np.ndarray) -> tuple[float, float]:
    """The share of the intervals that hold rung 15, and their mean width in rungs."""
    found = [best_temperature(loss, LADDER, seed) for seed, loss in enumerate(losses)]
    held = [best.low <= LADDER[15] <= best.high for best in found]
    return float(np.mean(held)), float(
        np.mean([np.log(best.high / best.low) for best in found]) / np.log(LADDER[1] / 0.1)
    )


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("copies", [1, 4])
def test_the_interval_of_the_best_temperature_covers_the_truth(
    copies: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thermo, "BOOTSTRAP", 200)
    share, width = intervals_hold(valley(7, copies, 0.5, shared=shared))
    assert share >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 120), share
    assert 4 < width < 30


def test_an_interval_from_single_draws_instead_of_blocks_misses_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def single(rng: np.random.Generator, copies: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.integers(copies, size=(copies, draws)), rng.integers(draws, size=(copies, draws))

    monkeypatch.setattr(thermo, "BOOTSTRAP", 200)
    losses = valley(7, 1, 0.8, shared=True)
    right, _ = intervals_hold(losses)
    monkeypatch.setattr(thermo, "blocks", single)
    wrong, _ = intervals_hold(losses)
    assert wrong < 0.65 and right > wrong + 0.15
