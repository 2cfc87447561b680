"""What a gradient and a trajectory cost on this machine, by timing a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from tempernet.config import OptimiseSettings, SamplingSettings
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.temperatures import geometric_temperatures, temperature_path
from tempernet.tasks.optimise import free_engine
from tempernet.tasks.problem import Problem, make_engine
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State

S = TypeVar("S", bound=SamplingSettings)
MEASURE_SECONDS = 1.0
MEASURED_TILES = 2
LONG, SHORT = 5, 1
"""Steps of the trajectories that are compared."""
LONG_SEARCH, SHORT_SEARCH = 21, 1
"""Gradients of the minimisations that are compared."""
PROGRAMS = 2.0
"""Programs that a run compiles, in units of those that the measurement does."""


class Cost(NamedTuple):
    """Seconds of the replicas of a run, all together."""

    gradient: float
    """A gradient of every replica."""
    trajectory: float
    """A trajectory of every replica, besides its gradients."""
    compiling: float
    """The programs that a run compiles."""


def trajectory_cost(settings: S, problem: Problem, engine: Engine) -> Cost:
    """Time trajectories of two lengths with settings like the run's.

    The difference is the gradients, the rest what each trajectory adds. A few tiles on every
    device are enough: the time of the others is the same.
    """
    began = time.perf_counter()
    few = _few(engine)
    long, short = (_shortened(settings, problem, steps, engine, few) for steps in (LONG, SHORT))
    state = short.start(short.init_weights())
    seconds = [_seconds_a_round(each, state) for each in (long, short)]
    compiling = time.perf_counter() - began
    scale = engine.num_replicas / short.num_replicas
    gradient = max(seconds[0] - seconds[1], 1e-9) / (LONG - SHORT)
    rest = max(seconds[1] - gradient, 0.0)
    return Cost(scale * gradient, scale * rest, PROGRAMS * compiling)


def minimisation_cost(settings: OptimiseSettings, problem: Problem, engine: Engine) -> Cost:
    """Time minimisations of two lengths; the difference is the gradients."""
    began = time.perf_counter()
    wanted = settings.optimise
    small = free_engine(settings, problem, _few(engine), engine.layout.tile)
    weights = small.init_weights()

    def search(gradients: int) -> Callable[[], object]:
        minimiser = Minimiser(wanted.minimiser, wanted.time_step, gradients, wanted.tolerance)
        return lambda: small.minimise(weights, minimiser)

    long, short = (_median_seconds(search(number)) for number in (LONG_SEARCH, SHORT_SEARCH))
    compiling = time.perf_counter() - began
    gradient = max(long - short, 1e-9) / (LONG_SEARCH - SHORT_SEARCH)
    scale = engine.num_replicas / small.num_replicas
    return Cost(scale * gradient, 0.0, PROGRAMS * compiling)


def _few(engine: Engine) -> int:
    """As many replicas as are measured."""
    return min(engine.num_replicas, MEASURED_TILES * engine.layout.tile * jax.device_count())


def _shortened(settings: S, problem: Problem, num_steps: int, engine: Engine, few: int) -> Engine:
    """An engine like the run's with few replicas and one trajectory of few steps a round."""
    dynamics = {"num_steps": num_steps, "num_trajectories": 1}
    changed = settings.model_copy(
        update={"dynamics": settings.dynamics.model_copy(update=dynamics)}
    )
    path = temperature_path(geometric_temperatures(0.1, 10.0, max(2, few)))
    return make_engine(changed, problem, path, engine.layout.tile, copies=1)


def _seconds_a_round(engine: Engine, state: State) -> float:
    rungs = engine.rungs(engine.first_step * 1e-3)
    return _median_seconds(lambda: engine.round(state, rungs))


def _median_seconds(work_fn: Callable[[], object]) -> float:
    """The median of a few calls after one that compiles."""
    jax.block_until_ready(work_fn())
    times: list[float] = []
    while len(times) < 3 or (sum(times) < MEASURE_SECONDS and len(times) < 30):
        began = time.perf_counter()
        jax.block_until_ready(work_fn())
        times.append(time.perf_counter() - began)
    return float(np.median(times))
