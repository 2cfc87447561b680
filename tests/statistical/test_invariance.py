"""Every kernel leaves known densities unchanged, and a twin broken in one place does not."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from invariance import (
    ACCEPT_P,
    CASES,
    GAUSSIAN_IN_BOX,
    GAUSSIAN_IN_GAUSSIAN,
    REJECT_P,
    WELLS_IN_BOX,
    WELLS_IN_GAUSSIAN,
    Case,
    smallest_p,
)

from tempernet.kernels import hmc, horowitz, integrator, potential, trajectory
from tempernet.kernels.momentum import draw_momentum
from tempernet.model import priors
from tempernet.tempering import exchange

pytestmark = pytest.mark.usefixtures("quick_programs")
MASSES = {"w": np.array([0.5, 1.0, 3.0], np.float32)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_trajectories_leave_the_density_unchanged(case: Case) -> None:
    assert smallest_p(case, exchange="none") > ACCEPT_P


@pytest.mark.parametrize("rule", ["even-odd", "random-pairs"])
def test_a_round_leaves_the_density_unchanged(rule: str) -> None:
    """With a Gaussian prior; between walls the swap rules are tested beside their twins."""
    assert smallest_p(WELLS_IN_GAUSSIAN, exchange=rule) > ACCEPT_P


@pytest.mark.parametrize("case", [GAUSSIAN_IN_BOX, WELLS_IN_BOX], ids=lambda case: case.name)
def test_rejecting_walls_leave_the_density_unchanged(case: Case) -> None:
    assert smallest_p(case, walls="reject", step_sizes=0.1) > ACCEPT_P


REJECTING: dict[str, Any] = {"walls": "reject", "step_sizes": 0.1}
WITH_MASSES: list[tuple[Case, dict[str, Any]]] = [
    (GAUSSIAN_IN_BOX, {}),
    (GAUSSIAN_IN_BOX, REJECTING),
    (GAUSSIAN_IN_GAUSSIAN, {}),
]


@pytest.mark.parametrize(("case", "options"), WITH_MASSES, ids=["reflect", "reject", "Gaussian"])
def test_masses_leave_the_density_unchanged(case: Case, options: dict[str, Any]) -> None:
    assert smallest_p(case, masses=MASSES, **options) > ACCEPT_P


def test_a_step_size_for_each_rung_leaves_the_density_unchanged() -> None:
    assert smallest_p(WELLS_IN_BOX, step_sizes=np.array([0.15, 0.2, 0.4, 0.9])) > ACCEPT_P


OF_RUNGS: dict[str, Any] = {
    "step_sizes": np.array([0.15, 0.2, 0.4, 0.9]),
    "dynamics": {"lengths": "distance"},
    "tile": 8000,
}
"""All replicas of a device in one tile, so that those of short trajectories wait for those of long
ones.
"""


@pytest.mark.parametrize("rule", ["none", "even-odd"])
def test_a_length_for_each_rung_leaves_the_density_unchanged(rule: str) -> None:
    assert smallest_p(WELLS_IN_BOX, exchange=rule, **OF_RUNGS) > ACCEPT_P


Patch = Callable[[pytest.MonkeyPatch], None]


def _no_flip(patch: pytest.MonkeyPatch) -> None:
    fold = integrator.fold
    patch.setattr(integrator, "fold", lambda w, p, h: (fold(w, p, h)[0], p))


def _clamp_at_walls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        integrator, "fold", lambda w, p, h: (jnp.clip(w, -h, h), jnp.where(jnp.abs(w) > h, -p, p))
    )


def _forgotten_kinetic_energy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trajectory, "kinetic_change", lambda before, after, masses: jnp.float32(0))


def _prior_is_tempered(patch: pytest.MonkeyPatch) -> None:
    def value(self: potential.Potential, weights: Any, energy: Any, coefficients: Any) -> Any:
        return coefficients[0] * (energy + self.prior.energy(weights))

    patch.setattr(potential.Potential, "value", value)


def _masses_not_in_momenta(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        hmc, "draw_momentum", lambda key, w, m: draw_momentum(key, w, jax.tree.map(np.ones_like, m))
    )


def _walls_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "tempernet.model.priors.UniformBox.contains", lambda self, weights: jnp.bool_(True)
    )


def _wrong_temperature(patch: pytest.MonkeyPatch) -> None:
    """Accept by the energy at a wrong temperature."""
    value = potential.Potential.value
    patch.setattr(potential.Potential, "value", lambda self, w, e, c: value(self, w, e, 0.6 * c))


def _one_sided_kicks(patch: pytest.MonkeyPatch) -> None:
    """Full kick, drift: no half-kick at either end, so that a trajectory is not its own reverse."""

    def euler(point: Any, momentum: Any, step_size: Any, num_steps: int, **parts: Any) -> Any:
        for _ in range(num_steps):
            momentum = integrator.kick(momentum, parts["slope_fn"](point), step_size)
            weights, momentum = integrator.drift(
                point.weights, momentum, step_size, parts["masses"], parts["half_width"]
            )
            point = parts["evaluate_fn"](weights)
        return point, momentum

    patch.setattr(trajectory, "velocity_verlet", euler)


def _kicks_after_the_last_step(patch: pytest.MonkeyPatch) -> None:
    """A replica that has made its own steps stands still, but is kicked on."""

    def verlet(
        point: Any, momentum: Any, step_size: Any, num_steps: Any, longest: Any, **parts: Any
    ) -> Any:
        own = integrator.velocity_verlet(
            point, momentum, step_size, num_steps, longest=longest, **parts
        )
        return own[0], integrator.kick(
            own[1],
            parts["slope_fn"](own[0]),
            step_size * (longest - num_steps).astype(step_size.dtype),
        )

    patch.setattr(trajectory, "velocity_verlet", verlet)


def _draws_too_narrow(patch: pytest.MonkeyPatch) -> None:
    """An exact rung that is drawn from a box of nine tenths the width."""
    draw = priors.UniformBox.draw
    patch.setattr(
        priors.UniformBox,
        "draw",
        lambda self, key: jax.tree.map(lambda w: 0.9 * w, draw(self, key)),
    )


TWINS: list[tuple[str, Patch, Case, dict[str, Any]]] = [
    ("no-flip", _no_flip, GAUSSIAN_IN_BOX, {}),
    ("clamp", _clamp_at_walls, GAUSSIAN_IN_BOX, {}),
    ("kinetic", _forgotten_kinetic_energy, GAUSSIAN_IN_BOX, {}),
    ("tempered-prior", _prior_is_tempered, GAUSSIAN_IN_GAUSSIAN, {"temperatures": (0.5, 1.0, 3.0)}),
    ("masses", _masses_not_in_momenta, GAUSSIAN_IN_BOX, {"masses": MASSES}),
    ("masses-gaussian", _masses_not_in_momenta, GAUSSIAN_IN_GAUSSIAN, {"masses": MASSES}),
    ("no-walls", _walls_forgotten, GAUSSIAN_IN_BOX, {"walls": "reject", "step_sizes": 0.1}),
    ("wrong-temperature", _wrong_temperature, WELLS_IN_BOX, {}),
    ("euler", _one_sided_kicks, GAUSSIAN_IN_BOX, {}),
    ("kicks", _kicks_after_the_last_step, WELLS_IN_BOX, OF_RUNGS),
    ("exact-draws", _draws_too_narrow, GAUSSIAN_IN_BOX, {}),
]


@pytest.mark.parametrize(
    ("breakage", "case", "options"), [t[1:] for t in TWINS], ids=[t[0] for t in TWINS]
)
def test_a_broken_trajectory_is_found_out(
    monkeypatch: pytest.MonkeyPatch, breakage: Patch, case: Case, options: dict[str, Any]
) -> None:
    breakage(monkeypatch)
    assert smallest_p(case, exchange="none", **options) < REJECT_P


PERSISTENT: dict[str, Any] = {"kernel": "horowitz", "persistence": 0.8}
"""Long enough a memory that what is wrong with the momenta reaches the weights."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_persistent_momenta_leave_the_density_unchanged(case: Case) -> None:
    assert smallest_p(case, exchange="none", dynamics=PERSISTENT) > ACCEPT_P


def test_persistent_momenta_that_are_exchanged_leave_the_density_unchanged() -> None:
    assert smallest_p(WELLS_IN_BOX, exchange="even-odd", dynamics=PERSISTENT) > ACCEPT_P


@pytest.mark.parametrize("options", [{}, REJECTING], ids=["reflect", "reject"])
def test_persistent_momenta_with_masses_leave_the_density_unchanged(
    options: dict[str, Any],
) -> None:
    assert smallest_p(GAUSSIAN_IN_BOX, masses=MASSES, dynamics=PERSISTENT, **options) > ACCEPT_P


def test_persistent_momenta_with_a_length_for_each_rung_leave_the_density_unchanged() -> None:
    far = {**PERSISTENT, "lengths": "distance"}
    assert smallest_p(WELLS_IN_BOX, **{**OF_RUNGS, "dynamics": far}) > ACCEPT_P


def _goes_on_when_rejected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(horowitz, "flipped", lambda momentum: momentum)


def _turns_back_when_accepted(patch: pytest.MonkeyPatch) -> None:
    propose = trajectory.propose

    def turned(*arguments: Any) -> Any:
        proposal = propose(*arguments)
        # Only where the way on matters: uphill.
        uphill = proposal.acceptance < 1
        momentum = jax.tree.map(lambda p: jnp.where(uphill, -p, p), proposal.momentum)
        return proposal._replace(momentum=momentum)

    patch.setattr(horowitz, "propose", turned)


def _refreshed_too_little(patch: pytest.MonkeyPatch) -> None:
    """a p + (1 - a) p': momenta become too small."""
    patch.setattr(
        horowitz,
        "refreshed",
        lambda momentum, fresh, a: jax.tree.map(
            lambda p, new: a * p + (1 - a) * new, momentum, fresh
        ),
    )


def _masses_not_in_refreshment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        horowitz,
        "draw_momentum",
        lambda key, w, m: draw_momentum(key, w, jax.tree.map(np.ones_like, m)),
    )


REJECTED_OFTEN: dict[str, Any] = {
    "step_sizes": 0.6,
    "rounds": 10,
    "copies": 8000,
    "dynamics": {**PERSISTENT, "persistence": 0.9},
}
"""Half of the trajectories of the coldest rung are rejected, and what they do then matters."""
PERSISTENT_TWINS: list[tuple[str, Patch, Case, dict[str, Any]]] = [
    ("no-flip", _goes_on_when_rejected, GAUSSIAN_IN_GAUSSIAN, REJECTED_OFTEN),
    ("flip", _turns_back_when_accepted, GAUSSIAN_IN_GAUSSIAN, REJECTED_OFTEN),
    ("not-mirrored", _no_flip, GAUSSIAN_IN_BOX, {}),
    ("refreshment", _refreshed_too_little, WELLS_IN_BOX, {}),
    ("masses", _masses_not_in_refreshment, GAUSSIAN_IN_BOX, {"masses": MASSES}),
]


@pytest.mark.parametrize(
    ("breakage", "case", "options"),
    [t[1:] for t in PERSISTENT_TWINS],
    ids=[t[0] for t in PERSISTENT_TWINS],
)
def test_a_broken_persistence_is_found_out(
    monkeypatch: pytest.MonkeyPatch, breakage: Patch, case: Case, options: dict[str, Any]
) -> None:
    breakage(monkeypatch)
    assert smallest_p(case, **{"exchange": "none", "dynamics": PERSISTENT, **options}) < REJECT_P


def test_the_right_persistence_passes_where_the_broken_ones_fail() -> None:
    assert smallest_p(GAUSSIAN_IN_GAUSSIAN, exchange="none", **REJECTED_OFTEN) > ACCEPT_P


SWAP_TWINS: dict[str, Callable[..., Any]] = {
    "always": lambda a, b, x, y: jnp.zeros(x.shape[:-1]),
    "sign": lambda a, b, x, y: -jnp.sum((a - b) * (x - y), axis=-1),
    "temperatures-for-betas": lambda a, b, x, y: jnp.sum(
        (1 / (b + 0.1) - 1 / (a + 0.1)) * (x - y), axis=-1
    ),
    "half": lambda a, b, x, y: 0.5 * jnp.sum((a - b) * (x - y), axis=-1),
}


SWAPPED_OFTEN: dict[str, Any] = {
    "step_sizes": 0.15,
    "num_steps": 1,
    "rounds": 12,
    "copies": 12000,
}
"""Trajectories so short that the exchange does most of the moving."""


@pytest.mark.parametrize(
    ("twin", "rule"), [*((twin, "even-odd") for twin in SWAP_TWINS), ("half", "random-pairs")]
)
def test_a_broken_swap_rule_is_found_out(
    monkeypatch: pytest.MonkeyPatch, twin: str, rule: str
) -> None:
    monkeypatch.setattr(exchange, "log_swap_ratio", SWAP_TWINS[twin])
    assert smallest_p(WELLS_IN_BOX, exchange=rule, **SWAPPED_OFTEN) < REJECT_P


@pytest.mark.parametrize("rule", ["even-odd", "random-pairs"])
def test_the_right_swap_rule_passes_where_the_broken_ones_fail(rule: str) -> None:
    assert smallest_p(WELLS_IN_BOX, exchange=rule, **SWAPPED_OFTEN) > ACCEPT_P


SWEPT_OFTEN = {**SWAPPED_OFTEN, "num_exchanges": 3}


@pytest.mark.parametrize("rule", ["even-odd", "random-pairs"])
def test_several_sweeps_of_exchange_leave_the_density_unchanged(rule: str) -> None:
    assert smallest_p(WELLS_IN_BOX, exchange=rule, **SWEPT_OFTEN) > ACCEPT_P


def test_sweeps_that_do_not_see_each_other_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sweeps decide by where the replicas were before the first, and their moves are made one
    after another.
    """

    def blind(sweep_fn: exchange.SweepFn, number: int) -> exchange.SweepFn:
        def sweeps(key: Any, round_index: Any, replica_at: Any, phi: Any, coefficients: Any) -> Any:
            moved, rungs = replica_at, jnp.arange(len(replica_at))
            for s, sweep_key in enumerate(jax.random.split(key, number)):
                # The move as a permutation of rungs: a sweep of replicas called by the rungs they
                # sit at.
                move, info = sweep_fn(
                    sweep_key, round_index * number + s, rungs, phi[replica_at], coefficients
                )
                moved = moved[move]
            return moved, info

        return sweeps

    monkeypatch.setattr("tempernet.tempering.programs.repeated", blind)
    assert smallest_p(WELLS_IN_BOX, exchange="even-odd", **SWEPT_OFTEN) < REJECT_P
