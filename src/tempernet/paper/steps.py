"""The steps of a study: which runs there are at a scale, and what of the paper each is for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import cast

from tempernet import config
from tempernet.config import (
    EvidenceSettings,
    OptimiseSettings,
    RunSettings,
    SweepSettings,
    did_you_mean,
)
from tempernet.errors import ConfigError
from tempernet.paper import scales
from tempernet.paper.scales import Table, Tables
from tempernet.store import files

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
    """The name of its folder."""
    parts: tuple[str, ...]
    """What of the paper it is for."""
    settings: RunSettings
    """The settings of its kind of run."""


def steps_of(scale: str) -> tuple[Step, ...]:
    """The steps of a scale, the cheap ones first."""
    if scale not in scales.SCALES:
        known = ", ".join(scales.SCALES)
        hint = did_you_mean(scale, scales.SCALES)
        raise ConfigError(f"unknown scale {scale!r}{hint}; there are {known}")
    return (*_widths(scale), *_optimised(scale), *_sweeps(scale), *_evidences(scale))


def checked(only: Iterable[str], steps: Iterable[Step]) -> tuple[str, ...]:
    """Names of parts or steps, all of them known; none for `all`.

    Args:
        only: what `--only` was given.
        steps: all that there are.
    """
    known = [ALL, *PARTS, *(step.name for step in steps)]
    names = tuple(only)
    if names == (ALL,):
        return ()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            parts = ", ".join((*PARTS, ALL))
            raise ConfigError(
                f"--only knows no {name!r}{hint}; it takes {parts}, or a step's name such as "
                f"{known[-1]}"
            )
    return names


def digests(steps: Iterable[Step]) -> dict[str, str]:
    """A hash of the settings of each step, by its name."""
    return {step.name: _digest(step.settings) for step in steps}


def _digest(settings: RunSettings) -> str:
    content = json.dumps(files.plain(settings.model_dump()), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _widths(scale: str) -> Iterator[Step]:
    for network, protocol in product(scales.WIDTHS, scales.PROTOCOLS):
        given = scales.WIDTH[scale][protocol]
        name = f"widths-{network.lower()}-{protocol}"
        yield _step(name, "widths", OptimiseSettings, scale, network, 500, protocol, given)


def _optimised(scale: str) -> Iterator[Step]:
    for n, protocol in product(scales.SIZES, scales.PROTOCOLS):
        given = scales.OPTIMISE[scale][protocol][n]
        name = f"optimise-m3-d{n}-{protocol}"
        yield _step(name, "optimise fig3", OptimiseSettings, scale, "M3", n, protocol, given)


def _sweeps(scale: str) -> Iterator[Step]:
    """The runs of Table 1, with their ranges of temperatures."""
    for (network, n), protocol in product(scales.SWEEPS, scales.PROTOCOLS):
        parts = "fig3"
        if network == "M3star":
            parts = "fig4"
        elif n == 500:
            parts = "fig1 fig2 fig3"
        given = scales.SWEEP[scale][protocol][network, n]
        given = given | {"ladder": _ends(network, n) | given["ladder"]}
        if scale == "smoke":
            given = given | {"start": {"max_gradients": 50}}
        name = f"{network.lower()}-d{n}-{protocol}"
        yield _step(name, parts, SweepSettings, scale, network, n, protocol, given)


def _evidences(scale: str) -> Iterator[Step]:
    for network in scales.EVIDENCES:
        for protocol, given in scales.EVIDENCE[scale].items():
            name = f"evidence-{network.lower()}-{protocol}"
            yield _step(
                name, "evidence", EvidenceSettings, scale, network, 500, protocol, given[network]
            )


def _ends(network: str, n: int) -> Table:
    """The lowest and the highest temperature of Table 1."""
    preset = f"paper-{'m3star-' if network == 'M3star' else ''}d{n}"
    ladder = config.PRESETS[preset].tables["ladder"]
    return {name: cast(float, ladder[name]) for name in ("low", "high")}


def _step(
    name: str,
    parts: str,
    model: type[RunSettings],
    scale: str,
    network: str,
    n: int,
    protocol: str,
    given: Tables,
) -> Step:
    common = scales.common(scale)
    tables = {
        **scales.subject(scale, network, n),
        **common,
        "protocol": protocol,
        **given,
        "run": common["run"] | given.get("run", {}),
    }
    return Step(name, tuple(parts.split()), config.settings_from(tables, model))
