"""The front door in Python: sample a target at a few temperatures and read off averages.

`sample` starts copies of a ladder apart, half from minimised weights and half from draws of the
prior, tunes the step sizes, burns in, and records. What it returns is plain arrays with named axes
in their docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import jax
import numpy as np

from tempernet.data import Examples
from tempernet.diagnostics.statistics import Estimate, average
from tempernet.errors import ConfigError, check_count
from tempernet.model.networks import Weights
from tempernet.model.scores import hold_out
from tempernet.model.target import Target
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.temperatures import temperature_path
from tempernet.tempering.engine import Engine
from tempernet.tempering.population import annealed_weights
from tempernet.tempering.rounds import Record, Rungs, State
from tempernet.tempering.tuning import Tuning


@dataclass(frozen=True, eq=False)
class Samples:
    """What a run recorded. Axes: copies, rounds, K temperatures; scores have one entry every
    `score_every` rounds.
    """

    temperatures: np.ndarray
    energy: np.ndarray
    """E after each round: (copies, rounds, K)."""
    acceptance: np.ndarray
    """Mean acceptance probability of each round's trajectories: (copies, rounds, K)."""
    wall_rejections: np.ndarray
    nonfinite: np.ndarray
    replica: np.ndarray
    """Which replica of the copy was at the rung: (copies, rounds, K)."""
    swap_rate: np.ndarray
    """Mean swap probability of each pair of neighbours over the attempts: (K-1,)."""
    time_steps: np.ndarray
    """The paper's dt of each temperature: (K,)."""
    loss: np.ndarray
    """Held-out loss an example: (copies, scores, K)."""
    accuracy: np.ndarray
    num_examples: int
    final: State

    @property
    def train_loss(self) -> Estimate:
        """Mean training loss an example and its standard error, each (K,)."""
        return average(self.energy / max(self.num_examples, 1))

    @property
    def test_loss(self) -> Estimate:
        """Mean held-out loss an example and its standard error, each (K,)."""
        return _scored(self.loss)

    @property
    def test_accuracy(self) -> Estimate:
        """Mean held-out accuracy and its standard error, each (K,)."""
        return _scored(self.accuracy)


Start = Literal["apart", "annealed", "minimised", "prior"]


def sample(
    target: Target,
    temperatures: Sequence[float] | np.ndarray,
    *,
    rounds: int = 100,
    burn_in: int = 50,
    copies: int = 2,
    test: Examples | None = None,
    score_every: int = 5,
    start: Start = "apart",
    minimiser: Minimiser | None = None,
    tuning: Tuning | None = None,
    progress_fn: Callable[[str, int, int], None] | None = None,
    **engine_options: Any,
) -> Samples:
    """Sample exp(-E/T) prior at all `temperatures` by replica exchange.

    `burn_in` rounds are not recorded; the step sizes are tuned before, halfway through and at the
    end of them and then fixed. `test` is a held-out set to score every `score_every` rounds.
    `start` is where replicas begin: half of the copies at minimised weights and half at draws of
    the prior ("apart"); half cooled together from the hottest temperature and half heated again
    ("annealed", which finds what is rare above a transition and common below it); all "minimised"
    or all from the "prior". `progress_fn(phase, done, total)` is called after each round. Other
    options go to `Engine` (`dynamics`, `exchange`, `masses`, `seed`, `devices`, ...).

    >>> samples = sample(target, [0.3, 1, 3, 10], rounds=200, test=data.test)
    >>> loss, error = samples.test_loss
    """
    check_count("rounds", rounds)
    check_count("score_every", score_every)
    check_count("burn_in", burn_in, least=0)
    engine = Engine(target, temperature_path(temperatures), copies=copies, **engine_options)
    report = progress_fn or (lambda phase, done, total: None)
    state = engine.start(starting_weights(engine, start, minimiser))
    rungs = engine.rungs(engine.first_step)
    tuning = tuning or Tuning()
    # What is tuned before the replicas have settled will be tuned again: no need to check it.
    roughly = replace(tuning, check_trajectories=1, max_checks=1)
    for part in (burn_in // 2, burn_in - burn_in // 2):
        state, rungs, _ = engine.tune(state, rungs, roughly)
        for done in range(part):
            state, _ = jax.block_until_ready(engine.round(state, rungs))
            report("burn-in", done + 1, part)
    state, rungs, _ = engine.tune(state, rungs, tuning)

    held_out = None if test is None or target.network is None else hold_out(target.network, test)
    records, scores = [], []
    for done in range(rounds):
        state, record = engine.round(state, rungs)
        records.append(jax.device_get(record))
        if held_out is not None and (done + 1) % score_every == 0:
            scores.append(engine.score(state, held_out))
        report("sample", done + 1, rounds)
    return _collect(engine, rungs, state, records, scores)


def starting_weights(engine: Engine, start: Start, minimiser: Minimiser | None = None) -> Weights:
    """Weights of all replicas: minimised, drawn from the prior, or every second copy the one and
    the other.

    "annealed" are those last ones after they have cooled together from the hottest rung, every
    second copy as they were at the coldest (see `population`).
    """
    if start not in get_args(Start):
        raise ConfigError(
            f'start must be "apart", "annealed", "minimised" or "prior", got {start!r}'
        )
    if start == "annealed":
        return annealed_weights(engine, starting_weights(engine, "apart", minimiser))
    from_prior = engine.prior_weights()
    if start == "prior":
        return from_prior
    minimised = engine.minimise(engine.init_weights(), minimiser).point.weights
    if start == "minimised":
        return minimised
    odd_copy = np.repeat(np.arange(engine.copies) % 2 == 1, engine.num_rungs)
    return jax.tree.map(
        lambda a, b: np.where(odd_copy.reshape(-1, *[1] * (a.ndim - 1)), b, a),
        minimised,
        from_prior,
    )


def _scored(values: np.ndarray) -> Estimate:
    """The average of scores; an error if there are none."""
    if values.size == 0:
        raise ConfigError(
            "nothing was scored: give `test` a held-out set and at least `score_every` rounds"
        )
    return average(values)


def _collect(
    engine: Engine, rungs: Rungs, state: State, records: list[Record], scores: list[Any]
) -> Samples:
    stacked = jax.tree.map(lambda *rows: np.stack(rows, axis=1), *records)
    attempts = stacked.swaps.attempts.sum(axis=(0, 1))
    with np.errstate(invalid="ignore"):
        swap_rate = stacked.swaps.probability.sum(axis=(0, 1)) / attempts
    empty = np.empty((engine.copies, 0, engine.num_rungs))
    return Samples(
        temperatures=engine.path.values,
        energy=stacked.phi[..., 0],
        acceptance=stacked.info.acceptance,
        wall_rejections=stacked.info.wall_rejections,
        nonfinite=stacked.info.nonfinite,
        replica=stacked.replica,
        swap_rate=swap_rate,
        time_steps=engine.path.time_steps(np.asarray(rungs.step_sizes, np.float64)),
        loss=np.stack([s.loss for s in scores], axis=1) if scores else empty,
        accuracy=np.stack([s.accuracy for s in scores], axis=1) if scores else empty,
        num_examples=engine.target.num_examples,
        final=state,
    )
