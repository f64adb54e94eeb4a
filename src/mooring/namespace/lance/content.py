"""Requests that change the rows of a table.

Spec: lance-rest-openapi, InsertIntoTable, MergeInsertIntoTable, UpdateTable, DeleteFromTable,
RestoreTable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import lance_namespace as spec

from mooring.errors import (
    InvalidInputError,
    MooringError,
    TableColumnNotFoundError,
    TableNotFoundError,
)
from mooring.identifiers import quote
from mooring.namespace.lance.requests import Requests, choose, read_ipc, table_id, worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.tables.changes import Changed

__all__ = ["ContentRequests"]

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|)")
_LONGEST_S = 10.0 * 365 * 24 * 3600  # longer ones do not fit Lance's clock
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class ContentRequests(Requests):
    """Rows in, rows out, and back to an older version."""

    @worded
    def insert_into_table(
        self, request: spec.InsertIntoTableRequest, request_data: bytes
    ) -> spec.InsertIntoTableResponse:
        """Append the rows of an Arrow IPC stream, or replace the table's content by them."""
        from mooring.namespace.located import insert_into  # imports lance

        overwrite = choose(request.mode, ("append", "overwrite"), "mode") == "overwrite"
        rows = read_ipc(request_data)
        done = insert_into(
            self._backend,
            table_id(request.id),
            rows,
            overwrite=overwrite,
            branch=request.branch,
        )
        return spec.InsertIntoTableResponse(num_inserted_rows=done.inserted, version=done.version)

    @worded
    def merge_insert_into_table(
        self, request: spec.MergeInsertIntoTableRequest, request_data: bytes
    ) -> spec.MergeInsertIntoTableResponse:
        """Merge the rows of an Arrow IPC stream by a key; a declared table has its first by it."""
        from mooring.namespace.located import insert_into  # imports lance
        from mooring.tables.changes import Merge, merge
        from mooring.tables.watched_rows import WatchedRows

        how = Merge(
            on=tuple(request.on or ()),
            update=bool(request.when_matched_update_all or request.when_matched_update_all_filt),
            update_if=request.when_matched_update_all_filt,
            insert=bool(request.when_not_matched_insert_all),
            delete=bool(
                request.when_not_matched_by_source_delete
                or request.when_not_matched_by_source_delete_filt
            ),
            delete_if=request.when_not_matched_by_source_delete_filt,
            timeout_s=_seconds(request.timeout),
            use_index=request.use_index is not False,
        )
        source = WatchedRows(read_ipc(request_data))
        try:
            done = merge(self._locate(request.id), source.reader, how, branch=request.branch)
        except TableNotFoundError:
            if request.branch or source.count:
                raise
            # There may be nothing to merge with yet: then these are the first rows.
            _require_keys(how.on, source.reader.schema.names)
            done = insert_into(self._backend, table_id(request.id), source.reader)
        return spec.MergeInsertIntoTableResponse(
            num_inserted_rows=done.inserted,
            num_updated_rows=done.updated,
            num_deleted_rows=done.deleted,
            version=done.version,
        )

    @worded
    def update_table(self, request: spec.UpdateTableRequest) -> spec.UpdateTableResponse:
        """Set columns to expressions, and properties of the table where they are given."""
        table = table_id(request.id)
        before = self._backend.describe_table(table).properties
        wanted = dict(request.properties or {})
        # First what is refused at once, where it is: then nothing was changed.
        after = self._backend.update_table(table, wanted) if wanted else before
        try:
            done = self._update_rows(request, may_be_none=bool(wanted))
        except MooringError:
            if wanted:
                self._backend.update_table(table, {key: before.get(key) for key in wanted})
            raise
        return spec.UpdateTableResponse(
            updated_rows=done.updated, version=done.version, properties=dict(after) or None
        )

    def _update_rows(self, request: spec.UpdateTableRequest, *, may_be_none: bool) -> Changed:
        from mooring.tables.changes import Changed, update  # imports lance

        if any(len(update) != len(("column", "expression")) for update in request.updates):
            msg = "each update is a column and its expression, two texts and no more"
            raise InvalidInputError(msg)
        values = dict(request.updates)
        if len(values) != len(request.updates):
            msg = "an update sets a column once: one of these columns comes twice"
            raise InvalidInputError(msg)
        handle = self._locate(request.id)
        if not values and may_be_none:
            newest = handle.ledger.newest(request.branch)
            return Changed(newest.version if newest else 0)
        return update(handle, values, where=request.predicate, branch=request.branch)

    @worded
    def delete_from_table(
        self, request: spec.DeleteFromTableRequest
    ) -> spec.DeleteFromTableResponse:
        """Delete the rows that a filter selects."""
        from mooring.tables.changes import delete  # imports lance

        done = delete(self._locate(request.id), request.predicate, branch=request.branch)
        return spec.DeleteFromTableResponse(version=done.version)

    @worded
    def restore_table(self, request: spec.RestoreTableRequest) -> spec.RestoreTableResponse:
        """Make the content of an older version the newest; a dropped table is undropped."""
        from mooring.tables.changes import restore  # imports lance

        done = restore(self._locate(request.id), request.version, branch=request.branch)
        return spec.RestoreTableResponse(transaction_id=done.transaction_id)


def _require_keys(keys: Sequence[str], known: Sequence[str]) -> None:
    """Refuse rows that lack a column by which later ones could be merged with them.

    Raises:
        TableColumnNotFoundError: they do.
    """
    for key in keys:
        if key not in known:
            msg = f"the rows have no column {quote(key)}: they have {', '.join(known)}"
            raise TableColumnNotFoundError(msg)


def _seconds(text: str | None) -> float | None:
    """Read a time limit, as in `30s`, `500ms` or `2m`."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        msg = f"'{text}' is not a time limit: write 500ms, 30s, 2m or 1h"
        raise InvalidInputError(msg)
    return min(float(match[1]) * _SECONDS[match[2]], _LONGEST_S)
