"""A run folder, opened to write by one process at a time or to read by any number."""

from __future__ import annotations

import contextlib
import time
import tomllib
from pathlib import Path
from typing import IO, Any

from tempernet import config
from tempernet.errors import ConfigError, StoreError
from tempernet.store import files
from tempernet.store.checkpoints import Checkpoints
from tempernet.store.records import Records

CONFIG, PROVENANCE, STATUS, LOG, LOCK = "config.toml", "provenance.json", "status.json", "log.txt", "lock"
RESULTS, RESULTS_NC, FIGURES = "results.json", "results.nc", "figures"
QUADRATIC = "quadratic.json"


def is_run(path: Path) -> bool:
    """Whether a run has begun in this folder."""
    return (path / CONFIG).is_file() and (path / PROVENANCE).is_file()


def must_be_empty(path: Path) -> None:
    """Refuse a folder that is not empty; a lock alone is what a run leaves that failed before it began."""
    try:
        occupied = path.exists() and any(entry.name != LOCK for entry in path.iterdir())
    except OSError as error:
        raise StoreError(f"cannot use the folder {path}: {error.strerror}; choose another with --out") from error
    if occupied:
        raise StoreError(f"the folder {path} is not empty; choose another with --out, or empty it")


class RunFolder:
    """Paths and parts of a run folder. `create` and `lock` are for the writer; opening one to read changes nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new folder, or an empty one that is there already."""
        must_be_empty(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {path}: {error.strerror}; choose another with --out") from error
        folder = cls(path)
        folder.lock()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run, to read; a clear error if it is none."""
        if not path.is_dir():
            raise StoreError(f"there is no run at {path}: no such folder")
        if not is_run(path):
            raise StoreError(f"{path} is no run folder: it has no {CONFIG} with a {PROVENANCE}")
        return cls(path)

    def lock(self) -> None:
        """Be the only writer. The kernel drops the lock with the process, so a dead one leaves none behind."""
        import fcntl

        try:
            lock = (self.path / LOCK).open("a+")
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            if isinstance(error, BlockingIOError):
                raise StoreError(f"another process is writing to {self.path}; wait for it or stop it first") from error
            raise StoreError(f"cannot lock {self.path}: {error.strerror}") from error
        self._lock = lock

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

    @property
    def fit(self) -> Checkpoints:
        """The quadratic of a bridge, and how far its fit is."""
        return Checkpoints(self.path / "fit")

    @property
    def settings(self) -> Any:
        """The run's settings, of the kind that its task has."""
        text = files.read_text(self.path / CONFIG)
        try:
            return config.settings_from(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, ConfigError) as error:
            raise StoreError(f"{self.path / CONFIG} cannot be used: {error}") from error

    def write_settings(self, settings: config.TaskSettings) -> None:
        """The resolved settings, as `config.toml`."""
        files.write_text(self.path / CONFIG, config.to_toml(settings))

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
        total = 0
        for file in self.path.rglob("*"):
            # A writer may rename or remove a file while they are counted.
            with contextlib.suppress(OSError):
                total += file.stat().st_size if file.is_file() else 0
        return total
