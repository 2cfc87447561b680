"""Scores of all replicas of an engine on held-out data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jax import Array

from tempernet.devices.mesh import Layout, compiled, example_specs, over_replicas
from tempernet.errors import ConfigError
from tempernet.model.networks import Network, Weights
from tempernet.model.scores import Score, predict_fn, score_fn
from tempernet.model.target import Batch


class Scorer:
    """Scores by a network of replicas laid out on a mesh; each held-out set is put there once.

    Args:
        network: of the target; None if it has none, and then nothing can be scored.
        layout: of the replicas.
    """

    def __init__(self, network: Network | None, layout: Layout) -> None:
        self._network, self._layout = network, layout
        self._held_out: dict[int, tuple[Batch, Batch]] = {}

    def score(self, weights: Weights, held_out: Batch) -> Score:
        """Loss and accuracy of each replica (leading axis padded to the layout)."""
        return self._score(weights, self._on_devices(held_out))

    def predict(self, weights: Weights, held_out: Batch) -> tuple[Score, Array]:
        """As `score`, and the softmax outputs (replicas, examples with padding, classes)."""
        return self._predict(weights, self._on_devices(held_out))

    @functools.cached_property
    def _score(self) -> Callable[[Weights, Batch], Score]:
        run: Callable[[Weights, Batch], Score] = self._compiled(score_fn)
        return run

    @functools.cached_property
    def _predict(self) -> Callable[[Weights, Batch], tuple[Score, Array]]:
        run: Callable[[Weights, Batch], tuple[Score, Array]] = self._compiled(predict_fn)
        return run

    def _compiled(self, make_fn: Callable[[Network], Callable[..., Any]]) -> Callable[..., Any]:
        if self._network is None:
            raise ConfigError(
                "this target has no network to score; only classifiers have a held-out loss"
            )
        specs = example_specs(Batch(0, 0, 0))
        run: Callable[..., Any] = compiled(
            over_replicas(make_fn(self._network), self._layout, specs)
        )
        return run

    def _on_devices(self, held_out: Batch) -> Batch:
        if id(held_out) not in self._held_out:
            placed: Batch = self._layout.put_data(held_out, example_specs(held_out))
            # The set itself is kept as well, so that its id stays taken.
            self._held_out[id(held_out)] = (held_out, placed)
        return self._held_out[id(held_out)][1]
