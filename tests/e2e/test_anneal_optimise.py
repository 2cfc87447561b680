"""`anneal`, `optimise` and `predict` as a person runs them, with their exit codes and files.

What is stopped by a signal runs in a subprocess; the rest in this one, which need not start and
compile anew.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import xarray
from PIL import Image
from runs import PROGRAM, Ended, here

from tempernet import config, mnist16
from tempernet.data.images import resize
from tempernet.kinds import KINDS
from tempernet.model.mlp import network_by_name
from tempernet.results.anneal import load
from tempernet.store import RunFolder, files
from tempernet.tasks import cost
from tempernet.tasks.problem import load_data, make_problem

pytestmark = pytest.mark.usefixtures("quick_programs")
COMMON = (
    "data.size=4",
    "data.n_train=50",
    "data.n_validation=200",
    "data.scored=150",
    "network.name=16-4-10",
    "run.seed=7",
    "run.devices=1",
    "run.reproducible=true",
    "output.figures=false",
)
COOLING = (
    "cooling.high=20",
    "cooling.low=0.05",
    "cooling.num=10",
    "cooling.burn_in=3",
    "cooling.rounds=6",
    "cooling.score_every=1",
    "cooling.patience=1",
    "dynamics.num_steps=10",
    "dynamics.num_trajectories=2",
    "start.max_gradients=200",
    "run.copies=4",
)
STARTS = (
    "optimise.tolerance=1e-4",
    "optimise.max_gradients=400",
    "optimise.starts=30",
    "run.copies=8",
)
LADDER = (
    "ladder.kind=geometric",
    "ladder.low=0.5",
    "ladder.high=4",
    "ladder.num=3",
    "dynamics.num_steps=5",
    "dynamics.num_trajectories=1",
    "start.max_gradients=20",
    "run.copies=2",
    "run.burn_in=4",
    "run.rounds=6",
    "run.score_every=2",
    "run.keep=3",
)


Run = tuple[Path, Ended]


def options(*settings: str) -> list[str]:
    return [text for setting in settings for text in ("--set", setting)]


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of all runs here: a few hundred images of 8 x 8, which every run resizes to 4 x 4."""
    own = tmp_path_factory.mktemp("data") / "own.npz"
    images = mnist16().resized(8)
    train, test = slice(0, 400), slice(0, 300)
    np.savez(
        own,
        x_train=images.x_train[train],
        y_train=images.y_train[train],
        x_test=images.x_test[test],
        y_test=images.y_test[test],
    )
    np.savez(own.with_name("new.npz"), x=images.x_test[300:370], y=images.y_test[300:370])
    return options(*COMMON, f"data.source={own}")


def ran(folder: Path, *arguments: object) -> Run:
    done = here(*arguments, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture(scope="module")
def annealed(common: list[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = [*common, *options(*COOLING, "output.figures=true")]
    return ran(tmp_path_factory.mktemp("anneal") / "run", "anneal", *settings)


@pytest.fixture(scope="module")
def optimised(common: list[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ran(
        tmp_path_factory.mktemp("optimise") / "run",
        "optimise",
        "--keep",
        20,
        *common,
        *options(*STARTS),
    )


@pytest.fixture(scope="module")
def swept(common: list[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ran(tmp_path_factory.mktemp("sweep") / "run", "sweep", *common, *options(*LADDER))


OWN = ("run", "files")


def results(folder: Path) -> dict[str, Any]:
    """What a run found, without what tells it from others that found the same."""
    return {
        name: value
        for name, value in files.read_json(folder / "results.json").items()
        if name not in OWN
    }


def test_a_cooling_says_where_it_stopped_and_what_it_went_back_to(annealed: Run) -> None:
    folder, done = annealed
    found = results(folder)
    assert "16-4-10 on 50 images of own, 4 replicas cooled from T = 20" in done.stdout
    for wanted in (
        "<- lowest",
        "chosen network",
        "ensemble of 24",
        "4 optimised networks",
        "uninformed",
    ):
        assert wanted in done.stdout
    rows = found["temperatures"]
    losses = [row["validation_loss"] for row in rows]
    assert found["best_temperature"] == rows[int(np.argmin(losses))]["temperature"]
    assert found["stopped"] == (len(rows) < 10) or rows[-1]["temperature"] == pytest.approx(0.05)
    phases = [line.split()[0] for line in done.stderr.splitlines()]
    assert {"initialise", "tune", "cool", "optimise", "score"} <= set(phases)
    assert "\x1b" not in done.stderr + done.stdout
    with Image.open(folder / "figures" / "cooling.png") as image:
        assert min(image.size) > 300


def test_what_it_went_back_to_has_the_losses_that_it_says(annealed: Run) -> None:
    """The stored weights, scored again: validation loss of the chosen one, test loss of it and of
    the ensemble.
    """
    folder, _ = annealed
    found, opened, problem = (
        results(folder),
        RunFolder(folder),
        make_problem(RunFolder(folder).settings(config.AnnealSettings)),
    )
    chosen = opened.records.load("chosen")
    scored = problem.validation
    assert scored is not None
    held_out = np.concatenate(np.moveaxis(scored.inputs, -1, 1))[scored.weight.ravel() > 0]
    labels = np.concatenate(np.moveaxis(scored.one_hot, -1, 1)).argmax(axis=1)[
        scored.weight.ravel() > 0
    ]
    probabilities = softmax([chosen[f"leaf{i}"][0] for i in range(4)], held_out)
    assert loss_of(probabilities, labels) == pytest.approx(
        found["chosen"]["validation_loss"], rel=1e-4
    )
    assert found["chosen"]["validation_loss"] == pytest.approx(load(folder).losses.min())
    test = problem.data.test
    probabilities = softmax([chosen[f"leaf{i}"][0] for i in range(4)], test.x)
    assert loss_of(probabilities, test.y) == pytest.approx(
        found["test"]["chosen"]["loss"], rel=1e-4
    )
    members = members_of(folder, 0)
    mean = np.mean([softmax(member, test.x) for member in members], axis=0)
    assert len(members) == 24
    assert loss_of(mean, test.y) == pytest.approx(found["test"]["ensemble"]["loss"], rel=1e-4)
    # Jensen, and no leak: none of the validation examples is a test example.
    assert found["test"]["ensemble"]["loss"] <= found["test"]["single"]["loss"]
    assert not {image.tobytes() for image in problem.data.validation.x} & {
        image.tobytes() for image in test.x
    }


def softmax(leaves: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Of the network 16-4-10 by hand, in double precision: (examples, classes)."""
    first, first_bias, second, second_bias = (np.asarray(leaf, np.float64) for leaf in leaves)
    hidden = 1 / (1 + np.exp(-(x.reshape(len(x), -1) @ first.T + first_bias)))
    scores = hidden @ second.T + second_bias
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def loss_of(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


def members_of(folder: Path, rung: int, after: int = -1) -> list[list[np.ndarray]]:
    """Stored weights at a rung, kept after so many rounds: a list of leaves for each member."""
    rows = RunFolder(folder).weights.load("weights")
    shape = rows["leaf0"].shape[:2]
    return [
        [rows[f"leaf{i}"][row, copy, rung] for i in range(4)]
        for row in range(shape[0])
        if rows["round"][row] > after
        for copy in range(shape[1])
    ]


def test_a_stopped_cooling_goes_on_to_the_same_end(
    annealed: Run, common: list[str], tmp_path: Path
) -> None:
    """A process that is sent SIGTERM at its first line of cooling."""
    folder = tmp_path / "run"
    given = [PROGRAM, "anneal", *common, *options(*COOLING), "--out", str(folder)]
    with subprocess.Popen(
        given, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("cool"):
                process.send_signal(signal.SIGTERM)
                break
        rest = process.stderr.read()
    assert process.returncode == 6, rest
    assert f"tempernet resume {folder}" in rest
    assert here("status", folder).returncode == 0
    went_on = here("resume", folder, "--quiet")
    assert went_on.returncode == 0 and went_on.stdout == "", went_on.stderr
    assert here("check", folder).returncode == 0
    assert results(folder) == results(annealed[0])


def test_an_optimisation_says_what_its_starts_needed(optimised: Run) -> None:
    folder, done = optimised
    found = results(folder)
    each = found["each"]
    starts = RunFolder(folder).records.load("starts")
    assert found["kept"] == 20 and found["starts"] == len(starts["energy"]) <= 30
    assert found["reached"] == starts["reached"].sum() == (starts["energy"] <= 1e-4).sum()
    if found["reached"] >= 20:
        assert (
            found["all_reached"]
            and each["number"] == np.flatnonzero(starts["reached"])[:20].tolist()
        )
    else:
        best = np.sort(starts["energy"][~starts["reached"]])[: 20 - found["reached"]]
        assert not found["all_reached"] and found["largest_energy"] == pytest.approx(best.max())
    data = load_data(RunFolder(folder).settings(config.OptimiseSettings))
    losses = [
        loss_of(softmax(member, data.test.x), data.test.y) for member in members_of(folder, 0)
    ]
    np.testing.assert_allclose(each["test_loss"], losses, rtol=1e-4)
    assert found["test_loss"]["mean"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert found["test_loss"]["error"] == pytest.approx(
        np.std(losses, ddof=1) / np.sqrt(20), rel=1e-4
    )
    fan_in = jax.tree.leaves(network_by_name("16-4-10").fan_in())
    widths = [
        max(np.abs(leaf).max() * np.sqrt(k) for leaf, k in zip(member, fan_in, strict=True))
        for member in members_of(folder, 0)
    ]
    np.testing.assert_allclose(each["widest"], widths, rtol=1e-6)
    for wanted in ("success rate", "test accuracy", "max |w| sqrt(k)", "lie in the prior's box"):
        assert wanted in done.stdout


def test_starts_do_not_depend_on_how_many_run_at_once(
    optimised: Run, common: list[str], tmp_path: Path
) -> None:
    """Batches of 5 give the same starts to the last bit."""
    other = [s for s in STARTS if "copies" not in s]
    folder, _ = ran(
        tmp_path / "run",
        "optimise",
        "--keep",
        20,
        "--quiet",
        *common,
        *options(*other, "run.copies=5"),
    )
    first, second = (RunFolder(path).records.load("starts") for path in (optimised[0], folder))
    both = min(len(first["energy"]), len(second["energy"]))
    for name in first:
        np.testing.assert_array_equal(first[name][:both], second[name][:both])
    assert results(folder)["each"] == results(optimised[0])["each"]


def test_a_cooling_compares_itself_with_a_given_optimisation(
    optimised: Run, common: list[str], tmp_path: Path
) -> None:
    short = [s for s in COOLING if not s.startswith(("cooling.num", "cooling.rounds"))]
    settings = [*common, *options(*short, "cooling.num=2", "cooling.rounds=1", "cooling.low=2")]
    done = here(
        "anneal", "--json", "--out", tmp_path / "run", "--optimised", optimised[0], *settings
    )
    assert done.returncode == 0, done.stderr
    said, wanted = json.loads(done.stdout)["test"]["optimised"], results(optimised[0])["test_loss"]
    assert said["networks"] == 20
    assert said["loss"] == pytest.approx(wanted["mean"]) and said["loss_error"] == pytest.approx(
        wanted["error"]
    )


@pytest.fixture(scope="module")
def new_images(common: list[str]) -> Path:
    """Images as stored, larger than the network's: they must be resized and normalised like the
    training images.
    """
    return Path(common[-1].removeprefix("data.source=")).with_name("new.npz")


@pytest.mark.parametrize("task", ["sweep", "anneal", "optimise"])
def test_a_prediction_is_the_softmax_averaged_by_hand(
    task: str, swept: Run, annealed: Run, optimised: Run, new_images: Path, tmp_path: Path
) -> None:
    folder, _ = {"sweep": swept, "anneal": annealed, "optimise": optimised}[task]
    rung, chosen = (1, ["--temperature", "1.5"]) if task == "sweep" else (0, [])
    done = here(
        "predict", folder, "--data", new_images, "--out", tmp_path / "p.csv", "--json", *chosen
    )
    assert done.returncode == 0, done.stderr
    members = members_of(folder, rung, after=4 if task == "sweep" else -1)
    with np.load(new_images) as archive:
        small, y = resize("new", archive["x"], 4), archive["y"]
    data = load_data(RunFolder(folder).settings(KINDS[task].settings))
    hand = np.mean(
        [softmax(member, (small / 255 - data.mean) / data.std) for member in members], axis=0
    )
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = np.array([[float(row[f"p_{q}"]) for q in range(10)] for row in rows])
    np.testing.assert_allclose(found, hand, atol=2e-6)
    assert [int(row["predicted"]) for row in rows] == hand.argmax(axis=1).tolist()
    assert [int(row["label"]) for row in rows] == y.tolist()
    said = json.loads(done.stdout)
    assert said["members"] == len(members) and said["examples"] == 70
    assert said["accuracy"] == pytest.approx(np.mean(hand.argmax(axis=1) == y))
    assert said["loss"] == pytest.approx(loss_of(hand, y), rel=1e-4)


def test_a_sweep_predicts_at_its_best_temperature_unless_told(swept: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=mnist16().x_test[:5])
    done = here("predict", swept[0], "--data", tmp_path / "x.npz", "--out", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    best = results(swept[0])["best_temperature"]["temperature"]
    assert f"5 examples predicted by 6 networks at T = {best:.4g}" in done.stdout
    assert "accuracy" not in done.stdout and "label" not in (tmp_path / "p.csv").read_text()


def test_optimisation_is_a_line_in_the_figure_of_a_sweep(
    swept: Run, optimised: Run, tmp_path: Path
) -> None:
    without = here("plot", swept[0], "--out", tmp_path / "without")
    done = here("plot", swept[0], "--optimised", optimised[0], "--out", tmp_path / "with")
    assert without.returncode == 0 and done.returncode == 0, done.stderr
    drawn = [(tmp_path / name / "fig3-loss.svg").read_bytes() for name in ("without", "with")]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("task", ["evidence", "anneal", "optimise"])
def test_init_writes_settings_that_are_the_defaults(task: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(here("init", task).stdout)
    model = KINDS[task].settings
    assert config.resolve(model, file=tmp_path / "my.toml") == model()
    for preset in config.PRESETS:
        settings = config.resolve(model, preset=preset)
        assert settings.data == config.resolve(config.SweepSettings, preset=preset).data


def test_both_are_exported_and_drawn(annealed: Run, optimised: Run, tmp_path: Path) -> None:
    """Every output names its protocol."""
    lines = {annealed[0]: len(results(annealed[0])["temperatures"]), optimised[0]: 20}
    for folder, number in lines.items():
        assert results(folder)["protocol"] == "default"
        done = here("export", folder, "--to", "csv", "--out", tmp_path / "t.csv")
        assert done.returncode == 0, done.stderr
        with (tmp_path / "t.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == number and {row["protocol"] for row in rows} == {"default"}
        with xarray.open_dataset(folder / "results.nc", engine="h5netcdf") as data:
            assert data.attrs["protocol"] == "default" and "default protocol" in data.attrs["title"]
    with xarray.open_dataset(annealed[0] / "results.nc", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data.validation_losses, load(annealed[0]).losses)
    done = here("plot", optimised[0], "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "starts.png") as image:
        assert min(image.size) > 300


@pytest.mark.parametrize("kind", ["evidence", "anneal", "optimise"])
def test_every_kind_plans(kind: str, common: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MEASURE_SECONDS", 0.0)
    own = {"evidence": ("path.num=4",), "anneal": COOLING, "optimise": STARTS}[kind]
    given = ["--kind", kind, *common, *options(*own)]
    plan = json.loads(here("plan", "--json", *given).stdout)
    assert plan["replicas"] == {"evidence": 8, "anneal": 4, "optimise": 8}[kind]
    assert plan["seconds"] > 0 and plan["disk"] > 0 and plan["gradients"] > 0
    said = here("plan", *given).stdout
    assert "protocol" in said and ("at most" in said) == (kind != "evidence")


def nonsense(folder: Path) -> dict[str, tuple[list[str], int, str]]:
    """Name -> (arguments, exit code, part of the message)."""
    np.savez(folder / "own.npz", x_train=np.eye(4), y_train=np.array([0, 1, 0, 1]))
    np.savez(
        folder / "few.npz",
        x_train=np.eye(4),
        y_train=np.arange(4) % 2,
        x_test=np.eye(4)[:1],
        y_test=[0],
    )
    (folder / "sweep.toml").write_text('kind = "sweep"\n')
    (folder / "empty").mkdir()
    cool, start = (
        ["anneal", "--out", str(folder / "out")],
        ["optimise", "--out", str(folder / "out")],
    )
    return {
        "no patience": ([*cool, "--patience", "0"], 2, "cooling.patience"),
        "one replica": ([*cool, "--set", "run.copies=1"], 2, "run.copies"),
        "warming": ([*cool, "--set", "cooling.low=200"], 2, "cooling.low must be below"),
        "nothing scored": ([*cool, "--set", "cooling.score_every=999"], 2, "nothing is scored"),
        "a setting of a sweep": ([*cool, "--set", "ladder.num=3"], 2, "unknown setting ladder.num"),
        "the settings of a sweep": ([*cool, str(folder / "sweep.toml")], 2, "not of anneal"),
        "no validation": (
            [*cool, "--data", str(folder / "few.npz"), "--network", "4-2"],
            2,
            "validation",
        ),
        "no test": (
            [*cool, "--data", str(folder / "own.npz"), "--network", "4-2"],
            3,
            "no test examples",
        ),
        "no such optimisation": ([*cool, "--optimised", str(folder / "none")], 5, "no such folder"),
        "paper contradicted": (
            [*start, "--protocol", "paper", "--set", "optimise.minimiser=fire"],
            2,
            "contradicts",
        ),
        "nothing kept": ([*start, "--keep", "0"], 2, "optimise.keep"),
        "no starts": ([*start, "--starts", "-3"], 2, "optimise.starts"),
        "negative tolerance": ([*start, "--set", "optimise.tolerance=-1"], 2, "optimise.tolerance"),
        "dynamics of an optimisation": (
            [*start, "--set", "dynamics.num_steps=3"],
            2,
            "unknown setting",
        ),
        "unknown preset": ([*start, "--preset", "quik"], 2, "did you mean quick"),
        "bad time": ([*start, "--max-time", "soon"], 2, "a time must be like"),
        "prediction of no run": (
            ["predict", str(folder / "empty"), "--data", "x.npz", "--out", str(folder / "out")],
            5,
            "no run folder",
        ),
    }


NONSENSE = [
    "no patience",
    "one replica",
    "warming",
    "nothing scored",
    "a setting of a sweep",
    "the settings of a sweep",
    "no validation",
    "no test",
    "no such optimisation",
    "paper contradicted",
    "nothing kept",
    "no starts",
    "negative tolerance",
    "dynamics of an optimisation",
    "unknown preset",
    "bad time",
    "prediction of no run",
]


def refused(arguments: list[str], code: int, part: str) -> None:
    """One line on standard error, nothing on standard output, and this exit code."""
    done = here(*arguments)
    assert done.returncode == code, done.stderr
    assert part.lower() in done.stderr.lower(), done.stderr
    assert (
        done.stdout == ""
        and len(done.stderr.splitlines()) == 1
        and done.stderr.startswith("tempernet: ")
    )


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_one_line_and_an_exit_code(case: str, tmp_path: Path) -> None:
    refused(*nonsense(tmp_path)[case])
    assert not (tmp_path / "out").exists()


def test_every_case_of_nonsense_is_tried(tmp_path: Path) -> None:
    assert sorted(nonsense(tmp_path)) == sorted(NONSENSE)


WRONG_DATA: dict[str, tuple[dict[str, Any], str]] = {
    "other shape": ({"x": np.zeros((3, 16))}, "cannot be resized"),
    "colour": ({"x": np.zeros((3, 9, 9, 3))}, "the run was trained on (4, 4)"),
    "unknown class": (
        {"x": np.zeros((2, 4, 4)), "y": np.array([1, 10])},
        "labels must be integers in 0..9",
    ),
    "no example": ({"x": np.zeros((0, 4, 4))}, "no examples"),
    "NaN": ({"x": np.full((2, 4, 4), np.nan)}, "nan"),
}


@pytest.mark.parametrize("case", WRONG_DATA)
def test_new_data_that_do_not_fit_the_run(case: str, optimised: Run, tmp_path: Path) -> None:
    arrays, part = WRONG_DATA[case]
    np.savez(tmp_path / "new.npz", **arrays)
    arguments = [
        "predict",
        str(optimised[0]),
        "--data",
        str(tmp_path / "new.npz"),
        "--out",
        str(tmp_path / "p.csv"),
    ]
    refused(arguments, 3, part)
    assert not (tmp_path / "p.csv").exists()


def test_runs_of_another_kind_are_refused(
    swept: Run, annealed: Run, optimised: Run, new_images: Path, common: list[str], tmp_path: Path
) -> None:
    sweep, cool, starts = (str(run[0]) for run in (swept, annealed, optimised))
    data = ["--data", str(new_images), "--out", str(tmp_path / "p.csv")]
    cases = [
        (["plot", starts, starts], 2, "drawn one at a time"),
        (["plot", sweep, cool], 5, "not of sweep"),
        (["plot", sweep, "--optimised", cool], 5, "not of optimise"),
        (["plot", cool, "--optimised", starts], 2, "a run of anneal"),
        (["export", cool, "--to", "xls"], 2, "to netcdf or csv, got --to xls"),
        (["resume", cool, "--rounds", "9"], 2, "unknown setting run.rounds"),
        (["predict", sweep, *data, "--temperature", "77"], 2, "only at T = 0.5, 1.414, 4"),
        (["predict", sweep, *data, "--temperature", "hot"], 2, '"best" or a number'),
        (["predict", sweep, *data, "--temperature", "nan"], 2, '"best" or a number'),
        (
            ["anneal", "--optimised", sweep, "--out", str(tmp_path / "a"), *common],
            5,
            "not of optimise",
        ),
        (
            [
                "anneal",
                "--optimised",
                starts,
                "--out",
                str(tmp_path / "a"),
                *common,
                "--set",
                "data.seed=1",
            ],
            2,
            "other data",
        ),
        (
            [
                "anneal",
                "--optimised",
                starts,
                "--out",
                str(tmp_path / "a"),
                *common,
                "--set",
                "network.name=16-5-10",
            ],
            2,
            "is of the network 16-4-10",
        ),
        (
            ["optimise", "--out", starts, "--keep", "3", *common, *options(*STARTS)],
            5,
            "other settings",
        ),
        (["anneal", "--out", starts, *common], 5, "not of anneal"),
    ]
    for arguments, code, part in cases:
        refused(arguments, code, part)
    assert not (tmp_path / "a").exists()
