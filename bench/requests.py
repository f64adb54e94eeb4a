"""What each operation asks of its store: counted on disk, and by the server on S3."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers import run_moto

import mooring
from bench.lakes import TINY, workspace
from bench.report import Figure, Section
from mooring.catalog import Catalog
from mooring.directory.backend import DirectoryBackend
from mooring.store import open_store
from mooring.store.observed import ObservedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import S3Server

__all__ = ["run"]

_PUTS_AT_ONCE = 8


def run(*, quick: bool) -> Section:
    """Count requests of listings and of every operation."""
    tables = 1_200 if quick else 2_500
    with run_moto() as server:
        figures = [*_count_listing(server, tables), *_count_operations(server)]
    return Section(
        "Requests to the store",
        figures,
        [
            "on S3 moto's server counts what arrives; on disk calls of the store are counted",
            "what Lance itself asks for to write a table is counted on S3 and not on disk",
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
    with _counted(server) as opening:
        catalog = mooring.connect(uri, storage_options=server.options)
    with _counted(server) as listing:
        assert len(catalog.list_tables()) == tables
    pages = -(-tables // 1000)
    return [
        _figure(f"list {tables:,} tables", listing, at_most=pages + 1),
        _figure("open a catalog", opening),
    ]


def _count_operations(server: S3Server) -> list[Figure]:
    with workspace() as space:
        store = ObservedStore(open_store(space / "lake"))
        disk = Catalog(DirectoryBackend(store, author="bench"), "disk")
        bucket = mooring.connect(server.uri("operations"), storage_options=server.options)
        for catalog in (disk, bucket):
            catalog.create_table("first", TINY)
        figures = []
        for what, call in _OPERATIONS.items():
            store.counts.clear()
            call(disk)
            with _counted(server) as seen:
                call(bucket)
            figures.append(_figure(what, seen, beside="on disk", theirs=store.total))
        return figures


_OPERATIONS: dict[str, Callable[[Catalog], object]] = {
    "list_tables": lambda catalog: catalog.list_tables(),
    "declare_table": lambda catalog: catalog.declare_table("declared"),
    "create_table": lambda catalog: catalog.create_table("t", TINY),
    "describe_table": lambda catalog: catalog.describe_table("t"),
    "table_exists": lambda catalog: catalog.table_exists("t"),
    "drop_table": lambda catalog: catalog.drop_table("t"),
    "list_purgable_tables": lambda catalog: catalog.list_purgable_tables(),
    "undrop_table": lambda catalog: catalog.undrop_table("t"),
    "drop_table, second time": lambda catalog: catalog.drop_table("t"),
    "purge_table": lambda catalog: catalog.purge_table("t"),
    "create_table, after a purge": lambda catalog: catalog.create_table("t", TINY),
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
