"""The schedule of an annealing run: its temperatures, and what is done at each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tempernet.errors import ConfigError, check_count
from tempernet.paths.temperatures import geometric_temperatures


@dataclass(frozen=True)
class Schedule:
    """`num` temperatures from `high` down to `low`, a constant factor apart."""

    high: float = 100.0
    low: float = 0.1
    num: int = 25
    burn_in: int = 5
    """Rounds before those that count; the step size is tuned on them."""
    rounds: int = 10
    """Rounds that count, at each temperature."""
    score_every: int = 1
    """The networks are scored on the validation data after each so many of them."""
    patience: int = 3
    """Temperatures in a row that the validation error must have risen at."""

    def __post_init__(self) -> None:
        for name in ("burn_in", "rounds", "score_every", "patience"):
            check_count(name, getattr(self, name))
        if self.score_every > self.rounds:
            raise ConfigError(
                f"score_every must be at most rounds, {self.rounds}, or nothing is scored, "
                f"got {self.score_every}"
            )
        geometric_temperatures(self.low, self.high, self.num)

    @property
    def temperatures(self) -> NDArray[np.float64]:
        """(num,), falling."""
        return geometric_temperatures(self.low, self.high, self.num)[::-1]

    @property
    def length(self) -> int:
        """Rounds at a temperature."""
        return self.burn_in + self.rounds

    @property
    def draws(self) -> int:
        """Scores at a temperature."""
        return self.rounds // self.score_every
