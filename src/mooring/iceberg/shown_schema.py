"""The schema that an Iceberg catalog shows of a Lance table; nothing of Lance's depends on it.

Spec: iceberg-namespace, "the schema reflects the latest schema of the Lance table".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.iceberg.types import last_column_id, same_fields, to_iceberg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.iceberg.connection import Connection
    from mooring.identifiers import ObjectId

__all__ = ["show", "show_schema"]


def show_schema(connection: Connection, table: ObjectId) -> None:
    """Let the catalog show a table's newest schema, where it shows another."""
    found = connection.find(table, refs_only=True)
    schema = to_iceberg(*connection.schema_of(found))
    shown = found.metadata.get("current-schema-id")
    schemas = found.metadata.get("schemas") or ()
    known = next((one for one in schemas if one.get("schema-id") == shown), None)
    if known is not None and same_fields(known, schema):
        return
    requirements: list[dict[str, Any]] = [
        *found.same,
        {"type": "assert-current-schema-id", "current-schema-id": shown},
    ]
    updates = show(found.metadata, schema)
    connection.client.update_table(table.parent.names, table.name, requirements, updates)


def show(metadata: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the updates that make a schema the one that a table shows.

    Its number is told, though servers choose it: not all read -1 as the one that was added last.
    """
    schemas = metadata.get("schemas") or ()
    known = next((one["schema-id"] for one in schemas if same_fields(one, schema)), None)
    if known is not None:
        return [{"action": "set-current-schema", "schema-id": known}]
    number = max((int(one.get("schema-id") or 0) for one in schemas), default=-1) + 1
    last = max(int(metadata.get("last-column-id") or 0), last_column_id(schema))
    added = {**schema, "schema-id": number}
    return [
        {"action": "add-schema", "schema": added, "last-column-id": last},
        {"action": "set-current-schema", "schema-id": number},
    ]
