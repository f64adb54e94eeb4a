"""Changes of a table's rows: insert, merge, update, delete, and back to an older version.

Spec: lance-rest-openapi, InsertIntoTable, MergeInsertIntoTable, UpdateTable, DeleteFromTable,
RestoreTable.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import lance

from mooring.errors import InvalidInputError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.tables.commits import Committed
from mooring.tables.filters import parsing, whole
from mooring.tables.handle import At
from mooring.tables.watched_rows import WatchedRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from mooring.tables.handle import TableHandle

__all__ = ["Changed", "Merge", "delete", "insert", "merge", "restore", "update"]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change did.

    Attributes:
        version: The version it made, or the newest where there was nothing to do.
        inserted: Rows that are new.
        updated: Rows that have other values.
        deleted: Rows that are gone.
        transaction_id: The transaction that did it, where that is asked for.
    """

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """How rows are merged into a table.

    Attributes:
        on: The columns by which rows are the same; the table's primary key unless given.
        update: Whether a row that is there takes the new values.
        update_if: Only where this holds, of ``source.`` and ``target.`` columns.
        insert: Whether a row that is not there is added.
        delete: Whether rows that the source lacks go.
        delete_if: Only those for which this holds.
        timeout_s: For how long to try again after conflicts.
        use_index: Whether an index on the key may be used.
    """

    on: tuple[str, ...] = ()
    update: bool = False
    update_if: str | None = None
    insert: bool = False
    delete: bool = False
    delete_if: str | None = None
    timeout_s: float | None = None
    use_index: bool = True

    def __post_init__(self) -> None:
        """Refuse a condition of something that is not to be done."""
        if self.update_if is not None and not self.update:
            msg = "a condition of updates needs updates: set update, too"
            raise InvalidInputError(msg)
        if self.delete_if is not None and not self.delete:
            msg = "a condition of deletions needs deletions: set delete, too"
            raise InvalidInputError(msg)
        if not (self.update or self.insert or self.delete):
            msg = "a merge that neither updates, inserts nor deletes would do nothing"
            raise InvalidInputError(msg)


def insert(
    handle: TableHandle,
    rows: pa.RecordBatchReader,
    *,
    overwrite: bool = False,
    branch: str | None = None,
) -> Changed:
    """Append rows, or make them the table's only content.

    Columns that the rows lack are null; columns that the table lacks are refused, unless the
    table is overwritten.

    Raises:
        TableSchemaValidationError: the rows do not fit the table.
        InvalidInputError: the rows could not be read to their end.
    """
    with handle.changing(At(branch=branch)) as dataset, _reading(rows) as source:
        written = lance.write_dataset(
            source.reader,
            dataset,
            mode="overwrite" if overwrite else "append",
            transaction_properties=handle.stamp,
        )
        return Changed(written.version, inserted=source.count)


def merge(
    handle: TableHandle, rows: pa.RecordBatchReader, how: Merge, *, branch: str | None = None
) -> Changed:
    """Merge rows into a table by a key.

    Raises:
        TableColumnNotFoundError: a key or condition names a column that is not there.
        TableSchemaValidationError: the rows do not fit the table.
        InvalidInputError: a condition makes no sense, or two rows of the source are one.
    """
    with (
        handle.changing(At(branch=branch)) as dataset,
        parsing(None, handle.what),
        _reading(rows) as source,
    ):
        _require_columns(how.on, rows.schema.names, f"the rows for {handle.what}")
        builder = dataset.merge_insert(list(how.on) or None).use_index(how.use_index)
        if how.update:
            builder = builder.when_matched_update_all(_whole(how.update_if))
        if how.insert:
            builder = builder.when_not_matched_insert_all()
        if how.delete:
            builder = builder.when_not_matched_by_source_delete(_whole(how.delete_if))
        if how.timeout_s is not None:
            builder = builder.retry_timeout(timedelta(seconds=how.timeout_s))
        counts = builder.execute(source.reader)
        return Changed(
            dataset.version,
            inserted=counts["num_inserted_rows"],
            updated=counts["num_updated_rows"],
            deleted=counts["num_deleted_rows"],
        )


def update(
    handle: TableHandle,
    values: Mapping[str, str],
    *,
    where: str | None = None,
    branch: str | None = None,
) -> Changed:
    """Set columns to expressions, in all rows or in those that a filter selects.

    Raises:
        TableColumnNotFoundError: a column, or one in an expression, is not there.
        InvalidInputError: an expression or the filter makes no sense.
    """
    if not values:
        msg = f"an update of {handle.what} needs at least one column and its expression"
        raise InvalidInputError(msg)
    assignments = {name: whole(of, "expression") for name, of in values.items()}
    rows = None if where is None else whole(where)
    with handle.changing(At(branch=branch)) as dataset, parsing(where, handle.what):
        result = dataset.update(assignments, where=rows)
        return Changed(dataset.version, updated=result["num_rows_updated"])


def delete(handle: TableHandle, where: str, *, branch: str | None = None) -> Changed:
    """Delete the rows that a filter selects.

    Raises:
        TableColumnNotFoundError: the filter names a column that is not there.
        InvalidInputError: the filter makes no sense.
    """
    if not where.strip():
        msg = f"a deletion from {handle.what} needs a filter: 'true' selects every row"
        raise InvalidInputError(msg)
    with handle.changing(At(branch=branch)) as dataset, parsing(where, handle.what):
        result = dataset.delete(whole(where))
        return Changed(dataset.version, deleted=result["num_deleted_rows"])


def restore(handle: TableHandle, version: int, *, branch: str | None = None) -> Changed:
    """Make the content of an older version the newest.

    Raises:
        TableVersionNotFoundError: there is no such version.
    """
    with handle.changing(At(version, branch=branch)) as dataset:
        dataset.restore()  # type: ignore[no-untyped-call]
        done = Committed.of(dataset)
        return Changed(done.version, transaction_id=done.transaction_id)


@contextmanager
def _reading(rows: pa.RecordBatchReader) -> Iterator[WatchedRows]:
    """Tell a failure of the rows from one of the table."""
    source = WatchedRows(rows)
    try:
        yield source
    except Exception as exc:
        if source.failure is not None:
            raise source.failure from exc
        raise


def _whole(condition: str | None) -> str | None:
    return None if condition is None else whole(condition, "condition")


def _require_columns(wanted: Sequence[str], known: Sequence[str], what: str) -> None:
    missing = [name for name in wanted if name not in known]
    if missing:
        msg = f"{what} have no column {quote(missing[0])}: they have {', '.join(known)}"
        raise TableColumnNotFoundError(msg)
