"""A schema as the JSON of the Lance namespace specification, type names as Lance gives them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

__all__ = ["schema_to_json"]

_NAMES = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return the schema as plain lists and dictionaries."""
    document: dict[str, Any] = {"fields": [_field(field) for field in schema]}
    if schema.metadata:
        document["metadata"] = _texts(schema.metadata)
    return document


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
