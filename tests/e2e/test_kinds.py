"""The list of kinds: one entry and one file make a new one, and nothing else knows their names."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import here
from toy_kind import TOY, Toy, ToySettings

import tempernet
from tempernet import config
from tempernet.errors import Stopped
from tempernet.kinds import KINDS
from tempernet.store import RunFolder, files

pytestmark = pytest.mark.usefixtures("quick_programs")
SOURCE = Path(tempernet.__file__).parent
SMALL = [
    text
    for setting in (
        "data.size=4",
        "data.n_train=20",
        "data.n_validation=20",
        "network.name=16-3-10",
        "run.devices=1",
        "run.reproducible=true",
    )
    for text in ("--set", setting)
]


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one entry."""
    monkeypatch.setitem(KINDS, "toy", TOY)


def test_a_toy_kind_goes_through_every_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    written = here("init", "toy")
    assert "# to = 5" in written.stdout
    (tmp_path / "toy.toml").write_text(written.stdout)
    assert config.resolve(ToySettings, file=tmp_path / "toy.toml") == ToySettings()
    assert "1 (a counter)" in here("plan", tmp_path / "toy.toml", *SMALL).stdout
    assert "1 (a counter)" in here("plan", "--kind", "toy", *SMALL).stdout
    assert "The last number." in here("toy", "--help").stdout
    done = here("toy", tmp_path / "toy.toml", "--out", run, "--to", 3, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "16-3-10 on 20 images of mnist16, default protocol" in done.stdout
    assert "counted to 3" in done.stdout and "count" in done.stderr
    assert files.read_json(run / "results.json")["largest"] == 1.5
    assert (run / "figures" / "numbers.png").exists() and (run / "numbers.csv").exists()
    told = json.loads(here("status", run, "--json").stdout)
    assert told["finished"] and told["verdict"] == "counted to 3" and told["done"] == 3
    assert here("plot", run, "--out", tmp_path / "drawn").returncode == 0
    assert (tmp_path / "drawn" / "numbers.svg").exists()
    done = here("export", run, "--out", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "t.csv").open() as file:
        assert [row["half"] for row in csv.DictReader(file)] == ["0.5", "1.0", "1.5"]
    done = here("resume", run)
    assert done.returncode == 0, done.stderr
    assert "is whole" in here("check", run).stdout
    (run / "numbers.csv").write_text("half\n7\n")
    assert here("check", run).returncode == 5


def test_a_stopped_toy_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Toy, *_: object, **__: object) -> None:
        if self.number == 2:
            self.checkpoint()
            raise Stopped("stopped as asked")

    monkeypatch.setattr(Toy, "tell", stop)
    # The process would end here.
    monkeypatch.setattr("os._exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    run = tmp_path / "run"
    done = here("toy", "--out", run, "--to", 4, *SMALL)
    assert done.returncode == 6 and f"tempernet resume {run}" in done.stderr
    told = json.loads(here("status", run, "--json").stdout)
    assert not told["finished"] and told["verdict"] == "counted to 2"
    monkeypatch.undo()
    monkeypatch.setitem(KINDS, "toy", TOY)
    assert here("resume", run, "--quiet").returncode == 0
    assert RunFolder(run).records.length("numbers") == 4
    assert "is whole" in here("check", run).stdout


def test_what_a_kind_does_not_have_is_refused_in_its_words(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert here("toy", "--out", run, "--quiet", *SMALL).returncode == 0
    for arguments, code, said in (
        (("export", run, "--to", "netcdf"), 2, "a run of toy is exported to csv, got --to netcdf"),
        (("plot", run, run), 2, "runs of toy are drawn one at a time"),
        (("plot", run, "--optimised", run), 2, "a run of toy"),
        (("predict", run, "--data", "x.npz", "--out", "p.csv"), 5, "not of sweep or anneal or"),
        (("compare", run), 5, "not of evidence or sweep"),
        (("sweep", "--out", run, *SMALL), 5, "is a run of toy, not of sweep"),
        (("init", "tyo"), 2, "did you mean toy?"),
    ):
        done = here(*arguments)
        assert done.returncode == code and said in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1


def test_a_run_of_an_unknown_kind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    assert here("toy", "--out", run, "--quiet", *SMALL).returncode == 0
    monkeypatch.delitem(KINDS, "toy")
    for command in ("status", "check", "plot"):
        done = here(command, run)
        assert "a run of kind 'toy', which this tempernet does not know" in (
            done.stdout + done.stderr
        )


def test_version_and_completion() -> None:
    assert here("--version").stdout == f"tempernet {tempernet.__version__}\n"
    assert "--install-completion" in here("--help").stdout


def comparisons(source: str, names: set[str]) -> Iterator[int]:
    """Lines where something is compared with the name of a kind, or looked up by it."""

    def named(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(map(named, node.elts))
        return isinstance(node, ast.Constant) and node.value in names

    for node in ast.walk(ast.parse(source)):
        found: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            found = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            found = [key for key in node.keys if key is not None]
            # A table of settings is no list of kinds, though one has the name of its kind.
            found = found if sum(map(named, found)) > 1 else []
        elif isinstance(node, ast.Match):
            found = [part for case in node.cases for part in ast.walk(case.pattern)]
        if isinstance(node, ast.expr | ast.stmt) and any(map(named, found)):
            yield node.lineno


def test_no_other_place_asks_which_kind_it_has() -> None:
    names = set(KINDS)
    seen = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in SOURCE.rglob("*.py")
        if not file.is_relative_to(SOURCE / "kinds")
        for line in comparisons(file.read_text(), names)
    ]
    assert seen == []


@pytest.mark.parametrize(
    "source",
    [
        'if settings.kind == "sweep": pass',
        'x = kind in ("anneal", "evidence")',
        'x = {"sweep": 1, "anneal": 2}[kind]',
        'match kind:\n    case "sweep": pass',
    ],
)
def test_a_question_for_the_kind_is_seen(source: str) -> None:
    assert list(comparisons(source, set(KINDS))) == [1]
