"""Partition values: what rows of one partition have in common."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.hashing import bucket_of, hash_rows
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.metastore import PartitionField

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Values", "parse_field", "partition_id", "show_field", "show_values", "transform"]

Values = tuple[str | int | float | bool | None, ...]

_TIMES = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_COUNTED = ("bucket", "truncate")


def parse_field(text: str) -> PartitionField:
    """Read how to part rows: ``region``, ``month(at)``, ``bucket(16, id)``, ``truncate(4, zip)``.

    Raises:
        InvalidInputError: it is none of these.
    """
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return PartitionField(columns=(name,))
    arguments = [part.strip() for part in rest.removesuffix(")").split(",")]
    known = name in _TIMES or name in _COUNTED or name == "identity"
    count = len(arguments) == (2 if name in _COUNTED else 1)
    if not rest.endswith(")") or not known or not count or not all(arguments):
        msg = (
            f"{quote(text)} does not say how to part rows: write a column, year(c), month(c),"
            " day(c), hour(c), bucket(16, c) or truncate(4, c)"
        )
        raise InvalidInputError(msg)
    if name not in _COUNTED:
        return PartitionField(columns=(arguments[0],), transform=name)
    if not arguments[0].isdecimal() or not 0 < int(arguments[0]) <= 2**31:
        msg = f"{quote(text)}: {quote(arguments[0])} is no number above zero"
        raise InvalidInputError(msg)
    return PartitionField(columns=(arguments[1],), transform=name, argument=int(arguments[0]))


def show_field(field: PartitionField) -> str:
    """Write how rows are parted, as ``parse_field`` reads it."""
    column = ",".join(field.columns)
    if field.transform == "identity":
        return column
    return f"{field.transform}({f'{field.argument}, ' if field.argument else ''}{column})"


def check_field(field: PartitionField, schema: pa.Schema) -> None:
    """Refuse a field that the schema has no column for, or not one of its type.

    Raises:
        InvalidInputError: it does not fit.
    """
    name = field.columns[0]
    if len(field.columns) != 1 or name not in schema.names:
        msg = f"rows cannot be parted by {show_field(field)}: columns are {', '.join(schema.names)}"
        raise InvalidInputError(msg)
    kind = schema.field(name).type
    fits = {
        "identity": not pa.types.is_nested(kind) and not pa.types.is_floating(kind),
        "bucket": not pa.types.is_nested(kind),
        "truncate": _is_text(kind) or (pa.types.is_integer(kind) and kind != pa.uint64()),
        "hour": pa.types.is_timestamp(kind),
    }.get(field.transform, pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    if not fits:
        msg = f"rows cannot be parted by {show_field(field)}: column {quote(name)} is {kind}"
        raise InvalidInputError(msg)


def transform(field: PartitionField, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the partition value of each row, as text, a number or a boolean."""
    return _TRANSFORMS[field.transform](field, column)


def partition_id(values: Values) -> str:
    """Return the id of the partition with some values; one of a table that is not parted is all."""
    if not values:
        return "all"
    told = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
    return f"p{hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()}"


def show_values(values: Values) -> str:
    """Say a partition's values."""
    return "/".join("null" if value is None else str(value) for value in values) or "all"


def _identity(_: PartitionField, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _identity(_, column.cast(kind.value_type))
    if _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        text = [None if value is None else value.hex() for value in column.to_pylist()]
        return pa.chunked_array([pa.array(text, pa.string())])
    return column.cast(pa.string())


def _bucket(field: PartitionField, column: pa.ChunkedArray) -> pa.ChunkedArray:
    buckets = pa.array(bucket_of(hash_rows([column]), field.argument or 1))
    # Rows without a value share a partition that says so.
    return pa.chunked_array([pc.if_else(column.combine_chunks().is_null(), None, buckets)])


def _truncate(field: PartitionField, column: pa.ChunkedArray) -> pa.ChunkedArray:
    width = field.argument or 1
    if _is_text(column.type):
        return pc.utf8_slice_codeunits(column, 0, width)
    numbers = column.cast(pa.int64())
    rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, width), width))
    # Downwards for numbers below zero, too.
    rest = pc.if_else(pc.less(rest, 0), pc.add(rest, width), rest)
    return pc.subtract(numbers, rest)


def _time(field: PartitionField, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.strftime(_in_utc(column), format=_TIMES[field.transform]).cast(pa.string())


def _in_utc(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit, None)) if kind.tz else column
    return (
        column.cast(pa.timestamp("s")) if pa.types.is_date32(kind) else column.cast("timestamp[ms]")
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_TRANSFORMS: dict[str, Callable[[PartitionField, pa.ChunkedArray], pa.ChunkedArray]] = {
    "identity": _identity,
    "bucket": _bucket,
    "truncate": _truncate,
    **dict.fromkeys(_TIMES, _time),
}


def split(fields: Sequence[PartitionField], rows: pa.Table) -> tuple[list[Values], pa.Array]:
    """Find the partitions of rows: their values, and which of them each row belongs to."""
    if not fields:
        return [()], pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    names = [f"v{number}" for number in range(len(fields))]
    columns = [transform(field, rows[field.columns[0]]) for field in fields]
    parts = pa.table(columns, names=names)
    known = parts.group_by(names).aggregate([])
    values = [tuple(row[name] for name in names) for row in known.to_pylist()]
    return values, _positions(parts, known, names)


def _positions(parts: pa.Table, known: pa.Table, names: list[str]) -> pa.Array:
    if known.num_rows == 1:
        return pa.repeat(pa.scalar(0, pa.int64()), parts.num_rows)
    rows = [tuple(row.values()) for row in known.to_pylist()]
    numbers = {row: number for number, row in enumerate(rows)}
    codes = pa.array([0] * parts.num_rows, pa.int64())
    factor, coded = 1, dict.fromkeys(range(len(rows)), 0)
    for place, name in enumerate(names):
        encoded = parts[name].combine_chunks().dictionary_encode(null_encoding="encode")
        told = encoded.dictionary.to_pylist()
        index = {value: code for code, value in enumerate(told)}
        codes = pc.add(codes, pc.multiply(encoded.indices.cast(pa.int64()), factor))
        for row, number in numbers.items():
            coded[number] += index[row[place]] * factor
        factor *= max(len(told), 1)
    wanted = pa.array([coded[number] for number in range(len(rows))], pa.int64())
    return pc.index_in(codes, wanted).cast(pa.int64())
