"""Exchange between neighbouring rungs: the swap rule of Alg. 2, and two ways to choose the pairs.

Replicas stay and rungs move. Within one copy of the ladder, `replica_at[k]` is the replica that
sits at rung k; a sweep returns it permuted. It is a function of the energy terms already at hand, a
few numbers a replica.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class SwapInfo(NamedTuple):
    """Swaps of each pair of neighbours (k, k+1), summed over a round; every field is (K-1,)."""

    attempts: Array
    accepts: Array
    probability: Array
    """Sum of the swap probabilities of the attempts."""


SweepFn = Callable[[Array, Array, Array, Array, Array], tuple[Array, SwapInfo]]
"""A sweep over the pairs: (key, round, replica_at, phi, coefficients) -> (replica_at, info).

`replica_at` is (K,), `phi` of the replicas and `coefficients` of the rungs are (K, M).
"""


def log_swap_ratio(lower: Array, upper: Array, phi_lower: Array, phi_upper: Array) -> Array:
    """log a = sum_m (c[j,m] - c[k,m]) (phi_m(w_j) - phi_m(w_k)).

    On a path of temperatures it is (1/T_j - 1/T_k)(E_j - E_k), as in Alg. 2.

    Args:
        lower, upper: coefficients of the two rungs, (..., M).
        phi_lower, phi_upper: energy terms of the replicas that sit at them, (..., M).
    """
    return jnp.sum((lower - upper) * (phi_lower - phi_upper), axis=-1)


def even_odd(
    key: Array, round_index: Array, replica_at: Array, phi: Array, coefficients: Array
) -> tuple[Array, SwapInfo]:
    """Deterministic even-odd sweep: all even pairs in even rounds, all odd pairs in odd ones.

    Args:
        key: of the sweep.
        round_index: the round, whose parity decides which pairs are tried.
        replica_at: the replica at each rung, (K,).
        phi: energy terms of the replicas, in their own order, (K, M).
        coefficients: of the rungs, (K, M).

    Returns:
        The replica at each rung after the sweep, and what became of the swaps.
    """
    rungs = replica_at.shape[0]
    phi_at = phi[replica_at]
    probability = _probability(
        log_swap_ratio(coefficients[:-1], coefficients[1:], phi_at[:-1], phi_at[1:])
    )
    attempted = (jnp.arange(rungs - 1, dtype=jnp.int32) + round_index) % 2 == 0
    swap = attempted & (jax.random.uniform(key, (rungs - 1,), probability.dtype) < probability)
    # Pairs of one parity do not overlap: the lower partner takes the place above, the upper the one
    # below.
    step = swap.astype(jnp.int32)
    source = jnp.arange(rungs, dtype=jnp.int32) + jnp.pad(step, (0, 1)) - jnp.pad(step, (1, 0))
    info = SwapInfo(attempted.astype(jnp.int32), step, jnp.where(attempted, probability, 0))
    return replica_at[source], info


def random_pairs(
    key: Array, round_index: Array, replica_at: Array, phi: Array, coefficients: Array
) -> tuple[Array, SwapInfo]:
    """Alg. 2 as printed: N_T times, choose a random adjacent pair and apply the swap rule.

    Arguments are those of `even_odd`; the round is not used.
    """
    del round_index
    rungs = replica_at.shape[0]
    pair_key, accept_key = jax.random.split(key)
    pairs = jax.random.randint(pair_key, (rungs,), 0, rungs - 1)
    draws = jax.random.uniform(accept_key, (rungs,), phi.dtype)

    def attempt(
        carry: tuple[Array, SwapInfo], choice: tuple[Array, Array]
    ) -> tuple[tuple[Array, SwapInfo], None]:
        replica_at, info = carry
        low, draw = choice
        pair = jnp.stack([low, low + 1])
        terms = phi[replica_at[pair]]
        probability = _probability(
            log_swap_ratio(coefficients[low], coefficients[low + 1], terms[0], terms[1])
        )
        swap = draw < probability
        replica_at = replica_at.at[pair].set(
            jnp.where(swap, replica_at[pair[::-1]], replica_at[pair])
        )
        info = SwapInfo(
            info.attempts.at[low].add(1),
            info.accepts.at[low].add(swap.astype(jnp.int32)),
            info.probability.at[low].add(probability),
        )
        return (replica_at, info), None

    none = SwapInfo(*(jnp.zeros(rungs - 1, jnp.int32),) * 2, jnp.zeros(rungs - 1, phi.dtype))
    return jax.lax.scan(attempt, (replica_at, none), (pairs, draws))[0]


def no_exchange(
    key: Array, round_index: Array, replica_at: Array, phi: Array, coefficients: Array
) -> tuple[Array, SwapInfo]:
    """Leave every replica at its rung."""
    del key, round_index, coefficients
    pairs = replica_at.shape[0] - 1
    none = SwapInfo(*(jnp.zeros(pairs, jnp.int32),) * 2, jnp.zeros(pairs, phi.dtype))
    return replica_at, none


def repeated(sweep_fn: SweepFn, number: int) -> SweepFn:
    """A sweep that is done `number` times in a row; what they tell of swaps is added up.

    Each leaves the joint density of the ladder as it is, so all of them do. Between them no energy
    changes: many sweeps bring the places of the replicas to equilibrium with the energies that the
    trajectories ended with.
    """
    if number == 1:
        return sweep_fn

    def sweeps(
        key: Array, round_index: Array, replica_at: Array, phi: Array, coefficients: Array
    ) -> tuple[Array, SwapInfo]:
        def again(replica_at: Array, given: tuple[Array, Array]) -> tuple[Array, SwapInfo]:
            sweep_key, index = given
            return sweep_fn(sweep_key, index, replica_at, phi, coefficients)

        # Counted through all rounds, so that even and odd pairs take turns from one round to the
        # next as well.
        indices = round_index * number + jnp.arange(number, dtype=jnp.int32)
        replica_at, info = jax.lax.scan(again, replica_at, (jax.random.split(key, number), indices))
        return replica_at, jax.tree.map(lambda leaf: leaf.sum(axis=0), info)

    return sweeps


SWEEPS: dict[str, SweepFn] = {
    "even-odd": even_odd,
    "random-pairs": random_pairs,
    "none": no_exchange,
}
"""The exchange rules by the names used in settings."""


def _probability(log_ratio: Array) -> Array:
    """min(1, exp(log_ratio)), and 0 for a ratio that is not a number.

    Such a ratio is 0 x inf, of energies beyond the largest float: the swap is rejected.
    """
    return jnp.where(jnp.isnan(log_ratio), 0, jnp.exp(jnp.minimum(log_ratio, 0)))
