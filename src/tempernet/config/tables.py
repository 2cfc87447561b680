"""The tables of settings, their defaults and what each is for; a task has the tables that it needs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Table(BaseModel):
    """A table of settings: frozen, and nothing in it is unknown or ill-typed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class Data(Table):
    """Which examples train, and which are held out."""

    source: str = Field(
        default="mnist16", description='"mnist16" (embedded), an npz file, or a folder of idx files'
    )
    size: NotNegative = Field(default=0, description="resize images to this side; 0 keeps them")
    n_train: NotNegative = Field(
        default=500, description="training examples, as many of each class; 0 takes all"
    )
    indices: str = Field(
        default="", description="file of positions in the training set, instead of n_train"
    )
    seed: NotNegative = Field(
        default=0, description="which subset: the same n_train and seed are the same images"
    )
    n_validation: NotNegative = Field(
        default=5000, description="examples held out to choose the best temperature by"
    )
    scored: Count = Field(
        default=2000,
        description="of validation and of test examples, how many are scored during the run",
    )


class Network(Table):
    """The network."""

    name: str = Field(
        default="M3",
        description="M1, M3, M3star, or layer sizes such as 64-32-32-5 with logistic hidden units",
    )
    output: Literal["linear", "logistic"] = Field(
        default="linear", description="logistic squashes the last layer too, as M3star has it"
    )


class Prior(Table):
    """The prior of the weights."""

    kind: Literal["box", "gaussian"] = Field(
        default="box", description="uniform in a box (Eq. 11), or normal"
    )
    factor: Positive = Field(
        default=50.0, description="box: sigma_i = 2 factor / sqrt(k_i), k the fan-in with the bias"
    )
    std: Positive = Field(default=1.0, description="gaussian: standard deviation of every weight")


class Ladder(Table):
    """The temperatures."""

    kind: Literal["adaptive", "geometric", "listed"] = Field(
        default="adaptive",
        description="adaptive moves the rungs during burn-in until neighbours swap equally often",
    )
    low: Positive = Field(default=0.01, description="lowest temperature")
    high: Positive = Field(default=100.0, description="highest temperature")
    num: Annotated[int, Field(ge=2)] = Field(default=56, description="number of temperatures N_T")
    temperatures: tuple[float, ...] = Field(
        default=(), description="listed: the temperatures, increasing; inf is the prior"
    )


class Dynamics(Table):
    """A round: trajectories of every replica, then exchange."""

    num_steps: Count = Field(default=100, description="Verlet steps of a trajectory, L")
    num_trajectories: Count = Field(
        default=10, description="trajectories between exchanges, N_traj"
    )
    walls: Literal["reflect", "reject"] = Field(
        default="reflect", description="what the walls of a box do to a trajectory"
    )
    jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.1, description="step size varies by this between trajectories"
    )
    lengths: Literal["steps", "distance"] = Field(
        default="distance",
        description="what trajectories of all rungs have in common; with distance, num_steps is their mean",
    )
    exchange: Literal["even-odd", "random-pairs", "none"] = Field(
        default="even-odd", description="which neighbours try to swap"
    )
    num_exchanges: Count = Field(
        default=1, description="sweeps of exchange between rounds of trajectories"
    )
    masses: Literal["unit", "fan-in"] = Field(
        default="fan-in",
        description="masses of the weights: 1, or m_i = k_i: all layers then move equally far for their box",
    )


class Start(Table):
    """Where the replicas begin."""

    weights: Literal["apart", "annealed", "minimised", "prior"] = Field(
        default="apart",
        description="apart: every second copy from minimised weights, the others from draws of the prior",
    )
    minimiser: Literal["fire", "alg3"] = Field(
        default="fire", description="FIRE, or Alg. 3 as printed"
    )
    max_gradients: Count = Field(default=1000, description="budget of a minimisation")


class SweepStart(Start):
    """Where the replicas begin."""

    weights: Literal["apart", "annealed", "minimised", "prior"] = Field(
        default="apart",
        description="apart: every second copy from minimised weights, the others from draws of the prior; annealed: "
        "these, cooled together from the highest temperature with likely ones copied; every second copy heated again",
    )
    cooling_rounds: Count = Field(
        default=3, description="annealed: rounds at each step of the temperature"
    )


class EvidenceStart(Start):
    """Where the replicas begin."""

    weights: Literal["apart", "minimised", "prior"] = Field(
        default="apart",
        description="apart: every second copy from minimised weights, the others from draws of the prior",
    )


class Tune(Table):
    """Step sizes."""

    low: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.6, description="acceptance wanted, at least"
    )
    high: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.7, description="and at most")


class CommonRun(Table):
    """What all tasks can be told about how much, and where."""

    copies: Count = Field(default=4, description="independent copies of the whole ladder")
    seed: int = Field(
        default=-1,
        ge=-1,
        le=2**32 - 1,
        description="seed of the sampling; -1 draws one and writes it down",
    )
    devices: NotNegative = Field(default=0, description="devices; 0 takes all cores")
    data_devices: Count = Field(
        default=1, description="devices that split the examples of a replica"
    )
    reproducible: bool = Field(
        default=False, description="same bits on any number of devices, a fifth slower"
    )


class LadderRun(CommonRun):
    """How much, and where."""

    burn_in: NotNegative = Field(default=100, description="rounds before the samples count")
    rounds: Count = Field(default=200, description="rounds that count")


class Run(LadderRun):
    """How much, and where."""

    score_every: Count = Field(default=5, description="rounds between scores on held-out examples")
    keep: NotNegative = Field(
        default=5, description="how often weights are kept and the whole test set is scored"
    )
    keep_temperatures: tuple[Positive, ...] = Field(
        default=(), description="keep weights of the nearest rungs only; empty: all"
    )


class Output(Table):
    """What is written, and how often. These may change when a run is resumed."""

    checkpoint_seconds: Positive = Field(default=60.0, description="time between checkpoints")
    figures: bool = Field(default=True, description="draw figures at the end")


class Cooling(Table):
    """The temperatures of a cooling, what is done at each, and when it stops."""

    high: Positive = Field(default=100.0, description="highest temperature, where it begins")
    low: Positive = Field(
        default=0.1, description="lowest temperature, where it ends if nothing stops it"
    )
    num: Annotated[int, Field(ge=2)] = Field(
        default=25, description="number of temperatures, a constant factor apart"
    )
    burn_in: Count = Field(
        default=5, description="rounds at each before those that count; they tune the step size"
    )
    rounds: Count = Field(default=10, description="rounds at each that count")
    score_every: Count = Field(
        default=1, description="rounds between scores on validation examples"
    )
    patience: Count = Field(
        default=3,
        description="temperatures in a row with a risen validation loss after which it stops",
    )
    optimised: str = Field(
        default="",
        description="folder of an optimise run to compare with; empty: optimise as many as there are copies",
    )


class AnnealStart(Start):
    """Where the replicas begin; minimisation is also what the result is compared with."""

    weights: Literal["apart", "minimised", "prior"] = Field(
        default="prior", description="draws of the prior are at home at high temperature"
    )


class AnnealRun(CommonRun):
    """How much, and where."""

    copies: Annotated[int, Field(ge=4)] = Field(
        default=8, description="replicas that cool side by side"
    )


class Optimise(Table):
    """Which minimisation, and how many starts."""

    keep: Count = Field(
        default=100, description="stop once so many starts have E = 0, else keep the best so many"
    )
    starts: Count = Field(default=4000, description="starts at most")
    minimiser: Literal["fire", "alg3"] = Field(
        default="fire", description="FIRE, or Alg. 3 as printed"
    )
    max_gradients: Count = Field(default=2000, description="budget of a start")
    time_step: Positive = Field(default=0.01, description="time step to begin with")
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="energy that counts as E = 0; 0 is reached in float32"
    )


class OptimiseRun(CommonRun):
    """How much, and where."""

    copies: Count = Field(
        default=50,
        description="starts that are minimised at once; the result does not depend on it",
    )


class RunSettings(Table):
    """What all tasks have in common."""

    task: str = Field(default="", description="what the settings are for")
    protocol: Literal["default", "paper"] = Field(
        default="default",
        description="paper: as the paper prints it; a setting that contradicts it is refused",
    )
    data: Data = Data()
    network: Network = Network()
    prior: Prior = Prior()
    run: CommonRun = CommonRun()
    output: Output = Output()


class SamplingSettings(RunSettings):
    """What the tasks have in common that sample."""

    dynamics: Dynamics = Dynamics()
    start: Start = Start()
    tune: Tune = Tune()


class LadderSettings(SamplingSettings):
    """What the tasks have in common that sample a path of rungs."""

    run: LadderRun = LadderRun()

    @property
    @abstractmethod
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""


class SweepSettings(LadderSettings):
    """All settings of a sweep."""

    task: Literal["sweep"] = Field(default="sweep", description="what the settings are for")
    ladder: Ladder = Ladder()
    start: SweepStart = SweepStart()
    run: Run = Run()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.ladder.kind == "adaptive"


class EvidencePath(Table):
    """The path from what is known to the posterior."""

    method: Literal["temperature", "bridge"] = Field(
        default="temperature",
        description="from the prior by temperature, or from a quadratic at a minimum (Eq. 21)",
    )
    num: Annotated[int, Field(ge=3)] = Field(default=60, description="rungs, both ends included")
    coldest: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="temperature: where it ends; rungs below 1 only keep replicas moving at 1, which M3 wants: 0.75",
    )
    adaptive: bool = Field(
        default=True, description="move rungs during burn-in until neighbours swap equally often"
    )


class Bridge(Table):
    """The quadratic of a bridge: k from fluctuations around a minimum (Eq. 20)."""

    fit_burn_in: NotNegative = Field(
        default=400, description="trajectories before the fluctuations are averaged"
    )
    fit_rounds: Count = Field(default=400, description="trajectories that they are averaged over")
    tune_every: Count = Field(
        default=10, description="paper: rungs between two adjustments of the step size"
    )


class EvidenceDynamics(Dynamics):
    """A round: trajectories of every replica, then exchange."""

    # Energies forget within a few steps, and replicas move by at most a rung each round: short
    # rounds, many of them.
    num_steps: Count = Field(
        default=12, description="Verlet steps of a trajectory, L; a deep network wants more: M3 36"
    )
    num_trajectories: Count = Field(default=1, description="trajectories between exchanges, N_traj")


class EvidenceRun(LadderRun):
    """How much, and where."""

    copies: Count = Field(default=2, description="independent copies of the whole path")
    burn_in: NotNegative = Field(
        default=400, description="rounds before the samples count; paper: of each rung"
    )
    rounds: int = Field(default=2200, ge=2, description="rounds that count; paper: of each rung")


class EvidenceSettings(LadderSettings):
    """All settings of an evidence."""

    task: Literal["evidence"] = Field(default="evidence", description="what the settings are for")
    dynamics: EvidenceDynamics = EvidenceDynamics()
    start: EvidenceStart = EvidenceStart()
    run: EvidenceRun = EvidenceRun()
    path: EvidencePath = EvidencePath()
    bridge: Bridge = Bridge()

    @property
    def moves_rungs(self) -> bool:
        """Whether burn-in may move the rungs."""
        return self.path.adaptive


class AnnealSettings(SamplingSettings):
    """All settings of a cooling."""

    task: Literal["anneal"] = Field(default="anneal", description="what the settings are for")
    start: AnnealStart = AnnealStart()
    cooling: Cooling = Cooling()
    run: AnnealRun = AnnealRun()


class OptimiseSettings(RunSettings):
    """All settings of an optimisation; the prior is only what the result is held against."""

    task: Literal["optimise"] = Field(default="optimise", description="what the settings are for")
    optimise: Optimise = Optimise()
    run: OptimiseRun = OptimiseRun()


TASKS: dict[str, type[RunSettings]] = {
    "sweep": SweepSettings,
    "evidence": EvidenceSettings,
    "anneal": AnnealSettings,
    "optimise": OptimiseSettings,
}
"""The settings of each task."""
