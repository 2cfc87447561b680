"""An observable that is declared in one place is recorded, exported with its unit, and planned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray
from runs import here, options

import tempernet as tn
from tempernet.store import RunFolder
from tempernet.tasks import cost
from tempernet.tempering.observables import OBSERVABLES, RUNG, Moment, Observable

pytestmark = pytest.mark.usefixtures("quick_programs")
SMALL = options(
    (
        "data.size=4",
        "data.n_train=20",
        "data.n_validation=50",
        "data.scored=30",
        "network.name=16-3-10",
        "ladder.kind=listed",
        "ladder.temperatures=[0.5, 1.0, 4.0]",
        "dynamics.num_steps=4",
        "dynamics.num_trajectories=1",
        "start.max_gradients=20",
        "run.copies=2",
        "run.burn_in=4",
        "run.rounds=6",
        "run.score_every=2",
        "run.keep=2",
        "run.seed=5",
        "run.devices=1",
        "run.reproducible=true",
        "output.figures=false",
    )
)


def largest(moment: Moment) -> np.ndarray:
    """The largest weight of each replica, (copies, K)."""
    engine, state = moment.engine, moment.state

    def at(rung: int) -> np.ndarray:
        leaves = jax.tree.leaves(engine.weights_at(state, rung))
        each = [np.abs(leaf).reshape(engine.copies, -1).max(axis=1) for leaf in leaves]
        return np.max(each, axis=0)

    return np.stack([at(rung) for rung in range(engine.num_rungs)], axis=1)


LARGEST = Observable("largest_weight", RUNG, largest, "its own", "largest weight of a replica")


def disk() -> float:
    """Bytes that the plan says the run will take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "MEASURE_SECONDS", 0.0)
        planned = here("plan", "--json", *SMALL)
    assert planned.returncode == 0, planned.stderr
    return float(json.loads(planned.stdout)["disk"])


@pytest.fixture
def before() -> float:
    """What the plan says without the observable."""
    return disk()


@pytest.fixture
def declared(before: float) -> Iterator[None]:
    """The one declaration."""
    OBSERVABLES.append(LARGEST)
    yield
    OBSERVABLES.remove(LARGEST)


@pytest.mark.usefixtures("declared")
def test_an_observable_is_declared_in_one_place(before: float, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = here("sweep", "--out", run, *SMALL)
    assert done.returncode == 0, done.stderr
    folder = RunFolder(run)
    rows = folder.records.load("rounds")["largest_weight"]
    assert rows.shape == (10, 2, 3) and rows.dtype == np.float32
    # What it says at a round whose weights are kept.
    kept = folder.weights.load("weights")
    leaves = [kept[name] for name in kept if name.startswith("leaf")]
    for row, number in enumerate(kept["round"]):
        each = [np.abs(leaf[row]).reshape(2, 3, -1).max(axis=-1) for leaf in leaves]
        np.testing.assert_allclose(rows[number - 1], np.max(each, axis=0), rtol=1e-6)
    found = tn.load(run)
    assert isinstance(found, tn.Samples)
    with xarray.open_dataset(run / "results.nc", engine="h5netcdf") as written:
        for series in (found.series, written):
            array = series.largest_weight
            assert array.dims == ("copy", "round", "temperature")
            assert array.attrs["units"] == "its own"
            np.testing.assert_array_equal(array, np.moveaxis(rows[4:], 0, 1))
    # Ten rounds of two copies of three rungs, four bytes each, written twice.
    assert disk() - before == 2 * 10 * 2 * 3 * 4
