"""Does a kernel leave a known density unchanged? Exact draws in, and exact draws must come out.

A `Case` is a product of equal one-dimensional densities exp(-u(y)/T) prior(y) in coordinates y,
possibly a rotation of the weights, so its distribution function F_T is a sum on a fine grid. Every
copy of the ladder starts from exact draws, one at each temperature, and runs a few rounds; F_T of
what comes out must be uniform, copies are independent, and chi-square tells.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import tempernet as tn
from tempernet.tempering.engine import Engine

TEMPERATURES = (0.5, 1.0, 3.0, np.inf)


@dataclass(frozen=True)
class Case:
    """E(w) = sum_i u(y_i), y = Q w, with a box |w_i| < width (Q = 1) or a normal prior of std
    `width`.
    """

    name: str
    energy: Callable[[Any], Any]
    walls: bool
    width: float
    step: float
    dims: int = 3
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3, dtype=np.float32))

    def target(self) -> tn.Target:
        like = {"w": jax.ShapeDtypeStruct((self.dims,), jnp.float32)}
        prior = (tn.UniformBox if self.walls else tn.Gaussian)(self.width, like)
        rotation = self.rotation[: self.dims, : self.dims]
        return tn.Target.from_energy(lambda w: jnp.sum(self.energy(rotation @ w["w"])), prior)

    def distribution(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        """The grid and F_T on it."""
        edge = self.width if self.walls else 8 * self.width
        grid = np.linspace(-edge, edge, 40001)
        log_density = -np.asarray(self.energy(grid)) / temperature
        if not self.walls:
            log_density -= 0.5 * (grid / self.width) ** 2
        density = np.exp(log_density - log_density.max())
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        return grid, cumulative / cumulative[-1]

    def draws(
        self, rng: np.random.Generator, copies: int, temperatures: Sequence[float]
    ) -> np.ndarray:
        """Exact draws of the weights: (copies * K, dims)."""
        columns = []
        for temperature in temperatures:
            grid, cumulative = self.distribution(temperature)
            columns.append(np.interp(rng.random((copies, self.dims)), cumulative, grid))
        coordinates = np.stack(columns, axis=1).reshape(-1, self.dims)
        return (coordinates @ self.rotation[: self.dims, : self.dims]).astype(np.float32)

    def uniform(self, weights: np.ndarray, temperature: float) -> np.ndarray:
        """F_T of the coordinates: uniform if the weights have the right distribution."""
        grid, cumulative = self.distribution(temperature)
        return np.interp(weights @ self.rotation[: self.dims, : self.dims].T, grid, cumulative)


def rotation(angle: float) -> np.ndarray:
    """A rotation of three dimensions that mixes all of them."""
    c, s = np.cos(angle), np.sin(angle)
    one = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    two = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return (two @ one).astype(np.float32)


GAUSSIAN_IN_GAUSSIAN = Case(
    "Gaussian, Gaussian prior",
    lambda y: 1.5 * (y - 0.4) ** 2,
    False,
    0.8,
    0.45,
    rotation=rotation(0.7),
)
GAUSSIAN_IN_BOX = Case("truncated Gaussian", lambda y: 2.0 * (y - 0.5) ** 2, True, 0.9, 0.45)
WELLS_IN_BOX = Case("double well in a box", lambda y: 3.0 * (y**2 - 0.5) ** 2, True, 1.3, 0.22)
WELLS_IN_GAUSSIAN = Case(
    "double well, Gaussian prior", lambda y: 3.0 * (y**2 - 0.5) ** 2, False, 1.1, 0.22
)
CASES = (GAUSSIAN_IN_GAUSSIAN, GAUSSIAN_IN_BOX, WELLS_IN_BOX, WELLS_IN_GAUSSIAN)


def smallest_p(
    case: Case,
    *,
    step_sizes: Any = None,
    rounds: int = 5,
    copies: int = 4000,
    walls: str = "reflect",
    num_steps: int = 4,
    dynamics: Mapping[str, Any] | None = None,
    temperatures: Sequence[float] = TEMPERATURES,
    **options: Any,
) -> float:
    """Run the rounds from exact draws; the smallest chi-square p-value over temperatures and
    coordinates.

    Also checks that the run tested something: trajectories were accepted, and the replicas moved.
    """
    settings: dict[str, Any] = {
        "num_steps": num_steps,
        "num_trajectories": 2,
        "walls": walls,
        "lengths": "steps",
    }
    settings |= dynamics or {}
    engine = Engine(
        case.target(),
        tn.temperature_path(temperatures),
        copies=copies,
        dynamics=tn.Dynamics(**settings),
        devices=2,
        **options,
    )
    weights = case.draws(np.random.default_rng(1), copies, temperatures)
    state = engine.start({"w": weights})
    rungs = engine.rungs(case.step if step_sizes is None else step_sizes)
    for _ in range(rounds):
        state, record = engine.round(state, rungs)
    accepted = np.asarray(record.info.acceptance).mean(axis=0)
    assert np.all(accepted > 0.1), accepted
    assert np.mean(engine.weights(state)["w"] != weights) > 0.5
    p_values = [
        _uniform_p(values)
        for rung, temperature in enumerate(temperatures)
        for values in case.uniform(engine.weights_at(state, rung)["w"], temperature).T
    ]
    return min(p_values)


def _uniform_p(values: np.ndarray) -> float:
    counts, _ = np.histogram(values, bins=20, range=(0, 1))
    return (
        float(stats.chisquare(counts, np.full(20, len(values) / 20)).pvalue)
        if counts.sum() == len(values)
        else 0.0
    )


ACCEPT_P = 1e-5
"""A right kernel falls below this once in some 8,000 runs of 12 tests; the keys are fixed."""
REJECT_P = 1e-9
"""A broken twin must fall below this."""
