"""The exceptions a user can meet: each message says what was given, what is allowed and what to do."""


class TempernetError(Exception):
    """Base of every error that tempernet raises on purpose."""


class ConfigError(TempernetError, ValueError):
    """A setting or an argument is outside what is allowed."""


class DataError(TempernetError, ValueError):
    """A data file or an array of examples cannot be used."""


class NumericsError(TempernetError, ArithmeticError):
    """A computation produced numbers that cannot be trusted."""
