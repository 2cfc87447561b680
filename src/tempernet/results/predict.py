"""Prediction from a run folder: its stored weights as an ensemble, on new data made like its
training data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from tempernet.data import read_inputs
from tempernet.errors import ConfigError, StoreError
from tempernet.model.networks import Weights, template
from tempernet.model.prediction import Prediction, predict
from tempernet.results import sweep as results
from tempernet.store import RunFolder
from tempernet.store.folder import PROVENANCE
from tempernet.tasks.problem import load_data, make_network

BEST = "best"
NEAR = 1.02
"""A temperature may lie outside of those kept by this factor: it was read off, and rounded."""


class Ensemble(NamedTuple):
    """Networks of a run: a leading axis of members, and the temperature they were sampled at, 0 if
    optimised.
    """

    weights: Weights
    temperature: float


class Predicted(NamedTuple):
    """A prediction, the labels if there are any, and the temperature of the ensemble."""

    prediction: Prediction
    labels: np.ndarray | None
    temperature: float

    @property
    def table(self) -> str:
        """CSV, a line an example."""
        return self.prediction.table(self.labels)


def predict_from(path: Path, data: Path, temperature: str = BEST) -> Predicted:
    """Predict the examples of an npz file by what a run has stored."""
    folder = RunFolder.open(path, "sweep", "anneal", "optimise")
    settings = folder.settings
    trained_on = load_data(settings)
    if trained_on.sha256 != folder.read_json(PROVENANCE)["data"]["sha256"]:
        raise StoreError(
            f"the data of {path} have changed since the run: their hash is not the one in {PROVENANCE}, and new data "
            f"would be normalised otherwise; put the old data back"
        )
    network = make_network(settings, trained_on)
    inputs, labels = read_inputs(data, trained_on, settings.data.size or None)
    ensemble = stored(folder, settings, jax.tree.structure(template(network)), temperature)
    return Predicted(predict(network, ensemble.weights, inputs), labels, ensemble.temperature)


def stored(folder: RunFolder, settings: Any, structure: Any, wanted: str = BEST) -> Ensemble:
    """The weights that a run has kept at a temperature: "best", or the one nearest to a number."""
    rows = folder.weights.load("weights")
    if rows and settings.task == "sweep":
        # Burn-in may have grown after they were kept.
        rows = {name: array[rows["round"] > settings.run.burn_in] for name, array in rows.items()}
    if not rows or not len(rows["round"]):
        raise StoreError(
            f"{folder.path} has kept no weights yet; go on with: tempernet resume {folder.path}"
        )
    temperatures = rows["temperature"][-1]
    rung = _rung(folder.path, settings.task, temperatures, wanted)
    leaves = [rows[f"leaf{i}"][:, :, rung] for i in range(structure.num_leaves)]
    # (rows, copies, ...) as one axis of members.
    members = [leaf.reshape(-1, *leaf.shape[2:]) for leaf in leaves]
    return Ensemble(jax.tree.unflatten(structure, members), float(temperatures[rung]))


def _rung(path: Path, task: str, temperatures: np.ndarray, wanted: str) -> int:
    """Which of the temperatures with kept weights is wanted."""
    if wanted == BEST:
        if task != "sweep":
            return 0
        best = results.load(path).best
        if best is None:
            raise ConfigError(
                f"{path} has no best temperature: there was no validation set; name one of {_listed(temperatures)}"
            )
        value = best.temperature
    else:
        try:
            value = float(wanted)
        except ValueError:
            value = float("nan")
        if not value >= 0:
            raise ConfigError(f'--temperature must be "best" or a number from 0 up, got {wanted!r}')
    if not temperatures[0] / NEAR <= value <= temperatures[-1] * NEAR:
        raise ConfigError(
            f"{path} has kept no weights at T = {value:.6g}, only at {_listed(temperatures)}"
        )
    same = np.flatnonzero(temperatures == value)
    return int(same[0]) if len(same) else results.nearest(temperatures, value)


def _listed(temperatures: np.ndarray) -> str:
    return "T = " + ", ".join(f"{t:.4g}" for t in temperatures)


def document(found: Predicted) -> dict[str, Any]:
    """What `--json` says."""
    said: dict[str, Any] = {
        "examples": len(found.prediction.probabilities),
        "members": found.prediction.members,
        "temperature": found.temperature,
    }
    return said if found.labels is None else said | found.prediction.score(found.labels)._asdict()


def statements(found: Predicted) -> list[str]:
    """The same in words."""
    prediction, where = found.prediction, f"networks at T = {found.temperature:.4g}"
    by = f"{prediction.members} {'optimised networks' if found.temperature == 0 else where}"
    lines = [f"{len(prediction.probabilities)} examples predicted by {by}"]
    if found.labels is not None:
        loss, accuracy, calibration = prediction.score(found.labels)
        lines.append(
            f"loss {loss:.4f}, accuracy {accuracy:.4f}, calibration error {calibration:.4f}"
        )
    return lines
