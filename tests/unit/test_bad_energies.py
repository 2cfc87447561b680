"""Energies that a user's function makes NaN, infinite or huge: at the start, in tuning, in
sampling.

A proposal that is not finite is a rejection and a count, a start that is not finite an error, and
no such energy is ever recorded.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import tempernet as tn
from tempernet.optimise.minimise import Minimiser
from tempernet.tempering.exchange import SWEEPS
from tempernet.tempering.tuning import Tuning

pytestmark = pytest.mark.usefixtures("quick_programs")

LIKE = jax.ShapeDtypeStruct((3,), jnp.float32)
BOX = tn.UniformBox(1.0, LIKE)
EnergyFn = Callable[[Array], Array]
SMALL: dict[str, Any] = {
    "devices": 1,
    "tile": 4,
    "dynamics": tn.Dynamics(num_steps=5, num_trajectories=4),
}
TUNING = Tuning(search_trajectories=8, check_trajectories=8, max_checks=1)


def bowl(w: Array) -> Array:
    return 5 * jnp.sum(w**2)


def beyond(value: float) -> EnergyFn:
    """A bowl with this value in all the box but a ball in its middle."""
    return lambda w: jnp.where(jnp.sum(w**2) > 0.25, value, bowl(w))


def steep_beyond(slope: float) -> EnergyFn:
    """A bowl that is told to have this gradient in all the box but a ball in its middle."""

    @jax.custom_jvp
    def energy(w: Array) -> Array:
        return bowl(w)

    @energy.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (w,), (v,) = primals, tangents
        return bowl(w), jnp.sum(jnp.where(jnp.sum(w**2) > 0.25, slope, 10 * w) * v)

    return energy


def in_the_middle(key: Array) -> Array:
    return 0.1 * jax.random.normal(key, (3,), jnp.float32)


def sample(energy_fn: EnergyFn, temperatures: list[float], **options: Any) -> tn.Samples:
    target = tn.Target.from_energy(energy_fn, BOX, in_the_middle)
    given = {
        "rounds": 30,
        "burn_in": 10,
        "copies": 2,
        "start": "minimised",
        "tuning": TUNING,
        **SMALL,
        **options,
    }
    return tn.sample(target, temperatures, **given)


@pytest.mark.parametrize(
    ("value", "start"), [(math.nan, "minimised"), (math.inf, "prior"), (-math.inf, "apart")]
)
def test_a_start_that_is_not_finite_is_an_error(value: float, start: str) -> None:
    with pytest.raises(tn.NumericsError, match=r"starts .* have an energy that is not finite"):
        sample(lambda w: bowl(w) + value, [1.0, 2.0], start=start)


def test_a_start_that_is_too_high_for_its_temperature_is_an_error() -> None:
    assert np.isfinite(sample(lambda w: bowl(w) + 1e38, [1.0, 2.0]).energy).all()
    with pytest.raises(
        tn.NumericsError, match=r"4 of 8 starts .*divided by the temperature is too large"
    ):
        sample(lambda w: bowl(w) + 1e38, [0.1, 0.2, 2.0, 3.0])


def test_a_start_without_a_finite_gradient_is_an_error() -> None:
    def kink(w: Array) -> Array:
        return jnp.sqrt(jnp.sum(w**2))

    target = tn.Target.from_energy(kink, BOX, lambda key: jnp.zeros(3, jnp.float32))
    engine = tn.Engine(target, tn.temperature_path([1.0, 2.0]), **SMALL)
    with pytest.raises(
        tn.NumericsError, match=r"2 of 2 starts .* have a gradient that is not finite"
    ):
        engine.start(engine.init_weights())


@pytest.mark.parametrize(
    ("value", "exchange"),
    [
        (math.nan, "even-odd"),
        (math.inf, "random-pairs"),
        (-math.inf, "even-odd"),
        (1e30, "random-pairs"),
        (1e38, "even-odd"),
    ],
)
def test_proposals_that_are_bad_are_rejected_and_counted(value: float, exchange: str) -> None:
    """Replicas run into the bad region in tuning and sampling, and none is ever recorded there."""
    found = sample(beyond(value), [0.5, 2.0, 8.0, math.inf], exchange=exchange)
    assert np.isfinite(found.energy).all() and found.energy[..., :-1].max() <= 5 * 0.25 * (1 + 1e-5)
    assert np.isfinite(found.series.acceptance.values).all() and np.isfinite(found.swap_rate).all()
    assert (
        np.isfinite(found.series.time_step.values).all()
        and np.isfinite(found.train_loss.mean).all()
    )
    assert np.ptp(found.energy[..., :-1], axis=1).min() > 0
    # The prior itself, T = inf, goes wherever the energy is a number.
    at_prior = found.energy[..., -1].max()
    assert (
        at_prior == np.float32(value)
        if math.isfinite(value)
        else found.series.nonfinite.values[..., -1].sum() > 0
    )


@pytest.mark.parametrize("slope", [math.nan, math.inf])
def test_a_gradient_that_is_bad_rejects_as_well(slope: float) -> None:
    found = sample(steep_beyond(slope), [2.0, 8.0])
    assert np.isfinite(found.energy).all() and found.series.nonfinite.values.sum() > 0
    assert found.energy.max() <= 5 * 0.25 * (1 + 1e-5)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_tuning_that_cannot_move_anything_is_an_error(value: float) -> None:
    """Only the start itself has a finite energy: smaller steps do not help, and none at all is no
    sampling.
    """
    start = jnp.full(3, 0.25, jnp.float32)
    target = tn.Target.from_energy(
        lambda w: jnp.where(jnp.all(w == start), bowl(w), value), BOX, lambda key: start
    )
    engine = tn.Engine(target, tn.temperature_path([1.0, 2.0]), copies=2, **SMALL)
    state = engine.start(engine.init_weights())
    with pytest.raises(
        tn.NumericsError,
        match=r"2 of 2 rungs .* could be moved.* [1-9]\d* trajectories .* not finite",
    ):
        engine.tune(state, engine.rungs(0.01), TUNING)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_energy_that_breaks_in_sampling_keeps_the_last_good_state(value: float) -> None:
    path = tn.temperature_path([1.0, 2.0])
    good = tn.Engine(tn.Target.from_energy(bowl, BOX, in_the_middle), path, copies=2, **SMALL)
    broken = tn.Engine(
        tn.Target.from_energy(lambda w: bowl(w) + value, BOX), path, copies=2, **SMALL
    )
    state, rungs, _ = good.tune(good.start(good.init_weights()), good.rungs(0.01), TUNING)
    before = np.asarray(state.kernel.point.weights)
    for _ in range(3):
        state, record = broken.round(state, rungs)
        assert np.isfinite(record.phi).all() and np.isfinite(record.swaps.probability).all()
        assert (np.asarray(record.info.nonfinite) == 4).all() and (
            np.asarray(record.info.acceptance) == 0
        ).all()
    assert np.array_equal(before, np.asarray(state.kernel.point.weights))


@pytest.mark.parametrize("scale", [1e30, 1e36])
def test_huge_energies_are_sampled_at_huge_temperatures(scale: float) -> None:
    """E and T times a power of ten is the same density; only the numbers differ."""
    small = sample(bowl, [0.5, 1.0, 2.0], rounds=300, start="prior")
    huge = sample(
        lambda w: scale * bowl(w), [0.5 * scale, scale, 2 * scale], rounds=300, start="prior"
    )
    assert np.isfinite(huge.energy).all() and huge.series.nonfinite.values.sum() == 0
    (mean, error), (wanted, other) = huge.train_loss, small.train_loss
    np.testing.assert_allclose(
        mean / scale, wanted, atol=6 * float(np.max(np.hypot(error / scale, other))) + 0.1
    )


@pytest.mark.parametrize("method", ["fire", "alg3"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e38])
def test_minimisation_stays_where_energies_are_finite(value: float, method: Any) -> None:
    target = tn.Target.from_energy(
        lambda w: jnp.where(w[0] < -0.1, value, bowl(w) + 3 * w[0]), BOX, in_the_middle
    )
    engine = tn.Engine(target, tn.temperature_path([1.0, 2.0]), copies=4, **SMALL)
    start = jnp.abs(engine.init_weights())
    found = engine.minimise(start, Minimiser(method=method, max_gradients=200)).point
    assert np.isfinite(found.energy).all() and (np.asarray(found.weights)[:, 0] >= -0.1).all()


@pytest.mark.parametrize("rule", ["even-odd", "random-pairs"])
def test_a_swap_ratio_that_is_no_number_is_a_rejection(rule: str) -> None:
    """The difference of two energies overflows, and equal rungs have coefficients that differ by
    nothing.
    """
    phi = jnp.asarray([[-3e38], [3e38]], jnp.float32)
    replica_at, info = SWEEPS[rule](
        jax.random.key(0),
        jnp.int32(0),
        jnp.arange(2, dtype=jnp.int32),
        phi,
        jnp.ones((2, 1), jnp.float32),
    )
    assert replica_at.tolist() == [0, 1] and info.accepts.sum() == 0
    assert info.attempts.sum() > 0 and float(info.probability.sum()) == 0
