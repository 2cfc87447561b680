"""Simulated annealing: replicas that cool side by side, and the rule that stops them.

From Python, call `tempernet.anneal`.
"""

from tempernet.annealing.annealer import LEAST_REPLICAS, Annealer
from tempernet.annealing.position import Position
from tempernet.annealing.result import AnnealingResult
from tempernet.annealing.schedule import Schedule
from tempernet.annealing.stopping import Course, follow, least, rise
from tempernet.annealing.validation import ScoreFn, held_out_score_fn, make_score_fn

__all__ = [
    "LEAST_REPLICAS",
    "Annealer",
    "AnnealingResult",
    "Course",
    "Position",
    "Schedule",
    "ScoreFn",
    "follow",
    "held_out_score_fn",
    "least",
    "make_score_fn",
    "rise",
]
