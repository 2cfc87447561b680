"""Results of an optimisation: from the records in its folder to what its starts needed and how well
the best do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.errors import StoreError
from tempernet.optimise.pool import STEPS_SHOWN, Spread, spread, success_rate
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE

SCORED = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "widest")
"""Of every start kept."""


@dataclass(frozen=True, eq=False)
class Optimised:
    """An optimisation as read from its folder."""

    path: Path
    settings: Any
    provenance: dict[str, Any]
    starts: dict[str, np.ndarray]
    """Of every start: `energy`, `gradients`, `reached`."""
    kept: dict[str, np.ndarray]
    """Of those kept: the start's `number`, its `energy`, `SCORED`, and whether it lies `in_prior`."""

    @property
    def success(self) -> Estimate:
        """Share of the starts that reached E = 0."""
        return success_rate(int(self.starts["reached"].sum()), len(self.starts["reached"]))

    @property
    def gradients(self) -> np.ndarray | None:
        """Quantiles of the gradients taken by the starts that reached E = 0; None if none did."""
        taken = self.starts["gradients"][self.starts["reached"]]
        return np.quantile(taken, STEPS_SHOWN) if len(taken) else None

    @property
    def spreads(self) -> dict[str, Spread]:
        """Mean and spread over those kept."""
        return {name: spread(self.kept[name]) for name in SCORED}

    @property
    def title(self) -> str:
        """Network, data and method in a few words."""
        data = self.provenance["data"]
        return f"{self.settings.network.name} on {data['n_train']} images of {data['name']}, optimised by {self.method}"

    @property
    def method(self) -> str:
        """The minimiser as people call it."""
        return {"fire": "FIRE", "alg3": "Alg. 3"}[self.settings.optimise.minimiser]

    @property
    def finished(self) -> bool:
        """Only a finished one can be read."""
        return True

    @property
    def all_reached(self) -> bool:
        """Whether every start kept has E = 0."""
        return bool((self.kept["energy"] <= self.settings.optimise.tolerance).all())

    @property
    def headline(self) -> str:
        """What came out, in a line."""
        goal = self.settings.optimise.tolerance
        what = f"E {'= 0' if goal == 0 else f'<= {goal:g}'}"
        reached, started = int(self.starts["reached"].sum()), len(self.starts["reached"])
        kept = len(self.kept["number"])
        how = (
            f"the first {kept} of them kept" if self.all_reached else f"the {kept} of least E kept"
        )
        return f"{reached} of {started} starts reached {what}, {how}"


def load(path: Path) -> Optimised:
    """Read the folder of a finished optimisation."""
    folder = RunFolder.open(path, "optimise")
    starts, kept = folder.records.load("starts"), folder.records.load("kept")
    if not kept:
        done = len(starts.get("energy", ()))
        raise StoreError(
            f"{path} has not finished: {done} starts so far; go on with: tempernet resume {path}"
        )
    return Optimised(path, folder.settings, folder.read_json(PROVENANCE), starts, kept)
