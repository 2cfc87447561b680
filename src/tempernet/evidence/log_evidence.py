"""The evidence of any target in Python: `log_evidence` samples a path from what is known to the
posterior.

Where a path begins before anything is known of the target is decided here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from tempernet.errors import ConfigError, check_count
from tempernet.evidence import estimators as evidence
from tempernet.evidence.estimators import HEADLINE, LogRatio, PathSamples, Quadratic
from tempernet.model.networks import Weights
from tempernet.model.target import Target
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.path import Path
from tempernet.paths.temperatures import temperature_path
from tempernet.tempering.adaptation import Adaptation, is_measured, stage_ends
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State
from tempernet.tempering.sampling import starting_weights
from tempernet.tempering.tuning import Tuning

PRIOR_DRAWS = 64
FEELS = 0.3
"""A coefficient of E at which draws of the prior first feel E, in units of one over its standard
deviation.
"""
FIT = 4
"""The quadratic of a bridge is fitted by a share of 1/4 of the burn-in."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A log evidence, and what it was worked out from."""

    value: float
    """log of the integral of exp(-E) times the normalised prior."""
    error: float
    estimators: dict[str, LogRatio]
    """Log evidence by all estimators; the value is the headline's."""
    disagreements: list[str]
    """Estimators that the errors cannot reconcile with it; not empty: not converged."""
    path: Path
    samples: PathSamples
    known: float
    """log Z at the end of the path that is known, less the log volume of the prior."""
    swap_rate: np.ndarray


def log_evidence(
    target: Target,
    *,
    method: Literal["temperature", "bridge"] = "temperature",
    num: int = 24,
    coldest: float = 1.0,
    burn_in: int = 200,
    rounds: int = 400,
    copies: int = 4,
    tuning: Tuning | None = None,
    **engine_options: Any,
) -> Evidence:
    """The log evidence of a target by a path of `num` rungs, placed during burn-in.

    `temperature` leads from the prior, `bridge` from a quadratic around a minimum (Eq. 21). Every
    second copy starts from minimised weights, the others from draws of the prior. A path by
    temperature may go on from T = 1 to the `coldest`: the rungs below 1 keep replicas moving at 1
    and count for nothing else. Other options go to `Engine`.

    >>> found = log_evidence(target, num=30, rounds=500)
    >>> print(found.value, found.error, found.disagreements)
    """
    for name, count, least in (("num", num, 3), ("rounds", rounds, 2), ("burn_in", burn_in, 8)):
        check_count(name, count, least=least)
    tuning = tuning or Tuning()
    seed = int(engine_options.get("seed", 0))
    if method == "temperature":
        path, known = first_temperatures(target, num, coldest, seed), 0.0
    elif method == "bridge":
        if coldest != 1:
            raise ConfigError(
                f"a bridge ends at the posterior, T = 1: coldest must be 1, got {coldest}"
            )
        betas = first_betas(target, num, seed)
        centre = _fit(target, copies * num, max(2, burn_in // FIT), tuning, engine_options)
        quadratic = Quadratic(centre.weights, centre.stiffness, target.prior)
        path = bridge_path(1 - betas, jax.tree.map(jnp.asarray, centre), quadratic.draw)
        known = quadratic.log_integral - float(centre.energy) - target.prior.log_volume
    else:
        raise ConfigError(f'method must be "temperature" or "bridge", got {method!r}')
    engine = Engine(target, path, copies=copies, **engine_options)
    adaptation = Adaptation.begin(engine)
    state = engine.start(starting_weights(engine, "apart"))
    phi = _walk(engine, adaptation, state, burn_in, rounds, tuning)
    counts = adaptation.path.beta <= 1
    sampled = adaptation.path.moved(adaptation.path.values[counts])
    samples = PathSamples(sampled.coefficients, phi[:, :, counts])
    found = evidence.log_integrals(samples, np.asarray(known))
    return Evidence(
        value=found[HEADLINE].value,
        error=found[HEADLINE].error,
        estimators=found,
        disagreements=evidence.disagreements(found),
        path=sampled,
        samples=samples,
        known=known,
        swap_rate=adaptation.measured.swap_rate[counts[:-1]],
    )


def first_temperatures(target: Target, num: int, coldest: float, seed: int = 0) -> Path:
    """`num` temperatures to begin with, from the coldest up to inf, with a rung at T = 1 that
    stays.

    At the cold end of a ladder the replica with the deepest mode wins every swap and stays for as
    long as its mode lives. With a few rungs below 1 it stays there instead, and T = 1 sees the
    others too.
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
    """beta from 1 down to 0 before anything is sampled: geometric as far as draws of the prior feel
    E.
    """
    keys = jax.random.split(jax.random.key(seed), PRIOR_DRAWS)
    energies = np.asarray(
        jax.lax.map(lambda key: target.energy(target.prior.draw(key)), keys), np.float64
    )
    finite = energies[np.isfinite(energies)]
    spread = float(finite.std()) if len(finite) > 1 else 1.0
    least = min(FEELS / max(spread, 1e-30), 0.5)
    return np.concatenate([np.geomspace(1.0, least, num - 1), [0.0]])


def _walk(
    engine: Engine, adaptation: Adaptation, state: State, burn_in: int, rounds: int, tuning: Tuning
) -> np.ndarray:
    """Burn in by stages, then sample: energy terms (copies, rounds, K, M)."""
    largest, ends = engine.largest_step, stage_ends(burn_in)
    state = adaptation.guess(engine, state, tuning)
    phi = []
    for done in range(burn_in + rounds):
        if done in ends and done > 0:
            adaptation.settle(largest)
            if done < burn_in:
                adaptation.move()
            adaptation.begin_stage(largest)
        state, on_device = engine.round(state, adaptation.rungs(engine))
        record = jax.device_get(on_device)
        if done < burn_in:
            adaptation.learn(record, tuning, largest)
        else:
            phi.append(record.phi)
        if is_measured(ends, done):
            adaptation.measured.add(record)
    return np.stack(phi, axis=1).astype(np.float64)


def _fit(
    target: Target, replicas: int, rounds: int, tuning: Tuning, options: dict[str, Any]
) -> Centre:
    """w0 and k: fluctuations of many replicas at T = 1 around the deepest of their minima, after as
    much burn-in.

    Every second replica comes from the prior: other modes, if there are any, widen the quadratic,
    which leads to them.
    """
    engine = Engine(
        target, temperature_path([1.0]), copies=replicas, **{**options, "exchange": "none"}
    )
    minimum = engine.minimise(engine.init_weights()).point
    energy = np.asarray(minimum.energy)
    deepest = int(energy.argmin())
    centre = jax.tree.map(lambda leaf: np.asarray(leaf)[deepest], minimum.weights)
    adaptation = Adaptation.begin(engine)
    state = engine.start(around(engine, centre))
    adaptation.tune(engine, state, replace(tuning, check_trajectories=1, max_checks=1))
    squares = jax.tree.map(lambda leaf: np.zeros(leaf.shape), centre)
    for done in range(2 * rounds):
        state, _ = engine.round(state, adaptation.rungs(engine))
        if done >= rounds:
            weights = engine.weights_at(state, 0)
            squares = jax.tree.map(
                lambda s, w, w0: s + np.square(w - w0).mean(axis=0), squares, weights, centre
            )
    return Centre(centre, energy[deepest], jax.tree.map(lambda s: stiffness(s / rounds), squares))


def around(engine: Engine, centre: Weights) -> Weights:
    """Starts of all replicas: every second one at the centre, the others drawn from the prior."""
    odd = np.arange(engine.num_replicas) % 2 == 1

    def start(drawn: Any, at: np.ndarray) -> np.ndarray:
        return np.where(odd.reshape(-1, *[1] * at.ndim), np.asarray(drawn), at)

    return jax.tree.map(start, engine.prior_weights(), centre)


def stiffness(mean_square: np.ndarray) -> np.ndarray:
    """k = 1 / <(w - w0)^2> (Eq. 20); a weight that has not moved at all is as stiff as float32 can
    tell.
    """
    return np.asarray(1 / np.maximum(mean_square, np.finfo(np.float32).eps), np.float32)
