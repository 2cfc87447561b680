"""Paths of rungs: densities from a known one to the posterior, and where the rungs should be."""

from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.ladders import (
    Barrier,
    interpolate_steps,
    measure_barrier,
    place,
    swap_rates_at,
)
from tempernet.paths.path import Path
from tempernet.paths.temperatures import beta_path, geometric_temperatures, temperature_path

__all__ = [
    "Barrier",
    "Centre",
    "Path",
    "beta_path",
    "bridge_path",
    "geometric_temperatures",
    "interpolate_steps",
    "measure_barrier",
    "place",
    "swap_rates_at",
    "temperature_path",
]
