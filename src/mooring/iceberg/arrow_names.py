"""Arrow types in writing, from which they can be made again: `fixed_size_list<float32>[1536]`.

PyArrow writes types too, but does not read what it wrote, and leaves out whether elements may be
null. An extension type is written with what it is stored as, so that it can be made where nobody
has registered it. Unions are written and not read.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["EXTENSION_METADATA", "EXTENSION_NAME", "format_field", "format_type", "parse_field"]

EXTENSION_NAME, EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"

# Deeper types than anybody has, and less deep than Python's own limit.
_DEPTH_LIMIT = 64
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_TOKEN = re.compile(rf'\s*("(?:[^"\\]|\\.)*"|-?\d+|{_NAME.pattern}|[<>\[\](),:=])')
# Offsets, cities and words: whatever can be the name of a time zone, up to the bracket.
_ZONE = re.compile(r"\s*,\s*tz\s*=\s*([^\]]+)")
# What types of tensors and of other systems are made of.
_OWN_WORDS = ("shape", "dim_names", "permutation", "type_name", "vendor_name")

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "month_day_nano_interval": pa.month_day_nano_interval(),
}
_PLAIN_NAMES = {kind: name for name, kind in _PLAIN.items()}
_TIMES: Mapping[str, Callable[[str], pa.DataType]] = {
    "time32": pa.time32,
    "time64": pa.time64,
    "duration": pa.duration,
}
_LISTS: Mapping[str, Callable[[pa.Field], pa.DataType]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}
# Decimals of 32 and 64 bits are younger than the oldest PyArrow that Mooring runs with.
_DECIMALS: Mapping[str, Callable[[int, int], pa.DataType]] = {
    name: getattr(pa, name)
    for name in ("decimal32", "decimal64", "decimal128", "decimal256")
    if hasattr(pa, name)
}


def format_field(field: pa.Field) -> str:
    """Write a field's type, with the extension that its metadata names where PyArrow knows none."""
    metadata = field.metadata or {}
    if EXTENSION_NAME not in metadata or isinstance(field.type, pa.BaseExtensionType):
        return format_type(field.type)
    told = metadata.get(EXTENSION_METADATA, b"")
    return _extension(metadata[EXTENSION_NAME].decode(errors="replace"), field.type, told)


def format_type(kind: pa.DataType) -> str:
    """Write a type."""
    # Extension types come first: those that are written in Python may have no hash.
    nested = _format_nested(kind)
    return nested or _PLAIN_NAMES.get(kind) or _format_sized(kind) or str(kind)


def parse_field(text: str, name: str, *, nullable: bool = True) -> pa.Field:
    """Make a field of the type that was written.

    Args:
        text: As `format_field` writes it.
        name: The field's.
        nullable: Whether its values may be null.

    Raises:
        ValueError: this is no type, or none that can be made.
    """
    try:
        _check_depth(text)
        return _Reader(text).read(name, nullable=nullable)
    except (OverflowError, TypeError, ValueError, pa.ArrowException) as exc:
        msg = f"'{text}' is no Arrow type: {exc}"
        raise ValueError(msg) from exc


def _format_sized(kind: pa.DataType) -> str | None:
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed_size_binary[{kind.byte_width}]"
    if pa.types.is_decimal(kind):
        return f"decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if pa.types.is_time(kind):
        return f"time{kind.bit_width}[{kind.unit}]"
    if pa.types.is_duration(kind):
        return f"duration[{kind.unit}]"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}]" if not kind.tz else f"timestamp[{kind.unit}, tz={kind.tz}]"
    return None


def _format_nested(kind: pa.DataType) -> str | None:  # noqa: PLR0911  # one for each kind
    if isinstance(kind, pa.BaseExtensionType):
        return _extension(kind.extension_name, kind.storage_type, _serialized(kind))
    if pa.types.is_fixed_size_list(kind):
        return f"fixed_size_list<{_inner(kind.value_field)}>[{kind.list_size}]"
    for name, is_this in _IS_LIST.items():
        if is_this(kind):
            return f"{name}<{_inner(kind.value_field)}>"
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{_quoted(one.name)}: {_inner(one)}" for one in kind)
        return f"struct<{inner}>"
    if pa.types.is_map(kind):
        sorted_ = ", sorted" if kind.keys_sorted else ""
        return f"map<{format_field(kind.key_field)}, {_inner(kind.item_field)}{sorted_}>"
    if pa.types.is_dictionary(kind):
        ordered = ", ordered" if kind.ordered else ""
        return (
            f"dictionary<{format_type(kind.index_type)}, {format_type(kind.value_type)}{ordered}>"
        )
    if pa.types.is_run_end_encoded(kind):
        return f"run_end_encoded<{format_type(kind.run_end_type)}, {format_type(kind.value_type)}>"
    return None


_IS_LIST: Mapping[str, Callable[[pa.DataType], bool]] = {
    "list": pa.types.is_list,
    "large_list": pa.types.is_large_list,
    "list_view": pa.types.is_list_view,
    "large_list_view": pa.types.is_large_list_view,
}


def _inner(field: pa.Field) -> str:
    return format_field(field) + ("" if field.nullable else " not null")


def _extension(name: str, storage: pa.DataType, serialized: bytes) -> str:
    try:
        told = serialized.decode()
    except UnicodeDecodeError:
        told = ""
    more = f", {_text(told)}" if told else ""
    return f"extension<{_quoted(name)}, {format_type(storage)}{more}>"


def _serialized(kind: Any) -> bytes:  # noqa: ANN401  # PyArrow ships no types
    told = getattr(kind, "__arrow_ext_serialize__", None)
    if told is not None:
        return bytes(told())
    # PyArrow's own types do not show what they write of themselves.
    words = {word: getattr(kind, word, None) for word in _OWN_WORDS}
    found = {word: value for word, value in words.items() if value is not None}
    return json.dumps(found).encode() if found else b""


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else _text(name)


def _text(words: str) -> str:
    # A doc ends the type at a bar.
    return json.dumps(words, ensure_ascii=False).replace("|", "\\u007c")


def _check_depth(text: str) -> None:
    depths = accumulate((char == "<") - (char == ">") for char in text)
    if max(depths, default=0) > _DEPTH_LIMIT:
        msg = f"a type nests at most {_DEPTH_LIMIT} others"
        raise ValueError(msg)


class _Reader:
    """Reads a written type from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._others: Mapping[str, Callable[[], pa.DataType]] = {
            "fixed_size_binary": lambda: pa.binary(self._size()),
            "fixed_size_list": self._fixed_size_list,
            "timestamp": self._timestamp,
            "struct": self._struct,
            "map": self._map,
            "dictionary": self._dictionary,
            "run_end_encoded": self._run_end_encoded,
        }

    def read(self, name: str, *, nullable: bool) -> pa.Field:
        """Make a field of all that is written."""
        field = self._field(name).with_nullable(nullable)
        if self._text[self._at :].strip():
            raise self._error("the end")
        return field

    def _field(self, name: str) -> pa.Field:
        """Read a type; an extension is named in the metadata of a field of what it is stored as."""
        if not self._skip("extension"):
            return pa.field(name, self._type())
        self._expect("<")
        called = self._word()
        self._expect(",")
        storage = self._type()
        told = self._word() if self._skip(",") else ""
        self._expect(">")
        return pa.field(
            name,
            storage,
            metadata={EXTENSION_NAME: called.encode(), EXTENSION_METADATA: told.encode()},
        )

    def _inner(self, name: str) -> pa.Field:
        field = self._field(name)
        if not self._skip("not"):
            return field
        self._expect("null")
        return field.with_nullable(False)  # noqa: FBT003  # PyArrow's takes no keyword

    def _type(self) -> pa.DataType:
        word = self._word()
        if word in _PLAIN:
            return _PLAIN[word]
        if word in _TIMES:
            return _TIMES[word](self._unit())
        if word in _DECIMALS:
            return self._decimal(_DECIMALS[word])
        if word in _LISTS:
            return _LISTS[word](self._element())
        if word in self._others:
            return self._others[word]()
        raise self._error("a type")

    def _decimal(self, make: Callable[[int, int], pa.DataType]) -> pa.DataType:
        self._expect("(")
        precision = int(self._word())
        self._expect(",")
        scale = int(self._word())
        self._expect(")")
        return make(precision, scale)

    def _timestamp(self) -> pa.DataType:
        self._expect("[")
        unit = self._word()
        zone = _ZONE.match(self._text, self._at)
        self._at = zone.end() if zone else self._at
        self._expect("]")
        return pa.timestamp(unit, zone[1] if zone else None)

    def _unit(self) -> str:
        self._expect("[")
        unit = self._word()
        self._expect("]")
        return unit

    def _size(self) -> int:
        size = int(self._unit())
        if size < 0:
            raise self._error("a size")
        return size

    def _element(self) -> pa.Field:
        self._expect("<")
        element = self._inner("item")
        self._expect(">")
        return element

    def _fixed_size_list(self) -> pa.DataType:
        element = self._element()
        return pa.list_(element, self._size())

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields: list[pa.Field] = []
        while not self._skip(">"):
            if fields:
                self._expect(",")
            name = self._word()
            self._expect(":")
            fields.append(self._inner(name))
        return pa.struct(fields)

    def _map(self) -> pa.DataType:
        self._expect("<")
        key = self._field("key").with_nullable(False)  # noqa: FBT003  # as above
        self._expect(",")
        value = self._inner("value")
        is_sorted = self._last("sorted")
        return pa.map_(key, value, keys_sorted=is_sorted)

    def _dictionary(self) -> pa.DataType:
        self._expect("<")
        index = self._type()
        self._expect(",")
        values = self._type()
        return pa.dictionary(index, values, ordered=self._last("ordered"))

    def _run_end_encoded(self) -> pa.DataType:
        self._expect("<")
        ends = self._type()
        self._expect(",")
        values = self._type()
        self._expect(">")
        return pa.run_end_encoded(ends, values)

    def _last(self, word: str) -> bool:
        """Read what closes a type, with a word before it or without."""
        found = self._skip(",")
        if found:
            self._expect(word)
        self._expect(">")
        return found

    def _word(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._error("a word")
        self._at = match.end()
        token = match[1]
        return str(json.loads(token)) if token.startswith('"') else token

    def _skip(self, token: str) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match[1] != token:
            return False
        self._at = match.end()
        return True

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise self._error(f"'{token}'")

    def _error(self, wanted: str) -> ValueError:
        return ValueError(f"{wanted} is missing at {self._at}")
