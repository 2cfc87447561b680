"""Provenance: what shaped a run besides its settings."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import time
from importlib.metadata import version

import jax
import numpy as np

from tempernet.config import RunSettings
from tempernet.model.target import uninformed_loss
from tempernet.store.files import JsonObject
from tempernet.tasks.problem import Problem, model_hash
from tempernet.tempering.engine import Engine


def provenance(settings: RunSettings, problem: Problem, engine: Engine) -> JsonObject:
    """What shaped the run besides its settings."""
    return {
        "kind": settings.kind,
        "seed": settings.run.seed,
        "command": sys.argv,
        "protocol": settings.protocol,
        "versions": {
            "tempernet": version("tempernet"),
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": np.__version__,
        },
        "platform": platform.platform(),
        "devices": [str(device) for device in engine.layout.mesh.devices.flat],
        "tile": engine.layout.tile,
        "data": {
            "name": problem.data.name,
            "sha256": problem.data.sha256,
            "train_sha256": _train_hash(problem),
            "n_train": len(problem.data.train),
            "n_validation": len(problem.data.validation),
            "n_test": len(problem.data.test),
        },
        "uninformed_loss": uninformed_loss(problem.network.classes),
        "scored_labels": problem.test_labels,
        "trajectories": engine.dynamics.num_trajectories,
        "model": {
            "sha256": model_hash(problem.network, settings),
            "weights": problem.network.num_weights,
            "log_prior_volume": problem.target.prior.log_volume,
        },
        "git": _git_revision(),
        "started": time.time(),
    }


def _train_hash(problem: Problem) -> str:
    """A hash of the training examples as the energy reads them, whatever is held out."""
    train = problem.data.train
    return hashlib.sha256(
        np.ascontiguousarray(train.x).tobytes() + np.ascontiguousarray(train.y).tobytes()
    ).hexdigest()


def _git_revision() -> str | None:
    """The revision of the project that the command runs in, if there is one."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
