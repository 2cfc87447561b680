"""Named arrays as the bytes of an npz archive, and back; nothing is pickled or compressed."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tempernet.errors import StoreError


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as an npz archive, uncompressed."""
    buffer = io.BytesIO()
    members = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(buffer, allow_pickle=False, **members)
    return buffer.getvalue()


_DAMAGE = (
    ValueError,
    EOFError,
    KeyError,
    zipfile.BadZipFile,
    RuntimeError,
    SyntaxError,
    struct.error,
)
"""What reading an archive raises when it is none, in part or wholly."""


def unpack(path: Path, content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an npz archive that `pack` made, none of them larger than what is there of it.

    Pickled objects and compressed members are refused, before anything is allocated.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > len(content):
                raise ValueError("its members claim more bytes than it has")
            return {
                member.filename.removesuffix(".npy"): _member(archive, member) for member in members
            }
    except _DAMAGE as error:
        raise StoreError(f"{path} is damaged: it is not an archive of arrays ({error})") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array; its header must fit the bytes that follow it."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{member.filename} is compressed")
    data = io.BytesIO(archive.read(member))
    if np.lib.format.read_magic(data) != (1, 0):
        raise ValueError(f"{member.filename} is no npy file of version 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(data)
    if dtype.kind not in "biuf":
        raise ValueError(f"{member.filename} holds {dtype}, not numbers")
    left = member.file_size - data.tell()
    # Python's integers, which do not overflow.
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claimed != left:
        raise ValueError(f"{member.filename} claims {claimed} bytes and has {left}")
    array = np.frombuffer(data.getvalue(), dtype, offset=data.tell())
    return array.reshape(shape, order="F" if fortran else "C").copy()
