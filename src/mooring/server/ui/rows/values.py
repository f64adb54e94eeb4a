"""Values of a table as JSON knows them, never more of one than a page has room for.

Binary is base64, a time ISO 8601 with its zone, a decimal text. Numbers that JSON does not know are
the texts ``NaN``, ``Infinity`` and ``-Infinity``, so that they are told from a null. Of what is
large only the beginning is taken out of Arrow's memory.
"""

from __future__ import annotations

import base64
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ["Shortener", "is_binary", "is_list", "is_text", "kind_of", "storage_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NARROW = {pa.float32(): np.float32, pa.float16(): np.float16}
_BFLOAT16 = "lance.bfloat16"
_MORE = "\N{HORIZONTAL ELLIPSIS}"
_SECONDS_END = len("1970-01-01T00:00:00")
_DEEPEST = 12
_LONGEST_CHARACTER_BYTES = 4
# What Python's own times cannot hold, or pandas would be needed for.
_BEYOND_PYTHON = (ValueError, OverflowError, ImportError, pa.ArrowException)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether a type is bytes."""
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of some kind."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def storage_of(kind: pa.DataType) -> pa.DataType:
    """Take a type out of its extension or dictionary."""
    if isinstance(kind, pa.BaseExtensionType):
        return storage_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return storage_of(kind.value_type)
    return kind


def kind_of(kind: pa.DataType) -> str:  # noqa: PLR0911  # one answer per kind
    """Tell how the values of a type are shown."""
    if isinstance(kind, pa.UuidType):
        return "text"
    if getattr(kind, "extension_name", "") == _BFLOAT16:
        return "number"
    bare = storage_of(kind)
    if pa.types.is_boolean(bare):
        return "boolean"
    if pa.types.is_integer(bare) or pa.types.is_floating(bare) or pa.types.is_decimal(bare):
        return "number"
    if pa.types.is_temporal(bare):
        return "time"
    if is_binary(bare):
        return "binary"
    if is_list(bare) or pa.types.is_struct(bare) or pa.types.is_map(bare):
        return "nested"
    return "text"


class Shortener:
    """Takes the beginning of one value out of Arrow."""

    def __init__(self, longest: int, items: int) -> None:
        """Begin with a value.

        Args:
            longest: So many characters or bytes of one text or binary value.
            items: So many parts of lists, structs and maps altogether.
        """
        self._longest = longest
        self._items = items
        self.is_cut = False

    def plain(self, value: pa.Scalar, depth: int = 0) -> object:  # noqa: PLR0911  # one per kind
        """Return a value as JSON knows it, or its beginning."""
        if not value.is_valid:
            return None
        kind = value.type
        if getattr(kind, "extension_name", "") == _BFLOAT16:
            return _from_bfloat16(value.value.as_py())
        if isinstance(kind, pa.BaseExtensionType):
            return str(value.as_py()) if isinstance(kind, pa.UuidType) else self._of(value, depth)
        if pa.types.is_dictionary(kind):
            return self._of(value, depth)
        if is_text(kind):
            return self._text(value)
        if is_binary(kind):
            return base64.b64encode(self._head(value)).decode()
        if pa.types.is_map(kind) or is_list(kind):
            return self._list(value, depth)
        if pa.types.is_struct(kind):
            return self._struct(value, depth)
        return _scalar(value)

    def _of(self, value: Any, depth: int) -> object:  # noqa: ANN401  # a scalar around another
        return self.plain(value.value, depth)

    def _head(self, value: Any) -> bytes:  # noqa: ANN401  # a scalar with bytes
        buffer = value.as_buffer()
        if buffer.size > self._longest:
            self.is_cut = True
        return bytes(memoryview(buffer)[: self._longest])

    def _text(self, value: Any) -> str:  # noqa: ANN401  # a scalar with bytes
        buffer = memoryview(value.as_buffer())
        most = self._longest * _LONGEST_CHARACTER_BYTES
        # Cut within a character, that one is left out; what is no UTF-8 is shown as such.
        text = bytes(buffer[:most]).decode("utf-8", "ignore" if len(buffer) > most else "replace")
        if len(buffer) > most or len(text) > self._longest:
            self.is_cut = True
        return text[: self._longest]

    def _list(self, value: Any, depth: int) -> object:  # noqa: ANN401  # a scalar with parts
        values = value.values
        if values is None or depth > _DEEPEST:
            self.is_cut = True
            return _MORE
        take = self._pair if pa.types.is_map(value.type) else self.plain
        found: list[object] = []
        for part in values:
            if self._items <= 0:
                break
            self._items -= 1
            found.append(take(part, depth + 1))
        left = len(values) - len(found)
        if left:
            self.is_cut = True
            found.append(f"{_MORE} {left:,} more")
        return found

    def _pair(self, part: Any, depth: int) -> object:  # noqa: ANN401  # a struct of key and value
        return [self.plain(inner, depth) for _, inner in part.items()]

    def _struct(self, value: Any, depth: int) -> object:  # noqa: ANN401  # a scalar with parts
        if depth > _DEEPEST:
            self.is_cut = True
            return _MORE
        found: dict[str, object] = {}
        # Not as a mapping, for which two fields of one name are an error.
        for index, field in enumerate(value.type):
            if self._items <= 0:
                self.is_cut = True
                found[_MORE] = f"{value.type.num_fields - index:,} more"
                break
            self._items -= 1
            found[field.name] = self.plain(value[index], depth + 1)
        return found


def _scalar(value: Any) -> object:  # noqa: ANN401  # a scalar of any plain type
    kind = value.type
    if pa.types.is_temporal(kind):
        return _time(value)
    try:
        found = value.as_py()
    except _BEYOND_PYTHON:
        return str(value.cast(pa.string()))
    if isinstance(found, float):
        # The shortest number that is the same in its type: 0.1, not 0.10000000149011612.
        return _number(float(str(_NARROW.get(kind, float)(found))))
    return found if isinstance(found, bool | int | str) else str(found)


def _time(value: Any) -> str:  # noqa: ANN401  # a time of some kind
    kind = value.type
    if pa.types.is_timestamp(kind):
        return _timestamp(value)
    if pa.types.is_duration(kind):
        return f"{_fraction(value.value, kind.unit)} s"
    return str(value.cast(pa.string()))  # Python's own would lose nanoseconds


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _from_bfloat16(content: bytes) -> float | str:
    bits = np.frombuffer(content, "<u2").astype("<u4") << 16
    return _number(float(bits.view("<f4")[0]))


def _timestamp(value: Any) -> str:  # noqa: ANN401  # a timestamp
    """Write a time to the digit that its type has, which may be finer than Python's own."""
    unit, zone = value.type.unit, value.type.tz
    per_s = _UNITS_PER_S[unit]
    seconds, rest = divmod(value.value, per_s)
    try:
        at = (_EPOCH + timedelta(seconds=seconds)).astimezone(_zone(zone))
    except OverflowError:
        return f"{_fraction(value.value, unit)} s after 1970"
    digits = f".{rest:0{_DIGITS[unit]}d}" if rest else ""
    whole = at.isoformat(timespec="seconds")
    return f"{whole[:_SECONDS_END]}{digits}{whole[_SECONDS_END:] if zone else ''}"


def _zone(name: str | None) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    try:
        return datetime.strptime(name, "%z").tzinfo or UTC
    except ValueError:
        return UTC  # a zone that this machine does not know


def _fraction(value: int, unit: str) -> str:
    """Write a number of units as seconds, exactly."""
    whole, rest = divmod(abs(value), _UNITS_PER_S[unit])
    digits = f".{rest:0{_DIGITS[unit]}d}".rstrip("0") if rest else ""
    return f"{'-' if value < 0 else ''}{whole}{digits}"
