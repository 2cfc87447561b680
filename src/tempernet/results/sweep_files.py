"""A sweep as files: NetCDF with every series, and CSV with a line a temperature."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from pathlib import Path

import numpy as np
import xarray

from tempernet import config
from tempernet.config import SweepSettings
from tempernet.errors import StoreError
from tempernet.results.series import Rows, observables_of
from tempernet.results.sweep import SweepResults, said_by
from tempernet.store import files

KEPT = "networks"
"""The group of a file that holds networks."""
BURN_IN = "burn_in"


def netcdf(results: SweepResults, *, with_networks: bool = False) -> bytes:
    """The series and the summary as one NetCDF file, with the burn-in in a group of its own.

    `with_networks` adds the networks kept and the mean predictions, from which and from the series
    all else can be worked out again (`read_netcdf`).
    """
    root = results.series.merge(_prefixed(results.summary))
    groups = {"/": root, f"/{BURN_IN}": results.burn_in}
    if with_networks:
        groups[f"/{KEPT}"] = _networks(results)
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs.update(
        protocol=results.settings.protocol,
        title=results.title,
        equilibrated=int(results.verdict.good),
        finished=int(results.finished),
        config=config.to_toml(results.settings),
        provenance=json.dumps(files.plain(results.provenance)),
    )
    return bytes(tree.to_netcdf(engine="h5netcdf"))


def read_netcdf(path: Path) -> SweepResults:
    """The results in a file that `netcdf` made with networks; the verdict is computed anew."""
    try:
        tree = xarray.open_datatree(path, engine="h5netcdf").load()
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"{path} cannot be read as NetCDF: {error}") from error
    if KEPT not in tree.children or "config" not in tree.attrs:
        raise StoreError(f"{path} holds no samples: it was not written by Samples.save")
    settings = config.settings_from(tomllib.loads(tree.attrs["config"]), SweepSettings)
    provenance = json.loads(tree.attrs["provenance"])
    root = tree.to_dataset(inherit=False)
    declared = {observable.name for observable in observables_of(("energy",))}
    series = root[[str(name) for name in root.data_vars if str(name) in declared]]
    group = tree.children[KEPT].to_dataset(inherit=False)
    kept: Rows = {str(name): group[name].values for name in group.data_vars}
    ensemble = kept.pop("ensemble", None)
    return SweepResults(
        path=None,
        settings=settings,
        provenance=provenance,
        series=series.drop_attrs(deep=False),
        burn_in=tree.children[BURN_IN].to_dataset(inherit=False),
        finished=bool(tree.attrs["finished"]),
        kept=kept,
        ensemble=ensemble,
        **said_by(series, settings, provenance, kept, ensemble),
    )


def _networks(results: SweepResults) -> xarray.Dataset:
    """Networks kept and mean predictions, with dimensions of their own."""
    variables = {}
    for name, array in results.kept.items():
        dims = [f"{name}_{axis}" for axis in range(np.ndim(array))]
        variables[name] = (dims, array)
    if results.ensemble is not None:
        variables["ensemble"] = (["copy", "rung", "example", "class"], results.ensemble)
    return xarray.Dataset(variables)


def csv_table(results: SweepResults) -> str:
    """The summary, a line a temperature."""
    summary = results.summary
    names = [str(name) for name in summary.data_vars if summary[name].dims == ("temperature",)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["temperature", *names, "reasons", "protocol"])
    for k, temperature in enumerate(results.temperatures):
        values = [summary[name].values[k] for name in names]
        reasons = "; ".join(reason.label for reason in results.verdict.reasons[k])
        writer.writerow([repr(float(temperature)), *values, reasons, results.settings.protocol])
    return text.getvalue()


def _prefixed(summary: xarray.Dataset) -> xarray.Dataset:
    """Names that do not clash with those of the series."""
    return summary.rename({name: f"mean_{name}" for name in summary.data_vars})
