"""One loop for all: Python's `sample` gives the bits of the command, and reads its runs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from runs import here, options

import tempernet as tn
from tempernet import config
from tempernet.store import RunFolder
from tempernet.tasks.problem import make_problem

pytestmark = pytest.mark.usefixtures("quick_programs")
LADDER = [0.5, 1.0, 2.0, 4.0]
SETTINGS = (
    "data.size=4",
    "data.n_train=40",
    "data.n_validation=50",
    "data.scored=50",
    "network.name=16-3-10",
    "ladder.kind=listed",
    f"ladder.temperatures={LADDER}",
    "dynamics.num_steps=5",
    "dynamics.num_trajectories=2",
    "start.max_gradients=30",
    "run.copies=2",
    "run.burn_in=8",
    "run.rounds=10",
    "run.score_every=2",
    "run.keep=3",
    "run.seed=11",
    "run.devices=1",
    "run.reproducible=true",
    "output.figures=false",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep by the command."""
    path = tmp_path_factory.mktemp("one") / "run"
    done = here("sweep", "--out", path, *options(SETTINGS))
    assert done.returncode == 0, done.stderr
    return path


def test_sampling_in_python_gives_the_bits_of_the_command(run: Path) -> None:
    problem = make_problem(RunFolder(run).settings(config.SweepSettings))
    samples = tn.sample(
        problem.target,
        LADDER,
        burn_in=8,
        rounds=10,
        copies=2,
        validation=problem.data.validation,
        score_every=2,
        keep=3,
        dynamics=tn.Dynamics(num_steps=5, num_trajectories=2),
        minimiser=tn.Minimiser(max_gradients=30),
        seed=11,
        devices=1,
        reproducible=True,
    )
    rows = RunFolder(run).records.load("rounds")
    assert samples.energy.shape == (2, 10, 4)
    np.testing.assert_array_equal(samples.energy, np.moveaxis(rows["energy"][8:], 0, 1))
    found = tn.load(run)
    assert type(found) is type(samples) is tn.Samples
    np.testing.assert_array_equal(found.energy, samples.energy)
    for name in ("train_loss", "acceptance", "swap_rate", "rhat", "ess"):
        np.testing.assert_array_equal(found.summary[name], samples.summary[name], err_msg=name)
    assert found.verdict.equilibrated.tolist() == samples.verdict.equilibrated.tolist()


def test_a_run_that_is_loaded_predicts_as_the_command_does(run: Path, tmp_path: Path) -> None:
    images = tn.mnist16().x_test[:20]
    np.savez(tmp_path / "new.npz", x=images)
    data = ["--data", tmp_path / "new.npz", "--out", tmp_path / "p.csv"]
    done = here("predict", run, *data, "--temperature", 2)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    said = np.array([[float(row[f"p_{q}"]) for q in range(10)] for row in rows])
    found = tn.load(run)
    assert isinstance(found, tn.Samples)
    np.testing.assert_allclose(found.predict(images, temperature=2.0), said, rtol=1e-5)
    again = tn.load(found.save(tmp_path / "saved.nc"))
    assert isinstance(again, tn.Samples)
    np.testing.assert_array_equal(again.energy, found.energy)
    # A file knows nothing of the images that it was trained on: its inputs are as trained.
    np.testing.assert_array_equal(
        again.predict(found.prepare_fn(images), temperature=2.0),
        found.predict(images, temperature=2.0),
    )
    assert str(again).splitlines()[1:] == str(found).splitlines()[1:]
