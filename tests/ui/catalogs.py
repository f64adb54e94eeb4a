"""Catalogs of each kind for the tests of pages, with a few tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import mooring

if TYPE_CHECKING:
    from pathlib import Path

    from mooring.catalog import Catalog

__all__ = ["KINDS", "NESTED", "ROWS", "make", "open_kind"]

PLAIN, MANIFEST, COMPAT, METASTORE = "plain", "manifest", "compat", "metastore"
KINDS = (PLAIN, MANIFEST, COMPAT, METASTORE)
# Those that have namespaces.
NESTED = (MANIFEST, COMPAT, METASTORE)
ROWS = pa.table({"n": [1, 2, 3]})
_FLAGS = {
    PLAIN: {"manifest_enabled": False},
    MANIFEST: {"manifest_enabled": True, "dir_listing_enabled": False},
    COMPAT: {"manifest_enabled": True, "dir_listing_enabled": True},
    METASTORE: {},
}


def open_kind(kind: str, where: Path, **options: object) -> Catalog:
    """Open a catalog of a kind."""
    scheme = "metastore+" if kind == METASTORE else ""
    return mooring.connect(f"{scheme}{where}", **{**_FLAGS[kind], **options})


def make(catalog: Catalog, *names: str) -> None:
    """Create tables, and the namespaces that they are in."""
    for name in names:
        around = name.split("$")[:-1] if catalog.backend.levels != 1 else []
        for level in range(len(around)):
            catalog.create_namespace(list(around[: level + 1]), mode="exist_ok")
        catalog.create_table(name, ROWS)
