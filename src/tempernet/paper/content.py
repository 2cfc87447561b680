"""What the page of a study says: its text, its tables and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tempernet.paper import sentences
from tempernet.paper.claims import Claim, Result, Runs
from tempernet.paper.figures import Drawn
from tempernet.report.figures import notes
from tempernet.results.evidence import EvidenceResults
from tempernet.results.optimise import OptimiseResults

TITLE = "Bayesian Neural Networks at Finite Temperature, reproduced"
CLAIM_HEADINGS = (
    "Sec.",
    "claim",
    "the paper says",
    "its protocol gives here",
    "the equilibrated sampler gives",
    "verdict",
)
RUN_HEADINGS = ("step", "result")
ADVICE_HEADINGS = ("run", "claims", "what to do")
PAPER = 'R. J. N. Baldock, N. Marzari, "Bayesian Neural Networks at Finite Temperature" (2019)'
RULES = (
    "A claim about the posterior is judged by the equilibrated sampler, one about an algorithm by "
    "that algorithm; only by runs of the paper's networks and data, and only at temperatures that "
    "have equilibrated. Two numbers differ if they do by three errors or more; a best temperature, "
    "a median and a range decide by the interval printed with them. Numbers in brackets are "
    "standard errors in units of the last digit. max |w| sqrt(k) is of all weights; the paper "
    "writes it without the modulus."
)
TINY = (
    "This scale has tiny networks and a few images: it shows that every step works, and decides "
    "little."
)


class Table(NamedTuple):
    """A table of the page: its heading, and as many cells in every row as there are headings."""

    heading: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    lead: str = ""
    """What stands above the table, if anything."""


class Page(NamedTuple):
    """What the page says."""

    title: str
    lead: list[str]
    claims: Table
    """The last cell of a row is its verdict, which may be followed by a reason."""
    advice: Table
    figures: list[Drawn]
    runs: Table


def make_page(
    scale: str,
    runs: Runs,
    claims: Sequence[Claim],
    states: Sequence[tuple[str, str]],
    drawn: list[Drawn],
) -> Page:
    """The page of a study.

    Args:
        scale: the study's.
        runs: results by the name of their step.
        claims: what became of the paper's claims.
        states: all steps in order, each with what became of it if it has no results.
        drawn: the figures.
    """
    told = [(name, headline(runs[name]) if name in runs else state) for name, state in states]
    made = f"{PAPER}, at the scale {scale}: {len(runs)} of {len(states)} runs are finished."
    lead = [made, sentences.counted(claims), RULES]
    if scale == "smoke":
        lead.append(TINY)
    rows = [claim_row(claim) for claim in claims]
    return Page(
        TITLE,
        lead,
        Table("Claims", CLAIM_HEADINGS, rows),
        advice(runs, claims),
        drawn,
        Table("Runs", RUN_HEADINGS, list(told)),
    )


def claim_row(claim: Claim) -> tuple[str, ...]:
    """A row of the table of claims."""
    statement = claim.statement
    return (
        statement.section,
        sentences.name(statement),
        sentences.printed(statement),
        sentences.told(statement, claim.papers),
        sentences.told(statement, claim.ours),
        sentences.verdict(claim),
    )


def advice(runs: Runs, claims: Sequence[Claim]) -> Table:
    """What to do about the runs that leave claims undecided, a row for each run."""
    waiting: dict[str, int] = {}
    for claim in claims:
        if claim.why is not None and claim.why.run in runs:
            waiting[claim.why.run] = waiting.get(claim.why.run, 0) + 1
    rows = []
    for name, number in waiting.items():
        run = runs[name]
        if not isinstance(run, OptimiseResults) and not run.verdict.good:
            rows.append((name, str(number), "; ".join(notes.advice(run))))
    lead = (
        "Go on with a run by `tempernet resume` with its folder, or begin a study of a larger "
        "--scale. A claim that takes several runs counts for the first that falls short."
    )
    return Table("What would decide more", ADVICE_HEADINGS, rows, lead if rows else "")


def headline(run: Result) -> str:
    """What a run found, in a line."""
    if isinstance(run, OptimiseResults):
        return f"{notes.named(run)}: {run.headline}"
    parts = [f"{notes.named(run)}: {notes.verdict(run)}"]
    if isinstance(run, EvidenceResults):
        parts += notes.disagreements(run)
    return "; ".join(parts)
