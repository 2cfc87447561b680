"""Records of rounds: append-only chunks of named arrays, and a manifest with the hash of each.

A chunk is an npz of arrays whose first axis is the round (or whatever a series counts). Several
series live side by side in a folder, each with its own chunks: `rounds` has an entry every round,
`scores` one now and then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tempernet.errors import StoreError
from tempernet.store import archives, files

MANIFEST = "manifest.json"
VERSION = 1
FULL = 4 * 10**6
"""Bytes from which on a chunk is left alone."""
TAIL = 256
"""Rows from which on a chunk joins the one before it, if that is not full."""
RETRIES = 100
"""How often a reader begins again because a writer was faster."""

_T = TypeVar("_T")


class Chunk(TypedDict):
    """What the manifest says of a chunk."""

    file: str
    series: str
    rows: int
    bytes: NotRequired[int]
    sha256: str


class Records:
    """The chunks in a folder, to read while another process writes, or to write.

    Rows are buffered in memory until `flush`, which makes them part of the manifest. Whoever only
    reads sees at each question what the manifest says by then; whoever has written is the one
    writer, and knows.

    Args:
        folder: where the chunks and the manifest are, or will be.
        run: id of the run that they belong to.
    """

    def __init__(self, folder: Path, run: str | None = None) -> None:
        self.folder, self.run = folder, run
        self._buffer: dict[str, list[dict[str, np.ndarray]]] = {}
        self._replaced: list[Path] = []
        self._writes = False
        self._chunks: list[Chunk] = []
        self._refresh()

    @property
    def buffered(self) -> int:
        """Rows that are not yet on disk."""
        return sum(len(rows) for rows in self._buffer.values())

    @property
    def series(self) -> list[str]:
        """Names of the series on disk."""
        self._refresh()
        return sorted({chunk["series"] for chunk in self._chunks})

    def length(self, series: str) -> int:
        """Rows of a series on disk."""
        self._refresh()
        return self._length(series)

    def _length(self, series: str) -> int:
        return sum(chunk["rows"] for chunk in self._chunks if chunk["series"] == series)

    def append(self, series: str, row: Mapping[str, ArrayLike]) -> None:
        """Add a copy of a row to a series: an array of the same name and shape in each row."""
        copied = {name: np.array(value) for name, value in row.items()}
        self._buffer.setdefault(series, []).append(copied)

    def flush(self) -> None:
        """Write what is buffered: first the chunks, then the manifest."""
        if not self._buffer:
            return
        self._become_writer()
        files.make_folder(self.folder)
        chunks = list(self._chunks)
        replaced = []
        for series, rows in self._buffer.items():
            start = sum(chunk["rows"] for chunk in chunks if chunk["series"] == series)
            new = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            of_series = [chunk for chunk in chunks if chunk["series"] == series]
            for old in _growing(of_series, len(rows)):
                start -= old["rows"]
                earlier = self._read_chunk(old)
                new = {name: np.concatenate([earlier[name], new[name]]) for name in earlier}
                chunks.remove(old)
                replaced.append(self.folder / old["file"])
            chunks.append(self._write_chunk(series, start, new))
        self._commit(chunks)
        self._buffer = {}
        self._remove(self._replaced)
        self._replaced = replaced

    def load(self, series: str, skip: int = 0) -> dict[str, np.ndarray]:
        """All rows of a series on disk from row `skip` on, stacked: name -> (rows, ...).

        Empty if there are none.
        """
        self._refresh()
        return self._settled(lambda: self._load(series, skip))

    def _load(self, series: str, skip: int) -> dict[str, np.ndarray]:
        parts, start = [], 0
        for chunk in self._chunks:
            if chunk["series"] != series:
                continue
            end = start + chunk["rows"]
            if end > skip:
                arrays, first = self._read_chunk(chunk), max(skip - start, 0)
                parts.append({name: array[first:] for name, array in arrays.items()})
            start = end
        if not parts:
            return {}
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def truncate(self, lengths: dict[str, int]) -> None:
        """Cut every series to this number of rows: what was written after a checkpoint is dropped.

        A chunk that is cut gets a new file, so that the manifest holds at every moment.
        """
        self._become_writer()
        for series, rows in lengths.items():
            if self._length(series) < rows:
                raise StoreError(
                    f"{self.folder} has lost records: {self._length(series)} rows of {series} "
                    f"are left of {rows}"
                )
        kept, start = [], dict.fromkeys((chunk["series"] for chunk in self._chunks), 0)
        for chunk in self._chunks:
            series = chunk["series"]
            rows = min(chunk["rows"], lengths.get(series, 0) - start[series])
            if rows == chunk["rows"]:
                kept.append(chunk)
            elif rows > 0:
                some = {name: array[:rows] for name, array in self._read_chunk(chunk).items()}
                kept.append(self._write_chunk(series, start[series], some))
            start[series] += chunk["rows"]
        if kept != self._chunks:
            self._commit(kept)
        # Also what a writer left that was killed before it could name it in the manifest.
        self._remove(list(self.folder.glob("*.npz*")))
        self._buffer, self._replaced = {}, []

    def verify(self) -> list[str]:
        """What is wrong with the chunks that the manifest names; empty if nothing is."""
        self._refresh()
        found: list[str] = []

        def read_all() -> None:
            found.clear()
            for chunk in self._chunks:
                try:
                    self._read_chunk(chunk)
                except StoreError as error:
                    found.append(str(error))
            if found:
                raise StoreError(found[0])

        with contextlib.suppress(StoreError):
            self._settled(read_all)
        return found

    def _refresh(self) -> None:
        """Read the manifest again, unless this is the writer."""
        if not self._writes:
            self._chunks = self._read_manifest() if (self.folder / MANIFEST).exists() else []

    def _become_writer(self) -> None:
        """Become the writer, to whom the manifest belongs from now on."""
        self._refresh()
        self._writes = True

    def _settled(self, read_fn: Callable[[], _T]) -> _T:
        """What `read_fn` gives, read again if it fails on chunks that a writer has replaced."""
        for _ in range(RETRIES):
            try:
                return read_fn()
            except StoreError:
                now = self._read_manifest()
                if now == self._chunks:
                    raise
                self._chunks = now
        return read_fn()

    def _write_chunk(self, series: str, start: int, arrays: dict[str, np.ndarray]) -> Chunk:
        """A chunk of the rows from `start` on, named by its first row and the one after them."""
        number = len(next(iter(arrays.values())))
        content = archives.pack(arrays)
        name = f"{series}-{start:08d}-{start + number:08d}.npz"
        files.write_atomic(self.folder / name, content)
        return {
            "file": name,
            "series": series,
            "rows": number,
            "bytes": len(content),
            "sha256": files.sha256(content),
        }

    def _remove(self, unwanted: list[Path]) -> None:
        """Remove files, but for those that the manifest names: a name may have been taken again."""
        named = {chunk["file"] for chunk in self._chunks}
        for file in [file for file in unwanted if file.name not in named]:
            with contextlib.suppress(OSError):
                file.unlink()

    def _commit(self, chunks: list[Chunk]) -> None:
        files.write_json(
            self.folder / MANIFEST, {"version": VERSION, "run": self.run, "chunks": chunks}
        )
        self._chunks = chunks

    def _read_chunk(self, chunk: Chunk) -> dict[str, np.ndarray]:
        path = self.folder / chunk["file"]
        content = files.read_hashed(path, chunk["sha256"], chunk.get("bytes"), MANIFEST)
        arrays = archives.unpack(path, content)
        if not arrays or any(array.shape[:1] != (chunk["rows"],) for array in arrays.values()):
            raise StoreError(
                f"{path} is damaged: it has not the {chunk['rows']} rows that {MANIFEST} says"
            )
        return arrays

    def _read_manifest(self) -> list[Chunk]:
        path = self.folder / MANIFEST
        manifest = files.read_json(path)
        if manifest.get("version") != VERSION:
            raise StoreError(files.other_version(path, manifest.get("version"), VERSION))
        files.must_be_of_run(path, manifest.get("run"), self.run)
        chunks = manifest.get("chunks")
        if not isinstance(chunks, list) or not all(_is_chunk(chunk) for chunk in chunks):
            raise StoreError(f"{path} is damaged: it does not list chunks")
        return chunks


def _growing(chunks: list[Chunk], rows: int) -> list[Chunk]:
    """The last chunks of a series that a file of so many rows more replaces, the last one first.

    So there are few files, however often a run is flushed and however long it is, and little is
    written again. The old ones go with the next flush: a reader may be at them.
    """
    growing: list[Chunk] = []
    for chunk in reversed(chunks[-2:]):
        is_tail = not growing and chunk["rows"] < TAIL
        if chunk.get("bytes", FULL) >= FULL or not (is_tail or rows >= TAIL):
            break
        growing.append(chunk)
        rows += chunk["rows"]
        if not is_tail:
            break
    return growing


def _is_chunk(chunk: object) -> TypeGuard[Chunk]:
    kinds = {"file": str, "series": str, "rows": int, "bytes": int, "sha256": str}
    if not isinstance(chunk, dict) or not set(kinds) - {"bytes"} <= set(chunk) <= set(kinds):
        return False
    good = all(type(value) is kinds[key] for key, value in chunk.items())
    # A row has at least a byte.
    most = chunk.get("bytes", files.MAX_TEXT)
    return good and 0 < chunk["rows"] <= most and Path(chunk["file"]).name == chunk["file"]
