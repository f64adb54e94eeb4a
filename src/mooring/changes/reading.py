"""Merge-on-read: workers read buckets, merge their changes and give rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.files import read_segments
from mooring.changes.merging import Layer, Merged, merge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.log import Piece
    from mooring.changes.plan import BucketRead
    from mooring.changes.predicates import Predicate
    from mooring.jobs.address import CatalogAddress
    from mooring.store import Store

__all__ = ["ReadTask", "merge_bucket", "read_layers"]


@dataclass(frozen=True)
class ReadTask:
    """Some buckets that one worker reads; it travels.

    Attributes:
        catalog: The catalog.
        table: What the table is.
        buckets: What to read.
        columns: The columns to give.
        where: Which rows to give; all unless given.
    """

    catalog: CatalogAddress
    table: Definition
    buckets: tuple[BucketRead, ...]
    columns: tuple[str, ...]
    where: Predicate | None = None

    def read(self) -> Iterator[pa.Table]:
        """Give the rows, bucket by bucket.

        Raises:
            UnreadableError: a file is gone or damaged.
        """
        yield from self.read_from(self.catalog.open().metastore.store)

    def read_from(self, store: Store) -> Iterator[pa.Table]:
        """Give the rows, bucket by bucket, of a metastore that is open already.

        Raises:
            UnreadableError: a file is gone or damaged.
        """
        columns = list(self.columns)
        extra = [name for name in self._filtered() if name not in columns]
        for read in self.buckets:
            rows = merge_bucket(store, read.pieces, self.table, [*columns, *extra]).rows
            if self.where is not None:
                rows = rows.filter(self.where.expression(self.table.schema))
            if rows.num_rows:
                yield rows.select(columns)

    def _filtered(self) -> list[str]:
        return [] if self.where is None else sorted(self.where.columns)


def merge_bucket(
    store: Store, pieces: Sequence[Piece], table: Definition, columns: Sequence[str]
) -> Merged:
    """Read the pieces of a bucket and merge them."""
    return merge(read_layers(store, pieces, table, columns), table, columns)


def read_layers(
    store: Store, pieces: Sequence[Piece], table: Definition, columns: Sequence[str]
) -> list[Layer]:
    """Read pieces, in their order; those of one file that follow each other together."""
    by_key = any(not Layer(piece.type, _EMPTY).adds for piece in pieces) or table.order is not None
    needed = {*columns, *(table.keys if by_key else ())}
    if by_key and table.order:
        needed.add(table.order)
    layers: list[Layer] = []
    for _, group in groupby(pieces, key=lambda piece: piece.file.path):
        own = list(group)
        tables = read_segments(
            store, own[0].file, [one.segment for one in own], table=table, names=needed
        )
        layers += [Layer(one.type, rows) for one, rows in zip(own, tables, strict=True)]
    return layers


_EMPTY = pa.table({})
