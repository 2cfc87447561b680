"""Time rounds of a sampler, and how much memory the process has taken."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Sampler(NamedTuple):
    """A sampler that is ready to run."""

    advance: Callable[[], float]
    """Runs one round to its end; returns the mean acceptance."""
    details: dict[str, Any]
    """How it is set up."""


def time_rounds(sampler: Sampler, rounds: int) -> dict[str, Any]:
    """Seconds of each of some rounds, and the mean acceptance.

    Before them go one that compiles and one to warm up.
    """
    seconds, acceptance = [], []
    for _ in range(2 + rounds):
        began = time.perf_counter()
        acceptance.append(sampler.advance())
        seconds.append(time.perf_counter() - began)
    return {
        "first_rounds_seconds": sum(seconds[:2]),
        "round_seconds": seconds[2:],
        "acceptance": sum(acceptance) / len(acceptance),
    }


def peak_bytes() -> int:
    """The largest resident memory of this process so far.

    Linux counts in KiB, and from what the parent held when it started this process; so the parent
    stays small.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
