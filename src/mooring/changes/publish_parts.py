"""The rows of a publication, written by workers: each merges some of the buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.changed_rows import changed_rows
from mooring.changes.reading import merge_bucket
from mooring.jobs.writing import PartWritten
from mooring.tables.fragments import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.changes.changed_rows import BucketChange
    from mooring.changes.definition import Definition
    from mooring.changes.published_shape import Shape
    from mooring.jobs.address import CatalogAddress
    from mooring.tables.draft import Draft

__all__ = ["WriteBuckets", "divide_buckets"]

# Of changes and of merged rows a worker should have at least so many.
_CHANGES_A_PART, _ROWS_A_PART = 20_000, 500_000


def divide_buckets(changes: Sequence[BucketChange], most: int) -> list[tuple[BucketChange, ...]]:
    """Divide buckets among workers, but not so far that small files come of it."""
    if not changes:
        return []
    fresh, rows = sum(one.rows for one in changes), sum(one.read.rows for one in changes)
    parts = max(1, min(most, max(fresh // _CHANGES_A_PART, rows // _ROWS_A_PART), len(changes)))
    found: list[list[BucketChange]] = [[] for _ in range(parts)]
    loads = [0] * parts
    for change in sorted(changes, key=lambda one: one.read.rows, reverse=True):
        least = loads.index(min(loads))
        found[least].append(change)
        loads[least] += change.read.rows
    return [tuple(part) for part in found if part]


@dataclass(frozen=True)
class WriteBuckets:
    """Merges buckets and writes their rows, wherever it is.

    Attributes:
        catalog: The change table's catalog.
        table: What the change table is.
        shape: What its published rows are.
        whole: Whether all rows are written, or those of changed keys.
    """

    catalog: CatalogAddress
    table: Definition
    shape: Shape
    whole: bool

    def __call__(self, draft: Draft, part: tuple[BucketChange, ...]) -> PartWritten:
        """Write the rows of some buckets."""
        rows = self._rows(part)
        first = next(rows, None)
        if first is None:
            return PartWritten()
        counted = [0]
        reader = pa.RecordBatchReader.from_batches(
            self.shape.schema, _count_rows(first, rows, counted)
        )
        fragments = draft.write(reader)
        return PartWritten(pack(fragments), counted[0])

    def _rows(self, part: tuple[BucketChange, ...]) -> Iterator[pa.RecordBatch]:
        store = self.catalog.open().metastore.store
        for change in part:
            if self.whole:
                columns = self.shape.reads
                rows = merge_bucket(store, change.read.pieces, self.table, columns).rows
            else:
                rows = changed_rows(store, change, self.table, self.shape.reads)
            yield from (batch for batch in self.shape.make(rows) if batch.num_rows)


def _count_rows(
    first: pa.RecordBatch, others: Iterator[pa.RecordBatch], counted: list[int]
) -> Iterator[pa.RecordBatch]:
    counted[0] += first.num_rows
    yield first
    for batch in others:
        counted[0] += batch.num_rows
        yield batch
