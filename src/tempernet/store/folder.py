"""A run folder, opened to write by one process at a time or to read by any number."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Any

from tempernet.errors import StoreError
from tempernet.store import files
from tempernet.store.checkpoints import Checkpoints
from tempernet.store.records import Records

CONFIG, PROVENANCE, STATUS, LOG, LOCK = "config.toml", "provenance.json", "status.json", "log.txt", "lock"
RESULTS, RESULTS_NC, FIGURES = "results.json", "results.nc", "figures"


class RunFolder:
    """Paths and parts of a run folder. `create` and `lock` are for the writer; opening one to read changes nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new folder, or an empty one that is there already."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            occupied = any(path.iterdir())
        except OSError as error:
            raise StoreError(f"cannot make the folder {path}: {error.strerror}; choose another with --out") from error
        if occupied:
            raise StoreError(f"the folder {path} is not empty; choose another with --out, or empty it")
        folder = cls(path)
        folder.lock()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run, to read; a clear error if it is none."""
        if not path.is_dir():
            raise StoreError(f"there is no run at {path}: no such folder")
        if not (path / CONFIG).is_file() or not (path / PROVENANCE).is_file():
            raise StoreError(f"{path} is no run folder: it has no {CONFIG} with a {PROVENANCE}")
        return cls(path)

    def lock(self) -> None:
        """Be the only writer. The kernel drops the lock with the process, so a dead one leaves none behind."""
        import fcntl

        try:
            self._lock = (self.path / LOCK).open("a+")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"another process is writing to {self.path}; wait for it or stop it first") from error
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}") from error

    def unlock(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def records(self) -> Records:
        """What the rounds recorded."""
        return Records(self.path / "rounds")

    @property
    def weights(self) -> Records:
        """Thinned samples of the weights."""
        return Records(self.path / "weights")

    @property
    def checkpoints(self) -> Checkpoints:
        """The last complete states."""
        return Checkpoints(self.path / "checkpoints")

    def write_text(self, name: str, text: str) -> None:
        """Atomically."""
        files.write_atomic(self.path / name, text.encode())

    def write_json(self, name: str, value: Any) -> None:
        """Atomically."""
        files.write_json(self.path / name, value)

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder."""
        return files.read_json(self.path / name)

    def log(self, line: str) -> None:
        """Append a line with the time to log.txt."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            with (self.path / LOG).open("a", encoding="utf-8") as file:
                file.write(f"{stamp} {line}\n")
        except OSError as error:
            raise StoreError(f"cannot write {self.path / LOG}: {error.strerror}") from error

    def size(self) -> int:
        """Bytes of all files."""
        return sum(os.path.getsize(Path(root) / name) for root, _, names in os.walk(self.path) for name in names)
