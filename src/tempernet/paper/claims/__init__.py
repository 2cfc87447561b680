"""The paper's claims, judged by runs: functions from loaded results to claims as data.

A claim about the posterior is judged by the equilibrated sampler, one about an algorithm by that
algorithm. It is decided only by runs of the paper's own network and data, at temperatures that
their verdict calls equilibrated, and by differences of at least three errors; else it is
undecided, with the reason.
"""

from tempernet.paper.claims import evidences, ladder, levels, minima, temperatures
from tempernet.paper.claims.claim import (
    FAILS,
    HOLDS,
    UNDECIDED,
    VERDICTS,
    Cause,
    Claim,
    Finding,
    Kind,
    Statement,
    Why,
)
from tempernet.paper.claims.judging import Result, Runs

__all__ = [
    "FAILS",
    "HOLDS",
    "UNDECIDED",
    "VERDICTS",
    "Cause",
    "Claim",
    "Finding",
    "Kind",
    "Result",
    "Runs",
    "Statement",
    "Why",
    "judge_all",
]


def judge_all(runs: Runs) -> list[Claim]:
    """Every claim, by the sections of the paper: minima, losses, the ladder, evidences.

    Args:
        runs: results by the name of their step; claims whose runs are missing are undecided.
    """
    rooms = (minima, temperatures, levels, ladder, evidences)
    return [claim for room in rooms for claim in room.claims(runs)]
