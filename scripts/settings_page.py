"""Writes docs/reference/settings.md from the settings themselves.

    python scripts/settings_page.py            # print the page
    python scripts/settings_page.py --write    # write it where it belongs

`tests/unit/test_docs.py` compares the page with what this prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tempernet import config
from tempernet.config import RunSettings
from tempernet.kinds import KINDS as LIST_OF_KINDS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
KINDS: Mapping[str, type[RunSettings]] = {
    kind.name: kind.settings for kind in LIST_OF_KINDS.values()
}
BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
INTRODUCTION = """\
# Settings

This page is written by `python scripts/settings_page.py --write`; do not edit it by hand.

A run is its settings. They come from defaults, a preset, a TOML file and `--set table.name=value`,
each over the one before. `tempernet init KIND` prints them all as a commented TOML file, and the
run folder holds them in full as `config.toml`. A name that is unknown, or a value of the wrong
type, is refused with the nearest name that is known.

Without a file, `--preset`, `--data` or `--network`, the commands `sweep`, `anneal` and `optimise`
begin from the preset `quick`, also if there is `--set`.

The column "kind" says which kinds of run have the setting. Where two kinds have another default,
it has a row for each.
"""
PROTOCOL = """\
## What the paper's protocol fixes

`--protocol paper` sets these, and a setting that contradicts them is refused.
"""
PROTOCOL_DEFAULTS = """\
These are defaults of the paper's protocol. They may be changed.
"""
PRESETS = """\
## Presets

`--preset NAME` begins from one of these. `anneal` and `optimise` take what they have in common with
a sweep, an evidence only `[data]`, `[network]` and `[prior]`. What `quick` sets for one kind alone
stands below its name.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, _top_level()]
    parts += [_table_of_settings(name) for name in _table_names()]
    parts += [PROTOCOL, _protocol({kind: model.paper_fixes for kind, model in KINDS.items()})]
    parts += [
        PROTOCOL_DEFAULTS,
        _protocol({kind: model.paper_numbers for kind, model in KINDS.items()}),
    ]
    parts += [PRESETS, _presets()]
    return "\n".join(parts)


def _is_table(field: FieldInfo) -> bool:
    """Whether a field of a kind's settings is a table of its own."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _table_names() -> list[str]:
    """Names of the tables of all kinds, in the order in which they appear."""
    names: dict[str, None] = {}
    for model in KINDS.values():
        for name, field in model.model_fields.items():
            if _is_table(field):
                names.setdefault(name)
    return list(names)


def _top_level() -> str:
    """The settings that are in no table."""
    fields = {
        kind: {name: field for name, field in model.model_fields.items() if not _is_table(field)}
        for kind, model in KINDS.items()
    }
    return "## At the top\n\n" + _rows(fields)


def _table_of_settings(table: str) -> str:
    """One table of settings, of all kinds that have it."""
    fields: dict[str, Mapping[str, FieldInfo]] = {}
    sentences: dict[str, list[str]] = {}
    for kind, model in KINDS.items():
        field = model.model_fields.get(table)
        if field is None or not _is_table(field):
            continue
        inner = field.annotation
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        fields[kind] = inner.model_fields
        sentences.setdefault(" ".join((inner.__doc__ or "").split()), []).append(kind)
    if len(sentences) == 1:
        told = next(iter(sentences))
    else:
        told = "\n".join(f"- {', '.join(kinds)}: {text}" for text, kinds in sentences.items())
    return f"## `[{table}]`\n\n{told}\n\n" + _rows(fields)


def _rows(fields: Mapping[str, Mapping[str, FieldInfo]]) -> str:
    """A row for every setting, or several where kinds differ: kind -> name -> field."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    names = dict.fromkeys(name for of_kind in fields.values() for name in of_kind)
    for name in names:
        for kind, of_kind in fields.items():
            if name in of_kind:
                field = of_kind[name]
                row = (name, _shown(field.default), _allowed(field), field.description or "")
                groups.setdefault(row, []).append(kind)
    header = ("setting", "default", "allowed", "kind", "what it is")
    lines = []
    for (name, default, allowed, text), kinds in groups.items():
        of = "all" if len(kinds) == len(KINDS) else ", ".join(kinds)
        lines.append((f"`{name}`", f"`{default}`", allowed, of, text))
    return _markdown(header, lines)


def _allowed(field: FieldInfo) -> str:
    """What values a field takes."""
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{_shown(choice)}`" for choice in get_args(annotation))
    bounds = [
        f"{sign} {getattr(bound, name):g}"
        if annotation is float
        else f"{sign} {getattr(bound, name)}"
        for bound in field.metadata
        for name, sign in BOUNDS
        if getattr(bound, name, None) is not None
    ]
    if annotation is bool:
        return "true, false"
    if annotation is int:
        return " ".join(["whole number", ", ".join(bounds)]).strip()
    if annotation is float:
        return " ".join(["number", ", ".join(bounds)]).strip()
    if get_origin(annotation) is tuple:
        return "list of numbers"
    return "text"


def _shown(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _protocol(fixed: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Kind -> table -> name -> value as rows."""
    lines = [
        (kind, f"`{table}.{name}`", f"`{_shown(value)}`")
        for kind, tables in fixed.items()
        for table, values in tables.items()
        for name, value in values.items()
    ]
    return _markdown(("kind", "setting", "value"), lines)


def _presets() -> str:
    """Every preset with the settings that it changes."""
    lines = []
    for name, (what, tables) in config.PRESETS.items():
        changed = [
            f"`{table}.{key} = {_shown(value)}`"
            for table, values in tables.items()
            for key, value in values.items()
        ]
        lines.append((f"`{name}`", what, ", ".join(changed)))
        for kind, model in KINDS.items():
            own = [
                f"`{table}.{key} = {_shown(value)}`"
                for table, values in model.presets.get(name, {}).items()
                for key, value in values.items()
            ]
            if own:
                lines.append((f"`{name}`", f"{kind} alone", ", ".join(own)))
    return _markdown(("preset", "what it is", "settings"), lines)


def _markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
