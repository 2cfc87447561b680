"""Arguments of the wrong kind are refused in a line: what was given, is allowed, and to be done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tempernet
from tempernet import ConfigError, DataError
from tempernet.data import Examples
from tempernet.errors import check_count, check_type, shown

tn: Any = tempernet
"""The package without its types: these calls are wrong on purpose."""

NET = tn.MLP((3, 2))
LIKE = jax.ShapeDtypeStruct((2,), jnp.float32)
BOX = tn.UniformBox(1.0, LIKE)
EXAMPLES = Examples(np.ones((5, 3), np.float32), np.ones(5, np.int32))
TARGET = tn.Target.classifier(NET, EXAMPLES, tn.UniformBox.for_network(NET))


class Blind:
    """A network but for its `logits`."""

    example_axis = 0

    def init(self, key: Any) -> Any:
        return jnp.zeros(3)

    def fan_in(self) -> Any:
        return 3


def energy(weights: Any) -> Any:
    return jnp.sum(weights**2)


CASES: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    "hold out of a target": (
        lambda: tn.hold_out(TARGET, EXAMPLES),
        ConfigError,
        ("network must be", "got a Target", "FunctionNetwork"),
    ),
    "hold out of arrays": (
        lambda: tn.hold_out(NET, (EXAMPLES.x, EXAMPLES.y)),
        ConfigError,
        ("examples must be Examples", "tuple", "data.train"),
    ),
    "hold out of a data set": (
        lambda: tn.hold_out(NET, tn.mnist16().split(10)),
        ConfigError,
        ("examples must be Examples", "a Dataset", "data.train"),
    ),
    "hold out in halves": (lambda: tn.hold_out(NET, EXAMPLES, 0.5), ConfigError, ("piece", "0.5")),
    "classifier of a class": (
        lambda: tn.Target.classifier(tn.MLP, EXAMPLES, BOX),
        ConfigError,
        ("network must be", "the class MLP", "tempernet.M3"),
    ),
    "classifier of a name": (
        lambda: tn.Target.classifier("M3", EXAMPLES, BOX),
        ConfigError,
        ("network must be", "'M3'"),
    ),
    "classifier of half a network": (
        lambda: tn.Target.classifier(Blind(), EXAMPLES, BOX),
        ConfigError,
        ("with init, logits, fan_in", "a Blind"),
    ),
    "classifier without examples": (
        lambda: tn.Target.classifier(NET, None, BOX),
        ConfigError,
        ("examples must be Examples", "None"),
    ),
    "classifier with a number as prior": (
        lambda: tn.Target.classifier(NET, EXAMPLES, 50.0),
        ConfigError,
        ("prior must be a UniformBox or a Gaussian", "50.0", "for_network"),
    ),
    "energy that is a number": (
        lambda: tn.Target.from_energy(3.0, BOX),
        ConfigError,
        ("energy_fn must be a function", "3.0"),
    ),
    "energy without a prior": (
        lambda: tn.Target.from_energy(energy, None),
        ConfigError,
        ("prior must be", "None"),
    ),
    "energy with a prior's class": (
        lambda: tn.Target.from_energy(energy, tn.Gaussian),
        ConfigError,
        ("prior must be", "the class Gaussian"),
    ),
    "energy with weights as start": (
        lambda: tn.Target.from_energy(energy, BOX, np.zeros(2)),
        ConfigError,
        ("init_fn must be a function of a key", "an array of shape (2,)"),
    ),
    "box for a target": (
        lambda: tn.UniformBox.for_network(TARGET),
        ConfigError,
        ("network must be", "a Target"),
    ),
    "box of words": (lambda: tn.UniformBox("wide", LIKE), ConfigError, ("half_width", "'wide'")),
    "box over a number of weights": (
        lambda: tn.UniformBox(1.0, 5),
        ConfigError,
        ("like, the shapes of the weights", "pytree of arrays", "got 5", "for_network"),
    ),
    "box over nothing": (
        lambda: tn.UniformBox(1.0, None),
        ConfigError,
        ("pytree of arrays", "none"),
    ),
    "Gaussian for a name": (
        lambda: tn.Gaussian.for_network("M3"),
        ConfigError,
        ("network must be", "'M3'"),
    ),
    "Gaussian over words": (
        lambda: tn.Gaussian(1.0, {"weight": "three"}),
        ConfigError,
        ("pytree of arrays", "'three'"),
    ),
    "MLP of words": (lambda: tn.MLP("M3"), ConfigError, ("MLP sizes", "('M', '3')", "256, 40, 10")),
    "MLP of nothing": (lambda: tn.MLP(None), ConfigError, ("MLP sizes", "None")),
    "MLP of truths": (lambda: tn.MLP((3, True)), ConfigError, ("MLP sizes", "True")),
    "functions that are none": (
        lambda: tn.FunctionNetwork(np.zeros(3), lambda w, x: x),
        ConfigError,
        ("init_fn of FunctionNetwork must be a function", "an array of shape (3,)"),
    ),
    "scores that are no function": (
        lambda: tn.FunctionNetwork(lambda key: 0, None),
        ConfigError,
        ("logits_fn of FunctionNetwork must be a function", "None"),
    ),
    "examples in the middle": (
        lambda: tn.FunctionNetwork(lambda key: 0, lambda w, x: x, None, 1),
        ConfigError,
        ("example_axis", "0 or -1", "got 1"),
    ),
    "an Equinox module itself": (
        lambda: tn.from_equinox(3),
        ConfigError,
        ("make_module must be a function of a key", "3", "lambda key"),
    ),
    "a function that builds no module": (
        lambda: tn.from_equinox(lambda key: jnp.zeros(3)),
        ConfigError,
        ("what make_module returns must be an Equinox module", "of shape (3,)"),
    ),
    "examples of a list": (
        lambda: Examples([[1.0]], np.zeros(1, np.int32)),  # type: ignore[arg-type]
        DataError,
        ("x of Examples must be a float32 array", "list", "convert"),
    ),
    "examples of doubles": (
        lambda: Examples(np.zeros((1, 3)), np.zeros(1, np.int32)),  # type: ignore[arg-type]
        DataError,
        ("x of Examples", "float64", "convert"),
    ),
    "examples without labels": (
        lambda: Examples(np.zeros((1, 3), np.float32), None),  # type: ignore[arg-type]
        DataError,
        ("y of Examples", "NoneType"),
    ),
    "a time step of words": (
        lambda: tn.Minimiser(time_step="small"),
        ConfigError,
        ("time_step", "positive", "'small'"),
    ),
    "annealing of an energy function": (
        lambda: tn.anneal(energy, energy),
        ConfigError,
        ("target must be a Target", "a function", "Target.classifier"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_is_refused_in_one_line(name: str) -> None:
    if "Equinox" in name or "module" in name:
        pytest.importorskip("equinox")
    call, error, words = CASES[name]
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert "\n" not in message and len(message) < 300, message


def test_without_equinox_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "equinox", None)
    with pytest.raises(ConfigError, match=r"needs Equinox.*pip install 'tempernet\[equinox\]'"):
        tn.from_equinox(lambda key: None)


def test_a_complaint_says_what_was_given_what_is_allowed_and_what_to_do() -> None:
    check_type("size", 3, int, "a whole number")
    with pytest.raises(ConfigError) as caught:
        check_type("size", "three", (int, float), "a number", "write it in digits")
    assert str(caught.value) == "size must be a number, got 'three': write it in digits"
    with pytest.raises(ConfigError) as caught:
        check_count("size", [1] * 100)
    assert str(caught.value) == "size must be a whole number, at least 1, got a list"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (1.5, "1.5"),
        (np.float32(1.5), "np.float32(1.5)"),
        ("x" * 100, "'" + "x" * 56 + "..."),
        ([1, 2], "[1, 2]"),
        (np.zeros((2, 3)), "an array of shape (2, 3)"),
        (int, "the class int"),
        (EXAMPLES, "an Examples"),
        (len, "a builtin_function_or_method"),
    ],
    ids=str,
)
def test_values_are_shown_in_short(value: object, words: str) -> None:
    assert shown(value) == words
