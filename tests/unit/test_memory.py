"""What replicas remember: by hand, for chains of known memory, and for those that cannot leave
their mode.
"""

import numpy as np
import pytest

from tempernet.diagnostics.memory import LEAST, remembered, times_forgotten

ROWS, COPIES, RUNGS, WEIGHTS = 6, 3, 8, 2000


def chains(correlation: float, seed: int = 0, copies: int = COPIES) -> np.ndarray:
    """Normal weights (ROWS, copies, RUNGS, WEIGHTS) of each replica, correlated from one row to the
    next.
    """
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=(copies, RUNGS, WEIGHTS))]
    for _ in range(ROWS - 1):
        kick = rng.normal(size=found[0].shape)
        found.append(correlation * found[-1] + np.sqrt(1 - correlation**2) * kick)
    return np.stack(found)


def wandering(seed: int = 1, copies: int = COPIES) -> np.ndarray:
    """Who sits at each rung: another order in every row."""
    rng = np.random.default_rng(seed)
    return np.stack([[rng.permutation(RUNGS) for _ in range(copies)] for _ in range(ROWS)])


def at_rungs(by_replica: np.ndarray, replica: np.ndarray) -> np.ndarray:
    return np.take_along_axis(by_replica, replica[..., None], axis=2)


@pytest.mark.parametrize("copies", [1, COPIES])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8, 1.0])
def test_the_correlation_of_replicas_is_found_wherever_they_went(
    correlation: float, copies: int
) -> None:
    replica = wandering(copies=copies)
    share = remembered(at_rungs(chains(correlation, copies=copies), replica), replica)
    # 5 pairs of rows a copy, each with an error of about 1 / sqrt(2000), the common part measured
    # besides.
    np.testing.assert_allclose(
        share, correlation, atol=5 * 1.5 / np.sqrt(5 * copies * WEIGHTS) + 1e-9
    )


def test_rungs_alone_would_say_that_nothing_is_remembered() -> None:
    """The twin that follows rungs and not replicas: frozen replicas that swap look as if they
    forgot.
    """
    replica = wandering()
    frozen = at_rungs(chains(1.0), replica)
    by_rung = np.broadcast_to(np.arange(RUNGS), replica.shape)
    np.testing.assert_allclose(remembered(frozen, replica), 1, atol=0.01)
    assert np.all(remembered(frozen, by_rung) < 0.9)


def test_what_weights_have_in_common_by_themselves_is_no_memory() -> None:
    """A mean at every rung, the same in all copies: chains that forget around it have forgotten."""
    replica = wandering()
    mean = 2 * np.random.default_rng(5).normal(size=(RUNGS, WEIGHTS))
    share = remembered(mean + at_rungs(chains(0.3), replica), replica)
    np.testing.assert_allclose(share, 0.3, atol=0.1)


def test_a_replica_that_cannot_leave_its_mode_remembers() -> None:
    """Two modes at ±2, each replica in one of them for ever, forgetting all else at once."""
    replica = wandering()
    rng = np.random.default_rng(3)
    mode = 2 * rng.choice([-1, 1], size=(1, COPIES, RUNGS, WEIGHTS))
    share = remembered(at_rungs(mode + chains(0.0), replica), replica)
    np.testing.assert_allclose(share, 4 / 5, atol=0.05)


def test_some_rungs_are_enough_and_who_cannot_be_followed_is_left_out() -> None:
    replica = wandering()
    weights = at_rungs(chains(0.8), replica)
    share = remembered(weights[:, :, :4], replica[:, :, :4])
    np.testing.assert_allclose(share[np.isfinite(share)], 0.8, atol=0.1)
    # Nobody is at a kept rung twice.
    apart = np.stack([np.tile([2 * row, 2 * row + 1], (COPIES, 1)) for row in range(3)])
    assert np.isnan(remembered(weights[:3, :, :2], apart)).all()


def test_one_row_tells_nothing() -> None:
    replica = wandering()
    assert np.isnan(remembered(at_rungs(chains(0.5), replica)[:1], replica[:1])).all()


def test_times_forgotten_by_hand() -> None:
    """A share of 1/e after 50 rounds: twice in 100; nothing is claimed below what can be told."""
    share = np.array([np.exp(-1), 1.0, 1.02, 0.0, -0.1, np.nan])
    least = 2 * np.log(1 / LEAST)
    np.testing.assert_allclose(times_forgotten(share, 50, 100), [2, 0, 0, least, least, np.nan])
