"""Directories of real Lance tables, made cheaply: one is written, the others are links to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import lance_namespace
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TINY", "fill", "open_pylance", "workspace"]

_LISTING_ONLY = {"manifest_enabled": "false"}
TINY = pa.table({"n": pa.array([1, 2, 3], pa.int64())})


@contextmanager
def workspace() -> Iterator[Path]:
    """Give a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mooring-bench-") as path:
        yield Path(path)


def fill(root: Path, count: int) -> list[str]:
    """Put tables into a directory, without any catalog, and return their names."""
    root.mkdir(parents=True, exist_ok=True)
    names = [f"t{number:05d}" for number in range(count)]
    template = root.with_name(f"{root.name}-template")
    lance.write_dataset(TINY, template)
    layout = [
        (str(Path(directory).relative_to(template)), files)
        for directory, _, files in os.walk(template)
    ]
    for name in names:
        _link_table(template, root / f"{name}.lance", layout)
    return names


def _link_table(template: Path, table: Path, layout: list[tuple[str, list[str]]]) -> None:
    for directory, files in layout:
        target = table / directory
        target.mkdir()
        for file in files:
            _link(template / directory / file, target / file)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # A file system without links, or at the end of how many it gives one file.
        shutil.copyfile(source, target)


def open_pylance(root: Path, *, manifest: bool = False) -> lance_namespace.LanceNamespace:
    """Open a directory with pylance's own namespace: without a manifest, or by its defaults."""
    properties = {"root": str(root)}
    return lance_namespace.connect("dir", properties | ({} if manifest else _LISTING_ONLY))
