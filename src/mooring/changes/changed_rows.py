"""What changed between two positions: buckets, their keys, and the rows that these have now."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.log import Piece
from mooring.changes.merging import Layer, key_codes, merge, with_all_columns
from mooring.changes.plan import BucketRead
from mooring.changes.reading import read_layers
from mooring.changes.replacement import REPLACEMENT
from mooring.changes.rounds import KIND
from mooring.metastore import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.log import PartitionLog
    from mooring.changes.plan import Moment
    from mooring.jobs.address import CatalogAddress
    from mooring.store import Store

    Mask = np.ndarray[Any, np.dtype[np.bool_]]

__all__ = [
    "BucketChange",
    "ChangedKeys",
    "changed_rows",
    "find_changed",
    "has_keys",
    "is_replaced",
]

# Of the publications that go on at once in a process.
_KEPT = 4


@dataclass(frozen=True)
class BucketChange:
    """A bucket that changed.

    Attributes:
        read: All of it, at the new position.
        fresh: What came after the old position.
    """

    read: BucketRead
    fresh: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows came."""
        return sum(piece.segment.rows for piece in self.fresh)


def find_changed(moment: Moment, after: int) -> list[BucketChange]:
    """Find the buckets that changed after a position; the others are not looked at."""
    found: list[BucketChange] = []
    for log in moment.partitions.values():
        fresh = _pieces(log, after, moment.position)
        layers = log.layers(moment.position, moment.table.definition) if fresh else {}
        for bucket, pieces in sorted(fresh.items()):
            base, changes = layers.get(bucket, ([], []))
            read = BucketRead(log.values, bucket, tuple(base), tuple(changes))
            found.append(BucketChange(read, tuple(pieces)))
    return found


def _pieces(log: PartitionLog, after: int, until: int) -> dict[int, list[Piece]]:
    found: dict[int, list[Piece]] = {}
    for delta in log.deltas_between(after, until):
        for file in delta.files:
            for segment in file.segments or (Segment(0, 0, file.rows or 0),):
                piece = Piece(delta.position, segment.type or delta.type, file, segment)
                found.setdefault(segment.bucket, []).append(piece)
    return found


def is_replaced(moment: Moment, after: int) -> bool:
    """Whether rows were replaced since a position otherwise than by their keys."""
    return any(
        base.properties.get(KIND) == REPLACEMENT and after < base.through <= moment.position
        for log in moment.partitions.values()
        for base in log.bases
    )


def changed_rows(
    store: Store, change: BucketChange, table: Definition, columns: Sequence[str]
) -> pa.Table:
    """Give the rows that the changed keys of a bucket have now.

    Of a table without keys these are the rows that came.
    """
    if not table.is_keyed:
        return merge(read_layers(store, change.fresh, table, columns), table, columns).rows
    keys = _read_keys(store, change.fresh, table)
    needed = [*columns, *(name for name in table.keys if name not in columns)]
    layers = [
        Layer(layer.type, layer.rows.filter(pa.array(has_keys(layer.rows, keys))))
        for layer in read_layers(store, change.read.pieces, table, needed)
    ]
    return merge(layers, table, columns).rows


def has_keys(rows: pa.Table, keys: pa.Table) -> Mask:
    """Tell which rows have one of some keys; a key may have nulls, which equal each other."""
    own = with_all_columns(rows.select(keys.schema.names), keys.schema)
    found = np.ones(own.num_rows, bool)
    for name in keys.schema.names:
        # Mostly few keys are looked for among many: most rows are out by their first column.
        found &= pc.is_in(own[name], keys[name].combine_chunks()).to_numpy()
    places = np.flatnonzero(found)
    if keys.num_columns == 1 or not len(places):
        return found
    codes = key_codes(pa.concat_tables([keys, own.take(pa.array(places))]))
    wanted = np.zeros(int(codes.max()) + 1, bool)
    wanted[codes[: keys.num_rows]] = True
    found[places] = wanted[codes[keys.num_rows :]]
    return found


def _read_keys(store: Store, pieces: Sequence[Piece], table: Definition) -> pa.Table:
    """Read the keys of changes, each once."""
    schema = pa.schema([table.schema.field(name) for name in table.keys]).remove_metadata()
    layers = read_layers(store, pieces, table, table.keys)
    found = [with_all_columns(layer.rows.select(list(table.keys)), schema) for layer in layers]
    keys = pa.concat_tables([schema.empty_table(), *found])
    if not keys.num_rows:
        return keys
    _, first = np.unique(key_codes(keys), return_index=True)
    return keys.take(pa.array(np.sort(first)))


@dataclass(frozen=True)
class ChangedKeys:
    """The keys of all changes; it travels as names of files, which each worker reads once.

    Attributes:
        catalog: The catalog.
        table: What the table is.
        pieces: The changes, bucket by bucket.
        token: A name that no other has.
    """

    catalog: CatalogAddress
    table: Definition
    pieces: tuple[tuple[Piece, ...], ...]
    token: str

    def read(self) -> pa.Table:
        """Give the keys."""
        return _kept.read(self)

    def _read(self) -> pa.Table:
        store = self.catalog.open().metastore.store
        schema = pa.schema([self.table.schema.field(name) for name in self.table.keys])
        found = [_read_keys(store, pieces, self.table) for pieces in self.pieces]
        return pa.concat_tables([schema.remove_metadata().empty_table(), *found])


class _Kept:
    """The keys that this process read last: threads wait for the one that reads them."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, pa.Table] = OrderedDict()
        self._reading = threading.Lock()

    def read(self, keys: ChangedKeys) -> pa.Table:
        with self._reading:
            if keys.token not in self._found:
                self._found[keys.token] = keys._read()  # noqa: SLF001  # of this module
                while len(self._found) > _KEPT:
                    self._found.popitem(last=False)
            return self._found[keys.token]


_kept = _Kept()
