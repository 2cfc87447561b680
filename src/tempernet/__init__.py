"""Bayesian neural networks at finite temperature, by replica-exchange Hamiltonian Monte Carlo.

Importing this changes nothing in the process and starts nothing: a name below is loaded when it is
first used, so that `configure` can come before JAX.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempernet.annealing.anneal import anneal
    from tempernet.api.evidence import log_evidence
    from tempernet.api.evidences import Evidence
    from tempernet.api.load import load
    from tempernet.api.sample import sample
    from tempernet.api.samples import Samples
    from tempernet.data import mnist16, read_idx, read_indices, read_npz
    from tempernet.devices.setup import configure
    from tempernet.errors import (
        ConfigError,
        DataError,
        DevicesWarning,
        NumericsError,
        StoreError,
        TempernetError,
    )
    from tempernet.kernels.dynamics import Dynamics
    from tempernet.model.mlp import M1, M3, MLP, M3star
    from tempernet.model.networks import FunctionNetwork, from_equinox
    from tempernet.model.priors import Gaussian, UniformBox
    from tempernet.model.scores import hold_out
    from tempernet.model.target import Target, uninformed_loss
    from tempernet.optimise.minimise import Minimiser
    from tempernet.paths.temperatures import geometric_temperatures, temperature_path
    from tempernet.tempering.engine import Engine
    from tempernet.tempering.tuning import Tuning

__version__ = version("tempernet")

__all__ = [
    "M1",
    "M3",
    "MLP",
    "ConfigError",
    "DataError",
    "DevicesWarning",
    "Dynamics",
    "Engine",
    "Evidence",
    "FunctionNetwork",
    "Gaussian",
    "M3star",
    "Minimiser",
    "NumericsError",
    "Samples",
    "StoreError",
    "Target",
    "TempernetError",
    "Tuning",
    "UniformBox",
    "anneal",
    "configure",
    "from_equinox",
    "geometric_temperatures",
    "hold_out",
    "load",
    "log_evidence",
    "mnist16",
    "read_idx",
    "read_indices",
    "read_npz",
    "sample",
    "temperature_path",
    "uninformed_loss",
]

_NAMES_OF = {
    "annealing.anneal": "anneal",
    "api.evidence": "log_evidence",
    "api.evidences": "Evidence",
    "api.load": "load",
    "api.sample": "sample",
    "api.samples": "Samples",
    "data": "mnist16 read_idx read_indices read_npz",
    "devices.setup": "configure",
    "errors": "ConfigError DataError DevicesWarning NumericsError StoreError TempernetError",
    "kernels.dynamics": "Dynamics",
    "model.mlp": "M1 M3 MLP M3star",
    "model.networks": "FunctionNetwork from_equinox",
    "model.priors": "Gaussian UniformBox",
    "model.scores": "hold_out",
    "model.target": "Target uninformed_loss",
    "optimise.minimise": "Minimiser",
    "paths.temperatures": "geometric_temperatures temperature_path",
    "tempering.engine": "Engine",
    "tempering.tuning": "Tuning",
}
"""The public names by the module that they live in: what a type checker reads above."""
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'tempernet' has no attribute {name!r}")
        found = getattr(importlib.import_module(f"tempernet.{_HOME[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
