"""Real processes that are killed, run out of disk, lose their folder, or are read and written to by
others.

However a run ends, `tempernet resume` brings it to the same bits as one that nothing happened to.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from runs import PROGRAM, assert_same, command, here, options

from tempernet.config import SweepSettings
from tempernet.results import sweep as results
from tempernet.runs.status import current, problems
from tempernet.store import RunFolder
from tempernet.store.folder import LOG, is_run

pytestmark = pytest.mark.usefixtures("quick_programs")
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
    "output.checkpoint_seconds=0.2",
)
SHORT = (*SETTINGS, "run.burn_in=100", "run.rounds=120")
LONG = (*SETTINGS, "run.burn_in=800", "run.rounds=1000")
BRIEF = (*SETTINGS, "run.burn_in=8", "run.rounds=5", "run.keep=1", "output.figures=false")
"""Little more than a beginning."""
PHASES = ("start", "initialise", "minimise", "tune", "burn-in", "sample", "write")
Durations = dict[str, float]


class Process:
    """The command at work, and the phases that it has come to, each with the time."""

    def __init__(self, *arguments: object, before: Sequence[str] = ()) -> None:
        given = [*before, PROGRAM, *map(str, arguments)]
        self.popen = subprocess.Popen(
            given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self.entered = {"start": time.monotonic()}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        with self.popen.stderr as stderr:
            for line in stderr:
                self.lines.append(line.rstrip())
                phase, *count = line.split()[:2] or [""]
                done, _, total = (count or [""])[0].partition("/")
                if phase in PHASES:
                    self._enter("write" if phase == "sample" and done == total else phase)

    def _enter(self, phase: str) -> None:
        self.entered.setdefault(phase, time.monotonic())

    @property
    def phase(self) -> str:
        """The last one that it came to."""
        return max(self.entered, key=PHASES.index)

    def reach(self, wanted: str) -> bool:
        """Wait for a phase or a later one; whether it came."""
        while PHASES.index(self.phase) < PHASES.index(wanted) and self._reader.is_alive():
            time.sleep(0.002)
        return PHASES.index(self.phase) >= PHASES.index(wanted)

    def reach_end_of_sampling(self, path: Path) -> None:
        """Wait until the log says so once more: a run that is resumed after it has no line of
        progress.
        """

        def times() -> int:
            return (path / LOG).read_text().count(" finished [")

        before = times()
        while times() == before and self._reader.is_alive():
            time.sleep(0.01)
        if times() > before:
            self._enter("write")

    def stay(self, seconds: float) -> None:
        """Wait for a while, but not into the next phase."""
        phase, until = self.phase, time.monotonic() + seconds
        while self.phase == phase and time.monotonic() < until and self._reader.is_alive():
            time.sleep(0.002)

    def end(self) -> int:
        """Wait for the end."""
        self._reader.join()
        return self.popen.wait()

    def complaint(self) -> str:
        """The one line that it ended with."""
        own = [
            line
            for line in self.lines
            if line.startswith("tempernet: ") and "run folder" not in line
        ]
        assert len(own) == 1 and not any("Traceback" in line for line in self.lines), self.lines
        return own[0]


def straight(path: Path, settings: Sequence[str]) -> Durations:
    """A run that nothing happens to, and how long each of its phases takes once its programs are
    compiled.

    The run that compiles them is the brief one, beside it.
    """
    brief = here("sweep", "--quiet", "--out", path.with_name("brief"), *options(BRIEF))
    assert brief.returncode == 0, brief.stderr
    process = Process("sweep", "--out", path, *options(settings))
    assert process.end() == 0, process.lines
    moments = [*(process.entered[phase] for phase in PHASES), time.monotonic()]
    return {phase: float(took) for phase, took in zip(PHASES, np.diff(moments), strict=True)}


def go_on(path: Path, settings: Sequence[str]) -> list[object]:
    """The arguments that begin a run, or go on with it."""
    return ["resume", path] if is_run(path) else ["sweep", "--out", path, *options(settings)]


def finish(path: Path, settings: Sequence[str], other: Path) -> None:
    """Let a run come to its end, which must be that of the other."""
    done = here(*go_on(path, settings), "--quiet")
    assert done.returncode == 0, done.stderr
    assert_same(path, other)


TRIES = 8
"""How often a signal may come too late for a phase."""
Met = list[tuple[str, int]]
"""The phase in which the signal found a process at work, and how it ended."""


def end_once(
    path: Path, settings: Sequence[str], phase: str, seconds: float, number: int
) -> tuple[str, int] | None:
    """Begin a run or go on with it, and end it so long after it has come to a phase; None if it was
    too late.
    """
    process = Process(*go_on(path, settings))
    if phase == "write":
        process.reach_end_of_sampling(path)
    else:
        process.reach(phase)
    process.stay(seconds)
    found, at_work = process.phase, process.popen.poll() is None
    process.popen.send_signal(number)
    code = process.end()
    if is_run(path):
        wrong = [text for text in problems(path) if "the run has finished" not in text]
        assert wrong == [], (phase, wrong)
    # It may have come to its own end between the last look and a signal that it could not have
    # survived.
    too_late = not at_work or (number == signal.SIGKILL and code == 0)
    return None if too_late else (found, code)


def end_beginnings(
    reference: Path, kills: dict[str, int], number: int, durations: Durations
) -> Met:
    """End brief runs by a signal before their first round; begun again, or resumed, they come to
    the same end.

    A phase may be over before its line is read: it is then tried again, sooner.
    """
    rng = np.random.default_rng(number)
    path = reference.with_name("begun")
    met: Met = []
    for phase, times in kills.items():
        late = 0
        while times and late < TRIES:
            found = end_once(
                path, BRIEF, phase, rng.uniform(0, durations[phase] / (1 + late)), number
            )
            met += [found] if found else []
            if found and found[0] == phase:
                times -= 1
            else:
                late += 1
            if any((path / "checkpoints").glob("*.npz")):
                # It cannot be ended in these phases again.
                finish(path, BRIEF, reference)
                shutil.rmtree(path)
    finish(path, BRIEF, reference)
    return met


def end_rounds(
    path: Path,
    reference: Path,
    kills: dict[str, int],
    number: int,
    settings: Sequence[str],
    durations: Durations,
) -> Met:
    """End one run by a signal again and again while it samples and writes, and let it come to its
    end.
    """
    rng = np.random.default_rng(number)
    met = []
    for phase, times in kills.items():
        for _ in range(times):
            # Rounds that were done stay done, so the signals of a phase share its time between
            # them.
            share = 1.0 if phase == "write" else 1 / times
            met.append(
                end_once(path, settings, phase, rng.uniform(0, share * durations[phase]), number)
            )
    finish(path, settings, reference)
    return [found for found in met if found]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Durations]:
    path = tmp_path_factory.mktemp("short") / "run"
    return path, straight(path, SHORT)


@pytest.mark.slow
def test_killed_and_terminated_at_random_moments(
    short: tuple[Path, Durations], tmp_path: Path
) -> None:
    path, durations = short
    begun = end_beginnings(path.with_name("brief"), {"initialise": 1}, signal.SIGKILL, durations)
    killed = end_rounds(
        tmp_path / "killed", path, {"burn-in": 1, "sample": 1}, signal.SIGKILL, SHORT, durations
    )
    assert ("initialise", -9) in begun and {code for _, code in begun} == {-9}
    assert [code for _, code in killed] == [-9, -9]
    stopped = end_rounds(
        tmp_path / "stopped", path, {"burn-in": 1}, signal.SIGTERM, SHORT, durations
    )
    assert [code for _, code in stopped] == [6]


BEGINNINGS = {"start": 3, "initialise": 4, "minimise": 6, "tune": 6}
ROUNDS = {"burn-in": 13, "sample": 13, "write": 9}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_at_more_than_fifty_random_moments(number: int, tmp_path: Path) -> None:
    durations = straight(tmp_path / "straight", LONG)
    met = end_beginnings(tmp_path / "brief", BEGINNINGS, number, durations)
    met += end_rounds(tmp_path / "run", tmp_path / "straight", ROUNDS, number, LONG, durations)
    counts = {phase: sum(found == phase for found, _ in met) for phase in PHASES}
    print(f"\nsignal {number} met {len(met)} processes at work: {counts}")
    assert len(met) >= 50 and min(counts.values()) >= 2
    # SIGTERM before the command listens ends it as it would any; after the last round, results are
    # still written.
    assert {code for _, code in met} <= ({-9} if number == signal.SIGKILL else {-15, 6, 0})
    assert all(phase == "write" for phase, code in met if code == 0)
    ends = [
        json.loads((tmp_path / name / "results.json").read_text()) for name in ("straight", "run")
    ]
    assert ends[0]["temperatures"] == ends[1]["temperatures"]


NO_FIGURES = (*SHORT, "output.figures=false")


def test_a_disk_that_fills_up(short: tuple[Path, Durations], tmp_path: Path) -> None:
    """A file system of three megabytes, in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tempernet", str(disk)],
        capture_output=True,
        text=True,
        check=False,
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
        assert (
            "the disk is full: " in process.complaint()
            and " MB; free some space" in process.complaint()
        )
        assert problems(disk / "run") == []
        (disk / "filler").unlink()
        assert here("resume", disk / "run", "--quiet").returncode == 0
        assert_same(disk / "run", short[0])
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def under(statements: str) -> list[str]:
    """A command that does something to its process and then becomes the one it is given."""
    return [
        sys.executable,
        "-c",
        f"import os, sys; {statements}; os.execv(sys.argv[1], sys.argv[1:])",
    ]


@pytest.mark.slow
def test_a_file_that_may_not_grow(short: tuple[Path, Durations], tmp_path: Path) -> None:
    """A limit on the size of files, larger than a checkpoint and smaller than the last chunk of
    records.
    """
    sizes = {
        kind: max(file.stat().st_size for file in (short[0] / kind).glob("*.npz"))
        for kind in ("rounds", "checkpoints")
    }
    assert sizes["rounds"] > 1.2 * sizes["checkpoints"]
    limit = (sizes["rounds"] + sizes["checkpoints"]) // 2
    limited = under(
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    )
    process = Process("sweep", "--out", tmp_path / "run", *options(NO_FIGURES), before=limited)
    assert process.end() == 5
    assert (
        "limit on the size of a file" in process.complaint()
        and "rounds-00000000" in process.complaint()
    )
    assert problems(tmp_path / "run") == []
    newest, _ = RunFolder(tmp_path / "run").checkpoints.latest()
    assert newest is not None and newest.meta["round"] > 0
    assert here("resume", tmp_path / "run", "--quiet").returncode == 0
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
        assert (
            again.returncode == 5
            and len(again.stderr.splitlines()) == 1
            and "Permission denied" in again.stderr
        )
        assert problems(run) == []
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert here("resume", run, "--quiet").returncode == 0
    assert_same(run, short[0])


def test_a_folder_that_vanishes_and_comes_back(
    short: tuple[Path, Durations], tmp_path: Path
) -> None:
    run, away = tmp_path / "run", tmp_path / "away"
    process = Process("sweep", "--out", run, *options(NO_FIGURES))
    assert process.reach("sample")
    run.rename(away)
    assert process.end() == 5
    assert str(run) in process.complaint() and "No such file or directory" in process.complaint()
    assert not run.exists()
    away.rename(run)
    assert problems(run) == []
    assert here("resume", run, "--quiet").returncode == 0
    assert_same(run, short[0])


FOREVER = ("--rounds", 10**6)


def test_a_second_writer_is_refused(short: tuple[Path, Durations], tmp_path: Path) -> None:
    run = shutil.copytree(short[0], tmp_path / "run")
    first = Process("resume", run, *FOREVER)
    assert first.reach("sample")
    second = here("resume", run, "--quiet")
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
    settings = folder.settings(SweepSettings)
    often = settings.output.model_copy(update={"checkpoint_seconds": 1e-9})
    folder.write_settings(settings.model_copy(update={"output": often}))
    writer = Process("resume", run, *FOREVER)
    assert writer.reach("sample")
    for reading in (
        ["status", run, "--json"],
        ["export", run, "--out", run.parent / "t.nc"],
        ["check", run],
    ):
        read = here(*reading)
        assert read.returncode == 0 and read.stderr == "", (reading, read)
    times, first, began = 0, folder.records.length("rounds"), time.monotonic()
    while time.monotonic() - began < seconds or times < 3:
        read_once(run)
        times += 1
    assert writer.popen.poll() is None, writer.lines
    rounds = folder.records.length("rounds") - first
    writer.popen.send_signal(signal.SIGTERM)
    assert writer.end() == 6 and problems(run) == []
    took = time.monotonic() - began
    print(f"\nread {times} times in {took:.0f} s while {rounds} rounds were written")
    assert rounds >= 5


def test_readers_and_a_writer_do_not_disturb_each_other(
    short: tuple[Path, Durations], tmp_path: Path
) -> None:
    poll(shutil.copytree(short[0], tmp_path / "run"), 4)


@pytest.mark.slow
def test_readers_and_a_writer_for_a_minute(short: tuple[Path, Durations], tmp_path: Path) -> None:
    poll(shutil.copytree(short[0], tmp_path / "run"), 60)
