"""Numbers and times, formatted for reading."""

from __future__ import annotations

import math

import numpy as np

MOST_DIGITS = 8
"""After the point; what is smaller is written with its power of ten."""


def duration(seconds: float) -> str:
    """`1 h 05 min`, `3 min`, `12 s`."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def with_error(mean: float, error: float) -> str:
    """`2.02(7)`: the error, to one digit or two, in units of the last digit shown."""
    if not np.isfinite(mean):
        return "-"
    if not np.isfinite(error):
        return f"{mean:.4g}(?)"
    if error == 0:
        return f"{mean:.4g}"
    exponent = math.floor(math.log10(error))
    # 1.x errors keep a second digit: 0.014 as (14), 0.034 as (3).
    digits = -exponent + (1 if error / 10.0**exponent < 1.95 else 0)
    if max(abs(mean), error) >= 1e6 or digits > MOST_DIGITS:
        return f"{mean:.2g} ± {error:.1g}"
    if digits <= 0:
        return f"{mean:.0f}({error:.0f})"
    return f"{mean:.{digits}f}({round(error * 10**digits)})"
