"""A schema as the JSON of the Lance namespace specification, type names as Lance gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from mooring.errors import InvalidInputError

__all__ = ["schema_to_json", "type_from_json"]

_NAMES = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}

# What a name stands for where Arrow has no alias of it. Lance's names of times tell no unit.
_ALIASES = {
    "boolean": "bool",
    "large_utf8": "large_string",
    "timestamp": "timestamp[us]",
    "duration": "duration[us]",
    "time32": "time32[ms]",
    "time64": "time64[us]",
}
_DECIMALS = {
    "decimal": pa.decimal128,
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}
# As Arrow prints it, timestamp[us, tz=UTC], or as Lance stores it, timestamp:us:UTC.
_ZONED = re.compile(r"timestamp(?:\[(s|ms|us|ns), ?(?:tz=)?(.+)\]|:(s|ms|us|ns):(.+))")
_UNIT = re.compile(r"(timestamp|duration|time32|time64):(s|ms|us|ns)(?::-)?")


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return the schema as plain lists and dictionaries."""
    document: dict[str, Any] = {"fields": [_field(field) for field in schema]}
    if schema.metadata:
        document["metadata"] = _texts(schema.metadata)
    return document


def type_from_json(document: object) -> pa.DataType:
    """Read a data type, in the words that `schema_to_json` writes and some more.

    A time without a unit counts microseconds, a `time32` milliseconds; `timestamp[ms, tz=UTC]`
    and the like name theirs.

    Raises:
        InvalidInputError: there is no such type, or a part of it is missing.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("type"), str):
        msg = f'{document!r} is not a data type: write {{"type": "int64"}} or the like'
        raise InvalidInputError(msg)
    name = document["type"]
    try:
        return _read_type(name.lower() if "[" not in name and ":" not in name else name, document)
    except (ValueError, TypeError, pa.ArrowInvalid) as exc:
        msg = f"'{name}' is not a data type of a column: {exc}"
        raise InvalidInputError(msg) from exc


def _read_type(name: str, document: Mapping[str, Any]) -> pa.DataType:
    if name in {"list", "large_list", "fixed_size_list", "struct", "map"}:
        return _read_nested(name, document)
    if name == "fixed_size_binary":
        return pa.binary(_length(document))
    if name in _DECIMALS:
        return _DECIMALS[name](*divmod(_length(document), 1000))
    if unit := _UNIT.fullmatch(name):
        name = f"{unit[1]}[{unit[2]}]"
    elif zoned := _ZONED.fullmatch(name):
        return pa.timestamp(zoned[1] or zoned[3], tz=zoned[2] or zoned[4])
    return pa.type_for_alias(_ALIASES.get(name, name))


def _read_nested(name: str, document: Mapping[str, Any]) -> pa.DataType:
    fields = [_read_field(field) for field in document.get("fields") or ()]
    if name == "struct":
        return pa.struct(fields)
    if len(fields) != 1:
        msg = f"it has {len(fields)} fields and needs one, of its values"
        raise ValueError(msg)
    if name == "map":
        return pa.map_(*_entries(fields[0].type))
    if name == "fixed_size_list":
        return pa.list_(fields[0], _length(document))
    return pa.large_list(fields[0]) if name == "large_list" else pa.list_(fields[0])


def _entries(kind: pa.DataType) -> tuple[pa.Field, pa.Field]:
    if not types.is_struct(kind) or kind.num_fields != 2:  # noqa: PLR2004  # a key and a value
        msg = "its entries need a struct of a key and a value"
        raise ValueError(msg)
    return kind.field(0), kind.field(1)


def _read_field(document: Mapping[str, Any]) -> pa.Field:
    return pa.field(
        document.get("name", "item"),
        type_from_json(document.get("type")),
        nullable=document.get("nullable") is not False,
        metadata=document.get("metadata"),
    )


def _length(document: Mapping[str, Any]) -> int:
    length = document.get("length")
    if not isinstance(length, int) or length < 1:
        msg = "it needs its length"
        raise ValueError(msg)
    return length


def _field(field: pa.Field) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": field.name,
        "nullable": field.nullable,
        "type": _type(field.type),
    }
    if field.metadata:
        document["metadata"] = _texts(field.metadata)
    return document


def _type(kind: pa.DataType) -> dict[str, Any]:
    if types.is_dictionary(kind):
        return _type(kind.value_type)
    name = str(kind).partition("[")[0].partition("<")[0].partition("(")[0]
    document: dict[str, Any] = {"type": _NAMES.get(name, name)}
    if types.is_nested(kind):
        document["fields"] = [_field(kind.field(index)) for index in range(kind.num_fields)]
    if types.is_fixed_size_list(kind):
        document["length"] = kind.list_size
    elif types.is_fixed_size_binary(kind):
        document["length"] = kind.byte_width
    elif types.is_decimal(kind):
        # Precision and scale share one number, as the reference implementation has it.
        document["length"] = kind.precision * 1000 + kind.scale
    return document


def _texts(metadata: dict[bytes, bytes]) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in metadata.items()
    }
