"""The house: what imports what, how long files are, and whether the map from the paper is right."""

import ast
import importlib
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
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
        ("kernels", "from tempernet.tempering.engine import Engine", ["tempering"]),
        ("kernels", "def f():\n    import tempernet.devices.mesh", ["devices"]),
        ("kernels", "from tempernet import tempering as rules", ["tempering"]),
        ("kernels", "from tempernet import paths, store", ["store"]),
        ("kernels", "import tempernet", ["__init__"]),
        ("kernels", "from tempernet.paths.path import Path\nimport jax.numpy as jnp", []),
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
    assert upward("data", "from ..model.mlp import MLP", "tempernet.data") == ["model"]
    assert (
        upward(
            "data", "from .idx import read_idx\nfrom ..errors import DataError", "tempernet.data"
        )
        == []
    )


LONGEST = 400
MEDIAN = 150
"""Lines of the longest file, and of the median one."""


def modules() -> dict[str, Path]:
    """Modules of the package by their dotted names."""
    named = {}
    for file in source_files():
        parts = ["tempernet", *file.relative_to(PACKAGE).with_suffix("").parts]
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return named


def runtime_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports of a module, those of its functions too, but not those for a type checker alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from runtime_imports(child)


def imported_modules(source: str, known: Iterable[str]) -> set[str]:
    """Which of the known modules a text imports, by absolute names."""
    known, found = set(known), set()
    for node in runtime_imports(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found & known


def cycle(imports: Mapping[str, set[str]]) -> list[str]:
    """Names that import each other in a circle, the first again at the end; empty if none do."""
    finished: set[str] = set()

    def search(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in finished:
            return []
        for other in sorted(imports[name]):
            if found := search(other, [*way, name]):
                return found
        finished.add(name)
        return []

    return next((found for name in sorted(imports) if (found := search(name, []))), [])


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    imports = {
        name: imported_modules(file.read_text(), known) - {name} for name, file in known.items()
    }
    assert cycle(imports) == []


def test_a_circle_is_seen() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}
    assert cycle(imports) == ["b", "d", "b"]
    assert cycle({**imports, "d": {"c"}}) == []
    source = "if TYPE_CHECKING:\n    from t.a import A\ndef f():\n    from t import b, no"
    assert imported_modules(source, ["t", "t.a", "t.b"]) == {"t", "t.b"}


def test_files_are_short() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in source_files()}
    assert [str(file) for file, length in lengths.items() if length > LONGEST] == []
    assert statistics.median(lengths.values()) < MEDIAN


@pytest.mark.parametrize("room", [room for room in ROOMS if (PACKAGE / room).is_dir()])
def test_a_room_says_what_it_is_in_a_sentence(room: str) -> None:
    said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    assert said
    sentence = said.splitlines()[0]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert ". " not in re.sub(r"(Alg|Eq|Fig|Sec)s?\. ", "", sentence)


def test_the_command_starts_without_what_only_figures_and_results_need() -> None:
    program = "import sys, tempernet.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"matplotlib", "xarray", "arviz_stats", "pymbar"} & set(done.stdout.split())


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
