"""Simulated annealing from Python, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

import jax
from jax import Array

from tempernet.annealing.annealer import LEAST_REPLICAS, Annealer
from tempernet.annealing.result import AnnealingResult, collect
from tempernet.annealing.schedule import Schedule
from tempernet.annealing.validation import make_score_fn
from tempernet.data import Examples
from tempernet.errors import check_count, check_type
from tempernet.kernels.dynamics import Dynamics
from tempernet.model.networks import Weights
from tempernet.model.target import Target
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.temperatures import temperature_path
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import Record
from tempernet.tempering.starts import Start, starting_weights
from tempernet.tempering.tuning import Tuning


class EngineOptions(TypedDict, total=False):
    """Options of `Engine` that an annealing run can set; see there."""

    dynamics: Dynamics | None
    masses: Weights
    seed: int
    devices: int | None
    data_devices: int
    tile: int | None
    reproducible: bool


def anneal(
    target: Target,
    validation: Examples | Callable[[Weights], Array],
    *,
    high: float = 100.0,
    low: float = 0.1,
    num: int = 25,
    replicas: int = 8,
    burn_in: int = 5,
    rounds: int = 10,
    score_every: int = 1,
    patience: int = 3,
    start: Start = "prior",
    minimiser: Minimiser | None = None,
    tuning: Tuning | None = None,
    progress_fn: Callable[[str, int, int], None] | None = None,
    **engine_options: Unpack[EngineOptions],
) -> AnnealingResult:
    """Lower the temperature of `replicas` of a target until the validation error rises.

    Args:
        target: what is annealed.
        validation: examples that are neither trained nor tested on, or for an energy of one's own
            any loss of the weights of one replica, a scalar.
        high, low, num: `num` temperatures from `high` down to `low`, a constant factor apart.
        replicas: how many run side by side, at least four: they tell the noise of their loss.
        burn_in: rounds at each temperature that tune the step size.
        rounds: rounds at each temperature that count, every `score_every`-th of them scored.
        score_every: rounds from one score to the next.
        patience: temperatures in a row that the validation error must have risen at.
        start: where replicas start, as for `sample`.
        minimiser: for starts that are minimised.
        tuning: of the first step size.
        progress_fn: `progress_fn(phase, done, total)` is called after each round.
        engine_options: options of `Engine`, such as `dynamics`, `masses`, `seed` and `devices`.

    >>> result = anneal(target, data.validation, high=30, patience=2, seed=1)
    >>> result.best_temperature, result.weights, result.ensemble
    """
    check_type("target", target, Target, "a Target", "build one with Target.classifier(...)")
    schedule = Schedule(high, low, num, burn_in, rounds, score_every, patience)
    check_count("replicas", replicas, least=LEAST_REPLICAS)
    engine = Engine(target, temperature_path([high]), copies=replicas, **engine_options)
    annealer = Annealer(engine, schedule, make_score_fn(engine, validation), tuning)
    position = annealer.start(starting_weights(engine, start, minimiser))
    report = progress_fn or (lambda phase, done, total: None)
    records: list[Record] = []
    while not annealer.finished(position):
        state, on_device = annealer.round(position)
        record = jax.device_get(on_device)
        annealer.accept(position, state, record)
        records.append(record)
        report("cool", position.round, num * schedule.length)
    return collect(annealer, position, records)
