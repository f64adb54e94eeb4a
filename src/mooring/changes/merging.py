"""Merging: what the rows of a bucket are after all changes, in the order of their positions.

The changes of a key are gone through from the first to the last. Rows that are appended or added
join the key's rows; an upsert leaves one row, which keeps the values of columns that the upsert
does not bring; a deletion leaves none. Where the table has a merge order, an upsert or deletion
counts only if no earlier change of the key has a greater value in that column.

Nothing here looks at one row: each layer of changes is a few operations on arrays. What comes out,
with the deletions that may have to refuse a late change, is a layer again: merging in steps gives
the same as merging at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.definition import default_of
from mooring.changes.hashing import hash_rows
from mooring.changes.taking import take_values
from mooring.metastore import DeltaType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.definition import Definition

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Layer", "Merged", "key_codes", "merge", "rank_values", "with_all_columns"]

# Of fewer rows, or where more of them change, all are merged one way.
_WORTHWHILE = 4096
_MOST_TOUCHED = 0.5


@dataclass(frozen=True)
class Layer:
    """Changes of one kind; of an upsert or deletion that was written each key comes once.

    Attributes:
        type: What they do.
        rows: Keys, and the columns that the change brings, as the table calls them now.
    """

    type: DeltaType
    rows: pa.Table

    @property
    def adds(self) -> bool:
        """Whether rows join those that are there."""
        return self.type in {DeltaType.APPEND, DeltaType.ADD}


@dataclass(frozen=True)
class Merged:
    """What came out.

    Attributes:
        rows: The rows.
        deletions: Keys, with their merge order, that are gone and may refuse a late change.
    """

    rows: pa.Table
    deletions: pa.Table | None = None


def merge(layers: Sequence[Layer], table: Definition, columns: Sequence[str]) -> Merged:
    """Merge layers, the oldest first.

    Args:
        layers: The changes; each brings the table's keys and, where it has any of them, order.
        table: The table.
        columns: The columns of the result.
    """
    wanted = pa.schema([table.schema.field(name) for name in columns])
    layers = [layer for layer in layers if layer.rows.num_rows]
    if not layers:
        return Merged(wanted.empty_table())
    if not table.is_keyed or (table.order is None and all(layer.adds for layer in layers)):
        tables = [with_all_columns(layer.rows, wanted) for layer in layers if layer.adds]
        return Merged(pa.concat_tables(tables))
    alone, layers = _set_aside(layers, table)
    if alone is None:
        return _Fold(_joined(layers, table), table, wanted).result()
    rows = with_all_columns(alone, wanted)
    if not layers:
        return Merged(rows)
    folded = _Fold(_joined(layers, table), table, wanted).result()
    return Merged(pa.concat_tables([rows, folded.rows]), folded.deletions)


def _joined(layers: Sequence[Layer], table: Definition) -> list[Layer]:
    """Put changes together that follow each other, do the same and bring the same columns.

    Of a key that comes several times in what was upserted or deleted the last row counts, as if
    they came one by one; not so where a merge order decides.
    """
    found: list[Layer] = []
    by_order = table.order is not None
    for (adds, type_, _), group in groupby(
        layers, key=lambda one: (one.adds, None if one.adds else one.type, one.rows.schema)
    ):
        own = list(group)
        if len(own) == 1 or (by_order and not adds):
            found += own
            continue
        rows = pa.concat_tables([layer.rows for layer in own])
        found.append(Layer(type_ or DeltaType.APPEND, rows))
    return found


def _set_aside(layers: Sequence[Layer], table: Definition) -> tuple[pa.Table | None, list[Layer]]:
    """Take those rows of the largest layer out that no other layer has the keys of.

    They come out as they are, whether they were added or upserted. Most rows of a table are such
    rows, and looking for the others by a part of a hash costs next to nothing.
    """
    found = list(layers)
    place = max(range(len(found)), key=lambda one: found[one].rows.num_rows)
    largest = found[place]
    others = [layer.rows for layer in found if layer is not largest]
    changing = sum(rows.num_rows for rows in others)
    if largest.type is DeltaType.DELETE or largest.rows.num_rows < max(changing, _WORTHWHILE):
        return None, found
    if not others:
        return largest.rows, []
    names = _cheap_keys(table)
    bits = max(16, (8 * changing).bit_length())
    marked = np.zeros(2**bits, bool)
    # The upper bits: the lower ones are those of the bucket, the same in all of it.
    shift = np.uint64(64 - bits)
    marked[hash_rows(_all_of(others, table, names)) >> shift] = True
    touched = marked[hash_rows(_all_of([largest.rows], table, names)) >> shift]
    if touched.mean() > _MOST_TOUCHED:
        return None, found
    found[place] = Layer(largest.type, largest.rows.filter(pa.array(touched)))
    return largest.rows.filter(pa.array(~touched)), [one for one in found if one.rows.num_rows]


def _all_of(
    tables: Sequence[pa.Table], table: Definition, names: Sequence[str]
) -> list[pa.ChunkedArray]:
    """Return some columns of several tables, one after the other."""
    return [
        pa.chunked_array([_column(rows, table.schema.field(name)) for rows in tables])
        for name in names
    ]


def _cheap_keys(table: Definition) -> list[str]:
    """Name the keys that are numbers or times, where there are some: text takes long to hash."""
    kinds = {name: table.schema.field(name).type for name in table.keys}
    return [
        name
        for name, kind in kinds.items()
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    ] or list(kinds)


def key_codes(keys: pa.Table) -> Numbers:
    """Number the keys of rows: equal keys, nulls included, have one number, counted from zero."""
    found: pa.Array | None = None
    for column in keys.columns:
        encoded = _flat(column).dictionary_encode(null_encoding="encode")
        codes = encoded.indices.cast(pa.int64())
        if found is not None:
            # Dense again after each column: the product of the counts may be past 64 bits.
            codes = pc.add(pc.multiply(found, max(len(encoded.dictionary), 1)), codes)
            codes = codes.dictionary_encode().indices.cast(pa.int64())
        found = codes
    assert found is not None  # noqa: S101  # a key has a column
    numbers: Numbers = found.to_numpy(zero_copy_only=False)
    return numbers


def rank_values(column: pa.ChunkedArray) -> Numbers:
    """Number values of a merge order by size, equal ones alike; null is the least."""
    encoded = _flat(column).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    sizes = np.empty(len(order), np.int64)
    sizes[order] = np.arange(len(order))
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(places < 0, -1, sizes[places] if len(sizes) else -1)


def with_all_columns(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Give rows the columns of a schema; those that they lack have their defaults."""
    columns = []
    for one in wanted:
        if one.name in rows.schema.names:
            columns.append(rows[one.name].cast(one.type))
            continue
        columns.append(pa.chunked_array([_repeat(default_of(one), rows.num_rows)]))
    return pa.Table.from_arrays(columns, schema=wanted)


def _repeat(value: pa.Scalar, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)


class _Fold:
    """The state of every key, as layer after layer changes it."""

    def __init__(self, layers: Sequence[Layer], table: Definition, wanted: pa.Schema) -> None:
        self._layers = layers
        self._table = table
        self._wanted = wanted
        counts = [layer.rows.num_rows for layer in layers]
        self._ends = np.cumsum(counts)
        self._total = int(self._ends[-1])
        # Files from before a key was widened have its old type.
        keys = pa.schema([table.schema.field(name) for name in table.keys])
        self._keys = pa.concat_tables([with_all_columns(layer.rows, keys) for layer in layers])
        self._codes = key_codes(self._keys)
        distinct = int(self._codes.max()) + 1
        # Rows before it are gone.
        self._barrier = np.zeros(distinct, np.int64)
        self._counts = np.ones(self._total, bool)
        self._ranks = self._rank() if table.order else None
        self._top = np.full(distinct, -1, np.int64)
        self._partial = self._find_partial()
        # Of a column that some upserts do not bring: where a key's value is, and where a row's is.
        self._last = {name: np.full(distinct, -1, np.int64) for name in self._partial}
        self._taken = {name: np.arange(self._total) for name in self._partial}

    def result(self) -> Merged:
        start = 0
        for layer, end in zip(self._layers, self._ends, strict=True):
            self._apply(layer, np.arange(start, int(end)))
            start = int(end)
        kept = np.flatnonzero(self._counts & (np.arange(self._total) >= self._barrier[self._codes]))
        return Merged(self._rows(kept), self._deletions(kept))

    def _apply(self, layer: Layer, index: Numbers) -> None:
        codes = self._codes[index]
        if layer.adds:
            self._add(layer, index, codes)
            return
        ranks = self._ranks[index] if self._ranks is not None else None
        has_order = ranks is not None and self._table.order in layer.rows.schema.names
        if ranks is not None and has_order:
            counts = ranks >= self._top[codes]
            self._counts[index[~counts]] = False
            index, codes, ranks = index[counts], codes[counts], ranks[counts]
            self._top[codes] = ranks
        if layer.type is DeltaType.DELETE:
            self._counts[index] = False
            self._barrier[codes] = index + 1
            for last in self._last.values():
                last[codes] = -1
            return
        self._barrier[codes] = index
        for name in self._partial:
            if name in layer.rows.schema.names:
                self._last[name][codes] = index
            else:
                self._taken[name][index] = self._last[name][codes]

    def _add(self, layer: Layer, index: Numbers, codes: Numbers) -> None:
        if self._ranks is not None:
            np.maximum.at(self._top, codes, self._ranks[index])
        for name in self._partial:
            if name in layer.rows.schema.names:
                self._last[name][codes] = index  # of one key's rows the last
            else:
                self._last[name][codes] = -1
                self._taken[name][index] = -1

    def _find_partial(self) -> list[str]:
        """Name the columns that not every layer brings; keys of deletions bring nothing."""
        bringing = [layer for layer in self._layers if layer.type is not DeltaType.DELETE]
        return [
            one.name
            for one in self._wanted
            if any(one.name not in layer.rows.schema.names for layer in bringing)
        ]

    def _rank(self) -> Numbers:
        """Number the values of the merge order by size; null is the least."""
        name = self._table.order or ""
        one = self._table.schema.field(name)
        parts = [_column(layer.rows, one) for layer in self._layers]
        return rank_values(pa.chunked_array(parts, one.type))

    def _rows(self, kept: Numbers) -> pa.Table:
        columns = []
        for one in self._wanted:
            parts = [chunk for layer in self._layers for chunk in _chunks(layer.rows, one)]
            values = pa.chunked_array(parts, one.type)
            if one.name not in self._partial:
                columns.append(take_values(values, kept))
                continue
            taken = self._taken[one.name][kept]
            missing = taken < 0
            found = take_values(values, np.where(missing, 0, taken))
            columns.append(_fill(found, missing, default_of(one)))
        return pa.Table.from_arrays(columns, schema=self._wanted)

    def _deletions(self, kept: Numbers) -> pa.Table | None:
        """Keep the order of keys that no row tells any more."""
        if self._ranks is None:
            return None
        told = np.full(len(self._top), -1, np.int64)
        np.maximum.at(told, self._codes[kept], self._ranks[kept])
        missing = np.flatnonzero(self._top > told)
        if not len(missing):
            return None
        # A row of the key that has the order which is missing.
        holds = np.flatnonzero(self._ranks == self._top[self._codes])
        where = np.full(len(self._top), -1, np.int64)
        where[self._codes[holds]] = holds
        rows = pa.array(where[missing])
        one = self._table.schema.field(self._table.order or "")
        parts = [_column(layer.rows, one) for layer in self._layers]
        order = pa.chunked_array(parts, one.type).take(rows)
        return self._keys.take(rows).append_column(one, order)


def _column(rows: pa.Table, one: pa.Field) -> pa.Array:
    if one.name in rows.schema.names:
        return _flat(rows[one.name].cast(one.type))
    return pa.nulls(rows.num_rows, one.type)


def _chunks(rows: pa.Table, one: pa.Field) -> list[pa.Array]:
    if one.name in rows.schema.names:
        found: list[pa.Array] = rows[one.name].cast(one.type).chunks
        return found
    return [pa.nulls(rows.num_rows, one.type)]


def _fill(
    column: pa.ChunkedArray, missing: np.ndarray[Any, np.dtype[np.bool_]], default: pa.Scalar
) -> pa.ChunkedArray:
    """Put a default in the place of some values."""
    chunks, start = [], 0
    for chunk in column.chunks:
        own = missing[start : start + len(chunk)]
        start += len(chunk)
        chunks.append(pc.if_else(pa.array(own), default, chunk) if own.any() else chunk)
    return pa.chunked_array(chunks, column.type)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
