"""The kernels by the names used in settings."""

from __future__ import annotations

from typing import Protocol

from tempernet.kernels.base import AnyKernel, Settings
from tempernet.kernels.hmc import HMC
from tempernet.kernels.horowitz import Horowitz
from tempernet.kernels.potential import Potential
from tempernet.model.networks import Weights


class MakeKernelFn(Protocol):
    """Builds the kernel of one replica."""

    def __call__(self, potential: Potential, masses: Weights, settings: Settings) -> AnyKernel:
        """`masses` has an array, or a number that broadcasts, for each leaf of the weights."""


KERNELS: dict[str, MakeKernelFn] = {"hmc": HMC, "horowitz": Horowitz}
"""A new kernel is one file and one entry here."""
