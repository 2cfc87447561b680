"""The settings of a cooling: its temperatures, what is done at each, and when it stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tempernet.annealing.annealer import LEAST_REPLICAS
from tempernet.annealing.schedule import Schedule
from tempernet.config.settings import ALG_1, ALG_1_ACCEPTANCE, KIND_WORDS, SamplingSettings
from tempernet.config.tables import Count, Positive, RunTable, StartTable, Table, Tables
from tempernet.errors import ConfigError


class CoolingTable(Table):
    """The temperatures of a cooling, what is done at each, and when it stops."""

    high: Positive = Field(
        default=Schedule.high,
        description="highest temperature, where it begins",
    )
    low: Positive = Field(
        default=Schedule.low,
        description="lowest temperature, where it ends if nothing stops it",
    )
    num: Annotated[int, Field(ge=2)] = Field(
        default=Schedule.num,
        description="number of temperatures, a constant factor apart",
    )
    burn_in: Count = Field(
        default=Schedule.burn_in,
        description="rounds at each temperature that tune the step size and do not count",
    )
    rounds: Count = Field(
        default=Schedule.rounds, description="rounds at each temperature that count"
    )
    score_every: Count = Field(
        default=Schedule.score_every,
        description="rounds between scores on validation examples",
    )
    patience: Count = Field(
        default=Schedule.patience,
        description="stop after this many temperatures in a row with a higher validation loss",
    )
    optimised: str = Field(
        default="",
        description="folder of an optimise run to compare with; empty: optimise as many as "
        "there are copies",
    )

    def check(self) -> None:
        """Refuse what is no cooling."""
        if self.low >= self.high:
            raise ConfigError(
                f"cooling.low must be below cooling.high, got {self.low} and {self.high}"
            )
        if self.score_every > self.rounds:
            raise ConfigError(
                "cooling.score_every must be at most cooling.rounds, or nothing is scored, "
                f"got {self.score_every} and {self.rounds}"
            )


class AnnealStartTable(StartTable):
    """Where the replicas begin; minimisation is also what the result is compared with."""

    weights: Literal["apart", "minimised", "prior"] = Field(
        default="prior",
        description="draws of the prior are typical of high temperatures",
    )


class AnnealRunTable(RunTable):
    """Replicas, seed and devices."""

    copies: Annotated[int, Field(ge=LEAST_REPLICAS)] = Field(
        default=8,
        description="replicas that cool side by side",
    )


class AnnealSettings(SamplingSettings):
    """The settings of a cooling."""

    paper_fixes: ClassVar[Tables] = {
        "dynamics": ALG_1,
        "start": {"minimiser": "alg3"},
        "tune": ALG_1_ACCEPTANCE,
    }
    presets: ClassVar[Mapping[str, Tables]] = {
        "quick": {
            "cooling": {
                "high": 30.0,
                "low": 0.3,
                "num": 16,
                "burn_in": 40,
                "rounds": 60,
                "score_every": 6,
            },
            "start": {"max_gradients": 2000},
        },
    }

    kind: Literal["anneal"] = Field(default="anneal", description=KIND_WORDS)
    start: AnnealStartTable = AnnealStartTable()
    cooling: CoolingTable = CoolingTable()
    run: AnnealRunTable = AnnealRunTable()

    def check(self) -> None:
        """Refuse tables that do not agree with each other."""
        self.cooling.check()
        super().check()
