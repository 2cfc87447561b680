"""Types: no public signature of the package says `Any`, except by an alias that has a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tempernet"


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    starred = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    for argument in [*named, *starred]:
        if argument.annotation is not None:
            yield argument.annotation
    if node.returns is not None:
        yield node.returns


def says_any(annotation: ast.expr) -> bool:
    """Whether `Any` stands in it, quoted or not."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id == "Any":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "Any":
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                quoted = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                continue
            if says_any(quoted):
                return True
    return False


def signatures(body: list[ast.stmt], where: str = "") -> Iterator[tuple[str, ast.expr]]:
    """(name, annotation) of the public functions, methods and fields in a body."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_public(node.name):
            for annotation in annotations(node):
                yield f"{where}{node.name}", annotation
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from signatures(node.body, f"{where}{node.name}.")
        elif where and isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target)
            if is_public(name):
                yield f"{where}{name}", node.annotation


def that_say_any(source: str) -> list[str]:
    found = signatures(ast.parse(source).body)
    return sorted({name for name, annotation in found if says_any(annotation)})


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_public_signature_says_any(file: Path) -> None:
    assert that_say_any(file.read_text()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x: Any) -> int: ...", ["f"]),
        ("def f(x: int) -> dict[str, Any]: ...", ["f"]),
        ("def f(*, x: 'list[Any]'): ...", ["f"]),
        ("def f(*x: typing.Any, **y: int): ...", ["f"]),
        ("class A:\n    x: Any\n    def f(self, x: Any) -> None: ...", ["A.f", "A.x"]),
        ("class A:\n    def __init__(self, x: Any) -> None: ...", ["A.__init__"]),
        ("def _f(x: Any) -> int: ...", []),
        ("Weights = Any\ndef f(x: Weights) -> int:\n    y: Any = x\n    return y", []),
    ],
)
def test_any_is_seen(source: str, found: list[str]) -> None:
    assert that_say_any(source) == found
