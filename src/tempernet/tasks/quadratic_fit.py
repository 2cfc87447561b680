"""The quadratic that a bridge leads to: w0 by minimisation, and the diagonal k from fluctuations
around it (Eq. 20).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tempernet.errors import Stopped
from tempernet.evidence.log_evidence import around, stiffness
from tempernet.model.networks import Weights
from tempernet.paths.bridge import Centre
from tempernet.tasks.base import Task, state_arrays, state_from
from tempernet.tasks.problem import make_minimiser, make_tuning
from tempernet.tempering.adaptation import Adaptation
from tempernet.tempering.engine import Engine
from tempernet.tempering.rounds import State

PHASE = "fit"


class QuadraticFit:
    """Fluctuations of many replicas at T = 1 around minima, in the folder `fit` of a task.

    `apart`: every replica has its own w0 and k, as the paper's independent calculations have.
    Otherwise all share the deepest minimum, every second one starts from a draw of the prior
    instead, and k is averaged over them.
    """

    def __init__(
        self, task: Task, engine: Engine, burn_in: int, rounds: int, *, apart: bool
    ) -> None:
        self.task, self.engine, self.apart = task, engine, apart
        self.burn_in, self.total = burn_in, burn_in + rounds
        self.checkpoints = task.folder.fit
        self.adaptation = Adaptation.begin(engine)

    state: State
    centre: Weights
    """w0, leading axis replicas."""
    energy: np.ndarray
    squares: Weights
    """Sums of (w - w0)^2 over the rounds that count."""

    def run(self) -> Centre:
        """From where the fit is to its end; arrays of replicas if apart."""
        found, problems = self.checkpoints.latest()
        for problem in problems:
            self.task.warn(problem)
        if found is not None:
            self._restore(found.arrays, found.meta)
        else:
            self._begin()
        saved = time.monotonic()
        while self.round < self.total:
            try:
                self._one_round()
            except Stopped:
                self._checkpoint()
                raise
            if time.monotonic() - saved > self.task.base_settings.output.checkpoint_seconds:
                self._checkpoint()
                saved = time.monotonic()
        self._checkpoint()
        return self._centre()

    @property
    def round(self) -> int:
        """Rounds done."""
        return int(self.state.round)

    def _begin(self) -> None:
        engine, task = self.engine, self.task
        settings: Any = task.base_settings
        task.show("minimise")
        minimum = engine.minimise(engine.init_weights(), make_minimiser(settings)).point
        energy = np.asarray(minimum.energy)
        rows = np.arange(len(energy)) if self.apart else np.full(len(energy), int(energy.argmin()))
        self.centre = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], minimum.weights)
        self.energy = energy[rows]
        self.squares = jax.tree.map(np.zeros_like, self.centre)
        task.show("tune")
        first = jax.tree.map(lambda leaf: leaf[0], self.centre)
        self.state = engine.start(self.centre if self.apart else around(engine, first))
        self.adaptation.tune(engine, self.state, make_tuning(settings))

    def _one_round(self) -> None:
        engine = self.engine
        began = self.round
        state, record = engine.round(self.state, self.adaptation.rungs(engine))
        self.task.wait(state, record)
        if began >= self.burn_in:
            weights = jax.tree.map(
                lambda leaf: np.asarray(leaf)[: engine.num_replicas], state.point.weights
            )
            self.squares = jax.tree.map(
                lambda s, w, w0: s + np.square(w - w0), self.squares, weights, self.centre
            )
        self.state = state
        self.task.show(PHASE, self.round, self.total)

    def _centre(self) -> Centre:
        rounds = self.total - self.burn_in

        def of_leaf(squares: np.ndarray) -> np.ndarray:
            return stiffness((squares if self.apart else squares.mean(axis=0)) / rounds)

        first = slice(None) if self.apart else 0
        return Centre(
            jax.tree.map(lambda leaf: leaf[first], self.centre),
            self.energy[first],
            jax.tree.map(of_leaf, self.squares),
        )

    def _checkpoint(self) -> None:
        arrays = state_arrays(self.engine, self.state)
        for name, tree in (("centre", self.centre), ("squares", self.squares)):
            arrays |= {
                f"{name}{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))
            }
        arrays |= {"energy": self.energy, "step_sizes": self.adaptation.step_sizes}
        self.checkpoints.save(arrays, {"round": self.round})

    def _restore(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        self.state = state_from(self.engine, arrays, int(meta["round"]))
        like = self.engine.target.prior.like

        def tree(name: str) -> Weights:
            leaves = [arrays[f"{name}{i}"] for i in range(len(jax.tree.leaves(like)))]
            return jax.tree.unflatten(jax.tree.structure(like), leaves)

        self.centre, self.squares, self.energy = tree("centre"), tree("squares"), arrays["energy"]
        self.adaptation.step_sizes = arrays["step_sizes"]


def as_device(centre: Centre) -> Centre:
    """The centre as arrays that a jitted function may hold."""
    return jax.tree.map(jnp.asarray, centre)
