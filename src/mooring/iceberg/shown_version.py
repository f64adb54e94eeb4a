"""The version that an Iceberg catalog shows of a Lance table, as its snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.iceberg.snapshots import Snapshot
from mooring.iceberg.version_commit import on_current
from mooring.tables.versions import VERSIONS_DIR, list_versions

if TYPE_CHECKING:
    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable

__all__ = ["show_version"]


def show_version(
    connection: Connection, table: IcebergTable, version: int, *, is_needed: bool = False
) -> None:
    """Record a version as the table's snapshot.

    Of a table that its storage manages nobody respects it; an Iceberg engine would take a
    table without a snapshot for empty, and write into it.

    Args:
        connection: The server.
        table: The table.
        version: The version.
        is_needed: Whether a failure to record it counts.
    """
    known = list_versions(table.place.store, table.place.directory)
    path = known.get(version, "").rpartition("/")[2]
    at_ms = max(connection.clock.now_ms(), int(table.metadata.get("last-updated-ms") or 0))
    shown = Snapshot(version, at_ms, f"{VERSIONS_DIR}/{path}" if path else None)
    requirements = [one for one in on_current(table) if is_needed or "ref" not in one]
    try:
        connection.client.update_table(
            table.id.parent.names, table.id.name, requirements, shown.become_newest(table.metadata)
        )
    except MooringError:
        if is_needed:
            raise
