"""Benchmark of the engine against BlackJAX, TFP and SGEMM: `python bench/run.py`, ten minutes.

Each measurement is a process of its own (`--worker`), which prints one line of JSON. This process
starts them one after another and imports nothing heavy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import report
import task

OUT = Path(__file__).parent / "out"
ROUNDS = 3
SAME_ENERGY = 1e-4
"""Relative accuracy to which samplers with the same weights must agree on the mean energy."""


def main() -> None:
    options = _parser().parse_args()
    if options.worker:
        import workers

        n = options.data[0]
        found = workers.run(
            options.worker, n, options.steps or _default_steps(n), options.rounds or ROUNDS
        )
        print(json.dumps(found))
        return
    quick = options.quick
    repeats = options.repeats or (1 if quick else 3)
    rounds = options.rounds or (1 if quick else ROUNDS)
    settings = {"repeats": repeats, "rounds": rounds, "quick": quick, "replicas": task.REPLICAS}
    chosen = {n: options.steps or _default_steps(n, quick) for n in options.data}
    measured = measure(chosen, repeats, rounds, quick)
    summary = report.summarise({"settings": settings, **measured})
    page = report.markdown(summary)
    OUT.mkdir(exist_ok=True)
    stem = "engine-quick" if quick else "engine"
    (OUT / f"{stem}.json").write_text(json.dumps(summary, indent=1) + "\n")
    (OUT / f"{stem}.md").write_text(page)
    print(page, end="")


def measure(steps: dict[int, int], repeats: int, rounds: int, quick: bool) -> dict[str, Any]:
    """All workers, in turn forwards and backwards, with SGEMM in between.

    Args:
        steps: L for each number of training examples.
        repeats: how often the set of workers is run.
        rounds: timed in each process.
        quick: whether the whole sweep is a short one.
    """
    counting_steps = 3
    counted = worker(task.GRADIENTS, steps=counting_steps)
    samplers: dict[int, dict[str, list[Any]]] = {
        n: {name: [] for name in task.SAMPLERS} for n in steps
    }
    sgemm = []
    for repeat in range(repeats):
        sgemm.append(worker(task.SGEMM, rounds=3))
        for n, num_steps in steps.items():
            for name in task.SAMPLERS[:: -1 if repeat % 2 else 1]:
                found = worker(name, data=n, steps=num_steps, rounds=rounds)
                samplers[n][name].append({"num_steps": num_steps, **found})
            sgemm.append(worker(task.SGEMM, rounds=3))
    for n, runs in samplers.items():
        _must_agree(n, runs)
    return {
        "samplers": samplers,
        "sgemm": sgemm,
        "extra_gradients": {name: counted[name] - counting_steps for name in task.SAMPLERS},
        "memory": worker(task.MEMORY),
        "whole": worker(task.WHOLE, rounds=12 if quick else task.WHOLE_ROUNDS),
    }


def worker(name: str, **options: int) -> dict[str, Any]:
    """Run one worker and read its line."""
    what = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
    print(what, end=" ", flush=True, file=sys.stderr)
    given = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    done = subprocess.run(
        [sys.executable, __file__, "--worker", name, *given],
        capture_output=True,
        text=True,
        env=_clean_environment(),
        check=False,
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(f"bench: the worker {what} failed with exit code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    print(_in_short(found), file=sys.stderr)
    return found


def _in_short(found: dict[str, Any]) -> str:
    if "best_seconds_per_step" in found:
        return f"{1e3 * found['best_seconds_per_step']:.2f} ms/step"
    if "best" in found:
        return f"{found['best'] / 1e9:.0f} GF/s"
    return "done"


def _clean_environment() -> dict[str, str]:
    """Without settings that would change devices, threads or precision under some workers."""
    unwanted = ("JAX_", "XLA_", "TEMPERNET_", "OMP_", "OPENBLAS_", "MKL_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    return kept | {"JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}


def _must_agree(num_examples: int, runs: dict[str, list[Any]]) -> None:
    """The same weights on the same data have the same energy, or samplers do different work."""
    energies = {name: run["start_energy"] for name, found in runs.items() for run in found}
    low, high = min(energies.values()), max(energies.values())
    if not high - low <= SAME_ENERGY * high:
        raise SystemExit(
            f"bench: the samplers disagree about the energy on D_{num_examples}: {energies}"
        )
    still = {name: run["acceptance"] for name, found in runs.items() for run in found}
    if not min(still.values()) > 0:
        raise SystemExit(f"bench: a sampler accepts nothing on D_{num_examples}: {still}")


def _default_steps(num_examples: int, quick: bool = False) -> int:
    known = task.QUICK_STEPS if quick else task.STEPS
    return known.get(num_examples, max(2, 10_000 // num_examples))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=int, nargs="+", default=list(task.STEPS), help="training examples"
    )
    parser.add_argument(
        "--repeats", type=int, default=0, help="processes for each sampler and data set (3)"
    )
    parser.add_argument("--rounds", type=int, default=0, help="rounds timed in each process (3)")
    parser.add_argument("--steps", type=int, default=0, help="L for all data sets (100, 50, 10)")
    parser.add_argument(
        "--quick", action="store_true", help="few short rounds, to see that it works"
    )
    parser.add_argument("--worker", help="run this one measurement and print a line of JSON")
    return parser


if __name__ == "__main__":
    main()
