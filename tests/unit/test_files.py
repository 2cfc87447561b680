"""Writes that are whole or not there, and texts and JSON whose damage is seen."""

import errno
import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from disk import (
    HUGE,
    POINTS,
    Interrupt,
    Killed,
    newest,
    nothing,
    saved,
    written,
)

from tempernet.errors import StoreError
from tempernet.store import Checkpoints, Records, files


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"old")
    monkeypatch.setattr(
        files, "before_step", Interrupt(POINTS.index(point), OSError(errno.EIO, "broken disk"))
    )
    with pytest.raises(StoreError, match=r"cannot write .*file \(0\.01 MB\): broken disk"):
        files.write_atomic(path, b"new")
    # Once it is renamed, the new content is there, whole.
    assert path.read_bytes() == (b"new" if point == "folder" else b"old")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_is_killed_leaves_what_was_there(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"old")
    monkeypatch.setattr(files, "before_step", Interrupt(POINTS.index(point), Killed()))
    with pytest.raises(Killed):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == (b"new" if point == "folder" else b"old")
    monkeypatch.setattr(files, "before_step", nothing)
    files.write_atomic(path, b"newer")
    assert path.read_bytes() == b"newer" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_called_one(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "before_step", Interrupt(1, OSError(number, "no space")))
    with pytest.raises(
        StoreError, match=r"the disk is full: .*file needs 1\.50 MB; free some space"
    ):
        files.write_atomic(tmp_path / "file", bytes(1_500_000))


def test_an_error_without_a_number_still_has_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "before_step", Interrupt(0, OSError("out of luck")))
    with pytest.raises(StoreError, match="out of luck"):
        files.write_atomic(tmp_path / "file", b"")


def test_a_path_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        files.write_atomic(tmp_path / "file" / "inside", b"x")
    with pytest.raises(StoreError, match="cannot make the folder"):
        Checkpoints(tmp_path / "file" / "checkpoints").save({"x": np.zeros(1)}, {})
    records = Records(tmp_path / "file" / "rounds")
    records.append("rounds", {"x": 1})
    with pytest.raises(StoreError, match="cannot make the folder"):
        records.flush()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full: .*rounds needs 0.01 MB; free some space"),
        (errno.EACCES, "Permission denied; check the folder and its permissions"),
    ],
)
def test_a_folder_that_cannot_be_made_says_what_to_do(
    number: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=words):
        files.make_folder(tmp_path / "rounds")


def test_json_holds_arrays_and_what_is_not_finite_is_null(tmp_path: Path) -> None:
    value = {
        "a": np.array([1.5, np.nan]),
        2: np.float32(0.5),
        "c": (np.bool_(True), -np.inf, np.int64(3)),
        "d": None,
    }
    files.write_json(tmp_path / "x.json", cast(Any, value))
    assert files.read_json(tmp_path / "x.json") == {
        "a": [1.5, None],
        "2": 0.5,
        "c": [True, None, 3],
        "d": None,
    }


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"a": 1', "\xff", "[" * 100_000])
def test_json_that_is_no_object_is_damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match="damaged"):
        files.read_json(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*absent\.json: No such file"):
        files.read_json(tmp_path / "absent.json")


@pytest.mark.parametrize("depth", [500, 900, 990, 10_000, 1_000_000])
def test_json_however_deep_is_read_or_refused(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(StoreError, match="is damaged"):
        files.read_json(path)


def test_files_that_are_far_too_large_are_not_read(tmp_path: Path) -> None:
    """Sparse files of a terabyte: nothing of them is on disk, and nothing of them comes into
    memory.
    """
    for name, read_fn in (("x.json", files.read_json), ("x.toml", files.read_text)):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, HUGE)
        with pytest.raises(
            StoreError, match=rf"{name} is damaged: it has {HUGE} bytes, such a file has at most"
        ):
            read_fn(tmp_path / name)
    records, checkpoints = written(tmp_path / "rounds", 3), saved(tmp_path / "checkpoints", 0, 1)
    os.truncate(next((tmp_path / "rounds").glob("rounds-*")), HUGE)
    os.truncate(tmp_path / "checkpoints" / "00000001.npz", HUGE)
    assert (
        "has not the" in records.verify()[0]
        and "bytes that manifest.json says" in records.verify()[0]
    )
    assert newest(checkpoints) == 0 and "00000001.npz is damaged" in checkpoints.latest()[1][0]
    os.truncate(tmp_path / "checkpoints" / "00000000.sha256", HUGE)
    assert (
        newest(checkpoints) is None and "00000000.sha256 is damaged" in checkpoints.latest()[1][1]
    )


def test_a_json_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1, "b": [2.5, None]})
    assert files.read_json(path) == {"a": 1, "b": [2.5, None]}
    path.write_text(path.read_text().replace("2.5", "2.6"))
    with pytest.raises(StoreError, match="was changed"):
        files.read_json(path)
    path.write_text("{}")
    with pytest.raises(StoreError, match="was changed"):
        files.read_json(path)
