"""Files that are whole or not there: written under a temporary name, flushed, renamed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from tempernet.errors import StoreError

TEMPORARY = ".part"
HASH = "sha256"
MAX_TEXT = 64 * 2**20
"""Bytes of the largest JSON or TOML file that is read; those of a run are far smaller."""
FULL_DISK = errno.ENOSPC, errno.EDQUOT
FOLDER_SIZE = 4096
"""Bytes that a new folder takes."""

JsonValue = Any
"""A value of JSON's types."""
JsonObject = dict[str, JsonValue]
"""What a JSON file of a run folder holds."""


def before_step(path: Path, step: str) -> None:
    """Called before each step of a write of a file; does nothing.

    The steps are "open", "flush", "rename" and "folder", or "append". Tests put a function in its
    place that fails, or kills the process, at a step.
    """


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`, replacing what is there in one step.

    A failure leaves the old content or all the new.
    """
    part = path.with_name(path.name + TEMPORARY)
    try:
        before_step(path, "open")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            before_step(path, "flush")
            os.fsync(file.fileno())
        before_step(path, "rename")
        part.replace(path)
        before_step(path, "folder")
        _flush_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise StoreError(complaint(path, len(content), error)) from error


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file, which is made if need be; a failure leaves what was there."""
    try:
        before_step(path, "append")
        with path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(before)
                raise
    except OSError as error:
        raise StoreError(complaint(path, len(content), error)) from error


def make_folder(path: Path) -> None:
    """Make a folder inside a run folder, if it is not there.

    A run folder that has vanished is not made again.
    """
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise StoreError(complaint(path, FOLDER_SIZE, error)) from error
        raise StoreError(
            f"cannot make the folder {path}: {_reason(error)}; check the folder and its permissions"
        ) from error


def sha256(content: bytes) -> str:
    """SHA-256 of the content, in hex."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path, limit: int = MAX_TEXT) -> bytes:
    """The content of a file of a run folder that has at most `limit` bytes."""
    with _reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise StoreError(
                f"{path} is damaged: it has {size} bytes, such a file has at most {limit}"
            )
        return file.read(limit)


def read_hashed(path: Path, digest: str, size: int | None, where: str) -> bytes:
    """The content of a file with this SHA-256 and size, looked at before it is taken into memory.

    Args:
        path: the file.
        digest: its SHA-256, in hex.
        size: its bytes; None if nothing says how many.
        where: the name of the file that says so, for complaints.
    """
    with _reading(path) as file:
        if size is not None and os.fstat(file.fileno()).st_size != size:
            raise StoreError(f"{path} is damaged: it has not the {size} bytes that {where} says")
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise StoreError(f"{path} is damaged: its hash is not the one in {where}")
        file.seek(0)
        return file.read()


def must_have_hash(path: Path, digest: str, where: str) -> None:
    """Refuse a file that has not the SHA-256 that `where` says."""
    with _reading(path) as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise StoreError(
                f"{path} is damaged or was changed: its hash is not the one in {where}"
            )


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot remove {path}: {_reason(error)}; check the folder and its permissions"
        ) from error


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    """A file opened to read, with what goes wrong as a StoreError."""
    try:
        with path.open("rb") as file:
            yield file
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {_reason(error)}") from error


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write JSON with its own hash, atomically; numbers that are not finite become null."""
    content = plain(value)
    signed = {**content, HASH: _json_hash(content)}
    write_atomic(path, (json.dumps(signed, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> JsonObject:
    """A JSON object that `write_json` wrote, without its hash."""
    try:
        value = json.loads(read_bytes(path))
        if not isinstance(value, dict):
            raise StoreError(f"{path} is damaged: it holds a {type(value).__name__}, not an object")
        if value.pop(HASH, None) != _json_hash(value):
            raise StoreError(
                f"{path} is damaged or was changed: its content does not have the hash that it was "
                f"written with"
            )
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: it is not JSON ({error})") from error
    return value


def write_text(path: Path, text: str) -> None:
    """Write a text atomically, with its hash as a last line that begins with `#`."""
    write_atomic(path, f"{text}# {HASH} {sha256(text.encode())}\n".encode())


def read_text(path: Path) -> str:
    """A text that `write_text` wrote, without its hash."""
    content = read_bytes(path)
    text, mark, digest = content.rpartition(f"# {HASH} ".encode())
    if not mark or sha256(text).encode() != digest.strip():
        raise StoreError(
            f"{path} is damaged or was changed: its content does not have the hash that it was "
            f"written with"
        )
    return text.decode()


def _json_hash(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode())


def must_be_of_run(path: Path, found: object, run: str | None) -> None:
    """Refuse a file that carries another run's id than the folder's provenance."""
    if found != run:
        raise StoreError(
            f"{path} belongs to another run: it carries the id {found}, and the provenance.json "
            f"beside it {run}; put back the one that was replaced"
        )


def other_version(path: Path, found: object, read: int) -> str:
    """The message about a file of a version that this program does not read."""
    return (
        f"{path} has version {found!r}; this tempernet reads {read}: use the tempernet that wrote "
        f"it, which provenance.json names"
    )


def plain(value: object) -> JsonValue:
    """JSON's types: arrays as lists, numpy's numbers as Python's, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def complaint(path: Path, size: int, error: OSError) -> str:
    """What went wrong with a write of `size` bytes, and what to do."""
    needed = f"{math.ceil(size / 1e4) / 100:.2f} MB"
    if error.errno in FULL_DISK:
        return (
            f"the disk is full: {path} needs {needed}; free some space and continue the run, "
            f"the last checkpoint is whole"
        )
    if error.errno == errno.EFBIG:
        return (
            f"{path} needs {needed}, more than the limit on the size of a file (ulimit -f); raise "
            f"it and continue the run, the last checkpoint is whole"
        )
    return f"cannot write {path} ({needed}): {_reason(error)}; check the folder and its permissions"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
