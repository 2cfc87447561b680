"""Settings from TOML, a preset, `--set` and the protocol, checked as a whole, and written back out."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, get_args

import numpy as np
from pydantic import ValidationError

from tempernet.config.presets import OF_OTHER_TASKS, PAPER, PAPER_NUMBERS, PRESETS
from tempernet.config.tables import (
    TASKS,
    AnnealSettings,
    Cooling,
    EvidenceSettings,
    Ladder,
    RunSettings,
    SamplingSettings,
    SweepSettings,
    Table,
)
from tempernet.errors import ConfigError


def resolve(
    task: str = "sweep",
    *,
    preset: str | None = None,
    file: Path | None = None,
    protocol: str | None = None,
    assignments: Iterable[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> Any:
    """Defaults, then the preset, the file, `extra`, and `--set key=value`, each over the one
    before.

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
    full = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items()
    }
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
        raise ConfigError(
            f"unknown preset {name!r}{did_you_mean(name, PRESETS)}; there are {', '.join(PRESETS)}"
        )
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
        raise ConfigError(
            f"cannot read the settings {path}: {reason}; `tempernet init {task}` writes one"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}; `tempernet init {task}` shows how it looks"
        ) from error


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


def to_toml(settings: RunSettings) -> str:
    """The settings in full, as they are written to `config.toml`."""
    lines = [f"task = {_toml(settings.task)}", f"protocol = {_toml(settings.protocol)}"]
    for table, values in settings.model_dump().items():
        if isinstance(values, dict):
            lines += [
                "",
                f"[{table}]",
                *(f"{name} = {_toml(value)}" for name, value in values.items()),
            ]
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
        if isinstance(table, type) and issubclass(table, Table):
            lines += ["", f"# {table.__doc__}", f"[{name}]"]
            for key, value in table.model_fields.items():
                lines += _commented(key, value)
    return "\n".join(lines) + "\n"


def differences(old: RunSettings, new: RunSettings) -> list[str]:
    """`run.rounds: 100 -> 200` for each setting that differs."""
    flat_old, flat_new = _flat(old.model_dump()), _flat(new.model_dump())
    return [
        f"{key}: {flat_old[key]} -> {flat_new.get(key)}"
        for key in flat_old
        if flat_old[key] != flat_new.get(key)
    ]


def _flat(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
        )
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
        table = (
            field is not None
            and isinstance(field.annotation, type)
            and issubclass(field.annotation, Table)
        )
        if table and not isinstance(value, Mapping):
            raise ConfigError(
                f"{name} is a table of settings, got {value!r}; write {name}.<setting>=..."
            )
        inside = isinstance(value, Mapping) and (value or table)
        for key in [f"{name}.{inner}" for inner in value] if inside else [name]:
            if key not in known:
                raise ConfigError(
                    f"unknown setting {key}{did_you_mean(key, known)}; `tempernet init {task}` lists all"
                )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)` with the known name that is nearest to one that is not known, if any
    is near.
    """
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
            return tuple(
                float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in value
            )
        return value

    return {key: convert(value) for key, value in tables.items()}


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"][0].lower() + problem["msg"][1:]
    for jargon, plain in (
        ("a valid tuple", "a list, such as [0.1, 1.0]"),
        ("a valid boolean", "true or false"),
    ):
        message = message.replace(jargon, plain)
    given = list(problem["input"]) if isinstance(problem["input"], tuple) else problem["input"]
    return f"{where}: {message}, got {given!r}"


def _check_together(settings: RunSettings) -> None:
    if isinstance(settings, SweepSettings):
        _check_ladder(settings.ladder)
    if (
        isinstance(settings, EvidenceSettings)
        and settings.path.method == "bridge"
        and settings.path.coldest != 1
    ):
        raise ConfigError(
            f"path.coldest must be 1 on a bridge, which ends at the posterior, got {settings.path.coldest}"
        )
    if isinstance(settings, AnnealSettings):
        _check_cooling(settings.cooling)
    if isinstance(settings, SamplingSettings) and settings.tune.low >= settings.tune.high:
        raise ConfigError(
            f"tune.low must be below tune.high, got {settings.tune.low} and {settings.tune.high}"
        )
    if settings.run.reproducible and settings.run.data_devices > 1:
        raise ConfigError(
            f"run.reproducible needs run.data_devices = 1, got {settings.run.data_devices}"
        )


def _check_ladder(ladder: Ladder) -> None:
    if ladder.kind == "listed":
        if len(ladder.temperatures) < 1:
            raise ConfigError(
                'ladder.kind = "listed" needs ladder.temperatures, such as [0.1, 1.0, 10.0]'
            )
        values = np.asarray(ladder.temperatures)
        # Both are false for NaN.
        if not (values > 0).all() or not (values[1:] > values[:-1]).all():
            raise ConfigError(
                f"ladder.temperatures must be increasing and positive, got {list(ladder.temperatures)}"
            )
    elif ladder.temperatures:
        raise ConfigError(
            f'ladder.temperatures are for ladder.kind = "listed", got kind = "{ladder.kind}"'
        )
    if ladder.low >= ladder.high:
        raise ConfigError(
            f"ladder.low must be below ladder.high, got {ladder.low} and {ladder.high}"
        )


def _check_cooling(cooling: Cooling) -> None:
    if cooling.low >= cooling.high:
        raise ConfigError(
            f"cooling.low must be below cooling.high, got {cooling.low} and {cooling.high}"
        )
    if cooling.score_every > cooling.rounds:
        raise ConfigError(
            f"cooling.score_every must be at most cooling.rounds, or nothing is scored, got {cooling.score_every} "
            f"and {cooling.rounds}"
        )


def _commented(name: str, field: Any) -> list[str]:
    choices = ", ".join(
        _toml(choice) for choice in get_args(field.annotation) if isinstance(choice, str)
    )
    return [
        f"# {field.description}{choices and f'; one of {choices}'}",
        f"# {name} = {_toml(field.default)}",
    ]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
