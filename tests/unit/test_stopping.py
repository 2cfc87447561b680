"""Stopping by signals and by time, with the main thread awake and with it inside a long call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tempernet.errors import ConfigError
from tempernet.runs.stopping import EXIT_STOPPED, Stopper, seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("45s", 45.0),
        ("90m", 5400.0),
        ("3h", 10800.0),
        ("1h30m", 5400.0),
        ("2 min", 120.0),
        ("1.5h", 5400.0),
        ("12", 12.0),
    ],
)
def test_times(text: str, wanted: float) -> None:
    assert seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "h", "3x", "3h x", "-3h", "0s", "nan", "inf", "1e400"])
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="1h30m"):
        seconds(text)


def test_a_signal_asks_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stopper() as stopping:
        assert not stopping()
        os.kill(os.getpid(), signal.SIGTERM)
        _until(stopping)
    assert signal.getsignal(signal.SIGTERM) is before


def test_time_asks() -> None:
    with Stopper(max_seconds=0.05) as stopping:
        _until(stopping)


def test_nothing_asks_for_nothing() -> None:
    with Stopper(max_seconds=60) as stopping:
        time.sleep(0.1)
        assert not stopping()


LONG = """
import time
from tempernet.runs import stopping
stopping.GRACE_SECONDS = {grace}
with stopping.Stopper({limit}, "; try again"):
    print("ready", flush=True)
    time.sleep(60)
"""
"""The main thread never looks whether it should stop, as when it waits inside JAX."""


def _started(grace: float, limit: float | None = None) -> subprocess.Popen[str]:
    script = LONG.format(grace=grace, limit=limit)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=-1, stderr=-1, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=30)
    return process.returncode, said


def test_a_run_that_does_not_come_to_it_is_ended() -> None:
    process = _started(grace=0.2)
    process.send_signal(signal.SIGINT)
    code, said = _ended(process)
    assert code == EXIT_STOPPED
    assert "the last checkpoint is whole; try again" in said


def test_time_ends_a_run_that_does_not_come_to_it() -> None:
    code, said = _ended(_started(grace=0.2, limit=0.1))
    assert code == EXIT_STOPPED and "time is up" in said


def test_a_second_signal_ends_it_at_once() -> None:
    process = _started(grace=60)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None and "stopping" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    code, _ = _ended(process)
    assert code == 128 + signal.SIGTERM


def _until(stopping: Stopper) -> None:
    for _ in range(200):
        if stopping():
            return
        time.sleep(0.02)
    raise AssertionError("nobody asked to stop")
