"""The adaptive ladder on Gaussian energies whose mean-energy curve, and so whose every swap rate,
is known.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

from tempernet.paths import ladders
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.ladders import interpolate_steps, place, stretched, swap_rates_at
from tempernet.paths.temperatures import beta_path, temperature_path

GEOMETRIC = np.geomspace(0.01, 100, 56)


def measure_barrier(
    temperatures: np.ndarray, swap_rate: np.ndarray, mean_energy: np.ndarray
) -> ladders.Barrier:
    return ladders.measure_barrier(temperature_path(temperatures), swap_rate, mean_energy[:, None])


def Barrier(temperatures: np.ndarray, steps: np.ndarray) -> ladders.Barrier:  # noqa: N802
    return ladders.Barrier(temperature_path(temperatures), steps)


class Gaussian(NamedTuple):
    """Normal energies with dU/dT = C(T): `constant`, and a transition of `latent` heat at T = 1, as
    wide as `width`.
    """

    constant: float
    latent: float
    width: float

    def mean_energy(self, temperatures: np.ndarray) -> np.ndarray:
        step = 0.5 * (1 + np.tanh(np.log(temperatures) / self.width))
        return self.constant * temperatures + self.latent * step

    def variance(self, temperatures: np.ndarray) -> np.ndarray:
        """T^2 C(T)."""
        rise = (
            0.5
            / np.cosh(np.clip(np.log(temperatures) / self.width, -300, 300)) ** 2
            / self.width
            / temperatures
        )
        return temperatures**2 * (self.constant + self.latent * rise)

    def swap_rate(self, temperatures: np.ndarray) -> np.ndarray:
        """E[min(1, e^X)] of X = (beta - beta')(E - E'), which is normal."""
        gap = -np.diff(1 / temperatures)
        mean = -gap * np.diff(self.mean_energy(temperatures))
        variance = self.variance(temperatures)
        spread = gap * np.sqrt(variance[:-1] + variance[1:])
        return norm.cdf(mean / spread) + np.exp(
            mean + spread**2 / 2 + norm.logcdf(-(mean + spread**2) / spread)
        )

    def measure(self, temperatures: np.ndarray) -> ladders.Barrier:
        return measure_barrier(
            temperatures, self.swap_rate(temperatures), self.mean_energy(temperatures)
        )


TRANSITIONS = [
    Gaussian(5, 100, 0.02),
    Gaussian(20, 500, 0.05),
    Gaussian(5, 2000, 0.01),
    Gaussian(5, 300, 0.005),
]


def test_the_known_swap_rate_is_that_of_draws() -> None:
    system, temperatures = TRANSITIONS[1], np.array([0.9, 1.0, 1.05, 2.0])
    rng = np.random.default_rng(0)
    energy = system.mean_energy(temperatures) + np.sqrt(system.variance(temperatures)) * rng.normal(
        size=(100_000, 4)
    )
    exponent = -np.diff(1 / temperatures) * -np.diff(energy, axis=1)
    rate = np.exp(np.minimum(0, exponent)).mean(axis=0)
    np.testing.assert_allclose(rate, system.swap_rate(temperatures), atol=0.005)


@pytest.mark.parametrize("system", TRANSITIONS)
def test_three_moves_bring_swaps_to_a_transition_that_has_none(system: Gaussian) -> None:
    ladder = GEOMETRIC
    assert system.swap_rate(ladder).min() < 1e-3
    for _ in range(3):
        ladder = place(system.measure(ladder), 56)
        assert np.all(np.diff(ladder) > 0)
        assert (ladder[0], ladder[-1]) == (GEOMETRIC[0], GEOMETRIC[-1])
    rates = system.swap_rate(ladder)
    assert rates.min() > 0.2
    # And they are nearly equal.
    assert rates.max() - rates.min() < 0.2


@pytest.mark.parametrize("system", TRANSITIONS)
def test_the_barrier_is_the_same_on_any_ladder(system: Gaussian) -> None:
    settled = GEOMETRIC
    for _ in range(6):
        settled = place(system.measure(settled), 56)
    total = system.measure(settled).total
    # The integral of the width of the energies over beta, over sqrt(pi).
    fine = np.exp(np.linspace(math.log(0.01), math.log(100), 1_000_001))
    exact = np.trapezoid(np.sqrt(system.variance(fine)) / fine**2, fine) / math.sqrt(math.pi)
    assert total == pytest.approx(exact, rel=0.03)
    # Also where many swaps are never accepted, and only the energies say how far it is.
    assert system.measure(GEOMETRIC).total == pytest.approx(exact, rel=0.3)


def test_noisy_measurements_will_do() -> None:
    system, ladder = TRANSITIONS[1], GEOMETRIC
    rng = np.random.default_rng(1)
    for _ in range(3):
        rate = rng.binomial(50, system.swap_rate(ladder)) / 50
        energy = system.mean_energy(ladder) + np.sqrt(system.variance(ladder) / 50) * rng.normal(
            size=56
        )
        ladder = place(measure_barrier(ladder, rate, energy), 56)
        assert np.all(np.diff(ladder) > 0)
    assert system.swap_rate(ladder).min() > 0.2


@pytest.mark.parametrize(("constant", "num"), [(0.5, 56), (50.0, 56), (50.0, 20), (3000.0, 56)])
def test_the_barrier_of_a_constant_heat_capacity_is_known(constant: float, num: int) -> None:
    system = Gaussian(constant, 0.0, 1.0)
    ladder = np.geomspace(0.01, 100, num)
    # Widths sqrt(C) T over d(beta) = dT / T^2. Wide intervals have not quite the same width at both
    # ends.
    expected = math.sqrt(constant / math.pi) * math.log(1e4)
    tolerance = 0.01 if num == 56 else 0.05
    assert system.measure(ladder).total == pytest.approx(expected, rel=tolerance)
    np.testing.assert_allclose(place(system.measure(ladder), num), ladder, rtol=1e-3)


def test_two_equal_widths_give_the_closed_form_interval_by_interval() -> None:
    width = np.array([0.01, 0.3, 1.0, 2.0])
    rejection = np.vectorize(math.erf)(width / 2)
    barrier = measure_barrier(np.geomspace(1, 2, 5), 1 - rejection, np.arange(5.0))
    np.testing.assert_allclose(barrier.steps, width / math.sqrt(math.pi), rtol=1e-12)


def test_rungs_that_never_swap_are_as_far_apart_as_their_energies_say() -> None:
    barrier = measure_barrier(
        np.array([0.5, 1.0, 2.0]), np.array([0.0, np.nan]), np.array([0.0, 100.0, 300.0])
    )
    np.testing.assert_allclose(barrier.steps, np.sqrt(np.array([100.0, 100.0]) / math.pi))
    # Energies that fall are noise; the rungs are still far apart.
    falling = measure_barrier(
        np.array([0.5, 1.0, 2.0]), np.array([0.0, np.nan]), np.array([5.0, 4.0, 3.0])
    )
    assert np.all(falling.steps > 1) and np.isfinite(falling.steps).all()


@pytest.mark.parametrize("rate", [1.0, 1.0000001, 1.5])
def test_swaps_that_always_succeed_are_no_barrier(rate: float) -> None:
    barrier = measure_barrier(np.array([1.0, 2.0, 4.0]), np.full(2, rate), np.zeros(3))
    assert barrier.total == 0 and barrier.rungs_wanted == 2
    np.testing.assert_allclose(place(barrier, 5), np.geomspace(1, 4, 5))


def test_the_prior_may_be_the_hottest_rung_of_what_is_measured() -> None:
    barrier = measure_barrier(
        np.array([1.0, 2.0, np.inf]), np.array([0.5, 0.0]), np.array([1.0, 5.0, 85.0])
    )
    np.testing.assert_allclose(barrier.steps[1], math.sqrt(0.5 * 80 / math.pi))


def test_about_twice_the_barrier_is_wanted() -> None:
    assert Barrier(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.2])).rungs_wanted == 12


@pytest.mark.parametrize("num", [2, 3, 9])
def test_ladders_of_two_rungs_can_be_measured_and_placed(num: int) -> None:
    barrier = measure_barrier(np.array([1.0, 16.0]), np.array([0.3]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(place(barrier, num), np.geomspace(1, 16, num))
    assert len(place(Barrier(GEOMETRIC, np.ones(55)), 2)) == 2


def test_rungs_are_at_equal_steps_of_the_barrier() -> None:
    barrier = Barrier(np.array([1.0, math.e, math.e**2, math.e**3]), np.array([1.0, 4.0, 1.0]))
    placed = np.log(place(barrier, 7))
    # Steps of one each: the known points are met exactly, and the middle interval has the three
    # between.
    np.testing.assert_allclose(placed[[0, 1, 5, 6]], [0, 1, 2, 3], atol=1e-12)
    assert np.all(np.diff(placed[1:6]) < 0.4)


def test_easy_stretches_keep_a_few_rungs() -> None:
    steps = np.zeros(55)
    steps[30] = 40.0
    placed = place(Barrier(GEOMETRIC, steps), 56)
    assert np.sum(placed < GEOMETRIC[30]) >= 3 and np.sum(placed > GEOMETRIC[31]) >= 2
    assert np.sum((placed >= GEOMETRIC[30]) & (placed <= GEOMETRIC[31])) > 40


def test_steps_are_interpolated_as_powers_of_the_temperature() -> None:
    old = np.geomspace(0.1, 10, 7)
    path = temperature_path(old)
    np.testing.assert_allclose(interpolate_steps(path, 0.3 * old**0.7, path), 0.3 * old**0.7)
    wanted = np.array([0.1, 0.37, 5.0, 10.0])
    found = interpolate_steps(path, 0.3 * old**0.7, temperature_path(wanted))
    np.testing.assert_allclose(found, 0.3 * wanted**0.7)
    np.testing.assert_allclose(
        interpolate_steps(path, old, temperature_path([0.01, 100.0])), [0.1, 10.0]
    )


def test_rungs_are_placed_up_to_the_prior() -> None:
    temperatures = np.array([1.0, 2.0, 4.0, 8.0, np.inf])
    placed = place(Barrier(temperatures, np.ones(4)), 9)
    np.testing.assert_allclose(placed[::2], temperatures)
    assert placed[-1] == np.inf and np.all(np.diff(placed) > 0)
    # Between beta = 0 and the smallest other, beta itself is halved or nearly so.
    assert 0.3 < 8.0 / placed[-2] < 0.7
    steps = interpolate_steps(
        temperature_path(temperatures), np.arange(1.0, 6.0), temperature_path(placed)
    )
    np.testing.assert_allclose(steps[::2], np.arange(1.0, 6.0))


@pytest.mark.parametrize("num", [4, 9, 10, 30])
def test_a_rung_that_stays_is_reached_in_whole_steps(num: int) -> None:
    temperatures = np.array([0.5, 1.0, 2.0, 4.0, 8.0, np.inf])
    barrier = ladders.Barrier(
        temperature_path(temperatures, stays=1.0), np.array([2.0, 1.0, 3.0, 1.0, 1.0])
    )
    placed = place(barrier, num)
    assert len(placed) == num and np.all(np.diff(placed) > 0)
    assert (placed[0], placed[-1]) == (0.5, np.inf) and np.sum(placed == 1.0) == 1
    # A quarter of the barrier lies below it.
    below = int(np.flatnonzero(placed == 1.0)[0])
    assert abs(below - (num - 1) / 4) <= 0.5 or below == 1
    # Equal steps on each side.
    alone = place(Barrier(temperatures[1:], barrier.steps[1:]), num - below)
    np.testing.assert_allclose(placed[below:-1], alone[:-1], rtol=0.1)
    # And nothing stays where nothing was asked to.
    assert num == 9 or 1.0 not in place(Barrier(temperatures, barrier.steps), num)


def test_the_three_paths_are_placed_alike() -> None:
    betas = np.array([0.0, 0.01, 0.1, 0.5, 1.0])
    rate, energy = np.array([0.5, 0.3, 0.6, 0.4]), np.array([500.0, 80.0, 30.0, 10.0, 8.0])[:, None]
    up = ladders.measure_barrier(beta_path(betas), rate, energy)
    with np.errstate(divide="ignore"):
        down = ladders.measure_barrier(temperature_path(1 / betas[::-1]), rate[::-1], energy[::-1])
    bridge = ladders.measure_barrier(
        bridge_path(1 - betas[::-1], Centre(0.0, 0.0, 1.0)),
        rate[::-1],
        np.concatenate([energy[::-1], 0 * energy], axis=1),
    )
    np.testing.assert_allclose(place(up, 12), 1 / place(down, 12)[::-1], atol=1e-12)
    np.testing.assert_allclose(place(up, 12), 1 - place(bridge, 12)[::-1], atol=1e-12)
    np.testing.assert_allclose(stretched(up.path), stretched(down.path)[::-1])


def test_far_bridges_are_as_far_apart_as_both_terms_say() -> None:
    # u' - u = (c' - c) . phi has the mean -0.5 * (-60 + 20) smaller at the second rung.
    phi = np.array([[100.0, 10.0], [40.0, 30.0]])
    barrier = ladders.measure_barrier(
        bridge_path([0.0, 0.5], Centre(0.0, 0.0, 1.0)), np.array([0.0]), phi[::-1]
    )
    np.testing.assert_allclose(barrier.steps, math.sqrt(0.5 * 80 / math.pi))


@pytest.mark.parametrize("system", [Gaussian(30.0, 0.0, 0.5), Gaussian(30.0, 400.0, 0.3)])
def test_the_barrier_tells_the_swap_rates_of_another_ladder(system: Gaussian) -> None:
    placed = place(system.measure(GEOMETRIC), len(GEOMETRIC))
    told = swap_rates_at(system.measure(placed), temperature_path(GEOMETRIC))
    np.testing.assert_allclose(told, system.swap_rate(GEOMETRIC), atol=0.03)
    # Not those of the ladder that was measured.
    own = system.swap_rate(placed)
    assert system.latent == 0 or np.abs(told - own).max() > 0.2
    np.testing.assert_allclose(
        swap_rates_at(system.measure(placed), temperature_path(placed)), own, atol=1e-6
    )
