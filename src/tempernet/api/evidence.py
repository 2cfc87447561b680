"""`log_evidence`: the log evidence of any target, by a path from what is known to the posterior."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tempernet.api.described import described, provenance_of
from tempernet.api.evidences import Evidence
from tempernet.api.sample import ProgressFn, Telling
from tempernet.config import EvidenceSettings
from tempernet.errors import ConfigError, check_count
from tempernet.evidence.first_rungs import first_betas, first_temperatures
from tempernet.evidence.fit import FitHost, QuadraticFit, on_device
from tempernet.evidence.quadratic import Quadratic
from tempernet.kernels.dynamics import Dynamics
from tempernet.model.networks import Weights
from tempernet.model.target import Target
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.bridge import bridge_path
from tempernet.paths.path import Path
from tempernet.paths.temperatures import temperature_path
from tempernet.results.evidence import results_of
from tempernet.results.path_records import side_by_side
from tempernet.tempering.engine import Engine
from tempernet.tempering.sampler import Procedure, Sampler
from tempernet.tempering.starts import Start
from tempernet.tempering.tuning import Tuning

DEFAULTS = EvidenceSettings()
"""The command's settings, whose defaults hold here too."""
DYNAMICS = Dynamics(
    num_steps=DEFAULTS.dynamics.num_steps, num_trajectories=DEFAULTS.dynamics.num_trajectories
)


def log_evidence(
    target: Target,
    *,
    method: Literal["temperature", "bridge"] = DEFAULTS.path.method,
    num: int = DEFAULTS.path.num,
    coldest: float = DEFAULTS.path.coldest,
    adaptive: bool = DEFAULTS.path.adaptive,
    burn_in: int = DEFAULTS.run.burn_in,
    rounds: int = DEFAULTS.run.rounds,
    copies: int = DEFAULTS.run.copies,
    fit_burn_in: int = DEFAULTS.bridge.fit_burn_in,
    fit_rounds: int = DEFAULTS.bridge.fit_rounds,
    start: Start = DEFAULTS.start.weights,
    dynamics: Dynamics = DYNAMICS,
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
) -> Evidence:
    """The log evidence of a target, as the command works it out and with its defaults.

    Args:
        target: what the evidence is of.
        method: "temperature" leads from the prior, "bridge" from a quadratic around a minimum
            (Eq. 21).
        num: rungs of the path, both ends included.
        coldest: where a path by temperature ends; rungs below T = 1 keep replicas moving at 1 and
            count for nothing else.
        adaptive: whether burn-in moves the rungs to where neighbours swap equally often.
        burn_in: rounds before the samples count.
        rounds: rounds that count.
        copies: independent copies of the path.
        fit_burn_in: of a bridge, rounds before the fluctuations around the minimum are averaged.
        fit_rounds: of a bridge, rounds that they are averaged over.
        start: where replicas begin, as in `sample`.

    The other arguments are those of `sample`.

    >>> found = tempernet.log_evidence(target, num=30, rounds=500)
    >>> found.log_evidence.mean, found.log_evidence.error, found.trusted
    """
    for name, count, least in (("num", num, 3), ("rounds", rounds, 2), ("copies", copies, 1)):
        check_count(name, count, least=least)
    if method not in ("temperature", "bridge"):
        raise ConfigError(f'method must be "temperature" or "bridge", got {method!r}')
    procedure = Procedure(
        burn_in=burn_in,
        rounds=rounds,
        moves_rungs=adaptive,
        start=start,
        minimiser=minimiser or Minimiser(),
        tuning=tuning or Tuning(),
        cold_to=1.0 if method == "temperature" else None,
    )

    def engine_on(path: Path, number: int, rule: str = exchange) -> Engine:
        return Engine(
            target,
            path,
            copies=number,
            dynamics=dynamics,
            exchange=rule,
            num_exchanges=num_exchanges,
            masses=masses,
            seed=seed,
            devices=devices,
            data_devices=data_devices,
            tile=tile,
            reproducible=reproducible,
        )

    with Telling(progress, progress_fn) as host:
        if method == "temperature":
            path = first_temperatures(target, num, coldest, seed)
            known = float(target.prior.log_volume)
        else:
            if coldest != 1:
                raise ConfigError(
                    f"a bridge ends at the posterior, T = 1: coldest must be 1, got {coldest}"
                )
            fitting = FitHost(host)
            fitting.fit = QuadraticFit(
                engine_on(temperature_path([1.0]), copies * num, "none"),
                fitting,
                burn_in=fit_burn_in,
                rounds=fit_rounds,
                apart=False,
                minimiser=procedure.minimiser,
                tuning=procedure.tuning,
            )
            fitting.fit.begin()
            centre = fitting.fit.run()
            quadratic = Quadratic(centre.weights, centre.stiffness, target.prior)
            lambdas = 1 - first_betas(target, num, seed)
            path = bridge_path(lambdas, on_device(centre), quadratic.draw)
            known = quadratic.log_integral - float(centre.energy)
        engine = engine_on(path, copies)
        said = described(DEFAULTS, engine, burn_in=burn_in, rounds=rounds)
        sampler = Sampler(engine, procedure, host)
        sampler.begin()
        sampler.run()
    ways = {"method": method, "num": num, "coldest": coldest, "adaptive": adaptive}
    bridge = {"fit_burn_in": fit_burn_in, "fit_rounds": fit_rounds}
    settings = DEFAULTS.model_copy(
        update=said
        | {
            "path": DEFAULTS.path.model_copy(update=ways),
            "bridge": DEFAULTS.bridge.model_copy(update=bridge),
            "start": DEFAULTS.start.model_copy(update={"weights": start}),
        }
    )
    rows = host.load("rounds")
    recorded = side_by_side("this run", settings, rows, engine.path.parameter, np.asarray(known))
    found = results_of(recorded, settings, provenance_of(engine))
    return Evidence(**vars(found))
