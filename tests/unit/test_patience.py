"""Devices that arrive late at a collective are waited for."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import time
import tempernet
tempernet.configure()
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from tempernet.devices import mesh

devices = mesh.make_mesh(2)

def late(x):
    if x[0] > 0:
        time.sleep(5)
    return np.asarray(x)

def fn(x):
    slow = lambda part: jax.pure_callback(late, jax.ShapeDtypeStruct(part.shape, part.dtype), part)
    split = PartitionSpec(mesh.REPLICA)
    y = jax.shard_map(slow, mesh=devices, in_specs=split, out_specs=split, check_vma=False)(x)
    return jax.lax.with_sharding_constraint(y, NamedSharding(devices, PartitionSpec()))

x = jax.device_put(jnp.arange(2.0), NamedSharding(devices, PartitionSpec(mesh.REPLICA)))
print(jax.block_until_ready(jax.jit(fn)(x)))
"""
"""One of two devices takes five seconds longer than the other."""


def run(flags: str) -> subprocess.CompletedProcess[str]:
    # What XLA says of its own accord, which `configure` leaves to those who ask for it.
    environment = os.environ | {
        "TEMPERNET_DEVICES": "2",
        "XLA_FLAGS": flags,
        "TF_CPP_MIN_LOG_LEVEL": "0",
    }
    arguments = [sys.executable, "-c", SCRIPT]
    return subprocess.run(
        arguments, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_late_device_is_waited_for() -> None:
    """A warning after one second shows that there is something to wait for."""
    done = run("--xla_cpu_collective_call_warn_stuck_timeout_seconds=1")
    assert done.returncode == 0 and done.stdout.strip() == "[0. 1.]", done.stderr
    assert "may be stuck" in done.stderr


def test_a_user_may_say_how_long_and_without_patience_the_process_ends() -> None:
    impatient = "--xla_cpu_collective_call_warn_stuck_timeout_seconds=1 "
    impatient += "--xla_cpu_collective_call_terminate_timeout_seconds=1"
    assert run(impatient).returncode != 0
