"""Real processes that are killed, run out of disk, lose their folder, or are read and written to by others.

However a run ends, `tempernet resume` brings it to the same bits as one that nothing happened to.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from runs import PROGRAM, assert_same, command, options

from tempernet import results
from tempernet.store import RunFolder
from tempernet.store.folder import LOG, is_run
from tempernet.tasks.status import current, problems

SETTINGS = (
    "data.size=4",
    "data.n_train=50",
    "data.n_validation=100",
    "data.scored=50",
    "network.name=16-4-10",
    "ladder.low=0.5",
    "ladder.high=8",
    "ladder.num=4",
    "dynamics.num_steps=20",
    "dynamics.num_trajectories=5",
    "start.max_gradients=5000",
    "run.copies=2",
    "run.score_every=5",
    "run.keep=3",
    "run.seed=7",
    "run.devices=1",
    # A tile that is measured could differ between two runs.
    "run.reproducible=true",
    "output.checkpoint_seconds=0.2",
)
SHORT = (*SETTINGS, "run.burn_in=100", "run.rounds=120")
LONG = (*SETTINGS, "run.burn_in=800", "run.rounds=800")
PHASES = ("start", "initialise", "minimise", "tune", "burn-in", "sample", "write")
Durations = dict[str, float]

pytestmark = pytest.mark.usefixtures("shared_compilations")


class Process:
    """The command at work, and the phases that it has come to."""

    def __init__(self, *arguments: object, before: Sequence[str] = ()) -> None:
        given = [*before, PROGRAM, *map(str, arguments)]
        self.began = time.monotonic()
        self.popen = subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []

    def phases(self) -> Iterator[str]:
        """The phase of every line of progress, as it comes; `write` once all samples are taken."""
        yield "start"
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.lines.append(line.rstrip())
            phase, *count = line.split()[:2] or [""]
            if phase in PHASES:
                done, _, total = (count or [""])[0].partition("/")
                yield "write" if phase == "sample" and done == total else phase

    def reach(self, wanted: str) -> bool:
        """Wait for a phase or a later one; whether it came."""
        return any(PHASES.index(phase) >= PHASES.index(wanted) for phase in self.phases())

    def reach_end_of_sampling(self, path: Path) -> None:
        """Wait until the run says so in its log, once more: one that is resumed after it has no line of progress."""

        def times() -> int:
            return (path / LOG).read_text().count("sampling finished")

        before = times()
        while times() == before and self.popen.poll() is None:
            time.sleep(0.01)

    def end(self) -> int:
        """Wait for the end."""
        for _ in self.phases():
            pass
        assert self.popen.stderr is not None
        self.popen.stderr.close()
        return self.popen.wait()

    def complaint(self) -> str:
        """The one line that it ended with."""
        own = [line for line in self.lines if line.startswith("tempernet: ") and "run folder" not in line]
        assert len(own) == 1 and not any("Traceback" in line for line in self.lines), self.lines
        return own[0]


def straight(path: Path, settings: Sequence[str]) -> Durations:
    """A run that nothing happens to, and how long each of its phases takes once its programs are compiled."""
    fewer = [*settings, "run.burn_in=8", "run.rounds=5", "run.keep=1"]
    assert command("sweep", "--quiet", "--out", path.with_name("warm"), *options(fewer)).returncode == 0
    process = Process("sweep", "--out", path, *options(settings))
    entered: dict[str, float] = {}
    for phase in process.phases():
        entered.setdefault(phase, time.monotonic())
    assert process.end() == 0, process.lines
    moments = [*(entered[phase] for phase in PHASES), time.monotonic()]
    return {phase: float(took) for phase, took in zip(PHASES, np.diff(moments), strict=True)}


def kill_often(path: Path, settings: Sequence[str], kills: dict[str, int], number: int, durations: Durations) -> list:
    """Begin a run, end it by a signal at random moments of each phase, go on after each, and let it come to its end.

    Returns the phases and the exit codes of the processes that were at work when the signal came.
    """
    rng = np.random.default_rng(number)
    met: list[tuple[str, int]] = []
    for phase in PHASES:
        for _ in range(kills.get(phase, 0)):
            begun = ["resume", path] if is_run(path) else ["sweep", "--out", path, *options(settings)]
            process = Process(*begun)
            # Rounds that were done stay done, so the kills of a phase share its time between them.
            share = 1 / kills[phase] if phase in ("burn-in", "sample") else 1.0
            if phase == "write":
                process.reach_end_of_sampling(path)
            else:
                process.reach(phase)
            time.sleep(rng.uniform(0, share * durations[phase]))
            at_work = process.popen.poll() is None
            process.popen.send_signal(number)
            code = process.end()
            met += [(phase, code)] if at_work else []
            if is_run(path):
                wrong = [text for text in problems(path) if "the run has finished" not in text]
                assert wrong == [], (phase, wrong)
    done = command("resume" if is_run(path) else "sweep", path, "--quiet")
    assert done.returncode == 0, done.stderr
    return met


SHARES = {"start": 4, "initialise": 5, "minimise": 6, "tune": 7, "burn-in": 13, "sample": 13, "write": 10}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Durations]:
    path = tmp_path_factory.mktemp("short") / "run"
    return path, straight(path, SHORT)


def test_killed_and_terminated_at_random_moments(short: tuple[Path, Durations], tmp_path: Path) -> None:
    path, durations = short
    killed = kill_often(tmp_path / "killed", SHORT, {"tune": 1, "sample": 1}, signal.SIGKILL, durations)
    assert [code for _, code in killed] == [-9, -9]
    assert_same(tmp_path / "killed", path)
    terminated = kill_often(tmp_path / "terminated", SHORT, {"burn-in": 1}, signal.SIGTERM, durations)
    assert [code for _, code in terminated] == [6]
    assert_same(tmp_path / "terminated", path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_at_more_than_fifty_random_moments(number: int, tmp_path: Path) -> None:
    durations = straight(tmp_path / "straight", LONG)
    met = kill_often(tmp_path / "run", LONG, SHARES, number, durations)
    print(f"\nsignal {number}: {len(met)} processes ended in the phases", sorted(met), "durations", durations)
    assert len(met) >= 50 and {phase for phase, _ in met} == set(PHASES)
    # SIGTERM before the command listens ends it as it would any; after the last round, results are still written.
    assert {code for _, code in met} <= ({-9} if number == signal.SIGKILL else {-15, 6, 0})
    assert all(phase == "write" for phase, code in met if code == 0)
    assert_same(tmp_path / "run", tmp_path / "straight")
    ends = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("straight", "run")]
    assert ends[0]["temperatures"] == ends[1]["temperatures"]


NO_FIGURES = (*SHORT, "output.figures=false")


def test_a_disk_that_fills_up(short: tuple[Path, Durations], tmp_path: Path) -> None:
    """A file system of three megabytes, in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tempernet", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system needs the right to mount one: {mounted.stderr.strip()}")
    try:
        process = Process("sweep", "--out", disk / "run", *options(NO_FIGURES))
        assert process.reach("sample")
        with (disk / "filler").open("wb", buffering=0) as filler:
            size = 2**16
            while size:
                try:
                    filler.write(bytes(size))
                except OSError:
                    size //= 2
        assert process.end() == 5
        assert "the disk is full: " in process.complaint() and " MB; free some space" in process.complaint()
        assert problems(disk / "run") == []
        (disk / "filler").unlink()
        assert command("resume", disk / "run", "--quiet").returncode == 0
        assert_same(disk / "run", short[0])
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def under(statements: str) -> list[str]:
    """A command that does something to its process and then becomes the one it is given."""
    return [sys.executable, "-c", f"import os, sys; {statements}; os.execv(sys.argv[1], sys.argv[1:])"]


@pytest.mark.slow
def test_a_file_that_may_not_grow(short: tuple[Path, Durations], tmp_path: Path) -> None:
    """A limit on the size of files, larger than a checkpoint and smaller than the last chunk of records."""
    sizes = {
        kind: max(file.stat().st_size for file in (short[0] / kind).glob("*.npz")) for kind in ("rounds", "checkpoints")
    }
    assert sizes["rounds"] > 1.2 * sizes["checkpoints"]
    limit = (sizes["rounds"] + sizes["checkpoints"]) // 2
    limited = under(f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))")
    process = Process("sweep", "--out", tmp_path / "run", *options(NO_FIGURES), before=limited)
    assert process.end() == 5
    assert "limit on the size of a file" in process.complaint() and "rounds-00000000" in process.complaint()
    assert problems(tmp_path / "run") == []
    newest, _ = RunFolder(tmp_path / "run").checkpoints.latest()
    assert newest is not None and newest.meta["round"] > 0
    assert command("resume", tmp_path / "run", "--quiet").returncode == 0
    assert_same(tmp_path / "run", short[0])


@pytest.mark.slow
def test_a_folder_that_becomes_read_only(short: tuple[Path, Durations], tmp_path: Path) -> None:
    run = tmp_path / "run"
    # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE: root too obeys the permissions of a folder then.
    obedient = under("import ctypes; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)")
    process = Process("sweep", "--out", run, *options(NO_FIGURES), before=obedient)
    assert process.reach("burn-in")
    folders = [run, *(entry for entry in run.rglob("*") if entry.is_dir())]
    try:
        for folder in folders:
            folder.chmod(0o555)
        assert process.end() == 5
        assert "Permission denied; check the folder and its permissions" in process.complaint()
        again = command("resume", run, "--quiet", before=obedient)
        assert again.returncode == 5 and len(again.stderr.splitlines()) == 1 and "Permission denied" in again.stderr
        assert problems(run) == []
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert command("resume", run, "--quiet").returncode == 0
    assert_same(run, short[0])


def test_a_folder_that_vanishes_and_comes_back(short: tuple[Path, Durations], tmp_path: Path) -> None:
    run, away = tmp_path / "run", tmp_path / "away"
    process = Process("sweep", "--out", run, *options(NO_FIGURES))
    assert process.reach("sample")
    run.rename(away)
    assert process.end() == 5
    assert str(run) in process.complaint() and "No such file or directory" in process.complaint()
    assert not run.exists()
    away.rename(run)
    assert problems(run) == []
    assert command("resume", run, "--quiet").returncode == 0
    assert_same(run, short[0])


FOREVER = ("--rounds", 10**6)


def test_a_second_writer_is_refused(short: tuple[Path, Durations], tmp_path: Path) -> None:
    run = shutil.copytree(short[0], tmp_path / "run")
    first = Process("resume", run, *FOREVER)
    assert first.reach("sample")
    second = command("resume", run, "--quiet")
    assert second.returncode == 5 and "another process is writing" in second.stderr
    first.popen.send_signal(signal.SIGTERM)
    assert first.end() == 6 and problems(run) == []


@pytest.mark.slow
def test_two_runs_begun_at_once_in_a_folder(short: tuple[Path, Durations], tmp_path: Path) -> None:
    both = [Process("sweep", "--out", tmp_path / "run", *options(NO_FIGURES)) for _ in range(2)]
    codes = [process.end() for process in both]
    assert sorted(codes) == [0, 5], [process.lines for process in both]
    assert "another process is writing" in both[codes.index(5)].complaint()
    assert_same(tmp_path / "run", short[0])


def read_once(path: Path) -> None:
    """Read a run in every way."""
    told = current(path)
    assert told["phase"] != "unknown" and told["warnings"] == [], told
    assert not told["verdict"].startswith("none yet"), told
    assert problems(path) == []
    assert np.isfinite(results.load(path).series.energy.values).all()


def poll(run: Path, seconds: float) -> None:
    """A writer that makes a checkpoint of every round, and readers, at the same time."""
    folder = RunFolder(run)
    settings = folder.settings
    often = settings.output.model_copy(update={"checkpoint_seconds": 1e-9})
    folder.write_settings(settings.model_copy(update={"output": often}))
    writer = Process("resume", run, *FOREVER)
    assert writer.reach("sample")
    for reading in (["status", run, "--json"], ["export", run, "--out", run.parent / "t.nc"], ["check", run]):
        read = command(*reading)
        assert read.returncode == 0 and read.stderr == "", (reading, read)
    times, first, began = 0, folder.records.length("rounds"), time.monotonic()
    while time.monotonic() - began < seconds or times < 3:
        read_once(run)
        times += 1
    assert writer.popen.poll() is None, writer.lines
    rounds = folder.records.length("rounds") - first
    writer.popen.send_signal(signal.SIGTERM)
    assert writer.end() == 6 and problems(run) == []
    print(f"\nread {times} times in {time.monotonic() - began:.0f} s while {rounds} rounds were written")
    assert rounds >= 5


def test_readers_and_a_writer_do_not_disturb_each_other(short: tuple[Path, Durations], tmp_path: Path) -> None:
    poll(shutil.copytree(short[0], tmp_path / "run"), 4)


@pytest.mark.slow
def test_readers_and_a_writer_for_a_minute(short: tuple[Path, Durations], tmp_path: Path) -> None:
    poll(shutil.copytree(short[0], tmp_path / "run"), 60)
