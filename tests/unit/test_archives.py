"""Archives of arrays come back as they were, or are refused before anything is allocated."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from disk import HUGE, one_array, pickled

from tempernet.errors import StoreError
from tempernet.store import archives


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"nonsense",
        pickled(),
        one_array(),
        archives.pack({"x": np.arange(1000)})[:-50],
        archives.pack({"x": np.arange(9)})[:100],
    ],
)
def test_what_is_no_archive_of_arrays_is_refused(content: bytes) -> None:
    with pytest.raises(StoreError, match=r"x\.npz is damaged: it is not an archive of arrays"):
        archives.unpack(Path("x.npz"), content)


def test_arrays_come_back_as_they_were() -> None:
    arrays: dict[str, np.ndarray] = {
        "a/b": np.array([1, np.nan], np.float32),
        "empty": np.zeros((0, 3), np.int8),
        "scalar": np.array(2**60),
        "flags": np.array([True, False]),
    }
    back = archives.unpack(Path("x"), archives.pack(arrays))
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype and back[name].shape == array.shape


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def claim(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"") -> bytes:
    """An npy file whose header claims a shape and a type, with other content."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + content


def overlapping() -> bytes:
    """An archive whose directory names the same megabyte of zeros a thousand times."""
    whole = archive(("x.npy", claim((2**17,), content=bytes(2**20))))
    start = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entry, tail = whole[start:end], bytearray(whole[end:])
    tail[8:12] = struct.pack("<HH", 1000, 1000)
    tail[12:16] = struct.pack("<I", 1000 * len(entry))
    return whole[:start] + 1000 * entry + bytes(tail)


BOMBS = {
    "a huge array": archive(("x.npy", claim((HUGE,)))),
    "sizes whose product overflows": archive(("x.npy", claim((2**32, 2**32), content=bytes(8)))),
    "a negative size": archive(("x.npy", claim((-1,), content=bytes(8)))),
    "too few bytes": archive(("x.npy", claim((3,), content=bytes(16)))),
    "too many bytes": archive(("x.npy", claim((3,), content=bytes(32)))),
    "objects": archive(("x.npy", claim((1,), "|O", content=bytes(8)))),
    "a subarray": archive(("x.npy", claim((1,), "|V8", content=bytes(8)))),
    "a bomb of zeros": archive(
        ("x.npy", claim((2**24,), content=bytes(2**27))), compression=zipfile.ZIP_DEFLATED
    ),
    "a compressed array": archive(
        ("x.npy", claim((3,), content=bytes(24))), compression=zipfile.ZIP_BZIP2
    ),
    "the same bytes a thousand times": overlapping(),
    "no array": archive(("x.npy", b"nonsense")),
    "a header without an end": archive(("x.npy", b"\x93NUMPY\x01\x00\xff\xff{")),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_claims_more_than_it_has_is_refused_before_it_is_allocated(bomb: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=r"x\.npz is damaged: it is not an archive of arrays"):
            archives.unpack(Path("x.npz"), BOMBS[bomb])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**22


def test_an_archive_with_any_byte_changed_is_read_or_refused() -> None:
    content = archives.pack({"a": np.arange(5), "b": np.zeros((2, 3), np.float32)})
    rng = np.random.default_rng(0)
    for _ in range(3000):
        changed = bytearray(content)
        for position in rng.integers(len(content), size=rng.integers(1, 4)):
            changed[position] = rng.integers(256)
        try:
            found = archives.unpack(Path("x.npz"), bytes(changed))
        except StoreError:
            continue
        assert sum(array.nbytes for array in found.values()) <= len(content)


def test_objects_are_not_written() -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        archives.pack({"x": np.array([{}], dtype=object)})
