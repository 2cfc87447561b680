"""Long runs: memory, open files and the number of files stay where they are, and a checkpoint costs
next to nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import options
from test_processes import SETTINGS, Process

from tempernet import config
from tempernet.errors import StoreError
from tempernet.runs.status import problems
from tempernet.store import Checkpoints, Records, RunFolder, files
from tempernet.store.folder import STATUS
from tempernet.store.records import FULL
from tempernet.tasks.problem import make_problem
from tempernet.tasks.sweep import Sweep

pytestmark = pytest.mark.slow

ROUNDS = 24_000
"""Of which ten thousand fill the first chunk of records."""
CHECKPOINT_SHARE = 0.02
"""Of a run's time, at most."""


def vitals(pid: int, path: Path) -> tuple[int, float, int, int] | None:
    """(round, MB of memory, open files, files in the folder) of a process that samples; None in
    other phases.
    """
    try:
        told = files.read_json(path / STATUS)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        handles = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - these are no files
    except (OSError, StoreError, IndexError):
        return None
    # A process that has ended has neither until its parent takes note.
    if told["phase"] != "sample" or not pages or not handles:
        return None
    return (
        told["done"],
        pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        handles,
        sum(1 for _ in path.rglob("*.*")),
    )


def test_thousands_of_rounds(tmp_path: Path) -> None:
    path = tmp_path / "run"
    quick = [
        text
        for text in SETTINGS
        if not text.startswith(("dynamics.", "output.", "run.score_every"))
    ]
    longer = [
        *quick,
        "dynamics.num_steps=5",
        "dynamics.num_trajectories=1",
        "run.score_every=50",
        "run.burn_in=200",
        f"run.rounds={ROUNDS}",
        "output.checkpoint_seconds=0.5",
        "output.figures=false",
    ]
    process = Process("sweep", "--quiet", "--out", path, *options(longer))
    seen = []
    while process.popen.poll() is None:
        seen += [found] if (found := vitals(process.popen.pid, path)) else []
        time.sleep(0.5)
    assert process.end() == 0, process.lines
    assert problems(path) == []
    rounds, memory, handles, entries = np.array(sorted(set(seen))).T
    first, late = rounds < ROUNDS / 24, rounds > 3 * ROUNDS / 4
    early = (rounds > ROUNDS / 2) & ~late
    assert min(part.sum() for part in (first, early, late)) >= 3, rounds
    growth, filling = (
        float(np.median(memory[late]) - np.median(memory[part])) for part in (early, first)
    )
    megabytes = f"{np.median(memory[late]):.1f} MB, {growth:+.1f} MB in the second half"
    opened = f"{int(handles.min())} to {int(handles.max())} open files"
    middle = f"{int(entries[early].min())} to {int(entries[early].max())} after half of them"
    print(f"\n{ROUNDS} rounds: {megabytes}, {filling:+.1f} MB since the first thousand; {opened};")
    print(
        f"{int(entries[first].max())} files at first, {middle}, {int(entries[late].max())} at last"
    )
    # Half a run's records would be 5 MB if they stayed in memory; now and then there is a step of
    # one or two.
    assert growth < 4
    # A chunk is in memory a few times when it grows.
    assert filling < 8 * FULL / 1e6
    assert np.median(handles[late]) <= np.median(handles[early]) + 1
    # A write in progress and files that a reader may be at come and go; four megabytes of records
    # are a file.
    assert (
        np.median(entries[late]) <= np.median(entries[early]) + 2
        and entries.max() <= entries[first].max() + 12
    )


def test_a_checkpoint_costs_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's network, 112 replicas: what the store takes for a checkpoint, against the time
    between two.
    """
    settings = config.resolve(
        config.SweepSettings,
        assignments=[
            "network.name=M3",
            "data.n_train=50",
            "ladder.num=28",
            "dynamics.num_steps=1",
            "dynamics.num_trajectories=1",
            "start.weights=prior",
            "run.copies=4",
            "run.burn_in=8",
            "run.rounds=256",
            "run.score_every=100",
            "run.keep=1",
            "run.seed=1",
            "run.reproducible=true",
            "output.checkpoint_seconds=0.5",
        ],
    )
    spent: list[float] = []

    def timed(method: Callable[..., Any], last: bool) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began = time.monotonic()
            try:
                return method(*given)
            finally:
                so_far.append(time.monotonic() - began)
                if last:
                    spent.append(sum(so_far))
                    so_far.clear()

        return call

    so_far: list[float] = []
    monkeypatch.setattr(Records, "flush", timed(Records.flush, last=False))
    monkeypatch.setattr(Checkpoints, "save", timed(Checkpoints.save, last=True))
    folder = RunFolder.create(tmp_path / "run")
    Sweep(settings, make_problem(settings), folder).run()
    folder.unlock()
    every = config.SweepSettings().output.checkpoint_seconds
    size = max(file.stat().st_size for file in (tmp_path / "run" / "checkpoints").glob("*.npz"))
    share = float(np.mean(spent)) / every
    each = f"{len(spent)} checkpoints of {size / 1e6:.1f} MB: {np.mean(spent):.3f} s each"
    print(f"\n{each}, {share:.2%} of {every:.0f} s")
    assert len(spent) >= 3 and share < CHECKPOINT_SHARE
