"""A run that is cut off anywhere goes on to the same bits, and damage is seen.

The runs are small and in this process; a kill is an exception that nothing catches, raised inside a
write. What was in memory is gone, what is on disk stays as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from runs import assert_same, at_each_step, everything

from tempernet import config
from tempernet.errors import ConfigError, StoreError
from tempernet.report import figures
from tempernet.report.sweep import document
from tempernet.results import sweep as results
from tempernet.results.sweep_files import netcdf
from tempernet.runs.status import current, problems
from tempernet.store import RunFolder, files, outcome
from tempernet.tasks import sweep as sweep_module
from tempernet.tasks.problem import Problem, make_engine, make_problem, temperatures_of
from tempernet.tasks.sweep import Sweep
from tempernet.tempering.engine import Engine

pytestmark = pytest.mark.usefixtures("quick_programs")
SETTINGS = config.resolve(
    config.SweepSettings,
    assignments=[
        "data.size=4",
        "data.n_train=20",
        "data.n_validation=50",
        "data.scored=30",
        "network.name=16-3-10",
        "ladder.low=0.5",
        "ladder.high=8",
        "ladder.num=4",
        "dynamics.num_steps=4",
        "dynamics.num_trajectories=2",
        "start.max_gradients=20",
        "run.copies=2",
        "run.burn_in=8",
        "run.rounds=6",
        "run.score_every=2",
        "run.keep=2",
        "run.seed=5",
        # A checkpoint after every round: the more there is to be cut off.
        "output.checkpoint_seconds=1e-9",
    ],
)


class Killed(BaseException):
    """Stands for a SIGKILL."""


@pytest.fixture(scope="module")
def parts() -> tuple[Problem, Engine]:
    problem = make_problem(SETTINGS)
    return problem, make_engine(SETTINGS, problem, temperatures_of(SETTINGS), tile=4)


@pytest.fixture
def go_on(
    parts: tuple[Problem, Engine], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], Sweep]:
    """Run or go on with the run at a path, in a new `Sweep` that shares what is compiled."""
    problem, engine = parts

    def seeded(settings: config.SweepSettings, *_: object) -> Engine:
        engine.seed = settings.run.seed
        return engine

    monkeypatch.setattr(sweep_module, "make_engine", seeded)

    def go(path: Path, settings: config.SweepSettings = SETTINGS) -> Sweep:
        begun = (path / "provenance.json").exists()
        folder = RunFolder(path) if begun else RunFolder.create(path)
        try:
            made = Sweep(settings, problem, folder)
            made.run()
            write_results(path)
        finally:
            folder.unlock()
        return made

    return go


def write_results(path: Path) -> None:
    """What a run ends with: results, and a figure for all of them."""
    found = results.load(path)

    def write() -> list[Path]:
        files.write_atomic(path / "results.nc", netcdf(found))
        drawn = figures.save(figures.swaps_figure(found), path / "figures" / "swaps")
        return [path / "results.nc", *drawn]

    outcome.write(path, document(found), write)


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    at_each_step()


@pytest.fixture(scope="module")
def straight(
    parts: tuple[Problem, Engine], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int]:
    """A run that nothing cuts off, and how many steps of writing it takes."""
    problem, engine = parts
    path = tmp_path_factory.mktemp("straight") / "run"
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_module, "make_engine", lambda *_: engine)
        patch.setattr(files, "before_step", count)
        folder = RunFolder.create(path)
        Sweep(SETTINGS, problem, folder).run()
        write_results(path)
        folder.unlock()
    return path, steps


def kill_at(step: int) -> None:
    """From now on, die before this step of writing."""
    left = step

    def hook(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    at_each_step(hook)


def states_of(run_fn: Callable[[Path], object], folder: Path) -> list[Path]:
    """Copies of a run as it is on disk before each step of writing, those that differ: what a kill
    there leaves.
    """
    states: dict[str, Path] = {}
    run = folder / "run"

    def snapshot(*_: object) -> None:
        content = [
            (str(f.relative_to(run)), f.read_bytes()) for f in sorted(run.rglob("*")) if f.is_file()
        ]
        state = files.sha256(repr(content).encode())
        if state not in states:
            states[state] = Path(shutil.copytree(run, folder / f"{len(states)}"))

    at_each_step(snapshot)
    run_fn(run)
    at_each_step()
    return list(states.values())


@pytest.mark.parametrize("part", range(12))
def test_killed_at_a_step_of_writing(
    part: int, straight: tuple[Path, int], go_on: Callable[[Path], Sweep], tmp_path: Path
) -> None:
    """Each part kills at a random moment of its twelfth of the run, and once more after it has gone
    on.
    """
    path, steps = straight
    rng = np.random.default_rng(part)
    kill_at(int(rng.integers(steps * part // 12, steps * (part + 1) // 12)))
    with pytest.raises(Killed):
        go_on(tmp_path / "run")
    kill_at(int(rng.integers(40)))
    try:
        go_on(tmp_path / "run")
    except Killed:
        at_each_step()
        go_on(tmp_path / "run")
    assert_same(tmp_path / "run", path)


@pytest.mark.slow
def test_killed_at_every_step_of_writing(
    straight: tuple[Path, int], go_on: Callable[[Path], Sweep], tmp_path: Path
) -> None:
    """What is on disk before each step is what a kill there leaves: every different state goes on
    to the same end.
    """
    states = states_of(go_on, tmp_path)
    assert len(states) > 0.5 * straight[1]
    for copy in states:
        go_on(copy)
        assert_same(copy, straight[0])
        shutil.rmtree(copy)


@pytest.mark.parametrize("fault", ["disk full", "input/output error"])
def test_a_write_that_fails_leaves_the_last_checkpoint(
    fault: str, straight: tuple[Path, int], go_on: Callable[[Path], Sweep], tmp_path: Path
) -> None:
    path, steps = straight
    left = steps // 2

    def hook(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28 if fault == "disk full" else 5, fault)

    at_each_step(hook)
    with pytest.raises(
        StoreError,
        match="the disk is full: .* needs .* MB" if fault == "disk full" else "cannot write",
    ):
        go_on(tmp_path / "run")
    at_each_step()
    go_on(tmp_path / "run")
    assert_same(tmp_path / "run", path)


def test_more_rounds_later_are_the_same_as_at_once(
    straight: tuple[Path, int], go_on: Callable, tmp_path: Path
) -> None:
    shorter = SETTINGS.model_copy(
        update={"run": SETTINGS.run.model_copy(update={"rounds": 3, "keep": 0})}
    )
    longer = SETTINGS.model_copy(update={"run": SETTINGS.run.model_copy(update={"keep": 0})})
    go_on(tmp_path / "run", shorter)
    go_on(tmp_path / "run", longer)
    found, wanted = everything(tmp_path / "run"), everything(straight[0])
    for name in (
        "rounds.energy",
        "rounds.replica",
        "scores.test_loss",
        "end.ensemble",
        "end.step_sizes",
    ):
        assert np.array_equal(found[name], wanted[name]), name


def test_burn_in_may_grow_but_not_shrink(go_on: Callable, tmp_path: Path) -> None:
    go_on(tmp_path / "run")
    grown = SETTINGS.model_copy(update={"run": SETTINGS.run.model_copy(update={"burn_in": 12})})
    made = go_on(tmp_path / "run", grown)
    assert any("burn-in grows from 8 to 12" in text for text in made.warnings)
    checkpoint, _ = RunFolder(tmp_path / "run").checkpoints.latest()
    # The run was at round 14 when its burn-in grew to 12; the scores of rounds 16 and 18 count.
    assert checkpoint is not None and checkpoint.meta["round"] == 18
    assert checkpoint.arrays["scores"] == 2
    with pytest.raises(ConfigError, match="can only grow"):
        go_on(tmp_path / "run", SETTINGS)


@pytest.fixture
def others(straight: tuple[Path, int], go_on: Callable, tmp_path: Path) -> dict[str, Path]:
    """Runs that files may come from: another seed, and the run itself before it was made longer;
    the run, longer.
    """
    for name, key, value in (("another run's", "seed", 6), ("an older state's", "rounds", 4)):
        run = SETTINGS.run.model_copy(update={key: value})
        go_on(tmp_path / name, SETTINGS.model_copy(update={"run": run}))
    shutil.copytree(tmp_path / "an older state's", tmp_path / "longer")
    go_on(tmp_path / "longer")
    return {name: tmp_path / name for name in ("another run's", "an older state's", "longer")}


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "flipped": lambda file: file.write_bytes(_flipped(file.read_bytes())),
    "emptied": lambda file: file.write_bytes(b""),
    "removed": lambda file: file.unlink(),
}


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


def kinds(path: Path) -> dict[str, Path]:
    """One file of each kind that a run folder holds, the newest: the table grows by itself with new
    kinds.
    """
    found = {}
    for file in sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock"):
        stem = "".join(c for c in file.stem if not c.isdigit()).strip("-")
        found[f"{file.parent.name if file.parent != path else ''}/{stem}{file.suffix}"] = (
            file.relative_to(path)
        )
    return found


def named_by(told: list[str], file: Path) -> bool:
    """Whether a complaint says which file is wrong: by name, as the hash of another, or as the
    folder of its rows.
    """
    names = {".sha256": file.name, ".json": f"/{file.parent} has"}
    return any(str(file) in text or names.get(file.suffix, str(file)) in text for text in told)


def go_on_or_refuse(copy: Path, path: Path, go_on: Callable[[Path], Sweep], kind: str) -> None:
    """A run goes on to the same bits as the one at `path`, or not at all and with a reason; what is
    read is right.
    """
    try:
        energy = results.load(copy).series.energy.values
    except StoreError as error:
        assert str(copy) in str(error), (kind, error)
    else:
        assert np.array_equal(energy, results.load(path).series.energy.values), kind
    try:
        go_on(copy)
    except StoreError as error:
        assert str(copy) in str(error), (kind, error)
    else:
        found, wanted = everything(copy), everything(path)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted), kind


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen_and_recovered_from_or_refused(
    damage: str, straight: tuple[Path, int], go_on: Callable[[Path], Sweep], tmp_path: Path
) -> None:
    """Every kind of file, damaged in every way: `check` names it, and a run goes on to the same
    bits or not at all.
    """
    path, _ = straight
    assert len(kinds(path)) >= 15
    for number, (kind, file) in enumerate(kinds(path).items()):
        copy = tmp_path / str(number)
        shutil.copytree(path, copy)
        DAMAGE[damage](copy / file)
        if kind in ("/config.toml", "/provenance.json") and damage == "removed":
            with pytest.raises(StoreError, match="no run folder"):
                RunFolder.open(copy)
            continue
        # A run may not have told of itself yet, and a kill before the newest checkpoint was in
        # place looks the same as its loss, which costs a round.
        harmless = damage == "removed" and kind in ("/status.json", "checkpoints/.npz")
        assert named_by(problems(copy), file) or harmless, (kind, damage, problems(copy))
        current(copy)
        go_on_or_refuse(copy, path, go_on, kind)
        if kind.startswith(("/results", "figures")):
            assert problems(copy) == [], kind


@pytest.mark.parametrize("whose", ["another run's", "an older state's"])
def test_a_file_of_another_run_or_time_is_seen_and_not_used(
    whose: str,
    straight: tuple[Path, int],
    others: dict[str, Path],
    go_on: Callable[[Path], Sweep],
    tmp_path: Path,
) -> None:
    path = straight[0] if whose == "another run's" else others["longer"]
    there = kinds(others[whose])
    swapped = {kind: [(file, there[kind])] for kind, file in kinds(path).items()}
    # A checkpoint and its hash fit each other wherever they come from.
    swapped["checkpoint and hash"] = [*swapped["checkpoints/.npz"], *swapped["checkpoints/.sha256"]]
    seen = []
    for number, (kind, pairs) in enumerate(swapped.items()):
        copy = tmp_path / str(number)
        shutil.copytree(path, copy)
        for file, other in pairs:
            shutil.copy(others[whose] / other, copy / file)
        if all((copy / file).read_bytes() == (path / file).read_bytes() for file, _ in pairs):
            continue
        # An old heartbeat says when it was; nothing is made of it.
        harmless = kind == "/status.json" and whose == "an older state's"
        file = pairs[0][0]
        assert harmless or named_by(problems(copy), file) or kind == "/provenance.json", (
            kind,
            problems(copy),
        )
        if kind == "/provenance.json":
            assert any("provenance.json" in text for text in problems(copy))
        seen.append(kind)
        current(copy)
        go_on_or_refuse(copy, path, go_on, kind)
    assert {
        "/provenance.json",
        "/config.toml",
        "rounds/manifest.json",
        "checkpoint and hash",
    } < set(seen)
    assert len(seen) >= 12


def test_two_writers_are_one_too_many(straight: tuple[Path, int]) -> None:
    first, second = RunFolder(straight[0]), RunFolder(straight[0])
    first.lock()
    try:
        with pytest.raises(StoreError, match="another process is writing"):
            second.lock()
    finally:
        first.unlock()
    second.lock()
    second.unlock()


def test_other_data_are_refused(
    straight: tuple[Path, int], go_on: Callable, tmp_path: Path
) -> None:
    shutil.copytree(straight[0], tmp_path / "run")
    noted = files.read_json(tmp_path / "run" / "provenance.json")
    noted["data"]["sha256"] = "0" * 64
    files.write_json(tmp_path / "run" / "provenance.json", noted)
    with pytest.raises(StoreError, match=r"the data of .* have changed"):
        go_on(tmp_path / "run")


def test_restarts_are_noted(straight: tuple[Path, int], go_on: Callable, tmp_path: Path) -> None:
    shutil.copytree(straight[0], tmp_path / "run")
    noted = files.read_json(tmp_path / "run" / "provenance.json")
    noted["versions"]["jax"] = "0.0.0"
    files.write_json(tmp_path / "run" / "provenance.json", noted)
    made = go_on(tmp_path / "run")
    assert any("no longer bit by bit" in text for text in made.warnings)
    restarts = files.read_json(tmp_path / "run" / "provenance.json")["restarts"]
    assert [restart["bitwise"] for restart in restarts] == [False] and restarts[0]["round"] == 14
