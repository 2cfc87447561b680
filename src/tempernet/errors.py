"""The exceptions a user can meet: what was given, what is allowed and what to do, in one line."""

from __future__ import annotations

import operator
from types import UnionType


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


class DevicesWarning(UserWarning):
    """JAX runs on fewer devices than the machine has cores, or on devices that are not patient."""


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise a ConfigError unless the value is a whole number of at least `least`."""
    try:
        is_whole = not isinstance(value, bool) and operator.index(value) >= least  # type: ignore[arg-type]
    except TypeError:
        is_whole = False
    if not is_whole:
        raise ConfigError(f"{name} must be a whole number, at least {least}, got {shown(value)}")


def check_type(
    name: str,
    value: object,
    expected: type | tuple[type, ...] | UnionType,
    allowed: str,
    advice: str = "",
) -> None:
    """Raise a ConfigError unless the value is an instance of what is expected.

    `name` is the argument's, `allowed` says in words what it must be, and `advice` what to do:

    >>> check_type("prior", 50.0, (UniformBox, Gaussian), "a UniformBox or a Gaussian",
    ...            "build one with UniformBox.for_network(network)")
    ConfigError: prior must be a UniformBox or a Gaussian, got 50.0: build one with ...
    """
    if not isinstance(value, expected):
        refuse(name, value, allowed, advice)


def check_callable(name: str, value: object, allowed: str, advice: str = "") -> None:
    """Raise a ConfigError unless the value can be called; words as for `check_type`."""
    if not callable(value):
        refuse(name, value, allowed, advice)


def refuse(name: str, value: object, allowed: str, advice: str = "") -> None:
    """Raise the ConfigError about an argument that is not what is allowed."""
    what_to_do = f": {advice}" if advice else ""
    raise ConfigError(f"{name} must be {allowed}, got {shown(value)}{what_to_do}")


def shown(value: object) -> str:
    """A value in a message: as it is written if that is short, else the name of its type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(value, list | tuple | dict | set):
        text = repr(value)
        if len(text) <= 60 and "\n" not in text:
            return text
    kind = type(value).__name__
    kind = "array" if kind in ("ndarray", "ArrayImpl") else kind
    shape = getattr(value, "shape", None)
    if shape == ():
        return repr(value)
    if isinstance(shape, tuple):
        return f"{_article(kind)} of shape {shape}"
    return _article(kind)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
