"""The house: rooms import only from the rooms below them, and the map from the paper leads
somewhere.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "tempernet"
PAPER_MAP = REPOSITORY / "docs" / "paper-map.md"

ROOMS = (
    "errors",
    "data",
    "model",
    "paths",
    "kernels",
    "devices",
    "diagnostics",
    "optimise",
    "tempering",
    "annealing",
    "evidence",
    "config",
    "store",
    "tasks",
    "results",
    "report",
    "kinds",
    "runs",
    "paper",
    "api",
    "cli",
)
"""From the ground up: a room may import only from itself and from earlier ones."""


def room_of(file: Path) -> str:
    """The room a file is part of: the module itself, or the folder."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def source_files() -> list[Path]:
    return sorted(file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "__init__.py")


def imported_rooms(source: str, package: str = "tempernet") -> Iterator[str]:
    """Rooms that a module of `package` imports, anywhere in its text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            module = ".".join([*parents, *([node.module] if node.module else [])])
            names = (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "tempernet"
                else [module]
            )
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "tempernet":
                yield parts[1] if len(parts) > 1 else "__init__"


def upward(room: str, source: str, package: str = "tempernet") -> list[str]:
    """Imports that a room may not have."""
    below = ROOMS[: ROOMS.index(room) + 1]
    return [name for name in imported_rooms(source, package) if name not in below]


def test_every_module_has_its_place_in_the_order_of_rooms() -> None:
    assert {room_of(file) for file in source_files()} == set(ROOMS)


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_rooms_import_only_downwards(file: Path) -> None:
    package = ".".join(["tempernet", *file.relative_to(PACKAGE).parts[:-1]])
    assert upward(room_of(file), file.read_text(), package) == []


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("hmc", "from tempernet.tempering.engine import Engine", ["engine"]),
        ("hmc", "def f():\n    import tempernet.devices.mesh", ["mesh"]),
        ("hmc", "from tempernet import tuning as rules", ["tuning"]),
        ("hmc", "from .rounds import Record", ["rounds"]),
        ("hmc", "from . import paths, sampling", ["sampling"]),
        ("hmc", "import tempernet", ["__init__"]),
        ("hmc", "from tempernet.paths.path import Path\nimport jax.numpy as jnp", []),
        (
            "data",
            "from tempernet.data.idx import read_idx\nfrom tempernet.errors import DataError",
            [],
        ),
    ],
)
def test_an_upward_import_is_seen(room: str, source: str, found: list[str]) -> None:
    assert upward(room, source) == found


def test_an_upward_import_from_a_folder_is_seen() -> None:
    assert upward("data", "from ..networks import MLP", "tempernet.data") == ["networks"]
    assert (
        upward(
            "data", "from .idx import read_idx\nfrom ..errors import DataError", "tempernet.data"
        )
        == []
    )


def links(text: str) -> tuple[list[str], list[str]]:
    """Backticked names of the package, and the tests mentioned, in a page."""
    names = re.findall(r"`(tempernet(?:\.\w+)+)(?:\([^`]*\))?`", text)
    tests = re.findall(r"tests/[\w/]+\.py(?:::\w+)*", text)
    return names, tests


def resolve(name: str) -> object:
    """The object a dotted name stands for: the longest importable module, then attributes."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = _attribute(found, part)
        return found
    raise ModuleNotFoundError(name)


def _attribute(owner: object, name: str) -> object:
    """An attribute, or a field of a dataclass that has no default and so is none of the class."""
    fields = getattr(owner, "__dataclass_fields__", {})
    return fields[name] if name in fields and not hasattr(owner, name) else getattr(owner, name)


def exists(test: str) -> bool:
    """Whether `tests/...py::name` is a file with a function or class of that name."""
    path, *names = test.split("::")
    file = REPOSITORY / path
    if not file.is_file():
        return False
    scope: ast.AST = ast.parse(file.read_text())
    for name in names:
        defined = [
            node
            for node in ast.iter_child_nodes(scope)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]
        if not defined:
            return False
        scope = defined[0]
    return True


def read_paper_map() -> str:
    if not PAPER_MAP.is_file():
        pytest.skip("docs/paper-map.md is not written yet")
    return PAPER_MAP.read_text()


def test_every_name_in_the_paper_map_resolves() -> None:
    names, _ = links(read_paper_map())
    assert names
    broken = []
    for name in names:
        try:
            resolve(name)
        except (AttributeError, ModuleNotFoundError):
            broken.append(name)
    assert broken == []


def test_every_test_in_the_paper_map_exists() -> None:
    _, tests = links(read_paper_map())
    assert tests
    assert [test for test in tests if not exists(test)] == []


def test_links_are_read_and_broken_ones_are_seen() -> None:
    page = (
        "| Alg. 1 | `tempernet.kernels.hmc.HMC.step` | `tests/unit/test_hmc.py` |\n"
        "| Eq. 9 | `tempernet.model.target.nothing`, `tempernet.nowhere.at_all` | "
        "`tests/unit/test_hmc.py::test_nothing`, tests/unit/test_nowhere.py |"
    )
    names, tests = links(page)
    assert names == [
        "tempernet.kernels.hmc.HMC.step",
        "tempernet.model.target.nothing",
        "tempernet.nowhere.at_all",
    ]
    assert callable(resolve(names[0]))
    assert resolve("tempernet.kernels.hmc.HMC.potential")
    for broken in names[1:]:
        with pytest.raises(AttributeError):
            resolve(broken)
    assert [exists(test) for test in tests] == [True, False, False]
    assert exists("tests/unit/test_architecture.py::test_rooms_import_only_downwards")
