"""The paper as a study: named steps, each a run in a folder of its own below the study's.

The study's file says its scale and its steps. Each step is a run like any other: it stops, goes on
and can be made longer by itself, and a finished one is not made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from tempernet.config import RunSettings
from tempernet.errors import StoreError
from tempernet.kinds import kind_of
from tempernet.paper.claims import Result
from tempernet.paper.steps import Step, checked, digests, steps_of
from tempernet.runs.status import problems
from tempernet.store import RunFolder, files
from tempernet.store.folder import RESULTS, STUDY, is_run, must_be_empty

RUNS = "runs"
DEFAULT_SCALE = "hour"


class Status(TypedDict):
    """How far a study is."""

    scale: str
    only: list[str]
    steps: dict[str, str]
    finished: bool


@dataclass(frozen=True)
class Study:
    """A folder with a scale, its steps, and the names that `--only` gave last; empty for all."""

    path: Path
    scale: str
    steps: tuple[Step, ...]
    only: tuple[str, ...] = ()

    @classmethod
    def begin(cls, path: Path, scale: str | None, only: Iterable[str] | None) -> Study:
        """A new study, or the one that is in the folder.

        Args:
            path: the folder.
            scale: one of `scales.SCALES`; None for that of the study that is there, or the default.
            only: parts or steps to run; None for those that were chosen last.
        """
        if is_study(path):
            return cls.open(path)._chosen(scale, only)
        steps = steps_of(scale or DEFAULT_SCALE)
        chosen = checked(only or (), steps)
        must_be_empty(path)
        return cls(path, scale or DEFAULT_SCALE, steps, chosen)

    @classmethod
    def open(cls, path: Path) -> Study:
        """The study in a folder."""
        if not is_study(path):
            raise StoreError(
                f"{path} holds no study: it has no {STUDY}; "
                f"begin one with tempernet reproduce --out {path}"
            )
        said = files.read_json(path / STUDY)
        steps = steps_of(said["scale"])
        if said["steps"] != digests(steps):
            raise StoreError(
                f"{path} was begun with other settings of the scale {said['scale']}, by another "
                "version of tempernet; go on with that version, or choose another folder with --out"
            )
        return cls(path, said["scale"], steps, tuple(said["only"]))

    def _chosen(self, scale: str | None, only: Iterable[str] | None) -> Study:
        if scale not in (None, self.scale):
            raise StoreError(
                f"{self.path} holds a study of scale {self.scale}, not {scale}; choose another "
                f"folder with --out, or go on with: tempernet reproduce --out {self.path}"
            )
        chosen = self.only if only is None else checked(only, self.steps)
        return Study(self.path, self.scale, self.steps, chosen)

    def write(self) -> None:
        """Note scale and steps in the folder."""
        said = {"scale": self.scale, "steps": digests(self.steps), "only": list(self.only)}
        files.write_json(self.path / STUDY, said)

    @property
    def wanted(self) -> list[Step]:
        """The steps that `--only` leaves."""
        if not self.only:
            return list(self.steps)
        chosen = set(self.only)
        return [step for step in self.steps if step.name in chosen or chosen & set(step.parts)]

    def folder(self, step: Step) -> Path:
        """Where a step's run is."""
        return self.path / RUNS / step.name

    def finished(self, step: Step) -> bool:
        """Whether a step has its results."""
        folder = self.folder(step)
        if not is_run(folder) or not (folder / RESULTS).exists():
            return False
        newest, _ = RunFolder.open(folder).checkpoints.latest()
        return newest is not None and bool(newest.meta["finished"])

    def state(self, step: Step) -> str:
        """How far a step is."""
        if self.finished(step):
            return "finished"
        return "begun" if is_run(self.folder(step)) else "not begun"

    def status(self) -> Status:
        """How far the study is."""
        states = {step.name: self.state(step) for step in self.steps}
        done = all(states[step.name] == "finished" for step in self.wanted)
        return Status(scale=self.scale, only=list(self.only), steps=states, finished=done)

    def problems(self) -> list[str]:
        """Everything that is wrong with the folders of its runs."""
        begun = [folder for step in self.steps if is_run(folder := self.folder(step))]
        return [text for folder in begun for text in problems(folder)]

    def settings(self, step: Step) -> RunSettings:
        """Those of the run that is there, which may have been made longer; else the study's own."""
        folder = self.folder(step)
        if not is_run(folder):
            return step.settings
        return RunFolder.open(folder).settings(type(step.settings))

    def results(self) -> dict[str, Result]:
        """What every finished step found, by its name."""
        finished = [step for step in self.steps if self.finished(step)]
        folders = {step.name: self.folder(step) for step in finished}
        return {name: kind_of(folder).parts.load(folder) for name, folder in folders.items()}


def is_study(path: Path) -> bool:
    """Whether a study has begun in this folder."""
    return (path / STUDY).is_file()
