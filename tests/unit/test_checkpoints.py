"""Checkpoints: three are kept, the newest whole one is found, and damage is passed over."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disk import (
    DAMAGE,
    POINTS,
    Interrupt,
    Killed,
    newest,
    nothing,
    one_array,
    pickled,
    saved,
    spoil,
)

from tempernet.errors import StoreError
from tempernet.store import Checkpoints, archives, files
from tempernet.store.checkpoints import KEPT


def test_an_older_checkpoint_under_a_newer_name_is_passed_over(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 0, 1, 2)
    for suffix in ("npz", "sha256"):
        (tmp_path / f"00000002.{suffix}").write_bytes(
            (tmp_path / f"00000000.{suffix}").read_bytes()
        )
    assert newest(checkpoints) == 1
    assert "00000002.npz holds another checkpoint, number 0" in checkpoints.latest()[1][0]


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
        monkeypatch.setattr(files, "before_step", Interrupt(step, error))
        with pytest.raises((Killed, StoreError)):
            saved(folder, 3)
        monkeypatch.setattr(files, "before_step", nothing)
        # The last step comes after the renaming.
        assert newest(Checkpoints(folder)) == (3 if step == 7 else 2)
        assert Checkpoints(folder).verify() == []
        assert newest(saved(folder, 4)) == 4


def put(folder: Path, content: bytes) -> None:
    """A checkpoint with this content, and the right hash."""
    (folder / "00000009.npz").write_bytes(content)
    (folder / "00000009.sha256").write_text(files.sha256(content))


def meta(text: str) -> bytes:
    return archives.pack({"x": np.zeros(1), "meta.json": np.frombuffer(text.encode(), np.uint8)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickled(), "not an archive of arrays"),
        (one_array(), "not an archive of arrays"),
        (archives.pack({"x": np.zeros(1)}), "is no checkpoint"),
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
