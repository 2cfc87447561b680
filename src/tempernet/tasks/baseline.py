"""What a cooling is compared with: the networks that an optimise run has kept."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tempernet.config import AnnealSettings, OptimiseSettings
from tempernet.errors import ConfigError, StoreError
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE
from tempernet.tasks.problem import Problem


class Baseline(NamedTuple):
    """Optimised networks on the test set, and which of them have E = 0: (networks,) each."""

    loss: np.ndarray
    accuracy: np.ndarray
    reached: np.ndarray


def check_comparable(settings: AnnealSettings, problem: Problem) -> None:
    """Refuse a cooling without validation examples, or compared with a run of another problem."""
    if problem.validation is None:
        raise ConfigError(
            f"annealing needs validation examples to stop by, and {problem.data.name} leaves none: "
            "raise data.n_validation, or train on fewer (data.n_train)"
        )
    stored_baseline(settings, problem)


def stored_baseline(settings: AnnealSettings, problem: Problem) -> Baseline | None:
    """What the optimise run kept that the settings name; None if they name none."""
    if not settings.cooling.optimised:
        return None
    path = Path(settings.cooling.optimised)
    folder = RunFolder.open(path)
    other = folder.settings(OptimiseSettings)
    if folder.read_json(PROVENANCE)["data"]["sha256"] != problem.data.sha256:
        raise ConfigError(
            f"cooling.optimised = {path} has other data: run `tempernet optimise` with the same "
            "[data]"
        )
    if other.network != settings.network:
        raise ConfigError(
            f"cooling.optimised = {path} is of the network {other.network.name}, this run of "
            f"{settings.network.name}: give a run of the same network"
        )
    kept = folder.records.load("kept")
    if not kept:
        raise StoreError(f"{path} has not finished; go on with: tempernet resume {path}")
    reached = kept["energy"] <= other.optimise.tolerance
    return Baseline(kept["test_loss"], kept["test_accuracy"], reached)
