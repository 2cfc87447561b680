"""The engine: the same numbers on any devices, in the order of rungs, and step sizes that fit."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tempernet import MLP, Dynamics, Engine, Target, UniformBox, hold_out, temperature_path
from tempernet.data import Examples
from tempernet.devices.mesh import compiled
from tempernet.tempering.rounds import Record, State

pytestmark = pytest.mark.usefixtures("quick_programs")

NETWORK = MLP((3, 2))
TEMPERATURES = [0.5, 1.0, 4.0]
STEPS = [0.3, 0.4, 0.6]
SHORT = Dynamics(num_steps=3, num_trajectories=2, lengths="steps")


def examples(num: int = 7) -> Examples:
    random = np.random.RandomState(0)
    x = random.normal(size=(num, 3)).astype(np.float32)
    return Examples(x, random.randint(0, 2, num).astype(np.int32))


TARGET = Target.classifier(NETWORK, examples(), UniformBox.for_network(NETWORK, 5.0))


def engine_of(**options: Any) -> Engine:
    settings = {"copies": 2, "dynamics": SHORT, "devices": 1, "seed": 3, "masses": 1.0}
    if "reproducible" not in options:
        settings["tile"] = 2
    return Engine(TARGET, temperature_path(TEMPERATURES), **{**settings, **options})


def run(engine: Engine, starts: Any, rounds: int = 3) -> tuple[Any, list[Any]]:
    """The state after some rounds without its padding, and the records, as numpy arrays."""
    state, records = engine.start(starts), []
    for _ in range(rounds):
        state, record = engine.round(state, engine.rungs(STEPS))
        records.append(jax.device_get(record))
    return trimmed(engine, state), records


def trimmed(engine: Engine, state: State) -> Any:
    kernel = jax.tree.map(lambda leaf: leaf[: engine.num_replicas], jax.device_get(state.kernel))
    return jax.device_get(state)._replace(kernel=kernel)


@pytest.fixture(scope="module")
def engine() -> Engine:
    """One device, two copies of three rungs; tests share its compiled round."""
    return engine_of()


@pytest.fixture(scope="module")
def starts(engine: Engine) -> Any:
    return engine.init_weights()


@pytest.fixture(scope="module")
def plain(engine: Engine, starts: Any) -> tuple[Any, list[Any]]:
    """What three rounds on one device give."""
    return run(engine, starts)


def assert_close(found: Any, expected: Any) -> None:
    jax.tree.map(
        lambda f, e: np.testing.assert_allclose(f, e, rtol=2e-4, atol=2e-5), found, expected
    )


def assert_identical(found: Any, expected: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_the_run_that_others_are_compared_with_has_all_fates(plain: Any) -> None:
    state, records = plain
    accepted = np.array([record.info.accepted for record in records])
    assert 0 < accepted.sum() < accepted.size * 2
    assert sum(record.swaps.accepts.sum() for record in records) > 0
    assert sum(record.swaps.attempts.sum() for record in records) == 6
    assert not np.array_equal(state.replica_at, [[0, 1, 2]] * 2)


@pytest.mark.parametrize("devices", [2, 4])
def test_any_number_of_devices_gives_the_same_numbers(
    devices: int, plain: Any, starts: Any
) -> None:
    engine = engine_of(devices=devices)
    assert engine.layout.padded == {2: 8, 4: 8}[devices]
    assert engine.layout.mesh.size == devices
    assert_close(run(engine, starts), plain)
    # Three rounds, the first from a fresh state, are one compilation.
    compiled: Any = engine._programs.round
    assert compiled._cache_size() == 1


def test_reproducible_runs_are_bit_identical_on_any_number_of_devices(starts: Any) -> None:
    one, two, four = (run(engine_of(devices=n, reproducible=True), starts) for n in (1, 2, 4))
    assert_identical(two, one)
    assert_identical(four, one)


def test_examples_split_over_devices_give_the_same_numbers(plain: Any, starts: Any) -> None:
    assert TARGET.num_examples % 2 == 1
    engine = engine_of(devices=2, data_devices=2)
    assert dict(engine.layout.mesh.shape) == {"replica": 1, "data": 2}
    first = trimmed(engine, engine.start(starts))
    np.testing.assert_allclose(
        first.kernel.point.energy, jax.vmap(TARGET.energy)(starts), rtol=1e-5
    )
    assert_close(run(engine, starts), plain)


def test_a_record_is_in_the_order_of_rungs(engine: Engine, starts: Any) -> None:
    state = engine.start(starts)
    energy_fn = jax.jit(jax.vmap(TARGET.energy))
    moved = False
    for round_index in range(4):
        before = state
        state, record = engine.round(state, engine.rungs(STEPS))
        assert int(state.round) == round_index + 1
        np.testing.assert_array_equal(record.replica, before.replica_at)
        assert record.phi.shape == (2, 3, 1)
        for copy in range(2):
            seats = np.asarray(record.replica)[copy]
            energies = np.asarray(state.kernel.point.energy)[copy * 3 + seats]
            np.testing.assert_array_equal(np.asarray(record.phi)[copy, :, 0], energies)
        # After the exchange: what sat at rung j sits at rung k if their replicas are the same.
        for rung in range(3):
            energy = energy_fn(engine.weights_at(state, rung))
            for copy in range(2):
                came_from = np.flatnonzero(record.replica[copy] == state.replica_at[copy, rung])[0]
                assert float(energy[copy]) == pytest.approx(
                    float(record.phi[copy, came_from, 0]), rel=1e-5
                )
                moved |= bool(came_from != rung)
        np.testing.assert_array_equal(np.sort(state.replica_at, axis=1), [[0, 1, 2]] * 2)
    assert moved


def test_each_replica_moves_at_the_step_of_its_rung(engine: Engine, starts: Any) -> None:
    """Rung 1 has a step that moves nothing: what sits there must stay, whichever replica it is."""
    state = engine.start(starts)
    replica_at = jnp.array([[2, 0, 1], [1, 2, 0]], jnp.int32)
    state = state._replace(replica_at=jax.device_put(replica_at, engine.layout.everywhere))
    after, record = engine.round(state, engine.rungs([0.05, 1e-12, 0.05]))
    np.testing.assert_array_equal(record.replica, replica_at)
    moved = np.abs(
        np.asarray(after.kernel.point.weights[0].weight - state.kernel.point.weights[0].weight)
    ).max(axis=(1, 2))
    still = np.array([0, 3 + 2])
    assert np.all(moved[still] < 1e-6)
    assert np.all(np.delete(moved[:6], still) > 1e-3)
    np.testing.assert_allclose(np.asarray(record.info.acceptance)[:, 1], 1, rtol=1e-4)


FAR = Dynamics(num_steps=4, num_trajectories=2, lengths="distance")


def test_equal_distances_take_more_of_the_smaller_steps() -> None:
    """With steps of 0.3, 0.4 and 0.6, 4 (1/eps) / mean(1/eps) is 5.33, 4 and 2.67."""
    rungs = engine_of(dynamics=FAR).rungs(STEPS)
    assert rungs.num_steps.tolist() == [5, 4, 3]
    assert engine_of().rungs(STEPS).num_steps.tolist() == [3, 3, 3]
    # A step that is far too small does not take all the time there is, and a rung that is drawn
    # from takes none.
    assert FAR.steps_of(np.array([1e-9, 1.0, 1.0]), np.array([True, True, False])).tolist() == [
        8,
        1,
        1,
    ]
    assert FAR.steps_of(np.array([0.1, 0.1, 9.0]), np.array([True, True, False])).tolist() == [
        4,
        4,
        1,
    ]


def test_each_rung_makes_the_steps_of_its_own(starts: Any) -> None:
    """As an engine would whose trajectories are all as long as that rung's."""
    far = engine_of(dynamics=FAR, exchange="none")
    found, _ = run(far, starts)
    for rung, num_steps in enumerate(far.rungs(STEPS).num_steps.tolist()):
        alike, _ = run(
            engine_of(dynamics=replace(FAR, num_steps=num_steps, lengths="steps"), exchange="none"),
            starts,
        )
        # Of two copies: every third replica, without exchange, is at this rung.
        assert_close(
            *(
                jax.tree.map(lambda leaf, i=rung: leaf[i::3], state.kernel.point)
                for state in (found, alike)
            )
        )


def test_own_lengths_give_the_same_numbers_in_any_tiles_and_on_any_devices(starts: Any) -> None:
    one = run(engine_of(dynamics=FAR, reproducible=True), starts)
    assert_identical(run(engine_of(dynamics=FAR, reproducible=True, devices=4), starts), one)
    for options in ({"tile": 2}, {"tile": 6}, {"devices": 2}, {"devices": 2, "data_devices": 2}):
        assert_close(run(engine_of(dynamics=FAR, **options), starts), one)


@pytest.mark.parametrize(("tile", "tiles"), [(1, 2), (2, 2), (3, 2), (6, 1)])
def test_only_tiles_with_an_exact_rung_draw(tile: int, tiles: int, starts: Any) -> None:
    """Of two copies of three rungs, one of them exact; no number depends on the tiles."""
    drawn: list[int] = []

    def draw(key: Any) -> Any:
        jax.debug.callback(lambda: drawn.append(1))
        return TARGET.prior.draw(key)

    path = replace(temperature_path([0.5, 1.0, np.inf]), draw_fn=draw)
    settings: dict[str, Any] = {"copies": 2, "dynamics": SHORT, "devices": 1, "seed": 3}
    engine = Engine(TARGET, path, tile=tile, **settings)
    state, rungs = engine.start(starts), engine.rungs(STEPS)
    at_exact = np.asarray(state.replica_at)[:, -1]
    state, record = jax.block_until_ready(engine.round(state, rungs))
    jax.effects_barrier()
    assert len(drawn) == tiles
    plain = Engine(TARGET, replace(path, draw_fn=None), tile=2, **settings)
    expected, same = plain.round(plain.start(starts), rungs)
    assert_close(record, jax.device_get(same))
    rows = np.arange(2) * 3 + at_exact
    assert_close(
        *(jax.tree.map(lambda leaf: leaf[rows], s.kernel.point.weights) for s in (state, expected))
    )
    assert not np.allclose(record.phi[0, -1], record.phi[1, -1])


def test_scores_are_in_the_order_of_rungs(engine: Engine, starts: Any) -> None:
    state = engine.start(starts)
    for _ in range(3):
        state, _ = engine.round(state, engine.rungs(STEPS))
    assert not np.array_equal(state.replica_at, [[0, 1, 2]] * 2)
    score = engine.score(state, hold_out(NETWORK, examples(), piece=4))
    assert score.loss.shape == score.accuracy.shape == (2, 3)
    for rung in range(3):
        energy = jax.vmap(TARGET.energy)(engine.weights_at(state, rung))
        np.testing.assert_allclose(score.loss[:, rung], energy / 7, rtol=1e-5)


def test_a_round_is_a_function_of_seed_round_and_state(engine: Engine, starts: Any) -> None:
    rungs = engine.rungs(STEPS)
    state, _ = engine.round(engine.start(starts), rungs)
    saved: State = jax.tree.map(lambda leaf: jax.device_put(np.array(leaf), leaf.sharding), state)
    following: tuple[State, Record] = engine.round(state, rungs)
    engine.round(following[0], rungs)
    assert_identical(engine.round(saved, rungs), following)
    another_round = engine.round(state._replace(round=state.round + 4), rungs)
    assert not np.any(np.asarray(another_round[1].phi) == np.asarray(following[1].phi))


def test_a_state_read_from_a_file_needs_no_second_compilation(
    engine: Engine, starts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rungs = engine.rungs(STEPS)
    state, _ = engine.round(engine.start(starts), rungs)
    saved = jax.tree.map(np.array, state)
    with jax.log_compiles():
        engine.round(saved, rungs)
    assert [message for message in caplog.messages if "Compiling jit(round_fn)" in message] == []


def test_another_seed_gives_other_numbers(
    engine: Engine, plain: Any, starts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "seed", 4)
    _, records = run(engine, starts, 1)
    assert not np.any(records[0].phi == plain[1][0].phi)
    assert not np.any(engine.init_weights()[0].bias == starts[0].bias)


def test_a_copy_neither_sees_nor_mirrors_the_others(engine: Engine, starts: Any) -> None:
    """Copy 0 moves as it does alone; copy 1 from the same weights moves otherwise."""
    first = jax.tree.map(lambda leaf: leaf[:3], starts)
    alone_state, alone = run(engine_of(copies=1), first)
    twice = jax.tree.map(lambda leaf: np.concatenate([leaf, leaf]), first)
    state, both = run(engine, twice)
    assert_close([jax.tree.map(lambda leaf: leaf[:1], record) for record in both], alone)
    assert_close(jax.tree.map(lambda leaf: leaf[:3], state.kernel.point), alone_state.kernel.point)
    assert not np.any(both[0].phi[0] == both[0].phi[1])


def test_starting_weights_are_draws_of_their_own(engine: Engine, starts: Any) -> None:
    flat = np.asarray(starts[0].weight).reshape(6, -1)
    assert len(np.unique(flat[:, 0])) == 6
    assert np.max(np.abs(flat)) <= 0.5
    prior = np.asarray(engine.prior_weights()[0].weight).reshape(6, -1)
    assert len(np.unique(prior[:, 0])) == 6
    assert 0.5 < np.max(np.abs(prior)) <= 2.5


def gaussian_engine(**options: Any) -> Engine:
    like = jax.ShapeDtypeStruct((10,), jnp.float32)
    target = Target.from_energy(lambda w: 0.5 * jnp.sum(w**2), UniformBox(500.0, like))
    dynamics = Dynamics(num_steps=10, num_trajectories=5, lengths="steps")
    path = temperature_path([0.01, 1.0, 100.0, math.inf])
    return Engine(target, path, **{"copies": 8, "dynamics": dynamics, "devices": 1, **options})


def test_the_largest_step_is_a_tenth_of_the_narrowest_box() -> None:
    assert gaussian_engine().largest_step == pytest.approx(100.0)
    assert gaussian_engine(masses=4.0).largest_step == pytest.approx(200.0)
    assert gaussian_engine(dynamics=Dynamics(walls="reject")).largest_step == math.inf
    like = {
        "a": jax.ShapeDtypeStruct((2,), jnp.float32),
        "b": jax.ShapeDtypeStruct((), jnp.float32),
    }
    target = Target.from_energy(lambda w: jnp.sum(w["a"]), UniformBox({"a": 3.0, "b": 2.0}, like))
    engine = Engine(target, temperature_path([1.0]), masses={"a": 1.0, "b": 4.0}, devices=1)
    assert engine.largest_step == pytest.approx(0.6)


@pytest.fixture(scope="module")
def at_rest() -> tuple[Engine, State]:
    """A Gaussian at four temperatures, in equilibrium but for the last."""
    engine = gaussian_engine()
    draws = np.random.RandomState(0).normal(size=(8, 4, 10)) * SPREAD[:, None]
    return engine, engine.start(jnp.asarray(draws.reshape(32, 10), jnp.float32))


SPREAD = np.sqrt([0.01, 1.0, 100.0, 1.0])


def test_tuning_brings_every_rung_into_the_window_from_far_away(
    at_rest: tuple[Engine, State],
) -> None:
    engine, state = at_rest
    for factor in (1e-3, 1e3):
        tuned, rungs, acceptance = engine.tune(state, engine.rungs(factor * SPREAD))
        assert int(tuned.round) == int(state.round)
        # The check itself is noisy, and the checks are limited: its last word may lie just outside.
        assert np.all((acceptance[:3] > 0.57) & (acceptance[:3] < 0.73))
        assert acceptance[3] > 0.99
        assert float(rungs.step_sizes[3]) == pytest.approx(engine.largest_step, rel=1e-6)
        records = []
        for _ in range(15):
            tuned, record = engine.round(tuned, rungs)
            records.append(np.asarray(record.info.acceptance))
        # 600 new trajectories a rung have an error of 0.012.
        np.testing.assert_allclose(np.mean(records, axis=(0, 1))[:3], 0.65, atol=0.05 + 3 * 0.012)


def test_tuning_and_rounds_are_one_program(starts: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Tuning makes one trajectory a round, and nothing is exchanged."""
    engine = engine_of()
    with jax.log_compiles():
        state, rungs, _ = engine.tune(engine.start(starts), engine.rungs(0.1))
        np.testing.assert_array_equal(state.replica_at, [[0, 1, 2]] * 2)
        _, record = engine.round(state, rungs)
    assert int(record.info.accepted.max()) == SHORT.num_trajectories == 2
    assert (
        len([message for message in caplog.messages if "Compiling jit(round_fn)" in message]) == 1
    )


@pytest.mark.parametrize(
    ("replicas", "devices", "tile", "padded", "tiles"),
    [(6, 1, 6, 6, 1), (6, 4, 1, 8, 2), (7, 2, 3, 8, 2), (5, 8, 4, 8, 1), (9, 2, 4, 12, 2)],
)
def test_tiles_are_evened_out(
    replicas: int, devices: int, tile: int, padded: int, tiles: int
) -> None:
    like = jax.ShapeDtypeStruct((1,), jnp.float32)
    target = Target.from_energy(jnp.sum, UniformBox(1.0, like))
    engine = Engine(target, temperature_path([1.0]), copies=replicas, devices=devices, tile=tile)
    assert (engine.layout.padded, engine.layout.tiles) == (padded, tiles)
    assert engine.layout.tile <= tile


def test_masses_may_be_the_fan_in() -> None:
    by_name = engine_of(masses="fan-in").masses
    by_number = engine_of(masses=(4.0,)).masses
    assert_identical(by_name, by_number)
    assert_identical(engine_of(masses=None).masses, by_name)
    assert gaussian_engine().masses == 1.0
    assert [float(leaf) for leaf in jax.tree.leaves(by_name)] == [4.0, 4.0]


@pytest.mark.parametrize(
    ("flags", "wanted"), [("", 512), ("--xla_cpu_prefer_vector_width=256", None)]
)
def test_programs_use_wide_vectors_unless_the_user_says_a_width(
    flags: str, wanted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = []
    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr(jax, "jit", lambda fn, **options: said.append(options["compiler_options"]))
    compiled(abs)
    assert said == [wanted and {"xla_cpu_prefer_vector_width": wanted}]
