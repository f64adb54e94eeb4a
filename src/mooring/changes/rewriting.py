"""The rewriting of buckets: workers read what is there, and write what a round is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.compaction_plan import size_of
from mooring.changes.compaction_policy import GATHER
from mooring.changes.files import write_file
from mooring.changes.merging import key_codes
from mooring.changes.reading import merge_bucket, read_layers
from mooring.changes.taking import take_rows
from mooring.clock import RandomIds
from mooring.metastore import DeltaType, Segment
from mooring.metastore.layout import data_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.merging import Merged
    from mooring.changes.plan import BucketRead
    from mooring.jobs.address import CatalogAddress
    from mooring.metastore import DataFile
    from mooring.store import Store

__all__ = ["RewriteTask", "Rewritten", "divide_work", "rewrite"]

# Buckets that are smaller share a file.
_SHARED_BYTES = 4 * 2**20
_LEAST_PART_BYTES = 16 * 2**20
_PARTS_A_WORKER = 4


@dataclass(frozen=True)
class RewriteTask:
    """Buckets of a partition that one worker rewrites; it travels.

    Attributes:
        catalog: The catalog.
        token: The id below which files are written.
        partition: The partition's id.
        table: What the table is.
        level: How to rewrite them.
        buckets: What to read.
        target_bytes: How large a file may become.
        target_rows: How many rows it may have.
    """

    catalog: CatalogAddress
    token: str
    partition: str
    table: Definition
    level: int
    buckets: tuple[BucketRead, ...]
    target_bytes: int
    target_rows: int

    @property
    def bytes(self) -> float:
        """About how much it reads."""
        return sum(size_of(read.pieces) for read in self.buckets)


@dataclass(frozen=True)
class Rewritten:
    """What a worker wrote.

    Attributes:
        partition: The partition's id.
        files: The files.
        rows_in: How many rows it read.
        rows_out: How many it wrote, those that tell of deletions among them.
    """

    partition: str
    files: tuple[DataFile, ...]
    rows_in: int
    rows_out: int


def divide_work(buckets: Sequence[BucketRead], workers: int) -> list[tuple[BucketRead, ...]]:
    """Divide what is to be read into parts of about the same size; neighbours stay together."""
    total = sum(size_of(read.pieces) for read in buckets)
    limit = max(total / max(1, workers * _PARTS_A_WORKER), _LEAST_PART_BYTES)
    found: list[list[BucketRead]] = []
    size = limit
    for read in buckets:
        own = size_of(read.pieces)
        if size + own > limit and (not found or found[-1]):
            found.append([])
            size = 0.0
        found[-1].append(read)
        size += own
    return [tuple(part) for part in found]


def rewrite(task: RewriteTask) -> Rewritten:
    """Read buckets, and write what a round is made of.

    Raises:
        UnreadableError: a file is gone or damaged.
    """
    store = task.catalog.open().metastore.store
    output = _Output(store, task)
    for read in task.buckets:
        if task.level == GATHER:
            output.add_changes(read)
        else:
            output.add_merged(read)
    output.flush()
    rows_in = sum(read.rows for read in task.buckets)
    return Rewritten(task.partition, tuple(output.files), rows_in, output.rows)


class _Output:
    """Files of a round; buckets that are small share one."""

    def __init__(self, store: Store, task: RewriteTask) -> None:
        self._store = store
        self._task = task
        self._table = task.table
        self._names = list(task.table.schema.names)
        self._tables: list[pa.Table] = []
        self._segments: list[Segment] = []
        self._offset = 0
        self._bytes = 0.0
        self.files: list[DataFile] = []
        self.rows = 0

    def add_changes(self, read: BucketRead) -> None:
        """Add changes of a bucket, as they are."""
        for piece, layer in zip(
            read.pieces,
            read_layers(self._store, read.pieces, self._table, self._names),
            strict=True,
        ):
            ids = tuple(sorted(self._table.ids_by_name[name] for name in layer.rows.schema.names))
            self._add(
                read.bucket, layer.rows, position=piece.position, type_=layer.type, columns=ids
            )
        self._bytes += size_of(read.pieces)
        if self._bytes >= self._task.target_bytes:
            self.flush()

    def add_merged(self, read: BucketRead) -> None:
        """Add what changes of a bucket come to."""
        merged = merge_bucket(self._store, read.pieces, self._table, self._names)
        rows = _sorted(merged.rows, self._table)
        size = size_of(read.pieces) * rows.num_rows / max(read.rows, 1)
        if size >= _SHARED_BYTES:
            self.flush()
        self._add_deletions(read.bucket, merged)
        parts = max(
            1, ceil(rows.num_rows / self._task.target_rows), ceil(size / self._task.target_bytes)
        )
        length = ceil(rows.num_rows / parts)
        for number in range(parts):
            part = rows.slice(number * length, length)
            if not part.num_rows:
                continue
            self._add(read.bucket, part)
            if number < parts - 1:
                self.flush()
        self._bytes += size / parts
        if self._bytes >= _SHARED_BYTES:
            self.flush()

    def _add_deletions(self, bucket: int, merged: Merged) -> None:
        """Tell of keys that are gone, before the rows: they refuse changes that come late."""
        gone = merged.deletions
        if gone is None:
            return
        ids = tuple(sorted(self._table.ids_by_name[name] for name in gone.schema.names))
        self._add(bucket, gone, type_=DeltaType.DELETE, columns=ids)

    def _add(
        self,
        bucket: int,
        rows: pa.Table,
        *,
        position: int = 0,
        type_: DeltaType | None = None,
        columns: tuple[int, ...] | None = None,
    ) -> None:
        if self._offset + rows.num_rows > self._task.target_rows:
            self.flush()
        segment = Segment(bucket, self._offset, rows.num_rows, position, type_, columns)
        self._tables.append(rows)
        self._segments.append(segment)
        self._offset += rows.num_rows
        self.rows += rows.num_rows

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._tables:
            return
        rows, known = self._together()
        # Another attempt of the same work has a file of its own.
        path = f"{data_dir(self._task.token)}/{RandomIds().new_id()}.parquet"
        self.files.append(
            write_file(self._store, path, rows, self._segments, table=self._table, measured=known)
        )
        self._tables, self._segments = [], []
        self._offset, self._bytes = 0, 0.0

    def _together(self) -> tuple[pa.Table, set[str]]:
        """Return the rows as one table, and the columns that all of them bring."""
        having = [set(one.schema.names) for one in self._tables]
        fields = [one for one in self._table.schema if any(one.name in names for names in having)]
        schema = pa.schema([pa.field(one.name, one.type) for one in fields])
        tables = [_with_columns(one, schema) for one in self._tables]
        bringing = [
            names
            for names, segment in zip(having, self._segments, strict=True)
            if segment.type is not DeltaType.DELETE
        ]
        known = {one.name for one in fields if all(one.name in names for names in bringing)}
        return pa.concat_tables(tables), known


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give rows the columns of a schema; which of them they bring is told beside."""
    columns = [
        rows[one.name].cast(one.type)
        if one.name in rows.schema.names
        else pa.chunked_array([pa.nulls(rows.num_rows, one.type)])
        for one in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _sorted(rows: pa.Table, table: Definition) -> pa.Table:
    """Sort rows as the table wants it; those that share a key stay in their order, at the end.

    An upsert of some columns takes the others from the last row of its key.
    """
    if not table.sort or not rows.num_rows:
        return rows
    by = [(one.columns[0], "descending" if one.descending else "ascending") for one in table.sort]
    if not table.is_keyed:
        return take_rows(rows, pc.sort_indices(rows, sort_keys=by).to_numpy())
    codes = key_codes(rows.select(list(table.keys)))
    once = np.bincount(codes)[codes] == 1
    if once.all():
        return take_rows(rows, pc.sort_indices(rows, sort_keys=by).to_numpy())
    single, others = rows.filter(pa.array(once)), rows.filter(pa.array(~once))
    single = take_rows(single, pc.sort_indices(single, sort_keys=by).to_numpy())
    return pa.concat_tables([single, others])
