"""Data files of a change table: Parquet, with rows in the order of their buckets."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mooring.changes.definition import FIELD_ID, PARQUET, field_id
from mooring.changes.statistics import measure
from mooring.changes.taking import take_values
from mooring.errors import UnreadableError
from mooring.metastore import DataFile, Segment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mooring.changes.definition import Definition
    from mooring.store import Store

__all__ = ["read_segments", "write_file"]

# Where a bucket has as many rows, it begins a row group of its own: others are not read with it.
_ROWS_A_GROUP = 128 * 1024
_LARGE = 4 * 1024
# Files and row groups are read for several buckets one after the other.
_KEPT_BYTES = 128 * 2**20
_KEPT_ROW_BYTES = 256 * 2**20
_KEPT_FOOTERS = 4096
# How many values are looked at to choose how a column is written.
_SAMPLE = 4096
# Smaller files are read whole, others only where rows are wanted.
_SMALL = 2**20

T = TypeVar("T")


def write_file(
    store: Store,
    path: str,
    rows: pa.Table,
    segments: Sequence[Segment],
    *,
    table: Definition,
    measured: Collection[str] | None = None,
) -> DataFile:
    """Write rows, which are in the order of their segments.

    Args:
        store: Where to.
        path: The file.
        rows: The rows.
        segments: Which rows belong to which bucket.
        table: What the table is.
        measured: The columns to tell the least and greatest values of; all unless given. Where
            some segments do not bring a column, nothing is known of the values that they have.

    Raises:
        MooringError: the store refuses.
    """
    numbered = rows.cast(_with_ids(rows.schema, table))
    sink = pa.BufferOutputStream()
    repeating = [name for name in rows.schema.names if _repeats(rows[name])]
    with pq.ParquetWriter(
        sink,
        numbered.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeating or False,
    ) as writer:
        for offset, count in _groups(segments, rows.num_rows):
            writer.write_table(numbered.slice(offset, count), row_group_size=_ROWS_A_GROUP)
    body = sink.getvalue().to_pybytes()
    store.put(path, body)
    first = [*table.keys, *([table.order] if table.order else [])]
    shown = (
        rows if measured is None else rows.select([n for n in rows.schema.names if n in measured])
    )
    least, greatest, nulls = measure(shown, [name for name in first if name in shown.schema.names])
    return DataFile(
        path=path,
        content_type=PARQUET,
        rows=rows.num_rows,
        size_bytes=len(body),
        minimum=_by_id(least, table),
        maximum=_by_id(greatest, table),
        nulls={str(table.ids_by_name[name]): count for name, count in nulls.items()},
        segments=tuple(segments),
    )


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether values of a column come again and again: only then a dictionary makes it smaller.

    Writing one for others takes three times as long as writing the values.
    """
    if pa.types.is_nested(column.type):
        return True
    step = max(1, len(column) // _SAMPLE)
    some = column if step == 1 else take_values(column, np.arange(0, len(column), step))
    try:
        return bool(pc.count_distinct(some, mode="all").as_py() * 2 <= len(some))
    except pa.ArrowNotImplementedError:
        return True  # of dictionaries, views and extensions nobody counts


def _by_id(found: dict[str, object], table: Definition) -> dict[str, object]:
    """Know statistics by the columns' numbers, which outlive their names."""
    return {str(table.ids_by_name[name]): value for name, value in found.items()}


def _with_ids(schema: pa.Schema, table: Definition) -> pa.Schema:
    return pa.schema(
        [
            pa.field(one.name, one.type, metadata={FIELD_ID: str(table.ids_by_name[one.name])})
            for one in schema
        ]
    )


def _groups(segments: Sequence[Segment], rows: int) -> Iterable[tuple[int, int]]:
    """Divide a file: large segments begin anew, small ones are kept together."""
    start = 0
    for segment in segments:
        if segment.rows >= _LARGE:
            if segment.offset > start:
                yield start, segment.offset - start
            yield segment.offset, segment.rows
            start = segment.offset + segment.rows
    if rows > start or not rows:
        yield start, rows - start


def read_segments(
    store: Store,
    file: DataFile,
    segments: Sequence[Segment],
    *,
    table: Definition,
    names: Collection[str],
) -> list[pa.Table]:
    """Read segments of a file: of each the columns of some names that it has, as called now.

    Raises:
        UnreadableError: the file is gone or damaged.
    """
    try:
        return _read(store, file, segments, table=table, names=names)
    except FileNotFoundError as exc:
        raise _gone(file) from exc
    except (OSError, pa.ArrowException) as exc:
        msg = f"'{file.path}' is damaged ({exc}): restore it from a copy"
        raise UnreadableError(msg) from exc


def _read(
    store: Store,
    file: DataFile,
    segments: Sequence[Segment],
    *,
    table: Definition,
    names: Collection[str],
) -> list[pa.Table]:
    opened = _Opened(store, file)
    present = opened.footer.names
    found: list[pa.Table] = []
    for segment in segments:
        ids = present if segment.columns is None else set(segment.columns) & present.keys()
        wanted = sorted(one for one in ids if table.names_by_id.get(one) in names)
        rows = opened.rows(segment, [present[one] for one in wanted])
        found.append(rows.rename_columns([table.names_by_id[one] for one in wanted]))
    return found


class _Footer:
    """What a file says of itself: its row groups, and its columns by their numbers."""

    def __init__(self, opened: pq.ParquetFile) -> None:
        self.metadata = opened.metadata
        self.names = {field_id(one): one.name for one in opened.schema_arrow}
        counts = [
            self.metadata.row_group(number).num_rows
            for number in range(self.metadata.num_row_groups)
        ]
        self.starts = [0, *accumulate(counts)]

    def groups(self, segment: Segment) -> range:
        """Return the row groups that a segment lies in."""
        first = bisect_right(self.starts, segment.offset) - 1
        return range(first, bisect_left(self.starts, segment.offset + segment.rows, lo=first))


class _Opened:
    """A file that is read, some of its row groups from memory."""

    def __init__(self, store: Store, file: DataFile) -> None:
        self._store = store
        self._file = file
        self._location = store.location(file.path)
        footer = _footers.get(self._location)
        if footer is None:
            footer = _Footer(self._parquet)
            _footers.put(self._location, footer, 1)
        self.footer = footer

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        footer = _footers.get(self._location)
        metadata = footer.metadata if footer else None
        return pq.ParquetFile(_open(self._store, self._file), metadata=metadata)

    def rows(self, segment: Segment, columns: list[str]) -> pa.Table:
        """Read the row groups that a segment lies in, and cut it out."""
        groups = self.footer.groups(segment)
        if not segment.rows:
            return self._parquet.schema_arrow.empty_table().select(columns)
        first, end = self.footer.starts[groups.start], self.footer.starts[groups.stop]
        is_whole = first == segment.offset and end == first + segment.rows
        whole = self._read(groups, columns) if is_whole else self._shared(groups, columns)
        return whole.slice(segment.offset - first, segment.rows)

    def _read(self, groups: range, columns: list[str]) -> pa.Table:
        found = self._parquet.read_row_groups(list(groups), columns=columns, use_threads=False)
        return found.select(columns)

    def _shared(self, groups: range, columns: list[str]) -> pa.Table:
        """Read row groups that others have rows in, too: they are likely to come for them soon."""
        key = (self._location, groups, tuple(columns))
        found = _decoded.get(key)
        if found is None:
            found = self._read(groups, columns)
            _decoded.put(key, found, found.nbytes)
        return found


def _open(store: Store, file: DataFile) -> pa.NativeFile:
    location = store.location(file.path)
    if "://" not in location and (file.size_bytes or _SMALL) >= _SMALL:
        return pa.memory_map(location)
    body = _bodies.get(location)
    if body is None:
        body = store.get(file.path)
        if body is None:
            raise _gone(file)
        _bodies.put(location, body, len(body))
    return pa.BufferReader(body)


def _gone(file: DataFile) -> UnreadableError:
    msg = f"'{file.path}' is gone: a vacuum has deleted it, or somebody else; read a newer position"
    return UnreadableError(msg)


class _Kept(Generic[T]):
    """What was read last of files, which never change."""

    def __init__(self, most: int, most_each: int) -> None:
        """Keep at most so much, each of which has at most a size."""
        self._most, self._most_each = most, most_each
        self._found: OrderedDict[object, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._using = threading.Lock()

    def get(self, key: object) -> T | None:
        """Return what is kept; None where nothing is."""
        with self._using:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def put(self, key: object, value: T, size: int) -> None:
        """Keep something; what was used longest ago goes."""
        if size > self._most_each:
            return
        with self._using:
            if key in self._found:
                return
            self._found[key] = (value, size)
            self._size += size
            while self._size > self._most:
                self._size -= self._found.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._using:
            self._found.clear()
            self._size = 0


_bodies: _Kept[bytes] = _Kept(_KEPT_BYTES, _KEPT_BYTES // 4)
_footers: _Kept[_Footer] = _Kept(_KEPT_FOOTERS, 1)
_decoded: _Kept[pa.Table] = _Kept(_KEPT_ROW_BYTES, _KEPT_ROW_BYTES // 4)
