"""Bayesian neural networks at finite temperature, by replica-exchange Hamiltonian Monte Carlo."""

import os
from importlib.metadata import version

# On some processors XLA takes programs that it has kept itself for those of another machine, and
# says so in pages of text. It listens to this only before JAX is imported; what really fails is an
# exception all the same.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tempernet.devices.mesh import one_device_per_core, wait_for_late_devices

__version__ = version("tempernet")

wait_for_late_devices()
one_device_per_core()

from tempernet.annealing.annealer import anneal  # noqa: E402
from tempernet.data import mnist16, read_idx, read_indices, read_npz  # noqa: E402
from tempernet.errors import ConfigError, DataError, NumericsError, StoreError, TempernetError  # noqa: E402
from tempernet.kernels.dynamics import Dynamics  # noqa: E402
from tempernet.model.networks import M1, M3, MLP, FunctionNetwork, M3star, from_equinox  # noqa: E402
from tempernet.model.priors import Gaussian, UniformBox  # noqa: E402
from tempernet.model.target import Target, hold_out, uninformed_loss  # noqa: E402
from tempernet.optimise.minimise import Minimiser  # noqa: E402
from tempernet.paths.path import geometric_temperatures, temperature_path  # noqa: E402
from tempernet.tempering.engine import Engine  # noqa: E402
from tempernet.tempering.tuning import Tuning  # noqa: E402

__all__ = [
    "M1",
    "M3",
    "MLP",
    "ConfigError",
    "DataError",
    "Dynamics",
    "Engine",
    "FunctionNetwork",
    "Gaussian",
    "M3star",
    "Minimiser",
    "NumericsError",
    "StoreError",
    "Target",
    "TempernetError",
    "Tuning",
    "UniformBox",
    "anneal",
    "from_equinox",
    "geometric_temperatures",
    "hold_out",
    "mnist16",
    "read_idx",
    "read_indices",
    "read_npz",
    "temperature_path",
    "uninformed_loss",
]
