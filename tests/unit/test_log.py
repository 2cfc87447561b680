"""The log of a run: what is lost, torn or changed in it is seen."""

import os
from pathlib import Path

import pytest

from tempernet.errors import StoreError
from tempernet.store.folder import LOG
from tempernet.store.log import Log


def logged(path: Path, lines: int, run: str = "ab12") -> Log:
    log = Log(path / LOG, run)
    for number in range(lines):
        log.append(f"line {number}")
    return log


def test_a_log_is_continued_by_the_next_process(tmp_path: Path) -> None:
    logged(tmp_path, 3)
    logged(tmp_path, 2)
    assert Log(tmp_path / LOG, "ab12").lines == 5
    assert Log(tmp_path / LOG, "ab12").problems(at_least=5) == []
    assert "lost lines: it has 5 lines of 6" in Log(tmp_path / LOG, "ab12").problems(at_least=6)[0]


@pytest.mark.parametrize("place", range(0, 131, 10))
def test_a_bit_of_a_log_that_flips_is_seen(tmp_path: Path, place: int) -> None:
    log = logged(tmp_path, 3)
    content = bytearray(log.path.read_bytes())
    content[place] ^= 1
    log.path.write_bytes(content)
    (told,) = log.problems()
    assert str(log.path) in told and "damaged" in told


def test_lines_of_a_log_that_are_lost_or_strange_are_seen(tmp_path: Path) -> None:
    log = logged(tmp_path, 4)
    whole = log.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "other").mkdir()
    other = logged(tmp_path / "other", 4, run="cd34").path.read_bytes()
    damaged = {
        "the first": b"".join(lines[1:]),
        "one between": b"".join([lines[0], *lines[2:]]),
        "the last": b"".join(lines[:-1]),
        "half of the last": whole[:-20],
        "all": b"",
        "exchanged": b"".join([lines[1], lines[0], *lines[2:]]),
        "twice": whole + whole,
        "another run's": other,
        "one of another run's": b"".join([*lines[:2], *other.splitlines(keepends=True)[2:]]),
        "no text": b"\xff\xfe\n",
    }
    for name, content in damaged.items():
        log.path.write_bytes(content)
        assert len(Log(log.path, "ab12").problems(at_least=4)) == 1, name
    log.path.unlink()
    assert "it is not there" in Log(log.path, "ab12").problems(at_least=4)[0]
    assert Log(log.path, "ab12").problems() == []


def test_a_damaged_log_is_set_aside_and_another_begun(tmp_path: Path) -> None:
    log = logged(tmp_path, 4)
    damaged = log.path.read_bytes()[:-20]
    log.path.write_bytes(damaged)
    log = Log(log.path, "ab12")
    aside = log.begin_anew(after=4)
    log.append("a new one")
    assert aside.read_bytes() == damaged
    assert Log(log.path, "ab12").lines == 5 and Log(log.path, "ab12").problems(at_least=5) == []
    log.path.unlink()
    log.begin_anew(after=5)
    assert log.lines == 5


def test_a_line_that_does_not_fit_leaves_the_log_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logged(tmp_path, 2)

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="the disk is full"):
        log.append("one more")
    assert Log(log.path, "ab12").lines == log.lines == 2 and log.problems(at_least=2) == []
