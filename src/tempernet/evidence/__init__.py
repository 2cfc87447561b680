"""Evidence: estimators of log ratios along a path, and the quadratic that a bridge leads to."""

from tempernet.evidence.estimators import (
    ESTIMATORS,
    HEADLINE,
    Disagreement,
    LogRatio,
    disagreements,
    log_integrals,
    log_ratio,
)
from tempernet.evidence.quadratic import Quadratic
from tempernet.evidence.samples import PathSamples

__all__ = [
    "ESTIMATORS",
    "HEADLINE",
    "Disagreement",
    "LogRatio",
    "PathSamples",
    "Quadratic",
    "disagreements",
    "log_integrals",
    "log_ratio",
]
