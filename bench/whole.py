"""A sweep with everything that belongs to it, beside the engine's rounds alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from task import LONG_RUN

from tempernet import config, configure
from tempernet.report import figures
from tempernet.report.sweep import document
from tempernet.results import sweep as results
from tempernet.store import RunFolder, outcome
from tempernet.tasks.base import Watch
from tempernet.tasks.problem import make_problem
from tempernet.tasks.sweep import Sweep
from tempernet.tempering.host import Progress
from tempernet.tempering.sampler import SAMPLE


def rate(rounds: int) -> dict[str, Any]:
    """Seconds of a round of a sweep, with all that belongs to it, and of `engine.round` alone.

    M3 on D_500, 112 replicas, one trajectory of 100 steps a round and scores every five rounds:
    rounds are short and the rest weighs more than in the paper's settings. Results and figures are
    drawn once in a long run.
    """
    configure()
    settings = config.resolve(
        config.SweepSettings,
        preset="paper-d500",
        assignments=[
            "ladder.num=56",
            "run.copies=2",
            "dynamics.num_trajectories=1",
            "run.burn_in=8",
            f"run.rounds={rounds}",
            "run.seed=0",
            # One checkpoint in about ten rounds, as often as by default in rounds of six seconds.
            "output.checkpoint_seconds=30",
        ],
    )
    ends: list[float] = []

    def note(progress: Progress) -> None:
        if progress.phase == SAMPLE:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(
            settings, make_problem(settings), RunFolder.create(Path(folder) / "run"), Watch(note)
        )
        sweep.run()
        began = time.perf_counter()
        found = results.load(Path(folder) / "run")
        outcome.write(found.path, document(found), lambda: results.write_netcdf(found))
        figures.draw(figures.sweep_figures(found), Path(folder) / "figures")
        finishing = time.perf_counter() - began
    # The first scores compile; from the second to the last they are as they go on to be.
    skipped = 2 * settings.run.score_every
    whole = (ends[-1] - ends[skipped - 1]) / (len(ends) - skipped)
    alone = _engine_seconds(sweep)
    return {
        "whole_seconds": whole,
        "engine_seconds": alone,
        "finishing_seconds": finishing,
        "share": LONG_RUN * alone / (LONG_RUN * whole + finishing),
    }


def _engine_seconds(sweep: Sweep, rounds: int = 10) -> float:
    """The mean time of a round of the same engine, nothing else."""
    engine = sweep.engine
    state, rungs = engine.start(engine.prior_weights()), engine.rungs(1e-3)
    state, _ = jax.block_until_ready(engine.round(state, rungs))
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(engine.round(state, rungs))
        times.append(time.perf_counter() - began)
    return float(np.mean(times))
