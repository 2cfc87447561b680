"""Whether two versions of tempernet give the same numbers.

    python scripts/same_numbers.py make OUT
    python scripts/same_numbers.py compare OLD NEW --rename old=new

`make` runs eight small runs of all kinds and protocols with fixed seeds, reproducibly. `compare`
holds every recorded array and every number of results.json of one such folder against another's.
Only the command line and the files of a run are used, so that it works across versions.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

COMMON = (
    "run.reproducible=true run.seed=7 data.size=8 data.n_train=40 data.n_validation=200 "
    "data.scored=100 output.figures=false network.name=64-6-10 prior.factor=200"
)
LADDER = "ladder.low=0.5 ladder.high=20 dynamics.num_steps=12 run.copies=2"
BRIDGE = "dynamics.num_steps=8 bridge.fit_burn_in=8 bridge.fit_rounds=16"
RUNS = {
    "sweep": (
        "sweep",
        f"{LADDER} ladder.num=6 dynamics.num_trajectories=2 run.burn_in=32 run.rounds=40",
    ),
    "sweep-paper": (
        "sweep --protocol paper",
        f"{LADDER} ladder.num=5 dynamics.num_trajectories=2 run.burn_in=16 run.rounds=24",
    ),
    "sweep-annealed": (
        "sweep",
        f"{LADDER} ladder.num=6 dynamics.num_trajectories=1 run.burn_in=16 run.rounds=24 "
        "start.weights=annealed",
    ),
    "evidence": (
        "evidence",
        "path.num=8 path.coldest=0.8 dynamics.num_steps=8 run.burn_in=24 run.rounds=40",
    ),
    "bridge": (
        "evidence --method bridge",
        f"{BRIDGE} path.num=6 run.burn_in=24 run.rounds=40",
    ),
    "bridge-paper": (
        "evidence --method bridge --protocol paper --copies 2",
        f"{BRIDGE} path.num=5 run.burn_in=6 run.rounds=8",
    ),
    "anneal": (
        "anneal",
        "dynamics.num_steps=12 dynamics.num_trajectories=2 cooling.num=6 cooling.high=30 "
        "cooling.low=0.5 run.copies=6",
    ),
    "optimise": ("optimise", "optimise.keep=6 optimise.starts=12 run.copies=6"),
}
"""Name -> the command with its options, and the settings besides the common ones."""
SHOWN = 5
"""Names that are shown of those that differ, and of those that are missing."""

Numbers = dict[str, NDArray[Any]]


class Compared(NamedTuple):
    """What became of the numbers of a run."""

    same: int
    different: dict[str, str]
    """How far numbers are apart, by their names."""
    missing: list[str]
    """What only the old run has."""
    new: list[str]
    """What only the new run has."""


def main() -> int:
    """Make the runs or compare two folders of them; 1 if they differ."""
    options = _parser().parse_args()
    if options.do == "make":
        make(options.out, shlex.split(options.program), options.only, options.set)
        return 0
    return compare(options.old, options.new, dict(options.rename), options.ignore, options.rtol)


def make(out: Path, program: list[str], only: list[str], more: list[str]) -> None:
    """Make the runs.

    Args:
        out: a folder for their folders.
        program: the command, as a list of its words.
        only: names of runs; empty for all.
        more: settings besides those of `RUNS`.
    """
    for name in only or RUNS:
        command, settings = RUNS[name]
        chosen = [*COMMON.split(), *settings.split(), *more]
        given = [text for setting in chosen for text in ("--set", setting)]
        print(name, flush=True)
        where = ["--quiet", "--out", str(out / name)]
        done = subprocess.run([*program, *command.split(), *given, *where], check=False)
        if done.returncode:
            raise SystemExit(f"the run {name} failed with exit code {done.returncode}")


def compare(old: Path, new: Path, renamed: dict[str, str], ignored: list[str], rtol: float) -> int:
    """Compare two folders of runs, a line for each run; 1 if anything differs or is missing.

    Args:
        old: one folder.
        new: the other one.
        renamed: new names of arrays by their old ones; whole words of a name are replaced.
        ignored: patterns of names that are left out.
        rtol: relative difference that is overlooked.
    """
    wrong = False
    for run in sorted(folder.name for folder in old.iterdir() if (folder / "config.toml").exists()):
        if not (new / run).is_dir():
            print(f"{run:15s} is missing")
            wrong = True
            continue
        before = {_renamed(name, renamed): array for name, array in numbers(old / run).items()}
        found = held_against(before, numbers(new / run), ignored, rtol)
        wrong |= bool(found.different or found.missing)
        _show(run, found)
    return int(wrong)


def numbers(run: Path) -> Numbers:
    """Every recorded array of a run, and every number of its results.json, by name."""
    pieces: dict[str, list[NDArray[Any]]] = {}
    for manifest in sorted(run.rglob("manifest.json")):
        part = manifest.parent.relative_to(run)
        for chunk in json.loads(manifest.read_text())["chunks"]:
            with np.load(manifest.parent / chunk["file"]) as arrays:
                for name in arrays.files:
                    key = f"{part}/{chunk['series']}.{name}"
                    pieces.setdefault(key, []).append(arrays[name])
    found = {name: np.concatenate(chunks) for name, chunks in pieces.items()}
    results = run / "results.json"
    if results.exists():
        found |= dict(_leaves(json.loads(results.read_text()), "results"))
    return found


def held_against(before: Numbers, after: Numbers, ignored: list[str], rtol: float) -> Compared:
    """Compare numbers by their names; see `compare` for the arguments."""
    same, different, missing = 0, {}, []
    counts = _counting(ignored)
    for name in filter(counts, before):
        if name not in after:
            missing.append(name)
            continue
        apart = difference(before[name], after[name], rtol)
        if apart:
            different[name] = apart
        else:
            same += 1
    new = [name for name in filter(counts, after) if name not in before]
    return Compared(same, different, missing, new)


def difference(old: NDArray[Any], new: NDArray[Any], rtol: float) -> str:
    """How far two arrays are apart, in words; empty if they are the same.

    Args:
        old: of any shape.
        new: of the same shape, or it differs.
        rtol: relative difference that is overlooked.
    """
    if old.shape != new.shape:
        return f"shapes {old.shape} and {new.shape}"
    if not np.issubdtype(old.dtype, np.number):
        return "" if np.array_equal(old, new) else "values"
    one, other = old.astype(np.float64), new.astype(np.float64)
    unequal = ~((one == other) | (np.isnan(one) & np.isnan(other)))
    if not unequal.any():
        return ""
    with np.errstate(invalid="ignore", divide="ignore"):
        absolute = np.abs(one - other)[unequal]
        relative = absolute / np.maximum(np.abs(one), np.abs(other))[unequal]
    # What is not finite on one side only is as far apart as can be.
    worst = float(np.nan_to_num(relative, nan=np.inf).max())
    if worst <= rtol:
        return ""
    return f"{absolute.max():.2g} ({worst:.1g} relative), {int(unequal.sum())} of {unequal.size}"


def _leaves(value: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Numbers of a document by their paths: `results.temperatures[3].energy`."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{name}[{index}]")
    elif isinstance(value, int | float):
        yield name, np.asarray(value)


def _renamed(name: str, renamed: dict[str, str]) -> str:
    for old, new in renamed.items():
        name = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, name)
    return name


def _counting(ignored: list[str]) -> Callable[[str], bool]:
    return lambda name: not any(re.search(pattern, name) for pattern in ignored)


def _show(run: str, found: Compared) -> None:
    counts = f"{found.same} same, {len(found.different)} different"
    print(f"{run:15s} {counts}, {len(found.missing)} missing, {len(found.new)} new")
    for name, apart in list(found.different.items())[:SHOWN]:
        print(f"    {name}: {apart}")
    for name in found.missing[:SHOWN]:
        print(f"    {name} is missing")


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not old=new")
    return old, new


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="do", required=True)
    making = commands.add_parser("make", help="make eight small runs")
    making.add_argument("out", type=Path, help="folder for their folders")
    program = str(Path(sys.executable).with_name("tempernet"))
    making.add_argument("--program", default=program, help="the command (default: %(default)s)")
    making.add_argument("--only", action="append", default=[], choices=RUNS, help="one of the runs")
    making.add_argument("--set", action="append", default=[], help="one more setting")
    comparing = commands.add_parser("compare", help="compare two folders of runs")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument(
        "--rename", action="append", default=[], type=_pair, metavar="OLD=NEW", help="of an array"
    )
    comparing.add_argument(
        "--ignore", action="append", default=[], metavar="PATTERN", help="names to leave out"
    )
    comparing.add_argument("--rtol", type=float, default=0.0, help="relative difference allowed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
