"""What the engine tells of its replicas besides energies: predictions, mean square weights, rungs
that move.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tempernet import (
    MLP,
    ConfigError,
    Dynamics,
    Engine,
    Gaussian,
    Target,
    UniformBox,
    hold_out,
    temperature_path,
)
from tempernet.data import Examples

NETWORK = MLP((3, 4, 2))


def engine(prior: UniformBox | Gaussian | None = None) -> Engine:
    rng = np.random.default_rng(0)
    train = Examples(
        rng.normal(size=(10, 3)).astype(np.float32), rng.integers(2, size=10).astype(np.int32)
    )
    target = Target.classifier(NETWORK, train, prior or UniformBox.for_network(NETWORK, 20.0))
    return Engine(
        target, temperature_path([0.5, 1.0, 2.0]), copies=2, dynamics=Dynamics(5, 2), tile=2
    )


def test_predictions_are_softmax_outputs_in_the_order_of_rungs() -> None:
    made = engine()
    rng = np.random.default_rng(1)
    # Seven examples in pieces of three: the padding must not show.
    examples = Examples(
        rng.normal(size=(7, 3)).astype(np.float32), rng.integers(2, size=7).astype(np.int32)
    )
    held_out = hold_out(NETWORK, examples, piece=3)
    state = made.start(made.prior_weights())
    for _ in range(6):
        state, _ = made.round(state, made.rungs(0.3))
    assert (np.asarray(state.replica_at) != np.arange(3)).any(), (
        "no swap: the order of rungs is not tested"
    )
    score, probabilities = made.predict(state, held_out)
    plain = made.score(state, held_out)
    np.testing.assert_allclose(score.loss, plain.loss, rtol=1e-6)
    np.testing.assert_allclose(score.accuracy, plain.accuracy, rtol=1e-6)
    # On the host: an operation on arrays that are spread over devices is one more program that
    # waits there.
    assert all(
        isinstance(leaf, np.ndarray)
        for leaf in jax.tree.leaves((score, plain, made.mean_squares(state)))
    )
    assert probabilities.shape == (2, 3, 7, 2)
    for rung in range(3):
        weights = made.weights_at(state, rung)
        for copy in range(2):
            one = jax.tree.map(lambda leaf, copy=copy: leaf[copy], weights)
            by_hand = jax.nn.softmax(NETWORK.logits(one, jax.numpy.asarray(examples.x.T)), axis=0).T
            np.testing.assert_allclose(probabilities[copy, rung], by_hand, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "prior", [UniformBox.for_network(NETWORK, 20.0), Gaussian.for_network(NETWORK, 0.5)]
)
def test_mean_squares_are_those_of_each_layer_in_units_of_the_prior(
    prior: UniformBox | Gaussian,
) -> None:
    made = engine(prior)
    state = made.start(made.prior_weights())
    squares = np.asarray(made.mean_squares(state))
    assert squares.shape == (2, 3, 2)
    weights = made.weights_at(state, 1)
    for number, (layer, scale) in enumerate(zip(weights, prior.scale, strict=True)):
        parts = [
            np.square(np.asarray(w) / s).reshape(2, -1) for w, s in zip(layer, scale, strict=True)
        ]
        np.testing.assert_allclose(
            squares[:, 1, number], np.concatenate(parts, axis=1).mean(axis=1), rtol=1e-5
        )


def test_draws_of_the_prior_have_its_mean_square() -> None:
    for prior in (UniformBox.for_network(NETWORK, 20.0), Gaussian.for_network(NETWORK, 0.5)):
        keys = jax.random.split(jax.random.key(0), 4000)
        draws = jax.vmap(prior.draw)(keys)
        for w, s in zip(jax.tree.leaves(draws), jax.tree.leaves(prior.scale), strict=True):
            assert np.mean(np.square(w / s)) == pytest.approx(prior.mean_square, rel=0.1)


def test_rungs_may_move_but_not_change_in_number() -> None:
    made = engine()
    moved = made.rungs(0.1, temperature_path([0.5, 0.9, 2.0]))
    np.testing.assert_allclose(moved.coefficients[:, 0], [2.0, 1 / 0.9, 0.5], rtol=1e-6)
    with pytest.raises(ConfigError, match="3 rungs cannot become one of 2"):
        made.rungs(0.1, temperature_path([0.5, 2.0]))
