"""A run folder, opened to write by one process at a time or to read by any number."""

from __future__ import annotations

import contextlib
import functools
import re
import secrets
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

from tempernet import config
from tempernet.errors import ConfigError, StoreError
from tempernet.store import files
from tempernet.store.checkpoints import Checkpoint, Checkpoints
from tempernet.store.files import JsonObject
from tempernet.store.log import Log
from tempernet.store.records import Records

CONFIG, PROVENANCE, STATUS, LOG, LOCK = (
    "config.toml",
    "provenance.json",
    "status.json",
    "log.txt",
    "lock",
)
RESULTS, RESULTS_NC, FIGURES = "results.json", "results.nc", "figures"
QUADRATIC = "quadratic.json"
STUDY = "study.json"
LOCK_TRIES = 10
RUN, REVISION = "run", "revision"
"""What a file says of the run it belongs to, and how often it was written."""

S = TypeVar("S", bound=config.RunSettings)


def is_run(path: Path) -> bool:
    """Whether a run has begun in this folder."""
    return (path / CONFIG).is_file() and (path / PROVENANCE).is_file()


def must_be_empty(path: Path) -> None:
    """Refuse a folder that holds more than what a run leaves that ended before it had begun."""
    left = {LOCK, PROVENANCE, *(name + files.TEMPORARY for name in (PROVENANCE, CONFIG, STUDY))}
    try:
        occupied = path.exists() and any(entry.name not in left for entry in path.iterdir())
    except OSError as error:
        raise StoreError(
            f"cannot use the folder {path}: {error.strerror}; choose another with --out"
        ) from error
    if occupied:
        raise StoreError(f"the folder {path} is not empty; choose another with --out, or empty it")


class RunFolder:
    """Paths and parts of a run folder.

    `create` and `lock` are for the writer; opening one to read changes nothing.

    Every file carries the id of the run, which is drawn once and written into provenance.json; one
    that carries another is refused. What is written again when a run goes on, settings and
    provenance, also has a revision, and a checkpoint holds those of its time: an older one that was
    put back is seen.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        self._run: tuple[str | None] | None = None
        self._revisions: dict[str, int] = {}

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new folder, or an empty one that is there already."""
        must_be_empty(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {path}: {error.strerror}; choose another with --out"
            ) from error
        folder = cls(path)
        folder.lock()
        return folder

    @classmethod
    def open(cls, path: Path, *kinds: str) -> RunFolder:
        """An existing run to read, which must be of one of the kinds if any are named."""
        if not path.is_dir():
            raise StoreError(f"there is no run at {path}: no such folder")
        if not is_run(path):
            raise StoreError(f"{path} is no run folder: it has no {CONFIG} with a {PROVENANCE}")
        folder = cls(path)
        if kinds:
            folder._must_be_of(kinds)
        return folder

    def lock(self) -> None:
        """Take the lock: from here on this process is the only writer.

        The kernel drops the lock with the process, so a dead one leaves none behind.
        """
        import fcntl

        try:
            lock = (self.path / LOCK).open("a+")
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}") from error
        for left in reversed(range(LOCK_TRIES)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                # A reader may be looking whether there is a writer, which takes it a moment.
                if not left:
                    lock.close()
                    complaint = (
                        f"another process is writing to {self.path}; wait for it or stop it first"
                    )
                    raise StoreError(complaint) from error
                time.sleep(0.05)
            except OSError as error:
                lock.close()
                raise StoreError(f"cannot lock {self.path}: {error.strerror}") from error
        self._lock = lock
        self._forget_parts()

    @property
    def is_being_written(self) -> bool:
        """Whether a process has the lock."""
        import fcntl

        try:
            with (self.path / LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def unlock(self) -> None:
        """Give the lock back, so that others may write."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            self._forget_parts()

    def _forget_parts(self) -> None:
        """What was known of the parts is read anew: another process may write, or have written."""
        for part in ("records", "weights", "checkpoints", "fit", "log"):
            self.__dict__.pop(part, None)

    @property
    def run(self) -> str | None:
        """The id of the run, drawn if the run is not there yet; None if it is older than ids."""
        if self._run is None:
            path = self.path / PROVENANCE
            self._run = (files.read_json(path).get(RUN) if path.exists() else secrets.token_hex(8),)
        return self._run[0]

    @functools.cached_property
    def records(self) -> Records:
        """What the rounds recorded."""
        return Records(self.path / "rounds", self.run)

    @functools.cached_property
    def weights(self) -> Records:
        """Thinned samples of the weights."""
        return Records(self.path / "weights", self.run)

    @functools.cached_property
    def checkpoints(self) -> Checkpoints:
        """The last complete states."""
        return Checkpoints(self.path / "checkpoints", self.run, self._revisions)

    def outdated(self, checkpoint: Checkpoint) -> list[str]:
        """Complaints about files that are older than they were when this checkpoint was written."""
        return [
            f"{self.path / name} is from an earlier state of the run, revision {found} where the "
            f"newest checkpoint was written beside {revision}"
            for name, revision in checkpoint.meta.get("revisions", {}).items()
            if (found := self._revision(name)) < revision
        ]

    def _revision(self, name: str) -> int:
        """Revision of settings or provenance as they are on disk, 0 if they have none."""
        path = self.path / name
        if not path.exists():
            return 0
        if name == CONFIG:
            return _stamp(files.read_text(path))[1]
        return int(files.read_json(path).get(REVISION, 0))

    @functools.cached_property
    def fit(self) -> Checkpoints:
        """The quadratic of a bridge, and how far its fit is."""
        return Checkpoints(self.path / "fit", self.run, self._revisions)

    @property
    def kind(self) -> str:
        """The kind of run that the settings are for."""
        return str(self._config().get("kind", ""))

    def settings(self, *models: type[S]) -> S:
        """The run's settings, which must be of one of these kinds."""
        given = self._config()
        for model in models:
            if model.kind_name() == given.get("kind"):
                try:
                    return config.settings_from(given, model)
                except ConfigError as error:
                    raise self._unusable(error) from error
        raise self._other_kind(str(given.get("kind", "")), [model.kind_name() for model in models])

    def _config(self) -> dict[str, object]:
        """The tables of `config.toml`, which must be of this run."""
        path = self.path / CONFIG
        text = files.read_text(path)
        files.must_be_of_run(path, _stamp(text)[0], self.run)
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> StoreError:
        return StoreError(f"{self.path / CONFIG} cannot be used: {error}")

    def _must_be_of(self, kinds: Sequence[str]) -> None:
        if (kind := self.kind) not in kinds:
            raise self._other_kind(kind, kinds)

    def _other_kind(self, kind: str, wanted: Sequence[str]) -> StoreError:
        return StoreError(
            f"{self.path} is a run of {kind}, not of {' or '.join(wanted)}; "
            "give the folder of such a run"
        )

    def write_settings(self, settings: config.RunSettings) -> None:
        """Write the resolved settings as `config.toml`."""
        revision = self._revision(CONFIG) + 1
        files.write_text(
            self.path / CONFIG, f"{config.to_toml(settings)}# run {self.run} revision {revision}\n"
        )
        self._revisions[CONFIG] = revision

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        """Write a JSON file atomically, with the id of the run."""
        content: JsonObject = {**value, RUN: self.run}
        if name == PROVENANCE:
            content[REVISION] = self._revision(PROVENANCE) + 1
        files.write_json(self.path / name, content)
        if name == PROVENANCE:
            self._revisions[name] = content[REVISION]

    def read_json(self, name: str) -> JsonObject:
        """A JSON object of the folder, which must be of this run."""
        value = files.read_json(self.path / name)
        files.must_be_of_run(self.path / name, value.get(RUN), self.run)
        return value

    @functools.cached_property
    def log(self) -> Log:
        """The log: what happened, in words."""
        return Log(self.path / LOG, self.run)

    def size(self) -> int:
        """Bytes of all files in the folder."""
        total = 0
        for file in self.path.rglob("*"):
            # A writer may rename or remove a file while they are counted.
            with contextlib.suppress(OSError):
                total += file.stat().st_size if file.is_file() else 0
        return total


def _stamp(text: str) -> tuple[str | None, int]:
    """The run's id and the revision that the settings carry in a comment, if they do."""
    found = re.search(r"^# run (None|[0-9a-f]+) revision (\d+)$", text, re.MULTILINE)
    if not found:
        return None, 0
    return None if found[1] == "None" else found[1], int(found[2])
