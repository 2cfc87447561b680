"""What a run will take: replicas, gradients, memory, disk and time, the time by measuring a few
steps here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from tempernet.config import Settings
from tempernet.paths.temperatures import geometric_temperatures, temperature_path
from tempernet.tasks.problem import Problem, make_engine, make_problem, make_tuning, temperatures_of
from tempernet.tasks.sweep import PREDICTIONS, keep_rounds, kept_rungs
from tempernet.tempering.adaptation import FIRST_TRAJECTORIES
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import KEPT
from tempernet.tempering.rounds import State
from tempernet.tempering.tuning import SETTLED_CHANGES

MEASURE_SECONDS = 1.0
MEASURED_TILES = 2
ARRAYS_A_WEIGHT = 14
"""Copies of all weights alive at once: points, momenta and gradients before and after a round, and
a checkpoint.
"""
TYPICAL_MINIMISATION = 0.5
"""Of the budget of gradients: the slowest start of a tile decides."""
COOLING_STEPS = 1.5
"""Temperatures that a population cools by, for each rung of a ladder that swaps half of the time."""
PROGRAMS = 2.0
"""Programs that a run compiles, in units of those that the measurement does."""
FORWARD = 1 / 3
"""Cost of a prediction in gradients."""


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    rungs: int
    copies: int
    weights: int
    examples: int
    gradients: float
    """Of one replica on all its examples: start, tuning, burn-in, sampling and scores."""
    memory: float
    """Bytes."""
    disk: float
    """Bytes."""
    seconds: float
    seconds_a_round: float

    @property
    def replicas(self) -> int:
        """All of them."""
        return self.rungs * self.copies


class Cost(NamedTuple):
    """Seconds of a gradient of all replicas, of a trajectory besides its gradients, and to compile."""

    gradient: float
    trajectory: float
    compiling: float


def make_plan(settings: Settings) -> Plan:
    """Work out the sizes, and time a few steps of all replicas on this machine."""
    began = time.perf_counter()
    problem = make_problem(settings)
    engine = make_engine(settings, problem, temperatures_of(settings))
    getting_ready = time.perf_counter() - began
    cost = measure(settings, problem, engine.layout.tile, engine.num_replicas)
    steps, run = settings.dynamics.num_steps, settings.run
    minimise = (
        0
        if settings.start.weights == "prior"
        else TYPICAL_MINIMISATION * settings.start.max_gradients
    )
    cooling = cooling_stages(settings, engine) * settings.start.cooling_rounds
    trajectories = (
        cooling + run.burn_in + run.rounds
    ) * settings.dynamics.num_trajectories + tuning_trajectories(settings)
    scores = score_gradients(settings, problem)
    gradients = minimise + trajectories * steps + scores
    round_seconds = settings.dynamics.num_trajectories * (steps * cost.gradient + cost.trajectory)
    return Plan(
        rungs=engine.num_rungs,
        copies=engine.copies,
        weights=problem.network.num_weights,
        examples=problem.target.num_examples,
        gradients=gradients,
        memory=memory(settings, problem, engine),
        disk=disk(settings, problem, engine),
        seconds=getting_ready
        + PROGRAMS * cost.compiling
        + gradients * cost.gradient
        + trajectories * cost.trajectory,
        seconds_a_round=round_seconds,
    )


def measure(settings: Settings, problem: Problem, tile: int, replicas: int) -> Cost:
    """Time trajectories of two lengths: the difference is the gradients, the rest what each
    trajectory adds.

    A few tiles on every device are enough: the time of the others is the same.
    """
    began = time.perf_counter()
    long, short = (_shortened(settings, problem, steps, tile, replicas) for steps in (5, 1))
    state = short.start(short.init_weights())
    seconds = [_seconds_a_round(each, state) for each in (long, short)]
    compiling = time.perf_counter() - began
    scale = replicas / short.num_replicas
    gradient = max(seconds[0] - seconds[1], 1e-9) / 4
    return Cost(scale * gradient, scale * max(seconds[1] - gradient, 0.0), compiling)


def tuning_trajectories(settings: Settings) -> float:
    """Trajectories that tuning takes besides the rounds, if no check has to be repeated."""
    tuning, copies = make_tuning(settings), settings.run.copies
    settling = 3 * SETTLED_CHANGES
    whole = (
        settling
        + -(-tuning.search_trajectories // copies)
        + 2 * -(-tuning.check_trajectories // copies)
    )
    first = settling + -(-FIRST_TRAJECTORIES // copies) + 1
    if settings.run.burn_in == 0:
        return whole
    return first + (whole if settings.protocol == "paper" else 0)


def cooling_stages(settings: Settings, engine: Engine) -> float:
    """Temperatures that a population stops at on its way to the coldest rung, if replicas start
    that way.
    """
    return COOLING_STEPS * engine.num_rungs if settings.start.weights == "annealed" else 0.0


def score_gradients(settings: Settings, problem: Problem) -> float:
    """The scores in units of a gradient on the training examples."""
    run, data = settings.run, problem.data
    scored = min(settings.data.scored, len(data.test)) + min(
        settings.data.scored, len(data.validation)
    )
    examples = run.rounds // run.score_every * scored + len(
        keep_rounds(run.rounds, run.keep)
    ) * len(data.test)
    return FORWARD * examples / problem.target.num_examples


def memory(settings: Settings, problem: Problem, engine: Engine) -> float:
    """Bytes that the process will hold, with Python and JAX."""
    held = (
        problem.data.train.x.nbytes
        + problem.data.validation.x.nbytes
        + 3 * problem.data.test.x.nbytes
    )
    weights = ARRAYS_A_WEIGHT * engine.layout.padded * problem.network.num_weights * 4
    activations = engine.layout.mesh.size * engine.layout.tile * problem.target.num_examples * 4
    activations *= 4 * sum(problem.network.sizes[1:])
    kept = 2 * _population_bytes(settings, problem, engine)
    return 450e6 + held + weights + activations + kept + 5 * _ensemble_bytes(problem, engine)


def disk(settings: Settings, problem: Problem, engine: Engine) -> float:
    """Bytes of the run folder: records, kept weights, three checkpoints, figures and results."""
    run, replicas = settings.run, engine.num_replicas
    layers = len(problem.network.sizes) - 1
    a_round = replicas * (4 * 9 + 4 * layers) + 16 * engine.num_rungs
    records = (run.burn_in + run.rounds) * a_round * 2
    rungs = len(kept_rungs(engine.path.values, run.keep_temperatures))
    predictions = min(PREDICTIONS, len(problem.test_labels)) * problem.network.classes
    kept = run.keep * rungs * run.copies * (problem.network.num_weights + predictions) * 4
    checkpoint = replicas * problem.network.num_weights * 8 + _ensemble_bytes(problem, engine)
    checkpoint += _population_bytes(settings, problem, engine)
    return records + kept + 3 * checkpoint + 5e6


def _ensemble_bytes(problem: Problem, engine: Engine) -> float:
    return engine.num_replicas * len(problem.test_labels) * problem.network.classes * 4


def _population_bytes(settings: Settings, problem: Problem, engine: Engine) -> float:
    """What is kept of a population on its way."""
    return cooling_stages(settings, engine) * engine.copies * KEPT * problem.network.num_weights * 4


def _shortened(
    settings: Settings, problem: Problem, num_steps: int, tile: int, replicas: int
) -> Engine:
    """An engine like the run's with fewer replicas and one trajectory of few steps a round."""
    few = min(replicas, MEASURED_TILES * tile * jax.device_count())
    shape = {
        "dynamics": {"num_steps": num_steps, "num_trajectories": 1},
        "run": {"copies": 1},
    }
    changed = {
        name: getattr(settings, name).model_copy(update=update) for name, update in shape.items()
    }
    path = temperature_path(geometric_temperatures(0.1, 10.0, max(2, few)))
    return make_engine(settings.model_copy(update=changed), problem, path, tile)


def _seconds_a_round(engine: Engine, state: State) -> float:
    """The median of a few rounds after one that compiles."""
    rungs = engine.rungs(engine.first_step * 1e-3)
    jax.block_until_ready(engine.round(state, rungs))
    times: list[float] = []
    while len(times) < 3 or (sum(times) < MEASURE_SECONDS and len(times) < 30):
        began = time.perf_counter()
        jax.block_until_ready(engine.round(state, rungs))
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def rows(plan: Plan, settings: Settings, duration: str) -> list[tuple[str, str]]:
    """The plan in words."""
    run = settings.run
    return [
        ("protocol", settings.protocol),
        ("network", f"{settings.network.name}, {plan.weights:,} weights"),
        ("training examples", f"{plan.examples:,}"),
        ("replicas", f"{plan.replicas} ({plan.copies} copies of {plan.rungs} temperatures)"),
        (
            "rounds",
            f"{run.burn_in} of burn-in and {run.rounds} that count, {plan.seconds_a_round:.3g} s each",
        ),
        ("gradients", f"{plan.gradients:,.0f} of every replica"),
        ("memory", f"{plan.memory / 1e9:.2f} GB"),
        ("disk", f"{plan.disk / 1e6:.0f} MB"),
        ("time here", duration),
    ]
