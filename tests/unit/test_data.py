"""Which examples train, validate and test; how they are normalised; what the embedded MNIST-16
holds.
"""

import hashlib
import importlib.util
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tempernet.data import Dataset, Examples, Source, mnist16, read_idx, read_indices
from tempernet.data.embedded import FILE_NAME, FILE_SHA256, read_payload
from tempernet.data.images import resize
from tempernet.errors import DataError

REPOSITORY = Path(__file__).resolve().parents[2]
MNIST = REPOSITORY.parent / "shared" / "mnist"
PAPER_INDICES = REPOSITORY.parent / "shared" / "paper" / "indices"
needs_mnist = pytest.mark.skipif(
    not MNIST.is_dir(), reason="no folder ../shared/mnist with MNIST's idx files"
)
needs_paper = pytest.mark.skipif(
    not PAPER_INDICES.is_dir(), reason="no folder ../shared/paper/indices"
)


def numbered(train_counts: list[int], test_counts: list[int], seed: int = 0) -> Source:
    """A source with these numbers of examples of each class; pixel 0 of an example is its unique
    number.
    """
    random = np.random.RandomState(seed)
    y_train, y_test = (
        random.permutation(np.repeat(np.arange(len(counts)), counts))
        for counts in (train_counts, test_counts)
    )
    number = np.arange(len(y_train) + len(y_test), dtype=np.float32)
    x = np.stack([number, number % 7], axis=1)
    return Source(
        "numbered", x[: len(y_train)], y_train, x[len(y_train) :], y_test, len(train_counts)
    )


def numbers(data: Dataset, group: Examples) -> list[int]:
    """The unique numbers of the examples in a group of a split of `numbered`."""
    return [round(value) for value in (group.x[:, 0].astype(float) * data.std + data.mean).tolist()]


def class_counts(examples: Examples, classes: int = 10) -> list[int]:
    return np.bincount(examples.y, minlength=classes).tolist()


def build_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "build_mnist16", REPOSITORY / "scripts" / "build_mnist16.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_d500_of_seed_0_is_pinned_for_ever() -> None:
    indices = mnist16().split(500).indices
    assert indices[:5].tolist() == [40228, 33623, 56864, 3048, 35490]
    listed = "\n".join(str(i) for i in indices)
    digest = hashlib.sha256(listed.encode()).hexdigest()
    assert digest == "a2731fde63b7ff6d379d6ea63aa14ba941a0975ff11e7a74de34091f9b40bce0"


def test_fingerprint_of_d500_with_validation_is_pinned_for_ever() -> None:
    sha256 = mnist16().split(500, n_validation=1000).sha256
    assert sha256 == "a906bd5030e4c9bdd5fd1d19e2d9aae116e6966827554ae8f9e2a12e8f1f3f0a"


def test_d500_has_the_papers_sizes_and_holds_out_everything_else() -> None:
    source = mnist16()
    data = source.split(500)
    assert (len(data.train), len(data.validation), len(data.test)) == (500, 0, 69_500)
    assert data.train.x.shape == (500, 16, 16) and data.validation.x.shape == (0, 16, 16)
    assert data.train.x.dtype == np.float32 and data.train.y.dtype == np.int32
    np.testing.assert_array_equal(data.train.y, source.y_train[data.indices])
    np.testing.assert_array_equal(data.test.y[:10_000], source.y_test)
    np.testing.assert_array_equal(data.test.y[10_000:], np.delete(source.y_train, data.indices))


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_subsets_of_one_seed_are_stratified_and_nested(seed: int) -> None:
    source = mnist16()
    splits = [source.split(n, seed=seed) for n in (50, 500, 5000)]
    for data, each in zip(splits, (5, 50, 500), strict=True):
        assert class_counts(data.train) == [each] * 10
        assert len(set(data.indices.tolist())) == 10 * each
        np.testing.assert_array_equal(data.indices, splits[-1].indices[: 10 * each])


def test_seeds_choose_different_images_and_one_seed_the_same() -> None:
    source = numbered([40] * 3, [5] * 3)
    assert source.split(30, seed=1).indices.tolist() == source.split(30, seed=1).indices.tolist()
    assert source.split(30, seed=1).indices.tolist() != source.split(30, seed=2).indices.tolist()


def test_every_training_image_can_be_chosen() -> None:
    source = numbered([4] * 3, [1] * 3)
    chosen = {i for seed in range(60) for i in source.split(3, seed=seed).indices.tolist()}
    assert chosen == set(range(12))


@pytest.mark.parametrize(
    ("n_train", "n_validation"), [(6, 0), (6, 9), (6, 27), (6, 30), (6, 39), (None, 5)]
)
def test_the_three_groups_are_disjoint_and_complete(n_train: int | None, n_validation: int) -> None:
    source = numbered([11] * 3, [4] * 3)
    data = source.split(n_train, n_validation=n_validation)
    groups = [numbers(data, group) for group in (data.train, data.validation, data.test)]
    assert sorted(number for group in groups for number in group) == list(range(45))
    assert len(data.validation) == n_validation
    assert groups[0] == data.indices.tolist()


def test_validation_does_not_change_the_training_set() -> None:
    source = numbered([20] * 3, [5] * 3)
    alone = source.split(30, seed=3)
    for n_validation in (1, 10, 40):
        data = source.split(30, seed=3, n_validation=n_validation)
        np.testing.assert_array_equal(data.indices, alone.indices)
        np.testing.assert_array_equal(data.train.x, alone.train.x)


def test_validation_is_even_and_takes_unused_training_images_first() -> None:
    source = numbered([20, 9, 20], [6, 6, 6])
    leftover = source.split(24, n_validation=25)  # 12, 1 and 12 images are left over
    assert class_counts(leftover.validation, 3) == [12, 1, 12]
    assert max(numbers(leftover, leftover.validation)) < 49

    few = source.split(24, n_validation=8)
    assert sorted(class_counts(few.validation, 3)) == [1, 3, 4]

    more = source.split(24, n_validation=28)  # the three test images even the classes out
    assert class_counts(more.validation, 3) == [12, 4, 12]
    assert sum(number >= 49 for number in numbers(more, more.validation)) == 3


def test_validation_of_mnist_is_stratified() -> None:
    assert class_counts(mnist16().split(500, n_validation=1000).validation) == [100] * 10


def test_given_indices_are_used_in_their_order() -> None:
    source = numbered([10] * 2, [3] * 2)
    data = source.split(indices=[7, 2, 11], n_validation=4)
    assert data.indices.tolist() == [7, 2, 11] == numbers(data, data.train)
    assert (len(data.validation), len(data.test)) == (4, 26 - 3 - 4)


def test_without_a_size_the_whole_training_set_trains() -> None:
    source = numbered([3, 5], [])
    data = source.split()
    assert data.indices.tolist() == list(range(8))
    assert (len(data.validation), len(data.test)) == (0, 0)


def test_the_hash_tells_data_apart_and_nothing_else() -> None:
    source = numbered([10] * 2, [3] * 2)
    base = source.split(indices=[0, 1, 2, 3])
    twin = Source("twin", source.x_train, source.y_train, source.x_test, source.y_test, 2)
    assert twin.split(indices=[0, 1, 2, 3], seed=9).sha256 == base.sha256

    x = source.x_test.copy()
    x[-1, 1] += 1
    relabelled = 1 - source.y_train
    others = [
        source.split(indices=[1, 0, 2, 3]),
        source.split(indices=[0, 1, 2, 3], n_validation=1),
        Source("x", source.x_train, source.y_train, x, source.y_test, 2).split(
            indices=[0, 1, 2, 3]
        ),
        Source("y", source.x_train, relabelled, source.x_test, source.y_test, 2).split(
            indices=[0, 1, 2, 3]
        ),
        Source("c", source.x_train, source.y_train, source.x_test, source.y_test, 3).split(
            indices=[0, 1, 2, 3]
        ),
        Source(
            "n", source.x_train, source.y_train, source.x_test, source.y_test, 2, (0.0, 1.0)
        ).split(indices=[0, 1, 2, 3]),
    ]
    assert len({base.sha256, *(other.sha256 for other in others)}) == 1 + len(others)


def test_mnist_is_normalised_by_its_customary_numbers() -> None:
    data = mnist16().split(50)
    stored = mnist16().x_train[data.indices]
    assert (data.mean, data.std) == (0.1307, 0.3081)
    np.testing.assert_array_equal(
        data.train.x, ((stored / 255 - 0.1307) / 0.3081).astype(np.float32)
    )


@pytest.mark.parametrize(("dtype", "scale"), [(np.uint8, 255.0), (np.float32, 1.0), (">f8", 1.0)])
def test_other_data_is_normalised_by_its_training_examples(
    dtype: npt.DTypeLike, scale: float
) -> None:
    random = np.random.RandomState(0)
    x = random.randint(0, 256, (3000, 2, 3)).astype(dtype)
    y = random.randint(0, 2, 3000)
    data = Source("x", x, y, x[:5], y[:5], 2).split(2000)
    chosen = x[data.indices].astype(float) / scale
    assert data.mean == pytest.approx(chosen.mean(), rel=1e-12)
    assert data.std == pytest.approx(chosen.std(), rel=1e-12)
    assert data.train.x.mean() == pytest.approx(0, abs=1e-5)
    assert data.train.x.std() == pytest.approx(1, abs=1e-5)
    expected = (x[:5].astype(float) / scale - data.mean) / data.std
    np.testing.assert_array_equal(data.test.x[:5], expected.astype(np.float32))


def test_arrays_are_read_only_and_the_embedded_set_is_loaded_once() -> None:
    source = mnist16()
    assert mnist16() is source
    data = source.split(50)
    for array in (source.x_train, source.y_train, data.train.x, data.train.y, data.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_embedded_set_has_mnists_shapes_and_known_labels() -> None:
    source = mnist16()
    assert source.x_train.shape == (60_000, 16, 16) and source.x_test.shape == (10_000, 16, 16)
    assert source.y_train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(source.y_train).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
    assert (source.classes, source.pixel_range) == (10, 255.0)


def test_embedded_file_has_its_hash_and_size() -> None:
    content = resources.files("tempernet.data").joinpath(FILE_NAME).read_bytes()
    assert hashlib.sha256(content).hexdigest() == FILE_SHA256
    assert 6_000_000 < len(content) < 7_000_000


def test_a_damaged_embedded_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempernet.data.embedded.FILE_SHA256", "0" * 64)
    with pytest.raises(DataError, match=f"SHA-256 {FILE_SHA256}, not 0000.*reinstall"):
        read_payload()


@needs_mnist
def test_embedded_payload_is_what_the_script_builds() -> None:
    assert build_script().build_payload(MNIST) == read_payload()


@needs_mnist
def test_idx_folder_of_mnist_at_16_is_the_embedded_set() -> None:
    read, embedded = read_idx(MNIST, size=16), mnist16()
    for name in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(read, name), getattr(embedded, name))
    assert (read.classes, read.mean_std) == (embedded.classes, embedded.mean_std)
    assert read.split(50).sha256 == embedded.split(50).sha256


@needs_mnist
def test_embedded_images_are_pillows_bilinear_ones() -> None:
    stored = read_idx(MNIST)
    for position in (0, 1, 59_999):
        image = Image.fromarray(stored.x_train[position])
        expected = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(mnist16().x_train[position], expected)


@needs_paper
@pytest.mark.parametrize("n", [50, 500, 5000])
def test_the_papers_subsets_are_stratified(n: int) -> None:
    indices = read_indices(PAPER_INDICES / f"d{n}.txt")
    data = mnist16().split(indices=indices)
    np.testing.assert_array_equal(data.indices, indices)
    assert class_counts(data.train) == [n // 10] * 10
    assert len(data.test) == 70_000 - n


def test_resize_of_colour_images_is_pillows_rgb_resize() -> None:
    x = np.random.RandomState(0).randint(0, 256, (2, 7, 9, 3)).astype(np.uint8)
    expected = [np.asarray(Image.fromarray(i).resize((5, 4), Image.Resampling.BILINEAR)) for i in x]
    np.testing.assert_array_equal(resize("x", x, (4, 5)), np.stack(expected))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(28, 28), (16, 16), (9, 14), (1, 3)])
def test_images_are_resized_together_as_they_are_one_by_one(
    shape: tuple[int, int], dtype: Any
) -> None:
    x = np.random.RandomState(1).randint(0, 256, (1003, *shape)).astype(dtype)
    for height, width in ((16, 16), (4, 4), (31, 31), (5, 11), (20, 3)):
        alone = [
            np.asarray(Image.fromarray(i).resize((width, height), Image.Resampling.BILINEAR))
            for i in x
        ]
        # Of images that are not square Pillow may resize the columns first, and then rounds another
        # way.
        square = shape[0] == shape[1] and height == width
        tolerance = 0 if square else 1 if dtype is np.uint8 else 1e-4
        together = resize("x", x, (height, width))
        assert together.dtype == dtype and together.flags.c_contiguous
        np.testing.assert_allclose(
            together.astype(float), np.stack(alone).astype(float), rtol=0, atol=tolerance
        )


def test_resize_of_float_images_keeps_a_linear_ramp() -> None:
    ramp = np.tile(np.arange(16, dtype=np.float64), (1, 16, 1))
    halved = resize("x", ramp, 8)
    assert halved.shape == (1, 8, 8) and halved.dtype == np.float32
    np.testing.assert_allclose(
        halved[0, :, 1:-1], np.tile(np.arange(0.5, 16, 2)[1:-1], (8, 1)), rtol=1e-6
    )
