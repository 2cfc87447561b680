"""Sweeps whose replicas cool together first: where they start, and the same bits after any stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runs import assert_same, here, options

from tempernet import config
from tempernet.errors import Stopped
from tempernet.runs.status import problems
from tempernet.store import RunFolder
from tempernet.tasks.base import Watch
from tempernet.tasks.problem import make_problem
from tempernet.tasks.sweep import Sweep
from tempernet.tempering.host import Progress
from tempernet.tempering.sampler import COOL

pytestmark = pytest.mark.usefixtures("quick_programs")
SMALL = (
    "start.weights=annealed",
    "start.cooling_rounds=2",
    "data.size=4",
    "data.n_train=20",
    "data.n_validation=50",
    "data.scored=30",
    "network.name=16-3-10",
    "prior.factor=5",
    "ladder.low=0.5",
    "ladder.high=20.0",
    "ladder.num=5",
    "dynamics.num_steps=6",
    "dynamics.num_trajectories=1",
    "start.max_gradients=100",
    "run.copies=2",
    "run.burn_in=8",
    "run.rounds=8",
    "run.seed=5",
    "run.reproducible=true",
    "run.devices=1",
    "output.checkpoint_seconds=1e-9",
)


def go(path: Path, stop_after: int | None = None, kind: str = "adaptive") -> RunFolder:
    """Run, or go on with, the sweep at a path; stop after so many temperatures that a population
    cooled to.
    """
    settings = config.resolve(config.SweepSettings, assignments=[*SMALL, f"ladder.kind={kind}"])
    folder = RunFolder(path) if (path / "provenance.json").exists() else RunFolder.create(path)
    told: list[Progress] = []

    def should_stop() -> bool:
        return (
            stop_after is not None and sum(progress.phase == COOL for progress in told) > stop_after
        )

    try:
        Sweep(settings, make_problem(settings), folder, Watch(told.append, should_stop)).run()
    finally:
        folder.unlock()
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without any stop."""
    path = tmp_path_factory.mktemp("annealed") / "whole"
    go(path)
    return path


def test_a_sweep_starts_where_its_population_passed(whole: Path, tmp_path: Path) -> None:
    rounds = RunFolder(whole).records.load("rounds")
    assert rounds["energy"].shape == (16, 2, 5)
    ladder = rounds["temperature"]
    assert (ladder[:, 0] == 0.5).all() and (ladder[:, -1] == 20.0).all()
    # An adaptive ladder begins where the population found the barrier, a geometric one as it was
    # asked for.
    assert not np.allclose(ladder[0], np.geomspace(0.5, 20, 5), rtol=1e-3)
    rounds = go(tmp_path / "geometric", kind="geometric").records.load("rounds")
    np.testing.assert_allclose(rounds["temperature"][0], np.geomspace(0.5, 20, 5))
    # Replicas are where they belong from the first round on: those of the coldest rung have the
    # least energy.
    first = rounds["energy"][0].mean(axis=0)
    assert first[0] < 0.8 * first[-1]
    assert "cooled in" in (whole / "log.txt").read_text()


def test_stops_while_replicas_cool_change_no_bit(whole: Path, tmp_path: Path) -> None:
    """Stopped before the first checkpoint, and twice at temperatures in between."""
    path = tmp_path / "stopped"
    for stages in (0, 1, 3):
        with pytest.raises(Stopped):
            go(path, stop_after=stages)
        log = (path / "log.txt").read_text()
        assert "cooled in" not in log and ("while replicas cool" in log) == (stages > 0)
        assert problems(path) == []
        told = here("status", path)
        assert told.returncode == 0 and "cool" in told.stdout and "none yet" in told.stdout
    assert here("resume", path).returncode == 0
    assert_same(path, whole)


def test_only_a_sweep_starts_annealed() -> None:
    ended = here("evidence", "--out", "nowhere", *options(["start.weights=annealed"]))
    assert ended.returncode == 2 and "start.weights" in ended.stderr and "'apart'" in ended.stderr
    ended = here("sweep", "--out", "nowhere", *options(["start.cooling_rounds=0"]))
    assert ended.returncode == 2 and "start.cooling_rounds" in ended.stderr
    ended = here(
        "sweep", "--out", "nowhere", "--protocol", "paper", *options(["start.weights=annealed"])
    )
    assert ended.returncode == 2 and "start.weights" in ended.stderr
