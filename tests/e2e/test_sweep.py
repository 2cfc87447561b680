"""A sweep as a person runs it, without a terminal, with its exit codes; in this process."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray
from PIL import Image
from runs import Ended, command, here, options

from tempernet import config
from tempernet.cli import app as cli
from tempernet.diagnostics.flow import sides_kept
from tempernet.diagnostics.memory import remembered, times_forgotten
from tempernet.store import RunFolder
from tempernet.tasks import plans
from tempernet.tasks.cost import Cost
from tempernet.tempering.engine import Engine

SMALL = (
    "data.size=4",
    "data.n_train=50",
    "data.n_validation=500",
    "data.scored=300",
    "network.name=16-4-10",
    "ladder.low=0.5",
    "ladder.high=8",
    "ladder.num=5",
    "dynamics.num_steps=10",
    "dynamics.num_trajectories=2",
    "start.max_gradients=100",
    "run.copies=2",
    "run.burn_in=16",
    "run.rounds=24",
    "run.score_every=2",
    "run.keep=3",
    "run.seed=7",
    "run.devices=1",
    "run.reproducible=true",
)

pytestmark = pytest.mark.usefixtures("quick_programs")
Run = tuple[Path, Ended]


def small(*settings: str) -> list[str]:
    """The options of a run of seconds."""
    return options((*SMALL, *settings))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "small"
    done = here("sweep", "--out", folder, *small())
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_sweep_prints_table_best_temperature_and_verdict(finished: Run) -> None:
    folder, done = finished
    lines = done.stdout.splitlines()
    assert "16-4-10 on 50 images of mnist16, default protocol" in lines[0]
    end = next(k for k, line in enumerate(lines) if line.startswith("best temperature"))
    table = [line.split() for line in lines[2:end] if line.strip()[:1].isdigit()]
    assert len(table) == 5 and float(table[0][0]) == 0.5 and float(table[-1][0]) == 8.0
    for wanted in (
        "best temperature",
        "at T = 1",
        "at the lowest T",
        "uninformed classifier",
        "verdict:",
    ):
        assert any(wanted in line for line in lines), wanted
    assert str(folder / "results.json") in done.stdout


def test_progress_without_a_terminal_is_plain_lines(finished: Run) -> None:
    _, done = finished
    assert "\x1b" not in done.stderr + done.stdout
    phases = [line.split()[0] for line in done.stderr.splitlines()]
    for phase in ("initialise", "minimise", "tune", "burn-in", "sample"):
        assert phase in phases


def test_the_folder_holds_what_it_should(finished: Run) -> None:
    folder, _ = finished
    for name in (
        "config.toml",
        "provenance.json",
        "status.json",
        "log.txt",
        "results.json",
        "results.nc",
    ):
        assert (folder / name).stat().st_size > 0
    assert RunFolder(folder).settings(config.SweepSettings).run.seed == 7
    pictures = sorted((folder / "figures").glob("*.png"))
    assert {"fig2-trajectory", "fig3-loss", "swaps"} <= {path.stem for path in pictures}
    for path in pictures:
        with Image.open(path) as image:
            assert min(image.size) > 300
        assert path.with_suffix(".svg").exists()


def test_results_agree_with_what_was_recorded(finished: Run) -> None:
    folder, _ = finished
    results = json.loads((folder / "results.json").read_text())
    assert results["protocol"] == "default"
    with xarray.open_datatree(folder / "results.nc") as tree:
        series = tree.to_dataset().load()
    assert series.energy.dims == ("copy", "round", "temperature")
    assert dict(series.sizes) | {
        "copy": 2,
        "round": 24,
        "temperature": 5,
        "score": 12,
        "kept": 3,
    } == dict(series.sizes)
    means = series.energy.mean(("copy", "round")).values / 50
    np.testing.assert_allclose(
        [row["train_loss"] for row in results["temperatures"]], means, rtol=1e-6
    )
    losses = series.validation_loss.mean(("copy", "score")).values
    assert results["best_temperature"]["rung"] == int(losses.argmin())
    # Every rung has all five replicas in turn or some of them, never one twice in a round.
    assert (np.sort(series.replica.values, axis=-1) == np.arange(5)).all()


def test_replicas_are_followed_by_what_is_kept(finished: Run) -> None:
    """Weights stand in the order of rungs, with who they belong to and what they predict."""
    folder, _ = finished
    run = RunFolder(folder)
    kept, rounds = run.weights.load("weights"), run.records.load("rounds")
    # Kept after the exchange of a round: who they are is who runs the next one.
    for row in range(2):
        np.testing.assert_array_equal(kept["replica"][row], rounds["replica"][kept["round"][row]])
    assert kept["predictions"].shape == (3, 2, 5, 200, 10)
    np.testing.assert_allclose(kept["predictions"].sum(axis=-1), 1, rtol=1e-5)
    rows = json.loads((folder / "results.json").read_text())["temperatures"]
    told, kept_sides = [row["forgotten"] for row in rows], [row["side_kept"] for row in rows]
    np.testing.assert_allclose(kept_sides[:-1], sides_kept(rounds["replica"][-24:]), rtol=1e-6)
    assert kept_sides[-1] is None
    parts = [["leaf0", "leaf1"], ["leaf2", "leaf3"], ["predictions"]]
    shape = kept["replica"].shape
    shares = [
        remembered(
            np.concatenate([kept[name].reshape(*shape, -1) for name in names], axis=-1),
            kept["replica"],
        )
        for names in parts
    ]
    np.testing.assert_allclose(told, times_forgotten(np.max(shares, axis=0), 8, 24), rtol=1e-6)


def test_an_ensemble_is_no_worse_than_its_members(finished: Run) -> None:
    """Jensen: the loss of the mean prediction is at most the mean loss of the predictions."""
    folder, _ = finished
    for row in json.loads((folder / "results.json").read_text())["temperatures"]:
        assert row["ensemble_loss"] <= row["test_loss"]


def test_status_export_and_plot_read_a_run(finished: Run, tmp_path: Path) -> None:
    folder, _ = finished
    told = here("status", folder)
    assert told.returncode == 0 and "finished" in told.stdout and "verdict" in told.stdout
    assert "24 of 24" in told.stdout
    table = here("export", folder, "--to", "csv", "--out", tmp_path / "t.csv")
    assert table.returncode == 0
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 and {row["protocol"] for row in rows} == {"default"}
    drawn = here("plot", folder, folder, "--out", tmp_path / "figures")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "figures" / "fig3-loss-compared.svg").exists()


def test_paper_protocol_as_json(tmp_path: Path) -> None:
    done = here(
        "sweep",
        "--out",
        tmp_path / "run",
        "--protocol",
        "paper",
        "--json",
        *small("output.figures=false", "run.keep=0", "run.devices=2", "run.reproducible=false"),
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["protocol"] == "paper"
    assert not results["verdict"]["equilibrated"]
    temperatures = [row["temperature"] for row in results["temperatures"]]
    np.testing.assert_allclose(temperatures, np.geomspace(0.5, 8, 5))


def test_plan_says_what_it_takes(finished: Run) -> None:
    folder, _ = finished
    plan = json.loads(here("plan", "--json", *small()).stdout)
    assert plan["replicas"] == 10 and plan["weights"] == 16 * 4 + 4 + 4 * 10 + 10
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert 0.3 < plan["disk"] / size < 6


@pytest.mark.slow
def test_planned_time_is_within_a_factor_of_two(tmp_path: Path) -> None:
    longer = small(
        "network.name=16-32-32-10", "data.n_train=500", "dynamics.num_steps=100", "run.rounds=200"
    )
    plan = json.loads(command("plan", "--json", *longer).stdout)
    began = time.monotonic()
    assert (
        command("sweep", "--quiet", "--out", tmp_path / "run", *longer, timeout=1200).returncode
        == 0
    )
    took = time.monotonic() - began
    assert 0.5 < plan["seconds"] / took < 2, (plan["seconds"], took)


@pytest.mark.parametrize("name", config.PRESETS)
def test_every_preset_plans(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of a run of these sizes it takes a while to measure them.
    monkeypatch.setattr(Engine, "_measured_tile", lambda engine, programs: 8)
    monkeypatch.setattr(plans, "trajectory_cost", lambda *_: Cost(0.1, 0.01, 5.0))
    monkeypatch.setattr(sys, "argv", ["tempernet", "plan", "--preset", name])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    settings = config.resolve(config.SweepSettings, preset=name)
    copies, rungs = settings.run.copies, settings.ladder.num
    assert f"{copies * rungs} ({copies} copies of {rungs}" in out
    for word in ("protocol", "network", "gradients", "memory", "disk", "time here"):
        assert word in out


def test_init_writes_settings_that_are_the_defaults(tmp_path: Path) -> None:
    written = here("init", "sweep")
    (tmp_path / "my.toml").write_text(written.stdout)
    assert config.resolve(config.SweepSettings, file=tmp_path / "my.toml") == config.SweepSettings()


def test_own_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 40)
    x = rng.normal(size=(120, 6)) + y[:, None]
    np.savez(tmp_path / "mine.npz", x_train=x[::2], y_train=y[::2], x_test=x[1::2], y_test=y[1::2])
    own = [s for s in SMALL if not s.startswith(("data.", "network."))]
    given = options((*own, "output.figures=false"))
    done = here(
        "sweep",
        "--data",
        tmp_path / "mine.npz",
        "--network",
        "6-3-3",
        "--out",
        tmp_path / "run",
        "--json",
        *given,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["data"]["n_train"] == 60 and results["data"]["n_validation"] == 30
    assert results["uninformed_loss"] == pytest.approx(np.log(3))


def nonsense(folder: Path) -> dict[str, tuple[list[str], int, str]]:
    """Name -> (arguments, exit code, part of the message)."""
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("x")
    (folder / "file").write_text("not a folder, not TOML [")
    (folder / "bad.npz").write_bytes(b"nothing")
    np.savez(folder / "labels.npz", x_train=np.zeros((4, 2)), y_train=np.array([0, 1, -1, 1]))
    np.savez(folder / "nan.npz", x_train=np.full((4, 2), np.nan), y_train=np.array([0, 1, 0, 1]))
    run = ["sweep", "--out", str(folder / "out")]
    return {
        "unknown preset": ([*run, "--preset", "quik"], 2, "did you mean quick"),
        "unknown protocol": ([*run, "--protocol", "papr"], 2, "protocol"),
        "unknown setting": ([*run, "--set", "ladder.nmu=3"], 2, "did you mean ladder.num"),
        "ill-typed setting": ([*run, "--set", "ladder.num=many"], 2, "ladder.num"),
        "no assignment": ([*run, "--set", "ladder.num"], 2, "key=value"),
        "no such settings": ([*run, str(folder / "none.toml")], 2, "none.toml"),
        "no TOML": ([*run, str(folder / "file")], 2, "TOML"),
        "contradiction": (
            [*run, "--protocol", "paper", "--set", "dynamics.walls=reflect"],
            2,
            "contradicts",
        ),
        "unsorted ladder": (
            [*run, "--set", "ladder.kind=listed", "--set", "ladder.temperatures=[2,1]"],
            2,
            "increasing",
        ),
        "negative temperature": ([*run, "--set", "ladder.low=-1"], 2, "ladder.low"),
        "unknown network": ([*run, "--network", "M7"], 2, "M3star"),
        "network that does not fit": ([*run, "--network", "64-5-10"], 2, "256"),
        "narrow prior": ([*run, "--set", "prior.factor=0.1"], 2, "narrower"),
        "too many images": ([*run, "--set", "data.n_train=60000"], 3, "n_train"),
        "no such data": ([*run, "--data", str(folder / "none.npz")], 3, "none.npz"),
        "damaged data": ([*run, "--data", str(folder / "bad.npz")], 3, "bad.npz"),
        "bad labels": (
            [*run, "--data", str(folder / "labels.npz"), "--network", "2-2"],
            3,
            "labels",
        ),
        "NaN pixels": ([*run, "--data", str(folder / "nan.npz"), "--network", "2-2"], 3, "nan"),
        "non-empty folder": (["sweep", "--out", str(folder / "full")], 5, "not empty"),
        "folder that is a file": (["sweep", "--out", str(folder / "file")], 5, "folder"),
        "folder under a file": (["sweep", "--out", str(folder / "file" / "sub")], 5, "folder"),
        "status of no run": (["status", str(folder / "full")], 5, "no run folder"),
        "plot of nothing": (["plot", str(folder / "none")], 5, "no such folder"),
        "export of no run": (["export", str(folder / "full")], 5, "no run folder"),
        "resume of no run": (["resume", str(folder / "full")], 5, "no run folder"),
        "unknown command": (["swep"], 2, "swep"),
    }


NONSENSE = [
    "unknown preset",
    "unknown protocol",
    "unknown setting",
    "ill-typed setting",
    "no assignment",
    "no such settings",
    "no TOML",
    "contradiction",
    "unsorted ladder",
    "negative temperature",
    "unknown network",
    "network that does not fit",
    "narrow prior",
    "too many images",
    "no such data",
    "damaged data",
    "bad labels",
    "NaN pixels",
    "non-empty folder",
    "folder that is a file",
    "folder under a file",
    "status of no run",
    "plot of nothing",
    "export of no run",
    "resume of no run",
    "unknown command",
]


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_one_line_and_an_exit_code(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code, part = nonsense(tmp_path)[case]
    monkeypatch.setattr(sys, "argv", ["tempernet", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert ended.value.code == code, err
    assert part.lower() in err.lower()
    assert out == ""
    if case != "unknown command":  # The parser adds how the command is used.
        assert len(err.splitlines()) == 1 and err.startswith("tempernet: ")
    assert not (tmp_path / "out").exists()


def test_every_case_of_nonsense_is_tried(tmp_path: Path) -> None:
    assert sorted(nonsense(tmp_path)) == sorted(NONSENSE)
