"""The fit of a bridge's quadratic: w0 by minimisation, diagonal k from fluctuations (Eq. 20)."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from tempernet.model.networks import Weights
from tempernet.model.weights import packed, unpacked
from tempernet.optimise.minimise import Minimiser
from tempernet.paths.bridge import Centre
from tempernet.tempering.engine import Engine
from tempernet.tempering.host import Facts, Host, Progress
from tempernet.tempering.rounds import State
from tempernet.tempering.sampler import Procedure, Sampler
from tempernet.tempering.starts import every_second
from tempernet.tempering.tuning import Tuning

PHASE = "fit"


class QuadraticFit:
    """Fluctuations of many replicas at T = 1 around minima.

    `apart`: every replica has its own w0 and k, as the paper's independent calculations have.
    Otherwise all share the deepest minimum, every second one starts from a draw of the prior
    instead (other modes, if there are any, widen the quadratic), and k is averaged over them.
    `engine` has one rung, at T = 1. `host` is told of the sampler's checkpoints and asks for
    `arrays` then.
    """

    def __init__(
        self,
        engine: Engine,
        host: Host,
        *,
        burn_in: int,
        rounds: int,
        apart: bool,
        minimiser: Minimiser | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.engine, self.host, self.apart, self.rounds = engine, host, apart, rounds
        self.minimiser = minimiser or Minimiser()
        procedure = Procedure(
            burn_in=burn_in,
            rounds=rounds,
            warm_up="once",
            moves_rungs=False,
            tuning=tuning or Tuning(),
        )
        self.sampler = Sampler(
            engine, procedure, host, records=False, after_round_fn=self._add_squares
        )

    centre: Weights
    """w0, leading axis replicas."""
    energy: np.ndarray
    """E(w0), (R,)."""
    squares: Weights
    """Sums of (w - w0)^2 over the rounds that count, leading axis replicas."""

    def begin(self) -> None:
        """Minimise, and start around what was found."""
        engine = self.engine
        self.host.show("minimise")
        minimum = engine.minimise(engine.init_weights(), self.minimiser).point
        energy = np.asarray(minimum.energy)
        deepest = int(energy.argmin())
        rows = np.arange(len(energy)) if self.apart else np.full(len(energy), deepest)
        self.centre = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], minimum.weights)
        self.energy = energy[rows]
        self.squares = jax.tree.map(np.zeros_like, self.centre)
        odd = np.arange(engine.num_replicas) % 2 == 1
        start = self.centre
        if not self.apart:
            start = every_second(odd, self.centre, engine.prior_weights())
        self.sampler.begin(start)

    def run(self) -> Centre:
        """Run the fit to its end; arrays have a leading axis of replicas if apart."""
        self.sampler.run()

        def of_leaf(squares: np.ndarray) -> np.ndarray:
            return stiffness((squares if self.apart else squares.mean(axis=0)) / self.rounds)

        first = slice(None) if self.apart else 0
        return Centre(
            jax.tree.map(lambda leaf: leaf[first], self.centre),
            self.energy[first],
            jax.tree.map(of_leaf, self.squares),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The position of the fit, for a checkpoint."""
        found = self.sampler.arrays() | {"energy": self.energy}
        return found | packed("centre", self.centre) | packed("squares", self.squares)

    def restore(self, arrays: Mapping[str, np.ndarray], meta: Facts) -> None:
        """Go back to a checkpoint."""
        self.sampler.restore(arrays, meta)
        like = self.engine.target.prior.like
        self.centre = unpacked("centre", arrays, like)
        self.squares = unpacked("squares", arrays, like)
        self.energy = arrays["energy"]

    def _add_squares(self, state: State) -> None:
        def add(squares: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
            return np.asarray(squares + np.square(weights - centre))

        weights = self.engine.weights(state)
        self.squares = jax.tree.map(add, self.squares, weights, self.centre)


class FitHost(Host):
    """The host of a fit that is a part of another host's work: it records nothing of its own."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host = host
        self.fit: QuadraticFit

    def wait(self, *results: object) -> None:
        """Wait as the other host does."""
        self.host.wait(*results)

    def tell(self, progress: Progress, *, always: bool = False) -> None:
        """Report the rounds of the fit as one phase."""
        if progress.total > 1:
            sampler = self.fit.sampler
            progress = Progress(PHASE, sampler.round, sampler.procedure.total)
        self.host.tell(progress, always=always)

    def warn(self, text: str) -> None:
        """Warn as the other host does."""
        self.host.warn(text)


def stiffness(mean_square: np.ndarray) -> np.ndarray:
    """k = 1 / <(w - w0)^2> (Eq. 20).

    A weight that has not moved is as stiff as the precision of float32 allows.

    Args:
        mean_square: <(w - w0)^2>, of any shape.
    """
    return np.asarray(1 / np.maximum(mean_square, np.finfo(np.float32).eps), np.float32)


def on_device(centre: Centre) -> Centre:
    """The centre as arrays that a jitted function may hold."""
    placed: Centre = jax.tree.map(jnp.asarray, centre)
    return placed
