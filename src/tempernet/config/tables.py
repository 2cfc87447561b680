"""The tables of settings that several kinds of run share: their defaults, and what each is for.

Where the sampler has a default of its own, in a dataclass, a table takes it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tempernet.kernels.dynamics import Dynamics
from tempernet.kernels.registry import KERNELS
from tempernet.optimise.minimise import Minimiser
from tempernet.tempering.tuning import Tuning

Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
BoxWalls = Literal["reflect", "reject"]
Tables = Mapping[str, Mapping[str, object]]
"""Some of the settings, by table and name."""

APART = "apart: every second copy from minimised weights, the others from draws of the prior"


class Table(BaseModel):
    """A table of settings: frozen, and nothing in it is unknown or ill-typed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class DataTable(Table):
    """Which examples train, and which are held out."""

    source: str = Field(
        default="mnist16",
        description='"mnist16" (embedded), an npz file, or a folder of idx files',
    )
    size: NotNegative = Field(default=0, description="resize images to this side; 0 keeps them")
    n_train: NotNegative = Field(
        default=500,
        description="number of training examples, the same for every class; 0 takes all",
    )
    indices: str = Field(
        default="",
        description="file of positions in the training set, instead of n_train",
    )
    seed: NotNegative = Field(
        default=0,
        description="seed of the subset: the same n_train and seed give the same images",
    )
    n_validation: NotNegative = Field(
        default=5000,
        description="number of validation examples, which choose the best temperature",
    )
    scored: Count = Field(
        default=2000,
        description="number of validation and of test examples that are scored during the run",
    )


class NetworkTable(Table):
    """The network."""

    name: str = Field(
        default="M3",
        description="M1, M3, M3star, or layer sizes such as 64-32-32-5 with logistic hidden units",
    )
    output: Literal["linear", "logistic"] = Field(
        default="linear",
        description="output layer; M3star has a logistic one",
    )


class PriorTable(Table):
    """The prior of the weights."""

    kind: Literal["box", "gaussian"] = Field(
        default="box",
        description="uniform in a box (Eq. 11), or Gaussian",
    )
    factor: Positive = Field(
        default=50.0,
        description="box: sigma_i = 2 factor / sqrt(k_i), k the fan-in with the bias",
    )
    std: Positive = Field(default=1.0, description="gaussian: standard deviation of every weight")


def _known_kernel(name: str) -> str:
    if name not in KERNELS:
        raise ValueError(f"input should be one of {', '.join(KERNELS)}")
    return name


class DynamicsTable(Table):
    """A round: trajectories of every replica, then exchange."""

    kernel: Annotated[str, AfterValidator(_known_kernel)] = Field(
        default=Dynamics.kernel,
        description=f"how a replica moves, one of {', '.join(KERNELS)}; horowitz: partial momentum "
        "refreshment",
    )
    persistence: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=Dynamics.persistence,
        description="horowitz: correlation of the momenta before and after their refreshment",
    )
    num_steps: Count = Field(
        default=Dynamics.num_steps,
        description="Verlet steps of a trajectory, L",
    )
    num_trajectories: Count = Field(
        default=Dynamics.num_trajectories,
        description="trajectories between exchanges, N_traj",
    )
    walls: BoxWalls = Field(
        default=cast(BoxWalls, Dynamics.walls),
        description="what the walls of a box do to a trajectory",
    )
    jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=Dynamics.jitter,
        description="relative variation of the step size between trajectories",
    )
    lengths: Literal["steps", "distance"] = Field(
        default=Dynamics.lengths,
        description="what the trajectories of all rungs have in common; with distance, "
        "num_steps is the mean over rungs",
    )
    exchange: Literal["even-odd", "random-pairs", "none"] = Field(
        default="even-odd",
        description="which neighbours try to swap",
    )
    num_exchanges: Count = Field(
        default=1,
        description="sweeps of exchange between rounds of trajectories",
    )
    masses: Literal["unit", "fan-in"] = Field(
        default="fan-in",
        description="masses of the weights: 1, or the fan-in, m_i = k_i, "
        "with which all layers move equally far in units of their box",
    )


class StartTable(Table):
    """Where the replicas begin."""

    weights: Literal["apart", "annealed", "minimised", "prior"] = Field(
        default="apart",
        description=APART,
    )
    minimiser: Literal["fire", "alg3"] = Field(
        default=Minimiser.method,
        description="FIRE, or Alg. 3 as printed",
    )
    max_gradients: Count = Field(
        default=Minimiser.max_gradients,
        description="largest number of gradients of a minimisation",
    )


class TuneTable(Table):
    """Step sizes."""

    low: Share = Field(
        default=Tuning.low, description="lowest acceptance that step sizes are tuned to"
    )
    high: Share = Field(
        default=Tuning.high, description="highest acceptance that step sizes are tuned to"
    )


class RunTable(Table):
    """Copies, seed and devices, and how long the run is."""

    copies: Count = Field(default=4, description="independent copies of the whole ladder")
    seed: int = Field(
        default=-1,
        ge=-1,
        le=2**32 - 1,
        description="seed of the sampling; -1 draws one and records it",
    )
    devices: NotNegative = Field(default=0, description="number of devices; 0: all of them")
    data_devices: Count = Field(
        default=1,
        description="number of devices over which the examples of a replica are split",
    )
    reproducible: bool = Field(
        default=False,
        description="bitwise reproducible on any number of devices (about 20 % slower)",
    )


class LadderRunTable(RunTable):
    """Copies, seed and devices, and how long the run is."""

    burn_in: NotNegative = Field(default=100, description="rounds before the samples count")
    rounds: Count = Field(default=200, description="rounds that count")


class OutputTable(Table):
    """What is written, and how often. These may change when a run is resumed."""

    checkpoint_seconds: Positive = Field(default=60.0, description="seconds between checkpoints")
    figures: bool = Field(default=True, description="draw figures at the end")
