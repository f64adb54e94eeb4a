"""What each operation asks of its store: counted on disk, and by the server on S3."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.servers import run_moto

import mooring
from bench.lakes import TINY, workspace
from bench.report import Figure, Section
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


def run(*, quick: bool) -> Section:
    """Count requests of listings and of every operation, without a manifest and by default."""
    tables = 1_200 if quick else 2_500
    with run_moto() as server:
        figures = _count_listing(server, tables)
        for kind in _KINDS:
            figures += _count_operations(server, kind)
    return Section(
        "Requests to the store",
        figures,
        [
            "on S3 moto's server counts what arrives; on disk calls of the store are counted",
            "what Lance itself asks for to write a table is counted on S3 and not on disk",
            "by default every table also gets its row in a manifest; else there is no manifest",
        ],
        ours="on S3",
    )


def _count_listing(server: S3Server, tables: int) -> list[Figure]:
    """List many tables; on S3 a page holds a thousand."""
    uri = server.uri("listing")
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
        at_most = pages + 1 if kind is _LISTING else None
        figures += [
            _figure(f"list {tables:,} tables{kind.suffix}", listing, at_most=at_most),
            _figure(f"open a catalog{kind.suffix}", opening),
        ]
    return figures


def _open_bucket(server: S3Server, uri: str, kind: _Kind) -> Catalog:
    return mooring.connect(
        uri, storage_options=server.options, manifest_enabled=kind.manifest_enabled
    )


def _count_operations(server: S3Server, kind: _Kind) -> list[Figure]:
    with workspace() as space:
        store = ObservedStore(open_store(space / "lake"))
        disk = Catalog(kind.backend(Home(store, author="bench")), "disk")
        bucket = _open_bucket(server, server.uri(f"operations-{_KINDS.index(kind)}"), kind)
        for catalog in (disk, bucket):
            if kind.namespace:
                catalog.create_namespace(kind.namespace)
            catalog.create_table([*kind.namespace, "first"], TINY)
        figures = []
        for what, call in _OPERATIONS.items():
            store.counts.clear()
            call(disk, kind.namespace)
            with _counted(server) as seen:
                call(bucket, kind.namespace)
            name = f"{what}{kind.suffix}"
            figures.append(_figure(name, seen, beside="on disk", theirs=store.total))
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


@contextmanager
def _counted(server: S3Server) -> Iterator[Counter[str]]:
    """Count the requests that arrive at the server within the block."""
    seen: Counter[str] = Counter()
    before = Counter(server.requests)
    yield seen
    seen.update(server.requests - before)


def _figure(what: str, seen: Counter[str], **more: object) -> Figure:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items()))
    return Figure(what, seen.total(), kind="requests", detail=kinds, **more)
