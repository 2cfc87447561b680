"""Settings: typed, frozen, read from TOML and `--set`, and written back out whole.

A run is its `config.toml`. What is not said keeps its default; what is unknown or ill-typed is
refused with the nearest valid name. A protocol names how the sampling is done: `default` is free,
`paper` fixes what Secs. 3.3.1 and 3.3.2 print, and a setting that contradicts it is refused, so
that a result called `paper` is one.
"""

from tempernet.config.anneal import AnnealSettings
from tempernet.config.evidence import EvidenceSettings
from tempernet.config.optimise import OptimiseSettings
from tempernet.config.presets import PRESETS, PRIOR_FACTORS
from tempernet.config.resolving import (
    did_you_mean,
    differences,
    preset_settings,
    resolve,
    settings_from,
)
from tempernet.config.settings import LadderSettings, RunSettings, SamplingSettings
from tempernet.config.sweep import SweepSettings
from tempernet.config.toml import parse_assignment, read_toml, template, to_toml

__all__ = [
    "PRESETS",
    "PRIOR_FACTORS",
    "AnnealSettings",
    "EvidenceSettings",
    "LadderSettings",
    "OptimiseSettings",
    "RunSettings",
    "SamplingSettings",
    "SweepSettings",
    "did_you_mean",
    "differences",
    "parse_assignment",
    "preset_settings",
    "read_toml",
    "resolve",
    "settings_from",
    "template",
    "to_toml",
]
