"""Runs for the tests of this folder: the command in a process, and whether two runs are the same to
the bit.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest

from tempernet.cli import app as cli
from tempernet.runs.status import problems
from tempernet.store import RunFolder, files

PROGRAM = str(Path(sys.executable).parent / "tempernet")


def command(
    *arguments: object, timeout: float = 300, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """`tempernet ARGUMENTS`, as installed beside this Python; `before` is a command that ends by
    becoming it.
    """
    given = [*before, PROGRAM, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=timeout, check=False)


def at_each_step(hook: Callable[[Path, str], None] = lambda path, step: None) -> None:
    """Call this at each step of a write from now on; nothing without one."""
    pytest.MonkeyPatch().setattr(files, "before_step", hook)


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def here(*arguments: object) -> Ended:
    """`tempernet ARGUMENTS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["tempernet", *map(str, arguments)])
        # JAX has started, with as many devices as it has.
        patch.setenv("TEMPERNET_DEVICES", str(jax.local_device_count()))
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return Ended(int(str(ended.value.code)), out.getvalue(), err.getvalue())


def options(settings: Sequence[str]) -> list[str]:
    """Settings as options of the command."""
    return [text for setting in settings for text in ("--set", setting)]


def everything(path: Path) -> dict[str, np.ndarray]:
    """All that a run recorded, and where it ended."""
    folder = RunFolder(path)
    found: dict[str, np.ndarray] = {}
    for records in (folder.records, folder.weights):
        for series in records.series:
            found |= {f"{series}.{name}": array for name, array in records.load(series).items()}
    checkpoint, _ = folder.checkpoints.latest()
    assert checkpoint is not None and checkpoint.meta["finished"]
    return found | {f"end.{name}": array for name, array in checkpoint.arrays.items()}


def assert_same(path: Path, other: Path) -> None:
    """Two finished runs have the same bits, and the first folder is whole."""
    found, wanted = everything(path), everything(other)
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array), name
    assert problems(path) == []
