"""Optimisation: Alg. 3, FIRE, and the best of many starts."""

from tempernet.optimise.minimise import Minimiser, Minimum
from tempernet.optimise.pool import Pool, Spread, enough, spread, success_rate, widest

__all__ = [
    "Minimiser",
    "Minimum",
    "Pool",
    "Spread",
    "enough",
    "spread",
    "success_rate",
    "widest",
]
