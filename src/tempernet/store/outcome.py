"""What a finished run leaves: results.json, and the files that it lists with their hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tempernet.errors import StoreError
from tempernet.store import files
from tempernet.store.folder import RESULTS, RunFolder

AT_ROUND, FILES = "at_round", "files"
_AGAIN = "`tempernet resume` writes it again"


def write(
    path: Path, document: Mapping[str, object], write_fn: Callable[[], list[Path]] = list
) -> list[Path]:
    """Write results.json and the files beside it into a run folder; returns the files.

    Args:
        path: the folder.
        document: what results.json says.
        write_fn: writes the other files and tells which.

    results.json goes first and comes last: where it is, the others are whole and have the hashes
    that it lists.
    """
    folder = RunFolder(path)
    files.remove(path / RESULTS)
    others = write_fn()
    newest, _ = folder.checkpoints.latest()
    state = {AT_ROUND: newest.meta["round"] if newest else None, FILES: _hashes(path, others)}
    folder.write_json(RESULTS, {**document, **state})
    return [path / RESULTS, *others]


def note_rewritten(path: Path, written: list[Path]) -> None:
    """Put the hashes of files that were written again into results.json.

    If a process is writing to the folder, it will do so at its end.
    """
    folder = RunFolder(path)
    listed = [file for file in written if file.is_relative_to(path)]
    if not listed or not (path / RESULTS).exists():
        return
    try:
        folder.lock()
    except StoreError:
        return
    try:
        old = folder.read_json(RESULTS)
        folder.write_json(RESULTS, {**old, FILES: {**old.get(FILES, {}), **_hashes(path, listed)}})
    finally:
        folder.unlock()


def problems(path: Path, at_round: int | None, finished: bool) -> list[str]:
    """What is wrong with results.json and the files it lists; empty if nothing is.

    Args:
        path: the folder.
        at_round: the round of its newest checkpoint.
        finished: whether the run says that it has finished.
    """
    if not (path / RESULTS).exists():
        missing = f"{path / RESULTS} is not there, but the run has finished: {_AGAIN}"
        return [missing] if finished else []
    try:
        told = RunFolder(path).read_json(RESULTS)
    except StoreError as error:
        return [f"{error}: {_AGAIN}"]
    if not finished:
        # What an earlier end of the run left: it will be written again at the next.
        return []
    found = []
    if told.get(AT_ROUND) != at_round:
        found.append(
            f"{path / RESULTS} is from another state of the run, "
            f"round {told.get(AT_ROUND)} of {at_round}"
        )
    for name, digest in told.get(FILES, {}).items():
        try:
            files.must_have_hash(path / name, digest, RESULTS)
        except StoreError as error:
            found.append(str(error))
    return [f"{text}: {_AGAIN}" for text in found]


def _hashes(path: Path, written: list[Path]) -> dict[str, str]:
    return {file.relative_to(path).as_posix(): files.sha256(file.read_bytes()) for file in written}
