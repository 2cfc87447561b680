"""What a kind of run is: its settings, its task, and what is made of its results.

The command, the status, the study and the store ask a `Kind`, and never which kind they have.
What is heavy to import stands in `Parts`, which are made when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tempernet.config import RunSettings
from tempernet.data import Dataset

if TYPE_CHECKING:
    from tempernet.report.figures.files import Figures
    from tempernet.results.predict import Members
    from tempernet.results.run import Results
    from tempernet.store import RunFolder
    from tempernet.tasks.base import Task, Watch
    from tempernet.tasks.plan import Plan
    from tempernet.tasks.problem import Problem

S = TypeVar("S", bound=RunSettings)
R = TypeVar("R", bound="Results")


@dataclass(frozen=True)
class Option:
    """An option of the kind's command that stands for one of its settings."""

    setting: str
    """Such as `data.n_train`; the option is named by the last part."""
    type: type[int] | type[str] | type[Path]
    help: str

    @property
    def name(self) -> str:
        """The last part of the setting."""
        return self.setting.rpartition(".")[2]

    @property
    def table(self) -> str:
        """The table of the setting."""
        return self.setting.rpartition(".")[0]


@dataclass(frozen=True)
class Export(Generic[R]):
    """A file for other programs."""

    file: str
    """Its name in the run folder."""
    content_fn: Callable[[R], bytes]
    at_end: bool = False
    """Whether a run that finishes writes it."""


class Beside(NamedTuple):
    """What figures may show besides the runs themselves."""

    data_fn: Callable[[], Dataset | None]
    """The data of the run, read when they are needed; None if they are not there any more."""
    optimised: Sequence[Path] = ()
    """Folders of optimise runs."""


def _nothing_to_refuse(settings: RunSettings, problem: Problem) -> None:
    """Refuse nothing: any data will do."""


@dataclass(frozen=True)
class Parts(Generic[S, R]):
    """How a run is carried out, and what is made of it."""

    task: Callable[[S, Problem, RunFolder, Watch], Task[S]]
    load: Callable[[Path], R]
    """The results of a run folder."""
    headline: Callable[[R], str]
    """What came out, in a line."""
    document: Callable[[R], Mapping[str, object]]
    """What `results.json` and `--json` say."""
    show: Callable[[R, list[Path]], None]
    """The same for people, on standard output, and which files were written."""
    figures: Callable[[R, Beside], Figures]
    exports: Mapping[str, Export[R]]
    """Format -> file. The first is the default."""
    plan: Callable[[S], Plan]
    glance: Callable[[Path], R] | None = None
    """A faster `load` that is enough for the headline."""
    check: Callable[[S, Problem], None] = _nothing_to_refuse
    """Refuse, before there is a folder, what the settings and the data do not allow."""
    together: Callable[[Sequence[R], Beside], Figures] | None = None
    """Figures of several runs, if they can be drawn together."""
    members: Members[S] | None = None
    """Which of the weights that are kept predict, if any."""


@dataclass(frozen=True)
class Kind(Generic[S, R]):
    """A kind of run."""

    settings: type[S]
    summary: str
    """What its command does, in a sentence."""
    parts_fn: Callable[[], Parts[S, R]]
    options: tuple[Option, ...] = ()
    first_preset: str | None = None
    """The preset of a run without any other settings."""
    needed_files: Callable[[S], Sequence[str]] = field(default=lambda settings: ())
    """Files that its folder must hold once there is a checkpoint."""
    draws_optimised: bool = False
    """Whether its figures show optimise runs beside it."""

    @property
    def name(self) -> str:
        """The name of the command, and the value of `kind` in the settings."""
        return self.settings.kind_name()

    @property
    def parts(self) -> Parts[S, R]:
        """How a run is carried out, and what is made of it."""
        return self.parts_fn()


# The settings and results of a kind that is looked up by its name are known to that kind alone.
AnyKind = Kind[Any, Any]
