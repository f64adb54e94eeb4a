"""The inventory of a catalog: what each table holds and takes, as rows and as totals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.clock import SystemClock
from mooring.errors import MooringError, TableNotFoundError
from mooring.iceberg.backend import IcebergBackend
from mooring.identifiers import ROOT, ObjectId
from mooring.jobs.address import CatalogAddress
from mooring.jobs.runner import Threads
from mooring.namespace.api import TableInfo
from mooring.remote.backend import RemoteBackend
from mooring.table import Table
from mooring.tables.api import BY
from mooring.tables.files import Site
from mooring.tables.place import open_place
from mooring.tables.shape import shape_of
from mooring.tables.stats import is_small
from mooring.tables.transactions import read_transaction
from mooring.upkeep.places import site_of
from mooring.upkeep.stored import whole_backend
from mooring.upkeep.table_files import list_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.clock import Clock
    from mooring.jobs.runner import Runner
    from mooring.tables.handle import TableHandle
    from mooring.upkeep.table_files import TableFiles

    Progress = Callable[[int, int], None]

__all__ = ["DECLARED", "LIVE", "UNREADABLE", "Inventory", "TableSummary", "keep", "take_inventory"]

LIVE, DECLARED, UNREADABLE = "live", "declared", "unreadable"
_AT_ONCE = 8
_GROUP = 32
_SCHEMA = pa.schema(
    [
        pa.field("taken_at", pa.timestamp("ms", "UTC")),
        *(pa.field(name, pa.string()) for name in ("name", "state")),
        *(
            pa.field(name, pa.int64())
            for name in (
                "version",
                "versions",
                "rows",
                "deleted_rows",
                "fragments",
                "small_fragments",
                "data_bytes",
                "total_bytes",
                "indexes",
            )
        ),
        pa.field("written_at", pa.timestamp("ms", "UTC")),
        pa.field("written_by", pa.string()),
    ]
)


@dataclass(frozen=True)
class TableSummary:
    """One table.

    Attributes:
        name: Its full identifier.
        state: Whether it is live, only declared, or cannot be read.
        version: Its newest version.
        versions: How many versions there are.
        rows: How many rows there are to read.
        deleted_rows: How many rows are deleted but still in files.
        fragments: How many fragments there are.
        small_fragments: How many of them a compaction would merge.
        data_bytes: What the data files of the newest version take.
        total_bytes: What all files in its directory take, those of older versions included.
        indexes: How many indexes there are.
        written_at_ms: When the newest version was made, by the store's clock.
        written_by: Who made it, where that was kept.
        properties: Its properties.
    """

    name: str
    state: str
    version: int | None = None
    versions: int = 0
    rows: int = 0
    deleted_rows: int = 0
    fragments: int = 0
    small_fragments: int = 0
    data_bytes: int = 0
    total_bytes: int = 0
    indexes: int = 0
    written_at_ms: int | None = None
    written_by: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inventory:
    """All tables of a catalog, or of a namespace, sorted by name.

    Attributes:
        tables: The tables.
        taken_at_ms: When it was taken.
    """

    tables: tuple[TableSummary, ...]
    taken_at_ms: int

    @property
    def totals(self) -> dict[str, int]:
        """The sums over all tables."""
        names = ("rows", "deleted_rows", "fragments", "small_fragments", "data_bytes")
        sums = {name: sum(getattr(table, name) for table in self.tables) for name in names}
        return {
            "tables": len(self.tables),
            **sums,
            "total_bytes": sum(table.total_bytes for table in self.tables),
            "indexes": sum(table.indexes for table in self.tables),
        }


@dataclass(frozen=True)
class _Subject:
    names: tuple[str, ...]
    location: str
    properties: tuple[tuple[str, str], ...]


def take_inventory(
    catalog: Catalog,
    within: ObjectId = ROOT,
    *,
    runner: Runner | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Inventory:
    """Look at every live table of a catalog, or of a namespace of it; nothing is changed.

    Args:
        catalog: The catalog.
        within: The namespace.
        runner: Does the parts; threads of this process unless given.
        clock: Stamps the inventory.
        progress: Told how many tables are done, of how many.

    Raises:
        NamespaceNotFoundError: there is no such namespace.
        UnsupportedError: the catalog is of a kind that cannot tell.
    """
    catalog.describe_namespace(within)
    tables = whole_backend(catalog).describe_tables(within)
    subjects = [
        _Subject(info.id.names, info.location, tuple(sorted(info.properties.items())))
        for info in tables
    ]
    groups = [subjects[start : start + _GROUP] for start in range(0, len(subjects), _GROUP)]
    done = 0

    def on_done(part: list[TableSummary]) -> None:
        nonlocal done
        done += len(part)
        if progress:
            progress(done, len(subjects))

    work = partial(_look_at, CatalogAddress.of(catalog))
    runner = runner or Threads()
    found = runner.run(work, groups, label="looking at tables", on_done=on_done)
    summaries = sorted((one for part in found for one in part), key=lambda one: one.name)
    return Inventory(tuple(summaries), (clock or SystemClock()).now_ms())


def keep(catalog: Catalog, name: str, inventory: Inventory) -> int:
    """Append an inventory to a table, which is made where it is not there; return its version.

    Raises:
        TableSchemaValidationError: the table is another one.
    """
    rows = pa.Table.from_pylist([_kept(table, inventory) for table in inventory.tables], _SCHEMA)
    try:
        return catalog.table(name).insert(rows).version
    except TableNotFoundError:
        return catalog.create_table(name, rows).info.version or 1


def _kept(table: TableSummary, inventory: Inventory) -> dict[str, object]:
    told = {name: getattr(table, name) for name in _SCHEMA.names if not name.endswith("_at")}
    written = table.written_at_ms
    return {
        **told,
        "taken_at": _time(inventory.taken_at_ms),
        "written_at": None if written is None else _time(written),
    }


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _look_at(address: CatalogAddress, subjects: Sequence[_Subject]) -> list[TableSummary]:
    catalog = address.open()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda subject: _summarise(catalog, subject), subjects)
        return [one for one in found if one is not None]


def _summarise(catalog: Catalog, subject: _Subject) -> TableSummary | None:
    """Look at a table; None where it was dropped meanwhile."""
    found = _locate(catalog, subject)
    if found is None:
        return None
    info, site = found
    handle = Table(catalog.backend, info).handle
    try:
        return _measure(handle, info, list_files(site.place))
    except TableNotFoundError:
        state = DECLARED
    except (MooringError, OSError, ValueError, RuntimeError):
        state = UNREADABLE
    try:
        catalog.describe_table(list(subject.names))
    except TableNotFoundError:
        return None
    size = list_files(site.place).bytes
    return TableSummary(str(info.id), state, total_bytes=size, properties=dict(info.properties))


def _locate(catalog: Catalog, subject: _Subject) -> tuple[TableInfo, Site] | None:
    """Find a table's files; None where it was dropped meanwhile.

    A server hands out the right to use a table's storage with the table, and it does not travel.
    """
    if not isinstance(catalog.backend, IcebergBackend | RemoteBackend):
        site = site_of(catalog, subject.location)
        properties = dict(subject.properties)
        return TableInfo(ObjectId(subject.names), subject.location, site.options, properties), site
    try:
        info = catalog.describe_table(list(subject.names))
    except TableNotFoundError:
        return None
    options = info.storage_options
    return info, Site(open_place(info.location, options), info.location, options)


def _measure(handle: TableHandle, info: TableInfo, files: TableFiles) -> TableSummary:
    with handle.reading() as dataset:
        shape = shape_of(dataset)
        made = read_transaction(handle, dataset, shape.version, None)
        versions = files.versions.get(None, {})
        manifest = versions.get(shape.version)
        return TableSummary(
            name=str(info.id),
            state=LIVE,
            version=shape.version,
            versions=len(versions),
            rows=shape.rows,
            deleted_rows=shape.deleted,
            fragments=len(shape.pieces),
            small_fragments=sum(is_small(piece.rows) for piece in shape.pieces.values()),
            data_bytes=shape.size_bytes,
            total_bytes=files.bytes,
            indexes=len(dataset.describe_indices()),
            written_at_ms=files.newest_ms([manifest]) if manifest else None,
            written_by=made.properties.get(BY) if made else None,
            properties=dict(info.properties),
        )
