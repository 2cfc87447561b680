"""Estimators on exact draws of a Gaussian path, and the closed forms of the quadratic."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, simpson
from scipy.stats import kstest, norm, truncnorm

from tempernet.evidence import (
    ESTIMATORS,
    LogRatio,
    PathSamples,
    Quadratic,
    disagreements,
    log_integrals,
    log_ratio,
)
from tempernet.evidence import mbar as multistate
from tempernet.evidence.bar import bar
from tempernet.evidence.estimators import stepping_stone, trapezoid
from tempernet.evidence.mbar import mbar
from tempernet.model.priors import Gaussian, UniformBox

RUNS = 60
WIDTHS = np.array([1.0, 5.0, 30.0])
FINE = np.concatenate([[0.0], np.geomspace(1e-2, 1.0, 15)])[::-1]
COARSE = np.array([1.0, 0.3, 0.05, 0.0])


def draws(
    seed: int, beta: np.ndarray, *, copies: int = 2, rounds: int = 100, memory: float = 0.0
) -> PathSamples:
    """E = sum a x^2 / 2 under exp(-beta E) and a unit normal prior; with a memory the rounds are an
    AR(1) series.
    """
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(copies, rounds, len(beta), len(WIDTHS)))
    unit = noise.copy()
    for t in range(1, rounds):
        unit[:, t] = memory * unit[:, t - 1] + math.sqrt(1 - memory**2) * noise[:, t]
    x = unit / np.sqrt(1 + beta[:, None] * WIDTHS)
    energy = 0.5 * np.sum(WIDTHS * x**2, axis=-1)
    return PathSamples(beta[:, None], energy[..., None].astype(np.float32))


def truth(beta: np.ndarray) -> float:
    """log Z(beta_last) - log Z(beta_first)."""
    log_z = [-0.5 * np.log1p(b * WIDTHS).sum() for b in beta]
    return float(log_z[-1] - log_z[0])


def scores(
    estimator: Callable[[PathSamples], np.ndarray], beta: np.ndarray, **options: Any
) -> np.ndarray:
    """How many errors each of many runs is off."""
    found = [log_ratio(estimator(draws(seed, beta, **options))) for seed in range(RUNS)]
    return np.array([(answer.value - truth(beta)) / answer.error for answer in found])


def sound(z: np.ndarray) -> bool:
    return bool(np.mean(np.abs(z) < 2) > 0.85 and abs(z.mean()) < 3.5 / math.sqrt(RUNS))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_right_within_its_error(name: str) -> None:
    z = scores(ESTIMATORS[name], FINE)
    assert sound(z) and z.std() > 0.5, z


@pytest.mark.parametrize("name", ["bar", "stepping stone", "trapezoid"])
def test_errors_know_of_correlation_in_time(name: str) -> None:
    assert sound(scores(ESTIMATORS[name], FINE, rounds=400, memory=0.8))


def test_errors_without_correlation_in_time_are_too_small() -> None:
    shuffled = np.random.default_rng(0)

    def broken(samples: PathSamples) -> np.ndarray:
        return shuffled.permuted(bar(samples), axis=1)

    z = [
        (answer.value - truth(FINE)) / answer.bootstrap
        for answer in (
            log_ratio(broken(draws(s, FINE, rounds=400, memory=0.8, copies=1))) for s in range(RUNS)
        )
    ]
    assert not np.mean(np.abs(z) < 2) > 0.85


def shifted(samples: PathSamples) -> PathSamples:
    """The samples of every rung taken for those of the next."""
    return replace(samples, phi=np.roll(samples.phi, 1, axis=2))


def uncorrected(samples: PathSamples, sign: float) -> np.ndarray:
    """Trapezoids whose correction has another factor."""
    gaps, slope = np.diff(samples.beta), samples.slope
    variance = np.square(slope - slope.mean(axis=(0, 1)))
    means = 0.5 * gaps * (slope[..., :-1] + slope[..., 1:])
    return -(means + sign * gaps**2 / 12 * np.diff(variance, axis=-1)).sum(axis=-1)


TWINS: dict[str, Callable[[PathSamples], np.ndarray]] = {
    "bar between the wrong rungs": lambda s: bar(shifted(s)),
    "bar upside down": lambda s: -bar(s),
    # To MBAR it makes no difference which rung a sample comes from, but it does whether all rungs
    # are there.
    "mbar of one rung's samples": lambda s: mbar(
        replace(s, phi=np.repeat(s.phi[:, :, :1], len(s.beta), 2))
    ),
    "stepping stone downwards with what leads upwards": lambda s: (
        -stepping_stone(replace(s, phi=np.roll(s.phi, -1, axis=2)))
    ),
    "stepping stone without the logarithm of the mean": lambda s: -s.work[0].sum(axis=-1),
    "stepping stone back without it": lambda s: -s.work[1].sum(axis=-1),
    "simpson as if the steps were equal": lambda s: (
        -s.slope @ simpson(np.eye(len(s.beta)), x=np.linspace(1, 0, len(s.beta)), axis=-1)
    ),
    "trapezoid corrected the wrong way": lambda s: uncorrected(s, -1.0),
}


@pytest.mark.parametrize("name", TWINS)
def test_broken_estimators_are_seen(name: str) -> None:
    assert not sound(scores(TWINS[name], FINE[::2]))


def test_the_correction_of_trapezoids_is_what_makes_them_right_on_a_coarse_path() -> None:
    beta = np.linspace(1.0, 0.2, 4)
    many = draws(0, beta, rounds=20_000)
    right, plain = (trapezoid(many).mean(), uncorrected(many, 0.0).mean())
    assert abs(right - truth(beta)) < 0.2 * abs(plain - truth(beta))
    assert uncorrected(many, 1.0).mean() == right


def test_mbar_leaves_jax_as_it_was() -> None:
    before = bool(jax.config.read("jax_enable_x64"))
    mbar(draws(0, COARSE))
    assert bool(jax.config.read("jax_enable_x64")) == before
    assert jnp.ones(1).dtype == (jnp.float64 if before else jnp.float32)


def test_a_thinned_mbar_is_the_same_within_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = draws(1, FINE, rounds=300)
    whole = log_ratio(mbar(samples))
    monkeypatch.setattr(multistate, "MBAR_COLUMNS", 3000)
    series = mbar(samples)
    thinned = log_ratio(series)
    assert series.shape == (2, 300)
    assert abs(thinned.value - whole.value) < 3 * thinned.error
    assert thinned.error > 1.2 * whole.error


def test_known_ends_of_copies_that_are_apart_are_added_copy_by_copy() -> None:
    samples, known = draws(2, FINE), np.array([10.0, 12.0])
    apart = log_integrals(samples, known, apart=True)
    for name, estimator in ESTIMATORS.items():
        each = [
            k - estimator(replace(samples, phi=phi[None])).mean()
            for k, phi in zip(known, samples.phi, strict=True)
        ]
        assert apart[name].value == pytest.approx(np.mean(each))
        assert apart[name].between == pytest.approx(np.std(each, ddof=1) / math.sqrt(2))


def test_estimators_that_do_not_agree_are_named() -> None:
    good = {"bar": LogRatio(1.0, 0.1, 0.1, 0.1), "simpson": LogRatio(1.2, 0.1, 0.1, 0.1)}
    assert disagreements(good) == ()
    far = good | {
        "mbar": LogRatio(2.0, 0.1, 0.1, 0.1),
        "trapezoid": LogRatio(math.nan, 0.1, 0.1, 0.1),
    }
    mbar_off, unknown = disagreements(far)
    assert mbar_off[:3] == ("mbar", "bar", 1.0)
    assert mbar_off.allowed == pytest.approx(3 * math.hypot(0.1, 0.1))
    assert unknown.estimator == "trapezoid" and math.isnan(unknown.difference)
    # Four rungs for a factor of ten in width: Simpson's rule cannot follow, and says so.
    coarse = log_integrals(draws(0, COARSE, rounds=4000), np.zeros(1))
    assert "simpson" in [found.estimator for found in disagreements(coarse)]


@pytest.mark.parametrize("centre", [-1.0, -0.3, 0.0, 0.999, 1.0, 1.7, -6.0])
@pytest.mark.parametrize("stiffness", [1e-8, 0.01, 1.0, 40.0, 1e6])
def test_the_quadratic_in_a_box_has_its_closed_form(centre: float, stiffness: float) -> None:
    """Also where the centre lies outside, up to a tail of e^(-thousands)."""
    like = jax.ShapeDtypeStruct((3,), jnp.float32)
    made = Quadratic(np.full(3, centre), np.full(3, stiffness), UniformBox(1.0, like))
    # The largest exponent in the box is taken out of the integrand.
    nearest = float(np.clip(centre, -1, 1))
    top = 0.5 * stiffness * (nearest - centre) ** 2
    width = 1 / math.sqrt(stiffness + (stiffness * (nearest - centre)) ** 2)
    points = sorted({max(-1.0, nearest - 8 * width), nearest, min(1.0, nearest + 8 * width)})
    mass, _ = quad(
        lambda w: math.exp(top - 0.5 * stiffness * (w - centre) ** 2),
        -1,
        1,
        points=points,
        limit=200,
    )
    assert made.log_integral == pytest.approx(3 * (math.log(mass) - top), rel=1e-6, abs=1e-6)


def test_the_quadratic_centred_on_the_box_instead_is_wrong() -> None:
    like = jax.ShapeDtypeStruct((1,), jnp.float32)
    right = Quadratic(np.array([0.9]), np.array([4.0]), UniformBox(1.0, like)).log_integral
    assert (
        abs(Quadratic(np.array([0.0]), np.array([4.0]), UniformBox(1.0, like)).log_integral - right)
        > 0.1
    )


@pytest.mark.parametrize(
    ("centre", "stiffness", "std"), [(0.7, 3.0, 0.5), (-2.0, 0.01, 4.0), (5.0, 100.0, 1.0)]
)
def test_the_quadratic_with_a_gaussian_prior_has_its_closed_form(
    centre: float, stiffness: float, std: float
) -> None:
    like = jax.ShapeDtypeStruct((2,), jnp.float32)
    made = Quadratic(np.full(2, centre), np.full(2, stiffness), Gaussian(std, like))
    mass, _ = quad(
        lambda w: math.exp(-0.5 * stiffness * (w - centre) ** 2 - 0.5 * (w / std) ** 2),
        -60,
        60,
        points=[centre, 0],
    )
    assert made.log_integral == pytest.approx(2 * math.log(mass), rel=1e-6)


@pytest.mark.parametrize(
    ("centre", "stiffness"), [(0.0, 1e-6), (0.8, 3.0), (1.0, 400.0), (-0.5, 1e4)]
)
def test_draws_of_the_quadratic_in_a_box_have_its_density(centre: float, stiffness: float) -> None:
    like = jax.ShapeDtypeStruct((4000,), jnp.float32)
    made = Quadratic(
        np.full(4000, centre, np.float32),
        np.full(4000, stiffness, np.float32),
        UniformBox(1.0, like),
    )
    drawn = np.asarray(made.draw(jax.random.key(3)), np.float64)
    assert np.abs(drawn).max() <= 1
    width = stiffness**-0.5
    exact = truncnorm((-1 - centre) / width, (1 - centre) / width, loc=centre, scale=width)
    assert kstest(drawn, exact.cdf).pvalue > 1e-3
    assert kstest(drawn, norm(centre, 1.3 * width).cdf).pvalue < 1e-9


def test_draws_of_the_quadratic_with_a_gaussian_prior_have_its_density() -> None:
    like = jax.ShapeDtypeStruct((4000,), jnp.float32)
    made = Quadratic(
        np.full(4000, 2.0, np.float32), np.full(4000, 3.0, np.float32), Gaussian(0.5, like)
    )
    drawn = np.asarray(made.draw(jax.random.key(3)), np.float64)
    assert kstest(drawn, norm(6 / 7, 7**-0.5).cdf).pvalue > 1e-3
    assert kstest(drawn, norm(2.0, 3**-0.5).cdf).pvalue < 1e-9
