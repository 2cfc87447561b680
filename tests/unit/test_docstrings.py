"""Docstrings: each begins with one whole line, which says what the thing is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tempernet"
COLUMNS = 100
ENDS = (".", ":", "?")


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Strings that stand alone: of modules, classes and functions, and after a name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            if isinstance(child.value.value, str):
                yield child.value
        else:
            yield from docstrings(child)


def faults(source: str) -> list[str]:
    """What is wrong with the first lines of docstrings, with the line of the file."""
    found = []
    lines = source.splitlines()
    for docstring in docstrings(ast.parse(source)):
        text = str(docstring.value)
        first, _, rest = text.partition("\n")
        where = f"line {docstring.lineno}: {first}"
        if not first.endswith(ENDS):
            found.append(f"{where}: ends in the middle of a sentence")
        if len(lines[docstring.lineno - 1]) > COLUMNS:
            found.append(f"{where}: more than {COLUMNS} columns")
        if rest and not rest.startswith("\n") and rest.strip():
            found.append(f"{where}: no empty line after it")
        if first.startswith("Of "):
            found.append(f"{where}: does not say what it is")
    return found


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_docstrings_begin_with_one_whole_line(file: Path) -> None:
    assert faults(file.read_text()) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""A sentence that goes\non."""', "middle"),
        ('def f():\n    """No end"""', "middle"),
        (f'x = 1\n"""{"a" * COLUMNS}."""', "columns"),
        ('class A:\n    x: int\n    """Of each rung."""', "what it is"),
        ('"""One.\nTwo."""', "empty line"),
    ],
)
def test_faults_are_seen(source: str, fault: str) -> None:
    assert any(fault in found for found in faults(source))


def test_good_docstrings_have_no_fault() -> None:
    source = '"""One.\n\nTwo.\n"""\nclass A:\n    """What it is."""\n    x: int\n    """Which?"""\n'
    assert faults(source) == []
