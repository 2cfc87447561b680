"""The settings of a sweep: a ladder of temperatures, and how often it is scored and kept."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from tempernet.config.settings import ALG_1, ALG_1_ACCEPTANCE, KIND_WORDS, LadderSettings
from tempernet.config.tables import (
    APART,
    Count,
    LadderRunTable,
    NotNegative,
    Positive,
    StartTable,
    Table,
    Tables,
)
from tempernet.errors import ConfigError


class LadderTable(Table):
    """The temperatures."""

    kind: Literal["adaptive", "geometric", "listed"] = Field(
        default="adaptive",
        description="adaptive: they move during burn-in until neighbours swap equally often",
    )
    low: Positive = Field(default=0.01, description="lowest temperature")
    high: Positive = Field(default=100.0, description="highest temperature")
    num: Annotated[int, Field(ge=2)] = Field(default=56, description="number of temperatures N_T")
    temperatures: tuple[float, ...] = Field(
        default=(),
        description="listed: the temperatures, increasing; inf is the prior",
    )

    def check(self) -> None:
        """Refuse temperatures that are no ladder."""
        if self.kind == "listed":
            self._check_listed()
        elif self.temperatures:
            raise ConfigError(
                f'ladder.temperatures are for ladder.kind = "listed", got kind = "{self.kind}"'
            )
        if self.low >= self.high:
            raise ConfigError(
                f"ladder.low must be below ladder.high, got {self.low} and {self.high}"
            )

    def _check_listed(self) -> None:
        if not self.temperatures:
            raise ConfigError(
                'ladder.kind = "listed" needs ladder.temperatures, such as [0.1, 1.0, 10.0]'
            )
        values = np.asarray(self.temperatures)
        # Both are false for NaN.
        if not (values > 0).all() or not (values[1:] > values[:-1]).all():
            raise ConfigError(
                "ladder.temperatures must be increasing and positive, "
                f"got {list(self.temperatures)}"
            )


class SweepStartTable(StartTable):
    """Where the replicas begin."""

    weights: Literal["apart", "annealed", "minimised", "prior"] = Field(
        default="apart",
        description=f"{APART}; annealed: population annealing from the highest temperature, "
        "every second copy reheated",
    )
    cooling_rounds: Count = Field(
        default=3,
        description="annealed: rounds at each step of the temperature",
    )


class SweepRunTable(LadderRunTable):
    """Copies, seed and devices, and how long the run is."""

    score_every: Count = Field(default=5, description="rounds between scores on held-out examples")
    keep: NotNegative = Field(
        default=5,
        description="how many times in the run weights are kept and the whole test set is scored",
    )
    keep_temperatures: tuple[Positive, ...] = Field(
        default=(),
        description="keep weights at the nearest temperatures only; empty: at all",
    )


class SweepSettings(LadderSettings):
    """The settings of a sweep."""

    paper_fixes: ClassVar[Tables] = {
        "ladder": {"kind": "geometric"},
        "dynamics": {**ALG_1, "exchange": "random-pairs", "num_exchanges": 1},
        "start": {"weights": "minimised", "minimiser": "alg3"},
        "tune": ALG_1_ACCEPTANCE,
    }

    kind: Literal["sweep"] = Field(default="sweep", description=KIND_WORDS)
    ladder: LadderTable = LadderTable()
    start: SweepStartTable = SweepStartTable()
    run: SweepRunTable = SweepRunTable()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.ladder.kind == "adaptive"

    def check(self) -> None:
        """Refuse tables that do not agree with each other."""
        self.ladder.check()
        super().check()
