"""The settings of an evidence: its path, from the prior or from a quadratic to the posterior."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tempernet.config.settings import ALG_1, ALG_1_ACCEPTANCE, KIND_WORDS, LadderSettings
from tempernet.config.tables import (
    APART,
    Count,
    DynamicsTable,
    LadderRunTable,
    NotNegative,
    StartTable,
    Table,
    Tables,
)
from tempernet.errors import ConfigError


class PathTable(Table):
    """The path to the posterior, from the prior or from a quadratic."""

    method: Literal["temperature", "bridge"] = Field(
        default="temperature",
        description="from the prior by temperature, or from a quadratic at a minimum (Eq. 21)",
    )
    num: Annotated[int, Field(ge=3)] = Field(default=60, description="rungs, both ends included")
    coldest: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="temperature: lowest temperature of the path; rungs below 1 only keep replicas "
        "moving at T = 1 (0.75 for M3)",
    )
    adaptive: bool = Field(
        default=True,
        description="rungs move during burn-in until neighbours swap equally often",
    )


class BridgeTable(Table):
    """The quadratic of a bridge: k from fluctuations around a minimum (Eq. 20)."""

    fit_burn_in: NotNegative = Field(
        default=400,
        description="trajectories before the fluctuations are averaged",
    )
    fit_rounds: Count = Field(
        default=400,
        description="trajectories over which they are averaged",
    )
    tune_every: Count = Field(
        default=10,
        description="paper: rungs between two adjustments of the step size",
    )


class EvidenceStartTable(StartTable):
    """Where the replicas begin."""

    weights: Literal["apart", "minimised", "prior"] = Field(default="apart", description=APART)


class EvidenceDynamicsTable(DynamicsTable):
    """A round: trajectories of every replica, then exchange."""

    # Energies decorrelate within a few steps, and replicas move by at most a rung each round:
    # short rounds, many of them.
    num_steps: Count = Field(
        default=12,
        description="Verlet steps of a trajectory, L; deep networks need more (36 or 48 for M3)",
    )
    num_trajectories: Count = Field(default=1, description="trajectories between exchanges, N_traj")


class EvidenceRunTable(LadderRunTable):
    """Copies, seed and devices, and how long the run is."""

    copies: Count = Field(default=2, description="independent copies of the whole path")
    burn_in: NotNegative = Field(
        default=400,
        description="rounds before the samples count; paper: of each rung",
    )
    rounds: int = Field(default=2200, ge=2, description="rounds that count; paper: of each rung")


class EvidenceSettings(LadderSettings):
    """The settings of an evidence."""

    paper_fixes: ClassVar[Tables] = {
        "path": {"method": "bridge", "adaptive": False},
        "dynamics": {**ALG_1, "exchange": "none"},
        "start": {"weights": "minimised"},
        "tune": ALG_1_ACCEPTANCE,
    }
    # Sec. 4.3.1.
    paper_numbers: ClassVar[Tables] = {
        "path": {"num": 102},
        "dynamics": {"num_steps": 100, "num_trajectories": 1},
        "run": {"burn_in": 100, "rounds": 100},
        "bridge": {"fit_burn_in": 1000, "fit_rounds": 1000, "tune_every": 10},
    }
    # The rounds of a sweep are long and few, those of an evidence short and many.
    preset_tables: ClassVar[tuple[str, ...] | None] = ("data", "network", "prior")

    kind: Literal["evidence"] = Field(default="evidence", description=KIND_WORDS)
    dynamics: EvidenceDynamicsTable = EvidenceDynamicsTable()
    start: EvidenceStartTable = EvidenceStartTable()
    run: EvidenceRunTable = EvidenceRunTable()
    path: PathTable = PathTable()
    bridge: BridgeTable = BridgeTable()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.path.adaptive

    def check(self) -> None:
        """Refuse tables that do not agree with each other."""
        if self.path.method == "bridge" and self.path.coldest != 1:
            raise ConfigError(
                "path.coldest must be 1 on a bridge, which ends at the posterior, "
                f"got {self.path.coldest}"
            )
        super().check()
