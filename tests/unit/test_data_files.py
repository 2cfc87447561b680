"""Readers of idx folders, npz files and index lists; and every bad input with what its message must
say.
"""

import gzip
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tempernet.data import Examples, Source, mnist16, read_idx, read_indices, read_npz
from tempernet.errors import DataError

X = np.arange(6 * 4 * 5, dtype=np.uint8).reshape(6, 4, 5)
Y = np.array([0, 1, 2, 0, 1, 2])
IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def idx_folder(folder: Path, **replaced: bytes) -> Path:
    """Write a training pair; `images`, `labels`, `images_gz`, `test_images`, `test_labels` replace
    or add.
    """
    files = {
        "images": IMAGES,
        "labels": LABELS,
        "test_images": TEST_IMAGES,
        "test_labels": TEST_LABELS,
    }
    files["images_gz"] = IMAGES + ".gz"
    contents = {"images": idx_bytes(X), "labels": idx_bytes(Y)} | replaced
    if "images_gz" in contents:
        del contents["images"]
    for kind, content in contents.items():
        (folder / files[kind]).write_bytes(content)
    return folder


def npz_file(folder: Path, **replaced: Any) -> Path:
    """Write an npz with a training pair; a replacement of None drops the key."""
    arrays = {"x_train": X, "y_train": Y} | replaced
    path = folder / "own.npz"
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def with_pixel(value: float) -> np.ndarray:
    x = X.astype(float)
    x[2, 3, 1] = value
    return x


def truncated(path: Path) -> Path:
    return written(path, path.read_bytes()[:-40])


def zip_of_text(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", "not an array")
        archive.writestr("y_train.npy", "not an array")
    return path


def source(**replaced: Any) -> Source:
    arrays: dict[str, Any] = {
        "x_train": X,
        "y_train": Y,
        "x_test": X[:2],
        "y_test": Y[:2],
        "classes": 3,
    } | replaced
    return Source(name="own", **arrays)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("dot", ["-", "."])
def test_idx_spellings_with_and_without_a_test_pair(tmp_path: Path, suffix: str, dot: str) -> None:
    def write(stem: str, array: np.ndarray) -> None:
        content = idx_bytes(array)
        name = f"{stem}{dot}idx{array.ndim}-ubyte{suffix}"
        (tmp_path / name).write_bytes(gzip.compress(content) if suffix else content)

    write("train-images", X)
    write("train-labels", Y)
    alone = read_idx(tmp_path)
    np.testing.assert_array_equal(alone.x_train, X)
    np.testing.assert_array_equal(alone.y_train, Y)
    assert (len(alone.x_test), alone.classes, alone.mean_std) == (0, 3, None)

    write("t10k-images", X[:2])
    write("t10k-labels", Y[:2])
    both = read_idx(str(tmp_path), size=(2, 3))
    assert both.x_train.shape == (6, 2, 3) and both.x_test.shape == (2, 2, 3)
    np.testing.assert_array_equal(both.y_test, Y[:2])


@pytest.mark.parametrize("shape", [(6, 7), (6, 4, 5), (6, 4, 5, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float64])
def test_npz_round_trip(tmp_path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    x = np.random.RandomState(0).randint(0, 256, shape).astype(dtype)
    read = read_npz(npz_file(tmp_path, x_train=x, x_test=x[:2], y_test=Y[:2]))
    np.testing.assert_array_equal(read.x_train, x)
    np.testing.assert_array_equal(read.x_test, x[:2])
    assert (read.name, read.classes, read.x_train.dtype) == ("own", 3, dtype)
    assert read.split(3).train.x.shape == (3, *shape[1:])


def test_npz_is_resized_and_told_its_classes(tmp_path: Path) -> None:
    read = read_npz(npz_file(tmp_path), size=2, classes=7)
    assert read.x_train.shape == (6, 2, 2) and read.x_test.shape == (0, 2, 2)
    assert read.classes == 7


def test_indices_are_read_in_order(tmp_path: Path) -> None:
    path = written(tmp_path / "d.txt", "7\n\n  3 \r\n12\n")
    assert read_indices(path).tolist() == [7, 3, 12]


Case = tuple[Callable[[Path], object], list[str]]
BAD_ARRAYS: dict[str, Case] = {
    "label too large": (lambda _: source(classes=2), ["y_train[2] is 2", "0..1"]),
    "label negative": (
        lambda _: source(y_test=np.array([0, -4])),
        ["y_test[1] is -4", "from 0 up"],
    ),
    "labels not integers": (lambda _: source(y_train=Y + 0.5), ["y_train", "float64", "integers"]),
    "labels one-hot": (
        lambda _: source(y_train=np.eye(3, dtype=int)[Y]),
        ["y_train", "(6, 3)", "(n,)"],
    ),
    "pixel nan": (
        lambda _: source(x_train=with_pixel(np.nan)),
        ["x_train holds nan", "(2, 3, 1)", "finite"],
    ),
    "pixel inf": (lambda _: source(x_train=with_pixel(-np.inf)), ["x_train holds -inf", "finite"]),
    "pixel beyond float32": (
        lambda _: source(x_train=with_pixel(1e39)),
        ["1e+39", "within float32"],
    ),
    "pixels int64": (lambda _: source(x_train=X.astype(int)), ["int64", "uint8", "float32"]),
    "pixels flat": (lambda _: source(x_train=X[0, 0]), ["(5,)", "(n, features)"]),
    "pixels a list": (lambda _: source(x_train=X.tolist()), ["list", "numpy array"]),
    "no pixels": (lambda _: source(x_train=X[..., :0]), ["(6, 4, 0)", "no empty axis"]),
    "no examples": (
        lambda _: source(x_train=X[:0], y_train=Y[:0]),
        ["x_train has 0", "at least 1"],
    ),
    "lengths differ": (
        lambda _: source(y_train=Y[:5]),
        ["6 examples", "5 labels", "one label for each"],
    ),
    "test shape differs": (lambda _: source(x_test=X[:2, :3]), ["(3, 5)", "(4, 5)"]),
    "test type differs": (lambda _: source(x_test=X[:2] / 255), ["float64", "uint8"]),
    "one class": (lambda _: source(classes=1), ["classes", "from 2 to 65536", "got 1"]),
    "classes not an integer": (lambda _: source(classes=3.0), ["classes", "integer", "got 3.0"]),
    "std given as 0": (lambda _: source(mean_std=(0.5, 0.0)), ["(0.5, 0.0)", "positive std"]),
    "examples not float32": (
        lambda _: Examples(with_pixel(0), Y.astype(np.int32)),
        ["x of", "float64", "float32"],
    ),
    "examples of two lengths": (
        lambda _: Examples(X.astype(np.float32), Y[:4].astype(np.int32)),
        ["6 examples", "4 labels"],
    ),
}
BAD_SPLITS: dict[str, Case] = {
    "not a multiple": (lambda _: mnist16().split(505), ["505", "multiple", "10", "500 or 510"]),
    "less than one a class": (lambda _: mnist16().split(7), ["got 7", "ask for 10"]),
    "zero": (lambda _: mnist16().split(0), ["n_train", "at least 1", "got 0"]),
    "not an integer": (lambda _: mnist16().split(50.0), ["n_train", "integer", "50.0"]),  # type: ignore[arg-type]
    "a truth value": (lambda _: mnist16().split(True), ["n_train", "integer", "True"]),
    "class too small": (lambda _: mnist16().split(60_000), ["6000", "class 5 has 5421", "54210"]),
    "class absent": (lambda _: source(classes=4).split(4), ["class 3 has 0"]),
    "seed negative": (lambda _: source().split(3, seed=-1), ["seed", "4294967295", "got -1"]),
    "seed too large": (
        lambda _: source().split(seed=2**32),
        ["seed", "4294967295", "got 4294967296"],
    ),
    "both ways": (
        lambda _: source().split(3, indices=[1]),
        ["n_train = 3", "indices", "one of them"],
    ),
    "index twice": (lambda _: source().split(indices=[4, 1, 4]), ["4 2 times", "once"]),
    "index too large": (lambda _: source().split(indices=[1, 6]), ["hold 6", "0..5"]),
    "index negative": (lambda _: source().split(indices=[-1]), ["hold -1", "0..5"]),
    "no index": (lambda _: source().split(indices=[]), ["at least one", "(0,)"]),
    "indices not integers": (lambda _: source().split(indices=[0.0, 1.0]), ["integers", "float64"]),
    "indices ragged": (
        lambda _: source().split(indices=[[1], [2, 3]]),
        ["[[1], [2, 3]]", "list of positions"],
    ),
    "validation negative": (
        lambda _: source().split(n_validation=-2),
        ["n_validation", "at least 0", "-2"],
    ),
    "validation too large": (
        lambda _: source().split(3, n_validation=6),
        ["n_validation = 6", "at most 5"],
    ),
    "constant images": (
        lambda _: source(x_train=np.full((6, 3), 0.1), x_test=np.ones((2, 3))).split(3),
        ["standard deviation 0", "0.1", "positive"],
    ),
    "outlier leaves float32": (
        lambda _: source(x_train=X[:, 0] * 1e-9, x_test=np.full((2, 5), 1e38)).split(
            indices=[0, 1]
        ),
        ["1e+38", "finite"],
    ),
}
BAD_FILES: dict[str, Case] = {
    "idx no folder": (lambda p: read_idx(p / "nowhere"), ["nowhere", "no such folder", IMAGES]),
    "idx empty folder": (
        lambda p: read_idx(p),
        [IMAGES, IMAGES + ".gz", "train-images.idx3-ubyte"],
    ),
    "idx half a test pair": (
        lambda p: read_idx(idx_folder(p, test_images=idx_bytes(X))),
        [TEST_LABELS],
    ),
    "idx truncated": (
        lambda p: read_idx(idx_folder(p, images=idx_bytes(X)[:-1])),
        [IMAGES, "truncated", "119", "(6, 4, 5)", "120"],
    ),
    "idx trailing": (
        lambda p: read_idx(idx_folder(p, labels=idx_bytes(Y) + b"\0\0")),
        [LABELS, "trailing", "8 bytes", "exactly 6"],
    ),
    "idx short header": (
        lambda p: read_idx(idx_folder(p, images=idx_bytes(X)[:9])),
        ["9 bytes", "16"],
    ),
    "idx empty file": (lambda p: read_idx(idx_folder(p, images=b"")), ["none", "00000803"]),
    "idx wrong magic": (
        lambda p: read_idx(idx_folder(p, images=idx_bytes(Y))),
        ["00000801", "00000803"],
    ),
    "idx gz is no gz": (
        lambda p: read_idx(idx_folder(p, images_gz=idx_bytes(X))),
        [IMAGES + ".gz", "gzipped"],
    ),
    "idx gz cut": (
        lambda p: read_idx(idx_folder(p, images_gz=gzip.compress(idx_bytes(X))[:-9])),
        [IMAGES + ".gz", "complete"],
    ),
    "idx gz garbled": (
        lambda p: read_idx(
            idx_folder(p, images_gz=gzip.compress(idx_bytes(X))[:12] + b"\xff" * 30)
        ),
        [IMAGES + ".gz", "complete"],
    ),
    "idx lengths differ": (
        lambda p: read_idx(idx_folder(p, labels=idx_bytes(Y[:4]))),
        ["6 examples", "4 labels"],
    ),
    "idx no images": (
        lambda p: read_idx(idx_folder(p, images=idx_bytes(X[:0]), labels=idx_bytes(Y[:0]))),
        ["x_train has 0 examples", "at least 1"],
    ),
    "size zero": (lambda p: read_idx(idx_folder(p), size=0), ["size", "from 1 to 1024", "got 0"]),
    "size of three": (
        lambda p: read_idx(idx_folder(p), size=(1, 2, 3)),  # type: ignore[arg-type]
        ["(1, 2, 3)", "(height, width)"],
    ),
    "npz missing": (lambda p: read_npz(p / "none.npz"), ["none.npz", "no such file", "x_train"]),
    "npz a folder": (lambda p: read_npz(p), ["no such file"]),
    "npz not a zip": (
        lambda p: read_npz(written(p / "a.npz", "text")),
        ["a.npz", "not an npz", "x_train"],
    ),
    "npz cut": (lambda p: read_npz(truncated(npz_file(p))), ["own.npz", "npz"]),
    "npz of text": (lambda p: read_npz(zip_of_text(p / "a.npz")), ["x_train", "a.npz", "array"]),
    "npz key unknown": (
        lambda p: read_npz(npz_file(p, x_valid=X)),
        ["'x_valid'", "x_train", "y_test"],
    ),
    "npz key missing": (
        lambda p: read_npz(npz_file(p, y_train=None)),
        ["lacks", "'y_train'", "x_test"],
    ),
    "npz half a test pair": (lambda p: read_npz(npz_file(p, x_test=X)), ["lacks", "'y_test'"]),
    "npz objects": (
        lambda p: read_npz(npz_file(p, x_train=np.array([{}, None], object))),
        ["x_train", "own.npz", "not of objects"],
    ),
    "npz a number": (
        lambda p: read_npz(npz_file(p, y_train=np.array(3))),
        ["y_train", "not an array of"],
    ),
    "npz label negative": (
        lambda p: read_npz(npz_file(p, y_train=-Y)),
        ["y_train[1] is -1", "from 0 up"],
    ),
    "npz one class": (
        lambda p: read_npz(npz_file(p, y_train=0 * Y)),
        ["classes", "from 2", "got 1"],
    ),
    "npz labels not integers": (
        lambda p: read_npz(npz_file(p, y_train=Y / 2)),
        ["y_train", "float64"],
    ),
    "npz label far too large": (
        lambda p: read_npz(npz_file(p, y_train=Y + 10**12)),
        ["1000000000003", "65536"],
    ),
    "npz features resized": (
        lambda p: read_npz(npz_file(p, x_train=X[:, 0]), size=16),
        ["(6, 5)", "16 x 16", "(n, height, width"],
    ),
    "indices missing": (
        lambda p: read_indices(p / "none.txt"),
        ["none.txt", "one position a line"],
    ),
    "indices a word": (
        lambda p: read_indices(written(p / "d", "3\nfour\n")),
        ["line 2", "'four'", "integer"],
    ),
    "indices negative": (
        lambda p: read_indices(written(p / "d", "-3\n")),
        ["line 1", "'-3'", "non-negative"],
    ),
    "indices too long": (lambda p: read_indices(written(p / "d", "9" * 5000)), ["line 1", "'9999"]),
    "indices empty": (
        lambda p: read_indices(written(p / "d", "\n")),
        ["0 positions", "at least 1"],
    ),
    "indices not text": (
        lambda p: read_indices(written(p / "d", b"\xff\xfe")),
        ["cannot read", "text file"],
    ),
}
BAD_INPUTS = BAD_ARRAYS | BAD_SPLITS | BAD_FILES


@pytest.mark.parametrize(("attempt", "named"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_bad_input_is_named_with_what_is_allowed(
    tmp_path: Path, attempt: Callable[[Path], object], named: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        attempt(tmp_path)
    message = str(caught.value)
    assert [fragment for fragment in named if fragment not in message] == [], message
    assert "\n" not in message


def test_a_pickle_in_an_npz_is_never_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[Callable, tuple[Path]]:
            return Path.touch, (ran,)

    with pytest.raises(DataError, match="not of objects"):
        read_npz(npz_file(tmp_path, x_train=np.array([Payload()], object)))
    assert not ran.exists()
