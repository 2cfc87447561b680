"""Checkpoints: the newest three complete states of a run, each with its SHA-256 beside it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tempernet.errors import StoreError
from tempernet.store import archives, files
from tempernet.store.files import JsonObject
from tempernet.store.records import RETRIES

KEPT = 3
VERSION = 1
_META = "meta.json"

_T = TypeVar("_T")


class Checkpoint(NamedTuple):
    """Named arrays, and a few plain facts about them."""

    arrays: dict[str, np.ndarray]
    meta: JsonObject

    @property
    def log_lines(self) -> int:
        """Lines that the log had when it was written."""
        return int(self.meta.get("log", 0))


class Checkpoints:
    """The checkpoints in a folder, numbered upwards.

    Args:
        folder: where they are.
        run: id of the run that they belong to.
        revisions: of the files that a checkpoint is written beside, as they are when it is saved.
    """

    def __init__(
        self, folder: Path, run: str | None = None, revisions: Mapping[str, int] | None = None
    ) -> None:
        self.folder, self.run = folder, run
        self.revisions: Mapping[str, int] = {} if revisions is None else revisions

    def save(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, object]) -> Path:
        """Write a checkpoint, and remove the oldest beyond three."""
        files.make_folder(self.folder)
        existing = self._paths()
        number = int(existing[-1].stem) + 1 if existing else 0
        facts = {
            "version": VERSION,
            "run": self.run,
            "number": number,
            "revisions": dict(self.revisions),
        }
        text = json.dumps({**facts, **meta}).encode()
        content = archives.pack({**arrays, _META: np.frombuffer(text, np.uint8)})
        path = self.folder / f"{number:08d}.npz"
        # The hash first: a checkpoint without one is not taken for whole.
        files.write_atomic(
            self._hash_path(path), f"{files.sha256(content)} {len(content)}\n".encode()
        )
        files.write_atomic(path, content)
        oldest = self._paths()[-KEPT:][0].stem
        # Sorted, so that a checkpoint goes before its hash.
        for file in sorted(self.folder.glob("*")):
            if file.suffix in (".npz", ".sha256") and file.stem.isdecimal() and file.stem < oldest:
                with contextlib.suppress(OSError):
                    file.unlink()
        return path

    def latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint or None, and what was wrong with newer ones."""

        def read_newest() -> tuple[Checkpoint | None, list[str]]:
            problems: list[str] = []
            for path in reversed(self._paths()):
                try:
                    return self._read(path), problems
                except StoreError as error:
                    problems.append(str(error))
            return None, problems

        return self._settled(read_newest, lambda found: not found[1])

    def verify(self) -> list[str]:
        """What is wrong with the checkpoints; empty if nothing is."""

        def read_all() -> list[str]:
            problems: list[str] = []
            for path in self._expected():
                try:
                    self._read(path)
                except StoreError as error:
                    problems.append(str(error))
            return problems

        return self._settled(read_all, lambda found: not found)

    def _expected(self) -> list[Path]:
        """The checkpoints that are there, or whose hash says that they should be."""
        # A hash is written before its checkpoint, so one that is newer than all checkpoints is no
        # sign of a loss.
        paths = self._paths()
        hashed = {path.with_suffix(".npz") for path in self.folder.glob("*.sha256")}
        # A removal takes the checkpoint first, so one that is older than all checkpoints is none
        # either.
        return sorted({*paths, *(path for path in hashed if paths and paths[0] < path < paths[-1])})

    def _settled(self, read_fn: Callable[[], _T], is_good: Callable[[_T], bool]) -> _T:
        """What `read_fn` gives, read again while it is bad and a writer has put others there."""
        for _ in range(RETRIES):
            before = self._paths()
            found = read_fn()
            if is_good(found) or before == self._paths():
                return found
        return read_fn()

    def _read(self, path: Path) -> Checkpoint:
        beside = self._hash_path(path)
        words = files.read_bytes(beside, limit=200).decode(errors="replace").split()
        digest, size = [*words, "", ""][:2]
        content = files.read_hashed(
            path, digest, int(size) if size.isdecimal() else None, beside.name
        )
        arrays = archives.unpack(path, content)
        try:
            meta = json.loads(arrays.pop(_META).tobytes())
            version = meta.get("version")
        except (KeyError, ValueError, AttributeError, RecursionError) as error:
            raise StoreError(f"{path} is no checkpoint: it has no {_META}") from error
        if version != VERSION:
            raise StoreError(files.other_version(path, version, VERSION))
        files.must_be_of_run(path, meta.get("run"), self.run)
        if meta.get("number", int(path.stem)) != int(path.stem):
            raise StoreError(
                f"{path} holds another checkpoint, number {meta['number']}; put the right one back"
            )
        return Checkpoint(arrays, meta)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.npz") if path.stem.isdecimal())

    @staticmethod
    def _hash_path(path: Path) -> Path:
        return path.with_suffix(".sha256")
