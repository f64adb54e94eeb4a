"""What each operation asks of its store: counted on disk, and by the server on S3."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance_namespace as spec
from tests.servers import run_moto

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import TINY, workspace
from bench.rows import stream
from bench.sections import Section
from mooring.catalog import Catalog
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.namespace.home import Home
from mooring.store import open_store
from mooring.store.observed import ObservedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import S3Server

__all__ = ["run"]

_PUTS_AT_ONCE = 8
_PEER = "pylance"
_ROWS = stream(TINY)


@dataclass(frozen=True)
class _Kind:
    """A kind of catalog and of tables in it.

    Attributes:
        backend: The catalog's backend.
        manifest_enabled: The same as an option of `connect`.
        suffix: How it is shown.
        namespace: Where the tables are.
    """

    backend: type[ListingBackend | CompatBackend]
    manifest_enabled: bool
    suffix: str
    namespace: tuple[str, ...] = ()


_LISTING = _Kind(ListingBackend, manifest_enabled=False, suffix="")
_DEFAULT = _Kind(CompatBackend, manifest_enabled=True, suffix=", by default")
_NESTED = _Kind(CompatBackend, manifest_enabled=True, suffix=", in a namespace", namespace=("ns",))
_KINDS = (_LISTING, _DEFAULT, _NESTED)


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Count requests of listings and of every operation, without a manifest and by default."""
    tables = 1_200 if quick else 2_500
    with run_moto() as server:
        found = groups.measure("listing", lambda: _count_listings(server, tables))
        for kind in _KINDS:
            name = f"operations{kind.suffix}"
            found += groups.measure(name, lambda kind=kind: _count_operations(server, kind))
    return Section(
        "Requests to the store, on S3",
        found,
        [
            "moto counts what arrives, from Mooring's Catalog and from pylance's namespace",
            "on disk calls of the store are counted, without what Lance itself asks for",
            "by default every table also gets its row in a manifest; else there is no manifest",
            "pylance's drop deletes the table's files; Mooring's can be undone, and purge deletes",
        ],
        ours="mooring",
    )


def _count_listings(server: S3Server, tables: int) -> list[Figure | Curve]:
    """List catalogs of several sizes, the largest also by default and from its opening on."""
    points: dict[str, list[tuple[float, float]]] = {OURS: [], _PEER: []}
    for size in (10, 100, tables):
        figures = _count_listing(server, size)
        points[OURS].append((size, figures[0].our_value))
        points[_PEER].append((size, figures[0].their_value))
    lines = tuple(Line(name, tuple(some)) for name, some in points.items())
    curve = Curve("Requests to list all tables on S3", "catalog size", "tables", lines, "requests")
    return [*figures, curve]


def _count_listing(server: S3Server, tables: int) -> list[Figure]:
    """List tables; on S3 a page holds a thousand."""
    uri = server.uri(f"listing-{tables}")
    made = mooring.connect(uri, storage_options=server.options)
    made.backend.initialize()
    store = made.backend.store
    paths = [f"t{number:05d}.lance/_versions/1.manifest" for number in range(tables)]
    with ThreadPoolExecutor(_PUTS_AT_ONCE) as pool:
        list(pool.map(lambda path: store.put(path, b""), paths))
    pages = -(-tables // 1000)
    figures = []
    for kind in (_LISTING, _DEFAULT):
        with _counted(server) as opening:
            catalog = _open_bucket(server, uri, kind)
        with _counted(server) as listing:
            assert len(catalog.list_tables()) == tables
        with _counted(server) as their_opening:
            peer = _open_peer(server, uri, kind)
        with _counted(server) as theirs:
            assert len(peer.list_tables(spec.ListTablesRequest(id=[])).tables) == tables
        at_most = pages + 1 if kind is _LISTING else None
        figures += [
            _figure(
                f"list {tables:,} tables{kind.suffix}",
                listing,
                theirs,
                at_most=at_most,
                is_telling=kind is _LISTING,
            ),
            _figure(f"open a catalog{kind.suffix}", opening, their_opening),
        ]
    return figures


def _open_peer(server: S3Server, uri: str, kind: _Kind) -> spec.LanceNamespace:
    own = {f"storage.{key}": value for key, value in server.options.items()}
    choice = {} if kind.manifest_enabled else {"manifest_enabled": "false"}
    return spec.connect("dir", {"root": uri, **own, **choice})


def _open_bucket(server: S3Server, uri: str, kind: _Kind) -> Catalog:
    return mooring.connect(
        uri, storage_options=server.options, manifest_enabled=kind.manifest_enabled
    )


def _count_operations(server: S3Server, kind: _Kind) -> list[Figure]:
    number = _KINDS.index(kind)
    with workspace() as space:
        store = ObservedStore(open_store(space / "lake"))
        disk = Catalog(kind.backend(Home(store, author="bench")), "disk")
        bucket = _open_bucket(server, server.uri(f"operations-{number}"), kind)
        for catalog in (disk, bucket):
            if kind.namespace:
                catalog.create_namespace(kind.namespace)
            catalog.create_table([*kind.namespace, "first"], TINY)
        peer = _open_peer(server, server.uri(f"peer-{number}"), kind)
        if kind.namespace:
            peer.create_namespace(spec.CreateNamespaceRequest(id=list(kind.namespace)))
        peer.create_table(spec.CreateTableRequest(id=[*kind.namespace, "first"]), _ROWS)
        figures = []
        for what, call in _OPERATIONS.items():
            store.counts.clear()
            call(disk, kind.namespace)
            with _counted(server) as seen:
                call(bucket, kind.namespace)
            theirs = None
            if what in _PEER_OPERATIONS:
                with _counted(server) as theirs:
                    _PEER_OPERATIONS[what](peer, kind.namespace)
            name = f"{what}{kind.suffix}"
            figures.append(_figure(name, seen, theirs, on_disk=store.total))
        return figures


_OPERATIONS: dict[str, Callable[[Catalog, tuple[str, ...]], object]] = {
    "list_tables": lambda catalog, ns: catalog.list_tables(ns),
    "declare_table": lambda catalog, ns: catalog.declare_table([*ns, "declared"]),
    "create_table": lambda catalog, ns: catalog.create_table([*ns, "t"], TINY),
    "describe_table": lambda catalog, ns: catalog.describe_table([*ns, "t"]),
    "table_exists": lambda catalog, ns: catalog.table_exists([*ns, "t"]),
    "drop_table": lambda catalog, ns: catalog.drop_table([*ns, "t"]),
    "list_purgable_tables": lambda catalog, _: catalog.list_purgable_tables(),
    "undrop_table": lambda catalog, ns: catalog.undrop_table([*ns, "t"]),
    "drop_table, second time": lambda catalog, ns: catalog.drop_table([*ns, "t"]),
    "purge_table": lambda catalog, ns: catalog.purge_table([*ns, "t"]),
    "create_table, after a purge": lambda catalog, ns: catalog.create_table([*ns, "t"], TINY),
}


# What pylance has a call for.
_PEER_OPERATIONS: dict[str, Callable[[spec.LanceNamespace, tuple[str, ...]], object]] = {
    "list_tables": lambda peer, ns: peer.list_tables(spec.ListTablesRequest(id=list(ns))),
    "declare_table": lambda peer, ns: peer.declare_table(
        spec.DeclareTableRequest(id=[*ns, "declared"])
    ),
    "create_table": lambda peer, ns: peer.create_table(
        spec.CreateTableRequest(id=[*ns, "t"]), _ROWS
    ),
    "describe_table": lambda peer, ns: peer.describe_table(
        spec.DescribeTableRequest(id=[*ns, "t"])
    ),
    "table_exists": lambda peer, ns: peer.table_exists(spec.TableExistsRequest(id=[*ns, "t"])),
    "drop_table": lambda peer, ns: peer.drop_table(spec.DropTableRequest(id=[*ns, "t"])),
    "create_table, after a purge": lambda peer, ns: peer.create_table(
        spec.CreateTableRequest(id=[*ns, "t"]), _ROWS
    ),
}


@contextmanager
def _counted(server: S3Server) -> Iterator[Counter[str]]:
    """Count the requests that arrive at the server within the block."""
    seen: Counter[str] = Counter()
    before = Counter(server.requests)
    yield seen
    seen.update(server.requests - before)


def _figure(
    what: str,
    seen: Counter[str],
    theirs: Counter[str] | None,
    *,
    on_disk: int | None = None,
    **more: object,
) -> Figure:
    told = [
        _kinds(seen),
        f"{_PEER} has no such call" if theirs is None else f"{_PEER} {_kinds(theirs)}",
        *([] if on_disk is None else [f"mooring on disk {on_disk}"]),
    ]
    return Figure(
        what,
        seen.total(),
        kind="requests",
        beside="" if theirs is None else _PEER,
        theirs=None if theirs is None else theirs.total(),
        detail="; ".join(told),
        **more,
    )


def _kinds(seen: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items())) or "none"
