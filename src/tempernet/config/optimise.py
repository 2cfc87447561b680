"""The settings of an optimisation: which minimiser, and how many starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tempernet.config.settings import KIND_WORDS, RunSettings
from tempernet.config.tables import Count, Positive, RunTable, Table, Tables
from tempernet.optimise.minimise import Minimiser


class OptimiseTable(Table):
    """Which minimisation, and how many starts."""

    keep: Count = Field(
        default=100,
        description="stop once this many starts have E = 0, otherwise keep this many with the "
        "lowest energy",
    )
    starts: Count = Field(default=4000, description="largest number of starts")
    minimiser: Literal["fire", "alg3"] = Field(
        default=Minimiser.method,
        description="FIRE, or Alg. 3 as printed",
    )
    max_gradients: Count = Field(default=2000, description="largest number of gradients of a start")
    time_step: Positive = Field(
        default=Minimiser.time_step,
        description="initial time step",
    )
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=Minimiser.tolerance,
        description="energy that counts as E = 0; in float32 E reaches 0",
    )


class OptimiseRunTable(RunTable):
    """Replicas, seed and devices."""

    copies: Count = Field(
        default=50,
        description="starts that are minimised at once; the result does not depend on it",
    )


class OptimiseSettings(RunSettings):
    """The settings of an optimisation; the prior is only what the result is held against."""

    paper_fixes: ClassVar[Tables] = {"optimise": {"minimiser": "alg3", "tolerance": 0.0}}
    presets: ClassVar[Mapping[str, Tables]] = {"quick": {"optimise": {"keep": 50, "starts": 500}}}

    kind: Literal["optimise"] = Field(default="optimise", description=KIND_WORDS)
    optimise: OptimiseTable = OptimiseTable()
    run: OptimiseRunTable = OptimiseRunTable()
