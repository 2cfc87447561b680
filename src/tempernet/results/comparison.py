"""The choice between models: evidences of the same data, Bayes factors, probabilities."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from tempernet.diagnostics.statistics import Estimate
from tempernet.errors import ConfigError
from tempernet.results.evidence import EvidenceResults


class Comparison(NamedTuple):
    """Models side by side."""

    models: list[EvidenceResults]
    log_bayes_factors: list[Estimate]
    """log Bayes factor of each model against the first, with its error."""
    probabilities: np.ndarray
    """Posterior probabilities of the models, which the prior odds enter."""
    low: np.ndarray
    high: np.ndarray
    """Two errors down and up in the model's own log evidence."""


def compare(models: list[EvidenceResults], prior_odds: tuple[float, ...] = ()) -> Comparison:
    """Posterior probabilities of models of the same data (Sec. 4.2); other data are refused."""
    first = models[0]
    for other in models[1:]:
        if other.provenance["data"]["train_sha256"] != first.provenance["data"]["train_sha256"]:
            raise ConfigError(
                f"{first.path} and {other.path} have different training data: evidences can be "
                "compared only for the same examples; give the same data settings to both"
            )
    odds = prior_odds or (1.0,) * len(models)
    if len(odds) != len(models) or not all(math.isfinite(o) and o > 0 for o in odds):
        raise ConfigError(
            f"prior odds must be {len(models)} positive numbers such as 1:1, "
            f"got {':'.join(map(str, odds))}"
        )
    values, errors = (
        np.array(numbers) for numbers in zip(*(model.log_evidence for model in models), strict=True)
    )
    log_odds = np.log(odds)

    def probabilities(log_evidences: np.ndarray) -> np.ndarray:
        weights = log_evidences + log_odds
        return np.asarray(np.exp(weights - logsumexp(weights)))

    shifts = 2 * np.diag(errors)
    return Comparison(
        models,
        [
            Estimate(v - values[0], np.hypot(e, errors[0]))
            for v, e in zip(values, errors, strict=True)
        ],
        probabilities(values),
        np.array([probabilities(values - shift)[i] for i, shift in enumerate(shifts)]),
        np.array([probabilities(values + shift)[i] for i, shift in enumerate(shifts)]),
    )
