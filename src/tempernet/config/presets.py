"""Settings by name: a quick study, and the paper's runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tempernet.config.tables import Tables

PRIOR_FACTORS: Mapping[str, float] = {"M1": 50.0, "M3": 50.0, "M3star": 1000.0}
"""The paper's `prior.factor` of each network (Secs. 3.2, 4.1)."""
_LADDERS: Mapping[str, Mapping[str, object]] = {
    "M3": {"low": 0.01, "high": 100.0, "num": 112},
    "M3star": {"low": 10**-1.5, "high": 10**1.5, "num": 84},
}
_TABLE_1 = {"num_steps": 100, "num_trajectories": 10}


class Preset(NamedTuple):
    """What a preset is, and its settings that differ from the defaults of a sweep."""

    what: str
    tables: Tables


def _quick() -> Preset:
    return Preset(
        "three hidden layers of ten units on 200 images of 8x8: "
        "a whole study in a few minutes on two cores",
        {
            "data": {"size": 8, "n_train": 200},
            "network": {"name": "64-10-10-10"},
            "prior": {"factor": 25.0},
            "ladder": {"low": 0.5, "high": 8.0, "num": 22},
            "dynamics": {"num_steps": 50, "num_trajectories": 1},
            "run": {"burn_in": 400, "rounds": 1000, "score_every": 10},
        },
    )


def _table_1(network: str, n_train: int, figures: str) -> Preset:
    tables: dict[str, Mapping[str, object]] = {
        "data": {"n_train": n_train},
        "network": {"name": network},
        "ladder": _LADDERS[network],
        "dynamics": _TABLE_1,
    }
    if network == "M3star":
        tables["prior"] = {"factor": PRIOR_FACTORS[network]}
    return Preset(f"{figures}: {network} on D_{n_train}, Table 1's parameters", tables)


PRESETS: Mapping[str, Preset] = {
    "quick": _quick(),
    **{f"paper-d{n}": _table_1("M3", n, "Figs. 2 and 3") for n in (50, 500, 5000)},
    **{f"paper-m3star-d{n}": _table_1("M3star", n, "Fig. 4") for n in (50, 500)},
}
"""Name -> preset. Other kinds of run than a sweep take the tables that they share with one."""
