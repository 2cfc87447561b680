"""The paper's claims, each held against runs: pure functions from loaded results to rows of a
table.

A claim about the posterior is judged by the equilibrated sampler, one about an algorithm by that
algorithm. It is decided only by runs of the paper's own network and data, on rungs that their
verdict calls equilibrated, and by differences of at least three errors; else it is undecided, with
what it would take.
"""

from tempernet.paper.claims import evidences, ladder, minima, temperatures
from tempernet.paper.claims.claim import FAILS, HOLDS, UNDECIDED, VERDICTS, Claim, Runs

__all__ = ["FAILS", "HOLDS", "UNDECIDED", "VERDICTS", "Claim", "Runs", "judge_all"]


def judge_all(runs: Runs) -> list[Claim]:
    """Every claim, in the order of the paper."""
    rooms = (minima, temperatures, ladder, evidences)
    return [claim for room in rooms for claim in room.claims(runs)]
