"""A sweep as files for other programs: NetCDF with every series, CSV with a line a temperature."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import xarray

from tempernet import config
from tempernet.results.sweep import SweepResults
from tempernet.store import files
from tempernet.store.folder import RESULTS_NC


def write_netcdf(results: SweepResults) -> list[Path]:
    """Write results.nc into the run folder."""
    path = results.path / RESULTS_NC
    files.write_atomic(path, netcdf(results))
    return [path]


def netcdf(results: SweepResults) -> bytes:
    """The series and the summary as one NetCDF file, with the burn-in in a group of its own."""
    tree = xarray.DataTree.from_dict(
        {"/": results.series.merge(_prefixed(results.summary)), "/burn_in": results.burn_in}
    )
    tree.attrs.update(
        protocol=results.settings.protocol,
        title=results.title,
        equilibrated=int(results.verdict.good),
        config=config.to_toml(results.settings),
    )
    buffer = tree.to_netcdf(engine="h5netcdf")
    return bytes(buffer)


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
