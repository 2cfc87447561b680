"""Numbers with errors, and times, in words."""

from __future__ import annotations

import math

import pytest

from tempernet.report.formatting import duration, with_error


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (2.0234, 0.07, "2.02(7)"),
        (2.0234, 0.014, "2.023(14)"),
        (2.0234, 0.0196, "2.02(2)"),
        (0.00012, 0.00003, "0.00012(3)"),
        (123.4, 25.0, "123(25)"),
        (123.4, 3.0, "123(3)"),
        (123.4, 1.2, "123.4(12)"),
        (-0.5, 0.1, "-0.50(10)"),
        (1.5, 0.0, "1.5"),
        (3.776e11, 1.47e11, "3.8e+11 ± 1e+11"),
        (1.2e-29, 4e-29, "1.2e-29 ± 4e-29"),
        (1.5, math.nan, "1.5(?)"),
        (math.nan, 0.1, "-"),
        (math.inf, 0.1, "-"),
    ],
)
def test_with_error(mean: float, error: float, text: str) -> None:
    assert with_error(mean, error) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (3600.0, "60 min"),
        (5400.0, "1 h 30 min"),
        (math.nan, "?"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
