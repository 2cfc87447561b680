"""Prediction from a run folder: its stored weights as an ensemble, on new data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tempernet.config import RunSettings
from tempernet.data import read_inputs
from tempernet.model.networks import Network, Weights, template
from tempernet.model.prediction import Prediction, predict
from tempernet.model.weights import unpacked
from tempernet.results.kept import BEST, kept_at
from tempernet.store import RunFolder
from tempernet.tasks.problem import load_same_data, make_network

S = TypeVar("S", bound=RunSettings)


def _all_count(settings: RunSettings) -> int:
    """Every row counts: rounds are numbered from 0."""
    return -1


@dataclass(frozen=True)
class Members(Generic[S]):
    """Which of the weights that a kind of run keeps make an ensemble."""

    count_after: Callable[[S], int] = _all_count
    """The round after which weights that are kept count."""
    best_fn: Callable[[Path], float | None] | None = None
    """The best temperature of a run, None if it has none. Without it there is one temperature."""


class Ensemble(NamedTuple):
    """Networks of a run."""

    weights: Weights
    """Weights with a leading axis of members."""
    temperature: float
    """The temperature at which they were sampled; 0 if they were optimised."""


class Predicted(NamedTuple):
    """A prediction, the labels if there are any, and the temperature of the ensemble."""

    prediction: Prediction
    labels: np.ndarray | None
    temperature: float

    @property
    def table(self) -> str:
        """The prediction as CSV, a line an example."""
        return self.prediction.table(self.labels)


def predict_from(
    path: Path, model: type[S], members: Members[S], data: Path, temperature: str = BEST
) -> Predicted:
    """Predict the examples of an npz file from the weights that a run has stored.

    Args:
        path: the run folder.
        model: the settings of its kind.
        members: which of its weights are taken.
        data: the file.
        temperature: "best", or a number, for which the nearest temperature is taken.
    """
    folder = RunFolder.open(path)
    settings = folder.settings(model)
    trained_on = load_same_data(folder, settings)
    network = make_network(settings, trained_on)
    inputs, labels = read_inputs(data, trained_on, settings.data.size or None)
    ensemble = stored(folder, settings, network, members, temperature)
    return Predicted(predict(network, ensemble.weights, inputs), labels, ensemble.temperature)


def stored(
    folder: RunFolder, settings: S, network: Network, members: Members[S], wanted: str = BEST
) -> Ensemble:
    """The weights that a run has kept at a temperature.

    Args:
        folder: of the run.
        settings: of the run.
        network: whose weights they are.
        members: which of them are taken.
        wanted: "best", or a number, for which the nearest temperature is taken.
    """
    rows = folder.weights.load("weights")
    if rows:
        # Burn-in may have grown after they were kept.
        counts = rows["round"] > members.count_after(settings)
        rows = {name: array[counts] for name, array in rows.items()}
    best = members.best_fn(folder.path) if members.best_fn is not None else None
    found = kept_at(rows, wanted, best, str(folder.path))
    return Ensemble(unpacked("leaf", found.leaves, template(network)), found.temperature)


def document(found: Predicted) -> dict[str, object]:
    """What `--json` says."""
    said: dict[str, object] = {
        "examples": len(found.prediction.probabilities),
        "members": found.prediction.members,
        "temperature": found.temperature,
    }
    return said if found.labels is None else said | found.prediction.score(found.labels)._asdict()


def statements(found: Predicted) -> list[str]:
    """The prediction in words, a few lines."""
    prediction, where = found.prediction, f"networks at T = {found.temperature:.4g}"
    by = f"{prediction.members} {'optimised networks' if found.temperature == 0 else where}"
    lines = [f"{len(prediction.probabilities)} examples predicted by {by}"]
    if found.labels is not None:
        loss, accuracy, calibration = prediction.score(found.labels)
        lines.append(
            f"loss {loss:.4f}, accuracy {accuracy:.4f}, calibration error {calibration:.4f}"
        )
    return lines
