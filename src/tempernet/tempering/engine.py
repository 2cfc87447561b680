"""The engine: a target, a path and a mesh put together, and the calls that move its replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from tempernet.devices.mesh import Layout, example_specs, make_mesh
from tempernet.errors import ConfigError, check_count, check_type
from tempernet.kernels.dynamics import Dynamics
from tempernet.model.networks import Weights
from tempernet.model.priors import Gaussian, UniformBox, per_leaf
from tempernet.model.target import Target
from tempernet.model.weights import packed, unpacked
from tempernet.optimise.minimise import Minimiser, Minimum
from tempernet.paths.path import Path, numbers
from tempernet.tempering.checks import check_moved, check_points, check_weights, differ
from tempernet.tempering.exchange import SWEEPS
from tempernet.tempering.minimising import MinimiseFn, compiled_minimiser
from tempernet.tempering.programs import Programs
from tempernet.tempering.reader import Reader
from tempernet.tempering.rounds import Record, Rungs, State
from tempernet.tempering.step_sizes import find_step_sizes
from tempernet.tempering.tuning import Tuning

INIT, PRIOR, TRAJECTORY, TUNING, COOLING, KERNEL = range(6)
"""What random numbers are for: the first thing folded into the seed."""


class Engine(Reader):
    """Sample a target along a path with `copies` independent ladders of K rungs each.

    Replica r = copy * K + i starts at rung i of its copy.

    Args:
        target: what is sampled.
        path: the rungs.
        copies: number of ladders.
        dynamics: kernel and trajectories.
        exchange: a name in `exchange.SWEEPS`.
        num_exchanges: sweeps of exchange a round.
        masses: one number, "fan-in" for the paper's m_i = k_i, or a prefix of the weights' pytree;
            by default fan-in for a network and 1 for an energy function.
        seed: of all random numbers.
        devices: number of devices (default: all cores).
        data_devices: how many of them split the examples.
        tile: number of replicas a device advances at a time; measured if not given.
        reproducible: set the tile to 1; results are then bit-identical for any number of devices.

    >>> engine = Engine(target, temperature_path([0.1, 1.0, 10.0]), copies=2, seed=1)
    >>> state = engine.start(engine.minimise(engine.init_weights()).point.weights)
    >>> state, rungs, acceptance = engine.tune(state, engine.rungs(0.01))
    >>> state, record = engine.round(state, rungs)
    """

    def __init__(
        self,
        target: Target,
        path: Path,
        *,
        copies: int = 1,
        dynamics: Dynamics | None = None,
        exchange: str = "even-odd",
        num_exchanges: int = 1,
        masses: float | str | Weights | None = None,
        seed: int = 0,
        devices: int | None = None,
        data_devices: int = 1,
        tile: int | None = None,
        reproducible: bool = False,
    ) -> None:
        dynamics = Dynamics() if dynamics is None else dynamics
        check_type("target", target, Target, "a tempernet.Target")
        check_type("path", path, Path, "a path such as tempernet.temperature_path gives")
        check_type("dynamics", dynamics, Dynamics, "a tempernet.Dynamics")
        kinds = "a tempernet.UniformBox or a tempernet.Gaussian"
        check_type("the target's prior", target.prior, UniformBox | Gaussian, kinds)
        check_count("copies", copies)
        check_count("num_exchanges", num_exchanges)
        if not isinstance(exchange, str) or exchange not in SWEEPS:
            raise ConfigError(f"exchange must be one of {', '.join(SWEEPS)}, got {exchange!r}")
        if tile is not None:
            check_count("tile", tile)
        if reproducible and (data_devices != 1 or tile not in (None, 1)):
            raise ConfigError(
                f"reproducible needs tile 1 and data_devices 1, got tile {tile} and "
                f"data_devices {data_devices}"
            )
        self.target, self.path, self.copies, self.seed = target, path, copies, seed
        self.dynamics = dynamics
        self.exchange = exchange if path.num_rungs > 1 else "none"
        self.num_exchanges = num_exchanges
        self.masses = _masses(target, masses)
        mesh = make_mesh(devices, data_devices)
        data, axes = (target.data, None) if data_devices == 1 else target.split_data(data_devices)
        specs = example_specs(data, axes)
        replicas = Layout(mesh, copies * path.num_rungs, 1)
        self._data = replicas.put_data(data, specs)
        rules = (dynamics, self.exchange, num_exchanges)
        programs = Programs(target, path, copies, *rules, self.masses, replicas, specs)
        if not reproducible:
            tile = tile or self._measured_tile(programs)
            programs = replace(programs, layout=replicas.with_tile(tile))
        super().__init__(programs)
        self._minimisers: dict[Minimiser, MinimiseFn] = {}

    @property
    def largest_step(self) -> float:
        """The largest step size worth trying: between walls, a tenth of the narrowest box."""
        half_width = self.target.prior.half_width
        if half_width is None or self.dynamics.walls != "reflect":
            return np.inf
        widths = jax.tree.map(
            lambda h, m: float(np.min(0.2 * h * np.sqrt(m))), half_width, self.masses
        )
        return float(min(jax.tree.leaves(widths)))

    @property
    def first_step(self) -> float:
        """A step size to begin tuning from: any will do, within a factor of a thousand."""
        return min(1e-2, self.largest_step)

    def rungs(self, step_sizes: ArrayLike, path: Path | None = None) -> Rungs:
        """A path's coefficients with reduced step sizes, one or K of them.

        Another `path` than the engine's own must have as many rungs and the same terms: rungs may
        move between rounds, and nothing is compiled again.
        """
        path = self.path if path is None else path
        check_type("path", path, Path, "a path such as tempernet.temperature_path gives")
        if path.coefficients.shape != self.path.coefficients.shape:
            raise ConfigError(
                f"a path of {self.num_rungs} rungs cannot become one of {path.num_rungs}"
            )
        if path.exact.any() and not self.path.exact.any():
            raise ConfigError(
                "an engine whose path has no exact rung cannot draw from that of another path"
            )
        given = numbers("step sizes", step_sizes)
        if given.shape not in ((), (1,), (self.num_rungs,)):
            raise ConfigError(
                f"step sizes must be one number or {self.num_rungs}, got shape {given.shape}"
            )
        if not np.all((given > 0) & np.isfinite(given)):
            raise ConfigError(f"step sizes must be positive and finite, got {step_sizes!r}")
        sizes = np.broadcast_to(given, (self.num_rungs,))
        dtype = jnp.result_type(*jax.tree.leaves(self.target.prior.like))
        num_steps = self.dynamics.steps_of(sizes, ~path.exact)
        return Rungs(
            jnp.asarray(path.coefficients.astype(dtype)),
            jnp.asarray(sizes.astype(dtype)),
            jnp.asarray(num_steps),
            jnp.asarray(path.exact),
        )

    def init_weights(self, first: int = 0, stream: int = INIT) -> Weights:
        """Starts `first` to `first` + R of the target's `init_fn` (leading axis R)."""
        return self._draw(stream, self.target.init_fn, first)

    def prior_weights(self, stream: int = PRIOR) -> Weights:
        """Exact draws of the prior for all replicas (leading axis R)."""
        return self._draw(stream, self.target.prior.draw)

    def start(self, weights: Weights) -> State:
        """A state with these weights (leading axis R), replica i of each copy at rung i."""
        check_weights(self._programs, weights)
        point = self._programs.evaluate_all(self.layout.put_replicas(weights), self._data)
        check_points(self._programs, point)
        replica_at = np.tile(np.arange(self.num_rungs, dtype=np.int32), (self.copies, 1))
        kernel = self._programs.begin(self._begin_key(0), point)
        return self._placed(State(kernel, jnp.asarray(replica_at), jnp.int32(0)))

    def minimise(self, weights: Weights, minimiser: Minimiser | None = None) -> Minimum:
        """Minimise E from all of these weights at once (leading axis R), in the same order."""
        minimiser = Minimiser() if minimiser is None else minimiser
        check_type("minimiser", minimiser, Minimiser, "a tempernet.Minimiser")
        if minimiser not in self._minimisers:
            self._minimisers[minimiser] = compiled_minimiser(self._programs, minimiser)
        return self._minimisers[minimiser](self.layout.put_replicas(weights), self._data)

    def round(self, state: State, rungs: Rungs, stream: int = TRAJECTORY) -> tuple[State, Record]:
        """N_traj trajectories of every replica, then `num_exchanges` sweeps of exchange.

        Args:
            state: before the round.
            rungs: where the rungs are, and their step sizes.
            stream: of the random numbers; that of a run by default.

        Returns:
            The state after the round, and what the round tells.
        """
        number = jnp.int32(self.dynamics.num_trajectories)
        key, placed = self._key(stream), self._placed(state)
        return self._programs.round(key, placed, rungs, number, self._data)

    def tune(
        self, state: State, rungs: Rungs, tuning: Tuning | None = None, stream: int = TUNING
    ) -> tuple[State, Rungs, NDArray[np.float64]]:
        """Find step sizes for every rung.

        The trajectories move replicas at their rungs without exchange and are no part of a run: go
        on from the state given, or take the one returned as so much burn-in.

        Args:
            state: where the replicas are.
            rungs: where the rungs are, and the step sizes to begin with.
            tuning: the window of the acceptance, and how long to search; None for the default.
            stream: of the random numbers; that of tuning by default.

        Returns:
            The state in which the trajectories end, the rungs with the step sizes found, and the
            acceptance measured, (K,).
        """
        tuning = Tuning() if tuning is None else tuning
        check_type("tuning", tuning, Tuning, "a tempernet.Tuning")
        key = jax.random.fold_in(self._key(stream), int(state.round))
        moving = self._placed(state._replace(round=jnp.int32(0)))
        walks = ~np.asarray(rungs.exact)
        fates = np.zeros((2, self.num_rungs), np.int64)

        def with_steps(step_sizes: NDArray[np.float64]) -> Rungs:
            num_steps = self.dynamics.steps_of(step_sizes, walks)
            sizes = jnp.asarray(step_sizes, rungs.step_sizes.dtype)
            return rungs._replace(step_sizes=sizes, num_steps=jnp.asarray(num_steps))

        def measure(step_sizes: NDArray[np.float64]) -> NDArray[np.float64]:
            nonlocal moving, fates
            moved, record = self._programs.round(
                key, moving, with_steps(step_sizes), jnp.int32(1), self._data
            )
            moving = moved._replace(replica_at=moving.replica_at)
            counts = record.info.accepted, record.info.nonfinite
            fates += [np.asarray(count).sum(axis=0) for count in counts]
            acceptance = np.asarray(record.info.acceptance, np.float64)
            return np.asarray(acceptance.mean(axis=0))

        first = np.asarray(rungs.step_sizes, np.float64)
        found = find_step_sizes(measure, first, self.largest_step, tuning, self.copies)
        # At an exact rung the same key draws the same weights again: to end where it began says
        # nothing there.
        changed = differ(state.kernel.point.weights, moving.kernel.point.weights)
        moved = self._by_rung(state, self._fetched(changed))
        check_moved(moved, fates, walks, unsettled=found.unsettled)
        return moving._replace(round=state.round), with_steps(found.values), found.acceptance

    def descended(self, state: State, parents: NDArray[np.intp]) -> State:
        """A state whose replica i is at the point of replica parents[copy, i] of its copy.

        Each keeps its own rung, and what else the kernel remembers is drawn anew: descendants of
        one parent would otherwise leave it together.
        """
        rows = (parents + self.num_rungs * np.arange(self.copies)[:, None]).reshape(-1)
        rows = np.append(rows, np.repeat(rows[-1:], self.layout.padded - len(rows)))
        point = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.kernel.point)
        point = jax.device_put(point, self.layout.by_replica)
        kernel = self._programs.begin(self._begin_key(int(state.round)), point)
        return self._placed(state._replace(kernel=kernel))

    def packed(self, state: State) -> dict[str, np.ndarray]:
        """A state for a checkpoint, without its round and its padding."""
        replica_at = {"replica_at": np.asarray(state.replica_at)}
        return packed("kernel", self._fetched(state.kernel)) | replica_at

    def unpacked(self, arrays: Mapping[str, np.ndarray], round: int) -> State:
        """The state after so many rounds from a checkpoint, which may hold other arrays as well."""
        like = self._programs.kernel_state(self.target.prior.like)
        kernel = self.layout.put_replicas(unpacked("kernel", arrays, like))
        return State(kernel, jnp.asarray(arrays["replica_at"]), jnp.int32(round))

    def _measured_tile(self, programs: Programs) -> int:
        return programs.measured_tile(self._data)

    def _placed(self, state: State) -> State:
        parts = zip(state, self._programs.state_shardings, strict=True)
        return State(*(jax.device_put(part, where) for part, where in parts))

    def _key(self, stream: int) -> Array:
        return jax.random.fold_in(jax.random.key(self.seed), stream)

    def _begin_key(self, round_index: int) -> Array:
        return jax.random.fold_in(self._key(KERNEL), round_index)

    def _draw(self, stream: int, draw_fn: Callable[[Array], Weights], first: int = 0) -> Weights:
        key = self._key(stream)
        replicas = jnp.arange(first, first + self.num_replicas, dtype=jnp.int32)
        draw = jax.jit(jax.vmap(lambda replica: draw_fn(jax.random.fold_in(key, replica))))
        return draw(replicas)


def _masses(target: Target, masses: float | str | Weights | None) -> Weights:
    """Masses for every leaf, from what the engine was given."""
    if masses is None:
        masses = 1.0 if target.network is None else "fan-in"
    if isinstance(masses, str):
        if masses != "fan-in":
            raise ConfigError(f'masses must be positive numbers or "fan-in", got {masses!r}')
        if target.network is None:
            raise ConfigError('masses "fan-in" need a network; give numbers for an energy function')
        masses = target.network.fan_in()
    return per_leaf("masses", masses, target.prior.like)
