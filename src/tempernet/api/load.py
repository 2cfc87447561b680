"""`load`: what a run of any kind has found, as the objects that runs in Python return."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from tempernet.api.evidences import Evidence
from tempernet.api.samples import Samples
from tempernet.config import EvidenceSettings, SweepSettings
from tempernet.data.inputs import normalised_inputs
from tempernet.errors import ConfigError
from tempernet.kinds import kind_of
from tempernet.model.networks import Network, template
from tempernet.results import evidence, sweep
from tempernet.results.run import Results
from tempernet.results.sweep import SweepResults
from tempernet.results.sweep_files import read_netcdf
from tempernet.store import RunFolder
from tempernet.tasks.problem import load_same_data, named_network


def load(path: str | Path, *, network: Network | None = None) -> Samples | Evidence | Results:
    """The results in a run folder, or in a file that `Samples.save` wrote.

    A sweep and a saved file give `Samples`, an evidence gives `Evidence`, another kind of run its
    results: `AnnealResults` or `OptimiseResults` of `tempernet.results`. To predict from a saved
    file whose network is no `MLP`, give the `network`.

    >>> samples = tempernet.load("runs/d500")
    >>> samples.predict(images)
    """
    path = Path(path)
    if path.is_file():
        return _samples(read_netcdf(path), network)
    kind = kind_of(path)
    if kind.settings is EvidenceSettings:
        return Evidence(**vars(evidence.load(path)))
    if kind.settings is SweepSettings:
        return _samples(sweep.load(path), network, path)
    results: Results = kind.parts.load(path)
    return results


def _samples(found: SweepResults, network: Network | None, run: Path | None = None) -> Samples:
    network = network or _named(found.settings)
    prepare_fn = np.asarray if run is None else functools.partial(_as_trained, run, found.settings)
    like = None if network is None else template(network)
    return Samples(**vars(found), network=network, like=like, prepare_fn=prepare_fn)


def _named(settings: SweepSettings) -> Network | None:
    """The network by its layer sizes; None for one of another type, or for an energy function."""
    try:
        return named_network(settings)
    except ConfigError:
        return None


def _as_trained(run: Path, settings: SweepSettings, inputs: np.ndarray) -> np.ndarray:
    """New inputs, resized and normalised as the training data of the run in the folder were."""
    data = load_same_data(RunFolder.open(run), settings)
    return normalised_inputs("inputs", inputs, data, settings.data.size or None)
