"""Samples in Python: what `sample` returns, and `load` from a sweep made by the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tempernet.diagnostics.statistics import Estimate
from tempernet.errors import ConfigError
from tempernet.model.networks import Network, Weights, template
from tempernet.model.prediction import predict
from tempernet.model.weights import unpacked
from tempernet.report.figures import draw, sweep_figures
from tempernet.report.sweep import summary_lines
from tempernet.report.sweep_table import short_table
from tempernet.report.terminal import as_text
from tempernet.results.kept import kept_at
from tempernet.results.sweep import SweepResults
from tempernet.results.sweep_files import netcdf
from tempernet.store import files


@dataclass(frozen=True, eq=False, repr=False)
class Samples(SweepResults):
    """Samples of a target at K temperatures, and what they say; it prints as a short table.

    The fields are those of `tempernet.results.sweep.SweepResults`: `summary` has averages and
    standard errors by temperature, `series` everything that was recorded, with the dimensions copy,
    round and temperature, `verdict` whether each temperature has equilibrated, and `best` the
    temperature of the lowest validation loss.

    >>> samples.summary.test_loss.values, samples.summary.test_loss_error.values
    >>> samples.predict(inputs, temperature=1.0)
    """

    network: Network | None = None
    """The network that was sampled; None for an energy function."""
    like: Weights = None
    """Shapes of one replica's weights."""
    prepare_fn: Callable[[np.ndarray], np.ndarray] = np.asarray
    """Raw inputs -> inputs as the network reads them."""

    @property
    def energy(self) -> np.ndarray:
        """E after each round that counts, (copies, rounds, K)."""
        return np.asarray(self.series.energy.values)

    @property
    def train_loss(self) -> Estimate:
        """Mean training loss an example and its standard error, (K,) each."""
        return self.estimate("train_loss")

    @property
    def test_loss(self) -> Estimate:
        """Mean test loss an example and its standard error, (K,) each."""
        return self.estimate("test_loss")

    @property
    def test_accuracy(self) -> Estimate:
        """Mean test accuracy and its standard error, (K,) each."""
        return self.estimate("test_accuracy")

    @property
    def swap_rate(self) -> np.ndarray:
        """Mean swap probability of each temperature and the next, (K-1,)."""
        return np.asarray(self.summary.swap_rate.values[:-1])

    def estimate(self, name: str) -> Estimate:
        """The average `name` of `summary` and its standard error, (K,) each."""
        if f"{name}_error" not in self.summary:
            known = [str(n) for n in self.summary.data_vars if f"{n}_error" in self.summary]
            raise ConfigError(
                f"there is no average of {name!r}; there are {', '.join(known)} (held-out scores "
                "need `test` or `validation`)"
            )
        return Estimate(self.summary[name].values, self.summary[f"{name}_error"].values)

    def weights(self, temperature: float | Literal["best"] = "best") -> Weights:
        """The networks kept at a temperature: weights with a leading axis of networks."""
        best = None if self.best is None else self.best.temperature
        found = kept_at(self.kept, temperature, best, str(self.path or "this run"))
        like = template(self.network) if self.network is not None else self.like
        return unpacked("leaf", found.leaves, like)

    def predict(
        self, inputs: np.ndarray, temperature: float | Literal["best"] = "best"
    ) -> np.ndarray:
        """Class probabilities (examples, classes) of new inputs (examples, ...).

        The mean softmax of the networks kept at a temperature: the best one by validation loss, or
        the kept one nearest to a number.
        """
        if self.network is None:
            raise ConfigError(
                "these samples have no network to predict with: give tempernet.load(..., "
                "network=...), or sample a classifier"
            )
        members = self.weights(temperature)
        return predict(self.network, members, self.prepare_fn(np.asarray(inputs))).probabilities

    def plot(self, folder: str | Path) -> list[Path]:
        """Draw every figure into a folder, as SVG and PNG; returns the files."""
        return draw(sweep_figures(self), Path(folder))

    def save(self, path: str | Path) -> Path:
        """Write everything to one NetCDF file, which `tempernet.load` reads."""
        path = Path(path)
        if path.suffix != ".nc":
            raise ConfigError(f"samples are saved to a file that ends in .nc, got {path}")
        files.write_atomic(path, netcdf(self, with_networks=True))
        return path

    def __repr__(self) -> str:
        """A row a temperature, at most 16, and the verdict."""
        return as_text(self.title, short_table(self), summary_lines(self))
