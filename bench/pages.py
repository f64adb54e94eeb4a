"""Pages of large catalogs: how long the server takes for each, once all is in memory and before.

A hundred thousand tables in two hundred namespaces are put into the catalog at once. Of most there
is nothing but the name; those that are opened lie in the root, or in the last namespace.
"""

from __future__ import annotations

import gc
import resource
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.ui.site import Site

import mooring
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import TINY, fill, workspace
from bench.sections import Section
from bench.timing import time_once
from mooring.catalog import Catalog
from mooring.identifiers import ObjectId
from mooring.metastore.backend import MetastoreBackend
from mooring.metastore.lance_table import create_table, locator_of
from mooring.metastore.model import Namespace
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.server.background_settings import BackgroundSettings
from mooring.server.settings import ServerSettings
from mooring.store.local import LocalStore
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.sections import Found
    from mooring.metastore.transaction import Transaction

__all__ = ["run"]

# Tables, by whether it is quick, and how often each page is asked for.
_SIZES = {True: (2_000, 10), False: (100_000, 100)}
_NAMESPACES = 200
_REAL = 300
_A_TRANSACTION = 10_000
_TARGET_S = 0.150
_ORDINARY_S = 0.100
_PAGES = {
    "the root, with the tree": "browse",
    "a namespace": "namespaces/ns007/browse",
    "a namespace, sorted by rows": "namespaces/ns007/browse?sort=rows&order=desc",
    "a part of the tree": "tree.json",
    "search: one letter that all names have": "search?q=s",
    "search: the same while typing": "search.json?q=s&limit=10",
    "search: one table": "search?q=events_000777",
    "search: a property of half of the tables": "search?q=lake",
    "search: three words": "search?q=ns007+lake+7",
    "search: nothing to find": "search?q=no-such-thing",
    "the trash": "trash",
}
_TABLE_PAGE = "a table"
_QUIET = ServerSettings(background=BackgroundSettings(survey=False))


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure the pages of catalogs of several kinds."""
    tables, rounds = _SIZES[quick]
    labels = (f"{tables:,} tables", f"{tables:,} tables in a metastore")
    figures: list[Found] = []
    with workspace() as space:
        if groups.wants("small"):
            small = _fill_manifest(space / "small", 300)
            figures += groups.measure(
                "small",
                lambda: _measure("300 tables", small, "t00000", rounds, target_s=_ORDINARY_S),
            )
        if groups.wants("large", "survey"):
            large = _fill_manifest(space / "manifest", tables)
            figures += groups.measure("large", lambda: _measure(labels[0], large, "t00000", rounds))
            figures += groups.measure("survey", lambda: _beside_survey(large, rounds))
        if groups.wants("metastore"):
            store = _fill_metastore(space / "metastore", tables)
            figures += groups.measure(
                "metastore", lambda: _measure(labels[1], store, "real$t", rounds)
            )
    return Section(
        f"Pages of catalogs of up to {tables:,} tables",
        figures,
        [
            "the whole way through the application in one process, client and server together",
            "the median of all requests, and beside it the slowest but one in a hundred",
            "the first page takes the first look at the catalog; all others are from memory",
            "memory is what the process grew by from an open catalog to after the last page",
        ],
    )


# -- catalogs --------------------------------------------------------------------------------------


def _names(tables: int) -> Mapping[ObjectId, dict[str, str]]:
    """Name tables, with their properties."""
    return {
        ObjectId((f"ns{number % _NAMESPACES:03d}", f"events_{number:06d}")): (
            {"description": f"table {number} of the lake"} if number % 2 else {}
        )
        for number in range(tables)
    }


def _fill_manifest(root: Path, tables: int) -> Catalog:
    fill(root, _REAL)
    catalog = mooring.connect(root)
    catalog.create_namespace("ns000")
    rows = [ManifestRow(f"ns{number:03d}", NAMESPACE) for number in range(1, _NAMESPACES)]
    for number, (one, kept) in enumerate(_names(tables).items()):
        text = f'{{"description":"{kept["description"]}"}}' if kept else None
        rows.append(ManifestRow(str(one), TABLE, f"{number:08x}_{one}", text))
    catalog.backend.manifest.change(lambda draft: [draft.put(row) for row in rows])
    return catalog


def _fill_metastore(root: Path, tables: int) -> Catalog:
    """Make a metastore without waiting for the disk, some tables in each transaction."""
    home = Home(LocalStore(root, durable=False), author="bench", kind=METASTORE)
    backend = MetastoreBackend(home)
    writer = Catalog(backend, f"metastore+{root}")
    writer.create_namespace("real")
    writer.create_table("real$t", TINY)
    named = list(_names(tables).items())

    def add_namespaces(txn: Transaction) -> None:
        for number in range(_NAMESPACES):
            txn.create(locator_of(ObjectId((f"ns{number:03d}",))), Namespace())

    def add_tables(txn: Transaction, start: int) -> None:
        for number, (one, kept) in enumerate(named[start : start + _A_TRANSACTION], start):
            create_table(txn, locator_of(one), kept, f"_tables/{number:032x}.lance")

    backend.metastore.run(add_namespaces)
    for start in range(0, tables, _A_TRANSACTION):
        backend.metastore.run(lambda txn, start=start: add_tables(txn, start))
        print(f"  {start + _A_TRANSACTION:,} tables in the metastore", file=sys.stderr)
    return mooring.connect(f"metastore+{root}")


# -- pages -----------------------------------------------------------------------------------------


def _measure(
    label: str, catalog: Catalog, table: str, rounds: int, *, target_s: float = _TARGET_S
) -> list[Figure]:
    gc.collect()
    before_mib = _memory_mib()
    with Site(catalog, _QUIET) as site:
        first = time_once(lambda: site.page("browse"))
        found = [Figure(f"{label}: the first page", first)]
        pages = {**_PAGES, _TABLE_PAGE: f"tables/{quote(table, safe='')}/overview"}
        for what, path in pages.items():
            found.append(_figure(f"{label}: {what}", _times(site, path, rounds), target_s))
        found.append(_after_change(label, site, catalog))
    grown = _memory_mib() - before_mib
    return [*found, Figure(f"{label}: memory, MiB", round(grown), kind="count")]


def _times(site: Site, path: str, rounds: int) -> list[float]:
    def ask() -> None:
        response = site.get(path)
        assert response.status_code == 200, (path, response.status_code)

    ask()
    return [time_once(ask) for _ in range(rounds)]


def _figure(what: str, took: list[float], target_s: float) -> Figure:
    slowest = sorted(took)[-1 - len(took) // 100]
    detail = f"p99 {slowest * 1e3:,.1f} ms"
    return Figure(what, took, at_most=target_s, detail=detail)


def _after_change(label: str, site: Site, catalog: Catalog) -> Figure:
    """Time the page that has to show what was just changed through pages."""
    atlas = site.client.app.state.pages.atlases.of("default")
    took = []
    for number in range(3):
        catalog.create_namespace(f"new{number}")
        atlas.refresh()
        took.append(time_once(lambda: site.page("browse")))
    return Figure(f"{label}: the page after a change", took)


def _beside_survey(catalog: Catalog, rounds: int) -> list[Figure]:
    """Time a page while all tables are looked into, and how fast that goes."""
    with Site(catalog) as site:
        site.page("browse")
        findings = site.client.app.state.pages.atlases.of("default").findings
        known, began_s = len(findings), time.monotonic()
        threading.Event().wait(2.0)
        speed = (len(findings) - known) / (time.monotonic() - began_s)
        took = _times(site, "namespaces/ns007/browse", rounds)
    return [
        _figure("a namespace, while tables are looked into", took, _TARGET_S),
        Figure("tables looked into in a second", round(speed), kind="count"),
    ]


def _memory_mib() -> float:
    """Return what the process holds now."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize() / 2**20
