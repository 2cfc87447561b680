"""Sweeps, optimisations and evidences that never were, for tests of what is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray

from tempernet import config
from tempernet.diagnostics.flow import Flow
from tempernet.diagnostics.statistics import average
from tempernet.diagnostics.thermo import best_temperature
from tempernet.diagnostics.verdict import judge
from tempernet.evidence import Disagreement, LogRatio, PathSamples
from tempernet.paths.bridge import bridge_path
from tempernet.paths.ladders import measure_barrier
from tempernet.paths.temperatures import temperature_path
from tempernet.results.evidence import EvidenceResults, headline_of
from tempernet.results.optimise import OptimiseResults
from tempernet.results.path_records import NO_CENTRE, RecordedPath
from tempernet.results.summary import summarise
from tempernet.results.sweep import SweepResults

LAYERS = 2


def make_results(
    temperatures: np.ndarray,
    *,
    copies: int = 3,
    rounds: int = 80,
    burn_in: int = 12,
    scored: bool = True,
    stuck: tuple[int, ...] = (),
    n_train: int = 50,
    protocol: str = "default",
    prior: str = "box",
    path: Path = Path("run"),
    network: str = "M3",
    loss: np.ndarray | None = None,
    test_loss: np.ndarray | None = None,
    energy: np.ndarray | None = None,
    swap_rate: np.ndarray | None = None,
) -> SweepResults:
    """A run that never was: normal energies with the variance of their mean's slope, copies apart
    at `stuck` rungs.

    `loss` is the mean held-out loss at every rung, `test_loss` that on test data if it is another,
    `energy` all energies, `swap_rate` that of every pair.
    """
    rng = np.random.default_rng(7)
    temperatures = np.asarray(temperatures, np.float64)
    rungs = len(temperatures)
    warmth = 1 / (1 + 3 / temperatures)
    shape = (copies, rounds, rungs)
    apart = np.zeros((copies, 1, rungs))
    apart[1::2, :, list(stuck)] = 5.0
    normal = n_train * 4 * warmth + np.sqrt(n_train) * warmth * (rng.standard_normal(shape) + apart)
    energy = normal if energy is None else energy
    replica = np.stack([_walk(rng, rounds, rungs) for _ in range(copies)])
    pairs = (copies, rounds, rungs - 1)
    variables = {
        "energy": (("copy", "round", "temperature"), energy.astype(np.float32)),
        "acceptance": (
            ("copy", "round", "temperature"),
            rng.uniform(0.5, 0.8, shape).astype(np.float32),
        ),
        "wall_rejections": (("copy", "round", "temperature"), rng.integers(0, 2, shape)),
        "nonfinite": (("copy", "round", "temperature"), np.zeros(shape, int)),
        "replica": (("copy", "round", "temperature"), replica),
        "swap_attempts": (("copy", "round", "pair"), np.ones(pairs, int)),
        "swap_probability": (("copy", "round", "pair"), _swaps(rng, pairs, swap_rate)),
        "mean_square": (
            ("copy", "round", "temperature", "layer"),
            (0.01 + 0.3 * warmth[:, None]) * rng.uniform(0.9, 1.1, (*shape, LAYERS)),
        ),
        "time_step": (
            ("round", "temperature"),
            np.broadcast_to(0.1 / np.sqrt(temperatures), (rounds, rungs)),
        ),
        "num_steps": (("round", "temperature"), np.full((rounds, rungs), 100)),
    }
    coords = {
        "temperature": temperatures,
        "round": np.arange(1, rounds + 1),
        "copy": np.arange(copies),
    }
    if scored:
        mean = 50 / n_train + 2 * np.log(0.6 + warmth) ** 2 if loss is None else loss
        scores = (copies, max(1, rounds // 4), rungs)
        chosen_by = mean + 0.05 * rng.standard_normal(scores)
        losses = (mean if test_loss is None else test_loss) + 0.05 * rng.standard_normal(scores)
        for name, values in (("validation_loss", chosen_by), ("test_loss", losses)):
            variables[name] = (("copy", "score", "temperature"), values)
        variables["test_accuracy"] = (("copy", "score", "temperature"), 1 / (1 + losses))
        coords["score"] = 4 * np.arange(1, losses.shape[1] + 1)
    series = xarray.Dataset(variables, coords=coords)
    provenance = {
        "data": {"name": "mnist16", "n_train": n_train},
        "trajectories": 4,
        "uninformed_loss": np.log(10),
    }
    flow = Flow(copies, rungs)
    for row in np.moveaxis(replica, 1, 0):
        flow.update(row)
    verdict = judge({"energy": energy}, 1, exchanging=False)
    summary = summarise(series, provenance, verdict)
    if scored:
        for name, value in (("loss", 0.9), ("accuracy", 0.7), ("calibration", 0.1)):
            error = 0.01 if copies > 1 else np.nan
            summary[f"ensemble_{name}"] = ("temperature", np.full(rungs, value))
            summary[f"ensemble_{name}_error"] = ("temperature", np.full(rungs, error))
    return SweepResults(
        path=path,
        settings=config.resolve(
            config.SweepSettings,
            assignments=[
                f"protocol={protocol}",
                f"prior.kind={prior}",
                f"prior.factor={config.PRIOR_FACTORS[network]}",
                f"data.n_train={n_train}",
                f"network.name={network}",
            ],
        ),
        provenance=provenance,
        series=series,
        burn_in=_burn_in(energy, temperatures, burn_in),
        summary=summary,
        verdict=verdict,
        best=best_temperature(series.validation_loss.values, temperatures) if scored else None,
        barrier=measure_barrier(
            temperature_path(temperatures),
            summary.swap_rate.values[:-1],
            summary.energy.values[:, None],
        ),
        round_trips=int(flow.round_trips.sum()),
        fraction_from_hot=flow.fraction_from_hot,
        finished=True,
    )


def _swaps(rng: np.random.Generator, pairs: tuple[int, ...], rate: np.ndarray | None) -> np.ndarray:
    return (
        rng.uniform(0.1, 0.9, pairs)
        if rate is None
        else np.clip(rate + rng.uniform(-0.02, 0.02, pairs), 0, 1)
    )


def _walk(rng: np.random.Generator, rounds: int, rungs: int) -> np.ndarray:
    """Who sits where, (rounds, rungs): neighbours swap at random."""
    rows = [np.arange(rungs)]
    for _ in range(rounds - 1):
        row = rows[-1].copy()
        for rung in range(int(rng.integers(2)), rungs - 1, 2):
            if rng.random() < 0.7:
                row[rung : rung + 2] = row[rung : rung + 2][::-1]
        rows.append(row)
    return np.stack(rows)


def _burn_in(energy: np.ndarray, temperatures: np.ndarray, rounds: int) -> xarray.Dataset:
    """A ladder that moves half way through burn-in, and energies that come down to their place."""
    fall = np.geomspace(3, 1, rounds)[None, :, None] if rounds else np.zeros((1, 0, 1))
    ladder = np.where(np.arange(rounds)[:, None] < rounds / 2, 1.3, 1.0) * temperatures
    return xarray.Dataset(
        {
            "energy": (("copy", "burn_in_round", "rung"), energy[:, :1] * fall),
            "rung_temperature": (("burn_in_round", "rung"), ladder),
        }
    )


def make_optimised(
    network: str = "M3",
    n_train: int = 50,
    protocol: str = "default",
    *,
    widest: np.ndarray | None = None,
    energy: float = 0.0,
    gradients: int = 400,
    max_gradients: int = 2000,
    test_loss: float = 3.0,
    number: int = 25,
    started: int | None = None,
) -> OptimiseResults:
    """An optimisation that never was: all starts alike, but for their widths and a spread of steps
    and losses.
    """
    given = {
        "protocol": protocol,
        "network": {"name": network},
        "prior": {"factor": config.PRIOR_FACTORS[network]},
        "data": {"n_train": n_train},
        "optimise": {"max_gradients": max_gradients},
    }
    every = np.arange(number)
    kept = {
        "number": every,
        "energy": np.full(number, energy),
        "train_loss": np.full(number, energy / n_train),
        "train_accuracy": np.ones(number),
        "test_loss": test_loss + 0.1 * np.cos(every),
        "test_accuracy": np.full(number, 0.7),
        "widest": np.linspace(20.0, 40.0, number) if widest is None else widest,
        "in_prior": np.ones(number, bool),
    }
    others = np.arange(started or number)
    starts = {
        "energy": np.full(len(others), energy),
        "gradients": gradients + others,
        "reached": np.full(len(others), energy == 0),
    }
    provenance = {"data": {"name": "mnist16", "n_train": n_train}, "uninformed_loss": np.log(10)}
    return OptimiseResults(
        Path("optimised"),
        config.settings_from(given, config.OptimiseSettings),
        provenance,
        starts,
        kept,
    )


def make_evidence(
    network: str,
    log_integral: float,
    error: float,
    *,
    log_volume: float,
    protocol: str = "default",
    disagreements: tuple[Disagreement, ...] = (),
    n_train: int = 500,
) -> EvidenceResults:
    """An evidence that never was, with its number."""
    given = {
        "network": {"name": network},
        "data": {"n_train": n_train},
        "protocol": protocol,
    }
    settings = config.settings_from(given, config.EvidenceSettings)
    rungs = temperature_path([1.0, np.inf])
    if protocol == "paper":
        rungs = bridge_path([0.0, 1.0], NO_CENTRE)
    draws = np.random.default_rng(3).standard_normal((4, 200, 2, len(rungs.terms)))
    samples = PathSamples(rungs.coefficients, draws)
    series = xarray.Dataset({"mean_square": (("copy", "round", "rung", "layer"), draws)})
    recorded = RecordedPath(rungs, samples, np.zeros(1), series, np.full(1, 0.5), 5, 1.0)
    found = LogRatio(log_integral, error, error, error)
    return EvidenceResults(
        path=Path(f"evidence-{network.lower()}-{protocol}"),
        settings=settings,
        provenance={"data": {"name": "mnist16", "n_train": n_train, "train_sha256": "same"}},
        recorded=recorded,
        log_integrals={headline_of(settings): found},
        halves=(found, found),
        log_volume=log_volume,
        integrand=average(samples.slope),
        overlap=np.full(1, 0.5),
        barrier=measure_barrier(rungs, recorded.swap_rate, draws.mean(axis=(0, 1))),
        verdict=judge({"energy": draws[..., 0]}, 1),
        disagreements=disagreements,
        finished=True,
    )
