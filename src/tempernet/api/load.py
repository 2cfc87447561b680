"""`load`: what a run of any kind has found, as the objects that runs in Python return."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from tempernet.api.samples import Samples
from tempernet.config import SweepSettings
from tempernet.data.inputs import normalised_inputs
from tempernet.kinds import KINDS, Result
from tempernet.model.networks import Network, template
from tempernet.results import sweep
from tempernet.results.sweep_files import network_of, read_netcdf
from tempernet.store import RunFolder
from tempernet.tasks.problem import load_data


def load(path: str | Path, *, network: Network | None = None) -> Samples | Result:
    """The results in a run folder, or in a file that `Samples.save` wrote.

    A sweep and a saved file give `Samples`, another kind of run its results: `EvidenceResults`,
    `Annealed` or `Optimised` of `tempernet.results`. To predict from a saved file whose network is
    no `MLP`, give the `network`.

    >>> samples = tempernet.load("runs/d500")
    >>> samples.predict(images)
    """
    path = Path(path)
    if path.is_file():
        found = read_netcdf(path)
        network = network or network_of(found.settings)
        like = None if network is None else template(network)
        return Samples(**vars(found), network=network, like=like)
    folder = RunFolder.open(path)
    if KINDS[folder.kind].settings is not SweepSettings:
        return KINDS[folder.kind].load(path)
    results = sweep.load(path)
    network = network or network_of(results.settings)
    return Samples(
        **vars(results),
        network=network,
        like=None if network is None else template(network),
        prepare_fn=functools.partial(_as_trained_on, path, results.settings),
    )


def _as_trained_on(path: Path, settings: SweepSettings, inputs: np.ndarray) -> np.ndarray:
    """New inputs, resized and normalised as the training data of the run in the folder were."""
    data = load_data(settings)
    RunFolder.open(path).must_have_data(data.sha256)
    return normalised_inputs("inputs", inputs, data, settings.data.size or None)
