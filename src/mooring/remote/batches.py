"""Several changes of tables as one request: all of them, or none.

Spec: lance-rest-openapi, "BatchCommitTables".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.errors import UnknownOutcomeError
from mooring.namespace.table_operations import (
    CreateVersion,
    Declare,
    DeleteVersionRecords,
    Deregister,
)
from mooring.remote.versions import ranges_body, read_record, version_body
from mooring.tables.api import VersionRecord
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.remote.connection import Connection

__all__ = ["commit_together"]


def commit_together(connection: Connection, operations: Sequence[TableOperation]) -> list[Outcome]:
    """Have the server do operations, all of them or none.

    Raises:
        UnsupportedError: it decides about one table at a time.
        ConcurrentModificationError: somebody else's change came first.
    """
    answer = connection.lance.of_catalog(
        "table/batch-commit",
        "a commit of several tables",
        body={"operations": [_write(one) for one in operations]},
        changes=True,
    )
    results = answer.get("results") or []
    if len(results) != len(operations):
        msg = (
            f"'{connection.lance.server}' answers {len(results)} outcomes to {len(operations)}"
            " operations: look what was done"
        )
        raise UnknownOutcomeError(msg)
    return [_read(connection, *one) for one in zip(operations, results, strict=True)]


def _write(operation: TableOperation) -> dict[str, Any]:
    about = {"id": list(operation.table.names)}
    match operation:
        case Declare(_, location, properties):
            given = {"location": location, "properties": properties and dict(properties)}
            told = {key: value for key, value in given.items() if value}
            return {"declare_table": {**about, **told}}
        case CreateVersion():
            return {"create_table_version": {**about, **version_body(operation)}}
        case DeleteVersionRecords(_, ranges, branch):
            told = ranges_body(ranges, branch_of(branch))
            return {"delete_table_versions": {**about, **told}}
        case Deregister():
            return {"deregister_table": about}


def _read(connection: Connection, operation: TableOperation, result: Mapping[str, Any]) -> Outcome:
    match operation:
        case Declare(table):
            told = result.get("declare_table") or {}
            return connection.info(table, told, is_only_declared=True)
        case CreateVersion() as wanted:
            found = (result.get("create_table_version") or {}).get("version")
            return read_record(found) if found else _as_wanted(wanted)
        case DeleteVersionRecords():
            return int((result.get("delete_table_versions") or {}).get("deleted_count") or 0)
        case Deregister(table):
            return connection.info(table, result.get("deregister_table") or {})


def _as_wanted(wanted: CreateVersion) -> VersionRecord:
    return VersionRecord(wanted.version, wanted.manifest_path)
