"""Where the rungs of an evidence's path begin, before anything is known of the target."""

from __future__ import annotations

import jax
import numpy as np

from tempernet.errors import ConfigError
from tempernet.model.target import Target
from tempernet.paths.path import Path
from tempernet.paths.temperatures import temperature_path

PRIOR_DRAWS = 64
FEELS = 0.3
"""A coefficient of E at which draws of the prior first feel E, in units of 1 / std(E)."""


def first_temperatures(target: Target, num: int, coldest: float, seed: int = 0) -> Path:
    """A path of `num` temperatures from the `coldest` up to inf, with a rung at T = 1 that stays.

    At the cold end of a ladder the replica with the deepest mode wins every swap and stays for as
    long as its mode lives. With a few rungs below 1 it stays there instead, and T = 1 sees the
    others too.

    Args:
        target: what is sampled.
        num: temperatures in all.
        coldest: the lowest temperature, 1 or below.
        seed: of the draws of the prior that place the hot rungs.
    """
    if not 0 < coldest <= 1:
        raise ConfigError(f"coldest must be a temperature above 0 and at most 1, got {coldest}")
    betas = first_betas(target, num, seed)
    if coldest < 1:
        # As close together as the others would be without them.
        below = int(np.clip(np.rint(np.log(coldest) / np.log(betas[1])), 1, num - 2))
        above = np.geomspace(1.0, betas[-2], num - 1 - below)
        betas = np.concatenate([np.geomspace(1 / coldest, 1.0, below + 1)[:-1], above, [0.0]])
    with np.errstate(divide="ignore"):
        return temperature_path(1 / betas, stays=1.0 if coldest < 1 else None)


def first_betas(target: Target, num: int, seed: int = 0) -> np.ndarray:
    """Coefficients of E from 1 down to 0, (num,): geometric as far as draws of the prior feel E.

    Args:
        target: what is sampled.
        num: how many.
        seed: of the draws of the prior.
    """
    keys = jax.random.split(jax.random.key(seed), PRIOR_DRAWS)
    energies = np.asarray(
        jax.lax.map(lambda key: target.energy(target.prior.draw(key)), keys), np.float64
    )
    finite = energies[np.isfinite(energies)]
    spread = float(finite.std()) if len(finite) > 1 else 1.0
    least = min(FEELS / max(spread, 1e-30), 0.5)
    return np.concatenate([np.geomspace(1.0, least, num - 1), [0.0]])
