"""Partition and sort schemes as deltacat writes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mooring.metastore.deltacat.kept import as_dict, as_list

if TYPE_CHECKING:
    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.model import PartitionField, PartitionScheme, SortField, SortScheme

__all__ = [
    "NO_SCHEME_ID",
    "read_partition_scheme",
    "read_sort_scheme",
    "write_partition_scheme",
    "write_sort_scheme",
]

# Its library writes a scheme also where there is none, always with this id.
NO_SCHEME_ID = "deadbeef-7277-49a4-a195-fdc8ed235d42"
_UNPARTITIONED = {
    "keys": None,
    "name": "unpartitioned_scheme",
    "id": NO_SCHEME_ID,
    "nativeObject": None,
}
_UNSORTED = {**_UNPARTITIONED, "name": "unsorted_scheme"}
_WHOLE_NUMBERS = {"bucket", "year", "month", "day", "hour"}
_ARGUMENTS = {
    "bucket": ("numBuckets", "bucketingStrategy"),
    "truncate": ("width", "truncateStrategy"),
}


def write_partition_scheme(scheme: PartitionScheme | None) -> Dictionary:
    """Write a partition scheme, or that there is none."""
    if scheme is None:
        return dict(_UNPARTITIONED)
    keys = [_write_partition_key(field) for field in scheme.fields]
    return {"keys": keys or None, "name": scheme.name, "id": scheme.id, "nativeObject": None}


def read_partition_scheme(found: object) -> Dictionary | None:
    """Read a partition scheme; None where there is none."""
    raw = as_dict(found)
    if not raw or (raw.get("keys") is None and raw.get("id") == NO_SCHEME_ID):
        return None
    fields = [_read_partition_key(as_dict(key)) for key in as_list(raw.get("keys"))]
    return {"fields": fields, "name": raw.get("name"), "id": raw.get("id")}


def write_sort_scheme(scheme: SortScheme | None) -> Dictionary:
    """Write a sort scheme, or that there is none."""
    if scheme is None:
        return dict(_UNSORTED)
    keys = [_write_sort_key(field) for field in scheme.fields]
    return {"keys": keys or None, "name": scheme.name, "id": scheme.id, "nativeObject": None}


def read_sort_scheme(found: object) -> Dictionary | None:
    """Read a sort scheme; None where there is none."""
    raw = as_dict(found)
    if not raw or (raw.get("keys") is None and raw.get("id") == NO_SCHEME_ID):
        return None
    fields = [_read_sort_key(as_list(key)) for key in as_list(raw.get("keys"))]
    return {"fields": fields, "name": raw.get("name"), "id": raw.get("id")}


def _write_partition_key(field: PartitionField) -> Dictionary:
    return {
        "key": list(field.columns),
        "name": field.name,
        "fieldId": None,
        "transform": _write_transform(field),
        "nativeObject": None,
    }


def _write_transform(field: PartitionField) -> Dictionary:
    found: Dictionary = {"name": field.transform}
    if field.transform in _ARGUMENTS:
        size, strategy = _ARGUMENTS[field.transform]
        found["parameters"] = {size: field.argument, strategy: "default"}
    if field.transform in _WHOLE_NUMBERS:
        found["return_type"] = _whole_number()
    return found


def _read_partition_key(raw: Dictionary) -> Dictionary:
    transform = as_dict(raw.get("transform"))
    name = str(transform.get("name", "identity"))
    size = _ARGUMENTS[name][0] if name in _ARGUMENTS else ""
    return {
        "columns": _columns(raw.get("key")),
        "transform": name,
        "argument": as_dict(transform.get("parameters")).get(size),
        "name": raw.get("name"),
    }


def _write_sort_key(field: SortField) -> list[object]:
    order = "descending" if field.descending else "ascending"
    nulls = "at_start" if field.nulls_first else "at_end"
    return [list(field.columns), order, nulls, None, None]


def _read_sort_key(raw: list[object]) -> Dictionary:
    columns, order, nulls, *_ = [*raw, None, None, None]
    return {
        "columns": _columns(columns),
        "descending": order == "descending",
        "nulls_first": nulls == "at_start",
    }


def _columns(found: object) -> list[str]:
    """Name columns; a column inside another is named with what it is in."""
    return [
        ".".join(map(str, one)) if isinstance(one, list | tuple) else str(one)
        for one in as_list(found)
    ]


@cache
def _whole_number() -> bytes:
    """Return the Arrow type that most transforms give, as its library writes it."""
    import pyarrow as pa  # 100 ms, only for schemes

    return bytes(pa.schema([("return_type", pa.int32())]).serialize())
