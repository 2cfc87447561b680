"""Standard optimisation (Sec. 3.4): batches of starts until enough of them have E = 0.

It also ends when no starts are left, and each batch is checkpointed.

Nothing but the initialisation and E shapes the result: there is no prior and there are no walls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from tempernet.config import OptimiseSettings, RunSettings
from tempernet.errors import NumericsError, Stopped
from tempernet.model.prediction import scores
from tempernet.model.priors import Gaussian
from tempernet.model.target import Target
from tempernet.model.weights import packed, unpacked
from tempernet.optimise.minimise import Minimiser
from tempernet.optimise.pool import Pool, enough, widest
from tempernet.paths.temperatures import temperature_path
from tempernet.store import RunFolder
from tempernet.store.files import JsonObject
from tempernet.tasks.base import Task, Watch
from tempernet.tasks.problem import Problem
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Facts, Progress


class Optimise(Task[OptimiseSettings]):
    """An optimisation in a run folder."""

    pool: Pool | None
    """The best starts so far."""
    started: int
    reached: int

    def __init__(
        self,
        settings: OptimiseSettings,
        problem: Problem,
        folder: RunFolder,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(settings, problem, folder, watch)
        wanted = settings.optimise
        self.minimiser = Minimiser(
            wanted.minimiser, wanted.time_step, wanted.max_gradients, wanted.tolerance
        )

    def run(self) -> None:
        """Run from where the folder is to the end."""
        self.show("initialise")
        self.engine = free_engine(
            self.settings, self.problem, self.settings.run.copies, self.begun_tile()
        )
        self.pool, self.started, self.reached = None, 0, 0
        if not self.go_back():
            self.note_start()
            # Records without any checkpoint could not be cut.
            self.checkpoint()
        wanted = self.settings.optimise
        began = time.monotonic(), self.started
        self.show("optimise", self.reached, wanted.keep)
        try:
            while not enough(self.reached, wanted.keep, self.started, wanted.starts):
                self._one_batch()
                self._report(*began)
                self.checkpoint_if_due()
            if not self.records.length("kept"):
                self._look_at_kept()
        except Stopped:
            self.stop(f"after {self.started} starts")
            raise
        self.finish()
        self.show("finished", self.started, self.started)

    def _one_batch(self) -> None:
        """Minimise from the next starts; those beyond the last wanted are left out."""
        wanted = self.settings.optimise
        found = self.engine.minimise(self.engine.init_weights(self.started), self.minimiser)
        self.wait(found)
        new = Pool.of(found, self.started, wanted.starts)
        for i in range(len(new.number)):
            self.record(
                "starts",
                {name: getattr(new, name)[i] for name in ("energy", "gradients", "reached")},
            )
        self.pool = (new if self.pool is None else self.pool.joined(new)).best(wanted.keep)
        self.started += len(new.number)
        self.reached += int(new.reached.sum())

    def _look_at_kept(self) -> None:
        """Score those kept on all training and test examples, and store their weights."""
        pool, network, data = self.pool, self.problem.network, self.problem.data
        if pool is None or not np.isfinite(pool.energy).all():
            raise NumericsError(
                "an optimised energy is not finite: check the data, or take a smaller "
                "optimise.time_step"
            )
        self.show("score")
        train, test = (
            scores(network, pool.weights, examples) for examples in (data.train, data.test)
        )
        columns: dict[str, Any] = {
            "number": pool.number,
            "energy": pool.energy,
            "train_loss": pool.energy / len(data.train),
            "train_accuracy": train.accuracy,
            "test_loss": test.loss,
            "test_accuracy": test.accuracy,
            "widest": widest(network, pool.weights),
            "in_prior": np.asarray(jax.vmap(self.problem.target.prior.contains)(pool.weights)),
        }
        for i in range(len(pool.number)):
            self.record("kept", {name: column[i] for name, column in columns.items()})
            # As a sweep keeps them, (copies, temperatures, ...): optimisation is T = 0.
            one_rung = jax.tree.map(lambda leaf, i=i: leaf[i][None, None], pool.weights)
            facts = {"round": pool.number[i], "temperature": np.zeros(1)}
            self.keep(facts | packed("leaf", one_rung))

    def arrays(self) -> dict[str, np.ndarray]:
        """The best starts so far."""
        return packed("pool", self.pool)

    def meta(self) -> JsonObject:
        """How far the task is, for a checkpoint."""
        return {"round": self.started, "reached": self.reached}

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to the end of a batch."""
        self.started, self.reached = int(meta["round"]), int(meta["reached"])
        if self.started:
            nothing: Any = np.zeros(0)
            like = Pool(nothing, nothing, nothing, nothing, self.engine.target.prior.like)
            self.pool = unpacked("pool", arrays, like)

    def _report(self, began: float, first: int) -> None:
        wanted = self.settings.optimise
        rate = (self.started - first) / max(time.monotonic() - began, 1e-9)
        # So many starts more, if they go on to succeed as they did.
        missing = (
            (wanted.keep - self.reached) * self.started / self.reached if self.reached else np.inf
        )
        left = max(0.0, min(missing, wanted.starts - self.started)) / rate
        done = min(self.reached, wanted.keep)
        self.tell(
            Progress(
                "optimise", done, wanted.keep, seconds_left=left, detail=f"of {self.started} starts"
            )
        )


def free_engine(settings: RunSettings, problem: Problem, copies: int, tile: int | None) -> Engine:
    """An engine of starts without walls.

    Args:
        settings: of the run.
        problem: its data and network; of its Gaussian prior only the shapes are used.
        copies: number of starts that run together.
        tile: how many a device takes at a time; None if that is to be measured.
    """
    target = Target.classifier(
        problem.network, problem.data.train, Gaussian.for_network(problem.network)
    )
    return Engine(
        target,
        temperature_path([1.0]),
        copies=copies,
        seed=settings.run.seed,
        devices=settings.run.devices or None,
        data_devices=settings.run.data_devices,
        tile=tile,
        reproducible=settings.run.reproducible,
    )
