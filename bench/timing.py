"""Time rounds of a sampler, and how much memory the process has taken."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Sampler(NamedTuple):
    """`advance()` runs one round to its end and returns the mean acceptance; `details` tells how it
    is set up.
    """

    advance: Callable[[], float]
    details: dict[str, Any]


def time_rounds(sampler: Sampler, rounds: int) -> dict[str, Any]:
    """Seconds of each of some rounds after one that compiles and one to warm up, and the mean
    acceptance.
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
