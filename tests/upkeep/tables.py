"""Tables of several fragments on every kind of catalog on disk, and what lies in their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import mooring

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.table import Table

__all__ = [
    "KINDS",
    "USUAL_KINDS",
    "home",
    "make_table",
    "numbers",
    "open_catalog",
    "unnamed_files",
]

KINDS = ("listing", "manifest", "metastore")
# The first two differ in how names are found, which most of these tests do not touch.
USUAL_KINDS = (pytest.param("listing", marks=pytest.mark.interop), *KINDS[1:])


def open_catalog(kind: str, root: Path | str, **options: object) -> tuple[Catalog, str]:
    """Open a catalog of a kind; return it and a name for a table in it."""
    if kind == "listing":
        return mooring.connect(root, manifest_enabled=False, **options), "ships"
    catalog = mooring.connect(f"metastore+{root}" if kind == "metastore" else root, **options)
    catalog.create_namespace("ns", mode="exist_ok")
    return catalog, "ns$ships"


def numbers(start: int, stop: int) -> pa.Table:
    """Return rows: `id`, and `x`, which follows from it."""
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "x": ids / 2})


def make_table(catalog: Catalog, name: str, *, parts: int = 4, rows: int = 100) -> Table:
    """Make a table of so many fragments with so many rows each."""
    table = catalog.create_table(name, numbers(0, rows))
    for part in range(1, parts):
        table.insert(numbers(part * rows, (part + 1) * rows))
    return table


def home(table: Table) -> Path:
    """Return the directory of a table on disk."""
    return Path(table.location.removeprefix("file://"))


def unnamed_files(table: Table) -> set[str]:
    """Return what lies in a table's data and indexes that no version of it names, and notes."""
    named: set[str] = set()
    for record in table.versions():
        dataset = table.to_lance(record.version)
        named |= {file.path for one in dataset.get_fragments() for file in one.metadata.files}
        named |= {part.uuid for one in dataset.describe_indices() for part in one.segments}
    above = home(table)
    lying = {path.name for folder in ("data", "_indices") for path in (above / folder).glob("*")}
    return (lying - named) | {str(path) for path in (above / "_pending").rglob("*")}
