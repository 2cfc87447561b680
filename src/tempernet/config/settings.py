"""What the settings of kinds of run have in common: of all, of those that sample, of ladders.

A kind of run has its settings in a file of its own. What the paper's protocol does to them stands
with them, and so does what must agree between their tables.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from tempernet.config.tables import (
    DataTable,
    DynamicsTable,
    LadderRunTable,
    NetworkTable,
    OutputTable,
    PriorTable,
    RunTable,
    StartTable,
    Table,
    Tables,
    TuneTable,
)
from tempernet.errors import ConfigError

KIND_WORDS = "kind of run that the settings are for"
ALG_1: Mapping[str, object] = {
    "kernel": "hmc",
    "walls": "reject",
    "jitter": 0.0,
    "lengths": "steps",
    "masses": "unit",
}
"""The dynamics of Alg. 1 as printed."""
ALG_1_ACCEPTANCE: Mapping[str, object] = {"low": 0.6, "high": 0.7}
"""The window of acceptance of Sec. 3.3.2."""


class RunSettings(Table):
    """The settings of a run of any kind."""

    paper_fixes: ClassVar[Tables] = {}
    """What the paper's protocol fixes: a setting that contradicts it is refused."""
    paper_numbers: ClassVar[Tables] = {}
    """The paper's numbers: defaults of its protocol, which may be changed."""
    preset_tables: ClassVar[tuple[str, ...] | None] = None
    """The tables that this kind takes from a preset; None for all that it has."""
    presets: ClassVar[Mapping[str, Tables]] = {}
    """Preset -> tables of this kind alone."""

    kind: str = Field(default="", description=KIND_WORDS)
    protocol: Literal["default", "paper"] = Field(
        default="default",
        description="paper: as printed in the paper; a setting that contradicts it is refused",
    )
    data: DataTable = DataTable()
    network: NetworkTable = NetworkTable()
    prior: PriorTable = PriorTable()
    run: RunTable = RunTable()
    output: OutputTable = OutputTable()

    @classmethod
    def kind_name(cls) -> str:
        """The name of the kind that these settings are for."""
        return str(cls.model_fields["kind"].default)

    def check(self) -> None:
        """Refuse tables that do not agree with each other."""
        if self.run.reproducible and self.run.data_devices > 1:
            raise ConfigError(
                f"run.reproducible needs run.data_devices = 1, got {self.run.data_devices}"
            )


class SamplingSettings(RunSettings):
    """The settings of a run that samples."""

    dynamics: DynamicsTable = DynamicsTable()
    start: StartTable = StartTable()
    tune: TuneTable = TuneTable()

    def check(self) -> None:
        """Refuse tables that do not agree with each other."""
        if self.tune.low >= self.tune.high:
            raise ConfigError(
                f"tune.low must be below tune.high, got {self.tune.low} and {self.tune.high}"
            )
        super().check()


class LadderSettings(SamplingSettings):
    """The settings of a run that samples a path of rungs."""

    run: LadderRunTable = LadderRunTable()

    @property
    @abstractmethod
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
