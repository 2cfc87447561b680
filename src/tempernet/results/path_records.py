"""What a run recorded of a path, from the posterior to the end whose integral is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray

from tempernet.config import EvidenceSettings, LadderSettings
from tempernet.diagnostics.flow import Flow, freedom
from tempernet.errors import StoreError
from tempernet.evidence.samples import PathSamples
from tempernet.paths.bridge import Centre, bridge_path
from tempernet.paths.path import Path as RungPath
from tempernet.paths.temperatures import temperature_path
from tempernet.results.series import Rows, one_after_the_other, path_series

NO_CENTRE = Centre(0.0, 0.0, 1.0)
"""For a path whose terms are only read, not worked out."""


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """What a run recorded of a path of K rungs.

    Attributes:
        rungs: the path.
        samples: energy terms (copies, rounds, K, M).
        known: log of the integral at the end that is known, with J(w0) for a bridge: (copies,), or
            one for all.
        series: every observable of the rounds that count, (copy, round, rung, ...) (see `series`).
        swap_rate: mean swap probability of each pair, (K-1,), NaN without exchange.
        round_trips: over all copies.
        freedom: the power of time by which replicas spread, NaN without exchange (see `flow`).
        apart: whether each copy has a path of its own.
    """

    rungs: RungPath
    samples: PathSamples
    known: np.ndarray
    series: xarray.Dataset
    swap_rate: np.ndarray
    round_trips: int
    freedom: float
    apart: bool = False


def side_by_side(
    name: str, settings: LadderSettings, rows: Rows, parameter: str, known: np.ndarray
) -> RecordedPath:
    """A path whose rungs were sampled side by side; of temperatures, those from T = 1 on.

    Args:
        name: what an error message calls the run.
        settings: of the run.
        rows: its rounds, burn-in included: arrays (rounds, copies, K, ...) by name.
        parameter: of the path, "temperature" or "lambda".
        known: log of the integral at the known end, (copies,) or ().
    """
    burn_in, done = settings.run.burn_in, len(next(iter(rows.values()), ()))
    if done <= burn_in:
        raise StoreError(f"{name} has no samples yet: {done} of {burn_in} rounds of burn-in so far")
    values = rows[parameter][-1]
    if parameter == "lambda":
        which, rungs = np.arange(len(values)), bridge_path(values, NO_CENTRE)
    else:
        which = _from_posterior(name, values)
        rungs = temperature_path(values[which])
    counting = {column: array[burn_in:] for column, array in rows.items()}
    series = path_series(counting, rungs.terms).isel(rung=which, pair=which[:-1])
    swaps, attempts = (
        series[column].values.sum(axis=(0, 1)) for column in ("swap_probability", "swap_attempts")
    )
    with np.errstate(invalid="ignore"):
        swap_rate = swaps / attempts
    replica = counting["replica"]
    return RecordedPath(
        rungs=rungs,
        samples=_samples(rungs, series),
        known=known,
        series=series,
        swap_rate=swap_rate,
        round_trips=int(Flow.of(replica, int(which[0]) + 1).round_trips.sum()),
        freedom=freedom(replica),
    )


def in_sequence(
    name: str, settings: EvidenceSettings, rows: Rows, known: np.ndarray
) -> RecordedPath:
    """A path whose rungs were sampled one after the other; all of them must be there.

    Args:
        name: what an error message calls the run.
        settings: of the run.
        rows: rounds that count of all rungs in turn: arrays (rungs x rounds, copies, ...) by name.
        known: log of the integral at the known end, (copies,) or ().
    """
    rounds, num = settings.run.rounds, settings.path.num
    done = len(next(iter(rows.values()), ())) // rounds
    if done < num:
        raise StoreError(
            f"{name} has no evidence yet: {done} of {num} distributions are sampled so far"
        )

    rungs = bridge_path(rows["lambda"][::rounds, 0], NO_CENTRE)
    series = path_series(one_after_the_other(rows, rungs.terms, num), rungs.terms)
    return RecordedPath(
        rungs=rungs,
        samples=_samples(rungs, series),
        known=known,
        series=series,
        swap_rate=np.full(num - 1, np.nan),
        round_trips=0,
        freedom=np.nan,
        apart=True,
    )


def _samples(rungs: RungPath, series: xarray.Dataset) -> PathSamples:
    """The energy terms of a path, (copies, rounds, K, M)."""
    terms = [series[term].values for term in rungs.terms]
    return PathSamples(rungs.coefficients, np.stack(terms, axis=-1))


def _from_posterior(name: str, temperatures: np.ndarray) -> np.ndarray:
    """Which rungs lead from T = 1 to the prior."""
    which = np.flatnonzero(temperatures >= 1.0)
    if not (len(which) > 1 and temperatures[which[0]] == 1.0 and np.isinf(temperatures[-1])):
        raise StoreError(
            f"{name} has no evidence: its temperatures, {temperatures[0]:.3g} to "
            f"{temperatures[-1]:.3g}, must have 1 and inf among them; give a sweep "
            "ladder.temperatures with both, or run tempernet evidence"
        )
    return which
