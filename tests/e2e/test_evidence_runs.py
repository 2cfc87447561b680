"""Evidences as tasks: the same number from any path, the same bits after any stop, and models
compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from runs import here

from tempernet import config
from tempernet.errors import ConfigError, Stopped, StoreError
from tempernet.report.evidence import document as evidence_document
from tempernet.results import comparison
from tempernet.results import evidence as evidence_results
from tempernet.runs.status import current, problems
from tempernet.store import RunFolder, outcome
from tempernet.store.folder import QUADRATIC
from tempernet.tasks.base import Watch
from tempernet.tasks.evidence import evidence_task
from tempernet.tasks.problem import make_problem

pytestmark = pytest.mark.usefixtures("quick_programs")
SMALL = (
    "data.size=4",
    "data.n_train=20",
    "data.n_validation=50",
    "data.scored=30",
    "network.name=16-3-10",
    "prior.factor=5",
    "dynamics.num_steps=6",
    "path.num=6",
    "bridge.fit_burn_in=2",
    "bridge.fit_rounds=3",
    "bridge.tune_every=3",
    "start.max_gradients=100",
    "run.copies=2",
    "run.burn_in=8",
    "run.rounds=8",
    "run.seed=5",
    "run.reproducible=true",
    "run.devices=1",
    "output.checkpoint_seconds=1e-9",
)
KINDS = {
    "temperature": SMALL,
    "colder": (*SMALL, "path.coldest=0.5", "path.num=8"),
    "bridge": (*SMALL, "path.method=bridge"),
    # MBAR takes a minute to give up on rungs that do not overlap: a narrow box.
    "paper": (*SMALL, "protocol=paper", "prior.factor=2", "start.max_gradients=2"),
}


def settings_of(kind: str, *more: str) -> config.EvidenceSettings:
    return config.resolve(config.EvidenceSettings, assignments=[*KINDS[kind], *more])


def go(
    path: Path, settings: config.EvidenceSettings, should_stop: Callable[[], bool] = lambda: False
) -> None:
    """Run, or go on with, the evidence at a path."""
    folder = RunFolder(path) if (path / "provenance.json").exists() else RunFolder.create(path)
    try:
        evidence_task(
            settings, make_problem(settings), folder, Watch(should_stop=should_stop)
        ).run()
        outcome.write(path, evidence_document(evidence_results.load(path)))
    finally:
        folder.unlock()


@pytest.fixture(scope="module", params=list(KINDS))
def straight(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A run of each kind without any stop."""
    path = tmp_path_factory.mktemp("evidence") / request.param
    go(path, settings_of(request.param))
    return request.param, path


def everything(path: Path) -> dict[str, Any]:
    """Records and the last state of a run."""
    folder = RunFolder(path)
    found, _ = folder.checkpoints.latest()
    assert found is not None
    rows = {f"{s}/{n}": a for s in folder.records.series for n, a in folder.records.load(s).items()}
    return rows | found.arrays


def test_a_run_says_what_it_found_and_is_whole(straight: tuple[str, Path]) -> None:
    kind, path = straight
    found = evidence_results.load(path)
    assert found.finished and problems(path) == []
    said: dict[str, Any] = dict(evidence_document(found))
    assert said["log_evidence"] == pytest.approx(said["log_integral"] - said["log_prior_volume"])
    assert said["headline"] == ("simpson" if kind == "paper" else "bar")
    assert set(said["estimators"]) >= {"simpson", "trapezoid", "stepping stone", "bar", "mbar"}
    # Of the eight of "colder", those below T = 1 do not count.
    assert len(said["rungs"]) in ((3, 4, 5, 6, 7) if kind == "colder" else (6,))
    assert kind not in ("temperature", "colder") or said["rungs"][0]["temperature"] == 1
    assert current(path)["finished"]
    if kind in ("bridge", "paper"):
        assert len(RunFolder(path).read_json(QUADRATIC)["log_integral"]) == (
            2 if kind == "paper" else 1
        )


def stopping_after(asked: int) -> Callable[[], bool]:
    """Says to stop when it has been asked so often."""
    left = iter([False] * asked)
    return lambda: next(left, True)


@pytest.mark.parametrize("stops", [(1, 2, 9)])
def test_a_run_that_was_stopped_has_the_same_bits(
    straight: tuple[str, Path], stops: tuple[int, ...], tmp_path: Path
) -> None:
    """Stopped in the fit and among the rungs, after so many rounds of each part."""
    kind, whole = straight
    path = tmp_path / kind
    for rounds in stops:
        with pytest.raises(Stopped):
            go(path, settings_of(kind), stopping_after(3 * rounds))
    go(path, settings_of(kind))
    expected, found = everything(whole), everything(path)
    assert set(expected) == set(found)
    for name, array in expected.items():
        np.testing.assert_array_equal(array, found[name], err_msg=name)


def test_a_damaged_quadratic_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run"
    go(path, settings_of("bridge"))
    text = (path / QUADRATIC).read_text()
    (path / QUADRATIC).write_text(text.replace("log_integral", "log_integrul"))
    assert any(QUADRATIC in problem for problem in problems(path))
    with pytest.raises(StoreError, match=QUADRATIC):
        evidence_results.load(path)


def test_models_are_compared_and_other_data_refused(tmp_path: Path) -> None:
    same, narrow, other = tmp_path / "same", tmp_path / "narrow", tmp_path / "other"
    go(same, settings_of("temperature"))
    go(narrow, settings_of("temperature", "prior.factor=2"))
    go(other, settings_of("temperature", "data.seed=1"))
    models = [evidence_results.load(path) for path in (same, narrow)]
    found = comparison.compare(models)
    assert found.probabilities.sum() == pytest.approx(1)
    difference = models[1].log_evidence.mean - models[0].log_evidence.mean
    assert found.log_bayes_factors[1].mean == pytest.approx(difference)
    assert found.log_bayes_factors[1].error == pytest.approx(
        np.hypot(*(m.log_evidence.error for m in models))
    )
    favoured = comparison.compare(models, (1.0, 1e9))
    assert favoured.probabilities[1] > found.probabilities[1]
    with pytest.raises(ConfigError, match="different training data"):
        comparison.compare([models[0], evidence_results.load(other)])
    with pytest.raises(ConfigError, match="prior odds must be 2 positive numbers"):
        comparison.compare(models, (1.0, -1.0))
    out = tmp_path / "compared"
    done = here("compare", same, narrow, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert [model["network"] for model in json.loads(done.stdout)["models"]] == ["16-3-10"] * 2
    assert (out / "comparison.png").stat().st_size > 5000


def test_a_sweep_that_reaches_the_prior_has_an_evidence(tmp_path: Path) -> None:
    from tempernet.tasks.sweep import Sweep

    def swept(temperatures: str) -> Path:
        path = tmp_path / str(len(temperatures))
        given = [text for text in SMALL if not text.startswith(("path", "bridge"))]
        ladder = [
            "ladder.kind=listed",
            f"ladder.temperatures={temperatures}",
            "dynamics.num_trajectories=1",
        ]
        settings = config.resolve(config.SweepSettings, assignments=[*given, *ladder])
        folder = RunFolder.create(path)
        Sweep(settings, make_problem(settings), folder).run()
        folder.unlock()
        return path

    found = evidence_results.load(swept("[0.5, 1.0, 2.0, 4.0, 10.0, 40.0, inf]"))
    assert (
        found.method == "temperature"
        and found.rungs.values[0] == 1.0
        and np.isinf(found.rungs.values[-1])
    )
    with pytest.raises(StoreError, match="must have 1 and inf among them"):
        evidence_results.load(swept("[0.5, 1.0, 2.0]"))


def test_an_evidence_is_exported_and_drawn(straight: tuple[str, Path], tmp_path: Path) -> None:
    _, path = straight
    rungs = len(evidence_results.load(path).rungs.values)
    for to, name in (("netcdf", "e.nc"), ("csv", "e.csv")):
        done = here("export", path, "--to", to, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    data = xarray.open_dataset(tmp_path / "e.nc", engine="h5netcdf")
    assert data.energy.dims == ("copy", "round", "rung") and data.sizes["rung"] == rungs
    assert data.attrs["log_evidence"] == pytest.approx(
        evidence_results.load(path).log_evidence.mean
    )
    assert len((tmp_path / "e.csv").read_text().splitlines()) == rungs + 1
    done = here("plot", path, "--out", tmp_path)
    assert done.returncode == 0 and (tmp_path / "integrand.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "path.method=magic",
            r"path\.method: input should be 'temperature' or 'bridge', got 'magic'",
        ),
        ("path.num=2", r"path\.num: input should be greater than or equal to 3, got 2"),
        (
            "ladder.num=9",
            r"unknown setting ladder\.num .*did you mean path\.num.*tempernet init evidence",
        ),
        ("run.rounds=1", r"run\.rounds: input should be greater than or equal to 2"),
    ],
)
def test_bad_settings_are_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.resolve(config.EvidenceSettings, assignments=[assignment])


def test_the_papers_protocol_has_the_papers_numbers_and_they_may_be_changed() -> None:
    said = config.resolve(config.EvidenceSettings, protocol="paper")
    assert (said.path.num, said.run.burn_in, said.run.rounds) == (102, 100, 100)
    assert (said.bridge.fit_burn_in, said.bridge.fit_rounds, said.bridge.tune_every) == (
        1000,
        1000,
        10,
    )
    assert said.dynamics.walls == "reject" and said.dynamics.num_steps == 100
    assert (
        config.resolve(
            config.EvidenceSettings, protocol="paper", assignments=["path.num=12"]
        ).path.num
        == 12
    )
    with pytest.raises(ConfigError, match="contradicts the protocol"):
        config.resolve(
            config.EvidenceSettings, protocol="paper", assignments=["path.method=temperature"]
        )
