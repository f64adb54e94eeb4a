"""Requests about the columns of a table, and the metadata of its schema.

Spec: lance-rest-openapi, AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns,
AlterTableBackfillColumns, UpdateTableSchemaMetadata, UpdateFieldMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance_namespace as spec

from mooring.errors import InvalidInputError, UnsupportedError
from mooring.identifiers import quote
from mooring.namespace.lance.requests import Requests, worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_namespace_urllib3_client.models.add_columns_entry import AddColumnsEntry
    from lance_namespace_urllib3_client.models.alter_columns_entry import AlterColumnsEntry

    from mooring.tables.columns import Alteration, Columns
    from mooring.tables.new_columns import NewColumn

__all__ = ["ColumnRequests"]

# They steer the workers of a service; here the caller's own process does the work at once.
_STEERING = (
    "concurrency",
    "intra_applier_concurrency",
    "min_checkpoint_size",
    "max_checkpoint_size",
    "batch_checkpoint_flush_interval_seconds",
    "task_size",
    "num_frags",
    "checkpoint_size",
    "commit_granularity",
    "cluster",
    "manifest",
)


class ColumnRequests(Requests):
    """Columns and metadata."""

    @worded
    def alter_table_add_columns(
        self, request: spec.AlterTableAddColumnsRequest
    ) -> spec.AlterTableAddColumnsResponse:
        """Add columns by expressions, or computed ones for backfills."""
        columns = [_new_column(entry) for entry in request.new_columns]
        done = self._columns(request.id).add_all(columns, branch=request.branch)
        return spec.AlterTableAddColumnsResponse(version=done.version)

    @worded
    def alter_table_alter_columns(
        self, request: spec.AlterTableAlterColumnsRequest
    ) -> spec.AlterTableAlterColumnsResponse:
        """Rename columns, change their types, or whether they may hold nulls."""
        alterations = [_alteration(entry) for entry in request.alterations]
        done = self._columns(request.id).alter_all(alterations, branch=request.branch)
        return spec.AlterTableAlterColumnsResponse(version=done.version)

    @worded
    def alter_table_drop_columns(
        self, request: spec.AlterTableDropColumnsRequest
    ) -> spec.AlterTableDropColumnsResponse:
        """Drop columns."""
        done = self._columns(request.id).drop(*request.columns, branch=request.branch)
        return spec.AlterTableDropColumnsResponse(
            transaction_id=done.transaction_id, version=done.version
        )

    @worded
    def alter_table_backfill_columns(
        self, request: spec.AlterTableBackfillColumnsRequest
    ) -> spec.AlterTableBackfillColumnsResponse:
        """Fill a computed column at once; the job is the transaction that did it."""
        _refuse_steering(request)
        done = self._columns(request.id).backfill(
            request.column, where=request.where, branch=request.branch
        )
        job = done.commit.transaction_id or str(done.commit.version)
        return spec.AlterTableBackfillColumnsResponse(job_id=job)

    @worded
    def update_table_schema_metadata(
        self, request: spec.UpdateTableSchemaMetadataRequest
    ) -> spec.UpdateTableSchemaMetadataResponse:
        """Replace the metadata of the schema."""
        if request.metadata is None:
            msg = "give the metadata that the schema is to have: an empty map leaves none"
            raise InvalidInputError(msg)
        done = self._columns(request.id).replace_schema_metadata(
            request.metadata, branch=request.branch
        )
        return spec.UpdateTableSchemaMetadataResponse(
            metadata=dict(done.metadata), transaction_id=done.commit.transaction_id
        )

    @worded
    def update_field_metadata(
        self, request: spec.UpdateFieldMetadataRequest
    ) -> spec.UpdateFieldMetadataResponse:
        """Merge into the metadata of fields, or replace it."""
        from mooring.tables.metadata import FieldMetadata  # imports lance

        updates = [
            FieldMetadata(entry.path, entry.metadata, bool(entry.replace))
            for entry in request.updates
        ]
        done = self._columns(request.id).update_all_metadata(updates, branch=request.branch)
        return spec.UpdateFieldMetadataResponse(
            version=done.commit.version,
            fields={path: dict(metadata) for path, metadata in done.fields.items()},
        )

    def _columns(self, names: Sequence[str] | None) -> Columns:
        from mooring.tables.columns import Columns  # imports lance

        return Columns(self._locate(names))


def _new_column(entry: AddColumnsEntry) -> NewColumn:
    from mooring.tables.new_columns import NewColumn

    if entry.virtual_column is not None:
        raise _no_functions(entry.name)
    return NewColumn(entry.name, expression=entry.expression, computed=entry.computed)


def _alteration(entry: AlterColumnsEntry) -> Alteration:
    from mooring.tables.columns import Alteration
    from mooring.tables.schema import type_from_json

    if entry.virtual_column is not None:
        raise _no_functions(entry.path)
    data_type = None if entry.data_type is None else type_from_json(entry.data_type)
    return Alteration(entry.path, entry.rename, data_type, entry.nullable)


def _no_functions(column: str) -> UnsupportedError:
    msg = (
        f"column {quote(column)} would be virtual, filled by a function that runs in a container;"
        " a directory catalog is storage and runs nothing: give an SQL expression instead"
    )
    return UnsupportedError(msg)


def _refuse_steering(request: spec.AlterTableBackfillColumnsRequest) -> None:
    for name in _STEERING:
        if getattr(request, name) is not None:
            msg = (
                f"'{name}' steers a service that fills columns in the background; this catalog"
                " fills the column at once, by one commit: leave it out"
            )
            raise UnsupportedError(msg)
    if request.read_version is not None:
        msg = "a backfill reads the newest version, which it changes: leave 'read_version' out"
        raise UnsupportedError(msg)
