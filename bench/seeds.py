"""Manifests with many entries, the same for Mooring and for pylance, each on a disk of its own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance_namespace as spec
from lance.namespace import DirectoryNamespace

import mooring
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NAMESPACES", "Pair", "seed_pair", "table_id"]

NAMESPACES = 10
# Enough that a catalog is tidied once more.
_CHANGES = 24


@dataclass(frozen=True)
class Pair:
    """Two catalogs with the same entries.

    Attributes:
        entries: How many they had at first.
        ours: The root of the one that Mooring changes.
        theirs: The root of the one that pylance changes.
    """

    entries: int
    ours: Path
    theirs: Path


def table_id(number: int) -> list[str]:
    """Name a table; one namespace after the other gets one."""
    return [f"ns{number % NAMESPACES}", f"t{number:06d}"]


def seed_pair(space: Path, name: str, entries: int) -> Pair:
    """Make two catalogs of so many namespaces and tables.

    Each has the layout that its program leaves after some changes: pylance rewrites everything
    at every change, and Mooring tidies every few changes. The tables have no directories.
    """
    pair = Pair(entries, space / f"{name}-mooring", space / f"{name}-pylance")
    catalog = mooring.connect(pair.ours)
    catalog.create_namespace("ns0")
    rows = _rows(entries)
    catalog.backend.manifest.change(lambda draft: [draft.put(row) for row in rows])
    shutil.copytree(pair.ours, pair.theirs)
    for turn in range(_CHANGES):
        catalog.update_namespace("ns0", {"turn": str(turn)})
    _rewrite(pair.theirs)
    return pair


def _rows(entries: int) -> tuple[ManifestRow, ...]:
    """Return what there is beside the first namespace."""
    namespaces = [ManifestRow(f"ns{number}", NAMESPACE) for number in range(1, NAMESPACES)]
    tables = []
    for number in range(entries - NAMESPACES):
        key = "$".join(table_id(number))
        tables.append(ManifestRow(key, TABLE, f"{number:08x}_{key}"))
    return (*namespaces, *tables)


def _rewrite(root: Path) -> None:
    """Have pylance write everything anew, by a change and back again."""
    namespace = DirectoryNamespace(root=str(root))
    namespace.create_namespace(spec.CreateNamespaceRequest(id=["passing"]))
    namespace.drop_namespace(spec.DropNamespaceRequest(id=["passing"]))
