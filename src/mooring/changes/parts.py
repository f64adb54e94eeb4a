"""A part of a change: what one worker writes, files for every partition that its rows touch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.files import write_file
from mooring.changes.hashing import bucket_of, hash_rows
from mooring.changes.merging import key_codes, rank_values
from mooring.changes.transforms import split
from mooring.errors import ConflictError, InvalidInputError, TableSchemaValidationError
from mooring.identifiers import quote
from mooring.metastore import DataFile, DeltaType, Segment
from mooring.metastore.layout import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.transforms import Values
    from mooring.jobs.address import CatalogAddress
    from mooring.store import Store

__all__ = ["Draft", "PartWritten", "PartitionFile", "check_columns", "require_distinct"]

# A file is made in memory: rows may be wide.
_ROWS_A_FILE, _BYTES_A_FILE = 1_000_000, 256 * 2**20
_SHOWN = 3


@dataclass(frozen=True)
class PartitionFile:
    """A file of one partition's rows."""

    values: Values
    file: DataFile


@dataclass(frozen=True)
class PartWritten:
    """What a worker wrote.

    Attributes:
        files: The files.
        rows: How many rows they have.
        hashes: Of the rows' keys, where a key may come once: 8 bytes each.
    """

    files: tuple[PartitionFile, ...] = ()
    rows: int = 0
    hashes: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Draft:
    """What a worker must know to write a part of a change; it travels.

    Attributes:
        catalog: The catalog.
        token: The id below which files are written; the commit depends on it.
        what: The table, as messages name it.
        table: Its definition.
        type: What the rows do.
    """

    catalog: CatalogAddress
    token: str
    what: str
    table: Definition
    type: DeltaType

    def strict(self) -> Draft:
        """Return the same without a merge order, for rows that are all of a table: no key twice."""
        return replace(self, table=replace(self.table, order=None))

    def write(self, batches: Iterable[pa.RecordBatch], part: str) -> PartWritten:
        """Write rows, whose columns are called as the table's.

        Args:
            batches: The rows.
            part: A name that no other part or attempt has.

        Raises:
            InvalidInputError: a row has no key.
            ConflictError: a key comes twice, and no merge order tells which counts.
            TableSchemaValidationError: a column is unknown or of another type.
        """
        store = self.catalog.open().metastore.store
        files: list[PartitionFile] = []
        hashes: list[np.ndarray[Any, Any]] = []
        total = 0
        for number, rows in enumerate(_gather(batches)):
            written, own = self._write(store, rows, f"{part}-{number}")
            files += written
            total += sum(one.file.rows or 0 for one in written)
            hashes.append(own)
        if len(hashes) > 1:
            self._require_distinct(np.concatenate(hashes))
        return PartWritten(tuple(files), total, b"".join(one.tobytes() for one in hashes))

    def _write(
        self, store: Store, rows: pa.Table, name: str
    ) -> tuple[list[PartitionFile], np.ndarray[Any, Any]]:
        rows = fit(rows, self.table, self.type, self.what)
        keys = rows.select(list(self.table.keys))
        self._require_keys(keys)
        if self.table.is_keyed and self.type in {DeltaType.UPSERT, DeltaType.DELETE}:
            rows = one_of_each(rows, self.table, self.what)
            keys = rows.select(list(self.table.keys))
        hashes = hash_rows(keys.columns) if self.table.is_keyed else np.zeros(0, np.uint64)
        files = []
        for number, (own, part, own_hashes) in enumerate(self._partitions(rows, hashes)):
            path = f"{data_dir(self.token)}/{name}-{number}.parquet"
            file = write_buckets(store, path, part, hashes=own_hashes, table=self.table)
            files.append(PartitionFile(own, file))
        # Of rows with a merge order the greatest counts, whichever part it is in.
        has_order = self.table.order is not None and self.table.order in rows.schema.names
        once = self.type in {DeltaType.UPSERT, DeltaType.DELETE} and not has_order
        return files, hashes if once else np.zeros(0, np.uint64)

    def _partitions(
        self, rows: pa.Table, hashes: np.ndarray[Any, Any]
    ) -> Iterator[tuple[Values, pa.Table, np.ndarray[Any, Any]]]:
        """Go through the partitions of rows, each with its rows and their hashes."""
        values, places = split(self.table.partitions, rows)
        if len(values) == 1:
            yield values[0], rows, hashes
            return
        numbers = places.to_numpy(zero_copy_only=False)
        order = np.argsort(numbers, kind="stable")
        rows = rows.take(pa.array(order))
        hashes = hashes[order] if len(hashes) else hashes
        ends = np.searchsorted(numbers[order], np.arange(len(values)), side="right")
        start = 0
        for own, end in zip(values, ends.tolist(), strict=True):
            yield own, rows.slice(start, end - start), hashes[start:end]
            start = end

    def _require_keys(self, keys: pa.Table) -> None:
        if not keys.num_columns or not keys.num_rows:
            return
        empty = keys[0].is_null()
        for column in keys.columns[1:]:
            empty = pc.and_(empty, column.is_null())
        count = pc.sum(empty).as_py() or 0
        if count:
            named = ", ".join(self.table.keys)
            msg = (
                f"{count} of {keys.num_rows} rows for {self.what} have no key: {named} is null"
                " throughout; fill it or leave them out"
            )
            raise InvalidInputError(msg)

    def _require_distinct(self, hashes: np.ndarray[Any, Any]) -> None:
        if len(np.unique(hashes)) < len(hashes):
            raise _twice(self.what, self.table.keys, "")


def fit(rows: pa.Table, table: Definition, type_: DeltaType, what: str) -> pa.Table:
    """Give rows the table's types; of a deletion only keys and order are kept.

    Raises:
        InvalidInputError: a key is missing.
        TableSchemaValidationError: a column is unknown, or its values do not fit.
    """
    check_columns(rows.schema, table, type_, what)
    wanted = [one for one in table.schema if one.name in rows.schema.names]
    if type_ is DeltaType.DELETE:
        kept = {*table.keys, table.order}
        wanted = [one for one in wanted if one.name in kept]
    columns = []
    for one in wanted:
        column = rows[one.name]
        try:
            columns.append(column if column.type == one.type else column.cast(one.type))
        except pa.ArrowException as exc:
            msg = f"column {quote(one.name)} of {what} is {one.type}, and a value is not: {exc}"
            raise TableSchemaValidationError(msg) from exc
        if not one.nullable and columns[-1].null_count:
            msg = f"column {quote(one.name)} of {what} takes no nulls, and a row has none there"
            raise TableSchemaValidationError(msg)
    names = [one.name for one in wanted]
    return pa.Table.from_arrays(columns, names=names)


def check_columns(schema: pa.Schema, table: Definition, type_: DeltaType, what: str) -> None:
    """Refuse columns that the table does not have, and a change without its keys.

    Raises:
        InvalidInputError: the table has no keys to change rows by, or one is missing.
        TableSchemaValidationError: a column is unknown.
    """
    by_key = type_ in {DeltaType.UPSERT, DeltaType.DELETE}
    if by_key and not table.is_keyed:
        msg = f"{what} has no merge keys: it takes append and add, not {type_.value}"
        raise InvalidInputError(msg)
    missing = [name for name in table.keys if name not in schema.names]
    if missing:
        msg = (
            f"the rows for {what} lack {', '.join(map(quote, missing))} of its merge keys:"
            f" they have {', '.join(schema.names) or 'no columns'}"
        )
        raise InvalidInputError(msg)
    unknown = [name for name in schema.names if name not in table.schema.names]
    if unknown:
        msg = (
            f"{what} has no column {', '.join(map(quote, unknown))}: add it first, or leave it out;"
            f" it has {', '.join(table.schema.names)}"
        )
        raise TableSchemaValidationError(msg)
    parted = [one.columns[0] for one in table.partitions if one.columns[0] not in schema.names]
    if parted:
        msg = f"the rows for {what} lack {', '.join(map(quote, parted))}, by which they are parted"
        raise InvalidInputError(msg)
    if by_key:
        return
    required = [one.name for one in table.schema if not one.nullable]
    absent = [name for name in required if name not in schema.names]
    if absent:
        msg = f"the rows for {what} lack {', '.join(map(quote, absent))}, which takes no nulls"
        raise TableSchemaValidationError(msg)


def one_of_each(rows: pa.Table, table: Definition, what: str) -> pa.Table:
    """Keep one row a key: the one with the greatest merge order.

    Raises:
        ConflictError: several rows have one key, and nothing tells which counts.
    """
    if not rows.num_rows:
        return rows
    codes = key_codes(rows.select(list(table.keys)))
    distinct = int(codes.max()) + 1
    if distinct == rows.num_rows:
        return rows
    if table.order is None or table.order not in rows.schema.names:
        raise _twice(what, table.keys, _show_repeated(rows.select(list(table.keys)), codes))
    ranks = rank_values(rows[table.order])
    order = np.lexsort((-ranks, codes))
    code, rank = codes[order], ranks[order]
    first = np.concatenate([[True], code[1:] != code[:-1]])
    if ((rank[1:] == rank[:-1]) & first[:-1] & ~first[1:]).any():
        shown = _show_repeated(rows.select(list(table.keys)), codes)
        raise _twice(what, table.keys, f"{shown}, with the same {table.order}")
    return rows.take(pa.array(np.sort(order[first])))


def write_buckets(
    store: Store, path: str, rows: pa.Table, *, hashes: np.ndarray[Any, Any], table: Definition
) -> DataFile:
    """Write rows of one partition in the order of their buckets, sorted as the table wants it."""
    if not table.is_keyed or table.buckets == 1:
        rows = _sorted(rows, table)
        return write_file(store, path, rows, [Segment(0, 0, rows.num_rows)], table=table)
    buckets = bucket_of(hashes, table.buckets)
    numbered = _sorted(rows.append_column("_change_bucket", pa.array(buckets)), table)
    buckets = numbered["_change_bucket"].to_numpy()
    order = np.argsort(buckets, kind="stable")
    ordered = numbered.drop_columns(["_change_bucket"]).take(pa.array(order))
    found, starts, counts = np.unique(buckets[order], return_index=True, return_counts=True)
    segments = [
        Segment(int(bucket), int(start), int(count))
        for bucket, start, count in zip(found, starts, counts, strict=True)
    ]
    return write_file(store, path, ordered, segments, table=table)


def _sorted(rows: pa.Table, table: Definition) -> pa.Table:
    fields = [one for one in table.sort if one.columns[0] in rows.schema.names]
    if not fields:
        return rows
    by = [(one.columns[0], "descending" if one.descending else "ascending") for one in fields]
    return rows.take(pc.sort_indices(rows, sort_keys=by))


def require_distinct(parts: Sequence[PartWritten], what: str, keys: Sequence[str]) -> None:
    """Refuse a change in which several parts have a row of one key.

    Raises:
        ConflictError: a key comes twice.
    """
    hashes = [np.frombuffer(part.hashes, np.uint64) for part in parts if part.hashes]
    if len(hashes) < 2:  # noqa: PLR2004  # a part has looked at its own
        return
    every = np.concatenate(hashes)
    if len(np.unique(every)) < len(every):
        raise _twice(what, tuple(keys), "")


def _twice(what: str, keys: tuple[str, ...], shown: str) -> ConflictError:
    told = f" ({shown})" if shown else ""
    msg = (
        f"several rows for {what} have the same {', '.join(keys)}{told}, and nothing tells which"
        " of them counts: leave one of each, or give the table a merge order"
    )
    return ConflictError(msg)


def _show_repeated(keys: pa.Table, codes: np.ndarray[Any, Any]) -> str:
    found, first, counts = np.unique(codes, return_index=True, return_counts=True)
    places = first[counts > 1][:_SHOWN]
    del found
    rows = keys.take(pa.array(places)).to_pylist()
    return "; ".join(" and ".join(f"{k}={_show(v)}" for k, v in row.items()) for row in rows)


def _show(value: object) -> str:
    return (
        repr(value) if isinstance(value, str | bytes) else "null" if value is None else str(value)
    )


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Take rows together, up to what one file holds."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and (rows >= _ROWS_A_FILE or size + batch.nbytes > _BYTES_A_FILE):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting)
