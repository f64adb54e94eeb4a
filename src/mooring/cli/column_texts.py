"""Columns as people write them: ``id int64 not null, at timestamp[us], v float[128]``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["parse_column", "parse_columns", "parse_default", "parse_type"]

_COLUMN = re.compile(
    r"""\s*(?:"(?P<double>[^"]+)"|`(?P<back>[^`]+)`|(?P<plain>[^\s"`]+))\s+(?P<type>.+?)"""
    r"""(?P<required>\s+not\s+null)?\s*""",
    re.IGNORECASE | re.DOTALL,
)
_VECTOR = re.compile(r"(\w+)\[(\d+)\]")
_DECIMAL = re.compile(r"decimal(?:128)?\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns)\s*,\s*(?:tz=)?([\w/+:-]+)\]")
_OPENING, _CLOSING = "([", ")]"


def parse_columns(text: str) -> pa.Schema:
    """Read the columns of a table.

    Raises:
        InvalidInputError: one has no type, or one that is unknown.
    """
    import pyarrow as pa

    return pa.schema([parse_column(part) for part in _split(text)])


def parse_column(text: str) -> pa.Field:
    """Read a column: its name, its type, and whether it takes nulls.

    Raises:
        InvalidInputError: it has no type, or one that is unknown.
    """
    import pyarrow as pa

    found = _COLUMN.fullmatch(text)
    if found is None:
        msg = f"'{text.strip()}' is no column: write its name and type, such as id int64"
        raise InvalidInputError(msg)
    name = found["double"] or found["back"] or found["plain"]
    return pa.field(name, parse_type(found["type"]), nullable=found["required"] is None)


def parse_type(text: str) -> pa.DataType:
    """Read a type as Arrow writes simple ones; ``float[128]`` is a vector.

    Raises:
        InvalidInputError: it is none.
    """
    import pyarrow as pa

    wanted = text.strip().lower()
    try:
        if found := _VECTOR.fullmatch(wanted):
            return pa.list_(pa.type_for_alias(found[1]), int(found[2]))
        if found := _DECIMAL.fullmatch(wanted):
            return pa.decimal128(int(found[1]), int(found[2]))
        if found := _ZONED.fullmatch(text.strip()):
            return pa.timestamp(found[1], found[2])
        return pa.type_for_alias(wanted)
    except ValueError:
        msg = (
            f"'{text.strip()}' is no type: write one such as int64, double, string, bool, date32,"
            " timestamp[us], decimal(10,2), or float[128] for a vector"
        )
        raise InvalidInputError(msg) from None


def parse_default(text: str) -> object:
    """Read a value: a number, true, false, 'text', or text."""
    wanted = text.strip()
    if len(wanted) > 1 and wanted[0] == wanted[-1] == "'":
        return wanted[1:-1].replace("''", "'")
    try:
        return json.loads(wanted)
    except ValueError:
        return wanted


def _split(text: str) -> Iterator[str]:
    """Divide at commas that are in no brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]
