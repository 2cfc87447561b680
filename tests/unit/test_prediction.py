"""The ensemble's prediction against averages by hand, and new data that cannot be used."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tempernet import MLP, DataError, FunctionNetwork, NumericsError
from tempernet.data import Examples, Source, mnist16, read_inputs
from tempernet.model.prediction import predict, scores

NETWORK = MLP((6, 5, 3))
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(1234, 6)).astype(np.float32)
LABELS = RNG.integers(3, size=1234).astype(np.int32)
MEMBERS = jax.tree.map(
    lambda leaf: 3 * np.asarray(leaf),
    jax.vmap(NETWORK.init)(jax.random.split(jax.random.key(1), 7)),
)


def by_hand(member: int) -> np.ndarray:
    """Softmax of one member in double precision: (examples, classes)."""
    first, second = (
        jax.tree.map(lambda leaf: np.asarray(leaf[member], np.float64), layer) for layer in MEMBERS
    )
    hidden = 1 / (1 + np.exp(-(INPUTS @ first.weight.T + first.bias)))
    odds = np.exp(hidden @ second.weight.T + second.bias)
    return odds / odds.sum(axis=1, keepdims=True)


def test_it_is_the_mean_of_the_softmax_by_hand() -> None:
    found = predict(NETWORK, MEMBERS, INPUTS)
    hand = np.mean([by_hand(member) for member in range(7)], axis=0)
    assert found.members == 7
    np.testing.assert_allclose(found.probabilities, hand, atol=1e-6)
    # Averaging scores instead, or leaving a member out, is something else.
    of_means = np.exp(np.mean([np.log(by_hand(member)) for member in range(7)], axis=0))
    assert np.abs(of_means / of_means.sum(axis=1, keepdims=True) - hand).max() > 1e-3
    assert np.abs(np.mean([by_hand(member) for member in range(6)], axis=0) - hand).max() > 1e-3


def test_score_of_an_ensemble_and_of_its_members() -> None:
    found = predict(NETWORK, MEMBERS, INPUTS)
    together = found.score(LABELS)
    rows = np.arange(len(LABELS))
    assert together.loss == pytest.approx(-np.log(found.probabilities[rows, LABELS]).mean())
    assert together.accuracy == np.mean(found.classes == LABELS)
    alone = scores(NETWORK, MEMBERS, Examples(INPUTS, LABELS))
    hand = [-np.log(by_hand(member)[rows, LABELS]).mean() for member in range(7)]
    np.testing.assert_allclose(alone.loss, hand, rtol=1e-5)
    np.testing.assert_allclose(
        alone.accuracy, [np.mean(by_hand(m).argmax(axis=1) == LABELS) for m in range(7)]
    )
    assert together.loss <= alone.loss.mean()


def test_any_network_predicts() -> None:
    """Examples first, and weights in a dict."""
    network = FunctionNetwork(
        lambda key: {"weight": jax.random.normal(key, (3, 6))},
        lambda w, x: x @ w["weight"].T,
        {"weight": 6},
    )
    weights = {"weight": RNG.normal(size=(4, 3, 6)).astype(np.float32)}
    odds = np.exp(np.einsum("ni,mqi->mnq", INPUTS, weights["weight"]))
    hand = (odds / odds.sum(axis=2, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(predict(network, weights, INPUTS).probabilities, hand, atol=1e-5)


def test_a_table_has_a_line_an_example() -> None:
    found = predict(NETWORK, MEMBERS, INPUTS)
    rows = list(csv.DictReader(io.StringIO(found.table(LABELS))))
    assert list(rows[0]) == ["index", "p_0", "p_1", "p_2", "predicted", "label"]
    assert [int(row["index"]) for row in rows] == list(range(1234))
    assert [int(row["label"]) for row in rows] == LABELS.tolist()
    np.testing.assert_allclose(
        [float(row["p_1"]) for row in rows], found.probabilities[:, 1], rtol=1e-6
    )
    assert [int(row["predicted"]) for row in rows] == found.classes.tolist()
    assert "label" not in found.table().splitlines()[0]


def test_weights_that_overflow_are_an_error() -> None:
    broken = jax.tree.map(np.array, MEMBERS)
    broken[1].bias[3, 0] = np.nan
    with pytest.raises(NumericsError, match="not a number"):
        predict(NETWORK, broken, INPUTS)


def images(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "new.npz", **arrays)
    return folder / "new.npz"


def test_new_images_are_treated_as_those_of_the_training(tmp_path: Path) -> None:
    source = mnist16().resized(8)
    data = source.split(50)
    x, y = read_inputs(
        images(tmp_path, x=mnist16().x_train[data.indices], y=data.train.y), data, size=8
    )
    np.testing.assert_array_equal(x, data.train.x)
    np.testing.assert_array_equal(y, data.train.y)
    unlabelled, nothing = read_inputs(images(tmp_path, x=source.x_test[:3]), data)
    np.testing.assert_array_equal(unlabelled, data.test.x[:3])
    assert nothing is None


def test_own_data_are_normalised_by_the_training_examples(tmp_path: Path) -> None:
    """By their mean and spread, not by those of the new ones."""
    x = RNG.normal(5.0, 2.0, size=(20, 4))
    data = Source("own", x, np.arange(20) % 2, x[:0], np.zeros(0, int), 2).split()
    found, _ = read_inputs(images(tmp_path, x=x[:3] + 100), data)
    np.testing.assert_allclose(found, (x[:3] + 100 - x.mean()) / x.std(), rtol=1e-5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 4, 4))}, r"shape \(4, 4\); the run was trained on \(16, 16\)"),
        ({"x": np.zeros((3, 256))}, "reshape or resize"),
        ({"x": np.zeros((0, 16, 16))}, "no examples"),
        ({"x": np.full((3, 16, 16), np.nan)}, "nan"),
        ({"x": np.zeros((3, 16, 16), int)}, "dtype"),
        (
            {"x": np.zeros((3, 16, 16)), "y": np.array([0, 1, 10])},
            r"y\[2\] is 10; labels must be integers in 0..9",
        ),
        ({"x": np.zeros((3, 16, 16)), "y": np.array([0, 1, -1])}, "labels must be integers"),
        ({"x": np.zeros((3, 16, 16)), "y": np.array([0, 1])}, "3 examples and y has 2 labels"),
        ({"x": np.zeros((3, 16, 16)), "y": np.zeros(3)}, "labels must be integers"),
        ({"y": np.zeros(3, int)}, "lacks the key 'x'; allowed are x, and optionally y"),
        ({"x_test": np.zeros((3, 16, 16))}, "unknown key 'x_test'"),
        ({}, "lacks the key 'x'"),
    ],
)
def test_new_data_that_cannot_be_used(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_inputs(images(tmp_path, **arrays), mnist16().split(50))


def test_files_that_are_none(tmp_path: Path) -> None:
    data = mnist16().split(50)
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(DataError, match="not an npz file"):
        read_inputs(tmp_path / "empty.npz", data)
    with pytest.raises(DataError, match="no such file"):
        read_inputs(tmp_path / "none.npz", data)
