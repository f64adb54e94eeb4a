"""Types of columns in words: ``vector of 768 float32``, ``list of string``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from mooring.amounts import how_many

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_vector", "say_type"]

_WORDS = {"halffloat": "float16", "float": "float32", "double": "float64", "bool": "boolean"}
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_EXTENSION = "ARROW:extension:name"
_BLOB = "lance-encoding:blob"
_KNOWN_EXTENSIONS = {
    "lance.blob.v2": "blob",
    "lance.json": "JSON",
    "arrow.json": "JSON",
    "arrow.uuid": "UUID",
    "lance.bfloat16": "bfloat16",
    "arrow.bool8": "boolean",
}


def is_vector(kind: pa.DataType) -> bool:
    """Whether a type is a list of numbers, as many in every row."""
    return types.is_fixed_size_list(kind) and (
        types.is_floating(kind.value_type)
        or types.is_integer(kind.value_type)
        or _extension(kind.value_type) == "lance.bfloat16"
    )


def say_type(kind: pa.DataType, metadata: Mapping[str, str] | None = None) -> str:
    """Say what a type is.

    Args:
        kind: The type.
        metadata: That of the field, which may tell more than its type.
    """
    told = metadata or {}
    if told.get(_BLOB) == "true":
        return "blob"
    extension = told.get(_EXTENSION) or _extension(kind)
    if extension:
        return _say_extension(extension, kind)
    return _say_nested(kind) or _say_time(kind) or _say_plain(kind)


def _say_nested(kind: pa.DataType) -> str:
    if types.is_struct(kind):
        return f"struct of {how_many(kind.num_fields, 'field')}"
    if types.is_map(kind):
        return f"map of {say_type(kind.key_type)} to {say_type(kind.item_type)}"
    if types.is_dictionary(kind):
        return f"{say_type(kind.value_type)}, kept as a dictionary ({kind.index_type} keys)"
    return _say_list(kind)


def _say_list(kind: pa.DataType) -> str:
    if is_vector(kind):
        return f"vector of {kind.list_size} {say_type(kind.value_type)}"
    if types.is_fixed_size_list(kind):
        return f"list of exactly {kind.list_size} {say_type(kind.value_type)}"
    if types.is_large_list(kind):
        return f"large list of {say_type(kind.value_type)}"
    if types.is_list(kind):
        return f"list of {say_type(kind.value_type)}"
    return ""


def _say_time(kind: pa.DataType) -> str:
    if types.is_timestamp(kind):
        zone = f"zone {kind.tz}" if kind.tz else "without a zone"
        return f"timestamp in {_UNITS[kind.unit]}, {zone}"
    if types.is_time(kind):
        return f"time of day in {_UNITS[kind.unit]}"
    if types.is_duration(kind):
        return f"duration in {_UNITS[kind.unit]}"
    if types.is_date(kind):
        return "date" if types.is_date32(kind) else "date in milliseconds"
    return ""


def _say_plain(kind: pa.DataType) -> str:
    if types.is_decimal(kind):
        return f"decimal of {kind.precision} digits, {kind.scale} after the point"
    if types.is_fixed_size_binary(kind):
        return f"binary of {kind.byte_width} bytes"
    text = str(kind)
    return _WORDS.get(text, text.replace("large_", "large "))


def _say_extension(name: str, kind: pa.DataType) -> str:
    if name in _KNOWN_EXTENSIONS:
        return _KNOWN_EXTENSIONS[name]
    stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return f"{name}, stored as {say_type(stored)}"


def _extension(kind: pa.DataType) -> str:
    return str(kind.extension_name) if isinstance(kind, pa.BaseExtensionType) else ""
