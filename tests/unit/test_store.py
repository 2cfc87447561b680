"""The run folder: writes that are whole or not there, records cut to a checkpoint, damage that is
seen, one writer.
"""

import errno
import io
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tempernet.config import SweepSettings
from tempernet.errors import StoreError
from tempernet.store import Checkpoints, Records, RunFolder, files
from tempernet.store.checkpoints import KEPT
from tempernet.store.folder import CONFIG, LOCK, LOG, PROVENANCE, STATUS, is_run
from tempernet.store.log import Log
from tempernet.store.records import _growing

POINTS = ("open", "flush", "rename", "folder")


class Killed(BaseException):
    """What a kill is to the code that it interrupts: nothing is tidied up."""


class Interrupt:
    """A `before_write` that raises at the n-th step of all writes."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.left, self.error = at, error

    def __call__(self, path: Path, point: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error


def steps_of(action: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps of writes an action takes."""
    counted = []
    monkeypatch.setattr(files, "before_write", lambda path, point: counted.append(point))
    action()
    monkeypatch.setattr(files, "before_write", None)
    return len(counted)


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"old")
    monkeypatch.setattr(
        files, "before_write", Interrupt(POINTS.index(point), OSError(errno.EIO, "broken disk"))
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
    monkeypatch.setattr(files, "before_write", Interrupt(POINTS.index(point), Killed()))
    with pytest.raises(Killed):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == (b"new" if point == "folder" else b"old")
    monkeypatch.setattr(files, "before_write", None)
    files.write_atomic(path, b"newer")
    assert path.read_bytes() == b"newer" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_called_one(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "before_write", Interrupt(1, OSError(number, "no space")))
    with pytest.raises(
        StoreError, match=r"the disk is full: .*file needs 1\.50 MB; free some space"
    ):
        files.write_atomic(tmp_path / "file", bytes(1_500_000))


def test_an_error_without_a_number_still_has_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "before_write", Interrupt(0, OSError("out of luck")))
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


def pickled() -> bytes:
    """An archive that would run code."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=True, x=np.array([{"a": 1}, None], dtype=object))
    return buffer.getvalue()


def one_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"nonsense",
        pickled(),
        one_array(),
        files.pack({"x": np.arange(1000)})[:-50],
        files.pack({"x": np.arange(9)})[:100],
    ],
)
def test_what_is_no_archive_of_arrays_is_refused(content: bytes) -> None:
    with pytest.raises(StoreError, match=r"x\.npz is damaged: it is not an archive of arrays"):
        files.unpack(Path("x.npz"), content)


def test_arrays_come_back_as_they_were() -> None:
    arrays: dict[str, np.ndarray] = {
        "a/b": np.array([1, np.nan], np.float32),
        "empty": np.zeros((0, 3), np.int8),
        "scalar": np.array(2**60),
        "flags": np.array([True, False]),
    }
    back = files.unpack(Path("x"), files.pack(arrays))
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype and back[name].shape == array.shape


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def claim(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"") -> bytes:
    """An npy file whose header claims a shape and a type, with other content."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + content


def overlapping() -> bytes:
    """An archive whose directory names the same megabyte of zeros a thousand times."""
    whole = archive(("x.npy", claim((2**17,), content=bytes(2**20))))
    start = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entry, tail = whole[start:end], bytearray(whole[end:])
    tail[8:12] = struct.pack("<HH", 1000, 1000)
    tail[12:16] = struct.pack("<I", 1000 * len(entry))
    return whole[:start] + 1000 * entry + bytes(tail)


HUGE = 2**40
BOMBS = {
    "a huge array": archive(("x.npy", claim((HUGE,)))),
    "sizes whose product overflows": archive(("x.npy", claim((2**32, 2**32), content=bytes(8)))),
    "a negative size": archive(("x.npy", claim((-1,), content=bytes(8)))),
    "too few bytes": archive(("x.npy", claim((3,), content=bytes(16)))),
    "too many bytes": archive(("x.npy", claim((3,), content=bytes(32)))),
    "objects": archive(("x.npy", claim((1,), "|O", content=bytes(8)))),
    "a subarray": archive(("x.npy", claim((1,), "|V8", content=bytes(8)))),
    "a bomb of zeros": archive(
        ("x.npy", claim((2**24,), content=bytes(2**27))), compression=zipfile.ZIP_DEFLATED
    ),
    "a compressed array": archive(
        ("x.npy", claim((3,), content=bytes(24))), compression=zipfile.ZIP_BZIP2
    ),
    "the same bytes a thousand times": overlapping(),
    "no array": archive(("x.npy", b"nonsense")),
    "a header without an end": archive(("x.npy", b"\x93NUMPY\x01\x00\xff\xff{")),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_claims_more_than_it_has_is_refused_before_it_is_allocated(bomb: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=r"x\.npz is damaged: it is not an archive of arrays"):
            files.unpack(Path("x.npz"), BOMBS[bomb])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**22


def test_an_archive_with_any_byte_changed_is_read_or_refused() -> None:
    content = files.pack({"a": np.arange(5), "b": np.zeros((2, 3), np.float32)})
    rng = np.random.default_rng(0)
    for _ in range(3000):
        changed = bytearray(content)
        for position in rng.integers(len(content), size=rng.integers(1, 4)):
            changed[position] = rng.integers(256)
        try:
            found = files.unpack(Path("x.npz"), bytes(changed))
        except StoreError:
            continue
        assert sum(array.nbytes for array in found.values()) <= len(content)


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


def test_a_file_of_another_run_is_named(tmp_path: Path) -> None:
    one, two = begun(tmp_path / "one"), begun(tmp_path / "two")
    assert one.run != two.run and RunFolder(one.path).run == one.run
    for folder in (one, two):
        folder.write_json(STATUS, {"done": 1})
        records = folder.records
        records.append("rounds", row(0))
        records.flush()
        folder.checkpoints.save({"x": np.zeros(1)}, {"round": 1})
        folder.unlock()
    for name in (
        STATUS,
        CONFIG,
        "rounds/manifest.json",
        "checkpoints/00000000.npz",
        "checkpoints/00000000.sha256",
    ):
        (one.path / name).write_bytes((two.path / name).read_bytes())
    message = f"belongs to another run: it carries the id {two.run}, and the provenance.json beside it {one.run}"
    with pytest.raises(StoreError, match=rf"status\.json {message}"):
        one.read_json(STATUS)
    with pytest.raises(StoreError, match=rf"config\.toml {message}"):
        one.settings(SweepSettings)
    with pytest.raises(StoreError, match=rf"manifest\.json {message}"):
        _ = one.records
    found, complaints = one.checkpoints.latest()
    assert found is None and message in complaints[0]


def test_a_run_from_before_there_were_ids_is_read_and_goes_on(tmp_path: Path) -> None:
    files.write_json(tmp_path / PROVENANCE, {"seed": 1})
    folder = RunFolder(tmp_path)
    assert folder.run is None
    folder.write_settings(SweepSettings())
    folder.write_json(PROVENANCE, folder.read_json(PROVENANCE))
    folder.checkpoints.save({"x": np.zeros(1)}, {"round": 1})
    found, complaints = RunFolder(tmp_path).checkpoints.latest()
    assert found is not None and complaints == [] and RunFolder(tmp_path).outdated(found) == []
    assert (
        RunFolder(tmp_path).settings(SweepSettings) == SweepSettings()
        and RunFolder(tmp_path).run is None
    )


def test_an_older_checkpoint_under_a_newer_name_is_passed_over(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 0, 1, 2)
    for suffix in ("npz", "sha256"):
        (tmp_path / f"00000002.{suffix}").write_bytes(
            (tmp_path / f"00000000.{suffix}").read_bytes()
        )
    assert newest(checkpoints) == 1
    assert "00000002.npz holds another checkpoint, number 0" in checkpoints.latest()[1][0]


def test_a_vanished_folder_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"cannot make the folder .*gone/checkpoints: No such file"
    ):
        Checkpoints(tmp_path / "gone" / "checkpoints").save({"x": np.zeros(1)}, {})
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("left", [CONFIG + ".part", PROVENANCE + ".part", PROVENANCE, LOCK])
def test_a_run_that_was_killed_before_it_had_begun_can_be_begun_again(
    tmp_path: Path, left: str
) -> None:
    files.write_json(tmp_path / left, {"run": "00"})
    RunFolder.create(tmp_path).unlock()
    (tmp_path / CONFIG).write_text("mine")
    with pytest.raises(StoreError, match="not empty"):
        RunFolder.create(tmp_path)


def test_objects_are_not_written() -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        files.pack({"x": np.array([{}], dtype=object)})


def row(number: int) -> dict[str, Any]:
    return {"number": number, "energy": np.full((2, 3), number, np.float32)}


def numbers(records: Records, series: str = "rounds", skip: int = 0) -> list[int]:
    """The rows on disk, each of which is whole."""
    found = records.load(series, skip)
    if not found:
        return []
    np.testing.assert_array_equal(
        found["energy"],
        np.broadcast_to(found["number"][:, None, None], (len(found["number"]), 2, 3)),
    )
    return found["number"].tolist()


def written(folder: Path, *chunks: int) -> Records:
    """Chunks of so many rows of `rounds`, and one of `scores` with every second row."""
    records = Records(folder)
    number = 0
    for rows in chunks:
        for _ in range(rows):
            records.append("rounds", row(number))
            if number % 2:
                records.append("scores", row(number))
            number += 1
        records.flush()
    return records


def test_rows_are_on_disk_after_a_flush(tmp_path: Path) -> None:
    records = Records(tmp_path / "rounds")
    assert records.load("rounds") == {} and records.length("rounds") == 0
    records.append("rounds", row(0))
    records.append("rounds", row(1))
    records.append("scores", row(7))
    assert records.buffered == 3 and Records(tmp_path / "rounds").length("rounds") == 0
    records.flush()
    assert records.buffered == 0
    again = Records(tmp_path / "rounds")
    assert numbers(again) == [0, 1] and numbers(again, "scores") == [7]
    assert (again.length("rounds"), again.length("scores"), again.length("none")) == (2, 1, 0)
    assert again.load("rounds")["energy"].dtype == np.float32
    assert again.load("none") == {}


def test_a_flush_of_nothing_writes_nothing(tmp_path: Path) -> None:
    Records(tmp_path / "rounds").flush()
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_what_it_was_when_it_was_appended(tmp_path: Path) -> None:
    records, buffer = Records(tmp_path), np.zeros(2)
    for number in range(3):
        buffer[...] = number
        records.append("rounds", {"x": buffer})
    records.flush()
    np.testing.assert_array_equal(records.load("rounds")["x"][:, 0], [0, 1, 2])


@pytest.mark.parametrize("skip", [0, 1, 3, 4, 7, 8, 9, 100])
def test_rows_are_skipped_within_chunks_and_between(tmp_path: Path, skip: int) -> None:
    records = written(tmp_path, 3, 1, 5)
    assert numbers(records, skip=skip) == list(range(9))[skip:]


@pytest.mark.parametrize("length", range(10))
def test_series_are_cut_anywhere_and_grow_again(tmp_path: Path, length: int) -> None:
    records = written(tmp_path, 3, 1, 5)
    records.append("rounds", row(99))
    records.truncate({"rounds": length, "scores": 2})
    assert records.buffered == 0
    for reader in (records, Records(tmp_path)):
        assert numbers(reader) == list(range(length)) and numbers(reader, "scores") == [1, 3]
        assert reader.verify() == []
    for number in range(length, length + 4):
        records.append("rounds", row(number))
    records.flush()
    assert numbers(Records(tmp_path)) == list(range(length + 4))
    # Nothing lies about that the manifest does not name, but for the chunk that a reader may still
    # be at.
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    named = {chunk["file"] for chunk in manifest["chunks"]}
    assert (
        named <= (present := {file.name for file in tmp_path.glob("*.npz*")})
        and len(present - named) <= 1
    )


def test_many_flushes_leave_few_files_and_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempernet.store.records.FULL", 1500)
    monkeypatch.setattr("tempernet.store.records.TAIL", 8)
    records = Records(tmp_path)
    for number in range(100):
        records.append("rounds", row(number))
        if number % 3 == 2:
            records.flush()
            assert numbers(Records(tmp_path)) == list(range(number + 1))
            assert Records(tmp_path).verify() == []
    sizes = [file.stat().st_size for file in tmp_path.glob("*.npz")]
    assert 2 < len(sizes) <= sum(sizes) // 1500 + 3


@pytest.mark.parametrize(
    ("rows", "sizes", "added", "rewritten"),
    [
        ([], [], 3, 0),
        ([300, 9], [9, 1], 3, 1),  # a tail that stays one
        ([300, 9], [9, 1], 300, 2),  # a tail that joins the chunk before it
        ([300, 9], [4000, 1], 300, 1),  # which is full
        ([300], [9], 3, 0),  # a tail begins
        ([300], [9], 300, 1),
        ([300, 9], [9, 4000], 3, 0),  # few rows that are large are not written again
        ([300, 300, 9], [9, 9, 1], 300, 2),
    ],
)
def test_which_chunks_are_written_again(
    rows: list[int], sizes: list[int], added: int, rewritten: int
) -> None:
    chunks = [
        {"rows": count, "bytes": 1000 * size} for count, size in zip(rows, sizes, strict=True)
    ]
    assert _growing(chunks, added) == chunks[::-1][:rewritten]


def test_a_reader_follows_a_writer_that_has_replaced_its_chunks(tmp_path: Path) -> None:
    records = written(tmp_path, 3)
    readers = [Records(tmp_path) for _ in range(2)]
    for number in range(3, 6):
        records.append("rounds", row(number))
        records.flush()
    # What they knew of is gone by now.
    assert not (tmp_path / "rounds-00000000-00000003.npz").exists()
    assert numbers(readers[0]) == list(range(6)) and readers[1].verify() == []


def test_a_series_that_is_not_mentioned_is_forgotten(tmp_path: Path) -> None:
    records = written(tmp_path, 4)
    records.truncate({"rounds": 4})
    assert numbers(records) == [0, 1, 2, 3] and numbers(records, "scores") == []


def test_records_that_are_fewer_than_the_checkpoint_says_are_lost(tmp_path: Path) -> None:
    records = written(tmp_path, 3, 1)
    with pytest.raises(StoreError, match="has lost records: 4 rows of rounds are left of 9"):
        records.truncate({"rounds": 9, "scores": 0})
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(StoreError, match="has lost records: 0 rows of rounds are left of 4"):
        Records(tmp_path).truncate({"rounds": 4, "scores": 2})
    assert len(list(tmp_path.glob("*.npz"))) == 4


@pytest.mark.parametrize("length", [0, 2, 3, 7])
def test_a_kill_at_any_moment_of_a_cut_leaves_all_or_the_cut(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = {"rounds": length, "scores": length // 2}
    steps = steps_of(lambda: written(tmp_path / "count", 3, 1, 5).truncate(lengths), monkeypatch)
    made = steps_of(lambda: written(tmp_path / "made", 3, 1, 5), monkeypatch)
    assert steps > made
    for step in range(steps - made):
        folder = tmp_path / str(step)
        records = written(folder, 3, 1, 5)
        monkeypatch.setattr(files, "before_write", Interrupt(step, Killed()))
        with pytest.raises(Killed):
            records.truncate(lengths)
        monkeypatch.setattr(files, "before_write", None)
        survivor = Records(folder)
        assert survivor.verify() == []
        assert numbers(survivor) in (list(range(9)), list(range(length)))
        survivor.truncate(lengths)
        assert numbers(Records(folder)) == list(range(length))


def test_a_kill_at_any_moment_of_a_flush_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flush(folder: Path, hook: Interrupt | None) -> None:
        records = written(folder, 3)
        for number in range(3, 5):
            records.append("rounds", row(number))
            records.append("scores", row(number))
        monkeypatch.setattr(files, "before_write", hook)
        records.flush()

    steps = 3 * len(POINTS)
    outcomes = set()
    for step in range(steps):
        folder = tmp_path / str(step)
        with pytest.raises(Killed):
            flush(folder, Interrupt(step, Killed()))
        monkeypatch.setattr(files, "before_write", None)
        survivor = Records(folder)
        assert survivor.verify() == []
        outcomes.add((len(numbers(survivor)), len(numbers(survivor, "scores"))))
        survivor.truncate({"rounds": 3, "scores": 1})
        survivor.append("rounds", row(3))
        survivor.flush()
        assert numbers(Records(folder)) == [0, 1, 2, 3]
        assert len(list(folder.iterdir())) == 4
    # Both series or neither, and both were seen.
    assert outcomes == {(3, 1), (5, 3)}
    flush(tmp_path / "whole", Interrupt(steps, Killed()))


def test_rows_survive_a_full_disk_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = written(tmp_path, 3)
    records.append("rounds", row(3))
    monkeypatch.setattr(files, "before_write", Interrupt(5, OSError(errno.ENOSPC, "full")))
    with pytest.raises(StoreError, match="disk is full"):
        records.flush()
    monkeypatch.setattr(files, "before_write", None)
    assert numbers(records) == [0, 1, 2] and records.buffered == 1
    records.flush()
    assert numbers(Records(tmp_path)) == [0, 1, 2, 3]


def spoil(path: Path, how: str) -> None:
    """Damage a file."""
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


DAMAGE = ["missing", "truncated", "empty", "flipped"]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_chunk_is_seen(tmp_path: Path, how: str) -> None:
    records = written(tmp_path, 3, 1)
    name = sorted(file.name for file in tmp_path.glob("rounds-*"))[1]
    spoil(tmp_path / name, how)
    assert len(records.verify()) == 1 and name in records.verify()[0]
    with pytest.raises(StoreError, match=name):
        records.load("rounds")
    # Other chunks can be read.
    assert numbers(records, "scores") == [1, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version=2), "has version 2; this tempernet reads 1"),
        (lambda m: m.pop("version"), "has version None"),
        (lambda m: m.update(chunks=3), "does not list chunks"),
        (lambda m: m.pop("chunks"), "does not list chunks"),
        (lambda m: m["chunks"].append("x"), "does not list chunks"),
        (lambda m: m["chunks"][0].pop("sha256"), "does not list chunks"),
        (lambda m: m["chunks"][0].update(rows="3"), "does not list chunks"),
        (lambda m: m["chunks"][0].update(rows=-1), "does not list chunks"),
        (lambda m: m["chunks"][0].update(rows=2**62), "does not list chunks"),
        (lambda m: m["chunks"][0].update(rows=True), "does not list chunks"),
        (lambda m: m["chunks"][0].update(bytes=-1), "does not list chunks"),
        (lambda m: m.update(run="of another"), "belongs to another run"),
        (lambda m: m["chunks"][0].update(file="../elsewhere.npz"), "does not list chunks"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    written(tmp_path, 3)
    path = tmp_path / "manifest.json"
    manifest = files.read_json(path)
    change(manifest)
    files.write_json(path, manifest)
    with pytest.raises(StoreError, match=message):
        Records(tmp_path)


@pytest.mark.parametrize("how", ["truncated", "empty"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, how: str) -> None:
    written(tmp_path, 3)
    spoil(tmp_path / "manifest.json", how)
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        Records(tmp_path)


def test_a_chunk_with_other_rows_than_the_manifest_says_is_damaged(tmp_path: Path) -> None:
    written(tmp_path, 3)
    path = tmp_path / "manifest.json"
    manifest = files.read_json(path)
    manifest["chunks"][0]["rows"] = 2
    files.write_json(path, manifest)
    with pytest.raises(StoreError, match="it has not the 2 rows"):
        Records(tmp_path).load("rounds")


def saved(folder: Path, *values: int) -> Checkpoints:
    checkpoints = Checkpoints(folder)
    for value in values:
        checkpoints.save({"x": np.full(3, value)}, {"round": value, "nested": {"rows": [value]}})
    return checkpoints


def newest(checkpoints: Checkpoints) -> int | None:
    found, _ = checkpoints.latest()
    if found is None:
        return None
    value = found.meta["round"]
    assert found.meta["nested"] == {"rows": [value]} and found.arrays.keys() == {"x"}
    np.testing.assert_array_equal(found.arrays["x"], np.full(3, value))
    return int(value)


def test_the_newest_checkpoint_is_found_and_three_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert checkpoints.latest() == (None, []) and checkpoints.verify() == []
    for value in range(12):
        saved(checkpoints.folder, value)
        assert newest(checkpoints) == value
        kept = min(value + 1, KEPT)
        assert (
            len(list(checkpoints.folder.glob("*.npz")))
            == len(list(checkpoints.folder.glob("*.sha256")))
            == kept
        )
    assert KEPT == 3
    assert [path.name for path in sorted(checkpoints.folder.glob("*.npz"))] == [
        f"{n:08d}.npz" for n in (9, 10, 11)
    ]
    assert checkpoints.latest()[1] == []


@pytest.mark.parametrize("read", ["latest", "verify"])
def test_a_reader_follows_a_writer_that_has_replaced_its_checkpoints(
    tmp_path: Path, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four more are written between its look at the folder and its reading of the first."""
    saved(tmp_path, 0, 1, 2)
    one_by_one = Checkpoints._read
    later = iter([(3, 4, 5, 6)])

    def slowly(checkpoints: Checkpoints, path: Path) -> Any:
        saved(tmp_path, *next(later, ()))
        return one_by_one(checkpoints, path)

    monkeypatch.setattr(Checkpoints, "_read", slowly)
    if read == "verify":
        assert Checkpoints(tmp_path).verify() == []
    else:
        assert newest(Checkpoints(tmp_path)) == 6 and Checkpoints(tmp_path).latest()[1] == []
    assert next(later, None) is None


@pytest.mark.parametrize("suffix", [".npz", ".sha256"])
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    tmp_path: Path, how: str, suffix: str
) -> None:
    checkpoints = saved(tmp_path, 0, 1, 2, 3)
    spoil(tmp_path / f"00000003{suffix}", how)
    assert newest(checkpoints) == 2
    _, problems = checkpoints.latest()
    if (how, suffix) != ("missing", ".npz"):
        assert len(problems) == 1 and "00000003" in problems[0] and checkpoints.verify() == problems
    spoil(tmp_path / f"00000002{suffix}", how)
    assert newest(checkpoints) == 1
    # A new one is the newest again.
    assert newest(saved(tmp_path, 7)) == 7


def test_nothing_is_left_if_all_are_damaged(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 0, 1, 2)
    for path in tmp_path.glob("*.npz"):
        spoil(path, "flipped")
    found, problems = checkpoints.latest()
    assert found is None and len(problems) == 3 and "00000002" in problems[0]


@pytest.mark.parametrize("error", [Killed(), OSError(errno.ENOSPC, "full")])
def test_a_save_that_does_not_end_leaves_the_one_before(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(2 * len(POINTS)):
        folder = tmp_path / f"{step}"
        saved(folder, 0, 1, 2)
        monkeypatch.setattr(files, "before_write", Interrupt(step, error))
        with pytest.raises((Killed, StoreError)):
            saved(folder, 3)
        monkeypatch.setattr(files, "before_write", None)
        # The last step comes after the renaming.
        assert newest(Checkpoints(folder)) == (3 if step == 7 else 2)
        assert Checkpoints(folder).verify() == []
        assert newest(saved(folder, 4)) == 4


def put(folder: Path, content: bytes) -> None:
    """A checkpoint with this content, and the right hash."""
    (folder / "00000009.npz").write_bytes(content)
    (folder / "00000009.sha256").write_text(files.sha256(content))


def meta(text: str) -> bytes:
    return files.pack({"x": np.zeros(1), "meta.json": np.frombuffer(text.encode(), np.uint8)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickled(), "not an archive of arrays"),
        (one_array(), "not an archive of arrays"),
        (files.pack({"x": np.zeros(1)}), "is no checkpoint"),
        (meta("nonsense"), "is no checkpoint"),
        (meta("[1]"), "is no checkpoint"),
        (meta('{"version": 99}'), "has version 99; this tempernet reads 1"),
    ],
)
def test_what_is_no_checkpoint_is_passed_over_even_with_the_right_hash(
    tmp_path: Path, content: bytes, message: str
) -> None:
    checkpoints = saved(tmp_path, 0)
    put(tmp_path, content)
    assert newest(checkpoints) == 0
    assert len(checkpoints.latest()[1]) == 1 and message in checkpoints.latest()[1][0]


def test_other_files_among_the_checkpoints_are_left_alone(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 0)
    (tmp_path / "notes.npz").write_text("mine")
    assert newest(checkpoints) == 0 and newest(saved(tmp_path, 1, 2, 3, 4)) == 4
    assert (tmp_path / "notes.npz").read_text() == "mine"


def test_a_new_folder_is_made_with_those_above_it_and_locked(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a" / "run")
    assert [file.name for file in folder.path.iterdir()] == [LOCK] and not is_run(folder.path)
    with pytest.raises(StoreError, match="another process is writing"):
        RunFolder.create(folder.path)
    folder.unlock()
    folder.unlock()
    # What failed before it wrote anything can be tried again.
    RunFolder.create(folder.path).unlock()


def test_a_folder_that_cannot_be_used_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"full is not empty; choose another with --out"):
        RunFolder.create(tmp_path / "full")
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    for path in (tmp_path / "full" / "thesis.txt", tmp_path / "full" / "thesis.txt" / "run"):
        with pytest.raises(StoreError, match=r"Not a directory; choose another with --out"):
            RunFolder.create(path)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def begun(path: Path) -> RunFolder:
    folder = RunFolder.create(path)
    folder.write_settings(SweepSettings())
    folder.write_json(PROVENANCE, {"seed": 1})
    return folder


def test_only_a_run_can_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no run at .*absent: no such folder"):
        RunFolder.open(tmp_path / "absent")
    with pytest.raises(
        StoreError, match=r"is no run folder: it has no config\.toml with a provenance\.json"
    ):
        RunFolder.open(tmp_path)
    begun(tmp_path / "run").unlock()
    before = sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "run").iterdir())
    folder = RunFolder.open(tmp_path / "run")
    assert folder.records.load("rounds") == {} and folder.weights.length("weights") == 0
    assert folder.checkpoints.latest() == (None, [])
    assert folder.read_json(PROVENANCE) == {"seed": 1, "run": folder.run, "revision": 1}
    assert (
        sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "run").iterdir())
        == before
    )


def test_lines_are_logged_with_the_time_and_sizes_are_counted(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    size = folder.size()
    assert size == sum(len((folder.path / name).read_bytes()) for name in (CONFIG, PROVENANCE))
    folder.log.append("one")
    folder.log.append("zwei äöü\nand more")
    lines = (folder.path / LOG).read_text(encoding="utf-8").splitlines()
    assert [line.split(" ", 2)[2].rpartition(" [")[0] for line in lines] == [
        "one",
        "zwei äöü and more",
    ]
    folder.records.append("rounds", row(0))
    (folder.path / "rounds").mkdir()
    (folder.path / "rounds" / "x").write_bytes(bytes(1000))
    assert folder.size() == size + 1000 + (folder.path / LOG).stat().st_size
    (folder.path / "dangling").symlink_to(folder.path / "nowhere")
    assert folder.size() > size
    folder.write_json(STATUS, {"done": np.int64(3)})
    assert folder.read_json(STATUS) == {"done": 3, "run": folder.run}
    folder.unlock()


HOLDER = """
import sys, time
from pathlib import Path
from tempernet.store.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
folder.lock()
print("locked", flush=True)
time.sleep(60)
"""


def test_a_second_process_cannot_write_until_the_first_has_died(tmp_path: Path) -> None:
    begun(tmp_path).unlock()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        folder = RunFolder.open(tmp_path)
        for _ in range(2):
            with pytest.raises(
                StoreError, match=r"another process is writing to .*; wait for it or stop it first"
            ):
                folder.lock()
        assert folder.is_being_written
        # Reading is free.
        assert folder.read_json(PROVENANCE)["seed"] == 1
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not folder.is_being_written
    folder.lock()
    with pytest.raises(StoreError, match="another process"):
        RunFolder.open(tmp_path).lock()
    folder.unlock()
    assert not folder.is_being_written and not RunFolder(tmp_path / "absent").is_being_written


def test_a_look_at_the_lock_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    import fcntl

    begun(tmp_path).unlock()
    with (tmp_path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.15, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        folder = RunFolder.open(tmp_path)
        folder.lock()
        folder.unlock()


def test_a_lock_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write to .*absent: No such file"):
        RunFolder(tmp_path / "absent").lock()


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


def test_settings_that_were_changed_are_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    settings = SweepSettings.model_validate({"run": {"seed": 3}})
    folder.write_settings(settings)
    assert folder.settings(SweepSettings) == settings
    path = folder.path / CONFIG
    path.write_text(path.read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(StoreError, match="was changed"):
        folder.settings(SweepSettings)
    folder.unlock()


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
