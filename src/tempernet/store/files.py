"""Files that are whole or not there: written under a temporary name, flushed to disk, renamed, the folder flushed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tempernet.errors import StoreError

TEMPORARY = ".part"
HASH = "sha256"

before_write: Callable[[Path, str], None] | None = None
"""For tests only: called as (path, point) before each step of a write, to fail or to kill the process there."""


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`, replacing what is there in one step; a failure leaves the old content or all the new."""
    part = path.with_name(path.name + TEMPORARY)
    try:
        _at(path, "open")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            _at(path, "flush")
            os.fsync(file.fileno())
        _at(path, "rename")
        part.replace(path)
        _at(path, "folder")
        _flush_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise StoreError(_complaint(path, len(content), error)) from error


def make_folder(path: Path) -> None:
    """A folder and those above it, if they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {path}: {_reason(error)}") from error


def sha256(content: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path) -> bytes:
    """The content of a file of a run folder."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {_reason(error)}") from error


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Atomically, as indented JSON with its own hash; numbers that are not finite become null."""
    content = plain(value)
    signed = {**content, HASH: _json_hash(content)}
    write_atomic(path, (json.dumps(signed, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that `write_json` wrote, without its hash."""
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise StoreError(f"{path} is damaged: it holds a {type(value).__name__}, not an object")
    if value.pop(HASH, None) != _json_hash(value):
        raise StoreError(
            f"{path} is damaged or was changed: its content does not have the hash that it was written with"
        )
    return value


def write_text(path: Path, text: str) -> None:
    """Atomically, with its hash as a last line that begins with `#`."""
    write_atomic(path, f"{text}# {HASH} {sha256(text.encode())}\n".encode())


def read_text(path: Path) -> str:
    """A text that `write_text` wrote, without its hash."""
    content = read_bytes(path)
    text, mark, digest = content.rpartition(f"# {HASH} ".encode())
    if not mark or sha256(text).encode() != digest.strip():
        raise StoreError(
            f"{path} is damaged or was changed: its content does not have the hash that it was written with"
        )
    return text.decode()


def _json_hash(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode())


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as an npz archive, uncompressed."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    return buffer.getvalue()


_DAMAGE = (TypeError, ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What reading an archive raises when it is none, in part or wholly."""


def unpack(path: Path, content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an npz archive; pickled objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _DAMAGE as error:
        raise StoreError(f"{path} is damaged: it is not an archive of arrays ({error})") from error


def plain(value: Any) -> Any:
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


def _complaint(path: Path, size: int, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full: {path} needs {size / 1e6:.2f} MB; free some space and continue the run, "
            f"the last checkpoint is whole"
        )
    return f"cannot write {path} ({size / 1e6:.2f} MB): {_reason(error)}; check the folder and its permissions"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _at(path: Path, point: str) -> None:
    if before_write is not None:
        before_write(path, point)


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
