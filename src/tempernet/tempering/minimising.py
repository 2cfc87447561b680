"""Minimisation of all replicas of an engine at once."""

from __future__ import annotations

from collections.abc import Callable

import jax

from tempernet.devices.mesh import compiled, over_replicas
from tempernet.model.networks import Weights
from tempernet.model.target import Data
from tempernet.optimise.minimise import Minimiser, Minimum
from tempernet.tempering.programs import Programs

MinimiseFn = Callable[[Weights, Data], Minimum]
"""(weights of all replicas, padded; data) -> their minima, without the padding."""


def compiled_minimiser(programs: Programs, minimiser: Minimiser) -> MinimiseFn:
    """This minimiser for all replicas."""
    layout, half_width = programs.layout, programs.target.prior.half_width

    def run(start: Weights, data: Data) -> Minimum:
        return minimiser.run(start, lambda w: programs.evaluate(w, data), half_width)

    mapped = over_replicas(run, layout, programs.specs)

    def unpadded(start: Weights, data: Data) -> Minimum:
        found: Minimum = jax.tree.map(lambda leaf: leaf[: layout.num_replicas], mapped(start, data))
        return found

    minimise: MinimiseFn = compiled(unpadded)
    return minimise
