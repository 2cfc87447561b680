"""`reproduce` as a person runs it: a whole study, stopped, killed, resumed, misused.

Its scale is that of a smoke test.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import PROGRAM, assert_same, command, here

from tempernet.paper import sentences
from tempernet.paper.claims import UNDECIDED, VERDICTS, Kind, judge_all
from tempernet.paper.steps import steps_of
from tempernet.paper.study import RUNS, Study
from tempernet.results.evidence import EvidenceResults
from tempernet.results.sweep import SweepResults
from tempernet.runs.status import problems
from tempernet.store import files
from tempernet.store.folder import PROVENANCE, RESULTS, STUDY

SIDES = ("paper_protocol", "default_protocol")
STEPS = [step.name for step in steps_of("smoke")]
FEW = "widths-m1-default,m3-d50-default,optimise-m3-d50-default"
"""In the order that they are run in: widths-m1-default, optimise-m3-d50-default, m3-d50-default."""
FINISHED = dict.fromkeys(FEW.split(","), "finished")


@pytest.fixture(scope="module", autouse=True)
def two_devices(quick_programs: None) -> Iterator[None]:
    """Of the study's processes, which find each other's programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPERNET_DEVICES", "2")
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few steps of a study that nothing happened to."""
    return made(tmp_path_factory.mktemp("study") / "smoke", "--only", FEW)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All steps of a study that nothing happened to."""
    return made(tmp_path_factory.mktemp("whole") / "smoke")


def made(path: Path, *more: str) -> Path:
    """A study in a folder, from its beginning to its end."""
    done = command("reproduce", "--out", path, "--scale", "smoke", "--json", *more, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["claims"]) == len(judge_all({}))
    return path


def interrupted(path: Path, number: int, *, at: str) -> tuple[int, str]:
    """Begin a few steps, or go on; send a signal once a line of progress says so.

    Returns the exit code and what was said.
    """
    given = [PROGRAM, "reproduce", "--out", str(path), "--scale", "smoke", "--only", FEW]
    with subprocess.Popen(
        given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith(at):
                process.send_signal(number)
                break
        said += process.stderr.readlines()
        return process.wait(timeout=120), "".join(said)


@pytest.mark.slow
def test_the_whole_study_makes_every_run_figure_and_row(whole: Path) -> None:
    study = whole
    found = Study.open(study)
    assert all(found.finished(step) for step in found.steps)
    assert sorted(file.name for file in (study / RUNS).iterdir()) == sorted(STEPS)
    assert [problem for name in STEPS for problem in problems(study / RUNS / name)] == []
    # Whether to trust an evidence is decided by all estimators, on the page as well.
    evidence = found.results()["evidence-m1-default"]
    assert isinstance(evidence, EvidenceResults) and len(evidence.log_integrals) == 6
    page = (study / "report.md").read_text()
    for name in ("fig1", "fig2", "fig3", "fig4", "heat-capacity", "swaps", "evidences"):
        assert f"(figures/{name}" in page, name
    assert (study / "report.html").read_text().count("data:image/png;base64,") == page.count(
        "](figures/"
    )
    claims = files.read_json(study / "claims.json")["claims"]
    names = [sentences.name(claim.statement) for claim in judge_all({})]
    assert [claim["claim"] for claim in claims] == names
    # Every number was made by a run, and none of these tiny networks decides anything about the
    # paper's.
    for claim in claims:
        assert "no run" not in (claim[side]["text"] for side in SIDES)
    assert {claim["verdict"] for claim in claims if claim["kind"] != Kind.FLOOR} == {UNDECIDED}
    assert {claim["verdict"] for claim in claims} <= set(VERDICTS)


def test_status_and_check_of_a_study(study: Path, tmp_path: Path) -> None:
    told = json.loads(here("status", study, "--json").stdout)
    assert told["finished"] and told["steps"] == dict.fromkeys(STEPS, "not begun") | FINISHED
    assert "m3-d500-paper" in here("status", study).stdout
    assert "is whole" in here("check", study).stdout
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    first, second, _ = FINISHED
    shutil.rmtree(copy / RUNS / first)
    (copy / RUNS / second / RESULTS).write_text("{}")
    told = json.loads(here("status", copy, "--json").stdout)
    assert not told["finished"] and told["steps"][first] == "not begun"
    done = here("check", copy)
    assert done.returncode == 5 and f"{second}/{RESULTS}" in done.stdout


def test_a_finished_study_is_not_made_again(study: Path) -> None:
    before = {name: (study / RUNS / name / RESULTS).stat().st_mtime_ns for name in FINISHED}
    page = (study / "report.html").read_bytes()
    done = here("resume", study)
    assert done.returncode == 0, done.stderr
    assert "step" not in done.stderr
    assert f"{len(FINISHED)} of {len(STEPS)} runs at the scale smoke" in done.stdout
    assert {name: (study / RUNS / name / RESULTS).stat().st_mtime_ns for name in before} == before
    assert (study / "report.html").read_bytes() == page


def test_a_study_that_was_stopped_and_killed_goes_on_to_the_same_result(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As this process was told; a user's is not.
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    path = tmp_path / "stopped"
    returned, said = interrupted(path, signal.SIGTERM, at="tempernet: step 2")
    assert returned == 6
    assert said.rstrip().endswith(f"go on with: tempernet reproduce --out {path}")
    first = path / RUNS / "widths-m1-default" / RESULTS
    before = first.stat().st_mtime_ns
    returned, said = interrupted(path, signal.SIGKILL, at="tempernet: step 3")
    assert returned == -9 and "step 1 of 3" not in said
    assert not (path / "report.md").exists()
    done = command("resume", path)
    assert done.returncode == 0, done.stderr
    assert "step 2 of 3" not in done.stderr and "step 3 of 3: m3-d50-default" in done.stderr
    # Programs are read from where they are kept, and XLA says nothing of it.
    assert "XLA" not in done.stderr
    assert first.stat().st_mtime_ns == before
    assert_same(path / RUNS / "m3-d50-default", study / RUNS / "m3-d50-default")
    # What --only left out is undecided, with how to make it.
    claims = files.read_json(path / "claims.json")["claims"]
    whys = [claim["why"]["text"] for claim in claims if claim["why"]]
    assert any("--only m3-d500-default" in why for why in whys)
    assert len(Study.open(path).results()) == 3


def test_time_that_is_up_stops_a_study(tmp_path: Path) -> None:
    some = ["--scale", "smoke", "--only", FEW, "--max-time", "1s"]
    done = command("reproduce", "--out", tmp_path / "s", *some)
    assert done.returncode == 6, done.stderr
    assert "go on with: tempernet reproduce --out" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--scale", "huor"), 2, "did you mean hour?"),
        (("--scale", "smoke", "--only", "fig33"), 2, "did you mean fig3?"),
        (("--scale", "smoke", "--only", "fig3,m3-d5000-papr"), 2, "did you mean m3-d5000-paper?"),
        (("--scale", "smoke", "--max-time", "soon"), 2, "a time must be like"),
    ],
)
def test_bad_input_is_one_line_and_makes_no_folder(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = here("reproduce", "--out", tmp_path / "new", *arguments)
    assert done.returncode == code
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = here("reproduce", "--out", tmp_path, "--scale", "smoke")
    assert done.returncode == 5 and "not empty" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_another_scale_is_refused(study: Path) -> None:
    done = here("reproduce", "--out", study, "--scale", "hour")
    assert done.returncode == 5
    assert "holds a study of scale smoke, not hour" in done.stderr and done.stderr.count("\n") == 1


def test_other_settings_of_the_same_scale_are_refused(tmp_path: Path) -> None:
    other = {"scale": "smoke", "steps": dict.fromkeys(STEPS, "0"), "only": []}
    files.write_json(tmp_path / STUDY, other)
    done = here("resume", tmp_path)
    assert done.returncode == 5 and "other settings of the scale smoke" in done.stderr


def test_a_damaged_study_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / STUDY).write_text('{"scale": "smoke"}')
    done = here("resume", tmp_path)
    assert done.returncode == 5 and "damaged" in done.stderr


def test_a_study_cannot_be_made_longer_as_a_whole(study: Path) -> None:
    done = here("resume", study, "--rounds", 50)
    assert done.returncode == 2 and "make one of the runs" in done.stderr


@pytest.mark.slow
def test_a_run_made_longer_by_itself_is_read_as_it_is(whole: Path) -> None:
    study = whole
    run = study / RUNS / "m3-d50-paper"
    assert here("resume", run, "--rounds", 20, "--quiet").returncode == 0
    done = here("reproduce", "--out", study, "--only", "widths")
    assert done.returncode == 0, done.stderr
    longer = Study.open(study).results()["m3-d50-paper"]
    assert isinstance(longer, SweepResults) and longer.series.sizes["round"] == 20
    assert files.read_json(run / PROVENANCE)["restarts"]


def test_a_step_that_fails_leaves_the_others_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tempernet.errors import NumericsError
    from tempernet.tasks.optimise import Optimise

    run = Optimise.run

    def fail_once(self: Optimise) -> None:
        if self.folder.path.name == "widths-m1-default":
            raise NumericsError("no numbers")
        run(self)

    monkeypatch.setattr(Optimise, "run", fail_once)
    only = "widths-m1-default,widths-m1-paper"
    done = here("reproduce", "--out", tmp_path / "s", "--scale", "smoke", "--only", only)
    assert done.returncode == 4 and "1 steps failed" in done.stderr
    page = (tmp_path / "s" / "report.md").read_text()
    assert "| widths-m1-default | no numbers |" in page
    assert list(Study.open(tmp_path / "s").results()) == ["widths-m1-paper"]
