"""Settings from a preset, a file, options and `--set`, each over the one before, all checked.

What is not said keeps its default. What is unknown or ill-typed is refused with the nearest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from tempernet.config.presets import PRESETS
from tempernet.config.settings import RunSettings
from tempernet.config.tables import Table
from tempernet.config.toml import parse_assignment, read_toml
from tempernet.errors import ConfigError

S = TypeVar("S", bound=RunSettings)
Given = Mapping[str, object]
"""Tables of settings as they were given, nested and not yet checked."""


def resolve(
    model: type[S],
    *,
    preset: str | None = None,
    file: Path | None = None,
    protocol: str | None = None,
    assignments: Iterable[str] = (),
    extra: Given | None = None,
) -> S:
    """Settings of a kind: the preset, the file, `extra`, `--set key=value`, each over the others.

    The protocol is the last one named; what it fixes must not be contradicted.
    """
    given: dict[str, object] = {}
    if preset is not None:
        _merge(given, preset_settings(preset, model))
    if file is not None:
        tables = read_toml(file)
        kind = tables.get("kind", model.kind_name())
        if kind != model.kind_name():
            raise ConfigError(f"{file} has settings of kind {kind!r}, not of {model.kind_name()}")
        _merge(given, tables)
    _merge(given, extra or {})
    for assignment in assignments:
        _merge(given, parse_assignment(assignment))
    if protocol is not None:
        given["protocol"] = protocol
    return settings_from(given, model)


def settings_from(given: Given, model: type[S]) -> S:
    """Settings of a kind from nested tables, checked, with the protocol's own values filled in."""
    kind = model.kind_name()
    if given.get("kind", kind) != kind:
        raise ConfigError(f"these are settings of kind {given['kind']!r}, not of {kind}")
    _refuse_unknown(given, model)
    full: dict[str, object] = {}
    _merge(full, given)
    if full.get("protocol") == "paper":
        full = _as_the_paper(full, model)
    try:
        settings = model.model_validate(_as_tuples(full))
    except ValidationError as error:
        raise ConfigError(_first_problem(error)) from error
    settings.check()
    return settings


def preset_settings(name: str, model: type[RunSettings]) -> dict[str, object]:
    """The settings of a preset that differ from the defaults, as far as the kind has them."""
    if name not in PRESETS:
        raise ConfigError(
            f"unknown preset {name!r}{did_you_mean(name, PRESETS)}; there are {', '.join(PRESETS)}"
        )
    known = model().model_dump()
    taken = known if model.preset_tables is None else model.preset_tables
    shared: dict[str, object] = {}
    for table, values in PRESETS[name].tables.items():
        if table in taken and table in known:
            shared[table] = {key: value for key, value in values.items() if key in known[table]}
    return shared | dict(model.presets.get(name, {}))


def differences(old: RunSettings, new: RunSettings) -> list[str]:
    """`run.rounds: 100 -> 200` for each setting that differs."""
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    return [
        f"{key}: {value} -> {after.get(key)}"
        for key, value in before.items()
        if value != after.get(key)
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)` with the nearest of the known names; nothing if none is near."""
    known = list(known)
    # A setting is known by its last part as well: `rounds` is near `run.rounds`.
    same = [key for key in known if key.split(".")[-1] == name.split(".")[-1]]
    close = difflib.get_close_matches(name, same or known, n=1, cutoff=0.0 if same else 0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _as_the_paper(given: dict[str, object], model: type[RunSettings]) -> dict[str, object]:
    """With what the protocol fixes, which must not be contradicted, and the paper's numbers."""
    full = dict(given)
    for table, fixed in model.paper_fixes.items():
        said = _table(full, table)
        for name, value in fixed.items():
            if said.setdefault(name, value) != value:
                raise ConfigError(
                    f"{table}.{name} = {said[name]!r} contradicts the protocol 'paper', "
                    f"which has {value!r}; leave {table}.{name} out, or choose another protocol"
                )
        full[table] = said
    for table, numbers in model.paper_numbers.items():
        full[table] = {**numbers, **_table(full, table)}
    return full


def _table(tables: Given, name: str) -> dict[str, object]:
    """A table of those given, as a dictionary of its own; empty if it is not there."""
    found = tables.get(name, {})
    return dict(found) if isinstance(found, Mapping) else {}


def _flat(tables: Given, prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _merge(into: dict[str, object], new: Given) -> None:
    for key, value in new.items():
        old = into.get(key)
        if isinstance(value, Mapping) and isinstance(old, dict):
            _merge(old, value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _refuse_unknown(given: Given, model: type[RunSettings]) -> None:
    known = list(_flat(model().model_dump()))
    for name, value in given.items():
        is_table = _is_table(model, name)
        if is_table and not isinstance(value, Mapping):
            raise ConfigError(
                f"{name} is a table of settings, got {value!r}; write {name}.<setting>=..."
            )
        keys = [name]
        if isinstance(value, Mapping) and (value or is_table):
            keys = [f"{name}.{inner}" for inner in value]
        for key in keys:
            if key not in known:
                raise ConfigError(
                    f"unknown setting {key}{did_you_mean(key, known)}; "
                    f"`tempernet init {model.kind_name()}` lists all"
                )


def _is_table(model: type[RunSettings], name: str) -> bool:
    field = model.model_fields.get(name)
    annotation = None if field is None else field.annotation
    return isinstance(annotation, type) and issubclass(annotation, Table)


def _as_tuples(tables: Given) -> dict[str, object]:
    """TOML's lists as tuples, and whole numbers in them as floats."""

    def number(value: object) -> object:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def convert(value: object) -> object:
        if isinstance(value, Mapping):
            return _as_tuples(value)
        return tuple(number(item) for item in value) if isinstance(value, list) else value

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
