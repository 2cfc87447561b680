"""What the paper's protocol fixes, and settings by name: a quick study, and the paper's runs."""

from __future__ import annotations

from typing import Any

_ALG_1 = {"walls": "reject", "jitter": 0.0, "lengths": "steps", "masses": "unit"}
PAPER: dict[str, dict[str, dict[str, Any]]] = {
    "sweep": {
        "ladder": {"kind": "geometric"},
        "dynamics": {**_ALG_1, "exchange": "random-pairs", "num_exchanges": 1},
        "start": {"weights": "minimised", "minimiser": "alg3"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "evidence": {
        "path": {"method": "bridge", "adaptive": False},
        "dynamics": {**_ALG_1, "exchange": "none"},
        "start": {"weights": "minimised"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "anneal": {
        "dynamics": _ALG_1,
        "start": {"minimiser": "alg3"},
        "tune": {"low": 0.6, "high": 0.7},
    },
    "optimise": {"optimise": {"minimiser": "alg3", "tolerance": 0.0}},
}
"""What the paper's protocol fixes in each task."""
PAPER_NUMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "evidence": {
        "path": {"num": 102},
        "dynamics": {"num_steps": 100, "num_trajectories": 1},
        "run": {"burn_in": 100, "rounds": 100},
        "bridge": {"fit_burn_in": 1000, "fit_rounds": 1000, "tune_every": 10},
    },
}
"""The paper's numbers, which are defaults of its protocol and may be changed (Sec. 4.3.1)."""

PRIOR_FACTORS = {"M1": 50.0, "M3": 50.0, "M3star": 1000.0}
"""The paper's `prior.factor` of each network (Secs. 3.2, 4.1)."""
_M3_LADDER = {"low": 0.01, "high": 100.0, "num": 112}
_M3STAR_LADDER = {"low": 10**-1.5, "high": 10**1.5, "num": 84}
_TABLE_1 = {"num_steps": 100, "num_trajectories": 10}

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "quick": (
        "three hidden layers of ten units on 200 images of 8x8: the whole study in a few minutes on two cores",
        {
            "data": {"size": 8, "n_train": 200},
            "network": {"name": "64-10-10-10"},
            "prior": {"factor": 25.0},
            "ladder": {"low": 0.5, "high": 8.0, "num": 22},
            "dynamics": {"num_steps": 50, "num_trajectories": 1},
            "run": {"burn_in": 400, "rounds": 1000, "score_every": 10},
        },
    ),
    **{
        f"paper-d{n}": (
            f"Figs. 2 and 3: M3 on D_{n}, Table 1's parameters",
            {
                "data": {"n_train": n},
                "network": {"name": "M3"},
                "ladder": _M3_LADDER,
                "dynamics": _TABLE_1,
            },
        )
        for n in (50, 500, 5000)
    },
    **{
        f"paper-m3star-d{n}": (
            f"Fig. 4: M3star on D_{n}, Table 1's parameters",
            {
                "data": {"n_train": n},
                "network": {"name": "M3star"},
                "prior": {"factor": PRIOR_FACTORS["M3star"]},
                "ladder": _M3STAR_LADDER,
                "dynamics": _TABLE_1,
            },
        )
        for n in (50, 500)
    },
}
"""Name -> (what it is, the settings of a sweep that differ from the defaults)."""

OF_OTHER_TASKS: dict[str, dict[str, dict[str, Any]]] = {
    "anneal": {
        "quick": {
            "cooling": {
                "high": 30.0,
                "low": 0.3,
                "num": 16,
                "burn_in": 40,
                "rounds": 60,
                "score_every": 6,
            },
            "start": {"max_gradients": 2000},
        }
    },
    "optimise": {"quick": {"optimise": {"keep": 50, "starts": 500}}},
}
"""Task -> preset -> what it has besides the data, the network and whatever else it shares with a
sweep.
"""
