"""A summary (JSON) and a page (Markdown) of what the workers measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import task

PACKAGES = ("tempernet", "jax", "jaxlib", "numpy", "blackjax", "tfp-nightly")
COLUMNS = (
    "data",
    "L",
    "sampler",
    "ms/step",
    "median",
    "gradients/round",
    "ms/gradient",
    "GF/s",
    "of SGEMM",
    "tempernet is faster by",
    "peak MB",
    "devices",
    "tile",
)
PEERS = (
    "TFP evaluates all gradients once more after its exchange, L + 1 a round; the others take L "
    "(counted, not assumed). So speeds are compared by gradient, which leaves that one out. The "
    "peers reject what ends outside of the box, as Alg. 1 and `tempernet-rejecting` do: that is "
    "the same work. Reflecting walls, the default, fold every weight at every step, which the "
    "peers do not. BlackJAX has no exchange; both run on JAX's default single device with XLA's "
    "threads. Peak memory is the largest of the processes, with Python, JAX, data and compilation."
)


def summarise(measured: dict[str, Any]) -> dict[str, Any]:
    """Rows of the table and the goals.

    Args:
        measured: `settings`, and what `run.measure` returns.
    """
    limit = max(run["best"] for run in measured["sgemm"])
    rows = [
        _row(num_examples, name, runs, limit, measured["extra_gradients"][name])
        for num_examples, samplers in measured["samplers"].items()
        for name, runs in samplers.items()
    ]
    for row in rows:
        ours = next(r for r in rows if r["data"] == row["data"] and r["sampler"] == task.OURS)
        row["slower_than_tempernet"] = row["ms_per_gradient"] / ours["ms_per_gradient"]
    return {
        "settings": measured["settings"],
        "machine": machine(),
        "sgemm_gflops": {
            "best": limit / 1e9,
            "each_worker": [run["best"] / 1e9 for run in measured["sgemm"]],
        },
        "rows": rows,
        "memory": measured["memory"],
        "whole": measured["whole"],
        "goals": goals(rows, measured["memory"], measured["whole"]),
        "runs": measured,
    }


def _row(
    num_examples: int, name: str, runs: list[dict[str, Any]], limit: float, extra_gradients: float
) -> dict[str, Any]:
    fastest = min(runs, key=lambda run: run["best_seconds_per_step"])
    num_steps = fastest["num_steps"]
    seconds = min(fastest["round_seconds"])
    num_gradients = num_steps + extra_gradients
    rate = task.flops(num_examples) * num_gradients / seconds
    return {
        "data": num_examples,
        "num_steps": num_steps,
        "sampler": name,
        "ms_per_step": 1e3 * seconds / num_steps,
        "median_ms_per_step": 1e3
        * median(s for run in runs for s in run["round_seconds"])
        / num_steps,
        "gradients_per_round": num_gradients,
        "ms_per_gradient": 1e3 * seconds / num_gradients,
        "gflops": rate / 1e9,
        "fraction_of_sgemm": rate / limit,
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "devices": fastest["devices"],
        "tile": fastest["tile"],
        "tiles": [run["tile"] for run in runs],
    }


def goals(
    rows: list[dict[str, Any]], memory: dict[str, Any], whole: dict[str, Any]
) -> list[dict[str, Any]]:
    """Each goal with what was found."""
    found = []
    for ours in (row for row in rows if row["sampler"] == task.OURS):
        n = ours["data"]
        milliseconds = {r["sampler"]: r["ms_per_gradient"] for r in rows if r["data"] == n}
        peer = min(milliseconds[name] for name in task.PEERS)
        if n in task.FRACTION_GOAL:
            found.append(
                _goal(f"D_{n}: fraction of SGEMM", ours["fraction_of_sgemm"], task.FRACTION_GOAL[n])
            )
        if n in task.RATIO_GOAL:
            ratio = peer / milliseconds[task.REJECTING]
            found.append(
                _goal(
                    f"D_{n}: speed over the faster peer on the same work", ratio, task.RATIO_GOAL[n]
                )
            )
        if n in task.PEAK_GOAL:
            peak = ours["peak_bytes"] / 1e9
            found.append(
                _goal(f"D_{n}: peak memory, GB", peak, task.PEAK_GOAL[n] / 1e9, below=True)
            )
    many = f"{task.MANY_REPLICAS} replicas of M1, D_50: peak memory, GB"
    found.append(
        _goal(many, memory["peak_bytes"] / 1e9, task.MANY_REPLICAS_PEAK_GOAL / 1e9, below=True)
    )
    found.append(
        _goal("D_500: a whole sweep, share of the engine's rate", whole["share"], task.WHOLE_GOAL)
    )
    return found


def _goal(what: str, found: float, wanted: float, *, below: bool = False) -> dict[str, Any]:
    met = found < wanted if below else found >= wanted
    return {
        "goal": what,
        "wanted": f"{'<' if below else '>='} {wanted:g}",
        "found": found,
        "met": met,
    }


def machine() -> dict[str, Any]:
    """Versions and processor; nothing that names the machine."""
    cpu = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if "model name" in line
        ]
        cpu = f"{models[0]}, {cpu}" if models else cpu
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {"cpu": cpu, "cpus": cores, "versions": versions}


def markdown(summary: dict[str, Any]) -> str:
    """The page."""
    quick = "**A quick run, to see that it works: not a measurement.**"
    goal_cells = [_goal_cells(goal) for goal in summary["goals"]]
    parts = [
        "# Time of one Verlet step of all replicas",
        *([quick] if summary["settings"]["quick"] else []),
        _subject(summary["machine"]),
        _table(COLUMNS, [_cells(row) for row in summary["rows"]]),
        _method(summary["settings"], summary["sgemm_gflops"]),
        PEERS,
        _whole(summary["whole"]),
        "## Goals",
        _table(("goal", "wanted", "found", ""), goal_cells),
    ]
    return "\n\n".join(parts) + "\n"


def _subject(about: dict[str, Any]) -> str:
    """What was measured, and on what."""
    names = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"M3 (256-40-40-40-10), {task.REPLICAS} replicas, T = {task.COLDEST} to "
        f"{task.HOTTEST:g}, float32, {about['cpus']} CPUs ({about['cpu']}). {names}."
    )


def _method(settings: dict[str, Any], sgemm: dict[str, Any]) -> str:
    """How it was measured."""
    each = sgemm["each_worker"]
    return (
        "A round is one HMC trajectory of L steps with all that belongs to it (momenta, accept, "
        "and exchange where the sampler has one); ms/step is its time over L, the best of "
        f"{settings['rounds']} rounds in each of {settings['repeats']} processes, interleaved with "
        "those of the other samplers; the median is over all of these. GF/s counts the matrix "
        "products. SGEMM is the best of NumPy and JAX over the whole run, "
        f"{sgemm['best']:.0f} GF/s; its {len(each)} measurements before and after each data set "
        f"gave {min(each):.0f} to {max(each):.0f}."
    )


def _whole(whole: dict[str, Any]) -> str:
    """What a whole sweep takes beside its engine."""
    return (
        "A whole sweep of M3 on D_500 (112 replicas, rounds of 100 steps, scores every five, "
        f"checkpoints) takes {whole['whole_seconds']:.2f} s a round where the engine alone takes "
        f"{whole['engine_seconds']:.2f} s; results and figures take "
        f"{whole['finishing_seconds']:.0f} s at the end."
    )


def _goal_cells(goal: dict[str, Any]) -> tuple[str, ...]:
    met = "met" if goal["met"] else "**not met**"
    return goal["goal"], goal["wanted"], f"{goal['found']:.3g}", met


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    tiles = sorted({tile for tile in row["tiles"] if tile is not None} - {row["tile"]})
    also = f" (also {', '.join(map(str, tiles))})" if tiles else ""
    return (
        f"D_{row['data']}",
        f"{row['num_steps']}",
        row["sampler"],
        f"{row['ms_per_step']:.2f}",
        f"{row['median_ms_per_step']:.2f}",
        f"{row['gradients_per_round']:g}",
        f"{row['ms_per_gradient']:.2f}",
        f"{row['gflops']:.1f}",
        f"{row['fraction_of_sgemm']:.2f}",
        "" if row["sampler"] == task.OURS else f"{row['slower_than_tempernet']:.2f}",
        f"{row['peak_bytes'] / 1e6:.0f}",
        f"{row['devices']}",
        "" if row["tile"] is None else f"{row['tile']}{also}",
    )


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
