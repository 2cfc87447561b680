"""Exchange: the swap rule by hand, the pairs that are tried, and permutations that stay
permutations.
"""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy import stats

from tempernet.tempering.exchange import SWEEPS, SwapInfo, log_swap_ratio, repeated

TEMPERATURES = np.array([0.5, 1.0, 2.0, 4.0, 8.0], np.float32)
COEFFICIENTS = jnp.asarray(1 / TEMPERATURES[:, None])
IN_ORDER = jnp.arange(5, dtype=jnp.int32)


def phi_of(*energies: float) -> Array:
    return jnp.asarray(np.array(energies, np.float32)[:, None])


KEYS = 2000


@functools.cache
def compiled(name: str) -> Any:
    """A sweep under many keys."""

    def sweep(round_index: Array, replica_at: Array, phi: Array, coefficients: Array) -> Any:
        keys = jax.random.split(jax.random.key(2), KEYS)
        return jax.vmap(lambda key: SWEEPS[name](key, round_index, replica_at, phi, coefficients))(
            keys
        )

    return jax.jit(sweep)


def sweep_many(
    name: str, phi: Array, round_index: int = 0, replica_at: Array = IN_ORDER
) -> tuple[np.ndarray, SwapInfo]:
    """Where the replicas are after the sweep, (KEYS, K), and what it did, (KEYS, K-1)."""
    coefficients = COEFFICIENTS[: replica_at.shape[0]]
    replicas, info = compiled(name)(jnp.int32(round_index), replica_at, phi, coefficients)
    return np.asarray(replicas), jax.tree.map(np.asarray, info)


def test_the_swap_ratio_is_alg_2s() -> None:
    t_j, t_k, e_j, e_k = 0.5, 2.0, 3.0, 7.5
    found = log_swap_ratio(
        jnp.array([1 / t_j]), jnp.array([1 / t_k]), jnp.array([e_j]), jnp.array([e_k])
    )
    assert float(found) == pytest.approx((1 / t_j - 1 / t_k) * (e_j - e_k)) == pytest.approx(-6.75)


def test_the_swap_ratio_of_two_terms_by_hand() -> None:
    """It is the log of pi_j(w_k) pi_k(w_j) / (pi_j(w_j) pi_k(w_k)), here with J = c . phi."""
    lower, upper = jnp.array([0.9, 0.1]), jnp.array([0.4, 0.6])
    phi_lower, phi_upper = jnp.array([2.0, 5.0]), jnp.array([3.0, 1.0])
    by_hand = 0.9 * 2 + 0.1 * 5 + 0.4 * 3 + 0.6 * 1 - (0.9 * 3 + 0.1 * 1 + 0.4 * 2 + 0.6 * 5)
    found = log_swap_ratio(lower, upper, phi_lower, phi_upper)
    assert float(found) == pytest.approx(by_hand, rel=1e-6) == pytest.approx(-2.5)


@pytest.mark.parametrize("round_index", [0, 1, 2, 3])
def test_even_odd_tries_the_pairs_of_its_parity(round_index: int) -> None:
    _, info = sweep_many("even-odd", phi_of(1, 1, 1, 1, 1), round_index)
    expected = [1, 0, 1, 0] if round_index % 2 == 0 else [0, 1, 0, 1]
    np.testing.assert_array_equal(info.attempts, [expected] * KEYS)
    np.testing.assert_array_equal(info.probability, [expected] * KEYS)


def test_even_odd_swaps_whenever_the_colder_has_the_higher_energy() -> None:
    falling = phi_of(50, 40, 30, 20, 10)
    replicas, info = sweep_many("even-odd", falling, 0)
    np.testing.assert_array_equal(replicas, [[1, 0, 3, 2, 4]] * KEYS)
    np.testing.assert_array_equal(info.accepts, [[1, 0, 1, 0]] * KEYS)
    np.testing.assert_array_equal(info.probability, [[1, 0, 1, 0]] * KEYS)
    replicas, _ = sweep_many("even-odd", falling, 1)
    np.testing.assert_array_equal(replicas, [[0, 2, 1, 4, 3]] * KEYS)


def test_even_odd_never_swaps_at_a_hopeless_ratio() -> None:
    rising = phi_of(0, 1e4, 2e4, 3e4, 4e4)
    replicas, info = sweep_many("even-odd", rising, 0)
    np.testing.assert_array_equal(replicas, [[0, 1, 2, 3, 4]] * KEYS)
    np.testing.assert_array_equal(info.attempts, [[1, 0, 1, 0]] * KEYS)
    assert info.accepts.sum() == 0
    assert info.probability.sum() == 0


def test_the_energies_belong_to_replicas_and_not_to_rungs() -> None:
    """Replica 2 sits at rung 0 and has the highest energy: it must be what moves up."""
    replica_at = jnp.array([2, 0, 1, 4, 3], jnp.int32)
    phi = phi_of(10, 0, 99, 0, 1e4)
    replicas, info = sweep_many("even-odd", phi, 0, replica_at=replica_at)
    # Rungs 0 and 1: energies 99 and 10, certain. Rungs 2 and 3: energies 0 and 1e4, hopeless.
    np.testing.assert_array_equal(replicas, [[0, 2, 1, 4, 3]] * KEYS)
    np.testing.assert_array_equal(info.accepts, [[1, 0, 0, 0]] * KEYS)


def test_even_odd_swaps_as_often_as_the_probability_it_records() -> None:
    phi = phi_of(1.0, 2.1, 1.0, 2.0, 9.0)
    _, info = sweep_many("even-odd", phi, 0)
    by_hand = [
        math.exp((1 / 0.5 - 1 / 1.0) * (1.0 - 2.1)),
        0,
        math.exp((1 / 2 - 1 / 4) * (1.0 - 2.0)),
        0,
    ]
    np.testing.assert_allclose(info.probability, [by_hand] * KEYS, rtol=1e-5)
    for pair in (0, 2):
        p = by_hand[pair]
        z = (info.accepts[:, pair].mean() - p) / math.sqrt(p * (1 - p) / KEYS)
        assert abs(z) < 4
    # Pairs of one sweep use draws of their own.
    assert abs(np.corrcoef(info.accepts[:, 0], info.accepts[:, 2])[0, 1]) < 5 / math.sqrt(KEYS)


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_permutes(name: str) -> None:
    for round_index in (0, 1):
        replica_at = jnp.array([3, 1, 4, 0, 2], jnp.int32)
        phi = phi_of(1.0, 1.4, 0.8, 1.1, 1.3)
        replicas, info = sweep_many(name, phi, round_index, replica_at=replica_at)
        np.testing.assert_array_equal(np.sort(replicas, axis=1), [[0, 1, 2, 3, 4]] * KEYS)
        assert np.all((info.accepts >= 0) & (info.accepts <= info.attempts))
        assert np.all(info.probability <= info.attempts)
        moved = np.any(replicas != np.asarray(replica_at), axis=1)
        assert moved.any() == (name != "none")
        # What no accepted swap has touched stays where it was.
        assert not np.any(moved & (info.accepts.sum(axis=1) == 0))


def test_random_pairs_makes_as_many_attempts_as_rungs_at_pairs_alike() -> None:
    _, info = sweep_many("random-pairs", phi_of(1.0, 1.4, 0.8, 1.1, 1.3))
    np.testing.assert_array_equal(info.attempts.sum(axis=1), np.full(KEYS, 5))
    # Each pair has a binomial (5, 1/4) number of attempts.
    z = (info.attempts.mean(axis=0) - 1.25) / math.sqrt(5 * 0.25 * 0.75 / KEYS)
    assert np.max(np.abs(z)) < 4
    z = (info.accepts - info.probability).sum(axis=0) / np.sqrt(info.attempts.sum(axis=0) * 0.25)
    assert np.max(np.abs(z)) < 4


def test_random_pairs_looks_at_what_the_swap_before_it_left() -> None:
    """Two rungs, two attempts at the one pair: the first is certain, and going back is hopeless."""
    two = jnp.arange(2, dtype=jnp.int32)
    replicas, info = sweep_many("random-pairs", phi_of(1e4, 0.0), replica_at=two)
    np.testing.assert_array_equal(replicas, [[1, 0]] * KEYS)
    np.testing.assert_array_equal(info.attempts, [[2]] * KEYS)
    np.testing.assert_array_equal(info.accepts, [[1]] * KEYS)
    np.testing.assert_array_equal(info.probability, [[1.0]] * KEYS)


def test_random_pairs_swaps_neighbours_only() -> None:
    """Where every swap of one pair is certain and every other hopeless, only that pair moves."""
    replicas, info = sweep_many("random-pairs", phi_of(0, 1e4, 0.5e4, 2e4, 3e4))
    tried = info.attempts[:, 1] > 0
    assert 0 < tried.sum() < KEYS
    np.testing.assert_array_equal(replicas[tried], [[0, 2, 1, 3, 4]] * tried.sum())
    np.testing.assert_array_equal(replicas[~tried], [[0, 1, 2, 3, 4]] * (~tried).sum())
    np.testing.assert_array_equal(info.accepts.sum(axis=1), tried.astype(int))


def test_no_exchange_attempts_nothing() -> None:
    _, info = sweep_many("none", phi_of(50, 40, 30, 20, 10))
    assert info.attempts.sum() == info.accepts.sum() == info.probability.sum() == 0
    assert info.attempts.shape == (KEYS, 4)


def test_repeated_once_is_the_sweep_itself() -> None:
    assert repeated(SWEEPS["even-odd"], 1) is SWEEPS["even-odd"]


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("round_index", [0, 1])
def test_repeated_sweeps_follow_each_other(name: str, round_index: int) -> None:
    """Each sees what the one before it left, has a key of its own, and counts on where the last
    round ended.
    """
    phi, key, number = phi_of(1.0, 1.4, 0.8, 1.1, 1.3), jax.random.key(5), 3
    found, info = repeated(SWEEPS[name], number)(
        key, jnp.int32(round_index), IN_ORDER, phi, COEFFICIENTS
    )
    replica_at, infos = IN_ORDER, []
    for s, sweep_key in enumerate(jax.random.split(key, number)):
        replica_at, one = SWEEPS[name](
            sweep_key, jnp.int32(round_index * number + s), replica_at, phi, COEFFICIENTS
        )
        infos.append(one)
    np.testing.assert_array_equal(found, replica_at)
    for total, *parts in zip(info, *infos, strict=True):
        np.testing.assert_allclose(total, np.sum(parts, axis=0), rtol=1e-6)


def places(number: int) -> float:
    """Chi-square p of where `number` sweeps leave three replicas, against exp(-sum_k E_k / T_k)
    over their orders.
    """
    phi, coefficients = phi_of(1.0, 2.0, 3.5), COEFFICIENTS[:3]
    sweep_fn = repeated(SWEEPS["even-odd"], number)
    keys = jax.random.split(jax.random.key(8), KEYS)
    start = jnp.arange(3, dtype=jnp.int32)
    ends = np.asarray(
        jax.vmap(lambda key: sweep_fn(key, jnp.int32(0), start, phi, coefficients)[0])(keys)
    )
    orders = list(itertools.permutations(range(3)))
    weights = np.array(
        [math.exp(-float(np.sum(coefficients[:, 0] * phi[list(order), 0]))) for order in orders]
    )
    counts = [np.all(ends == order, axis=1).sum() for order in orders]
    return float(stats.chisquare(counts, KEYS * weights / weights.sum()).pvalue)


def test_many_sweeps_bring_the_places_to_equilibrium_and_two_do_not() -> None:
    assert places(40) > 1e-4
    assert places(2) < 1e-9
