"""The engine: a target, a path and a mesh put together, and the host loops that drive the jitted
round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tempernet.devices.mesh import DATA, Layout, compiled, example_specs, make_mesh, over_replicas
from tempernet.devices.tiles import fastest_tile, untimed_tile
from tempernet.errors import ConfigError, NumericsError, check_count
from tempernet.kernels.hmc import Dynamics, Kernel
from tempernet.kernels.integrator import Point, velocity_verlet
from tempernet.model.networks import Network, Weights
from tempernet.model.priors import per_leaf
from tempernet.model.scores import Score, predict_fn, score_fn
from tempernet.model.target import Batch, Target
from tempernet.optimise.minimise import Minimiser, Minimum
from tempernet.paths.path import Path, numbers
from tempernet.tempering import tuning as rules
from tempernet.tempering.exchange import SWEEPS, repeated
from tempernet.tempering.rounds import Record, RoundFn, Rungs, State, make_round
from tempernet.tempering.tuning import Tuning

INIT, PRIOR, TRAJECTORY, TUNING, COOLING = range(5)
"""What random numbers are for: the first thing folded into the seed."""


class Engine:
    """Sample a target along a path with `copies` independent ladders of K rungs each.

    Replica r = copy * K + i starts at rung i of its copy. `masses` is one number, "fan-in" for the
    paper's m_i = k_i, or a prefix of the weights' pytree. `devices` is the number of devices
    (default: all cores), `data_devices` of which split the examples. `tile` is the number of
    replicas a device advances at a time, measured if not given; `reproducible` sets it to 1, and
    then results are bit-identical for any number of devices.

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
        masses: Any = 1.0,
        seed: int = 0,
        devices: int | None = None,
        data_devices: int = 1,
        tile: int | None = None,
        reproducible: bool = False,
    ) -> None:
        check_count("copies", copies)
        check_count("num_exchanges", num_exchanges)
        if exchange not in SWEEPS:
            raise ConfigError(f"exchange must be one of {', '.join(SWEEPS)}, got {exchange!r}")
        if tile is not None:
            check_count("tile", tile)
        if reproducible and (data_devices != 1 or tile not in (None, 1)):
            raise ConfigError(
                f"reproducible needs tile 1 and data_devices 1, got tile {tile} and data_devices {data_devices}"
            )
        self.target, self.path, self.copies, self.seed = target, path, copies, seed
        self.dynamics = dynamics or Dynamics()
        self.exchange = exchange if path.num_rungs > 1 else "none"
        self.num_exchanges = num_exchanges
        self.masses = _masses(target, masses)
        mesh = make_mesh(devices, data_devices)
        data, axes = (target.data, None) if data_devices == 1 else target.split_data(data_devices)
        self._specs = example_specs(data, axes)
        self.layout = Layout(mesh, self.num_replicas, 1)
        self._data = self.layout.put_data(data, self._specs)
        self._held_out: dict[int, tuple[Batch, Batch]] = {}
        self._minimisers: dict[Minimiser, Callable[[Weights, Any], Minimum]] = {}
        if not reproducible:
            self.layout = self.layout.with_tile(tile or self._measured_tile())

    @property
    def num_rungs(self) -> int:
        """K."""
        return self.path.num_rungs

    @property
    def num_replicas(self) -> int:
        """R = copies x K."""
        return self.copies * self.num_rungs

    @property
    def largest_step(self) -> float:
        """The largest step size worth trying: between reflecting walls, a tenth of the narrowest
        box.
        """
        half_width = self.target.prior.half_width
        if half_width is None or self.dynamics.walls != "reflect":
            return np.inf
        widths = jax.tree.map(
            lambda h, m: float(np.min(0.2 * h * np.sqrt(m))), half_width, self.masses
        )
        return min(jax.tree.leaves(widths))

    @property
    def first_step(self) -> float:
        """A step size to begin tuning from: any will do, within a factor of a thousand."""
        return min(1e-2, self.largest_step)

    def rungs(self, step_sizes: Any, path: Path | None = None) -> Rungs:
        """A path's coefficients with reduced step sizes, one or K of them.

        Another `path` than the engine's own must have as many rungs and the same terms: rungs may
        move between rounds, and nothing is compiled again.
        """
        path = path or self.path
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
            raise ConfigError(f"step sizes must be positive and finite, got {step_sizes}")
        sizes = np.broadcast_to(given, (self.num_rungs,))
        dtype = jnp.result_type(*jax.tree.leaves(self.target.prior.like))
        num_steps = self.dynamics.steps_of(sizes, ~path.exact)
        return Rungs(
            *map(
                jnp.asarray,
                (path.coefficients.astype(dtype), sizes.astype(dtype), num_steps, path.exact),
            )
        )

    def init_weights(self, first: int = 0) -> Weights:
        """Starting weights of all replicas by the target's `init_fn` (leading axis R), those of
        start `first` on.
        """
        return self._draw(INIT, self.target.init_fn, first)

    def prior_weights(self) -> Weights:
        """Exact draws of the prior for all replicas (leading axis R)."""
        return self._draw(PRIOR, self.target.prior.draw)

    def start(self, weights: Weights) -> State:
        """A state with these weights (leading axis R), replica i of each copy at rung i."""
        leading = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(weights)}
        if leading != {(self.num_replicas,)}:
            raise ConfigError(
                f"a start needs weights of {self.num_replicas} replicas on the leading axis, got {leading}"
            )
        self._must_hold(
            jax.jit(jax.vmap(self.target.prior.contains))(weights),
            ConfigError,
            "lie outside the prior's box; widen the box or start from other weights",
        )
        point = self._evaluate_all(self.layout.put_replicas(weights), self._data)
        self._must_hold(
            np.isfinite(point.energy),
            NumericsError,
            "have an energy that is not finite; check the data and the energy function at these weights",
        )
        self._must_hold(
            np.isfinite(jax.jit(self._potentials)(point)),
            NumericsError,
            "have an energy that divided by the temperature is too large for its type; scale the energy down",
        )
        self._must_hold(
            _all_finite(point.gradient),
            NumericsError,
            "have a gradient that is not finite, so they cannot move; check the energy function at these weights",
        )
        replica_at = np.tile(np.arange(self.num_rungs, dtype=np.int32), (self.copies, 1))
        return self._placed(State(point, jnp.asarray(replica_at), jnp.int32(0)))

    def minimise(self, weights: Weights, minimiser: Minimiser | None = None) -> Minimum:
        """Minimise E from all of these weights at once (leading axis R); results in the same order."""
        minimise = self._compiled_minimiser(minimiser or Minimiser())
        return minimise(self.layout.put_replicas(weights), self._data)

    def round(self, state: State, rungs: Rungs, stream: int = TRAJECTORY) -> tuple[State, Record]:
        """One round: N_traj trajectories of every replica, then `num_exchanges` sweeps of exchange."""
        number = jnp.int32(self.dynamics.num_trajectories)
        return self._round(self._key(stream), self._placed(state), rungs, number, self._data)

    def tune(
        self, state: State, rungs: Rungs, tuning: Tuning | None = None
    ) -> tuple[State, Rungs, np.ndarray]:
        """Find step sizes for every rung; returns (state, rungs, measured acceptance (K,)).

        The trajectories move replicas at their rungs without exchange and are no part of a run: go
        on from the state given, or take the one returned as so much burn-in.
        """
        tuning = tuning or Tuning()
        key = jax.random.fold_in(self._key(TUNING), int(state.round))
        moving = self._placed(state._replace(round=jnp.int32(0)))

        def with_steps(step_sizes: np.ndarray) -> Rungs:
            num_steps = self.dynamics.steps_of(step_sizes, ~np.asarray(rungs.exact))
            sizes = jnp.asarray(step_sizes, rungs.step_sizes.dtype)
            return rungs._replace(step_sizes=sizes, num_steps=jnp.asarray(num_steps))

        fates = np.zeros((2, self.num_rungs), np.int64)

        def measure(step_sizes: np.ndarray) -> np.ndarray:
            nonlocal moving, fates
            moved, record = self._round(
                key, moving, with_steps(step_sizes), jnp.int32(1), self._data
            )
            moving = moved._replace(replica_at=moving.replica_at)
            fates += [
                np.asarray(count).sum(axis=0)
                for count in (record.info.accepted, record.info.nonfinite)
            ]
            return np.asarray(record.info.acceptance, np.float64).mean(axis=0)

        largest = self.largest_step
        search = rules.start_search(np.asarray(rungs.step_sizes), largest)
        while not rules.search_finished(search, tuning, self.copies):
            search = rules.search_step(search, measure(np.exp(search.log_step)), tuning, largest)
        trajectories = -(-tuning.check_trajectories // self.copies)
        step_sizes = rules.found(search, largest)
        acceptance = np.mean([measure(step_sizes) for _ in range(trajectories)], axis=0)
        for _ in range(tuning.max_checks - 1):
            if not rules.off_target(step_sizes, acceptance, tuning, largest).any():
                break
            search = rules.check_step(search, acceptance, trajectories, tuning, largest)
            step_sizes = rules.found(search, largest)
            acceptance = np.mean([measure(step_sizes) for _ in range(trajectories)], axis=0)
        # At an exact rung the same key draws the same weights again: to end where it began says
        # nothing there.
        self._must_have_moved(
            state, moving, fates, ~np.asarray(rungs.exact), search.steps >= rules.MAX_UNSETTLED
        )
        return moving._replace(round=state.round), with_steps(step_sizes), acceptance

    def _must_have_moved(
        self, before: State, after: State, fates: np.ndarray, walks: np.ndarray, unsettled: bool
    ) -> None:
        """Refuse a rung that walks (K,) and whose replicas all stood still while steps became
        smaller and smaller.

        They accepted nothing, or only steps too small to change a weight: the energy next to them
        is no number, or its gradient is wrong. `fates` are the trajectories of each rung that were
        accepted and that were not finite.
        """
        moved = self._fetched(_differ(before.point.weights, after.point.weights))
        frozen = ~self._by_rung(before, moved).any(axis=0)
        accepted, nonfinite = fates
        bad = np.flatnonzero(frozen & walks & ((accepted > 0) | unsettled))
        if len(bad):
            raise NumericsError(
                f"no replica of {len(bad)} of {self.num_rungs} rungs (rung {bad[0]} first) could be moved, "
                f"however small the step; {nonfinite[bad[0]]} trajectories there ended in an energy that is not "
                f"finite: check the energy function and its gradient"
            )

    def score(self, state: State, held_out: Batch) -> Score:
        """Loss and accuracy on a held-out set (from `hold_out`), in the order of rungs: (copies,
        K).
        """
        score = self._fetched(self._score(state.point.weights, self._on_devices(held_out)))
        return self._by_rung(state, score)

    def predict(self, state: State, held_out: Batch) -> tuple[Score, np.ndarray]:
        """As `score`, and the softmax outputs of every rung: (copies, K, examples, classes)."""
        found = self._fetched(self._predict(state.point.weights, self._on_devices(held_out)))
        score, probabilities = self._by_rung(state, found)
        counts = np.asarray(held_out.weight).reshape(-1) > 0
        return score, probabilities[:, :, counts]

    def energies(self, state: State) -> np.ndarray:
        """E of all replicas, in their own order: (copies, K)."""
        return (
            self._fetched(state.point.energy)
            .astype(np.float64)
            .reshape(self.copies, self.num_rungs)
        )

    def descended(self, state: State, parents: np.ndarray) -> State:
        """A state whose replica i is at the point of replica parents[copy, i] of its copy, and
        keeps its own rung.
        """
        rows = (parents + self.num_rungs * np.arange(self.copies)[:, None]).reshape(-1)
        rows = np.append(rows, np.repeat(rows[-1:], self.layout.padded - len(rows)))
        return self._placed(
            state._replace(point=jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.point))
        )

    def mean_squares(self, state: State) -> np.ndarray:
        """Mean square weight of each layer in units of the prior's: (copies, K, layers).

        A layer is a child of the weights' pytree. The unit is the half-width of a box, where the
        prior itself has 1/3, or the standard deviation of a Gaussian, where it has 1.
        """
        return self._by_rung(state, self._fetched(self._mean_squares(state.point.weights)))

    def weights_at(self, state: State, rung: int) -> Weights:
        """The weights that sit at a rung: leading axis copies."""
        rows = self._rows_by_rung(state)[:, rung]
        return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.point.weights)

    def _by_rung(self, state: State, by_replica: Any) -> Any:
        """Arrays in the order of replicas (R, ...) in the order of rungs: (copies, K, ...)."""
        rows = self._rows_by_rung(state)
        return jax.tree.map(lambda leaf: leaf[rows], by_replica)

    def _rows_by_rung(self, state: State) -> np.ndarray:
        """The row of the replica that sits at each rung: (copies, K)."""
        return np.arange(self.copies)[:, None] * self.num_rungs + np.asarray(state.replica_at)

    def _on_devices(self, held_out: Batch) -> Batch:
        """A held-out set laid out on the mesh, once."""
        if id(held_out) not in self._held_out:
            # The set itself is kept as well, so that its id stays taken.
            self._held_out[id(held_out)] = (
                held_out,
                self.layout.put_data(held_out, example_specs(held_out)),
            )
        return self._held_out[id(held_out)][1]

    def _measured_tile(self) -> int:
        """The fastest tile for a network; an energy without data is small, and all replicas may go
        at once.
        """
        if self.target.network is None:
            return untimed_tile(self.layout, by_length=self._own_lengths)
        num_steps = min(40, max(4, 4000 // self.target.num_examples))

        def trajectory(weights: Weights, data: Any) -> Point:
            start = Point(weights, jnp.sum(jax.tree.leaves(weights)[0]), weights)
            end, _ = velocity_verlet(
                start,
                weights,
                jnp.full_like(start.energy, 1e-6),
                num_steps,
                evaluate_fn=lambda w: self._evaluate(w, data),
                slope_fn=lambda point: point.gradient,
                masses=self.masses,
                half_width=self.target.prior.half_width,
            )
            return end

        like, by_length = self.target.prior.like, self._own_lengths
        return fastest_tile(
            trajectory, like, self.layout, self._data, self._specs, by_length=by_length
        )

    @functools.cached_property
    def _evaluate_all(self) -> Callable[[Weights, Any], Point]:
        return compiled(over_replicas(self._evaluate, self.layout, self._specs))

    @functools.cached_property
    def _score(self) -> Callable[[Weights, Batch], Score]:
        return self._compiled_score(score_fn)

    @functools.cached_property
    def _predict(self) -> Callable[[Weights, Batch], tuple[Score, Array]]:
        return self._compiled_score(predict_fn)

    def _compiled_score(self, make_fn: Callable[[Network], Any]) -> Callable[[Weights, Batch], Any]:
        if self.target.network is None:
            raise ConfigError(
                "this target has no network to score; only classifiers have a held-out loss"
            )
        return compiled(
            over_replicas(make_fn(self.target.network), self.layout, example_specs(Batch(0, 0, 0)))
        )

    @functools.cached_property
    def _mean_squares(self) -> Callable[[Weights], Array]:
        def mean_squares(weights: Weights) -> Array:
            scaled = jax.tree.map(lambda w, s: jnp.square(w / s), weights, self.target.prior.scale)
            layers = [
                jax.tree.leaves(layer)
                for layer in jax.tree.leaves(scaled, is_leaf=lambda node: node is not scaled)
            ]
            return jnp.stack(
                [
                    sum(jnp.sum(leaf) for leaf in layer) / sum(leaf.size for leaf in layer)
                    for layer in layers
                ]
            )

        return jax.jit(jax.vmap(mean_squares))

    def _compiled_minimiser(self, minimiser: Minimiser) -> Callable[[Weights, Any], Minimum]:
        def run(start: Weights, data: Any) -> Minimum:
            return minimiser.run(
                start, lambda w: self._evaluate(w, data), self.target.prior.half_width
            )

        if minimiser not in self._minimisers:
            mapped = over_replicas(run, self.layout, self._specs)

            def unpadded(start: Weights, data: Any) -> Minimum:
                return jax.tree.map(lambda leaf: leaf[: self.num_replicas], mapped(start, data))

            self._minimisers[minimiser] = compiled(unpadded)
        return self._minimisers[minimiser]

    @functools.cached_property
    def _round(self) -> RoundFn:
        """One program for rounds and for tuning, which makes one trajectory a round and undoes the
        exchange.
        """

        def kernel_fn(data: Any, own: Any) -> Kernel:
            def evaluate_fn(weights: Weights) -> Point:
                return self._evaluate(weights, data)

            def terms_fn(weights: Weights, energy: Array) -> Array:
                return self.path.terms_fn(weights, energy, own)

            return Kernel(evaluate_fn, terms_fn, self.target.prior, self.masses, self.dynamics)

        draw_fn = (self.path.draw_fn or self.target.prior.draw) if self.path.exact.any() else None
        sweep_fn, own = repeated(SWEEPS[self.exchange], self.num_exchanges), self.path.of_copies
        lengths = self._own_lengths
        round_fn = make_round(
            kernel_fn,
            sweep_fn,
            self.layout,
            self.copies,
            self._specs,
            draw_fn,
            own,
            own_lengths=lengths,
        )
        everywhere = self.layout.everywhere
        return compiled(
            round_fn,
            in_shardings=(
                everywhere,
                self._state_shardings,
                everywhere,
                everywhere,
                self.layout.shardings(self._specs),
            ),
            out_shardings=(self._state_shardings, everywhere),
        )

    @property
    def _own_lengths(self) -> bool:
        return self.dynamics.lengths == "distance" and self.num_rungs > 1

    @property
    def _state_shardings(self) -> State:
        """Fixed layouts, so that a state fresh from a start, a round or a file needs no second
        compilation.
        """
        parts: Any = (self.layout.by_replica, self.layout.everywhere, self.layout.everywhere)
        return State(*parts)

    def _placed(self, state: State) -> State:
        return State(
            *(
                jax.device_put(part, where)
                for part, where in zip(state, self._state_shardings, strict=True)
            )
        )

    def _evaluate(self, weights: Weights, data: Any) -> Point:
        """E and its gradient; where the examples are split, the sum of what each part gives."""
        energy, gradient = jax.value_and_grad(self.target.energy_fn)(weights, data)
        if self.layout.mesh.shape[DATA] > 1:
            energy, gradient = jax.lax.psum((energy, gradient), DATA)
        return Point(weights, energy, gradient)

    def _key(self, stream: int) -> Array:
        return jax.random.fold_in(jax.random.key(self.seed), stream)

    def _potentials(self, point: Point) -> Array:
        """Of all replicas at the rungs they start at, the prior left out."""
        replica = np.minimum(np.arange(len(point.energy)), self.num_replicas - 1)
        own = jax.tree.map(
            lambda leaf: jnp.asarray(leaf)[replica // self.num_rungs], self.path.of_copies
        )
        terms = jax.vmap(self.path.terms_fn)(point.weights, point.energy, own)
        rows = self.path.coefficients[replica % self.num_rungs]
        return jnp.sum(jnp.asarray(rows, terms.dtype) * terms, axis=1)

    def _draw(self, stream: int, draw_fn: Callable[[Array], Weights], first: int = 0) -> Weights:
        key = self._key(stream)
        replicas = jnp.arange(first, first + self.num_replicas, dtype=jnp.int32)
        return jax.jit(jax.vmap(lambda replica: draw_fn(jax.random.fold_in(key, replica))))(
            replicas
        )

    def _fetched(self, tree: Any) -> Any:
        """On the host, without the padding.

        Every operation on arrays that are spread over devices is one more program that all of them
        have to run. With many on their way, a device was seen to wait in an all-gather, for ever,
        for one that had no room to begin it.
        """
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: self.num_replicas], tree)

    def _must_hold(self, good: Any, error: type[Exception], complaint: str) -> None:
        bad = np.flatnonzero(~self._fetched(good))
        if len(bad):
            raise error(
                f"{len(bad)} of {self.num_replicas} starts (replica {bad[0]} first) {complaint}"
            )


def _masses(target: Target, masses: Any) -> Weights:
    """Masses for every leaf: one number, a prefix of the weights' pytree, or "fan-in" for m_i =
    k_i.
    """
    if isinstance(masses, str):
        if masses != "fan-in":
            raise ConfigError(f'masses must be positive numbers or "fan-in", got {masses!r}')
        if target.network is None:
            raise ConfigError('masses "fan-in" need a network; give numbers for an energy function')
        masses = target.network.fan_in()
    return per_leaf("masses", masses, target.prior.like)


@jax.jit
def _all_finite(tree: Any) -> Array:
    """Whether all numbers of each replica (leading axis) are finite."""
    leaves = [
        jnp.isfinite(leaf).reshape(len(leaf), -1).all(axis=1) for leaf in jax.tree.leaves(tree)
    ]
    return jnp.stack(leaves).all(axis=0)


@jax.jit
def _differ(before: Weights, after: Weights) -> Array:
    """Whether any weight of each replica (leading axis) differs."""
    changed = jax.tree.map(lambda a, b: (a != b).reshape(len(a), -1).any(axis=1), before, after)
    return jnp.stack(jax.tree.leaves(changed)).any(axis=0)
