"""Options and arguments that several commands have in common, and how settings come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from tempernet import config
from tempernet.config import RunSettings
from tempernet.kinds import KINDS, Kind
from tempernet.kinds.kind import R

S = TypeVar("S", bound=RunSettings)

OutOption = Annotated[
    Path | None,
    typer.Option(help="Run folder; created if it does not exist."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ladder.num=56."),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        help="Start from a preset; `tempernet presets` lists them.",
        autocompletion=lambda: list(config.PRESETS),
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        help='"default", or "paper": as printed in the paper.',
        autocompletion=lambda: ["default", "paper"],
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option(help="Data: an npz file or a folder of idx files."),
]
NetworkOption = Annotated[
    str | None,
    typer.Option(help="Network: M1, M3, M3star, or layer sizes such as 64-32-32-5."),
]
SettingsFile = Annotated[
    Path | None,
    typer.Argument(metavar="[SETTINGS.toml]", help="Settings file."),
]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="Run folder.")]
MaxTimeOption = Annotated[
    str | None,
    typer.Option(help="Stop after this time, such as 45s, 90m or 3h."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print the summary as JSON on standard output."),
]


def kind_names() -> list[str]:
    """The kinds of run, for completion."""
    return list(KINDS)


def resolved(
    kind: Kind[S, R],
    *,
    settings_file: Path | None,
    preset: str | None,
    protocol: str | None,
    assignments: Sequence[str] | None,
    data: str | None,
    network: str | None,
    options: Mapping[str, object] | None = None,
) -> S:
    """Settings of a kind from what the command line says.

    `options` are those of the kind by name, None where nothing was said.
    """
    extra: dict[str, dict[str, object]] = {}
    if data is not None:
        # All of a user's own training data, unless told otherwise.
        extra["data"] = {"source": data, "n_train": 0}
    if network is not None:
        extra["network"] = {"name": network}
    for option in kind.options:
        value = (options or {}).get(option.name)
        if value is not None:
            plain = str(value) if isinstance(value, Path) else value
            extra.setdefault(option.table, {})[option.name] = plain
    said = (settings_file, preset, data, network)
    if all(given is None for given in said):
        preset = kind.first_preset
    return config.resolve(
        kind.settings,
        preset=preset,
        file=settings_file,
        protocol=protocol,
        assignments=assignments or (),
        extra=extra,
    )
