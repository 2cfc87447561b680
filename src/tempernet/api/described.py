"""Settings and provenance of what is sampled in Python, as a run of the command has them."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from tempernet.config import LadderSettings
from tempernet.errors import ConfigError
from tempernet.model.mlp import MLP
from tempernet.model.target import Target, uninformed_loss
from tempernet.store.files import JsonObject
from tempernet.tempering.engine import Engine

OWN_ENERGY = "an energy function"
"""What a target without a network is called."""


def name_of(target: Target) -> str:
    """The network of a target by its layer sizes, or by its type."""
    network = target.network
    if network is None:
        return OWN_ENERGY
    if isinstance(network, MLP):
        return "-".join(map(str, network.sizes))
    return type(network).__name__


def described(
    settings: LadderSettings, engine: Engine, *, burn_in: int, rounds: int
) -> dict[str, object]:
    """Tables of settings that describe what was done in Python, by name.

    Args:
        settings: what the tables hold where nothing else is known.
        engine: what samples.
        burn_in: rounds before the samples count.
        rounds: rounds that count.
    """
    target, dynamics = engine.target, engine.dynamics
    if dynamics.walls == "none" and target.prior.half_width is not None:
        raise ConfigError(
            'walls must be "reflect" or "reject" where the prior is a box; without walls the box '
            "would be ignored"
        )
    network = {"name": name_of(target)}
    if isinstance(target.network, MLP):
        network["output"] = target.network.output
    # A prior without walls has nothing to reflect at.
    walls = "reflect" if dynamics.walls == "none" else dynamics.walls
    known = type(settings.dynamics).model_fields
    moves = {name: value for name, value in asdict(dynamics).items() if name in known}
    moves |= {"walls": walls, "exchange": engine.exchange, "num_exchanges": engine.num_exchanges}
    prior = {"kind": "gaussian" if target.prior.half_width is None else "box"}
    run = {
        "copies": engine.copies,
        "burn_in": burn_in,
        "rounds": rounds,
        "seed": engine.seed,
        "reproducible": engine.layout.tile == 1,
    }
    return {
        "network": settings.network.model_copy(update=network),
        "prior": settings.prior.model_copy(update=prior),
        "data": settings.data.model_copy(update={"n_train": target.num_examples}),
        "dynamics": settings.dynamics.model_copy(update=moves),
        "run": settings.run.model_copy(update=run),
    }


def provenance_of(
    engine: Engine, *, labels: np.ndarray | None = None, n_validation: int = 0
) -> JsonObject:
    """What shaped the samples besides settings, in the form of a run's provenance.

    Args:
        engine: what sampled.
        labels: labels of the test examples, (examples,); None without a test set.
        n_validation: number of validation examples.
    """
    target = engine.target
    classes = None if target.network is None else classes_of(target)
    return {
        "data": {
            "name": "Python",
            "n_train": target.num_examples,
            "n_validation": n_validation,
            "n_test": 0 if labels is None else len(labels),
        },
        "uninformed_loss": math.nan if classes is None else uninformed_loss(classes),
        "scored_labels": [] if labels is None else labels,
        "trajectories": engine.dynamics.num_trajectories,
        "seed": engine.seed,
        "model": {"log_prior_volume": float(target.prior.log_volume)},
    }


def classes_of(target: Target) -> int:
    """Classes of the target's network."""
    assert target.network is not None
    axis = 0 if target.network.example_axis == -1 else -1
    return int(np.shape(target.data.one_hot)[axis])
