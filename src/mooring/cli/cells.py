"""How the values of a table are written: whole for programs, shortened for people.

Programs get what JSON has: a time is ISO 8601, a decimal text, binary base64, and a number that
JSON does not know, such as NaN, is null. People get cells of a table that fits their terminal.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mooring.cli.output import display_width
from mooring.cli.progress import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Convert = Callable[[Any], object]

__all__ = ["fit", "plain_rows", "shorten", "show_values", "to_strings"]

NULL = "null"
_LONGEST = 60
_NARROWEST = 8
# What rich draws around a cell, and once more at the end of a line.
_BORDER, _EDGE = 3, 1
_SHOWN_WHOLE, _SHOWN_FIRST = 4, 2
_SHOWN_BYTES = 8
_DIGITS = 4


# -- for programs --------------------------------------------------------------------------------


def plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Go through the rows of a batch as JSON knows them."""
    names = batch.schema.names
    for row in zip(*(_plain_values(column) for column in batch.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def to_strings(column: pa.Array) -> pa.Array:
    """Write what CSV has no form for, nested values and binary, as text."""
    texts = (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in _plain_values(column)
    )
    return pa.array(texts, pa.string())


def _plain_values(column: pa.Array) -> Iterator[object]:
    storage = _storage(column)
    convert = _plain(storage.type)
    return (None if value is None else convert(value) for value in storage.to_pylist())


def _storage(column: pa.Array) -> pa.Array:
    """Take an array out of its extension or dictionary, and nanoseconds as text."""
    # Identifiers are read better as text than as bytes.
    if isinstance(column.type, pa.BaseExtensionType) and not isinstance(column.type, pa.UuidType):
        return _storage(column.storage)
    if pa.types.is_dictionary(column.type):
        return _storage(column.dictionary_decode())
    # Python's own times end at microseconds.
    if pa.types.is_temporal(column.type) and "[ns" in str(column.type):
        return column.cast(pa.string())
    return column


def _plain(kind: pa.DataType) -> Convert:
    """Return what turns the values of a type into what JSON knows; it never sees a null."""
    if _is_list(kind):
        item = _plain(kind.value_type)
        return lambda values: [None if value is None else item(value) for value in values]
    if pa.types.is_struct(kind):
        fields = {field.name: _plain(field.type) for field in kind}
        return lambda values: {
            name: None if values[name] is None else convert(values[name])
            for name, convert in fields.items()
        }
    if pa.types.is_map(kind):
        key, item = _plain(kind.key_type), _plain(kind.item_type)
        return lambda pairs: [
            [key(name), None if value is None else item(value)] for name, value in pairs
        ]
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        narrow = np.float32 if pa.types.is_float32(kind) else np.float16
        # The shortest number that is the same in this type: 0.1, not 0.10000000149011612.
        return lambda value: _plain_float(float(str(narrow(value))))
    return _plain_scalar


def _plain_scalar(value: object) -> object:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return _plain_float(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)


def _plain_float(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


# -- for people ----------------------------------------------------------------------------------


def show_values(column: pa.Array) -> list[str]:
    """Write the values of a column as cells."""
    storage = _storage(column)
    show = _shown(storage.type)
    return [NULL if value is None else show(value) for value in storage.to_pylist()]


def _shown(kind: pa.DataType) -> Callable[[Any], str]:
    """Return what shows the values of a type; it never sees a null."""
    if _is_list(kind):
        item = _shown_inside(kind.value_type)
        return lambda values: _show_list(values, item)
    if _is_binary(kind):
        return _show_binary
    if pa.types.is_floating(kind):
        plain = _plain(kind)
        return lambda value: str(plain(value)) if math.isfinite(value) else str(value)
    if pa.types.is_nested(kind):
        plain = _plain(kind)
        return lambda value: shorten(json.dumps(plain(value), ensure_ascii=False), _LONGEST)
    return _show_scalar


def _shown_inside(kind: pa.DataType) -> Callable[[Any], str]:
    """Return what shows the values of a list: numbers briefly, text in quotes."""
    if pa.types.is_floating(kind):
        return lambda value: NULL if value is None else f"{value:.{_DIGITS}g}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: shorten(json.dumps(value, ensure_ascii=False), _LONGEST // 2)
    show = _shown(kind)
    return lambda value: NULL if value is None else show(value)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _show_list(values: Sequence[object], item: Callable[[Any], str]) -> str:
    if len(values) <= _SHOWN_WHOLE:
        return f"[{', '.join(map(item, values))}]"
    first = ", ".join(map(item, values[:_SHOWN_FIRST]))
    return f"[{first}, … {len(values)} values]"


def _show_binary(value: bytes) -> str:
    if len(value) <= _SHOWN_BYTES:
        return f"0x{value.hex()}"
    return f"0x{value[:_SHOWN_BYTES].hex()}… {format_size(len(value))}"


def _show_scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    plain = _plain_scalar(value)
    if not isinstance(plain, str):
        return str(plain)
    # Text that could be taken for something else is quoted.
    if isinstance(value, str) and (value in {"", NULL} or value != value.strip()):
        return shorten(json.dumps(value, ensure_ascii=False), _LONGEST)
    return shorten(plain, _LONGEST)


def shorten(text: str, width: int) -> str:
    """Write a text on one line of so many cells of a terminal."""
    line = "".join(
        letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: width + 1]
    )
    if display_width(line) <= width:
        return line
    while display_width(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def fit(lines: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[list[str]]]:
    """Make a table fit a terminal: cells are cut, and columns that find no room are left out.

    Args:
        lines: The headings, and the rows below them.
        width: The terminal's.

    Returns:
        Which columns are left, and what is left of the lines.
    """
    natural = [
        min(max(map(display_width, column)), _LONGEST) for column in zip(*lines, strict=True)
    ]
    kept = _fitting(natural, width)
    widths = _shrink([natural[index] for index in kept], width)
    cut = [
        [shorten(row[index], limit) for index, limit in zip(kept, widths, strict=True)]
        for row in lines
    ]
    return kept, cut


def _fitting(natural: Sequence[int], width: int) -> list[int]:
    """Choose the columns from the left for which there is room at their narrowest."""
    left = width - _EDGE
    kept: list[int] = []
    for index, wide in enumerate(natural):
        left -= min(wide, _NARROWEST) + _BORDER
        if left < 0 and kept:
            break
        kept.append(index)
    return kept


def _shrink(widths: Sequence[int], width: int) -> list[int]:
    """Take room from the widest until all of them fit."""
    shrunk = list(widths)
    room = width - _EDGE - _BORDER * len(shrunk)
    while sum(shrunk) > room and max(shrunk) > _NARROWEST:
        shrunk[shrunk.index(max(shrunk))] -= 1
    return shrunk
