"""The log of a run: lines with the time, each bound to the ones before it, so that damage shows.

A line ends with its number and a digest of the run's id, the digest of the line before, and itself:
`2026-01-01 00:00:00 finished [7 3f9a2c41d0b7]`. How many lines there must be at least is for a
checkpoint to say.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import NamedTuple

from tempernet.errors import StoreError
from tempernet.store import files

_LINE = re.compile(rb"(?P<body>.*) \[(?P<number>\d{1,12}) (?P<digest>[0-9a-f]{12})\]")


class _End(NamedTuple):
    """The last line: its number, and its digest."""

    number: int
    digest: str


class Log:
    """The log at a path, of the run with an id. One process at a time appends."""

    def __init__(self, path: Path, run: str | None) -> None:
        self.path, self.run = path, run
        self._end: _End | None = None

    @property
    def lines(self) -> int:
        """The number of the last line."""
        if self._end is None:
            self._end = self._read()[0]
        return self._end.number

    def append(self, text: str) -> None:
        """Append a line, with the time."""
        number = self.lines + 1
        previous = self._end.digest if self._end else ""
        body = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(text.splitlines())}".encode()
        end = _End(number, _digest(self.run, previous, number, body))
        files.append(self.path, body + f" [{end.number} {end.digest}]\n".encode())
        self._end = end

    def problems(self, at_least: int = 0) -> list[str]:
        """What is wrong with a log that should have so many lines; empty if nothing is."""
        while True:
            before = self._content()
            end, problem = self._read(before)
            # A writer may have been at it.
            if not problem or before == self._content():
                break
        if not problem and end.number < at_least:
            is_there = before is not None
            lost = f"it has {end.number} lines of {at_least}" if is_there else "it is not there"
            problem = f"{self.path} has lost lines: {lost}"
        return [problem] if problem else []

    def begin_anew(self, after: int) -> Path:
        """Set a damaged log aside; the next line has the number that follows `after`.

        Returns the path where the damaged one is.
        """
        aside = self.path.with_stem(f"{self.path.stem}.damaged")
        try:
            self.path.replace(aside)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreError(f"cannot set {self.path} aside: {error.strerror}") from error
        self._end = _End(after, "")
        return aside

    def _content(self) -> bytes | None:
        return files.read_bytes(self.path) if self.path.exists() else None

    def _read(self, content: bytes | None = None) -> tuple[_End, str]:
        """The last line that is whole, and what is wrong with the one after it, if there is one."""
        content = self._content() if content is None else content
        end: _End | None = None
        *lines, torn = (content or b"").split(b"\n")
        for place, line in enumerate(lines, 1):
            found = _LINE.fullmatch(line)
            if not found or (next_end := self._follows(end, found)) is None:
                problem = f"{self.path} is damaged, or another run's, from line {place} on"
                return end or _End(0, ""), problem
            end = next_end
        problem = f"{self.path} is damaged: its last line is torn" if torn else ""
        return end or _End(0, ""), problem

    def _follows(self, end: _End | None, line: re.Match[bytes]) -> _End | None:
        """This line as the new end, if it is the one that follows; a first one has any number."""
        number = int(line["number"])
        previous = end.digest if end else ""
        digest = _digest(self.run, previous, number, line["body"])
        in_turn = end is None or number == end.number + 1
        good = in_turn and line["digest"].decode() == digest
        return _End(number, digest) if good else None


def _digest(run: str | None, previous: str, number: int, body: bytes) -> str:
    return files.sha256(f"{run} {previous} {number} ".encode() + body)[:12]
