"""Checkpoints: the last complete states of a run, each an npz with its SHA-256 beside it, the newest three kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tempernet.errors import StoreError
from tempernet.store import files

KEPT = 3
VERSION = 1
_META = "meta.json"


class Checkpoint(NamedTuple):
    """Named arrays, and a few plain facts about them."""

    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]


class Checkpoints:
    """The checkpoints in a folder, numbered upwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Path:
        """Write one more; the oldest beyond three go."""
        files.make_folder(self.folder)
        existing = self._paths()
        number = int(existing[-1].stem) + 1 if existing else 0
        text = json.dumps({"version": VERSION, **meta}).encode()
        content = files.pack({**arrays, _META: np.frombuffer(text, np.uint8)})
        path = self.folder / f"{number:08d}.npz"
        # The hash first: a checkpoint without one is not taken for whole.
        files.write_atomic(self._hash_path(path), f"{files.sha256(content)}\n".encode())
        files.write_atomic(path, content)
        for old in existing[: max(0, len(existing) + 1 - KEPT)]:
            for file in (old, self._hash_path(old)):
                with contextlib.suppress(OSError):
                    file.unlink()
        return path

    def latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, and what was wrong with newer ones; (None, ...) if there is none."""
        problems: list[str] = []
        for path in reversed(self._paths()):
            try:
                return self._read(path), problems
            except StoreError as error:
                problems.append(str(error))
        return None, problems

    def verify(self) -> list[str]:
        """What is wrong with any of them."""
        problems: list[str] = []
        # A hash is written before its checkpoint, so one that is newer than all checkpoints is no sign of a loss.
        paths = self._paths()
        hashed = {path.with_suffix(".npz") for path in self.folder.glob("*.sha256")}
        for path in sorted({*paths, *(path for path in hashed if paths and path < paths[-1])}):
            try:
                self._read(path)
            except StoreError as error:
                problems.append(str(error))
        return problems

    def _read(self, path: Path) -> Checkpoint:
        content = files.read_bytes(path)
        hashed = files.read_bytes(self._hash_path(path)).decode(errors="replace").strip()
        if files.sha256(content) != hashed:
            raise StoreError(f"{path} is damaged: its hash is not the one in {self._hash_path(path).name}")
        arrays = files.unpack(path, content)
        try:
            meta = json.loads(arrays.pop(_META).tobytes())
            version = meta.get("version")
        except (KeyError, ValueError, AttributeError) as error:
            raise StoreError(f"{path} is no checkpoint: it has no {_META}") from error
        if version != VERSION:
            raise StoreError(f"{path} has version {version!r}; this tempernet reads {VERSION}")
        return Checkpoint(arrays, meta)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.npz") if path.stem.isdigit())

    @staticmethod
    def _hash_path(path: Path) -> Path:
        return path.with_suffix(".sha256")
