"""Values that a condition compares columns with, as the statistics of files keep them.

A column cannot hold every number or time that can be written: whole numbers have no 1.5. What lies
between two values that it can hold is compared by its neighbours, so that nothing is rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Instant",
    "Literal",
    "Value",
    "neighbours",
    "parse_instant",
    "plain_type",
    "to_array",
    "to_scalar",
]

Value = int | float | str | bool | Decimal

_SECOND = 10**9
_DAY = 86_400 * _SECOND
_UNITS = {"s": _SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d{2}:?\d{2})?"
)
_EXACT = Context(prec=2000)


@dataclass(frozen=True)
class Instant:
    """A day or a time, in nanoseconds since 1970 in UTC."""

    ns: int


Literal = Decimal | str | bool | Instant | None


def parse_instant(text: str) -> Instant:
    """Read a day or a time; without a zone it is in UTC.

    Raises:
        InvalidInputError: it is none.
    """
    found = _INSTANT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"'{text}' is no date or time: write 2013-01-31 or 2013-01-31 12:30:00"
        )
    day, time, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{zone or '+00:00'}")
    except ValueError as exc:
        raise InvalidInputError(f"'{text}' is no date or time: {exc}") from exc
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = since.days * 86_400 + since.seconds
    return Instant(seconds * _SECOND + int((fraction or "0").ljust(9, "0")))


def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that a column is compared as; None where it cannot be compared."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_floating(kind):
        return pa.float64()
    known = (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal(kind)
    )
    return kind if known else None


def neighbours(literal: Literal, kind: pa.DataType) -> tuple[Value | None, Value | None]:
    """Return the greatest value of a type not above a literal, and the least not below it.

    They are one where the type holds it; None stands for a side on which there is nothing.

    Raises:
        InvalidInputError: nothing of the type is comparable with it.
    """
    if pa.types.is_temporal(kind):
        instant = parse_instant(literal) if isinstance(literal, str) else literal
        if isinstance(instant, Instant):
            bits = 31 if pa.types.is_date32(kind) else 63
            return _within(Decimal(instant.ns), _unit(kind), (-(2**bits), 2**bits - 1))
    elif isinstance(literal, bool):
        if pa.types.is_boolean(kind):
            return literal, literal
    elif isinstance(literal, Decimal):
        if pa.types.is_floating(kind):
            return float(literal), float(literal)
        if pa.types.is_integer(kind):
            return _within(literal, 1, _bounds(kind))
        if pa.types.is_decimal(kind):
            return _around(literal, kind)
    elif isinstance(literal, str) and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return literal, literal
    raise InvalidInputError(f"is {kind}, and {_show(literal)} is not")


def _within(value: Decimal, unit: int, bounds: tuple[int, int]) -> tuple[int | None, int | None]:
    exact = _EXACT.divide(value, Decimal(unit))
    below = int(exact.to_integral_value(ROUND_FLOOR))
    above = int(exact.to_integral_value(ROUND_CEILING))
    least, greatest = bounds
    return (
        None if below < least else min(below, greatest),
        None if above > greatest else max(above, least),
    )


def _around(value: Decimal, kind: pa.DataType) -> tuple[Value | None, Value | None]:
    shifted = value.scaleb(kind.scale, _EXACT)
    most = 10**kind.precision - 1
    below, above = _within(shifted, 1, (-most, most))

    def back(number: int | None) -> Decimal | None:
        return None if number is None else Decimal(number).scaleb(-kind.scale, _EXACT)

    return back(below), back(above)


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    if pa.types.is_signed_integer(kind):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1


def _unit(kind: pa.DataType) -> int:
    if pa.types.is_date32(kind):
        return _DAY
    return _UNITS["ms"] if pa.types.is_date64(kind) else _UNITS[kind.unit]


def to_array(values: Iterable[Value | None], kind: pa.DataType) -> pa.Array:
    """Return values as an array of a type."""
    if not pa.types.is_temporal(kind):
        return pa.array(list(values), kind)
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.array(list(values), width).view(kind)


def to_scalar(value: Value, kind: pa.DataType) -> pa.Scalar:
    """Return a value as a scalar of a type."""
    return to_array([value], kind)[0]


def _show(literal: Literal) -> str:
    if isinstance(literal, Instant):
        return "a date or time"
    if isinstance(literal, bool):
        return str(literal).lower()
    return f"'{literal}'" if isinstance(literal, str) else str(literal)
