"""Listing many tables: beside pylance's namespace and beside a bare scan of the directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lance_namespace import ListTablesRequest

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import fill, open_pylance, workspace
from bench.sections import Section
from bench.timing import time_once, time_rounds
from mooring.directory.migration import Migration

if TYPE_CHECKING:
    from pathlib import Path

    from lance_namespace import LanceNamespace

    from mooring.catalog import Catalog

__all__ = ["SIZES", "run"]

# Tables and rounds, by whether it should be quick.
SIZES = {True: (1_000, 5), False: (10_000, 9)}


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure listings of a directory before and after it is adopted and migrated."""
    count, rounds = SIZES[quick]
    with workspace() as space:
        root = space / "lake"
        names = fill(root, count)
        never = groups.measure("never adopted", lambda: _list_unadopted(root, names, rounds))
        adoption_s = time_once(lambda: _open_listing(root).backend.initialize(adopt=True))
        adopted = groups.measure("adopted", lambda: _list_adopted(root, names, rounds))
        default = groups.measure("by default", lambda: _list_by_default(root, names, rounds))
        migration_s = time_once(lambda: Migration(mooring.connect(root).backend).run())
        migrated = groups.measure("migrated", lambda: _list_migrated(root, names, rounds))
        trash = groups.measure("trash", lambda: _list_with_trash(root, names, rounds))
        grown = groups.measure("growth", lambda: _list_growing(space, count, rounds))
    once = [
        Figure(f"adopt {count:,} tables, once", adoption_s),
        Figure(f"migrate {count:,} tables, once", migration_s, at_most=60),
    ]
    once = groups.measure("once", lambda: once)
    return Section(
        f"Listing {count:,} tables on disk",
        [*adopted, *never, *default, *migrated, *trash, *once, *grown],
        [
            "the bare scan is [entry.name for entry in os.scandir(root)]",
            "list_tables through LanceNamespace is the same request to mooring and to pylance",
            "by default a manifest is looked for; else both are told that there is none",
        ],
    )


def _open_listing(root: Path) -> Catalog:
    """Open a directory without a manifest."""
    return mooring.connect(root, manifest_enabled=False)


def _list_unadopted(root: Path, names: list[str], rounds: int) -> list[Figure]:
    catalogs = {"listing": _open_listing(root), "default": mooring.connect(root)}
    for catalog in catalogs.values():
        assert catalog.list_tables() == names
    calls = {kind: catalog.list_tables for kind, catalog in catalogs.items()}
    took = time_rounds({**calls, "scan": lambda: _scan(root)}, rounds=rounds)
    beside = {"beside": "bare scan", "theirs": took["scan"], "within": 8}
    what = "Catalog.list_tables, never adopted"
    return [
        Figure(what, took["listing"], **beside),
        Figure(f"{what}, by default", took["default"], **beside),
    ]


def _list_adopted(root: Path, names: list[str], rounds: int) -> list[Figure]:
    catalog = _open_listing(root)
    ours = mooring.DirectoryNamespace(root=str(root), manifest_enabled="false")
    took = _time_listings(root, names, rounds, (catalog, ours, open_pylance(root)))
    through, direct = "LanceNamespace.list_tables, adopted", "Catalog.list_tables, adopted"
    return [
        Figure(
            through,
            took["namespace"],
            beside="pylance",
            theirs=took["pylance"],
            at_least=30,
            is_telling=True,
        ),
        Figure(direct, took["catalog"], beside="bare scan", theirs=took["scan"], within=3),
        Figure(through, took["namespace"], beside="bare scan", theirs=took["scan"], within=3),
    ]


def _list_by_default(root: Path, names: list[str], rounds: int) -> list[Figure]:
    """List as users do who set nothing, in a directory that has no manifest yet."""
    what = "list_tables, adopted, by default"
    return _list_as_users_do(root, names, rounds, what, within=3)


def _list_migrated(root: Path, names: list[str], rounds: int) -> list[Figure]:
    """List again with all tables in a manifest, too: the manifest and the listing are merged."""
    return _list_as_users_do(root, names, rounds, "list_tables, migrated, by default")


def _list_as_users_do(
    root: Path, names: list[str], rounds: int, what: str, *, within: float | None = None
) -> list[Figure]:
    catalog = mooring.connect(root)
    ours = mooring.DirectoryNamespace(root=str(root))
    theirs = open_pylance(root, manifest=True)
    took = _time_listings(root, names, rounds, (catalog, ours, theirs))
    scan = {"beside": "bare scan", "theirs": took["scan"], "within": within}
    return [
        Figure(
            f"LanceNamespace.{what}", took["namespace"], beside="pylance", theirs=took["pylance"]
        ),
        Figure(f"Catalog.{what}", took["catalog"], **scan),
    ]


def _time_listings(
    root: Path,
    names: list[str],
    rounds: int,
    opened: tuple[Catalog, LanceNamespace, LanceNamespace],
) -> dict[str, list[float]]:
    """Time a catalog, its namespace, pylance's and a bare scan, after a look at their answers."""
    catalog, ours, theirs = opened
    everything = ListTablesRequest(id=[])
    assert catalog.list_tables() == names
    assert ours.list_tables(everything).tables == names
    assert sorted(theirs.list_tables(everything).tables) == names
    return time_rounds(
        {
            "catalog": catalog.list_tables,
            "scan": lambda: _scan(root),
            "namespace": lambda: ours.list_tables(everything),
            "pylance": lambda: theirs.list_tables(everything),
        },
        rounds=rounds,
        warm=False,
    )


def _list_growing(space: Path, most: int, rounds: int) -> list[Curve]:
    """List adopted directories of several sizes."""
    taken: dict[str, list[tuple[float, list[float]]]] = {OURS: [], "pylance": [], "bare scan": []}
    for count in (most // 100, most // 10, most):
        root = space / f"grown-{count}"
        names = fill(root, count)
        catalog = _open_listing(root)
        catalog.backend.initialize(adopt=True)
        ours = mooring.DirectoryNamespace(root=str(root), manifest_enabled="false")
        took = _time_listings(root, names, rounds, (catalog, ours, open_pylance(root)))
        for name, key in ((OURS, "namespace"), ("pylance", "pylance"), ("bare scan", "scan")):
            taken[name].append((count, took[key]))
    lines = tuple(Line(name, tuple(points)) for name, points in taken.items())
    return [Curve("List all tables on disk", "catalog size", "tables", lines)]


def _list_with_trash(root: Path, names: list[str], rounds: int) -> list[Figure]:
    """List again with a tenth of the tables dropped: their decisions lie in the same directory."""
    catalog = _open_listing(root)
    for name in names[::10]:
        catalog.drop_table(name)
    live = [name for index, name in enumerate(names) if index % 10]
    default = mooring.connect(root)
    assert catalog.list_tables() == default.list_tables() == live
    took = time_rounds(
        {
            "live": catalog.list_tables,
            "default": default.list_tables,
            "trash": catalog.list_purgable_tables,
            "scan": lambda: _scan(root),
        },
        rounds=rounds,
    )
    beside = {"beside": "bare scan", "theirs": took["scan"]}
    what = "Catalog.list_tables, a tenth of them dropped"
    return [
        Figure(what, took["live"], **beside),
        Figure(f"{what}, migrated, by default", took["default"], **beside),
        Figure("Catalog.list_purgable_tables, the same catalog", took["trash"], **beside),
    ]


def _scan(root: Path) -> list[str]:
    with os.scandir(root) as entries:
        return [entry.name for entry in entries]
