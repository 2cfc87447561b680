"""The page of a study as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tempernet.paper.content import Page, Table
from tempernet.paper.figures import Drawn


def render(page: Page, folder: Path) -> str:
    """The page as Markdown.

    Args:
        page: what it says.
        folder: where the file will be, from which figures are linked.
    """
    claims = page.claims._replace(rows=[_bold_verdict(row) for row in page.claims.rows])
    lines = [f"# {page.title}", "", *_paragraphs(page.lead), *_table(claims)]
    if page.advice.rows:
        lines += _table(page.advice)
    lines += ["## Figures", ""]
    for figure in page.figures:
        lines += _figure(figure, folder)
    lines += _table(page.runs)
    return "\n".join(lines).rstrip("\n") + "\n"


def _bold_verdict(row: tuple[str, ...]) -> tuple[str, ...]:
    verdict, colon, reason = row[-1].partition(": ")
    return (*row[:-1], f"**{verdict}**{colon}{reason}")


def _table(table: Table) -> list[str]:
    lead = _paragraphs([table.lead] if table.lead else [])
    rule = ["---"] * len(table.headings)
    rows = [_row(row) for row in (table.headings, rule, *table.rows)]
    return [f"## {table.heading}", "", *lead, *rows, ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _figure(figure: Drawn, folder: Path) -> list[str]:
    file = figure.png.relative_to(folder).as_posix()
    return [f"![{figure.caption}]({file})", "", figure.caption, ""]


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]
