"""What the results of all kinds of run have in common: how a folder is opened, titles, exports."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import xarray

from tempernet.config import RunSettings
from tempernet.diagnostics.statistics import Estimate
from tempernet.store import RunFolder
from tempernet.store.files import JsonObject
from tempernet.store.folder import PROVENANCE

S = TypeVar("S", bound=RunSettings)


class Results(Protocol):
    """What is known of a run of any kind, once its folder is read."""

    @property
    def path(self) -> Path | None:
        """Its folder; None for a run that was made in Python."""

    @property
    def name(self) -> str:
        """What messages and figures call it."""

    @property
    def settings(self) -> RunSettings:
        """The settings of the run."""

    @property
    def finished(self) -> bool:
        """Whether it has come to its end."""

    @property
    def title(self) -> str:
        """Network, data and protocol in a few words."""


class Brief:
    """Results that print as their title, and not as thousands of numbers."""

    def __repr__(self: Results) -> str:
        return f"<{type(self).__name__}: {self.title}>"


class Opened(NamedTuple, Generic[S]):
    """A run folder with what every reader of it needs."""

    folder: RunFolder
    settings: S
    provenance: JsonObject


def open_run(path: Path, *models: type[S]) -> Opened[S]:
    """Open the folder of a run, which must have settings of one of these kinds."""
    folder = RunFolder.open(path)
    return Opened(folder, folder.settings(*models), folder.read_json(PROVENANCE))


def name_of(path: Path | None) -> str:
    """The name of a run folder, or "this run" where there is no folder."""
    return "this run" if path is None else path.name


def subject(settings: RunSettings, provenance: JsonObject) -> str:
    """`M3 on 500 images of mnist16`."""
    data, network = provenance["data"], settings.network.name
    # An energy function of one's own has no examples.
    return (
        f"{network} on {data['n_train']} images of {data['name']}" if data["n_train"] else network
    )


def columns(estimates: Mapping[str, Estimate]) -> dict[str, np.ndarray]:
    """`name` and `name_error` of each estimate."""
    pairs = {}
    for name, estimate in estimates.items():
        pairs[name] = estimate.mean
        pairs[f"{name}_error"] = estimate.error
    return pairs


def csv_lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    """A CSV file: the names of the first row, and a line a row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def netcdf_file(dataset: xarray.Dataset, run: Results) -> bytes:
    """A NetCDF file that names its run and protocol."""
    named = dataset.assign_attrs(title=run.title, protocol=run.settings.protocol)
    return bytes(named.to_netcdf(engine="h5netcdf"))
