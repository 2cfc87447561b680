"""From settings to what is sampled: data, network, prior, target and the examples held out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tempernet.annealing.schedule import Schedule
from tempernet.config import AnnealSettings, RunSettings, SamplingSettings, SweepSettings
from tempernet.data import Dataset, Examples, Source, mnist16, read_idx, read_indices, read_npz
from tempernet.errors import ConfigError, DataError, StoreError, TempernetError
from tempernet.kernels.dynamics import Dynamics, Walls
from tempernet.model import priors
from tempernet.model.mlp import MLP, network_by_name
from tempernet.model.scores import hold_out
from tempernet.model.target import Batch, Target
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.path import Path as RungPath
from tempernet.paths.temperatures import geometric_temperatures, temperature_path
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE
from tempernet.tempering.engine import Engine
from tempernet.tempering.tuning import Tuning


@dataclass(frozen=True, eq=False)
class Problem:
    """What a run samples, and what it is scored on."""

    data: Dataset
    network: MLP
    target: Target
    validation: Batch | None
    """A seeded part of the validation set, scored during the run; None if there is none."""
    test: Batch
    """A seeded part of the test set, scored during the run."""
    test_labels: np.ndarray
    """Labels of that part."""
    all_test: Batch


def make_problem(settings: RunSettings) -> Problem:
    """Read the data and put the target together."""
    data = load_data(settings)
    network = make_network(settings, data)
    if settings.prior.kind == "box":
        prior: priors.Prior = priors.UniformBox.for_network(network, settings.prior.factor)
    else:
        prior = priors.Gaussian.for_network(network, settings.prior.std)
    if len(data.test) == 0:
        raise DataError(
            f"{data.name} leaves no test examples: give x_test and y_test, "
            "or train on fewer (data.n_train)"
        )
    scored = part(data.test, settings.data.scored, settings.data.seed)
    validation = part(data.validation, settings.data.scored, settings.data.seed)
    return Problem(
        data=data,
        network=network,
        target=Target.classifier(network, data.train, prior),
        validation=hold_out(network, validation) if len(validation) else None,
        test=hold_out(network, scored),
        test_labels=np.asarray(scored.y),
        all_test=hold_out(network, data.test),
    )


def make_engine(
    settings: SamplingSettings,
    problem: Problem,
    path: RungPath,
    tile: int | None = None,
    *,
    copies: int | None = None,
    walls: Walls | None = None,
) -> Engine:
    """The engine on a path with these settings.

    Args:
        settings: of the run.
        problem: its target.
        path: the path.
        tile: how many replicas a device takes at a time; None if that is to be measured.
        copies: copies of the path; None for those of the settings.
        walls: what the walls of a box do; None for what the settings say.
    """
    dynamics = settings.dynamics
    return Engine(
        problem.target,
        path,
        copies=copies or settings.run.copies,
        dynamics=Dynamics(
            num_steps=dynamics.num_steps,
            num_trajectories=dynamics.num_trajectories,
            walls=walls or dynamics.walls,
            jitter=dynamics.jitter,
            lengths=dynamics.lengths,
            kernel=dynamics.kernel,
            persistence=dynamics.persistence,
        ),
        exchange=dynamics.exchange,
        num_exchanges=dynamics.num_exchanges,
        masses=1.0 if dynamics.masses == "unit" else dynamics.masses,
        seed=settings.run.seed,
        devices=settings.run.devices or None,
        data_devices=settings.run.data_devices,
        tile=tile,
        reproducible=settings.run.reproducible,
    )


def make_minimiser(settings: SamplingSettings) -> Minimiser:
    """The minimiser with these settings."""
    return Minimiser(method=settings.start.minimiser, max_gradients=settings.start.max_gradients)


def make_tuning(settings: SamplingSettings) -> Tuning:
    """The tuning of step sizes with these settings."""
    return Tuning(low=settings.tune.low, high=settings.tune.high)


def make_schedule(settings: AnnealSettings) -> Schedule:
    """The temperatures of a cooling, and what is done at each."""
    cooling = settings.cooling
    return Schedule(
        high=cooling.high,
        low=cooling.low,
        num=cooling.num,
        burn_in=cooling.burn_in,
        rounds=cooling.rounds,
        score_every=cooling.score_every,
        patience=cooling.patience,
    )


def temperatures_of(settings: SweepSettings) -> RungPath:
    """The ladder that a sweep begins with: an adaptive one begins geometric."""
    ladder = settings.ladder
    if ladder.kind == "listed":
        return temperature_path(ladder.temperatures)
    return temperature_path(geometric_temperatures(ladder.low, ladder.high, ladder.num))


def load_data(settings: RunSettings) -> Dataset:
    """The data set that the settings name, split."""
    wanted = settings.data
    source = _source(wanted.source, wanted.size or None)
    indices = read_indices(Path(wanted.indices)) if wanted.indices else None
    n_train = None if indices is not None or wanted.n_train == 0 else wanted.n_train
    held_out = min(wanted.n_validation, _left_over(source, n_train, indices) // 2)
    return source.split(n_train, seed=wanted.seed, indices=indices, n_validation=held_out)


def load_same_data(folder: RunFolder, settings: RunSettings) -> Dataset:
    """The data of a run, which must be the data it began with."""
    data = load_data(settings)
    if data.sha256 != folder.read_json(PROVENANCE)["data"]["sha256"]:
        raise StoreError(
            f"the data of {folder.path} have changed since the run: their hash is not the one in "
            f"{PROVENANCE}, and new data would be normalised otherwise; put the old data back"
        )
    return data


def data_still_there(settings: RunSettings) -> Dataset | None:
    """The data of a run that has ended; None if they cannot be read any more."""
    try:
        return load_data(settings)
    except TempernetError:
        return None


def named_network(settings: RunSettings) -> MLP:
    """The network that settings name."""
    network = network_by_name(settings.network.name)
    return replace(network, output="logistic") if settings.network.output == "logistic" else network


def make_network(settings: RunSettings, data: Dataset) -> MLP:
    """A network by the name of the paper, or by its layer sizes."""
    name, network = settings.network.name, named_network(settings)
    inputs = int(np.prod(data.train.x.shape[1:]))
    if network.sizes[0] != inputs or network.sizes[-1] < data.classes:
        raise ConfigError(
            f"the network {name} reads {network.sizes[0]} numbers and knows "
            f"{network.sizes[-1]} classes, but {data.name} has {inputs} and {data.classes}; "
            f"give network.name = {inputs}-...-{data.classes}"
        )
    return network


def model_hash(network: MLP, settings: RunSettings) -> str:
    """A hash that names the network and its prior."""
    text = f"{MLP.__name__} {network} {settings.prior!r}"
    return hashlib.sha256(text.encode()).hexdigest()


def part(examples: Examples, number: int, seed: int) -> Examples:
    """Some of the examples, in their order; all of them if there are no more.

    Args:
        examples: to choose from.
        number: how many.
        seed: of the choice.
    """
    if len(examples) <= number:
        return examples
    chosen = np.sort(np.random.default_rng([seed, 1]).choice(len(examples), number, replace=False))
    return replace(examples, x=examples.x[chosen], y=examples.y[chosen])


def _source(name: str, size: int | None) -> Source:
    if name == "mnist16":
        return mnist16() if size in (None, 16) else mnist16().resized(size or 16)
    path = Path(name)
    if path.is_dir():
        return read_idx(path, size)
    if path.suffix == ".npz" or path.is_file():
        return read_npz(path, size)
    raise DataError(
        f'data.source must be "mnist16", an npz file or a folder of idx files; there is no {name}'
    )


def _left_over(source: Source, n_train: int | None, indices: np.ndarray | None) -> int:
    """Examples that do not train."""
    total = len(source.y_train) + len(source.y_test)
    if indices is not None:
        return total - len(indices)
    return total - (len(source.y_train) if n_train is None else n_train)
