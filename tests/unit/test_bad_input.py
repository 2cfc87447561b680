"""Bad input: each mistake has its error, which says what was given and what is allowed."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tempernet
from tempernet import ConfigError, DataError, NumericsError, TempernetError
from tempernet.data import Examples
from tempernet.devices import configure
from tempernet.model.mlp import network_by_name
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.temperatures import beta_path

tn: Any = tempernet
"""The package without its types: these calls are wrong on purpose."""

NET = tn.MLP((3, 2))
LIKE = jax.ShapeDtypeStruct((2,), jnp.float32)
BOX = tn.UniformBox(1.0, LIKE)
ENERGY = tn.Target.from_energy(lambda w: jnp.sum(w**2), BOX)
PATH = tn.temperature_path([1.0, 2.0])


def examples(features: int = 3, label: int = 1, num: int = 5) -> Examples:
    return Examples(np.ones((num, features), np.float32), np.full(num, label, np.int32))


def classifier(network: Any = NET, data: Examples | None = None, prior: Any = None) -> Any:
    return tn.Target.classifier(
        network, examples() if data is None else data, prior or tn.UniformBox.for_network(NET)
    )


def engine(target: Any = ENERGY, **options: Any) -> Any:
    return tn.Engine(target, PATH, **{"devices": 1, "tile": 1, **options})


def bridge(lambdas: Any) -> Any:
    return bridge_path(lambdas, Centre(jnp.zeros(2), 0.0, jnp.ones(2)))


def sample(**options: Any) -> Any:
    return tn.sample(ENERGY, options.pop("temperatures", [1.0, 2.0]), devices=1, **options)


def network_without_names() -> Any:
    return tn.FunctionNetwork(lambda key: {"scale": jnp.ones(3)}, lambda w, x: x).fan_in()


def score_of_an_energy() -> Any:
    one = engine()
    return one.score(one.start(jnp.zeros((2, 2))), tn.hold_out(NET, examples()))


CASES: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    # Paths.
    "temperature negative": (
        lambda: tn.temperature_path([-1.0, 2.0]),
        ConfigError,
        ("temperatures", "-1"),
    ),
    "temperature zero": (
        lambda: tn.temperature_path([0.0, 1.0]),
        ConfigError,
        ("temperatures", "0"),
    ),
    "temperature nan": (
        lambda: tn.temperature_path([1.0, math.nan]),
        ConfigError,
        ("temperatures", "nan"),
    ),
    "temperature nan alone": (
        lambda: tn.temperature_path([math.nan]),
        ConfigError,
        ("temperatures", "nan"),
    ),
    "temperatures falling": (
        lambda: tn.temperature_path([1.0, 0.5]),
        ConfigError,
        ("increasing", "0.5"),
    ),
    "temperatures equal": (
        lambda: tn.temperature_path([1.0, 1.0]),
        ConfigError,
        ("increasing", "1."),
    ),
    "temperatures twice inf": (
        lambda: tn.temperature_path([1.0, math.inf, math.inf]),
        ConfigError,
        ("temperatures", "inf"),
    ),
    "temperatures empty": (lambda: tn.temperature_path([]), ConfigError, ("temperatures", "[]")),
    "temperatures nested": (
        lambda: tn.temperature_path([[1.0, 2.0]]),
        ConfigError,
        ("temperatures",),
    ),
    "temperature alone": (lambda: tn.temperature_path(1.0), ConfigError, ("temperatures",)),
    "temperatures words": (
        lambda: tn.temperature_path(["cold", "hot"]),
        ConfigError,
        ("temperatures", "cold"),
    ),
    "ladder upside down": (
        lambda: tn.geometric_temperatures(2.0, 1.0, 5),
        ConfigError,
        ("low < high", "2.0"),
    ),
    "ladder from zero": (
        lambda: tn.geometric_temperatures(0.0, 1.0, 5),
        ConfigError,
        ("0 < low", "0.0"),
    ),
    "ladder to inf": (
        lambda: tn.geometric_temperatures(1.0, math.inf, 5),
        ConfigError,
        ("< inf", "inf"),
    ),
    "ladder of one": (
        lambda: tn.geometric_temperatures(1.0, 2.0, 1),
        ConfigError,
        ("at least 2 rungs", "1"),
    ),
    "ladder of nan": (
        lambda: tn.geometric_temperatures(math.nan, 2.0, 3),
        ConfigError,
        ("low", "nan"),
    ),
    "beta negative": (lambda: beta_path([-0.1, 1.0]), ConfigError, ("betas", "-0.1")),
    "beta nan": (lambda: beta_path([0.0, math.nan]), ConfigError, ("betas", "nan")),
    "beta inf": (lambda: beta_path([0.0, math.inf]), ConfigError, ("betas", "finite", "inf")),
    "betas falling": (lambda: beta_path([1.0, 0.0]), ConfigError, ("betas", "increasing")),
    "betas empty": (lambda: beta_path([]), ConfigError, ("betas",)),
    "lambda negative": (lambda: bridge([-0.1, 1.0]), ConfigError, ("lambdas", "0..1", "-0.1")),
    "lambda above one": (lambda: bridge([0.0, 1.1]), ConfigError, ("lambdas", "0..1", "1.1")),
    "lambda nan": (lambda: bridge([math.nan]), ConfigError, ("lambdas", "nan")),
    "lambdas falling": (lambda: bridge([1.0, 0.0]), ConfigError, ("lambdas", "increasing")),
    "lambdas empty": (lambda: bridge([]), ConfigError, ("lambdas",)),
    # Networks.
    "MLP of one layer": (lambda: tn.MLP((3,)), ConfigError, ("MLP sizes", "(3,)")),
    "MLP of no layer": (lambda: tn.MLP(()), ConfigError, ("MLP sizes", "()")),
    "MLP with zero units": (lambda: tn.MLP((3, 0, 2)), ConfigError, ("MLP sizes", "positive", "0")),
    "MLP with negative units": (lambda: tn.MLP((3, -4, 2)), ConfigError, ("MLP sizes", "-4")),
    "MLP with half a unit": (lambda: tn.MLP((3, 2.5)), ConfigError, ("MLP sizes", "whole", "2.5")),
    "MLP of a number": (lambda: tn.MLP(3), ConfigError, ("MLP sizes", "3")),
    "MLP output": (
        lambda: tn.MLP((3, 2), output="relu"),
        ConfigError,
        ("linear", "logistic", "relu"),
    ),
    "network by name": (lambda: network_by_name("M4"), ConfigError, ("M3", "256-40-10", "M4")),
    "network by one size": (lambda: network_by_name("256"), ConfigError, ("256-40-10", "'256'")),
    "network by size zero": (lambda: network_by_name("256-0-10"), ConfigError, ("MLP sizes", "0")),
    "fan-in unknown": (network_without_names, ConfigError, ("fan-in", "scale", "fan_ins")),
    # Priors.
    "box factor negative": (
        lambda: tn.UniformBox.for_network(NET, -1.0),
        ConfigError,
        ("factor", "-1.0"),
    ),
    "box factor zero": (
        lambda: tn.UniformBox.for_network(NET, 0.0),
        ConfigError,
        ("factor", "positive", "0.0"),
    ),
    "box factor nan": (
        lambda: tn.UniformBox.for_network(NET, math.nan),
        ConfigError,
        ("factor", "nan"),
    ),
    "box factor inf": (
        lambda: tn.UniformBox.for_network(NET, math.inf),
        ConfigError,
        ("factor", "inf"),
    ),
    "box factors too many": (
        lambda: tn.UniformBox.for_network(NET, (1.0, 2.0, 3.0)),
        ConfigError,
        ("factor", "structure"),
    ),
    "box half_width negative": (
        lambda: tn.UniformBox(-1.0, LIKE),
        ConfigError,
        ("half_width", "-1.0"),
    ),
    "box half_width shape": (
        lambda: tn.UniformBox(np.ones(3), LIKE),
        ConfigError,
        ("half_width", "(3,)", "(2,)"),
    ),
    "box half_width structure": (
        lambda: tn.UniformBox({"a": 1.0}, {"a": LIKE, "b": LIKE}),
        ConfigError,
        ("half_width", "structure"),
    ),
    "std zero": (lambda: tn.Gaussian(0.0, LIKE), ConfigError, ("std", "positive", "0.0")),
    "std nan": (lambda: tn.Gaussian.for_network(NET, math.nan), ConfigError, ("std", "nan")),
    "std word": (lambda: tn.Gaussian(("wide",), (LIKE,)), ConfigError, ("std", "wide")),
    # Targets.
    "label too large": (
        lambda: classifier(data=examples(label=2)),
        DataError,
        ("labels", "0..1", "got 2"),
    ),
    "too few features": (
        lambda: classifier(data=examples(features=2)),
        ConfigError,
        ("cannot read", "(2,)"),
    ),
    "too many features": (
        lambda: classifier(data=examples(features=4)),
        ConfigError,
        ("cannot read", "(4,)"),
    ),
    "no examples": (lambda: classifier(data=examples(num=0)), DataError, ("no examples",)),
    "narrow prior": (
        lambda: classifier(prior=tn.UniformBox.for_network(NET, 0.5)),
        ConfigError,
        ("prior", "narrower", "initial weights"),
    ),
    "prior of a deeper network": (
        lambda: classifier(prior=tn.UniformBox.for_network(tn.MLP((3, 4, 2)))),
        ConfigError,
        ("prior",),
    ),
    "prior of a wider network": (
        lambda: classifier(prior=tn.UniformBox.for_network(tn.MLP((3, 5)))),
        ConfigError,
        ("prior",),
    ),
    "gaussian of a wider network": (
        lambda: classifier(prior=tn.Gaussian.for_network(tn.MLP((3, 5)))),
        ConfigError,
        ("prior",),
    ),
    "scores of the wrong shape": (
        lambda: classifier(tn.FunctionNetwork(NET.init, lambda w, x: x.sum(axis=1))),
        ConfigError,
        ("(examples, classes)", "(5,)"),
    ),
    "example axis": (
        lambda: classifier(tn.FunctionNetwork(NET.init, NET.logits, example_axis=1)),
        ConfigError,
        ("example_axis", "1"),
    ),
    "piece of nothing": (
        lambda: tn.hold_out(NET, examples(), piece=0),
        ConfigError,
        ("piece", "0"),
    ),
    "held-out label": (lambda: tn.hold_out(NET, examples(label=3)), DataError, ("labels", "got 3")),
    "held-out features": (
        lambda: tn.hold_out(NET, examples(features=9)),
        ConfigError,
        ("cannot read", "(9,)"),
    ),
    # Settings.
    "num_steps zero": (
        lambda: tn.Dynamics(num_steps=0),
        ConfigError,
        ("num_steps", "at least 1", "0"),
    ),
    "num_steps half": (lambda: tn.Dynamics(num_steps=1.5), ConfigError, ("num_steps", "1.5")),
    "num_steps nan": (lambda: tn.Dynamics(num_steps=math.nan), ConfigError, ("num_steps", "nan")),
    "num_exchanges": (
        lambda: engine(num_exchanges=0),
        ConfigError,
        ("num_exchanges", "at least 1", "0"),
    ),
    "num_trajectories": (
        lambda: tn.Dynamics(num_trajectories=-3),
        ConfigError,
        ("num_trajectories", "-3"),
    ),
    "num_trajectories half": (
        lambda: tn.Dynamics(num_trajectories=2.5),
        ConfigError,
        ("num_trajectories", "2.5"),
    ),
    "walls": (lambda: tn.Dynamics(walls="bounce"), ConfigError, ("reflect", "reject", "bounce")),
    "jitter negative": (lambda: tn.Dynamics(jitter=-0.1), ConfigError, ("jitter", "-0.1")),
    "jitter one": (lambda: tn.Dynamics(jitter=1.0), ConfigError, ("jitter", "[0, 1)", "1.0")),
    "jitter nan": (lambda: tn.Dynamics(jitter=math.nan), ConfigError, ("jitter", "nan")),
    "method": (lambda: tn.Minimiser(method="newton"), ConfigError, ("fire", "alg3", "newton")),
    "time_step zero": (
        lambda: tn.Minimiser(time_step=0.0),
        ConfigError,
        ("time_step", "positive", "0.0"),
    ),
    "time_step nan": (lambda: tn.Minimiser(time_step=math.nan), ConfigError, ("time_step", "nan")),
    "time_step inf": (lambda: tn.Minimiser(time_step=math.inf), ConfigError, ("time_step", "inf")),
    "max_gradients": (lambda: tn.Minimiser(max_gradients=0), ConfigError, ("max_gradients", "0")),
    "max_gradients nan": (
        lambda: tn.Minimiser(max_gradients=math.nan),
        ConfigError,
        ("max_gradients", "nan"),
    ),
    "tolerance nan": (lambda: tn.Minimiser(tolerance=math.nan), ConfigError, ("tolerance", "nan")),
    "tuning upside down": (
        lambda: tn.Tuning(low=0.7, high=0.6),
        ConfigError,
        ("low < high", "0.7"),
    ),
    "tuning low": (lambda: tn.Tuning(low=0.0), ConfigError, ("0 < low", "0.0")),
    "tuning high": (lambda: tn.Tuning(high=1.0), ConfigError, ("high < 1", "1.0")),
    "tuning nan": (lambda: tn.Tuning(low=math.nan), ConfigError, ("low", "nan")),
    "tuning search": (
        lambda: tn.Tuning(search_trajectories=0),
        ConfigError,
        ("search_trajectories", "0"),
    ),
    "tuning check": (
        lambda: tn.Tuning(check_trajectories=0),
        ConfigError,
        ("check_trajectories", "0"),
    ),
    "tuning checks": (lambda: tn.Tuning(max_checks=0), ConfigError, ("max_checks", "0")),
    "tuning checks half": (lambda: tn.Tuning(max_checks=1.5), ConfigError, ("max_checks", "1.5")),
    # Engine.
    "copies zero": (lambda: engine(copies=0), ConfigError, ("copies", "at least 1", "0")),
    "copies half": (lambda: engine(copies=1.5), ConfigError, ("copies", "1.5")),
    "exchange": (
        lambda: engine(exchange="all"),
        ConfigError,
        ("exchange", "even-odd", "random-pairs", "all"),
    ),
    "tile": (lambda: engine(tile=0), ConfigError, ("tile", "0")),
    "tile half": (lambda: engine(tile=1.5), ConfigError, ("tile", "1.5")),
    "masses word": (lambda: engine(masses="heavy"), ConfigError, ("masses", "fan-in", "heavy")),
    "masses fan-in of an energy": (
        lambda: engine(masses="fan-in"),
        ConfigError,
        ("masses", "network"),
    ),
    "masses negative": (lambda: engine(masses=-1.0), ConfigError, ("masses", "positive", "-1.0")),
    "masses zero": (lambda: engine(masses=0.0), ConfigError, ("masses", "positive", "0.0")),
    "masses structure": (lambda: engine(masses={"a": 1.0}), ConfigError, ("masses", "structure")),
    "devices zero": (lambda: engine(devices=0), ConfigError, ("devices", "got 0")),
    "devices too many": (
        lambda: engine(devices=99),
        ConfigError,
        ("devices", "1..8", "99", "TEMPERNET_DEVICES"),
    ),
    "data_devices zero": (lambda: engine(data_devices=0), ConfigError, ("data_devices", "0")),
    "data_devices uneven": (
        lambda: engine(classifier(), devices=4, data_devices=3),
        ConfigError,
        ("data_devices", "divide", "3"),
    ),
    "data_devices without data": (
        lambda: engine(devices=2, data_devices=2),
        ConfigError,
        ("data_devices", "no examples"),
    ),
    "reproducible and data_devices": (
        lambda: engine(classifier(), devices=2, data_devices=2, reproducible=True),
        ConfigError,
        ("reproducible", "data_devices 2"),
    ),
    "reproducible and tile": (
        lambda: engine(tile=2, reproducible=True),
        ConfigError,
        ("reproducible", "tile 2"),
    ),
    "step size zero": (lambda: engine().rungs(0.0), ConfigError, ("step sizes", "positive", "0.0")),
    "step size negative": (
        lambda: engine().rungs([0.1, -0.1]),
        ConfigError,
        ("step sizes", "-0.1"),
    ),
    "step size nan": (lambda: engine().rungs(math.nan), ConfigError, ("step sizes", "nan")),
    "step size inf": (
        lambda: engine().rungs([0.1, math.inf]),
        ConfigError,
        ("step sizes", "finite", "inf"),
    ),
    "step sizes of three rungs": (
        lambda: engine().rungs([0.1, 0.1, 0.1]),
        ConfigError,
        ("step sizes", "2"),
    ),
    "start outside": (
        lambda: engine().start(jnp.array([[0.0, 0.0], [0.0, 1.5]])),
        ConfigError,
        ("1 of 2", "replica 1", "outside the prior's box"),
    ),
    "start nan": (
        lambda: engine().start(jnp.full((2, 2), jnp.nan)),
        ConfigError,
        ("2 of 2", "replica 0"),
    ),
    "start with too few replicas": (
        lambda: engine().start(jnp.zeros((1, 2))),
        ConfigError,
        ("1", "2"),
    ),
    "start with energy nan": (
        lambda: engine(tn.Target.from_energy(lambda w: jnp.log(w[0]), BOX)).start(
            jnp.array([[0.5, 0.0], [-0.5, 0.0]])
        ),
        NumericsError,
        ("1 of 2", "replica 1", "energy", "not finite"),
    ),
    "score of an energy": (score_of_an_energy, ConfigError, ("no network",)),
    # The front door.
    "sample rounds": (lambda: sample(rounds=0), ConfigError, ("rounds", "at least 1", "0")),
    "sample score_every": (lambda: sample(score_every=0), ConfigError, ("score_every", "0")),
    "sample burn_in": (lambda: sample(burn_in=-1), ConfigError, ("burn_in", "-1")),
    "sample start": (
        lambda: sample(start="cold"),
        ConfigError,
        ("start", "apart", "minimised", "cold"),
    ),
    "sample copies": (lambda: sample(copies=0), ConfigError, ("copies", "0")),
    "sample temperatures": (
        lambda: sample(temperatures=[2.0, 1.0]),
        ConfigError,
        ("temperatures", "increasing"),
    ),
    "sample exchange": (lambda: sample(exchange="all"), ConfigError, ("exchange", "all")),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_with_its_own_words(name: str) -> None:
    call, error, words = CASES[name]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, TempernetError)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert "\n" not in message.strip() or "structure" in words, message


@pytest.mark.parametrize("asked", ["0", "9", "two", "-1", "1.5"])
def test_a_number_of_devices_in_the_environment_is_checked(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPERNET_DEVICES", asked)
    with pytest.raises(ConfigError, match="TEMPERNET_DEVICES") as caught:
        configure()
    assert repr(asked) in str(caught.value)


def test_labels_at_both_ends_of_the_classes_are_fine() -> None:
    for label in (0, 1):
        assert classifier(data=examples(label=label)).num_examples == 5


def test_a_prior_as_wide_as_the_initial_weights_is_fine() -> None:
    assert classifier(prior=tn.UniformBox.for_network(NET, 1.0)).num_examples == 5
