"""How many gradients a kernel needs to forget: HMC against partial refreshment.

Chains of several replicas start from equilibrated weights of a sweep and run at one temperature
without exchange. Each kernel has its step size tuned to its acceptance. What is recorded are the
energy, the mean square weight of each layer and the outputs of all hidden units on a few inputs;
what is reported is how fast they forget, in gradients:

    1 - rho(g) = <(f(t + g) - f(t))^2> / (2 var f)

averaged over the observables of a group, var f from the sweep, errors from a jackknife over chains.

    python bench/kernels.py scan --sweep runs/d500 --out runs/kernels --temperature 2.5
    python bench/kernels.py table --out runs/kernels
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tempernet as tn
from tempernet.devices.mesh import compiled
from tempernet.kernels.base import Info, Point, Rung, select
from tempernet.kernels.horowitz import Horowitz
from tempernet.kernels.momentum import draw_momentum, flipped, kinetic_change, refreshed
from tempernet.kernels.registry import KERNELS
from tempernet.kernels.trajectory import propose
from tempernet.tempering import tuning as rules
from tempernet.tempering.rounds import State

CHAINS = 8
RECORD = 50
"""Gradients between records, at least."""
INPUTS = 10
TUNING = 1000
"""Gradients spent on the step size."""
DELTA = 0.1
WINDOW = 1500
"""Lag in gradients at which relaxation times are taken."""
HEADLINE = ("units 2", "units 3")
"""The slowest groups, by which settings are compared."""


@dataclass(frozen=True)
class Setting:
    """A kernel with its length and persistence, and the acceptance its step size is tuned to."""

    kernel: str
    num_steps: int
    persistence: float
    acceptance: float

    @property
    def name(self) -> str:
        """For files and tables."""
        kept = f" a={self.persistence:.3f}" if self.kernel != "hmc" else ""
        return f"{self.kernel} L={self.num_steps}{kept} acc={self.acceptance}"


def remembering(steps: int, memory: float) -> float:
    """The persistence per trajectory of a momentum that is forgotten in `memory` steps."""
    return float(np.exp(-steps / memory))


SCAN = [
    Setting("hmc", 150, 0.0, 0.65),
    Setting("horowitz", 30, remembering(30, 100), 0.9),
    Setting("horowitz", 30, remembering(30, 300), 0.9),
    Setting("hmc", 50, 0.0, 0.65),
    Setting("hmc", 300, 0.0, 0.65),
    Setting("horowitz", 10, remembering(10, 100), 0.9),
    Setting("horowitz", 75, remembering(75, 150), 0.8),
    Setting("hmc", 100, 0.0, 0.65),
    Setting("horowitz", 30, remembering(30, 300), 0.8),
    Setting("slice", 30, remembering(30, 300), 0.8),
    Setting("hmc", 150, 0.0, 0.8),
    Setting("slice", 10, remembering(10, 100), 0.9),
    Setting("horowitz", 10, remembering(10, 300), 0.95),
]


class SliceState(NamedTuple):
    """A point, its momentum, and the level that decides the acceptance."""

    point: Point
    momentum: Any
    level: jax.Array


class PersistentLevel(Horowitz):
    """Horowitz' kernel without detailed balance: the level of acceptance persists too (Neal 2020).

    |v| = s / pi(w, p) with v uniform in (-1, 1) is a slice variable: a trajectory is accepted if
    |v| < pi'/pi, and v then becomes v pi/pi'. Between trajectories v moves on by a constant around
    the circle, so that rejections, which turn replicas back, come close together.
    """

    def init(self, key: jax.Array, point: Point) -> Any:
        """Momentum and level from equilibrium."""
        one, two = jax.random.split(key)
        level = jax.random.uniform(two, (), point.energy.dtype, -1.0, 1.0)
        return SliceState(point, draw_momentum(one, point.weights, self.masses), level)

    def step(self, key: jax.Array, state: Any, rung: Rung) -> tuple[Any, Info]:
        """One trajectory."""
        momentum_key, uniform_key = jax.random.split(key)
        fresh = draw_momentum(momentum_key, state.point.weights, self.masses)
        momentum = refreshed(state.momentum, fresh, self.settings.persistence)
        noise, for_jitter = jax.random.uniform(uniform_key, (2,), rung.step_size.dtype)
        level = state.level + DELTA * (0.5 + noise)
        level = jnp.where(level > 1, level - 2, level)
        point = state.point
        end = propose(self.potential, self.masses, self.settings, rung, point, momentum, for_jitter)
        log_ratio = (
            self.potential.value(point.weights, point.energy, rung.coefficients)
            - self.potential.value(end.point.weights, end.point.energy, rung.coefficients)
            - kinetic_change(momentum, end.momentum, self.masses)
        )
        accept = jnp.abs(level) < end.acceptance
        onwards = SliceState(end.point, end.momentum, level * jnp.exp(-log_ratio))
        back = SliceState(point, flipped(momentum), level)
        return select(accept, onwards, back), end.info(accept)


KERNELS["slice"] = PersistentLevel


class Sweep(NamedTuple):
    """Equilibrated weights of one temperature."""

    temperature: float
    weights: Any
    """Leading axes rows, copies."""


def read_sweep(folder: Path, temperature: float) -> Sweep:
    """All kept weights at the temperature of a sweep that is nearest."""
    chunks = json.loads((folder / "weights" / "manifest.json").read_text())
    names = sorted({name for name in _strings(chunks) if name.endswith(".npz")})
    leaves: list[list[np.ndarray]] = []
    for name in names:
        with np.load(folder / "weights" / name) as arrays:
            ladder = np.asarray(arrays["temperatures"])
            ladder = ladder[-1] if ladder.ndim > 1 else ladder
            rung = int(np.abs(np.log(ladder / temperature)).argmin())
            number = sum(key.startswith("leaf") for key in arrays)
            leaves.append([arrays[f"leaf{i}"][:, :, rung] for i in range(number)])
    joined = [np.concatenate(parts) for parts in zip(*leaves, strict=True)]
    structure = jax.tree.structure(tn.M3.fan_in())
    return Sweep(float(ladder[rung]), jax.tree.unflatten(structure, joined))


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _strings(key)
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def hidden_units(weights: Any, inputs: jax.Array) -> list[jax.Array]:
    """Outputs of the hidden units of one network, a list of (units, examples)."""
    outputs, scores = [], inputs
    for layer in weights[:-1]:
        scores = jax.nn.sigmoid(layer.weight @ scores + layer.bias[:, None])
        outputs.append(scores)
    return outputs


class Bench:
    """Chains at one temperature of a sweep."""

    def __init__(self, sweep: Sweep, size: int, seed: int, step: float) -> None:
        data = tn.mnist16().split(size)
        prior = tn.UniformBox.for_network(tn.M3, 50.0)
        self.target = tn.Target.classifier(tn.M3, data.train, prior)
        self.sweep, self.seed = sweep, seed
        first = [int(np.flatnonzero(data.test.y == label)[0]) for label in range(INPUTS)]
        inputs = jnp.asarray(np.asarray(data.test.x[first]).reshape(INPUTS, -1).T)
        self._units = compiled(jax.vmap(lambda w: hidden_units(w, inputs)))
        rows = jax.tree.leaves(sweep.weights)[0].shape[0]
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), sweep.weights)
        picked = np.linspace(0, 2 * rows - 1, CHAINS).astype(int)
        self.starts = jax.tree.map(lambda leaf: leaf[picked], flat)
        scale = [np.float64(h) for h in (layer.weight for layer in prior.half_width)]
        self.step = step
        energies = jax.jit(lambda w: jax.lax.map(self.target.energy, w))(flat)
        squares = np.stack(
            [
                (np.square(layer.weight).sum((1, 2)) + np.square(layer.bias).sum(1))
                / (layer.weight[0].size + layer.bias[0].size)
                / s**2
                for layer, s in zip(flat, scale, strict=True)
            ],
            axis=1,
        )
        self.known = {"energy": np.asarray(energies)[:, None], "squares": squares}
        for i, units in enumerate(self._units(flat)):
            self.known[f"units {i + 1}"] = np.asarray(units)

    def run(self, setting: Setting, gradients: int) -> dict[str, Any]:
        """Find the step size, run for so many gradients, and give the variograms of all groups."""
        inner = max(1, RECORD // setting.num_steps)
        dynamics = tn.Dynamics(
            num_steps=setting.num_steps,
            num_trajectories=inner,
            kernel=setting.kernel,
            persistence=setting.persistence,
        )
        path = tn.temperature_path([self.sweep.temperature])
        options: dict[str, Any] = {"copies": CHAINS, "devices": 1, "tile": CHAINS}
        engine = tn.Engine(self.target, path, dynamics=dynamics, seed=self.seed, **options)
        state = engine.start(self.starts)
        near = min(0.05, 0.9 * (1 - setting.acceptance))
        tuning = tn.Tuning(low=setting.acceptance - near, high=setting.acceptance + near)
        search = rules.start_search(np.array([self.step]), engine.largest_step, near=True)
        each = inner * setting.num_steps
        for _ in range(max(10, TUNING // each)):
            state, record = engine.round(state, engine.rungs(np.exp(search.log_step)))
            acceptance = np.asarray(record.info.acceptance, np.float64).mean(axis=0)
            search = rules.search_step(search, acceptance, tuning, engine.largest_step)
        self.step = float(rules.found(search, engine.largest_step)[0])
        rungs = engine.rungs(self.step)
        began = time.perf_counter()
        series: dict[str, list[np.ndarray]] = {name: [] for name in self.known}
        accepted = []
        for _ in range(-(-gradients // each)):
            state, record = engine.round(state, rungs)
            accepted.append(float(np.mean(record.info.acceptance)))
            self._note(engine, state, series)
        seconds = time.perf_counter() - began
        found = {name: np.stack(rows, axis=1) for name, rows in series.items()}
        return {
            **asdict(setting),
            "name": setting.name,
            "temperature": self.sweep.temperature,
            "step_size": self.step,
            "measured_acceptance": float(np.mean(accepted)),
            "gradients_a_record": each,
            "records": len(accepted),
            "seconds_a_gradient": seconds / (len(accepted) * each * CHAINS),
            "series": {name: found[name].tolist() for name in ("energy", "squares")},
            "groups": self._variograms(found),
        }

    def _note(self, engine: tn.Engine, state: State, series: dict[str, list[np.ndarray]]) -> None:
        series["energy"].append(engine.energies(state))
        series["squares"].append(engine.mean_squares(state)[:, 0])
        for i, units in enumerate(self._units(state.kernel.point.weights)):
            series[f"units {i + 1}"].append(np.asarray(units))

    def _variograms(self, series: dict[str, np.ndarray]) -> dict[str, Any]:
        """1 - rho of each group at all lags in records: (chains, lags)."""
        groups = {}
        for name, values in series.items():
            if name == "squares":
                for layer in range(values.shape[-1]):
                    known = self.known[name][:, layer].var()
                    groups[f"mean square {layer + 1}"] = variogram(values[..., layer], known)
                continue
            known = float(np.mean(self.known[name].var(axis=0)))
            groups[name] = variogram(values, known)
        return {name: found.tolist() for name, found in groups.items()}


def variogram(series: np.ndarray, variance: float) -> np.ndarray:
    """<(f(t + g) - f(t))^2> / 2 var f, (chains, lags); `series` is (chains, records, ...)."""
    chains, records = series.shape[:2]
    flat = series.reshape(chains, records, -1).astype(np.float64)
    found = np.zeros((chains, records // 2 + 1))
    for lag in range(1, records // 2 + 1):
        found[:, lag] = np.square(flat[:, lag:] - flat[:, :-lag]).mean(axis=(1, 2))
    return found / (2 * variance)


def relaxation(curve: np.ndarray, gradients: int, window: int) -> float:
    """g / -log rho(g) at the lag g nearest to a window in gradients, from 1 - rho (lags,)."""
    lag = max(1, min(len(curve) - 1, round(window / gradients)))
    return float(lag * gradients / -np.log(max(1e-2, 1 - curve[lag])))


def jackknife(fn: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """A function of chosen chains, with its error: all chains, and all but one of them."""
    every = np.arange(CHAINS)
    values = np.array([fn(np.delete(every, i)) for i in every])
    return fn(every), float(np.sqrt((CHAINS - 1) * values.var()))


class Run(NamedTuple):
    """What is known of a setting at a temperature."""

    about: dict[str, Any]
    curves: dict[str, np.ndarray]
    """1 - rho of each group, (chains, lags)."""

    def time(self, name: str, chains: np.ndarray) -> float:
        """The relaxation time of a group in gradients."""
        curve = self.curves[name][chains].mean(axis=0)
        return relaxation(curve, self.about["gradients_a_record"], WINDOW)


def read_runs(out: Path) -> dict[float, list[Run]]:
    """The runs of a folder by temperature; variances are of all runs at a temperature together."""
    by_temperature: dict[float, list[dict[str, Any]]] = {}
    for file in sorted(out.glob("*.json")):
        about = json.loads(file.read_text())
        by_temperature.setdefault(about["temperature"], []).append(about)
    return {t: _with_common_variance(runs) for t, runs in sorted(by_temperature.items())}


def _with_common_variance(runs: list[dict[str, Any]]) -> list[Run]:
    def series(about: dict[str, Any]) -> dict[str, np.ndarray]:
        found = {"energy": np.array(about["series"]["energy"])[..., 0]}
        squares = np.array(about["series"]["squares"])
        return found | {f"mean square {i + 1}": squares[..., i] for i in range(squares.shape[-1])}

    rows = [series(about) for about in runs]
    spread = {
        name: float(np.concatenate([r[name] for r in rows], axis=1).var()) for name in rows[0]
    }
    found = []
    for about, row in zip(runs, rows, strict=True):
        curves = {name: variogram(values, spread[name]) for name, values in row.items()}
        units = {n: np.array(c) for n, c in about["groups"].items() if n.startswith("units")}
        found.append(Run(about, curves | units))
    return found


def table(out: Path) -> None:
    """Relaxation times of all runs in a folder, and how much faster than the first each is.

    All settings start from the same states, so the errors of ratios are of pairs of chains.
    """
    for temperature, runs in read_runs(out).items():
        names = list(runs[0].curves)
        print(f"\nT = {temperature:.2f}, gradients to forget at a lag of {WINDOW}\n")
        print("| setting | eps | acceptance | " + " | ".join(names) + " | faster |")
        print("|---" * (4 + len(names)) + "|")
        first = runs[0]
        for run in runs:
            cells = []
            for name in names:
                value, error = jackknife(lambda chains, r=run, n=name: r.time(n, chains))
                cells.append(f"{value:.0f}({error:.0f})")

            def faster(chains: np.ndarray, run: Run = run, first: Run = first) -> float:
                ratios = [first.time(n, chains) / run.time(n, chains) for n in HEADLINE]
                return float(np.exp(np.mean(np.log(ratios))))

            value, error = jackknife(faster)
            about = run.about
            head = (
                f"| {about['name']} | {about['step_size']:.3f} | {about['measured_acceptance']:.2f}"
            )
            print(f"{head} | {' | '.join(cells)} | {value:.2f}({error:.2f}) |")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["scan", "table"])
    parser.add_argument("--sweep", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--temperature", type=float, default=2.5)
    parser.add_argument("--gradients", type=int, default=5000)
    parser.add_argument("--only", default="", help="numbers of the settings, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", type=float, default=0.15, help="where the step sizes begin")
    arguments = parser.parse_args()
    if arguments.what == "table":
        table(arguments.out)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    sweep = read_sweep(arguments.sweep, arguments.temperature)
    bench = Bench(sweep, 500, arguments.seed, arguments.step)
    chosen = [int(i) for i in arguments.only.split(",")] if arguments.only else range(len(SCAN))
    for i in chosen:
        run = bench.run(SCAN[i], arguments.gradients)
        file = arguments.out / f"T{run['temperature']:.2f}-{i:02d}-{arguments.seed}.json"
        file.write_text(json.dumps(run))
        print(
            file.name, run["name"], f"{run['measured_acceptance']:.2f}", run["records"], flush=True
        )


if __name__ == "__main__":
    main()
