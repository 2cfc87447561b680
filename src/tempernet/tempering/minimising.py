"""Minimisation of all replicas of an engine at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from tempernet.devices.mesh import compiled, over_replicas
from tempernet.model.networks import Weights
from tempernet.optimise.minimise import Minimiser, Minimum
from tempernet.tempering.programs import Programs

MinimiseFn = Callable[[Weights, Any], Minimum]
"""(weights of all replicas, padded; data) -> their minima, without the padding."""


def compiled_minimiser(programs: Programs, minimiser: Minimiser) -> MinimiseFn:
    """This minimiser for all replicas."""
    layout, half_width = programs.layout, programs.target.prior.half_width

    def run(start: Weights, data: Any) -> Minimum:
        return minimiser.run(start, lambda w: programs.evaluate(w, data), half_width)

    mapped = over_replicas(run, layout, programs.specs)

    def unpadded(start: Weights, data: Any) -> Minimum:
        found: Minimum = jax.tree.map(lambda leaf: leaf[: layout.num_replicas], mapped(start, data))
        return found

    minimise: MinimiseFn = compiled(unpadded)
    return minimise
