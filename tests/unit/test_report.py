"""The page of a study, from results that never were."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import make_evidence, make_optimised, make_results

from tempernet.paper.claims import FAILS, HOLDS, UNDECIDED, VERDICTS, Result, judge_all
from tempernet.paper.content import advice
from tempernet.paper.page import write_page
from tempernet.paper.sentences import counted
from tempernet.paper.steps import steps_of

LADDER = np.geomspace(0.1, 10, 5)
NETWORKS = {"m1": "M1", "m3": "M3", "m3star": "M3star"}
FIGURES = {
    "fig1-images",
    "fig2-trajectory-default",
    "fig2-trajectory-paper",
    "fig3-loss-default",
    "fig3-loss-paper",
    "fig4-loss-default",
    "fig4-loss-paper",
    "heat-capacity-d50",
    "heat-capacity-d500",
    "heat-capacity-d5000",
    "swaps-default",
    "swaps-paper",
    "evidences-default",
    "evidences-paper",
}
STEPS = [step.name for step in steps_of("hour")]


def made(name: str) -> Result:
    """A result for a step of this name."""
    *stem, protocol = name.split("-")
    if stem[0] == "widths":
        return make_optimised(NETWORKS[stem[1]], 500, protocol)
    if stem[0] == "evidence":
        return make_evidence(
            NETWORKS[stem[1]], 19_000.0, 1.0, log_volume=20_000.0, protocol=protocol
        )
    n_train = int(stem[-1][1:])
    if stem[0] == "optimise":
        return make_optimised("M3", n_train, protocol)
    return make_results(
        LADDER, n_train=n_train, network=NETWORKS[stem[0]], protocol=protocol, path=Path(name)
    )


def write(
    folder: Path, runs: dict[str, Result], state: str = "not made"
) -> tuple[str, str, dict[str, Any]]:
    images = np.random.default_rng(0).random((70, 16, 16)), np.zeros(70, int)
    written = write_page(
        folder, "hour", runs, judge_all(runs), [(name, state) for name in STEPS], images
    )
    page, html, claims = (path.read_text() for path in written)
    return page, html, json.loads(claims)


class Reader(HTMLParser):
    """Tags that must be closed, and everything that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.refers: list[str] = []
        self.cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.refers += [value or "" for name, value in attrs if name in ("src", "href")]
        self.cells += tag == "td"
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("page")
    return folder, *write(folder, {name: made(name) for name in STEPS})


def test_the_page_has_every_figure_claim_and_run(
    whole: tuple[Path, str, str, dict[str, Any]],
) -> None:
    folder, page, _, claims = whole
    shown = re.findall(r"!\[[^]]*\]\((figures/[\w-]+\.png)\)", page)
    assert {Path(file).stem for file in shown} == FIGURES
    assert all((folder / file).is_file() for file in shown)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for claim in claims["claims"]:
        name = claim["claim"].replace("|", "\\|")
        assert any(name in row and f"**{claim['verdict']}**" in row for row in rows), claim
        assert claim["verdict"] in VERDICTS
    assert all(any(row.startswith(f"| {name} |") for row in rows) for name in STEPS)
    # Every row of a table has as many cells as its heading.
    assert {row.count(" | ") for row in rows} == {1, 5}


def test_advice_is_given_once_for_each_run(tmp_path: Path) -> None:
    runs: dict[str, Result] = {
        name: make_results(LADDER, n_train=n, path=Path(name), stuck=(0, 1))
        for n, name in ((50, "m3-d50-default"), (500, "m3-d500-default"))
    }
    claims = judge_all(runs)
    table = advice(runs, claims)
    assert [row[0] for row in table.rows] == list(runs)
    waiting = [claim.why.run for claim in claims if claim.why is not None]
    assert [int(row[1]) for row in table.rows] == [waiting.count(name) for name in runs]
    page, html, _ = write(tmp_path, runs)
    for name, _, what in table.rows:
        assert page.count(f"| {name} | ") == 2 and what in page
        assert f"<td>{name}</td>" in html
    assert "**undecided**: 2 of the 5 temperatures of m3-d50-default have not equilibrated" in page
    assert not advice({}, judge_all({})).rows


def test_every_run_of_the_page_is_named_with_its_protocol(
    whole: tuple[Path, str, str, dict[str, Any]],
) -> None:
    runs = whole[1].partition("## Runs")[2].splitlines()
    for name in STEPS:
        (row,) = (line for line in runs if line.startswith(f"| {name} |"))
        assert f"{name.rpartition('-')[2]} protocol" in row


def test_html_is_whole_and_needs_no_other_file(
    whole: tuple[Path, str, str, dict[str, Any]],
) -> None:
    _, _, html, claims = whole
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert len(reader.refers) == len(FIGURES)
    assert all(reference.startswith("data:image/png;base64,iVBOR") for reference in reader.refers)
    assert reader.cells == 6 * len(claims["claims"]) + 2 * len(STEPS)
    assert "@import" not in html and "url(" not in html and "<script" not in html


def test_verdicts_come_from_the_results(
    whole: tuple[Path, str, str, dict[str, Any]], tmp_path: Path
) -> None:
    _, page, _, claims = whole
    found = [claim["verdict"] for claim in claims["claims"]]
    assert counted(judge_all({name: made(name) for name in STEPS})) in page
    assert {HOLDS, FAILS, UNDECIDED} == set(found)
    page, _, claims = write(tmp_path, {})
    assert {claim["verdict"] for claim in claims["claims"]} == {UNDECIDED}
    assert len(claims["claims"]) == len(found)
    assert re.findall(r"figures/([\w-]+)\.png", page) == ["fig1-images"]


def test_a_step_that_failed_says_why_and_is_escaped(tmp_path: Path) -> None:
    page, html, _ = write(tmp_path, {}, state="E < 0 | nothing")
    assert "E < 0 \\| nothing" in page
    assert "E &lt; 0 | nothing" in html and "E < 0" not in html
