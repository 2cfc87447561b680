"""The page of a study in its folder: report.md, report.html and claims.json, with the figures.

Both pages have the same content: Markdown with figures beside it, and one HTML file that needs
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tempernet.paper import html, markdown, sentences
from tempernet.paper.claims import Claim, Runs
from tempernet.paper.content import make_page
from tempernet.paper.figures import Images, draw
from tempernet.store import files

MARKDOWN, HTML, CLAIMS, FIGURES = "report.md", "report.html", "claims.json", "figures"


def write_page(
    path: Path,
    scale: str,
    runs: Runs,
    claims: Sequence[Claim],
    states: Sequence[tuple[str, str]],
    images: Images | None = None,
) -> list[Path]:
    """Draw the figures, and write report.md, report.html and claims.json into a folder.

    Args:
        path: the folder.
        scale: the study's.
        runs: results by the name of their step.
        claims: what became of the paper's claims.
        states: all steps in order, each with what became of it if it has no results.
        images: training images (n, h, w) and labels (n,) for Fig. 1.
    """
    drawn = draw(runs, path / FIGURES, images)
    page = make_page(scale, runs, claims, states, drawn)
    said = [sentences.document(claim) for claim in claims]
    files.write_json(path / CLAIMS, files.plain({"scale": scale, "claims": said}))
    files.write_atomic(path / MARKDOWN, markdown.render(page, path).encode())
    files.write_atomic(path / HTML, html.render(page).encode())
    return [path / name for name in (MARKDOWN, HTML, CLAIMS)]
