"""Figures as files: SVG and PNG, whole or not there, the same bytes for the same run."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from tempernet.errors import StoreError
from tempernet.report.figures.sheet import print_style
from tempernet.store.files import write_atomic

DPI = 160
_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
"""What would change from day to day or from version to version."""
Figures = Mapping[str, Callable[[], Figure | None]]
"""What makes each figure, by its name."""


def draw(figures: Figures, folder: Path) -> list[Path]:
    """Draw figures into a folder; returns the files.

    Args:
        figures: functions that make one, by its name; those that return None have nothing to show.
        folder: where the files go; it is made if need be.
    """
    written: list[Path] = []
    for name, make_fn in figures.items():
        figure = make_fn()
        if figure is not None:
            written += save(figure, folder / name)
    return written


def save(figure: Figure, path: Path) -> list[Path]:
    """Write `path`.svg and `path`.png, making the folder if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {path.parent}: {error.strerror}; choose another with --out"
        ) from error
    written = []
    for kind, metadata in _METADATA.items():
        buffer = io.BytesIO()
        with print_style():
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
        file = path.with_name(f"{path.name}.{kind}")
        write_atomic(file, buffer.getvalue())
        written.append(file)
    return written
