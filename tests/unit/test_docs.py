"""The documents: links lead somewhere, lines are short, tables of numbers are the code's."""

import functools
import importlib
import itertools
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tempernet.cli.app import EXIT_CODES
from tempernet.cli.command import make_app
from tempernet.diagnostics import verdict

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
SETTINGS_SCRIPT = REPOSITORY / "scripts" / "settings_page.py"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN_BY_PROGRAMS = {DOCS / "benchmark.md", DOCS / "reproduction" / "report.md"}
WRAPPED = [
    page
    for page in PAGES
    if page not in WRITTEN_BY_PROGRAMS
    and page.name != "CHANGELOG.md"
    and page.parent != DOCS / "reproduction"
]
WIDTH, ARCHITECTURE_LINES = 100, 200

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]*(?:\([^()\s]*\))?)\)")
NUMBER = re.compile(r"\| `([A-Z_]+)` \| ([\d.]+) \|")
NUMBER_ELSEWHERE = re.compile(r"\| `(tempernet[\w.]*)\.([A-Z_]+)` \| ([\d.]+) \|")


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines outside of code: neither fenced nor indented by four."""
    fenced, before = False, ""
    indented = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            starts = line.startswith("    ") and (indented or not before.strip())
            indented = starts or (indented and not line.strip())
            if not starts:
                yield number, line
        before = line


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for _, line in prose(text):
        heading = re.match(r"#{1,6} +(.*)", line)
        if heading is None:
            continue
        plain = LINK.sub(lambda link: link[2], heading[1]).lower()
        plain = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeated = sum(anchor == plain or anchor.startswith(f"{plain}-") for anchor in found)
        found.add(f"{plain}-{repeated}" if plain in found else plain)
    return found


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a page, with the text it has, that lead nowhere."""
    # A link may be broken over two lines.
    joined = "\n".join(line for _, line in prose(text))
    joined = re.sub(r"`[^`\n]*`", lambda code: "`" + "x" * (len(code[0]) - 2) + "`", joined)
    broken = []
    for _, _, target in LINK.findall(joined):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if file != page and not file.exists():
            broken.append(target)
        elif anchor:
            there = text if file == page else file.read_text(encoding="utf-8")
            if file.suffix != ".md" or anchor not in anchors(there):
                broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("# A title\n\n[up](#a-title) and [down](#nothing)", ["#nothing"]),
        ("## D_50: the `E = 0` of it (2026)\n\n[x](#d_50-the-e--0-of-it-2026)", []),
        ("![figure](nowhere.png)", ["nowhere.png"]),
        ("[guide](docs/README.md#documentation), [guide](docs/README.md#nothing)",
         ["docs/README.md#nothing"]),
        ("[a\nlink](nowhere.md)", ["nowhere.md"]),
        ("text\n\n    [code](nowhere.md)\n\n```\n[code](nowhere.md)\n```\n", []),
        ("[site](https://example.org/a_(b))", []),
    ],
)  # fmt: skip
def test_broken_links_are_seen(text: str, broken: list[str]) -> None:
    assert broken_links(REPOSITORY / "page.md", text) == broken


@pytest.mark.parametrize("page", WRAPPED, ids=name_of)
def test_lines_are_short(page: Path) -> None:
    long = [
        number
        for number, line in prose(page.read_text(encoding="utf-8"))
        if len(line) > WIDTH and not line.lstrip().startswith(("|", "!["))
    ]
    assert long == []


def test_every_page_is_reached_from_the_index() -> None:
    reached = {DOCS / "README.md"}
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        for _, _, target in LINK.findall(page.read_text(encoding="utf-8")):
            found = (page.parent / target.partition("#")[0]).resolve()
            if found.suffix == ".md" and found.is_file() and found not in reached:
                reached.add(found)
                waiting.append(found)
    assert [name_of(page) for page in DOCS.rglob("*.md") if page not in reached] == []


def test_every_figure_is_shown_somewhere() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for image, _, target in LINK.findall(page.read_text(encoding="utf-8"))
        if image
    }
    assert [name_of(file) for file in DOCS.rglob("*.png") if file not in shown] == []


def test_architecture_is_short() -> None:
    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ARCHITECTURE_LINES


def test_architecture_names_every_room_in_order() -> None:
    from test_architecture import ROOMS

    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Rooms")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)/?` \|", table, re.MULTILINE)
    assert named == list(ROOMS)


def commands_in(text: str) -> list[list[str]]:
    """Commands of tempernet in indented code and in backticks, cut into words."""
    joined = text.replace("\\\n", " ")
    lines = re.findall(r"^    (tempernet .*)$", joined, re.MULTILINE)
    lines += re.findall(r"`(tempernet [a-z][^`\n]*)`", joined)
    return [shlex.split(line, comments=True) for line in lines]


def unknown_words(words: list[str]) -> list[str]:
    """The command, the options and the settings of a line that there are not."""
    options = options_of_commands().get(words[1])
    if options is None:
        return [words[1]]
    unknown = []
    for word, after in itertools.zip_longest(words[2:], words[3:]):
        if word.startswith("-") and word.partition("=")[0] not in {*options, "--debug"}:
            unknown.append(word)
        if word == "--set" and after.partition("=")[0] not in settings_of_all_kinds():
            unknown.append(after)
    return unknown


@functools.cache
def options_of_commands() -> dict[str, set[str]]:
    group = typer.main.get_group(make_app())
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()
    }


@functools.cache
def settings_of_all_kinds() -> set[str]:
    found = set()
    for model in runpy.run_path(str(SETTINGS_SCRIPT))["KINDS"].values():
        for table, values in model().model_dump().items():
            found |= {f"{table}.{name}" for name in values} if isinstance(values, dict) else {table}
    return found


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of
)
def test_commands_and_their_options_exist(page: Path) -> None:
    commands = commands_in(page.read_text(encoding="utf-8"))
    assert [word for words in commands for word in unknown_words(words)] == []


def test_unknown_commands_are_seen() -> None:
    text = "`tempernet swep`\n\n    tempernet sweep a \\\n        --set ladder.nun=3 --otu x  # y\n"
    commands = commands_in(text)
    assert [unknown_words(words) for words in commands] == [["ladder.nun=3", "--otu"], ["swep"]]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_in_the_pages_is_python(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        compile(code, name_of(page), "exec")


def test_settings_page_is_what_the_settings_are() -> None:
    script = runpy.run_path(str(SETTINGS_SCRIPT))
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    assert page == script["page"](), "run: python scripts/settings_page.py --write"


def test_thresholds_of_the_verdict_are_those_of_the_code() -> None:
    page = (DOCS / "guide" / "verdict.md").read_text(encoding="utf-8")
    told = {name: float(value) for name, value in NUMBER.findall(page)}
    constants = {
        name: float(value)
        for name, value in vars(verdict).items()
        if name.isupper() and isinstance(value, int | float)
    }
    assert told == constants
    elsewhere = NUMBER_ELSEWHERE.findall(page)
    assert elsewhere
    for module, name, value in elsewhere:
        assert float(value) == getattr(importlib.import_module(module), name), f"{module}.{name}"


def test_every_observable_is_on_the_page_of_results() -> None:
    declared = pytest.importorskip("tempernet.tempering.observables")
    page = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    assert [one.name for one in declared.OBSERVABLES if one.name not in named] == []


def test_exit_codes_are_those_of_the_command() -> None:
    page = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    told = {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)}
    assert told == {0, 1, *EXIT_CODES.values()}
    for kind, code in EXIT_CODES.items():
        named = re.search(rf"^\| {code} \|.*`tn\.(\w+)`", page, re.MULTILINE)
        assert named is None or named[1] == kind.__name__
