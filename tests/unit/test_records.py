"""Records of rounds: flushed, cut to a checkpoint, read beside a writer, damage that is seen."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disk import (
    DAMAGE,
    POINTS,
    Interrupt,
    Killed,
    nothing,
    numbers,
    row,
    spoil,
    steps_of,
    written,
)

from tempernet.errors import StoreError
from tempernet.store import Records, files
from tempernet.store.records import _growing


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
    assert _growing(chunks, added) == chunks[::-1][:rewritten]  # type: ignore[arg-type]


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
        monkeypatch.setattr(files, "before_step", Interrupt(step, Killed()))
        with pytest.raises(Killed):
            records.truncate(lengths)
        monkeypatch.setattr(files, "before_step", nothing)
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
        monkeypatch.setattr(files, "before_step", hook)
        records.flush()

    steps = 3 * len(POINTS)
    outcomes = set()
    for step in range(steps):
        folder = tmp_path / str(step)
        with pytest.raises(Killed):
            flush(folder, Interrupt(step, Killed()))
        monkeypatch.setattr(files, "before_step", nothing)
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
    monkeypatch.setattr(files, "before_step", Interrupt(5, OSError(errno.ENOSPC, "full")))
    with pytest.raises(StoreError, match="disk is full"):
        records.flush()
    monkeypatch.setattr(files, "before_step", nothing)
    assert numbers(records) == [0, 1, 2] and records.buffered == 1
    records.flush()
    assert numbers(Records(tmp_path)) == [0, 1, 2, 3]


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
