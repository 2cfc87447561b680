"""Asking a run to stop: by a signal, or because its time is up.

The main thread may be inside JAX for minutes, where Python sees no signal. So a thread listens: it
notes the wish, which the run looks at whenever it waits for a round, and ends the process itself if
the run does not come to it. What is on disk is whole at every moment, so nothing but the work since
the last checkpoint is lost.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import threading
import time
from types import TracebackType

from tempernet.errors import ConfigError

EXIT_STOPPED = 6
GRACE_SECONDS = 8.0
"""How long a run may take to stop once it is asked to: a checkpoint is written in less."""
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Stopper:
    """A context in which a signal, or the end of a time limit, asks the run to stop.

    SIGINT and SIGTERM ask it to stop, as does the end of `max_seconds`; a second signal ends the
    process at once.

    Args:
        max_seconds: seconds until the run is asked to stop; None for no limit.
        advice: added to the message of a process that has to be ended.
    """

    def __init__(self, max_seconds: float | None = None, advice: str = "") -> None:
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self._advice = advice
        self._asked = False

    def __call__(self) -> bool:
        """Whether the run should stop."""
        return self._asked

    def __enter__(self) -> Stopper:
        """Begin to listen."""
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._previous = {
            n: signal.signal(n, lambda *_: None) for n in (signal.SIGINT, signal.SIGTERM)
        }
        self._previous_fd = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave signals as they were."""
        signal.set_wakeup_fd(self._previous_fd)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        os.write(self._writing, bytes([0]))
        self._thread.join()
        os.close(self._reading)
        os.close(self._writing)

    def _listen(self) -> None:
        giving_up = None
        while True:
            until = giving_up if giving_up is not None else self._deadline
            wait = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._reading], [], [], wait)
            number = os.read(self._reading, 1)[0] if ready else None
            if number == 0:
                return
            if number is not None and self._asked:
                os._exit(128 + number)
            if number is None and giving_up is not None:
                _say(
                    "tempernet: stopped in the middle of a step; the last checkpoint is whole"
                    + self._advice
                )
                os._exit(EXIT_STOPPED)
            self._asked = True
            giving_up = time.monotonic() + GRACE_SECONDS
            _say(
                "stopping: writing a checkpoint (a second signal ends it at once)"
                if ready
                else "time is up: stopping"
            )


def seconds(text: str) -> float:
    """`3h`, `90m`, `1h30m`, `45s` or a number of seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[smhd])", text)
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*(min|[smhd])", "", text).strip()
    if not parts:
        parts, rest = [(text, "s")], ""
    try:
        total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    except ValueError:
        total = 0.0
    if rest or not 0 < total < float("inf"):
        raise ConfigError(f"a time must be like 45s, 90m, 3h or 1h30m, got {text!r}")
    return total


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
