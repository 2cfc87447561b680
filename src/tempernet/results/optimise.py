"""Results of an optimisation: what its starts needed, and how well the best do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray

from tempernet.config import OptimiseSettings
from tempernet.diagnostics.statistics import Estimate
from tempernet.errors import StoreError
from tempernet.optimise.pool import STEPS_SHOWN, Spread, spread, success_rate
from tempernet.results.run import Brief, csv_lines, name_of, netcdf_file, open_run, subject
from tempernet.store.files import JsonObject

SCORED = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "widest")
"""What is known of every start kept."""


@dataclass(frozen=True, eq=False, repr=False)
class OptimiseResults(Brief):
    """An optimisation as read from its folder."""

    path: Path | None
    settings: OptimiseSettings
    provenance: JsonObject
    starts: dict[str, np.ndarray]
    """`energy`, `gradients` and `reached` of every start, (starts,) each."""
    kept: dict[str, np.ndarray]
    """`number`, `energy`, `SCORED` and `in_prior` of the starts kept, (kept,) each."""

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
    def name(self) -> str:
        """Its folder's name, or "this run" for one that was made in Python."""
        return name_of(self.path)

    @property
    def title(self) -> str:
        """Network, data, method and protocol in a few words."""
        how = f"optimised by {self.method}, {self.settings.protocol} protocol"
        return f"{subject(self.settings, self.provenance)}, {how}"

    @property
    def method(self) -> str:
        """The name of the minimiser in words."""
        return {"fire": "FIRE", "alg3": "Alg. 3"}[self.settings.optimise.minimiser]

    @property
    def finished(self) -> bool:
        """True: only a finished optimisation can be read."""
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
            f"the first {kept} of them kept" if self.all_reached else f"the {kept} of lowest E kept"
        )
        return f"{reached} of {started} starts reached {what}, {how}"


def load(path: Path) -> OptimiseResults:
    """Read the folder of a finished optimisation."""
    folder, settings, provenance = open_run(path, OptimiseSettings)
    starts, kept = folder.records.load("starts"), folder.records.load("kept")
    if not kept:
        done = len(starts.get("energy", ()))
        raise StoreError(
            f"{path} has not finished: {done} starts so far; go on with: tempernet resume {path}"
        )
    return OptimiseResults(path, settings, provenance, starts, kept)


def csv_table(found: OptimiseResults) -> bytes:
    """What is known of the starts kept, a line a start."""
    rows = []
    for i in range(len(found.kept["number"])):
        numbers = {name: values[i] for name, values in found.kept.items()}
        rows.append({**numbers, "protocol": found.settings.protocol})
    return csv_lines(rows)


def netcdf(found: OptimiseResults) -> bytes:
    """What every start took, and what is known of those kept."""
    every = {f"start_{name}": ("start", values) for name, values in found.starts.items()}
    kept = {name: ("kept", values) for name, values in found.kept.items()}
    dataset = xarray.Dataset({**every, **kept})
    return netcdf_file(dataset.assign_attrs(headline=found.headline), found)
