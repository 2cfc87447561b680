"""What one process measures.

JAX fixes its devices at start, so every measurement has a process of its own.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import task
from timing import Sampler, peak_bytes, time_rounds

SGEMM_SIZES = (2048, 4096)


def run(name: str, num_examples: int, num_steps: int, rounds: int) -> dict[str, Any]:
    """The measurement called `name`, as a dictionary of plain numbers."""
    if name == task.SGEMM:
        return sgemm(rounds)
    if name == task.MEMORY:
        return memory()
    if name == task.WHOLE:
        import whole

        return whole.rate(rounds)
    if name == task.GRADIENTS:
        return gradients(num_steps)
    return sampler(name, num_examples, num_steps, rounds)


def sampler(name: str, num_examples: int, num_steps: int, rounds: int) -> dict[str, Any]:
    """Rounds of L steps of all replicas, everything included."""
    if name in task.PEERS:
        # Starts JAX as it comes, with one device, before tempernet asks for one a core.
        jax.devices()
    import tempernet

    # Before JAX starts; the peers are left with what it has by itself.
    if name not in (task.BLACKJAX, task.TFP):
        tempernet.configure()

    network, train = tempernet.MLP(task.SIZES), tempernet.mnist16().split(num_examples).train
    temperatures = tempernet.geometric_temperatures(task.COLDEST, task.HOTTEST, task.REPLICAS)
    weights = _start(network, task.REPLICAS)
    prior = tempernet.UniformBox.for_network(network)
    before = peak_bytes()
    if name in task.PEERS:
        import peers

        build = {task.BLACKJAX: peers.blackjax_sampler, task.TFP: peers.tfp_sampler}[name]
        energy_fn = peers.network_energy(
            train.x.reshape(num_examples, -1), train.y, network.classes
        )
        made = build(peers.in_a_box(energy_fn, prior.half_width), weights, temperatures, num_steps)
    else:
        from ours import engine_sampler

        made = engine_sampler(
            tempernet.Target.classifier(network, train, prior),
            weights,
            temperatures,
            num_steps,
            walls="reject" if name == task.REJECTING else "reflect",
            reproducible=name == task.REPRODUCIBLE,
        )
    times = time_rounds(made, rounds)
    per_step = np.array(times["round_seconds"]) / num_steps
    return {
        "best_seconds_per_step": float(per_step.min()),
        "median_seconds_per_step": float(np.median(per_step)),
        "peak_bytes": peak_bytes(),
        "peak_bytes_before": before,
        **times,
        **made.details,
    }


def sgemm(repeats: int) -> dict[str, Any]:
    """The best float32 matrix product of NumPy's BLAS and of JAX, in flop/s."""
    found: dict[str, float] = {}
    for size in SGEMM_SIZES:
        host = np.random.default_rng(0).standard_normal((size, size), np.float32)
        device, product = jnp.asarray(host), jax.jit(jnp.matmul)
        jax.block_until_ready(product(device, device))
        numpy_seconds = min(_seconds(lambda a=host: a @ a) for _ in range(repeats))
        jax_seconds = min(
            _seconds(lambda a=device, f=product: jax.block_until_ready(f(a, a)))
            for _ in range(repeats)
        )
        found[f"numpy {size}"] = 2 * size**3 / numpy_seconds
        found[f"jax {size}"] = 2 * size**3 / jax_seconds
    return {"best": max(found.values()), "found": found}


def memory() -> dict[str, Any]:
    """Peak memory of one round of 1000 replicas of M1 on D_50."""
    from ours import engine_sampler

    import tempernet

    tempernet.configure()
    network, train = tempernet.M1, tempernet.mnist16().split(50).train
    target = tempernet.Target.classifier(network, train, tempernet.UniformBox.for_network(network))
    temperatures = tempernet.geometric_temperatures(task.COLDEST, task.HOTTEST, task.MANY_REPLICAS)
    made = engine_sampler(target, _start(network, task.MANY_REPLICAS), temperatures, num_steps=2)
    acceptance = made.advance()
    return {"peak_bytes": peak_bytes(), "acceptance": acceptance, **made.details}


def gradients(num_steps: int) -> dict[str, float]:
    """Energy evaluations, each with its gradient, of a replica in a round of L steps.

    They are counted: the energy is a small quadratic that tells the host of each evaluation.
    """
    jax.devices()
    import peers
    from ours import engine_sampler

    import tempernet

    calls = 0

    def count(_: Any) -> None:
        nonlocal calls
        calls += 1

    def energy_fn(weights: Any) -> jax.Array:
        energy = 0.5 * sum(jnp.sum(jnp.square(leaf)) for pair in weights for leaf in pair)
        jax.debug.callback(count, energy)
        return energy

    network = tempernet.MLP((3, 2))
    temperatures = tempernet.geometric_temperatures(0.5, 2.0, 4)
    weights = _start(network, 4)
    target = tempernet.Target.from_energy(
        energy_fn, tempernet.UniformBox.for_network(network), network.init
    )

    def in_a_round(made: Sampler) -> float:
        nonlocal calls
        jax.effects_barrier()
        calls, rounds = 0, 3
        for _ in range(rounds):
            made.advance()
        jax.effects_barrier()
        return calls / (rounds * len(temperatures))

    ours = in_a_round(engine_sampler(target, weights, temperatures, num_steps))
    return {
        task.OURS: ours,
        task.REJECTING: ours,
        task.REPRODUCIBLE: ours,
        task.BLACKJAX: in_a_round(
            peers.blackjax_sampler(energy_fn, weights, temperatures, num_steps)
        ),
        task.TFP: in_a_round(peers.tfp_sampler(energy_fn, weights, temperatures, num_steps)),
    }


def _start(network: Any, replicas: int) -> Any:
    """The same starting weights for every sampler, distributed as by `init`.

    Leaves have a leading axis of replicas. They are drawn by NumPy, since compiling `init` would
    take longer than many a measurement.
    """
    from tempernet.model.networks import template

    rng = np.random.default_rng(0)

    def draw(leaf: Any, fan_in: int) -> np.ndarray:
        bound = fan_in**-0.5
        return rng.uniform(-bound, bound, (replicas, *leaf.shape)).astype(leaf.dtype)

    return jax.tree.map(draw, template(network), network.fan_in())


def _seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
