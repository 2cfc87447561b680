"""The page of a study: what became of the paper's claims, its figures, and the runs behind them.

The same content as Markdown, with figures beside it, and as one HTML file that needs nothing else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tempernet.kinds import KINDS
from tempernet.paper.claims import VERDICTS, Claim, Runs
from tempernet.paper.figures import Drawn, Images, draw
from tempernet.store import files

MARKDOWN, HTML, CLAIMS, FIGURES = "report.md", "report.html", "claims.json", "figures"
TITLE = "Bayesian Neural Networks at Finite Temperature, reproduced"
HEADINGS = (
    "Sec.",
    "claim",
    "the paper says",
    "its protocol gives here",
    "the equilibrated sampler gives",
    "verdict",
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #ddd; font-size: 13px; }
th { border-bottom: 2px solid #888; }
td small { display: block; color: #555; }
.holds { color: #00664a; font-weight: 600; }
.does-not-hold { color: #a33c00; font-weight: 600; }
.undecided { color: #555; font-weight: 600; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; }
img { max-width: 100%; height: auto; }
"""


class Page(NamedTuple):
    """What the page says."""

    lead: list[str]
    claims: list[Claim]
    figures: list[Drawn]
    runs: list[tuple[str, str]]
    """Name of each step, and what became of it."""


def write_page(
    path: Path,
    scale: str,
    runs: Runs,
    claims: list[Claim],
    states: Sequence[tuple[str, str]],
    images: Images | None = None,
) -> list[Path]:
    """Draw the figures, and write report.md, report.html and claims.json into a folder.

    `states` are all steps in order, each with what became of it if it has no results.
    """
    told = [(name, headline(runs[name]) if name in runs else state) for name, state in states]
    page = Page(
        _lead(scale, claims, len(runs), len(told)), claims, draw(runs, path / FIGURES, images), told
    )
    files.write_json(
        path / CLAIMS, {"scale": scale, "claims": [claim._asdict() for claim in claims]}
    )
    files.write_atomic(path / MARKDOWN, markdown(page, path).encode())
    files.write_atomic(path / HTML, html(page).encode())
    return [path / name for name in (MARKDOWN, HTML, CLAIMS)]


def headline(run: Any) -> str:
    """What a run says of itself in a line."""
    return f"{run.title}: {KINDS[run.settings.kind].parts.headline(run)}"


def counted(claims: Sequence[Claim]) -> str:
    """`Of 34 claims 3 hold, 1 does not hold and 30 are undecided`."""
    held, failed, undecided = (
        sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS
    )
    return f"Of {len(claims)} claims, {held} hold, {failed} do not hold, and {undecided} are undecided at this scale."


def markdown(page: Page, folder: Path) -> str:
    """The page as Markdown, for a file in this folder."""
    lines = [
        f"# {TITLE}",
        "",
        *_paragraphs(page.lead),
        "## Claims",
        "",
        _row(HEADINGS),
        _row(["---"] * len(HEADINGS)),
    ]
    for claim in page.claims:
        verdict = f"**{claim.verdict}**" + (
            f"; it would take {claim.wanted}" if claim.wanted else ""
        )
        lines.append(_row([*claim[:5], verdict]))
    lines += ["", "## Figures", ""]
    for figure in page.figures:
        lines += [
            f"![{figure.caption}]({figure.png.relative_to(folder).as_posix()})",
            "",
            figure.caption,
            "",
        ]
    lines += [
        "## Runs",
        "",
        _row(["step", "result"]),
        _row(["---", "---"]),
        *(_row(run) for run in page.runs),
    ]
    return "\n".join(lines) + "\n"


def html(page: Page) -> str:
    """The page as one HTML file, its figures inside."""
    body = [
        f"<h1>{TITLE}</h1>",
        *(f"<p>{_text(line)}</p>" for line in page.lead),
        "<h2>Claims</h2>",
        _table(HEADINGS),
    ]
    for claim in page.claims:
        wanted = f"<small>it would take {_text(claim.wanted)}</small>" if claim.wanted else ""
        kind = claim.verdict.replace(" ", "-")
        cells = [_text(cell) for cell in claim[:5]] + [
            f'<span class="{kind}">{claim.verdict}</span>{wanted}'
        ]
        body.append(_cells(cells))
    body += ["</tbody></table>", "<h2>Figures</h2>"]
    for figure in page.figures:
        image = base64.b64encode(figure.png.read_bytes()).decode()
        caption = _text(figure.caption)
        body.append(
            f'<figure><figcaption>{caption}</figcaption><img src="data:image/png;base64,{image}" '
            f'alt="{escape(figure.caption)}"></figure>'
        )
    body += ["<h2>Runs</h2>", _table(("step", "result"))]
    body += [_cells([_text(cell) for cell in run]) for run in page.runs] + ["</tbody></table>"]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{TITLE}</title>'
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body>',
            *body,
            "</body></html>\n",
        ]
    )


def _lead(scale: str, claims: Sequence[Claim], made: int, steps: int) -> list[str]:
    lines = [
        f'R. J. N. Baldock, N. Marzari, "Bayesian Neural Networks at Finite Temperature" (2019), at the scale '
        f"{scale}: {made} of {steps} runs are finished.",
        counted(claims),
        "A claim about the posterior is judged by the equilibrated sampler, one about an algorithm by that algorithm; "
        "only by runs of the paper's networks and data, and only on temperatures that have equilibrated. Two numbers "
        "differ if they do by three errors or more; a best temperature, a median and a range decide by the interval "
        "printed with them. Numbers in brackets are standard errors in units of the last digit. max |w| sqrt(k) is of "
        "all weights; the paper writes it without the modulus.",
    ]
    if scale == "smoke":
        lines.append(
            "This scale has tiny networks and a few images: it shows that every step works, and decides little."
        )
    return lines


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(headings: Sequence[str]) -> str:
    return (
        "<table><thead><tr>"
        + "".join(f"<th>{escape(text)}</th>" for text in headings)
        + "</tr></thead><tbody>"
    )


def _cells(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
    """Escaped, with D_n and M3star as the paper prints them."""
    return re.sub(r"\bD_(\d+)", r"D<sub>\1</sub>", escape(text)).replace("M3star", "M3*")
