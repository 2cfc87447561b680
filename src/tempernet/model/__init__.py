"""What is sampled: networks, priors, the target density, and the scores of a network."""

from tempernet.model.mlp import M1, M3, MLP, M3star, network_by_name
from tempernet.model.networks import FunctionNetwork, Network, Weights, from_equinox, template
from tempernet.model.prediction import Prediction, predict, scores
from tempernet.model.priors import Gaussian, Prior, UniformBox
from tempernet.model.scores import EnsembleScore, Score, ensemble_score, hold_out
from tempernet.model.target import Batch, Target, uninformed_loss

__all__ = [
    "M1",
    "M3",
    "MLP",
    "Batch",
    "EnsembleScore",
    "FunctionNetwork",
    "Gaussian",
    "M3star",
    "Network",
    "Prediction",
    "Prior",
    "Score",
    "Target",
    "UniformBox",
    "Weights",
    "ensemble_score",
    "from_equinox",
    "hold_out",
    "network_by_name",
    "predict",
    "scores",
    "template",
    "uninformed_loss",
]
