"""Devices: how many JAX starts, the mesh of them, and how many replicas each advances at a time.

Only what must come before JAX is imported here; `mesh` and `tiles` are imported by their names.
"""

from tempernet.devices.setup import configure, cores, warn_if_not_configured

__all__ = ["configure", "cores", "warn_if_not_configured"]
