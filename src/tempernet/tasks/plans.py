"""What a run of each kind will take, the time by measuring a few steps here."""

from __future__ import annotations

import time

from tempernet.config import AnnealSettings, EvidenceSettings, OptimiseSettings, SweepSettings
from tempernet.paths.temperatures import geometric_temperatures, temperature_path
from tempernet.tasks.cost import minimisation_cost, trajectory_cost
from tempernet.tasks.optimise import free_engine
from tempernet.tasks.plan import (
    TYPICAL_MINIMISATION,
    Plan,
    Work,
    make_plan,
    memory_of,
    minimisation,
    record_bytes,
    sampling_plan,
    state_bytes,
    tuning_trajectories,
)
from tempernet.tasks.problem import (
    Problem,
    make_engine,
    make_problem,
    make_schedule,
    temperatures_of,
)
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import KEPT
from tempernet.tempering.scoring import PREDICTIONS, keep_rounds, kept_rungs

CHECKPOINTS = 3
FILES = 5e6
"""Bytes of figures and results."""
COOLING_STEPS = 1.5
"""Temperatures that a population cools by, for each rung of a ladder."""
FORWARD = 1 / 3
"""Cost of a prediction in gradients."""


def plan_sweep(settings: SweepSettings) -> Plan:
    """What a sweep will take."""
    began, problem = time.perf_counter(), make_problem(settings)
    engine = make_engine(settings, problem, temperatures_of(settings))
    ready = time.perf_counter() - began
    run, stages = settings.run, _cooling_stages(settings, engine)
    rounds = stages * settings.start.cooling_rounds + run.burn_in + run.rounds
    tuning = tuning_trajectories(
        settings, run.copies, settings.protocol == "paper" or not run.burn_in
    )
    work = Work(
        minimisation(settings) + _score_gradients(settings, problem),
        rounds * settings.dynamics.num_trajectories + tuning,
    )
    population = stages * run.copies * KEPT * problem.network.num_weights * 4
    predictions = engine.num_replicas * len(problem.test_labels) * problem.network.classes * 4
    records = record_bytes(engine, problem, run.burn_in + run.rounds)
    records += record_bytes(engine, problem, run.rounds // run.score_every, "score")
    records += record_bytes(engine, problem, len(keep_rounds(run.rounds, run.keep)), "keep")
    checkpoint = state_bytes(engine, problem) + predictions + population
    return sampling_plan(
        settings,
        problem,
        engine,
        trajectory_cost(settings, problem, engine),
        work,
        ready=ready,
        made_of=f"{run.copies} copies of {engine.num_rungs} temperatures",
        length=f"{run.burn_in} rounds of burn-in and {run.rounds} that count",
        memory=memory_of(problem, engine, 2 * population + 5 * predictions),
        disk=records + _kept_bytes(settings, problem, engine) + CHECKPOINTS * checkpoint + FILES,
    )


def plan_evidence(settings: EvidenceSettings) -> Plan:
    """What an evidence will take, with the fit of the quadratic if it is by a bridge."""
    began, problem = time.perf_counter(), make_problem(settings)
    run, path, bridge = settings.run, settings.path, settings.bridge
    fitted = path.method == "bridge"
    in_sequence = fitted and settings.protocol == "paper"
    # The rungs are placed by draws of the prior; the time does not depend on where they are.
    at_once = [1.0] if in_sequence else geometric_temperatures(1.0, 1e3, path.num)
    engine = make_engine(settings, problem, temperature_path(at_once))
    ready = time.perf_counter() - began
    rounds = (run.burn_in + run.rounds) * (path.num if in_sequence else 1)
    fit_rounds = bridge.fit_burn_in + bridge.fit_rounds if fitted else 0
    tunings = 1 + path.num // bridge.tune_every if in_sequence else 1
    work = Work(
        minimisation(settings) * (2 if fitted and not in_sequence else 1),
        (rounds + fit_rounds) * settings.dynamics.num_trajectories
        + tunings * tuning_trajectories(settings, run.copies, fitted),
    )
    counted = run.rounds * path.num if in_sequence else rounds
    records = record_bytes(engine, problem, counted)
    # The fit has checkpoints of its own, with w0 and the sums besides.
    states = CHECKPOINTS * (3 if fitted else 1)
    each = f" at each of {path.num} rungs" if in_sequence else ""
    fit = f", after {fit_rounds} of the fit" if fitted else ""
    copies = f"{run.copies} copies of {path.num} rungs"
    return sampling_plan(
        settings,
        problem,
        engine,
        trajectory_cost(settings, problem, engine),
        work,
        ready=ready,
        made_of=f"{copies}, one after the other" if in_sequence else copies,
        length=f"{run.burn_in} rounds of burn-in and {run.rounds} that count{each}{fit}",
        memory=memory_of(problem, engine),
        disk=records + states * state_bytes(engine, problem) + FILES,
    )


def plan_anneal(settings: AnnealSettings) -> Plan:
    """What a cooling will take if nothing stops it."""
    began, problem = time.perf_counter(), make_problem(settings)
    schedule = make_schedule(settings)
    engine = make_engine(settings, problem, temperature_path(schedule.temperatures[:1]))
    ready = time.perf_counter() - began
    rounds, scores = schedule.num * schedule.length, schedule.num * schedule.draws
    scored = min(settings.data.scored, len(problem.data.validation)) * scores
    scored += (schedule.draws + 1) * len(problem.data.test)
    baseline = 0.0 if settings.cooling.optimised else settings.start.max_gradients
    work = Work(
        minimisation(settings)
        + TYPICAL_MINIMISATION * baseline
        + FORWARD * scored / problem.target.num_examples,
        rounds * settings.dynamics.num_trajectories
        + tuning_trajectories(settings, settings.run.copies, False),
    )
    copies = settings.run.copies
    weights = copies * problem.network.num_weights * 4
    records = record_bytes(engine, problem, rounds) + 16 * copies * scores
    # The draws at this temperature, and those at the best one so far.
    checkpoint = state_bytes(engine, problem) + 2 * schedule.draws * weights
    return sampling_plan(
        settings,
        problem,
        engine,
        trajectory_cost(settings, problem, engine),
        work,
        ready=ready,
        made_of=f"{copies} replicas that cool side by side",
        length=f"{schedule.length} rounds at each of {schedule.num} temperatures",
        memory=memory_of(problem, engine, 4 * schedule.draws * weights),
        disk=records + schedule.draws * weights + CHECKPOINTS * checkpoint + FILES,
        at_most=True,
    )


def plan_optimise(settings: OptimiseSettings) -> Plan:
    """What an optimisation will take if no start reaches E = 0 before its budget is used up."""
    began, problem = time.perf_counter(), make_problem(settings)
    wanted, copies = settings.optimise, settings.run.copies
    engine = free_engine(settings, problem, copies, None)
    ready = time.perf_counter() - began
    batches = -(-wanted.starts // copies)
    scored = wanted.keep * (len(problem.data.train) + len(problem.data.test)) / copies
    gradients = batches * wanted.max_gradients
    cost = minimisation_cost(settings, problem, engine)
    kept = wanted.keep * problem.network.num_weights * 4
    return make_plan(
        settings,
        problem,
        engine,
        made_of=f"{copies} starts at once",
        length=f"{wanted.starts} starts of {wanted.max_gradients} gradients",
        gradients=gradients + FORWARD * scored / problem.target.num_examples,
        memory=memory_of(problem, engine, 3 * kept),
        disk=wanted.starts * 32 + (1 + CHECKPOINTS) * kept + FILES,
        seconds=ready + cost.compiling + gradients * cost.gradient,
        seconds_a_round=wanted.max_gradients * cost.gradient,
        at_most=True,
    )


def _cooling_stages(settings: SweepSettings, engine: Engine) -> float:
    """Temperatures that a population stops at before the first round, if replicas start so."""
    return COOLING_STEPS * engine.num_rungs if settings.start.weights == "annealed" else 0.0


def _score_gradients(settings: SweepSettings, problem: Problem) -> float:
    """The scores of a sweep in units of a gradient on the training examples."""
    run, data = settings.run, problem.data
    parts = (data.test, data.validation)
    scored = sum(min(settings.data.scored, len(examples)) for examples in parts)
    whole = len(keep_rounds(run.rounds, run.keep)) * len(data.test)
    return FORWARD * (run.rounds // run.score_every * scored + whole) / problem.target.num_examples


def _kept_bytes(settings: SweepSettings, problem: Problem, engine: Engine) -> float:
    """Bytes of the weights that a sweep keeps, with the predictions beside them."""
    run = settings.run
    rungs = len(kept_rungs(engine.path.values, run.keep_temperatures))
    predictions = min(PREDICTIONS, len(problem.test_labels)) * problem.network.classes
    return run.keep * rungs * run.copies * (problem.network.num_weights + predictions) * 4
