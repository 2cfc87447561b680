"""The exceptions a user can meet: each message says what was given, what is allowed and what to do."""

from __future__ import annotations

import operator
from types import UnionType
from typing import Any


class TempernetError(Exception):
    """Base of every error that tempernet raises on purpose."""


class ConfigError(TempernetError, ValueError):
    """A setting or an argument is outside what is allowed."""


class DataError(TempernetError, ValueError):
    """A data file or an array of examples cannot be used."""


class NumericsError(TempernetError, ArithmeticError):
    """A computation produced numbers that cannot be trusted."""


class StoreError(TempernetError, OSError):
    """A run folder cannot be written, read or trusted."""


class Stopped(TempernetError):  # noqa: N818 - nothing went wrong
    """A run was asked to stop before its end; what it had is in its folder."""


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise a ConfigError unless the value is a whole number of at least `least`."""
    try:
        good = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        good = False
    if not good:
        raise ConfigError(f"{name} must be a whole number, at least {least}, got {value!r}")


def check_type(name: str, value: object, kind: type | UnionType, called: str) -> None:
    """Raise a ConfigError unless the value is of this kind, which the message calls `called`."""
    if not isinstance(value, kind):
        raise ConfigError(f"{name} must be {called}, got {type(value).__name__}")
