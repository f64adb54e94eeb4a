"""The least and greatest values of a file's columns, by which files are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["measure", "to_stored"]

Stored = int | float | str | bool
_LONGEST = 64
_MOST = 48


def measure(
    rows: pa.Table, first: Iterable[str] = ()
) -> tuple[dict[str, object], dict[str, object], dict[str, int]]:
    """Return least values, greatest values and counts of nulls of columns that have an order.

    Args:
        rows: The rows.
        first: Columns to begin with, where there are too many for all.
    """
    least: dict[str, object] = {}
    greatest: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for name in list(dict.fromkeys([*first, *rows.schema.names]))[:_MOST]:
        column = rows[name] if name in rows.schema.names else None
        if column is None or not _has_order(column.type):
            continue
        nulls[name] = column.null_count
        if column.null_count == len(column):
            continue
        found = pc.min_max(column)
        low, high = to_stored(found["min"]), to_stored(found["max"])
        if low is None or high is None:
            continue
        least[name] = low[:_LONGEST] if isinstance(low, str) else low
        if not isinstance(high, str) or len(high) <= _LONGEST:
            greatest[name] = high
    return least, greatest, nulls


def to_stored(value: pa.Scalar) -> Stored | None:
    """Return a value as statistics keep it, times as the numbers that they are.

    None for what they do not keep: what is no number has no place in an order.
    """
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_temporal(kind):
        return int(value.value)  # not every one is a time of Python
    found: Stored = value.as_py()
    return None if isinstance(found, float) and found != found else found  # noqa: PLR0124


def _has_order(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or (pa.types.is_floating(kind) and not pa.types.is_float16(kind))
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )
