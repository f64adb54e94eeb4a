"""Listing many tables: beside pylance's namespace and beside a bare scan of the directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lance_namespace import ListTablesRequest

import mooring
from bench.lakes import fill, open_pylance, workspace
from bench.report import Figure, Section
from bench.timing import time_once, time_pairs

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SIZES", "run"]

# Tables and rounds, by whether it should be quick.
SIZES = {True: (1_000, 5), False: (10_000, 9)}


def run(*, quick: bool) -> Section:
    """Measure listings of a directory before and after it is adopted."""
    count, rounds = SIZES[quick]
    with workspace() as space:
        root = space / "lake"
        names = fill(root, count)
        never = _list_unadopted(root, names, rounds)
        adoption_s = time_once(lambda: mooring.connect(root).backend.initialize(adopt=True))
        adopted = _list_adopted(root, names, rounds)
        trash = _list_with_trash(root, names, rounds)
    return Section(
        f"Listing {count:,} tables on disk",
        [*adopted, *never, *trash, Figure(f"adopt {count:,} tables, once", adoption_s)],
        [
            "the bare scan is [entry.name for entry in os.scandir(root)]",
            "list_tables through LanceNamespace is the same request to mooring and to pylance",
        ],
    )


def _list_unadopted(root: Path, names: list[str], rounds: int) -> list[Figure]:
    catalog = mooring.connect(root)
    assert catalog.list_tables() == names
    took = time_pairs({"mooring": catalog.list_tables, "scan": lambda: _scan(root)}, rounds=rounds)
    what = "Catalog.list_tables, never adopted"
    return [Figure(what, took["mooring"], beside="bare scan", theirs=took["scan"], within=8)]


def _list_adopted(root: Path, names: list[str], rounds: int) -> list[Figure]:
    catalog = mooring.connect(root)
    ours = mooring.DirectoryNamespace(root=str(root))
    theirs = open_pylance(root)
    everything = ListTablesRequest(id=[])
    assert catalog.list_tables() == names
    assert ours.list_tables(everything).tables == names
    assert sorted(theirs.list_tables(everything).tables) == names
    took = time_pairs(
        {
            "catalog": catalog.list_tables,
            "scan": lambda: _scan(root),
            "namespace": lambda: ours.list_tables(everything),
            "pylance": lambda: theirs.list_tables(everything),
        },
        rounds=rounds,
        warm=False,
    )
    through, direct = "LanceNamespace.list_tables, adopted", "Catalog.list_tables, adopted"
    return [
        Figure(through, took["namespace"], beside="pylance", theirs=took["pylance"], at_least=30),
        Figure(direct, took["catalog"], beside="bare scan", theirs=took["scan"], within=3),
        Figure(through, took["namespace"], beside="bare scan", theirs=took["scan"], within=3),
    ]


def _list_with_trash(root: Path, names: list[str], rounds: int) -> list[Figure]:
    """List again with a tenth of the tables dropped: their decisions lie in the same directory."""
    catalog = mooring.connect(root)
    for name in names[::10]:
        catalog.drop_table(name)
    live = [name for index, name in enumerate(names) if index % 10]
    assert catalog.list_tables() == live
    took = time_pairs(
        {
            "live": catalog.list_tables,
            "trash": catalog.list_purgable_tables,
            "scan": lambda: _scan(root),
        },
        rounds=rounds,
    )
    beside = {"beside": "bare scan", "theirs": took["scan"]}
    return [
        Figure("Catalog.list_tables, a tenth of them dropped", took["live"], **beside),
        Figure("Catalog.list_purgable_tables, the same catalog", took["trash"], **beside),
    ]


def _scan(root: Path) -> list[str]:
    with os.scandir(root) as entries:
        return [entry.name for entry in entries]
