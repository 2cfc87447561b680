"""The tile is measured once on a machine and kept; whatever is in the cache, a tile is found."""

from pathlib import Path

import numpy as np
import pytest

import tempernet as tn
from tempernet.data import Examples
from tempernet.devices import tiles

NETWORK = tn.MLP((3, 2, 2))
EXAMPLES = Examples(np.eye(3, dtype=np.float32), np.array([0, 1, 0], np.int32))
TARGET = tn.Target.classifier(NETWORK, EXAMPLES, tn.UniformBox.for_network(NETWORK, 50.0))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tempernet" / "tiles"


def measuring(monkeypatch: pytest.MonkeyPatch, best: int) -> None:
    """Let this tile be the fastest; larger and smaller ones are slower, the further the more."""
    monkeypatch.setattr(
        tiles, "_stopwatch", lambda _fn, _like, layout, *_: lambda: abs(layout.tile - best) + 1.0
    )


def tile_of(num: int = 16, devices: int = 1) -> int:
    path = tn.temperature_path(np.geomspace(0.1, 10, num))
    return tn.Engine(TARGET, path, devices=devices).layout.tile


@pytest.mark.parametrize("best", [1, 2, 4, 8, 16])
def test_the_fastest_tile_is_found(best: int, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, best)
    assert tile_of() == best


def test_a_machine_that_is_busy_for_a_while_measures_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven runs in a row that take twice as long, whenever they begin; tile by tile they would
    decide.
    """
    found, one_by_one = set(), set()
    for begins in range(40):
        runs = 0

        def seconds(tile: int) -> float:
            nonlocal runs
            runs += 1
            return (abs(tile - 4) + 10.0) * (2 if begins <= runs < begins + 7 else 1)  # noqa: B023

        found.add(tiles._fastest(lambda tile: lambda: seconds(tile), 16))
        runs = 0
        alone = {tile: min(seconds(tile) for _ in range(tiles.REPEATS)) for tile in (8, 16, 4, 2)}
        one_by_one.add(min(alone, key=lambda tile: alone[tile]))
    assert found == {4} and len(one_by_one) > 1


def test_a_machine_keeps_what_it_measured_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, 4)
    assert tile_of() == 4
    measuring(monkeypatch, 16)
    assert tile_of() == 4
    # Another number of replicas or devices is other work.
    assert tile_of(num=32) == 16
    assert tile_of(devices=2, num=32) == 16
    assert len(list(cache.iterdir())) == 3


def test_a_cache_that_is_nonsense_is_measured_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, 4)
    tile_of()
    (kept,) = cache.iterdir()
    measuring(monkeypatch, 2)
    for nonsense in (b"", b"four", b"0", b"17", b"\xff\xfe"):
        kept.write_bytes(nonsense)
        assert tile_of() == 2, nonsense
        assert kept.read_text() == "2\n"


def test_a_cache_that_cannot_be_written_is_no_loss(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file where the folder should be")
    measuring(monkeypatch, 4)
    assert tile_of() == 4


def test_of_two_that_measure_at_once_both_take_the_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, 4)
    tile_of()
    (kept,) = cache.iterdir()
    kept.unlink()

    def late(*_: object) -> int:
        kept.write_text("2\n")
        return 4

    monkeypatch.setattr(tiles, "_fastest", late)
    assert tile_of() == 2
    assert [path.name for path in cache.iterdir()] == [kept.name]


def test_without_a_home_of_its_own_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert tiles.cache_folder() == Path.home() / ".cache" / "tempernet"

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert tiles.cache_folder().is_absolute()
