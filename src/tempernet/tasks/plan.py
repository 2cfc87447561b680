"""The plan of a run: the gradients, memory, disk and time that it will take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tempernet.config import RunSettings, SamplingSettings
from tempernet.tasks.cost import Cost
from tempernet.tasks.problem import Problem, make_tuning
from tempernet.tempering.adaptation import FIRST_TRAJECTORIES
from tempernet.tempering.engine import Engine
from tempernet.tempering.observables import Axis, Cadence, of_path, row_bytes
from tempernet.tempering.tuning import SETTLED_CHANGES

ARRAYS_A_WEIGHT = 14
"""Copies of all weights alive at once: points, momenta, gradients, and a checkpoint."""
PROCESS = 450e6
"""Bytes of Python and JAX."""
TYPICAL_MINIMISATION = 0.5
"""Share of the gradient budget that minimisation takes: a tile waits for its slowest start."""


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    protocol: str
    network: str
    weights: int
    examples: int
    """Number of training examples."""
    replicas: int
    made_of: str
    """What the replicas are: `2 copies of 22 temperatures`."""
    length: str
    """How long the run is, in its own words."""
    gradients: float
    """Gradients of every replica on all examples: start, tuning, burn-in, sampling and scores."""
    memory: float
    """Bytes."""
    disk: float
    """Bytes."""
    seconds: float
    seconds_a_round: float
    at_most: bool = False
    """Whether the run may stop before."""


class Work(NamedTuple):
    """The work of every replica: its trajectories, and its gradients besides theirs."""

    gradients: float
    trajectories: float


def record_bytes(
    engine: Engine, problem: Problem, rounds: int, cadence: Cadence = "round"
) -> float:
    """Bytes on disk of the observables of a cadence.

    Args:
        engine: what samples.
        problem: its data and network.
        rounds: how often they are measured.
        cadence: which of them.
    """
    rungs = engine.num_rungs
    sizes: dict[Axis, int] = {
        "copy": engine.copies,
        "rung": rungs,
        "pair": rungs - 1,
        "layer": len(problem.network.sizes) - 1,
    }
    # Written once as a chunk, and once more when chunks are joined.
    return 2.0 * rounds * row_bytes(of_path(engine.path), cadence, sizes)


def sampling_plan(
    settings: SamplingSettings,
    problem: Problem,
    engine: Engine,
    cost: Cost,
    work: Work,
    *,
    ready: float,
    made_of: str,
    length: str,
    memory: float,
    disk: float,
    at_most: bool = False,
) -> Plan:
    """The plan of a run of trajectories, whose gradients and time follow from its work.

    Args:
        settings: of the run.
        problem: its data and network.
        engine: what samples.
        cost: seconds of a gradient and of a trajectory.
        work: what every replica does.
        ready: seconds that it took to make the engine.
        made_of: what the replicas are, in words.
        length: how long the run is, in words.
        memory: bytes.
        disk: bytes.
        at_most: whether the run may stop before.
    """
    dynamics = settings.dynamics
    gradients = work.gradients + work.trajectories * dynamics.num_steps
    trajectory = dynamics.num_steps * cost.gradient + cost.trajectory
    sampling = gradients * cost.gradient + work.trajectories * cost.trajectory
    return make_plan(
        settings,
        problem,
        engine,
        made_of=made_of,
        length=length,
        gradients=gradients,
        memory=memory,
        disk=disk,
        seconds=ready + cost.compiling + sampling,
        seconds_a_round=dynamics.num_trajectories * trajectory,
        at_most=at_most,
    )


def make_plan(
    settings: RunSettings,
    problem: Problem,
    engine: Engine,
    *,
    made_of: str,
    length: str,
    gradients: float,
    memory: float,
    disk: float,
    seconds: float,
    seconds_a_round: float,
    at_most: bool,
) -> Plan:
    """The plan of a run, with what its settings and its engine say."""
    return Plan(
        protocol=settings.protocol,
        network=settings.network.name,
        weights=problem.network.num_weights,
        examples=problem.target.num_examples,
        replicas=engine.num_replicas,
        made_of=made_of,
        length=length,
        gradients=gradients,
        memory=memory,
        disk=disk,
        seconds=seconds,
        seconds_a_round=seconds_a_round,
        at_most=at_most,
    )


def minimisation(settings: SamplingSettings) -> float:
    """Gradients before the first round."""
    budget = 0 if settings.start.weights == "prior" else settings.start.max_gradients
    return TYPICAL_MINIMISATION * budget


def tuning_trajectories(settings: SamplingSettings, copies: int, whole: bool) -> float:
    """Trajectories that tuning takes besides the rounds, if no check has to be repeated.

    Args:
        settings: of the run.
        copies: copies of the ladder, which share the trajectories.
        whole: whether a search with its checks follows the first guess.
    """
    tuning, settling = make_tuning(settings), 3 * SETTLED_CHANGES
    first = settling + -(-FIRST_TRAJECTORIES // copies) + 1
    search = settling + -(-tuning.search_trajectories // copies)
    checks = 2 * -(-tuning.check_trajectories // copies)
    return first + (search + checks if whole else 0)


def memory_of(problem: Problem, engine: Engine, besides: float = 0.0) -> float:
    """Bytes that the process will hold, with Python and JAX.

    Args:
        problem: its data and network.
        engine: what samples.
        besides: bytes that the kind of run adds.
    """
    data, layout = problem.data, engine.layout
    examples = data.train.x.nbytes + data.validation.x.nbytes + 3 * data.test.x.nbytes
    weights = ARRAYS_A_WEIGHT * layout.padded * problem.network.num_weights * 4
    units = 4 * sum(problem.network.sizes[1:])
    activations = layout.mesh.size * layout.tile * problem.target.num_examples * 4 * units
    return PROCESS + examples + weights + activations + besides


def state_bytes(engine: Engine, problem: Problem) -> float:
    """Weights and gradients of all replicas in a checkpoint."""
    return engine.num_replicas * problem.network.num_weights * 8
