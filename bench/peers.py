"""The two samplers that tempernet is compared with, each used as its documentation shows.

Both see the network as a user would write it, examples first, with one device and XLA's own
threads, and the box as a log density of minus infinity outside: trajectories that end there are
rejected, as in Alg. 1. BlackJAX has no replica exchange, so its rounds are without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from task import STEP_SIZE
from timing import Sampler

EnergyFn = Callable[[Any], Array]
"""Weights of one replica -> E."""


def in_a_box(energy_fn: EnergyFn, half_width: Any) -> EnergyFn:
    """The same energy within |w_i| <= half_width_i, and infinity elsewhere."""

    def walled(weights: Any) -> Array:
        inside = jax.tree.map(lambda w, h: jnp.all(jnp.abs(w) <= h), weights, half_width)
        return jnp.where(jnp.all(jnp.stack(jax.tree.leaves(inside))), energy_fn(weights), jnp.inf)

    return walled


def network_energy(inputs: np.ndarray, labels: np.ndarray, classes: int) -> EnergyFn:
    """The cross-entropy of a logistic MLP, summed over examples; inputs (examples, features)."""
    x, one_hot = jnp.asarray(inputs), jax.nn.one_hot(labels, classes, dtype=jnp.float32)

    def energy_fn(layers: Any) -> Array:
        hidden = x
        for weight, bias in layers[:-1]:
            hidden = jax.nn.sigmoid(hidden @ weight.T + bias)
        weight, bias = layers[-1]
        return -jnp.sum(one_hot * jax.nn.log_softmax(hidden @ weight.T + bias))

    return energy_fn


def blackjax_sampler(
    energy_fn: EnergyFn, weights: Any, temperatures: np.ndarray, num_steps: int
) -> Sampler:
    """`blackjax.hmc` under vmap: each replica its temperature, log density -E/T and step size."""
    import blackjax

    betas = jnp.asarray(1 / temperatures, jnp.float32)
    step_sizes = jnp.full(len(betas), STEP_SIZE, jnp.float32)
    num_weights = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], weights))[0].size

    def kernel(beta: Array, step_size: Array) -> Any:
        return blackjax.hmc(
            lambda w: -beta * energy_fn(w),
            step_size,
            jnp.ones(num_weights),
            num_integration_steps=num_steps,
        )

    def one_round(key: Array, states: Any) -> tuple[Any, Array]:
        def step(key: Array, state: Any, beta: Array, step_size: Array) -> tuple[Any, Array]:
            state, info = kernel(beta, step_size).step(key, state)
            return state, info.acceptance_rate

        states, acceptance = jax.vmap(step)(
            jax.random.split(key, len(betas)), states, betas, step_sizes
        )
        return states, acceptance.mean()

    states = jax.jit(jax.vmap(lambda w, beta, eps: kernel(beta, eps).init(w)))(
        weights, betas, step_sizes
    )
    details = _details(-states.logdensity / betas)
    jitted, key = jax.jit(one_round), jax.random.key(0)

    def advance() -> float:
        nonlocal states, key
        key, round_key = jax.random.split(key)
        states, acceptance = jax.block_until_ready(jitted(round_key, states))
        return float(acceptance)

    return Sampler(advance, details)


def tfp_sampler(
    energy_fn: EnergyFn, weights: Any, temperatures: np.ndarray, num_steps: int
) -> Sampler:
    """`ReplicaExchangeMC` around `HamiltonianMonteCarlo`, with even-odd swaps.

    Its state is a list of leaves.
    """
    from tensorflow_probability.substrates.jax import mcmc

    betas = jnp.asarray(1 / temperatures, jnp.float32)
    parts, treedef = jax.tree.flatten(weights)
    step_sizes = [
        jnp.full((len(betas),) + (1,) * (part.ndim - 1), STEP_SIZE, part.dtype) for part in parts
    ]

    def log_prob_fn(*parts: Array) -> Array:
        return -jax.vmap(energy_fn)(jax.tree.unflatten(treedef, parts))

    def make_kernel_fn(tempered_log_prob_fn: Callable[..., Array]) -> Any:
        return mcmc.HamiltonianMonteCarlo(
            tempered_log_prob_fn, step_sizes, num_leapfrog_steps=num_steps
        )

    kernel = mcmc.ReplicaExchangeMC(
        log_prob_fn,
        betas,
        make_kernel_fn,
        swap_proposal_fn=mcmc.even_odd_swap_proposal_fn(1.0),
        state_includes_replicas=True,
    )
    results = jax.jit(kernel.bootstrap_results)(parts)
    details = _details(-results.post_swap_replica_results.accepted_results.target_log_prob / betas)
    jitted, key = (
        jax.jit(lambda state, results, key: kernel.one_step(state, results, seed=key)),
        jax.random.key(0),
    )

    def advance() -> float:
        nonlocal parts, results, key
        key, round_key = jax.random.split(key)
        parts, results = jax.block_until_ready(jitted(parts, results, round_key))
        ratio = results.pre_swap_replica_results.log_accept_ratio
        return float(jnp.exp(jnp.minimum(ratio, 0)).mean())

    return Sampler(advance, details)


def _details(energies: Array) -> dict[str, Any]:
    return {"tile": None, "devices": len(jax.devices()), "start_energy": float(energies.mean())}
