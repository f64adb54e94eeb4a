"""Batches of operations on tables, as far as one operation is done like any other call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.namespace.table_operations import (
    CreateVersion,
    Declare,
    DeleteVersionRecords,
    Deregister,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.namespace.api import Backend
    from mooring.namespace.table_operations import Outcome, TableOperation

__all__ = ["do_alone", "require_operations"]


def require_operations(operations: Sequence[TableOperation]) -> None:
    """Refuse a batch of nothing.

    Raises:
        InvalidInputError: there is no operation.
    """
    if not operations:
        msg = "the batch is empty: it needs an operation"
        raise InvalidInputError(msg)


def do_alone(backend: Backend, operation: TableOperation) -> Outcome:
    """Do the only operation of a batch."""
    match operation:
        case Declare(table, location, properties):
            return backend.declare_table(table, location, properties)
        case CreateVersion(table, version, path, branch, metadata):
            return backend.create_table_version(
                table, version, path, branch=branch, metadata=metadata
            )
        case DeleteVersionRecords(table, ranges, branch):
            return backend.delete_table_versions(table, ranges, branch=branch)
        case Deregister(table):
            return backend.deregister_table(table)
