"""A cooling, an optimisation or an evidence that is cut off anywhere goes on to the same bits, and
damage is seen.

As `test_faults` does for a sweep: in this process, a kill being an exception inside a write that
nothing catches.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from runs import assert_same, at_each_step, everything
from test_faults import DAMAGE, Killed, kill_at, kinds, named_by, states_of

from tempernet import config
from tempernet.errors import Stopped, StoreError
from tempernet.kinds import KINDS
from tempernet.paths.path import Path as Rungs
from tempernet.report import anneal as anneal_report
from tempernet.report import evidence as evidence_report
from tempernet.report import optimise as optimise_report
from tempernet.results import anneal as annealed
from tempernet.results import evidence as evidence_results
from tempernet.results import optimise as optimised
from tempernet.runs.status import current, problems
from tempernet.store import RunFolder, outcome
from tempernet.tasks import anneal as anneal_module
from tempernet.tasks import evidence as evidence_module
from tempernet.tasks import optimise as optimise_module
from tempernet.tasks.anneal import Anneal
from tempernet.tasks.base import Task, Watch
from tempernet.tasks.evidence import evidence_task
from tempernet.tasks.optimise import Optimise, free_engine
from tempernet.tasks.problem import make_engine, make_problem
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Progress

pytestmark = pytest.mark.usefixtures("quick_programs")
PROBLEM = [
    "data.n_train=20",
    "data.n_validation=50",
    "data.scored=30",
    "network.name=5-3-2",
    "run.seed=5",
    "run.devices=1",
    # A checkpoint after every round or batch: the more there is to be cut off.
    "output.checkpoint_seconds=1e-9",
]
EVIDENCE = [
    "prior.factor=5",
    "path.num=4",
    "bridge.fit_burn_in=2",
    "bridge.fit_rounds=3",
    "bridge.tune_every=2",
    "dynamics.num_steps=4",
    "start.max_gradients=20",
    "run.copies=2",
    "run.burn_in=4",
    "run.rounds=6",
]
ASSIGNMENTS = {
    "temperature": EVIDENCE,
    "bridge": [*EVIDENCE, "path.method=bridge"],
    "paper": [*EVIDENCE, "protocol=paper"],
    "anneal": [
        "cooling.high=8",
        "cooling.low=0.5",
        "cooling.num=3",
        "cooling.burn_in=2",
        "cooling.rounds=5",
        # The last round of a temperature is not scored.
        "cooling.score_every=2",
        "dynamics.num_steps=4",
        "dynamics.num_trajectories=2",
        "start.max_gradients=20",
        "run.copies=4",
    ],
    "optimise": [
        "optimise.keep=4",
        "optimise.starts=17",
        "optimise.max_gradients=60",
        "optimise.tolerance=0.01",
        "run.copies=3",
    ],
}
TASKS = dict.fromkeys(ASSIGNMENTS, "evidence") | {"anneal": "anneal", "optimise": "optimise"}
ROOMS: dict[str, Any] = {"anneal": annealed, "optimise": optimised, "evidence": evidence_results}
MAKERS: dict[str, Any] = {"anneal": Anneal, "optimise": Optimise, "evidence": evidence_task}
DOCUMENTS: dict[str, Any] = {
    "anneal": anneal_report.document,
    "optimise": optimise_report.document,
    "evidence": evidence_report.document,
}
GoFn = Callable[..., Task]


class Straight(NamedTuple):
    """A run that nothing cut off, how many steps of writing it took, and what goes on with another
    one.
    """

    path: Path
    steps: int
    go: GoFn


def sharing() -> Callable[..., Engine]:
    """Makes engines as the tasks do, but the same one again for the same rungs: it need not be
    compiled again.
    """
    made: dict[str, Engine] = {}

    def make(
        settings: Any, problem: Any, rungs: Rungs, tile: int | None = None, **options: Any
    ) -> Engine:
        # A bridge's quadratic is known by what is drawn from it, or is the copies' own.
        drawn = rungs.draw_fn(jax.random.key(0)) if rungs.draw_fn else ()
        leaves = [
            np.asarray(leaf).tobytes()
            for leaf in jax.tree.leaves((rungs.values, drawn, rungs.of_copies))
        ]
        what = repr((rungs.terms, leaves, sorted(options.items())))
        if what not in made:
            made[what] = make_engine(settings, problem, rungs, tile or 3, **options)
        return made[what]

    return make


@pytest.fixture(scope="module", params=list(ASSIGNMENTS))
def straight(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Straight]:
    """All runs of a kind share their engines."""
    path = tmp_path_factory.mktemp("straight")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 5)).astype(np.float32), rng.integers(2, size=200)
    np.savez(path / "own.npz", x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    task = TASKS[request.param]
    assignments = [*PROBLEM, *ASSIGNMENTS[request.param], f"data.source={path / 'own.npz'}"]
    settings = config.resolve(KINDS[task].settings, assignments=assignments)
    problem = make_problem(settings)
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    def go(path: Path, watch: Watch | None = None) -> Task:
        begun = (path / "provenance.json").exists()
        folder = RunFolder(path) if begun else RunFolder.create(path)
        made: Task = MAKERS[task](settings, problem, folder, watch)
        try:
            made.run()
            found = ROOMS[task].load(path)
            outcome.write(path, DOCUMENTS[task](found), list)
        finally:
            folder.unlock()
        return made

    with pytest.MonkeyPatch.context() as patch:
        shared = sharing()
        for module in (anneal_module, evidence_module):
            patch.setattr(module, "make_engine", shared)
        if task != "evidence":
            free = free_engine(settings, problem, 3, tile=3)
            for module in (anneal_module, optimise_module):
                patch.setattr(module, "free_engine", lambda *_: free)
        at_each_step(count)
        go(path / "run")
        at_each_step()
        yield Straight(path / "run", steps, go)


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    at_each_step()


def test_the_runs_have_something_to_lose(straight: Straight) -> None:
    found = everything(straight.path)
    if "bridges.energy" in found:
        assert found["bridges.energy"].shape == (4 * 6, 2, 1)
    elif "test.chosen_loss" in found:
        assert found["rounds.energy"].shape == (21, 4, 1)
        assert len(found["scores.validation_loss"]) == 6
    elif "rounds.replica" in found:
        assert found["rounds.energy"].shape == (4 + 6, 2, 4)
    else:
        assert len(found["kept.number"]) == 4 < len(found["starts.energy"]) <= 17


@pytest.mark.parametrize("part", range(6))
def test_killed_at_a_step_of_writing(part: int, straight: Straight, tmp_path: Path) -> None:
    """Each part kills at a random moment of its sixth of the run, and once more after it has gone
    on.
    """
    rng = np.random.default_rng(part)
    kill_at(int(rng.integers(straight.steps * part // 6, straight.steps * (part + 1) // 6)))
    with pytest.raises(Killed):
        straight.go(tmp_path / "run")
    kill_at(int(rng.integers(30)))
    try:
        straight.go(tmp_path / "run")
    except Killed:
        at_each_step()
        straight.go(tmp_path / "run")
    assert_same(tmp_path / "run", straight.path)


@pytest.mark.slow
def test_killed_at_every_step_of_writing(straight: Straight, tmp_path: Path) -> None:
    """What is on disk before each step is what a kill there leaves: every different state goes on
    to the same end.
    """
    states = states_of(straight.go, tmp_path)
    assert len(states) > 0.5 * straight.steps
    for copy in states:
        straight.go(copy)
        assert_same(copy, straight.path)
        shutil.rmtree(copy)


def test_stopped_again_and_again(straight: Straight, tmp_path: Path) -> None:
    """Asked to stop once it has told of two pieces of work; each time it goes on by one or two."""
    work = ("cool", "optimise", "fit", "bridge", "burn-in", "sample")
    stops = 0
    while True:
        told: list[Progress] = []

        def enough(told: list[Progress] = told) -> bool:
            return sum(progress.phase in work for progress in told) >= 2

        try:
            straight.go(tmp_path / "run", Watch(told.append, enough))
        except Stopped:
            stops += 1
            assert current(tmp_path / "run")["finished"] is False
            continue
        break
    assert stops >= 4
    assert_same(tmp_path / "run", straight.path)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen_and_recovered_from_or_refused(
    damage: str, straight: Straight, tmp_path: Path
) -> None:
    """Every kind of file, damaged in every way: `check` names it, and a run goes on to the same
    bits or not at all.
    """
    for number, (kind, file) in enumerate(kinds(straight.path).items()):
        copy = tmp_path / str(number)
        shutil.copytree(straight.path, copy)
        DAMAGE[damage](copy / file)
        if kind in ("/config.toml", "/provenance.json") and damage == "removed":
            with pytest.raises(StoreError, match="no run folder"):
                RunFolder.open(copy)
            continue
        harmless = damage == "removed" and kind in ("/status.json", "checkpoints/.npz", "fit/.npz")
        assert named_by(problems(copy), file) or harmless, (kind, damage, problems(copy))
        current(copy)
        try:
            straight.go(copy)
        except StoreError as error:
            assert str(copy) in str(error), (kind, error)
        else:
            found, wanted = everything(copy), everything(straight.path)
            assert all(np.array_equal(found[name], wanted[name]) for name in wanted), kind


def test_a_finished_run_that_goes_on_changes_nothing(straight: Straight, tmp_path: Path) -> None:
    shutil.copytree(straight.path, tmp_path / "run")
    straight.go(tmp_path / "run")
    assert_same(tmp_path / "run", straight.path)
