"""Settings: typed, frozen, read from TOML and `--set`, and written back out whole.

A run is its `config.toml`. What is not said keeps its default; what is unknown or ill-typed is refused with the
nearest valid name. A protocol names how the sampling is done: `default` is free, `paper` fixes what Secs. 3.3.1 and
3.3.2 print, and a setting that contradicts it is refused, so that a result called `paper` is one.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tempernet.errors import ConfigError

Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class Data(_Table):
    """Which examples train, and which are held out."""

    source: str = Field(default="mnist16", description='"mnist16" (embedded), an npz file, or a folder of idx files')
    size: NotNegative = Field(default=0, description="resize images to this side; 0 keeps them")
    n_train: NotNegative = Field(default=500, description="training examples, as many of each class; 0 takes all")
    indices: str = Field(default="", description="file of positions in the training set, instead of n_train")
    seed: NotNegative = Field(default=0, description="which subset: the same n_train and seed are the same images")
    n_validation: NotNegative = Field(default=5000, description="examples held out to choose the best temperature by")
    scored: Count = Field(
        default=2000, description="of validation and of test examples, how many are scored during the run"
    )


class Network(_Table):
    """The network."""

    name: str = Field(
        default="M3", description="M1, M3, M3star, or layer sizes such as 64-32-32-5 with logistic hidden units"
    )
    output: Literal["linear", "logistic"] = Field(
        default="linear", description="logistic squashes the last layer too, as M3star has it"
    )


class Prior(_Table):
    """The prior of the weights."""

    kind: Literal["box", "gaussian"] = Field(default="box", description="uniform in a box (Eq. 11), or normal")
    factor: Positive = Field(
        default=50.0, description="box: sigma_i = 2 factor / sqrt(k_i), k the fan-in with the bias"
    )
    std: Positive = Field(default=1.0, description="gaussian: standard deviation of every weight")


class Ladder(_Table):
    """The temperatures."""

    kind: Literal["adaptive", "geometric", "listed"] = Field(
        default="adaptive", description="adaptive moves the rungs during burn-in until neighbours swap equally often"
    )
    low: Positive = Field(default=0.01, description="lowest temperature")
    high: Positive = Field(default=100.0, description="highest temperature")
    num: Annotated[int, Field(ge=2)] = Field(default=56, description="number of temperatures N_T")
    temperatures: tuple[float, ...] = Field(
        default=(), description="listed: the temperatures, increasing; inf is the prior"
    )


class Dynamics(_Table):
    """A round: trajectories of every replica, then exchange."""

    num_steps: Count = Field(default=100, description="Verlet steps of a trajectory, L")
    num_trajectories: Count = Field(default=10, description="trajectories between exchanges, N_traj")
    walls: Literal["reflect", "reject"] = Field(
        default="reflect", description="what the walls of a box do to a trajectory"
    )
    jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.1, description="step size varies by this between trajectories"
    )
    lengths: Literal["steps", "distance"] = Field(
        default="distance",
        description="what trajectories of all rungs have in common; with distance, num_steps is their mean",
    )
    exchange: Literal["even-odd", "random-pairs", "none"] = Field(
        default="even-odd", description="which neighbours try to swap"
    )
    masses: Literal["unit", "fan-in"] = Field(
        default="fan-in",
        description="masses of the weights: 1, or m_i = k_i: all layers then move equally far for their box",
    )


class Start(_Table):
    """Where the replicas begin."""

    weights: Literal["apart", "minimised", "prior"] = Field(
        default="apart",
        description="apart: every second copy from minimised weights, the others from draws of the prior",
    )
    minimiser: Literal["fire", "alg3"] = Field(default="fire", description="FIRE, or Alg. 3 as printed")
    max_gradients: Count = Field(default=1000, description="budget of a minimisation")


class Tune(_Table):
    """Step sizes."""

    low: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.6, description="acceptance wanted, at least")
    high: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.7, description="and at most")


class CommonRun(_Table):
    """What all tasks can be told about how much, and where."""

    copies: Count = Field(default=4, description="independent copies of the whole ladder")
    seed: int = Field(
        default=-1, ge=-1, le=2**32 - 1, description="seed of the sampling; -1 draws one and writes it down"
    )
    devices: NotNegative = Field(default=0, description="devices; 0 takes all cores")
    data_devices: Count = Field(default=1, description="devices that split the examples of a replica")
    reproducible: bool = Field(default=False, description="same bits on any number of devices, a fifth slower")


class LadderRun(CommonRun):
    """How much, and where."""

    burn_in: NotNegative = Field(default=100, description="rounds before the samples count")
    rounds: Count = Field(default=200, description="rounds that count")


class Run(LadderRun):
    """How much, and where."""

    score_every: Count = Field(default=5, description="rounds between scores on held-out examples")
    keep: NotNegative = Field(default=5, description="how often weights are kept and the whole test set is scored")
    keep_temperatures: tuple[Positive, ...] = Field(
        default=(), description="keep weights of the nearest rungs only; empty: all"
    )


class Output(_Table):
    """What is written, and how often. These may change when a run is resumed."""

    checkpoint_seconds: Positive = Field(default=60.0, description="time between checkpoints")
    figures: bool = Field(default=True, description="draw figures at the end")


class Cooling(_Table):
    """The temperatures of a cooling, what is done at each, and when it stops."""

    high: Positive = Field(default=100.0, description="highest temperature, where it begins")
    low: Positive = Field(default=0.1, description="lowest temperature, where it ends if nothing stops it")
    num: Annotated[int, Field(ge=2)] = Field(default=25, description="number of temperatures, a constant factor apart")
    burn_in: Count = Field(default=5, description="rounds at each before those that count; they tune the step size")
    rounds: Count = Field(default=10, description="rounds at each that count")
    score_every: Count = Field(default=1, description="rounds between scores on validation examples")
    patience: Count = Field(
        default=3, description="temperatures in a row with a risen validation loss after which it stops"
    )
    optimised: str = Field(
        default="", description="folder of an optimise run to compare with; empty: optimise as many as there are copies"
    )


class AnnealStart(Start):
    """Where the replicas begin; minimisation is also what the result is compared with."""

    weights: Literal["apart", "minimised", "prior"] = Field(
        default="prior", description="draws of the prior are at home at high temperature"
    )


class AnnealRun(CommonRun):
    """How much, and where."""

    copies: Annotated[int, Field(ge=2)] = Field(default=8, description="replicas that cool side by side")


class Optimise(_Table):
    """Which minimisation, and how many starts."""

    keep: Count = Field(default=100, description="stop once so many starts have E = 0, else keep the best so many")
    starts: Count = Field(default=4000, description="starts at most")
    minimiser: Literal["fire", "alg3"] = Field(default="fire", description="FIRE, or Alg. 3 as printed")
    max_gradients: Count = Field(default=2000, description="budget of a start")
    time_step: Positive = Field(default=0.01, description="time step to begin with")
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="energy that counts as E = 0; 0 is reached in float32"
    )


class OptimiseRun(CommonRun):
    """How much, and where."""

    copies: Count = Field(default=50, description="starts that are minimised at once; the result does not depend on it")


class TaskSettings(_Table):
    """What all tasks have in common."""

    task: str = Field(default="", description="what the settings are for")
    protocol: Literal["default", "paper"] = Field(
        default="default", description="paper: as the paper prints it; a setting that contradicts it is refused"
    )
    data: Data = Data()
    network: Network = Network()
    prior: Prior = Prior()
    run: CommonRun = CommonRun()
    output: Output = Output()


class SamplingSettings(TaskSettings):
    """What the tasks have in common that sample."""

    dynamics: Dynamics = Dynamics()
    start: Start = Start()
    tune: Tune = Tune()


class LadderSettings(SamplingSettings):
    """What the tasks have in common that sample a path of rungs."""

    run: LadderRun = LadderRun()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        raise NotImplementedError


class Settings(LadderSettings):
    """All settings of a sweep."""

    task: Literal["sweep"] = Field(default="sweep", description="what the settings are for")
    ladder: Ladder = Ladder()
    run: Run = Run()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.ladder.kind == "adaptive"


class EvidencePath(_Table):
    """The path from what is known to the posterior."""

    method: Literal["temperature", "bridge"] = Field(
        default="temperature",
        description="from the prior by temperature, or from a quadratic at a minimum (Eq. 21)",
    )
    num: Annotated[int, Field(ge=3)] = Field(default=40, description="rungs, both ends included")
    adaptive: bool = Field(default=True, description="move rungs during burn-in until neighbours swap equally often")


class Bridge(_Table):
    """The quadratic of a bridge: k from fluctuations around a minimum (Eq. 20)."""

    fit_burn_in: NotNegative = Field(default=50, description="trajectories before the fluctuations are averaged")
    fit_rounds: Count = Field(default=50, description="trajectories that they are averaged over")
    tune_every: Count = Field(default=10, description="paper: rungs between two adjustments of the step size")


class EvidenceDynamics(Dynamics):
    """A round: trajectories of every replica, then exchange."""

    num_trajectories: Count = Field(default=1, description="trajectories between exchanges, N_traj")


class EvidenceRun(LadderRun):
    """How much, and where."""

    burn_in: NotNegative = Field(default=200, description="rounds before the samples count; paper: of each rung")
    rounds: Count = Field(default=400, description="rounds that count; paper: of each rung")


class EvidenceSettings(LadderSettings):
    """All settings of an evidence."""

    task: Literal["evidence"] = Field(default="evidence", description="what the settings are for")
    dynamics: EvidenceDynamics = EvidenceDynamics()
    run: EvidenceRun = EvidenceRun()
    path: EvidencePath = EvidencePath()
    bridge: Bridge = Bridge()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.path.adaptive


class AnnealSettings(SamplingSettings):
    """All settings of a cooling."""

    task: Literal["anneal"] = Field(default="anneal", description="what the settings are for")
    start: AnnealStart = AnnealStart()
    cooling: Cooling = Cooling()
    run: AnnealRun = AnnealRun()


class OptimiseSettings(TaskSettings):
    """All settings of an optimisation; the prior is only what the result is held against."""

    task: Literal["optimise"] = Field(default="optimise", description="what the settings are for")
    optimise: Optimise = Optimise()
    run: OptimiseRun = OptimiseRun()


TASKS: dict[str, type[TaskSettings]] = {
    "sweep": Settings,
    "evidence": EvidenceSettings,
    "anneal": AnnealSettings,
    "optimise": OptimiseSettings,
}
"""The settings of each task."""


_ALG_1 = {"walls": "reject", "jitter": 0.0, "lengths": "steps", "masses": "unit"}
PAPER: dict[str, dict[str, dict[str, Any]]] = {
    "sweep": {
        "ladder": {"kind": "geometric"},
        "dynamics": {**_ALG_1, "exchange": "random-pairs"},
        "start": {"weights": "minimised", "minimiser": "alg3"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "evidence": {
        "path": {"method": "bridge", "adaptive": False},
        "dynamics": {**_ALG_1, "exchange": "none"},
        "start": {"weights": "minimised"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "anneal": {
        "dynamics": _ALG_1,
        "start": {"minimiser": "alg3"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "optimise": {"optimise": {"minimiser": "alg3", "tolerance": 0.0}},
}
"""What the paper's protocol fixes in each task."""
PAPER_NUMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "evidence": {
        "path": {"num": 102},
        "dynamics": {"num_steps": 100, "num_trajectories": 1},
        "run": {"burn_in": 100, "rounds": 100},
        "bridge": {"fit_burn_in": 1000, "fit_rounds": 1000, "tune_every": 10},
    },
}
"""The paper's numbers, which are defaults of its protocol and may be changed (Sec. 4.3.1)."""

PRIOR_FACTORS = {"M1": 50.0, "M3": 50.0, "M3star": 1000.0}
"""The paper's `prior.factor` of each network (Secs. 3.2, 4.1)."""
_M3_LADDER = {"low": 0.01, "high": 100.0, "num": 112}
_M3STAR_LADDER = {"low": 10**-1.5, "high": 10**1.5, "num": 84}
_TABLE_1 = {"num_steps": 100, "num_trajectories": 10}

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "quick": (
        "three hidden layers of ten units on 200 images of 8x8: the whole study in a few minutes on two cores",
        {
            "data": {"size": 8, "n_train": 200},
            "network": {"name": "64-10-10-10"},
            "prior": {"factor": 25.0},
            "ladder": {"low": 0.5, "high": 8.0, "num": 22},
            "dynamics": {"num_steps": 50, "num_trajectories": 1},
            "run": {"burn_in": 400, "rounds": 1000, "score_every": 10},
        },
    ),
    **{
        f"paper-d{n}": (
            f"Figs. 2 and 3: M3 on D_{n}, Table 1's parameters",
            {"data": {"n_train": n}, "network": {"name": "M3"}, "ladder": _M3_LADDER, "dynamics": _TABLE_1},
        )
        for n in (50, 500, 5000)
    },
    **{
        f"paper-m3star-d{n}": (
            f"Fig. 4: M3star on D_{n}, Table 1's parameters",
            {
                "data": {"n_train": n},
                "network": {"name": "M3star"},
                "prior": {"factor": PRIOR_FACTORS["M3star"]},
                "ladder": _M3STAR_LADDER,
                "dynamics": _TABLE_1,
            },
        )
        for n in (50, 500)
    },
}
"""Name -> (what it is, the settings of a sweep that differ from the defaults)."""

OF_OTHER_TASKS: dict[str, dict[str, dict[str, Any]]] = {
    "anneal": {
        "quick": {
            "cooling": {"high": 30.0, "low": 0.3, "num": 16, "burn_in": 40, "rounds": 60, "score_every": 6},
            "start": {"max_gradients": 2000},
        }
    },
    "optimise": {"quick": {"optimise": {"keep": 50, "starts": 500}}},
}
"""Task -> preset -> what it has besides the data, the network and whatever else it shares with a sweep."""


def resolve(
    task: str = "sweep",
    *,
    preset: str | None = None,
    file: Path | None = None,
    protocol: str | None = None,
    assignments: Iterable[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> Any:
    """Defaults, then the preset, the file, `extra`, and `--set key=value`, each over the one before.

    The protocol is the last one named; what it fixes must not be contradicted.
    """
    given: dict[str, Any] = {}
    if preset is not None:
        _merge(given, preset_settings(preset, task))
    if file is not None:
        _merge(given, read_toml(file, task))
    if given.setdefault("task", task) != task:
        raise ConfigError(f"{file} has the settings of task {given['task']!r}, not of {task}")
    _merge(given, dict(extra or {}))
    for assignment in assignments:
        _merge(given, parse_assignment(assignment))
    if protocol is not None:
        given["protocol"] = protocol
    return settings_from(given)


def settings_from(given: Mapping[str, Any]) -> Any:
    """Settings of the task that `given` names, a sweep if none, from nested tables, checked.

    The protocol's own values are filled in.
    """
    task = given.get("task", "sweep")
    if task not in TASKS:
        raise ConfigError(f"unknown task {task!r}; there are {', '.join(TASKS)}")
    _refuse_unknown(given, task)
    full = {key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items()}
    protocol = given.get("protocol", "default")
    for table, fixed in PAPER.get(task, {}).items() if protocol == "paper" else ():
        for name, value in fixed.items():
            said = full.setdefault(table, {}).setdefault(name, value)
            if said != value:
                raise ConfigError(
                    f"{table}.{name} = {said!r} contradicts the protocol {protocol!r}, which has {value!r}; "
                    f"leave {table}.{name} out, or choose another protocol"
                )
    for table, numbers in PAPER_NUMBERS.get(task, {}).items() if protocol == "paper" else ():
        full[table] = numbers | full.get(table, {})
    try:
        settings = TASKS[task].model_validate(_as_tuples(full))
    except ValidationError as error:
        raise ConfigError(_first_problem(error)) from error
    _check_together(settings)
    return settings


def preset_settings(name: str, task: str = "sweep") -> dict[str, Any]:
    """The settings of a preset that differ from the defaults, as far as the task has them."""
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}{did_you_mean(name, PRESETS)}; there are {', '.join(PRESETS)}")
    known = TASKS[task]().model_dump()
    shared = {
        table: {key: value for key, value in values.items() if key in known[table]}
        for table, values in PRESETS[name][1].items()
        if table in known
    }
    return shared | OF_OTHER_TASKS.get(task, {}).get(name, {})


def read_toml(path: Path, task: str = "sweep") -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"cannot read the settings {path}: {reason}; `tempernet init {task}` writes one") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}; `tempernet init {task}` shows how it looks") from error


def parse_assignment(text: str) -> dict[str, Any]:
    """`ladder.num=56` as nested tables; the value is TOML, or else a string as it stands."""
    key, equals, value = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set needs key=value, such as --set ladder.num=56, got {text!r}")
    try:
        parsed = tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, KeyError):
        parsed = value.strip()
    # No setting is a date, but a network of the sizes 1024-10-10 looks like one.
    nested: Any = value.strip() if isinstance(parsed, date | time) else parsed
    for part in reversed(parts):
        nested = {part: nested}
    return nested


def to_toml(settings: TaskSettings) -> str:
    """The settings in full, as they are written to `config.toml`."""
    lines = [f"task = {_toml(settings.task)}", f"protocol = {_toml(settings.protocol)}"]
    for table, values in settings.model_dump().items():
        if isinstance(values, dict):
            lines += ["", f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def template(task: str = "sweep") -> str:
    """Every setting of a task with its default and what it is for, all commented out."""
    fields = TASKS[task].model_fields
    lines = [
        f"# Settings of `tempernet {task}`. Every one is at its default; take away a '#' to change it.",
        "",
        f"task = {_toml(task)}",
        *_commented("protocol", fields["protocol"]),
    ]
    for name, field in fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, _Table):
            lines += ["", f"# {table.__doc__}", f"[{name}]"]
            for key, value in table.model_fields.items():
                lines += _commented(key, value)
    return "\n".join(lines) + "\n"


def differences(old: TaskSettings, new: TaskSettings) -> list[str]:
    """`run.rounds: 100 -> 200` for each setting that differs."""
    flat_old, flat_new = _flat(old.model_dump()), _flat(new.model_dump())
    return [f"{key}: {flat_old[key]} -> {flat_new.get(key)}" for key in flat_old if flat_old[key] != flat_new.get(key)]


def _flat(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return flat


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _refuse_unknown(given: Mapping[str, Any], task: str) -> None:
    model = TASKS[task]
    known = list(_flat(model().model_dump()))
    for name, value in given.items():
        field = model.model_fields.get(name)
        table = field is not None and isinstance(field.annotation, type) and issubclass(field.annotation, _Table)
        if table and not isinstance(value, Mapping):
            raise ConfigError(f"{name} is a table of settings, got {value!r}; write {name}.<setting>=...")
        inside = isinstance(value, Mapping) and (value or table)
        for key in [f"{name}.{inner}" for inner in value] if inside else [name]:
            if key not in known:
                raise ConfigError(f"unknown setting {key}{did_you_mean(key, known)}; `tempernet init {task}` lists all")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)` with the known name that is nearest to one that is not known, if any is near."""
    known = list(known)
    # A setting is known by its last part as well: `rounds` is near `run.rounds`.
    same = [key for key in known if key.split(".")[-1] == name.split(".")[-1]]
    close = difflib.get_close_matches(name, same or known, n=1, cutoff=0.0 if same else 0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _as_tuples(tables: Mapping[str, Any]) -> dict[str, Any]:
    """TOML's lists as tuples, and whole numbers of float settings as floats."""

    def convert(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _as_tuples(value)
        if isinstance(value, list):
            return tuple(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in value)
        return value

    return {key: convert(value) for key, value in tables.items()}


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"][0].lower() + problem["msg"][1:]
    for jargon, plain in (("a valid tuple", "a list, such as [0.1, 1.0]"), ("a valid boolean", "true or false")):
        message = message.replace(jargon, plain)
    given = list(problem["input"]) if isinstance(problem["input"], tuple) else problem["input"]
    return f"{where}: {message}, got {given!r}"


def _check_together(settings: TaskSettings) -> None:
    if isinstance(settings, Settings):
        _check_ladder(settings.ladder)
    if isinstance(settings, AnnealSettings):
        _check_cooling(settings.cooling)
    if isinstance(settings, SamplingSettings) and settings.tune.low >= settings.tune.high:
        raise ConfigError(f"tune.low must be below tune.high, got {settings.tune.low} and {settings.tune.high}")
    if settings.run.reproducible and settings.run.data_devices > 1:
        raise ConfigError(f"run.reproducible needs run.data_devices = 1, got {settings.run.data_devices}")


def _check_ladder(ladder: Ladder) -> None:
    if ladder.kind == "listed":
        if len(ladder.temperatures) < 1:
            raise ConfigError('ladder.kind = "listed" needs ladder.temperatures, such as [0.1, 1.0, 10.0]')
        values = np.asarray(ladder.temperatures)
        # Both are false for NaN.
        if not (values > 0).all() or not (values[1:] > values[:-1]).all():
            raise ConfigError(f"ladder.temperatures must be increasing and positive, got {list(ladder.temperatures)}")
    elif ladder.temperatures:
        raise ConfigError(f'ladder.temperatures are for ladder.kind = "listed", got kind = "{ladder.kind}"')
    if ladder.low >= ladder.high:
        raise ConfigError(f"ladder.low must be below ladder.high, got {ladder.low} and {ladder.high}")


def _check_cooling(cooling: Cooling) -> None:
    if cooling.low >= cooling.high:
        raise ConfigError(f"cooling.low must be below cooling.high, got {cooling.low} and {cooling.high}")
    if cooling.score_every > cooling.rounds:
        raise ConfigError(
            f"cooling.score_every must be at most cooling.rounds, or nothing is scored, got {cooling.score_every} "
            f"and {cooling.rounds}"
        )


def _commented(name: str, field: Any) -> list[str]:
    choices = ", ".join(_toml(choice) for choice in get_args(field.annotation) if isinstance(choice, str))
    return [f"# {field.description}{choices and f'; one of {choices}'}", f"# {name} = {_toml(field.default)}"]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
