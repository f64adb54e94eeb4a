"""A glance at a change table: some of its rows, and never more work than a look is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.compaction_plan import size_of
from mooring.changes.predicates import parse_predicate
from mooring.changes.reading import ReadTask
from mooring.errors import TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.plan import BucketRead, Moment
    from mooring.changes.predicates import Predicate
    from mooring.changes.table import ChangeTable

__all__ = ["Glance", "glance"]

# So much is read for a look, before rows of one key are merged.
_MOST_ROWS = 200_000
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Glance:
    """Some rows of a change table.

    Attributes:
        rows: The rows.
        buckets: How many of its buckets were read.
        of: How many there are to read.
        found: How many rows those buckets have that the filter leaves; the skipped ones count.
    """

    rows: pa.Table
    buckets: int
    of: int
    found: int

    @property
    def is_all(self) -> bool:
        """Whether every bucket was read, so that it is known how many rows there are."""
        return self.buckets == self.of


def glance(
    table: ChangeTable,
    moment: Moment,
    columns: Sequence[str],
    where: str | None = None,
    *,
    offset: int = 0,
    limit: int = 50,
) -> Glance:
    """Read some rows of a table; buckets are read one by one until there are enough.

    Args:
        table: The table.
        moment: The table at a position.
        columns: The columns.
        where: Which rows; all unless given.
        offset: So many rows are skipped.
        limit: So many are wanted.

    Raises:
        InvalidInputError: the condition cannot be read.
        TableColumnNotFoundError: there is no such column.
        UnreadableError: a file is gone or damaged.
    """
    definition = moment.table.definition
    _require_columns(moment, columns)
    condition = None if where is None else parse_predicate(where, definition)
    buckets = table.plan(moment, condition).buckets
    parts: list[pa.Table] = []
    left_rows, left_bytes = _MOST_ROWS, float(_MOST_BYTES)
    found = read = 0
    for bucket in buckets:
        left_rows -= bucket.rows
        left_bytes -= size_of(bucket.pieces)
        # One bucket is always read: a look at nothing tells nothing.
        if found >= offset + limit or (read and (left_rows < 0 or left_bytes < 0)):
            break
        rows = _read(table, definition, bucket, columns, condition)
        parts += [rows.slice(max(0, offset - found))]
        found += rows.num_rows
        read += 1
    schema = pa.schema([definition.schema.field(name) for name in columns]).remove_metadata()
    return Glance(_join(parts, schema).slice(0, limit), read, len(buckets), found)


def _read(  # noqa: PLR0917  # what a task is made of
    table: ChangeTable,
    definition: Definition,
    bucket: BucketRead,
    columns: Sequence[str],
    where: Predicate | None,
) -> pa.Table:
    task = ReadTask(CatalogAddress.of(table.catalog), definition, (bucket,), tuple(columns), where)
    parts = list(task.read_from(table.catalog.metastore.store))
    return _join(parts, pa.schema([definition.schema.field(name) for name in columns]))


def _join(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    # An upsert that lacks a column can make a row without it, whatever the column demands.
    free = pa.schema([one.with_nullable(True) for one in schema]).remove_metadata()  # noqa: FBT003
    return pa.concat_tables([free.empty_table(), *(one.cast(free) for one in parts)])


def _require_columns(moment: Moment, columns: Sequence[str]) -> None:
    known = moment.table.definition.schema.names
    for name in columns:
        if name not in known:
            msg = f"{moment.table.what} has no column {quote(name)}: it has {', '.join(known)}"
            raise TableColumnNotFoundError(msg)
