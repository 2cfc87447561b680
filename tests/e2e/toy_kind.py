"""A kind of run that is none of the four: it counts, and records how far it is.

Its entry, `TOY`, is all that the command needs to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from tempernet.config import RunSettings
from tempernet.config.tables import Count, Table
from tempernet.errors import Stopped, StoreError
from tempernet.kinds import Export, Kind, Option, Parts
from tempernet.report.terminal import show_lines
from tempernet.results.run import csv_lines, open_run, subject
from tempernet.tasks.base import Task
from tempernet.tasks.optimise import free_engine
from tempernet.tasks.plan import Plan
from tempernet.tempering.host import Progress

SCALE = 0.5


class CountingTable(Table):
    """What is counted."""

    to: Count = Field(default=5, description="the last number")


class ToySettings(RunSettings):
    """The settings of a toy."""

    kind: Literal["toy"] = Field(default="toy", description="kind of run")
    counting: CountingTable = CountingTable()


class Toy(Task[ToySettings]):
    """Counts, a record and a checkpoint a number."""

    number = 0

    def run(self) -> None:
        """From where the folder is to the end."""
        tile = self.begun_tile()
        self.engine = free_engine(self.settings, self.problem, 1, tile)
        if not self.go_back():
            self.note_start()
            self.checkpoint()
        last = self.settings.counting.to
        while self.number < last:
            if self.watch.should_stop():
                self.stop(f"at {self.number}")
                raise Stopped("stopped as asked")
            self.number += 1
            self.record("numbers", {"half": SCALE * self.number})
            self.tell(Progress("count", self.number, last), always=True)
            self.checkpoint()
        self.finish()

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing but the number."""
        return {"number": np.asarray(self.number)}

    def meta(self) -> dict[str, Any]:
        """How far it is."""
        return {"round": self.number}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Go back to a number."""
        self.number = int(arrays["number"])


@dataclass(frozen=True)
class Halves:
    """What a toy has recorded."""

    path: Path
    settings: ToySettings
    title: str
    halves: np.ndarray
    finished: bool

    @property
    def name(self) -> str:
        return self.path.name


def load(path: Path) -> Halves:
    """Read a run folder."""
    folder, settings, provenance = open_run(path, ToySettings)
    rows = folder.records.load("numbers")
    if not rows:
        raise StoreError(f"{path} has counted nothing yet")
    finished = len(rows["half"]) == settings.counting.to
    title = f"{subject(settings, provenance)}, {settings.protocol} protocol"
    return Halves(path, settings, title, rows["half"], finished)


def headline(found: Halves) -> str:
    """What came out, in a line."""
    return f"counted to {found.halves[-1] / SCALE:.0f}"


def document(found: Halves) -> dict[str, object]:
    """What `results.json` says."""
    return {"protocol": found.settings.protocol, "largest": found.halves.max()}


def draw(found: Halves) -> Figure:
    """The numbers."""
    figure = Figure()
    figure.subplots().plot(found.halves)
    return figure


def table(found: Halves) -> bytes:
    """A line a number."""
    return csv_lines([{"half": half} for half in found.halves])


def plan(settings: ToySettings) -> Plan:
    """What a toy will take."""
    return Plan(
        protocol=settings.protocol,
        network=settings.network.name,
        weights=0,
        examples=0,
        replicas=1,
        made_of="a counter",
        length=f"{settings.counting.to} numbers",
        gradients=0.0,
        memory=0.0,
        disk=0.0,
        seconds=1.0,
        seconds_a_round=0.1,
    )


TOY = Kind(
    settings=ToySettings,
    summary="Count to a number.",
    parts_fn=lambda: Parts(
        task=Toy,
        load=load,
        headline=headline,
        document=document,
        show=lambda found, written: show_lines([found.title, headline(found)], written),
        figures=lambda found, beside: {"numbers": lambda: draw(found)},
        exports={"csv": Export("numbers.csv", table, at_end=True)},
        plan=plan,
    ),
    options=(Option("counting.to", int, "The last number."),),
)
