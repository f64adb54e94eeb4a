"""Filters of Spark as SQL that Lance evaluates.

Spark evaluates every filter again on what comes back, so an expression here may leave too many
rows and must never leave too few. Where the two disagree about a value, as about zeros with a
sign, or Lance would round a number to compare it, the filter stays with Spark alone.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as kinds
from pyspark.sql import datasource as pushed

from mooring.spark.types import is_blob
from mooring.tables.field_paths import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.datasource import Filter

__all__ = ["translate"]

_COMPARISONS: dict[type[Filter], str] = {
    pushed.EqualTo: "=",
    pushed.EqualNullSafe: "=",
    pushed.GreaterThan: ">",
    pushed.GreaterThanOrEqual: ">=",
    pushed.LessThan: "<",
    pushed.LessThanOrEqual: "<=",
}
_TEXT_TESTS: dict[type[Filter], str] = {
    pushed.StringStartsWith: "starts_with",
    pushed.StringEndsWith: "ends_with",
    pushed.StringContains: "contains",
}
_LOWEST = -(2**63)


def translate(  # noqa: PLR0911  # a kind of filters each
    wanted: Filter, schema: pa.Schema
) -> str | None:
    """Write a filter as SQL; None where it has to stay with Spark.

    Args:
        wanted: The filter.
        schema: The table's schema.
    """
    if isinstance(wanted, pushed.Not):
        return _negate(wanted.child, schema)
    path = getattr(wanted, "attribute", ())
    kind = _find(schema, path)
    if kind is None:
        return None
    column = ".".join(quoted(name) for name in path)
    if isinstance(wanted, pushed.IsNull):
        return f"{column} IS NULL"
    if isinstance(wanted, pushed.IsNotNull):
        return f"{column} IS NOT NULL"
    if isinstance(wanted, pushed.In):
        return _in(column, kind, wanted.value)
    if type(wanted) in _TEXT_TESTS:
        value = _literal(kind, wanted.value) if _is_text(kind) else None  # type: ignore[attr-defined]  # all have one
        return None if value is None else f"{_TEXT_TESTS[type(wanted)]}({column}, {value})"
    return _compare(column, kind, wanted)


def _compare(column: str, kind: pa.DataType, wanted: Filter) -> str | None:
    sign = _COMPARISONS.get(type(wanted))
    value = None if sign is None else _literal(kind, wanted.value)  # type: ignore[attr-defined]  # all have one
    if value is None:
        return None
    if sign in {">", ">="} and kinds.is_floating(kind):
        # To Spark NaN is above all; to Lance one with a sign is below.
        return f"({column} {sign} {value} OR isnan({column}))"
    return f"{column} {sign} {value}"


def _negate(wanted: Filter, schema: pa.Schema) -> str | None:
    """Write the negation of a filter; for no value that is neither true nor false."""
    if isinstance(wanted, pushed.In) and None in wanted.value:
        return None
    if isinstance(wanted, pushed.EqualTo | pushed.In | pushed.IsNull | pushed.IsNotNull) or (
        type(wanted) in _TEXT_TESTS
    ):
        expression = translate(wanted, schema)
        return None if expression is None else f"NOT ({expression})"
    return None


def _in(column: str, kind: pa.DataType, values: Sequence[object]) -> str | None:
    # No value is never among others.
    written = [_literal(kind, value) for value in values if value is not None]
    if not written or None in written:
        return None
    return f"{column} IN ({', '.join(filter(None, written))})"


def _find(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of a field, whose values Lance has as Spark sees them."""
    kind = pa.struct(list(schema))
    for name in path:
        if not kinds.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        found = kind.field(name)
        kind = found.type
        if is_blob(kind) or b"lance-encoding:blob" in (found.metadata or {}):
            return None
    return kind.value_type if kinds.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _literal(  # noqa: PLR0911  # a kind of values each
    kind: pa.DataType, value: object
) -> str | None:
    """Write a value that is exactly of a column's type; None for any other."""
    match value:
        case bool():
            return str(value).lower() if kinds.is_boolean(kind) else None
        case int():
            return _integer(kind, value)
        case float():
            return _float(kind, value)
        case Decimal():
            return _decimal(kind, value)
        case str():
            return "'" + value.replace("'", "''") + "'" if _is_text(kind) else None
        case bytes() | bytearray():
            return f"X'{value.hex()}'" if kinds.is_binary(kind) else None
        case datetime():
            return _timestamp(kind, value)
        case date():
            return f"DATE '{value.isoformat()}'" if kinds.is_date32(kind) else None
        case _:
            return None


def _integer(kind: pa.DataType, value: int) -> str | None:
    if not kinds.is_integer(kind):
        return None
    bits = kind.bit_width
    low, high = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1)) if kinds.is_signed_integer(kind) else (0, 2**bits)
    )
    # The lowest of all reads as a number without its sign, which is too large.
    return str(value) if low <= value < high and value != _LOWEST else None


def _float(kind: pa.DataType, value: float) -> str | None:
    if not math.isfinite(value) or value == 0:
        return None
    if kinds.is_float64(kind):
        return repr(value)
    try:
        is_exact = (
            kinds.is_float32(kind) and struct.unpack("f", struct.pack("f", value))[0] == value
        )
    except OverflowError:
        return None
    return repr(value) if is_exact else None


def _decimal(kind: pa.DataType, value: Decimal) -> str | None:
    if kinds.is_integer(kind):
        return _integer(kind, int(value)) if value == value.to_integral_value() else None
    if not kinds.is_decimal128(kind) or not value.is_finite():
        return None
    exact = value.scaleb(kind.scale)
    if exact != exact.to_integral_value() or len(str(abs(int(exact)))) > kind.precision:
        return None
    return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))"


def _timestamp(kind: pa.DataType, value: datetime) -> str | None:
    # Other units than microseconds Spark has not seen as they are, and in another zone than UTC
    # Lance reads what is written here as the time there.
    if not kinds.is_timestamp(kind) or kind.unit != "us" or kind.tz not in {None, "UTC"}:
        return None
    if (kind.tz is None) != (value.tzinfo is None):
        return None
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    return f"TIMESTAMP '{utc.isoformat()}'"
