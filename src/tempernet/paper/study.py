"""The paper as a study: named steps, each a run in a folder of its own below the study's, made one
after the other.

The study's file says its scale and its steps. Each step is a run like any other: it stops, goes on
and can be made longer by itself, and a finished one is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from tempernet import config
from tempernet.config import (
    EvidenceSettings,
    OptimiseSettings,
    RunSettings,
    SweepSettings,
    did_you_mean,
)
from tempernet.devices.tiles import processor
from tempernet.errors import ConfigError, StoreError
from tempernet.kinds import kind_of
from tempernet.paper import scales
from tempernet.runs.status import problems
from tempernet.store import RunFolder, files
from tempernet.store.folder import RESULTS, STUDY, is_run, must_be_empty

RUNS, PROGRAMS = "runs", "programs"
DEFAULT_SCALE = "hour"
IMAGES_OF = "m3-d500-default"
"""The step whose images Fig. 1 shows."""
ALL = "all"
"""What `--only` takes to go back to the whole study."""
PARTS = ("fig1", "fig2", "fig3", "fig4", "optimise", "widths", "evidence")
"""What `--only` can name, besides single steps."""


@dataclass(frozen=True)
class Step:
    """A run of the study."""

    name: str
    """Of its folder."""
    parts: tuple[str, ...]
    """What of the paper it is for."""
    settings: RunSettings
    """Of the kind of run that it is."""


@dataclass(frozen=True)
class Study:
    """A folder with a scale, its steps, and the names that `--only` gave last; empty for all."""

    path: Path
    scale: str
    steps: tuple[Step, ...]
    only: tuple[str, ...] = ()

    @classmethod
    def begin(cls, path: Path, scale: str | None, only: Iterable[str] | None) -> Study:
        """A new study, or the one that is in the folder; None leaves scale or steps as they were."""
        if is_study(path):
            old = cls.open(path)
            if scale not in (None, old.scale):
                raise StoreError(
                    f"{path} holds a study of scale {old.scale}, not {scale}; choose another folder with --out, or go "
                    f"on with: tempernet reproduce --out {path}"
                )
            return cls(
                path, old.scale, old.steps, old.only if only is None else checked(only, old.steps)
            )
        steps = steps_of(scale or DEFAULT_SCALE)
        chosen = checked(only or (), steps)
        must_be_empty(path)
        return cls(path, scale or DEFAULT_SCALE, steps, chosen)

    @classmethod
    def open(cls, path: Path) -> Study:
        """The study in a folder."""
        if not is_study(path):
            raise StoreError(
                f"{path} holds no study: it has no {STUDY}; begin one with tempernet reproduce --out {path}"
            )
        said = files.read_json(path / STUDY)
        steps = steps_of(said["scale"])
        if said["steps"] != _digests(steps):
            raise StoreError(
                f"{path} was begun with other settings of the scale {said['scale']}, by another version of tempernet; "
                "go on with that version, or choose another folder with --out"
            )
        return cls(path, said["scale"], steps, tuple(said["only"]))

    def write(self) -> None:
        """Note scale and steps in the folder."""
        said = {"scale": self.scale, "steps": _digests(self.steps), "only": list(self.only)}
        files.write_json(self.path / STUDY, said)

    @property
    def wanted(self) -> list[Step]:
        """The steps that `--only` leaves."""
        return [
            s
            for s in self.steps
            if not self.only or s.name in self.only or set(s.parts) & set(self.only)
        ]

    def folder(self, step: Step) -> Path:
        """Where a step's run is."""
        return self.path / RUNS / step.name

    def finished(self, step: Step) -> bool:
        """Whether a step has its results."""
        folder = self.folder(step)
        if not is_run(folder) or not (folder / RESULTS).exists():
            return False
        newest, _ = RunFolder.open(folder).checkpoints.latest()
        return newest is not None and bool(newest.meta["finished"])

    def state(self, step: Step) -> str:
        """How far a step is."""
        if self.finished(step):
            return "finished"
        return "begun" if is_run(self.folder(step)) else "not begun"

    def status(self) -> dict[str, Any]:
        """How far the study is."""
        states = {step.name: self.state(step) for step in self.steps}
        done = all(states[step.name] == "finished" for step in self.wanted)
        return {"scale": self.scale, "only": list(self.only), "steps": states, "finished": done}

    def problems(self) -> list[str]:
        """Everything that is wrong with the folders of its runs."""
        return [
            text
            for step in self.steps
            if is_run(self.folder(step))
            for text in problems(self.folder(step))
        ]

    def settings(self, step: Step) -> RunSettings:
        """Those of the run that is there, which may have been made longer; else the study's own."""
        folder = self.folder(step)
        return (
            RunFolder.open(folder).settings(type(step.settings))
            if is_run(folder)
            else step.settings
        )

    def results(self) -> dict[str, Any]:
        """What every finished step found, by its name."""
        return {
            step.name: kind_of(self.folder(step)).parts.load(self.folder(step))
            for step in self.steps
            if self.finished(step)
        }


@contextlib.contextmanager
def compiling(path: Path, *, tiny: bool) -> Iterator[None]:
    """Within it, what a step compiles is kept in the folder for the next, unless the user keeps
    programs elsewhere.

    Where runs are tiny, compiling takes longer than running, and programs are compiled as fast as
    they can be: a step that is resumed by itself then has other roundings. Programs are machine
    code, which another processor may not know, and JAX does not look: each kind of processor has a
    folder of its own.
    """
    changed: dict[str, Any] = {"jax_disable_most_optimizations": True} if tiny else {}
    if not jax.config.values["jax_compilation_cache_dir"]:
        kind = hashlib.sha256(processor().encode()).hexdigest()[:16]
        changed["jax_compilation_cache_dir"] = str(path / PROGRAMS / kind)
        changed["jax_persistent_cache_min_compile_time_secs"] = 0.0
    before = {name: jax.config.values[name] for name in changed}
    try:
        for name, value in changed.items():
            jax.config.update(name, value)
        # JAX looks at its settings once.
        compilation_cache.reset_cache()
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def is_study(path: Path) -> bool:
    """Whether a study has begun in this folder."""
    return (path / STUDY).is_file()


def steps_of(scale: str) -> tuple[Step, ...]:
    """The steps of a scale, the cheap ones first."""
    if scale not in scales.SCALES:
        raise ConfigError(
            f"unknown scale {scale!r}{did_you_mean(scale, scales.SCALES)}; there are {', '.join(scales.SCALES)}"
        )
    widths = [
        _step(
            "widths",
            f"widths-{network.lower()}",
            OptimiseSettings,
            scale,
            network,
            500,
            protocol,
            scales.WIDTH[scale][protocol],
        )
        for network in scales.WIDTHS
        for protocol in scales.PROTOCOLS
    ]
    optimised = [
        _step(
            "optimise fig3",
            f"optimise-m3-d{n}",
            OptimiseSettings,
            scale,
            "M3",
            n,
            protocol,
            scales.OPTIMISE[scale][protocol][n],
        )
        for n in scales.SIZES
        for protocol in scales.PROTOCOLS
    ]
    evidences = [
        _step(
            "evidence",
            f"evidence-{network.lower()}",
            EvidenceSettings,
            scale,
            network,
            500,
            protocol,
            given[network],
        )
        for network in scales.EVIDENCES
        for protocol, given in scales.EVIDENCE[scale].items()
    ]
    sweeps = [
        _sweep(scale, network, n, protocol)
        for network, n in scales.SWEEPS
        for protocol in scales.PROTOCOLS
    ]
    return (*widths, *optimised, *sweeps, *evidences)


def checked(only: Iterable[str], steps: Iterable[Step]) -> tuple[str, ...]:
    """Names of parts or steps, all of them known; none for `all`."""
    known = [ALL, *PARTS, *(step.name for step in steps)]
    names = tuple(only)
    if names == (ALL,):
        return ()
    for name in names:
        if name not in known:
            raise ConfigError(
                f"--only knows no {name!r}{did_you_mean(name, known)}; it takes {', '.join((*PARTS, ALL))}, or a "
                f"step's name such as {known[-1]}"
            )
    return names


def _sweep(scale: str, network: str, n: int, protocol: str) -> Step:
    """A run of Table 1, with its range of temperatures."""
    parts = "fig4" if network == "M3star" else "fig1 fig2 fig3" if n == 500 else "fig3"
    ladder = config.PRESETS[f"paper-{'m3star-' if network == 'M3star' else ''}d{n}"].tables[
        "ladder"
    ]
    given = scales.SWEEP[scale][protocol][network, n]
    ends = {name: ladder[name] for name in ("low", "high")}
    given = given | {"ladder": ends | given["ladder"]}
    if scale == "smoke":
        given = given | {"start": {"max_gradients": 50}}
    return _step(
        parts, f"{network.lower()}-d{n}", SweepSettings, scale, network, n, protocol, given
    )


def _step(
    parts: str,
    stem: str,
    model: type[RunSettings],
    scale: str,
    network: str,
    n: int,
    protocol: str,
    given: Mapping[str, Any],
) -> Step:
    tables = scales.subject(scale, network, n) | scales.common(scale) | {"protocol": protocol}
    run = tables["run"] | given.get("run", {})
    return Step(
        f"{stem}-{protocol}",
        tuple(parts.split()),
        config.settings_from({**tables, **given, "run": run}, model),
    )


def _digests(steps: Iterable[Step]) -> dict[str, str]:
    """A hash of the settings of each step."""
    return {
        step.name: hashlib.sha256(
            json.dumps(files.plain(step.settings.model_dump()), sort_keys=True).encode()
        ).hexdigest()[:16]
        for step in steps
    }
