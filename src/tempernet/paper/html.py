"""The page of a study as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape

from tempernet.paper.content import Page, Table
from tempernet.paper.figures import Drawn

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 76rem; }
body { margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { text-align: left; vertical-align: top; font-size: 13px; }
th, td { padding: .4rem .6rem; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; }
td small { display: block; color: #555; }
.holds { color: #00664a; font-weight: 600; }
.does-not-hold { color: #a33c00; font-weight: 600; }
.undecided { color: #555; font-weight: 600; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; }
img { max-width: 100%; height: auto; }
"""


def render(page: Page) -> str:
    """The page as one HTML file, its figures inside."""
    lead = [f"<p>{_text(line)}</p>" for line in page.lead]
    claims = [[*map(_text, row[:-1]), _verdict(row[-1])] for row in page.claims.rows]
    body = [f"<h1>{escape(page.title)}</h1>", *lead, *_table(page.claims, claims)]
    if page.advice.rows:
        body += _table(page.advice, _escaped(page.advice))
    body += ["<h2>Figures</h2>", *(_figure(figure) for figure in page.figures)]
    body += _table(page.runs, _escaped(page.runs))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escape(page.title)}</title><style>{STYLE}</style>"
    start = f'<!doctype html><html lang="en"><head>{head}</head><body>'
    return "\n".join([start, *body, "</body></html>\n"])


def _table(table: Table, rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose cells are HTML already."""
    headings = "".join(f"<th>{escape(text)}</th>" for text in table.headings)
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return [
        f"<h2>{escape(table.heading)}</h2>",
        *([f"<p>{_text(table.lead)}</p>"] if table.lead else []),
        f"<table><thead><tr>{headings}</tr></thead><tbody>",
        *(f"<tr>{row}</tr>" for row in cells),
        "</tbody></table>",
    ]


def _escaped(table: Table) -> list[list[str]]:
    return [[_text(cell) for cell in row] for row in table.rows]


def _verdict(text: str) -> str:
    """A verdict in its colour, with its reason below."""
    verdict, _, reason = text.partition(": ")
    small = f"<small>{_text(reason)}</small>" if reason else ""
    return f'<span class="{verdict.replace(" ", "-")}">{verdict}</span>{small}'


def _figure(figure: Drawn) -> str:
    image = base64.b64encode(figure.png.read_bytes()).decode()
    source = f'src="data:image/png;base64,{image}" alt="{escape(figure.caption)}"'
    return f"<figure><figcaption>{_text(figure.caption)}</figcaption><img {source}></figure>"


def _text(text: str) -> str:
    """Escaped, with D_n and M3star as the paper prints them, and words in backticks as code."""
    shown = re.sub(r"\bD_(\d+)", r"D<sub>\1</sub>", escape(text)).replace("M3star", "M3*")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
