"""`sample`: a target at a few temperatures, by replica exchange."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from tempernet.api.described import described, provenance_of
from tempernet.api.samples import Samples
from tempernet.config import SweepSettings
from tempernet.data import Examples
from tempernet.errors import ConfigError, check_count
from tempernet.kernels.dynamics import Dynamics
from tempernet.model.networks import Weights
from tempernet.model.scores import hold_out
from tempernet.model.target import Batch, Target
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.temperatures import temperature_path
from tempernet.report.terminal import reporter
from tempernet.results.series import Recorded
from tempernet.results.sweep import results_of
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Host, Progress
from tempernet.tempering.observables import HeldOut
from tempernet.tempering.sampler import Procedure, Sampler
from tempernet.tempering.scoring import Scoring
from tempernet.tempering.starts import Start
from tempernet.tempering.tuning import Tuning

DEFAULTS = SweepSettings()
"""The command's settings, whose defaults hold here too."""
ProgressFn = Callable[[str, int, int], None]
"""Called with (phase, done, total) as the run goes on."""


def sample(
    target: Target,
    temperatures: Sequence[float] | np.ndarray,
    *,
    burn_in: int = DEFAULTS.run.burn_in,
    rounds: int = DEFAULTS.run.rounds,
    copies: int = DEFAULTS.run.copies,
    validation: Examples | None = None,
    test: Examples | None = None,
    score_every: int = DEFAULTS.run.score_every,
    keep: int = DEFAULTS.run.keep,
    start: Start = DEFAULTS.start.weights,
    adaptive: bool = False,
    dynamics: Dynamics | None = None,
    exchange: str = DEFAULTS.dynamics.exchange,
    num_exchanges: int = DEFAULTS.dynamics.num_exchanges,
    masses: float | str | Weights | None = None,
    minimiser: Minimiser | None = None,
    tuning: Tuning | None = None,
    seed: int = 0,
    devices: int | None = None,
    data_devices: int = 1,
    tile: int | None = None,
    reproducible: bool = False,
    progress: bool | None = None,
    progress_fn: ProgressFn | None = None,
) -> Samples:
    """Sample exp(-E/T) times the prior at all temperatures by replica exchange.

    It runs the loop of the command with the defaults of the command: step sizes follow the
    acceptance of every round of burn-in and are then fixed, and the verdict is the command's.

    Args:
        target: what is sampled.
        temperatures: K of them, increasing; the last may be inf, which is the prior.
        burn_in: rounds before the samples count.
        rounds: rounds that count.
        copies: independent copies of the ladder.
        validation: examples by which the best temperature is chosen.
        test: examples that are only reported on.
        score_every: rounds between two scores of these examples.
        keep: how often in the run the networks of all temperatures are kept.
        start: where replicas begin. "apart": every second copy at minimised weights, the others at
            draws of the prior; "minimised" or "prior": all of them there; "annealed": population
            annealing from the highest temperature, every second copy heated again.
        adaptive: whether burn-in moves all temperatures but the first and the last to where
            neighbours swap equally often.
        dynamics: how a replica moves within a round.
        exchange: "even-odd", "random-pairs" or "none".
        num_exchanges: sweeps of exchange after each round of trajectories.
        masses: one number, "fan-in" or a prefix of the weights' pytree; None for fan-in where there
            is a network, and 1 elsewhere.
        minimiser: how starts are minimised.
        tuning: the window of acceptance.
        seed: of all random numbers.
        devices: how many are used; None for all.
        data_devices: how many of them split the examples.
        tile: replicas that a device advances at a time; None to measure it.
        reproducible: whether any number of devices gives the same bits.
        progress: whether to show how far it is; None to do so on a terminal.
        progress_fn: called with (phase, done, total) as well.

    >>> samples = tempernet.sample(target, [0.3, 1, 3, 10], validation=held_out, test=data.test)
    >>> print(samples)
    """
    path = temperature_path(temperatures)
    procedure = Procedure(
        burn_in=burn_in,
        rounds=rounds,
        moves_rungs=adaptive,
        start=start,
        minimiser=minimiser or Minimiser(),
        tuning=tuning or Tuning(),
    )
    check_count("score_every", score_every)
    held_out = HeldOut(
        test=_prepared(target, "test", test),
        validation=_prepared(target, "validation", validation),
        all_test=_prepared(target, "test", test),
    )
    engine = Engine(
        target,
        path,
        copies=copies,
        dynamics=dynamics,
        exchange=exchange,
        num_exchanges=num_exchanges,
        masses=masses,
        seed=seed,
        devices=devices,
        data_devices=data_devices,
        tile=tile,
        reproducible=reproducible,
    )
    said = described(DEFAULTS, engine, burn_in=burn_in, rounds=rounds)
    with Telling(progress, progress_fn) as host:
        scoring = Scoring(held_out, score_every, keep)
        sampler = Sampler(engine, procedure, host, scoring=scoring)
        sampler.begin()
        sampler.run()
    ladder = {
        "kind": "adaptive" if adaptive else "listed",
        "temperatures": () if adaptive else tuple(map(float, path.values)),
        "num": path.num_rungs,
    }
    settings = DEFAULTS.model_copy(
        update=said
        | {
            "ladder": DEFAULTS.ladder.model_copy(update=ladder),
            "start": DEFAULTS.start.model_copy(update={"weights": start}),
        }
    )
    scores = sampler.scores
    ensemble = scores.ensemble / scores.count if scores is not None and scores.count else None
    results = results_of(
        Recorded(
            rounds=host.load("rounds"),
            scores=host.load("scores"),
            full=host.load("full"),
            weights=host.load("weights"),
            ensemble=ensemble,
        ),
        settings,
        provenance_of(
            engine,
            labels=None if test is None else np.asarray(test.y),
            n_validation=0 if validation is None else len(validation),
        ),
    )
    return Samples(**vars(results), network=target.network, like=target.prior.like)


class Telling(Host):
    """The host of sampling in Python: shows progress, and warns the user."""

    def __init__(self, progress: bool | None, progress_fn: ProgressFn | None) -> None:
        super().__init__(warn_fn=_warn)
        self._fn = progress_fn
        shown = sys.stderr.isatty() if progress is None else progress
        self._shown = reporter(quiet=not shown)

    def __enter__(self) -> Telling:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def tell(self, progress: Progress, *, always: bool = False) -> None:
        """Show the progress, and call the user's function."""
        self._shown(progress)
        if self._fn is not None:
            self._fn(progress.phase, progress.done, progress.total)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def _prepared(target: Target, name: str, examples: Examples | None) -> Batch | None:
    """Examples as the engine scores them, if there are any."""
    if examples is None:
        return None
    if not isinstance(examples, Examples):
        raise ConfigError(f"{name} must be tempernet.data.Examples, got {type(examples).__name__}")
    if target.network is None:
        raise ConfigError(
            f"this target has no network, so it cannot be scored on {name} examples: leave {name} "
            "out, or sample a classifier"
        )
    return hold_out(target.network, examples)
