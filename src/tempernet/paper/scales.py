"""How much of the paper is reproduced: the settings of every step at every scale, in one table.

`paper` is Table 1 and Secs. 3.4, 4.3.1 in full. `day` and `hour` keep networks, data and ranges of
temperature and have fewer rungs, copies and rounds. `smoke` has tiny networks and a few images: it
shows that every step works, and no more. Times are for two cores, by the rates in
docs/benchmark.md.
"""

from __future__ import annotations

from tempernet.config import PRIOR_FACTORS

Setting = float | int | str | bool
Table = dict[str, Setting]
"""A table of settings."""
Tables = dict[str, Table]
"""Tables by their names."""

SCALES = ("smoke", "hour", "day", "paper")
SIZES = (50, 500, 5000)
SWEEPS = (("M3", 50), ("M3", 500), ("M3", 5000), ("M3star", 50), ("M3star", 500))
WIDTHS = ("M3", "M1", "M3star")
EVIDENCES = ("M1", "M3")
PROTOCOLS = ("default", "paper")
SEED = 1

_SMOKE_NETWORKS: dict[str, Table] = {
    "M1": {"name": "256-4-10"},
    "M3": {"name": "256-4-10"},
    "M3star": {"name": "256-4-10", "output": "logistic"},
}
_SMOKE_IMAGES = 40
"""Images in every data set, each of which has its own.

Compiling takes most of the time, and programs of one size are compiled once.
"""


def subject(scale: str, network: str, n: int) -> Tables:
    """Network, prior and data, which only `smoke` has smaller than the paper."""
    if scale != "smoke":
        return {
            "network": {"name": network},
            "prior": {"factor": PRIOR_FACTORS[network]},
            "data": {"n_train": n},
        }
    data: Table = {"n_train": _SMOKE_IMAGES, "seed": n, "n_validation": 200, "scored": 100}
    # Few units need large weights.
    return {"network": _SMOKE_NETWORKS[network], "prior": {"factor": 1000.0}, "data": data}


def common(scale: str) -> Tables:
    """The seed; a smoke test has no time to measure tiles or to draw each run's own figures."""
    smoke = scale == "smoke"
    return {"run": {"seed": SEED, "reproducible": smoke}, "output": {"figures": not smoke}}


def _sweep(
    copies: int,
    num: int,
    steps: int,
    trajectories: int,
    burn_in: int,
    rounds: int,
    score_every: int,
) -> Tables:
    return {
        "ladder": {"num": num},
        "dynamics": {"num_steps": steps, "num_trajectories": trajectories},
        "run": {"copies": copies, "burn_in": burn_in, "rounds": rounds, "score_every": score_every},
    }


# copies, rungs, steps, trajectories, burn-in, rounds, rounds between scores
SWEEP: dict[str, dict[str, dict[tuple[str, int], Tables]]] = {
    "smoke": {p: dict.fromkeys(SWEEPS, _sweep(2, 4, 5, 1, 8, 16, 2)) for p in PROTOCOLS},
    "hour": {
        "default": {
            ("M3", 50): _sweep(4, 32, 25, 1, 800, 2000, 20),
            ("M3", 500): _sweep(2, 56, 30, 1, 200, 600, 10),
            ("M3", 5000): _sweep(2, 20, 50, 1, 30, 40, 4),
            ("M3star", 50): _sweep(4, 24, 25, 1, 300, 700, 20),
            ("M3star", 500): _sweep(2, 32, 30, 1, 120, 280, 10),
        },
        "paper": {
            ("M3", 50): _sweep(2, 28, 100, 10, 10, 30, 2),
            ("M3", 500): _sweep(2, 28, 100, 1, 20, 60, 4),
            ("M3", 5000): _sweep(2, 10, 50, 1, 8, 16, 2),
            ("M3star", 50): _sweep(2, 20, 100, 10, 10, 30, 2),
            ("M3star", 500): _sweep(2, 20, 100, 1, 20, 60, 4),
        },
    },
    "day": {
        "default": {
            ("M3", 50): _sweep(4, 56, 100, 1, 1000, 2000, 10),
            ("M3", 500): _sweep(4, 56, 100, 1, 700, 1300, 10),
            ("M3", 5000): _sweep(4, 40, 100, 1, 200, 400, 10),
            ("M3star", 50): _sweep(4, 42, 100, 1, 800, 1600, 10),
            ("M3star", 500): _sweep(4, 42, 100, 1, 500, 1000, 10),
        },
        "paper": {
            ("M3", 50): _sweep(2, 56, 100, 10, 50, 100, 5),
            ("M3", 500): _sweep(2, 56, 100, 10, 30, 60, 5),
            ("M3", 5000): _sweep(2, 28, 100, 10, 10, 20, 2),
            ("M3star", 50): _sweep(2, 42, 100, 10, 50, 100, 5),
            ("M3star", 500): _sweep(2, 42, 100, 10, 30, 60, 5),
        },
    },
    "paper": {
        "default": {
            ("M3", 50): _sweep(4, 112, 100, 10, 300, 600, 5),
            ("M3", 500): _sweep(4, 112, 100, 10, 200, 400, 5),
            ("M3", 5000): _sweep(4, 112, 100, 10, 100, 200, 5),
            ("M3star", 50): _sweep(4, 84, 100, 10, 300, 600, 5),
            ("M3star", 500): _sweep(4, 84, 100, 10, 200, 400, 5),
        },
        "paper": {
            (network, n): _sweep(2, 112 if network == "M3" else 84, 100, 10, 100, 100, 5)
            for network, n in SWEEPS
        },
    },
}
"""Scale -> protocol -> (network, images) -> settings of the sweep.

Its range of temperatures is that of Table 1.
"""


def _starts(keep: int, starts: int, copies: int, gradients: int) -> Tables:
    return {
        "optimise": {"keep": keep, "starts": starts, "max_gradients": gradients},
        "run": {"copies": copies},
    }


# kept, starts, at once, gradients
OPTIMISE: dict[str, dict[str, dict[int, Tables]]] = {
    "smoke": {p: dict.fromkeys(SIZES, _starts(4, 4, 4, 50)) for p in PROTOCOLS},
    "hour": {
        "default": {
            50: _starts(100, 4000, 50, 2000),
            500: _starts(100, 4000, 50, 2000),
            5000: _starts(10, 40, 40, 1500),
        },
        "paper": {
            50: _starts(100, 1000, 50, 3000),
            500: _starts(25, 25, 25, 5000),
            5000: _starts(10, 20, 20, 1500),
        },
    },
    "day": {
        "default": {
            50: _starts(100, 4000, 50, 2000),
            500: _starts(100, 4000, 50, 2000),
            5000: _starts(100, 1000, 100, 2000),
        },
        "paper": {
            50: _starts(100, 4000, 50, 3000),
            500: _starts(100, 100, 50, 20000),
            5000: _starts(100, 400, 100, 2000),
        },
    },
    "paper": {
        "default": {n: _starts(100, 4000, 50, 4000) for n in SIZES},
        "paper": {
            50: _starts(100, 4000, 50, 4000),
            500: _starts(100, 400, 50, 50000),
            5000: _starts(100, 4000, 50, 4000),
        },
    },
}
"""Scale -> protocol -> images -> settings of standard optimisation of M3 (Sec. 3.4)."""

WIDTH: dict[str, dict[str, Tables]] = {
    "smoke": {p: _starts(4, 4, 4, 50) for p in PROTOCOLS},
    "hour": {"default": _starts(25, 25, 25, 4000), "paper": _starts(25, 25, 25, 10000)},
    "day": {"default": _starts(25, 25, 25, 20000), "paper": _starts(25, 25, 25, 50000)},
    "paper": {"default": _starts(25, 25, 25, 50000), "paper": _starts(25, 25, 25, 200000)},
}
"""Scale -> protocol -> settings of the 25 minimisations a network on D_500 (Sec. 3.2)."""


def _path(
    copies: int, num: int, steps: int, burn_in: int, rounds: int, coldest: float = 1.0
) -> Tables:
    path: Table = {"num": num}
    if coldest < 1:
        path["coldest"] = coldest
    return {
        "path": path,
        "dynamics": {"num_steps": steps},
        "run": {"copies": copies, "burn_in": burn_in, "rounds": rounds},
    }


_SMOKE_BOX: Tables = {"prior": {"factor": 3.0}, "start": {"max_gradients": 2}}
"""A box so narrow that four rungs overlap: MBAR takes a minute to give up on others."""

_SMOKE_PATH = _path(2, 4, 5, 8, 16) | _SMOKE_BOX
_SMOKE_BRIDGE = _path(2, 4, 5, 4, 16) | _SMOKE_BOX | {"bridge": {"fit_burn_in": 4, "fit_rounds": 8}}
_HOUR_BRIDGE = _path(4, 22, 100, 15, 15) | {"bridge": {"fit_burn_in": 50, "fit_rounds": 50}}
_DAY_BRIDGE = _path(4, 102, 100, 50, 50) | {"bridge": {"fit_burn_in": 500, "fit_rounds": 500}}
_PAPER_BRIDGE: Tables = {"run": {"copies": 28}}

# copies, rungs, steps, burn-in, rounds, coldest; of the paper's bridge, rounds of each rung, and
# those of the fit
EVIDENCE: dict[str, dict[str, dict[str, Tables]]] = {
    "smoke": {
        "default": dict.fromkeys(EVIDENCES, _SMOKE_PATH),
        "paper": dict.fromkeys(EVIDENCES, _SMOKE_BRIDGE),
    },
    "hour": {
        "default": {"M1": _path(2, 40, 12, 200, 700), "M3": _path(2, 40, 36, 90, 240)},
        "paper": dict.fromkeys(EVIDENCES, _HOUR_BRIDGE),
    },
    "day": {
        "default": {
            "M1": _path(4, 60, 12, 1400, 6000),
            "M3": _path(6, 40, 48, 600, 2300, coldest=0.75),
        },
        "paper": dict.fromkeys(EVIDENCES, _DAY_BRIDGE),
    },
    "paper": {
        "default": {
            "M1": _path(4, 80, 12, 2000, 9000),
            "M3": _path(6, 48, 48, 1000, 3500, coldest=0.75),
        },
        "paper": dict.fromkeys(EVIDENCES, _PAPER_BRIDGE),
    },
}
"""Scale -> protocol -> network -> settings of an evidence on D_500 (Sec. 4.4).

The default protocol goes by temperature, the paper's by its bridge.

A deeper network forgets more slowly: longer trajectories, rungs below T = 1, and copies rather than
rungs.
"""
