"""A Lance table in the shape of Iceberg's, derived from the table whenever it is asked for.

Spec: iceberg-namespace, "Table Definition", "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from mooring.errors import (
    ServiceUnavailableError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnreadableError,
)
from mooring.iceberg.snapshots import SCHEMA_ID, Snapshot
from mooring.identifiers import quote
from mooring.server.iceberg.locations import to_iceberg as to_location
from mooring.server.iceberg.properties import shown
from mooring.server.iceberg.versions import DECLARED, refs_of, snapshot_of, snapshots_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.errors import MooringError
    from mooring.namespace.api import Backend, TableInfo
    from mooring.tables.api import VersionRecord
    from mooring.tables.handle import TableHandle
    from mooring.tables.tags import Tag

__all__ = ["FORMAT_VERSION", "PARTITION_ID", "SORT_ORDER_ID", "SPEC_ID", "derive", "table_uuid"]

FORMAT_VERSION = 2  # version 3 demands row ids of every snapshot
SPEC_ID, PARTITION_ID, SORT_ORDER_ID = 0, 999, 0
_ATTEMPTS = 5
_NO_FIELDS: dict[str, Any] = {"type": "struct", "schema-id": SCHEMA_ID, "fields": []}


def derive(backend: Backend, info: TableInfo, *, refs_only: bool = False) -> dict[str, Any]:
    """Return a table's metadata.

    Args:
        backend: The catalog.
        info: The table, as it was described just now.
        refs_only: Whether to tell only those versions that main and tags name.

    Raises:
        TableNotFoundError: the table was dropped meanwhile.
        ServiceUnavailableError: it changed all the time, or cannot be read.
        UnreadableError: its newest version is damaged.
    """
    from mooring.namespace.located import locate  # imports lance

    handle = locate(backend, info.id, info)
    for _ in range(_ATTEMPTS):
        found = _look(backend, info, handle, refs_only=refs_only)
        if found is not None:
            return found
    raise _failure(info, handle)


def _failure(info: TableInfo, handle: TableHandle) -> MooringError:
    """Say why a table could not be looked at, though it has versions."""
    shown = quote(str(info.id))
    try:
        with handle.reading() as dataset:
            # Lance takes a manifest of zeros, as a machine that lost power leaves them, for one.
            is_damaged = dataset.version < 1
    except TableNotFoundError:
        is_damaged = True
    if not is_damaged:
        msg = f"table {shown} changed whenever it was looked at: try again"
        return ServiceUnavailableError(msg)
    return UnreadableError(
        f"table {shown} has versions, and the newest cannot be opened: look at its files in"
        f" '{info.location}/_versions'"
    )


def _look(
    backend: Backend, info: TableInfo, handle: TableHandle, *, refs_only: bool
) -> dict[str, Any] | None:
    """Return what is there; None where it changed between two looks."""
    from mooring.iceberg.types import to_iceberg
    from mooring.tables.field_ids import field_ids
    from mooring.tables.tags import Tags

    try:
        with handle.reading() as dataset:
            current = int(dataset.version)
            schema = to_iceberg(dataset.schema, field_ids(dataset), schema_id=SCHEMA_ID)
    except TableNotFoundError:
        if backend.list_table_versions(info.id, limit=1, known=info):
            return None
        return _metadata(backend, info, _NO_FIELDS, [Snapshot(DECLARED, 0)])
    # The table first: of a newer version than that the schema is not known here.
    records = backend.list_table_versions(info.id, limit=1 if refs_only else None, known=info)
    tags = Tags(handle).list()
    records = [one for one in records if one.version <= current]
    if not records or records[0].version != current:
        return None
    if refs_only:
        records += _tagged(backend, info, tags, current)
    snapshots = [snapshot_of(info, one) for one in records]
    return _metadata(backend, info, schema, snapshots, tags=tags)


def _tagged(
    backend: Backend, info: TableInfo, tags: Sequence[Tag], current: int
) -> list[VersionRecord]:
    """Find the versions that tags name, as far as they are there."""
    found = []
    for version in {tag.version for tag in tags if tag.branch is None and tag.version < current}:
        try:
            found.append(backend.describe_table_version(info.id, version))
        except TableVersionNotFoundError:
            continue
    return found


def _metadata(
    backend: Backend,
    info: TableInfo,
    schema: dict[str, Any],
    snapshots: Sequence[Snapshot],
    *,
    tags: Sequence[Tag] = (),
) -> dict[str, Any]:
    from mooring.iceberg.types import last_column_id

    written = snapshots_json(snapshots)
    current = max(one.version for one in snapshots)
    return {
        "format-version": FORMAT_VERSION,
        "table-uuid": table_uuid(info),
        "location": to_location(info.location),
        "last-sequence-number": current,
        "last-updated-ms": written[-1]["timestamp-ms"],
        "last-column-id": last_column_id(schema),
        "schemas": [schema],
        "current-schema-id": SCHEMA_ID,
        "partition-specs": [{"spec-id": SPEC_ID, "fields": []}],
        "default-spec-id": SPEC_ID,
        "last-partition-id": PARTITION_ID,
        "sort-orders": [{"order-id": SORT_ORDER_ID, "fields": []}],
        "default-sort-order-id": SORT_ORDER_ID,
        "properties": shown(info, backend),
        "current-snapshot-id": current,
        "refs": refs_of(current, tags, [one.version for one in snapshots]),
        "snapshots": written,
        "snapshot-log": [
            {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]}
            for one in written
        ],
        "metadata-log": [],
    }


def table_uuid(info: TableInfo) -> str:
    """Return what a table is told by from another that gets its name."""
    return str(uuid5(NAMESPACE_URL, info.location.rstrip("/")))
