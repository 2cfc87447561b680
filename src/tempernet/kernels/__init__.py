"""Kernels: how one replica moves at its rung and leaves the density there as it is."""

from tempernet.kernels.base import Info, Kernel, KernelState, Point, Rung, Steps
from tempernet.kernels.dynamics import Dynamics
from tempernet.kernels.registry import KERNELS

__all__ = [
    "KERNELS",
    "Dynamics",
    "Info",
    "Kernel",
    "KernelState",
    "Point",
    "Rung",
    "Steps",
]
