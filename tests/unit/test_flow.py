"""Round trips and replica flow of permutations made by hand."""

import numpy as np
import pytest

from tempernet.diagnostics.flow import COLD, HOT, LAGS, Flow, bottleneck, freedom, sides_kept


def followed(rounds: list[list[int]] | list[list[list[int]]]) -> Flow:
    """The flow after these rounds, each the replica at every rung, of one copy or of several."""
    array = np.array(rounds, np.int32)
    return Flow.of(array if array.ndim == 3 else array[:, None])


def test_a_replica_that_goes_up_and_comes_back_has_made_a_round_trip() -> None:
    flow = followed([[0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 0, 2], [0, 1, 2]])
    assert flow.round_trips.tolist() == [1]


def test_half_a_trip_is_none() -> None:
    # Replica 2 comes down from the hot end, and nobody goes up.
    flow = followed([[0, 1, 2], [0, 2, 1], [2, 0, 1]])
    assert (flow.up.tolist(), flow.down.tolist(), flow.round_trips.tolist()) == ([0], [1], [0])
    # Up halfway and back.
    assert followed([[0, 1, 2], [1, 0, 2], [0, 1, 2]]).round_trips.tolist() == [0]


def test_two_replicas_may_share_a_trip() -> None:
    assert followed([[0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0]]).round_trips.tolist() == [1]


def test_every_crossing_counts_once_however_long_the_replica_stays() -> None:
    there = [[0, 1], [0, 1], [1, 0], [1, 0]]
    assert followed(there).round_trips.tolist() == [1]
    there_and_back = [*there, [0, 1], [0, 1]]
    assert followed(there_and_back).round_trips.tolist() == [2]


def test_rungs_below_the_cold_end_belong_to_it() -> None:
    # Replica 1 goes up from the second rung and replica 2 comes down to it; the coldest rung sees
    # neither.
    rounds = np.array([[0, 1, 2], [0, 2, 1]])[:, None]
    assert Flow.of(rounds).round_trips.tolist() == [0]
    assert Flow.of(rounds, cold=2).round_trips.tolist() == [1]
    # Two come down at once, and of the two that left one reaches the hottest rung.
    flow = Flow.of(np.array([[0, 1, 2, 3], [0, 1, 3, 2], [2, 3, 0, 1]])[:, None], cold=2)
    assert (flow.up.tolist(), flow.down.tolist()) == ([1], [2])


def test_copies_are_counted_apart() -> None:
    moving = [[0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 0, 2], [0, 1, 2]]
    still = [[0, 1, 2]] * 5
    flow = followed([[a, b] for a, b in zip(moving, still, strict=True)])
    assert flow.round_trips.tolist() == [1, 0]
    assert np.all(flow.label[1] == [COLD, 0, HOT])


def test_the_fraction_from_the_hot_end_by_hand() -> None:
    # Round by round who was last hot (H) or cold (C): C-H, then replica 1 unknown at the cold end.
    flow = followed([[0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 0, 2]])
    assert flow.from_cold.tolist() == [4, 1, 0]
    assert flow.from_hot.tolist() == [0, 2, 4]
    np.testing.assert_allclose(flow.fraction_from_hot, [0, 2 / 3, 1])


def test_the_fraction_is_unknown_where_nobody_from_an_end_came_by() -> None:
    fraction = followed([[0, 1, 2]]).fraction_from_hot
    assert fraction[0] == 0 and np.isnan(fraction[1]) and fraction[2] == 1


def test_nothing_followed_is_nothing_known() -> None:
    flow = Flow(2, 3)
    assert np.isnan(flow.fraction_from_hot).all() and flow.round_trips.tolist() == [0, 0]


@pytest.mark.parametrize("rungs", [4, 7])
def test_a_conveyor_belt_makes_all_the_trips_there_are(rungs: int) -> None:
    """Replicas move up on even places and down on odd ones, as in even-odd exchange where every
    swap succeeds.
    """
    replica, rounds = np.arange(rungs), []
    for step in range(20 * rungs):
        rounds.append(replica.tolist())
        replica = replica.copy()
        for k in range(step % 2, rungs - 1, 2):
            replica[[k, k + 1]] = replica[[k + 1, k]]
    flow = followed(rounds)
    # Each replica is back after 2 K rounds.
    assert flow.round_trips[0] == pytest.approx(rungs * 10, abs=rungs)
    fraction = flow.fraction_from_hot
    np.testing.assert_allclose(fraction[1:-1], 0.5, atol=0.1)


def test_one_rung_has_no_trips() -> None:
    assert followed([[0]] * 5).round_trips.tolist() == [0]


def test_a_flow_that_was_saved_goes_on_as_if_nothing_had_been() -> None:
    rng = np.random.default_rng(0)
    rounds = np.stack([[rng.permutation(5) for _ in range(3)] for _ in range(60)])
    whole, before = Flow(3, 5), Flow(3, 5)
    for replica in rounds:
        whole.update(replica)
    for replica in rounds[:23]:
        before.update(replica)
    saved = {name: array.copy() for name, array in before.arrays().items()}
    before.update(rounds[0])
    after = Flow(3, 5)
    after.restore(saved)
    for replica in rounds[23:]:
        after.update(replica)
    assert whole.round_trips.min() > 0
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(after.arrays()[name], array)
        assert after.arrays()[name].dtype == array.dtype


def test_what_is_saved_is_a_copy() -> None:
    flow = Flow(1, 3)
    saved = flow.arrays()
    flow.update(np.array([[0, 1, 2]]))
    assert not saved["flow_label"].any() and flow.arrays()["flow_label"].any()


def swapping(rounds: int, rungs: int, memory: float, seed: int = 0) -> np.ndarray:
    """Who sits where, (rounds, 2, rungs): neighbours swap at random, or as they remember.

    A replica has a place of its own, and swaps that lead away from it are rarer, the more so the
    longer its `memory`.
    """
    random = np.random.default_rng(seed)
    found = np.empty((rounds, 2, rungs), np.int32)
    found[0] = np.arange(rungs)
    for now in range(1, rounds):
        for copy in range(2):
            order = found[now - 1, copy].copy()
            for left in range(now % 2, rungs - 1, 2):
                one, other = order[left], order[left + 1]
                against = memory * (other - one)
                if random.uniform() < 0.6 / (1 + np.exp(against)):
                    order[[left, left + 1]] = other, one
            found[now, copy] = order
    return found


def test_replicas_that_forget_are_free() -> None:
    assert freedom(swapping(600, 50, memory=0.0)) == pytest.approx(1.0, abs=0.15)


def test_replicas_that_remember_are_not() -> None:
    record = swapping(600, 50, memory=0.5)
    assert freedom(record) < 0.4
    # They swap nearly as often: swaps alone do not tell.
    moves = np.diff(np.argsort(record, axis=2), axis=0)
    free = np.diff(np.argsort(swapping(600, 50, memory=0.0), axis=2), axis=0)
    assert np.abs(moves).mean() > 0.7 * np.abs(free).mean()


def test_freedom_is_not_told_from_too_little() -> None:
    record = swapping(600, 50, memory=0.0)
    assert np.isnan(freedom(record[: 4 * LAGS[1] - 1]))
    assert np.isnan(freedom(record[::20] * 0 + np.arange(50, dtype=np.int32)))
    # On a short ladder replicas are anywhere after 40 rounds.
    assert np.isnan(freedom(swapping(600, 4, memory=0.0)))
    assert np.isnan(freedom(np.zeros((600, 2, 1), np.int32)))


def test_a_bottleneck_is_where_the_flow_falls_at_once() -> None:
    even = np.linspace(0, 1, 32)
    assert bottleneck(even) is None
    step = np.where(np.arange(32) < 17, 0.05, 0.95) + 0.001 * np.arange(32)
    assert bottleneck(step) == (16, 17)
    # Rungs that no replica from either end has seen, as long as they are few.
    few, many = step.copy(), step.copy()
    few[15:19], many[8:25] = np.nan, np.nan
    assert bottleneck(few) == (14, 19) and bottleneck(many) is None
    assert bottleneck(np.full(32, np.nan)) is None and bottleneck(np.zeros(32)) is None
    # Ends that are not told apart have no place in between.
    assert bottleneck(step[::-1]) is None


def wandering(rate: float, rounds: int, rungs: int = 32, copies: int = 2) -> np.ndarray:
    """Swaps at 0.6 between neighbours, but at `rate` between the two rungs in the middle: (rounds,
    copies, rungs).
    """
    random, order = np.random.default_rng(1), np.tile(np.arange(rungs), (copies, 1))
    rates, found = np.where(np.arange(rungs - 1) == rungs // 2 - 1, rate, 0.6), []
    for now in range(rounds):
        for left in range(now % 2, rungs - 1, 2):
            swapped = random.uniform(size=copies) < rates[left]
            order[swapped, left : left + 2] = order[swapped, left : left + 2][:, ::-1]
        found.append(order.copy())
    return np.array(found)


def test_replicas_of_two_kinds_keep_their_sides_and_free_ones_do_not() -> None:
    """A twin that looks at neighbouring swaps alone passes both: all but one pair swap alike."""
    blocked, free = sides_kept(wandering(0.0, 800)), sides_kept(wandering(0.6, 800))
    assert blocked.shape == (31,) and blocked.argmax() == 15 and blocked[15] == 1
    # Half of the ladder away from the pair, nothing is kept of an end.
    assert np.abs(blocked[[0, 30]]).max() < 0.15 and free.max() < 0.37
    # Seldom is enough if the run is long: sixteen times as many rounds.
    seldom = [sides_kept(wandering(0.02, rounds))[15] for rounds in (400, 6400)]
    assert seldom[0] > 0.6 and seldom[1] < 0.37


def test_sides_that_are_kept_by_hand() -> None:
    still = np.tile(np.arange(5), (10, 2, 1))
    assert (sides_kept(still) == 1).all()
    # Who sits at the two coldest rungs takes turns, and half a record is an odd number of turns.
    turned = still.copy()
    turned[1::2, :, :2] = [1, 0]
    assert sides_kept(turned).tolist() == [-1, 1, 1, 1]
    assert np.isnan(sides_kept(still[:1])).all() and sides_kept(still[..., :1] * 0).shape == (0,)


def test_replicas_of_two_kinds_make_a_bottleneck() -> None:
    """Half of the replicas belong below the middle and half above, and seldom pass; within each
    half they are free.
    """
    assert bottleneck(Flow.of(wandering(0.01, 6000, copies=1)).fraction_from_hot) == (15, 16)
