"""Kinds of run: the list of what can be run, and what belongs to each.

A new kind is a file here, its parts in the packages that it uses, and an entry in the list.
"""

from __future__ import annotations

from pathlib import Path

from tempernet.config import did_you_mean
from tempernet.errors import ConfigError, StoreError
from tempernet.kinds.anneal import ANNEAL
from tempernet.kinds.evidence import EVIDENCE
from tempernet.kinds.kind import AnyKind, Beside, Export, Kind, Option, Parts
from tempernet.kinds.optimise import OPTIMISE
from tempernet.kinds.sweep import SWEEP
from tempernet.store import RunFolder

KINDS: dict[str, AnyKind] = {kind.name: kind for kind in (SWEEP, EVIDENCE, ANNEAL, OPTIMISE)}
"""Name -> kind. The first is meant where none is named."""


def kind_named(name: str | None) -> AnyKind:
    """The kind with this name; the first one if none is named."""
    if name is None:
        return next(iter(KINDS.values()))
    if name not in KINDS:
        raise ConfigError(
            f"unknown kind of run {name!r}{did_you_mean(name, KINDS)}; there are {', '.join(KINDS)}"
        )
    return KINDS[name]


def kind_of(path: Path) -> AnyKind:
    """The kind of the run in a folder."""
    name = RunFolder.open(path).kind
    if name not in KINDS:
        raise StoreError(
            f"{path} is a run of kind {name!r}, which this tempernet does not know; "
            "use the tempernet that made it, which provenance.json names"
        )
    return KINDS[name]


__all__ = [
    "KINDS",
    "AnyKind",
    "Beside",
    "Export",
    "Kind",
    "Option",
    "Parts",
    "kind_named",
    "kind_of",
]
