"""Settings as text: a file, an assignment `key=value`, a template with every default."""

from __future__ import annotations

import json
import tomllib
from datetime import date, time
from pathlib import Path
from typing import get_args

from pydantic.fields import FieldInfo

from tempernet.config.settings import RunSettings
from tempernet.config.tables import Table
from tempernet.errors import ConfigError


def read_toml(path: Path) -> dict[str, object]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(
            f"cannot read the settings {path}: {reason}; `tempernet init` writes some"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}; `tempernet init` shows how it looks"
        ) from error


def parse_assignment(text: str) -> dict[str, object]:
    """`ladder.num=56` as nested tables; the value is TOML, or else a string as it stands."""
    key, equals, value = text.partition("=")
    first, *parts = key.strip().split(".")
    if not equals or not all([first, *parts]):
        raise ConfigError(f"--set needs key=value, such as --set ladder.num=56, got {text!r}")
    try:
        parsed: object = tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, KeyError):
        parsed = value.strip()
    # No setting is a date, but a network of the sizes 1024-10-10 looks like one.
    nested = value.strip() if isinstance(parsed, date | time) else parsed
    for part in reversed(parts):
        nested = {part: nested}
    return {first: nested}


def to_toml(settings: RunSettings) -> str:
    """The settings in full, as they are written to `config.toml`."""
    lines = [f"kind = {_toml(settings.kind)}", f"protocol = {_toml(settings.protocol)}"]
    for table, values in settings.model_dump().items():
        if isinstance(values, dict):
            lines += ["", f"[{table}]"]
            lines += [f"{name} = {_toml(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def template(model: type[RunSettings]) -> str:
    """Every setting of a kind with its default and what it is for, all commented out."""
    kind = model.kind_name()
    lines = [
        f"# Settings of `tempernet {kind}`. All are at their defaults; remove a '#' to change one.",
        "",
        f"kind = {_toml(kind)}",
        *_commented("protocol", model.model_fields["protocol"]),
    ]
    for name, field in model.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, Table):
            lines += ["", f"# {table.__doc__}", f"[{name}]"]
            for key, value in table.model_fields.items():
                lines += _commented(key, value)
    return "\n".join(lines) + "\n"


def _commented(name: str, field: FieldInfo) -> list[str]:
    """What a setting is for, what it may be, and its default."""
    choices = [_toml(choice) for choice in get_args(field.annotation) if isinstance(choice, str)]
    one_of = f"; one of {', '.join(choices)}" if choices else ""
    return [f"# {field.description}{one_of}", f"# {name} = {_toml(field.default)}"]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
