"""Which types fit which: at once, value by value, or not; and what a column widens to."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
from pyarrow import types

__all__ = ["Fits", "fits", "json_schema", "plain", "readable_json", "widened"]


# Integers of so many bits are doubles exactly.
_EXACT_BITS = 32


class Fits(StrEnum):
    """How values of one type fit another."""

    SAME = "same"
    BY_VALUE = "by value"
    NEVER = "never"


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without how it is encoded."""
    return kind.value_type if types.is_dictionary(kind) else kind


def fits(source: pa.DataType, target: pa.DataType) -> Fits:
    """Tell how values of a source fit a table's column."""
    if source.equals(target):
        return Fits.SAME
    if isinstance(target, pa.BaseExtensionType):
        return _no_better(fits(_storage(source), target.storage_type))
    source, target = plain(_storage(source)), plain(target)
    is_castable = any(
        (
            types.is_null(source),
            _is_text(target) and _is_flat(source),
            _is_text(source) and (_is_flat(target) or types.is_nested(target)),
            _is_binary(source) and _is_binary(target),
            _numbers_fit(source, target),
            _times_fit(source, target),
            _nested_fit(source, target),
        )
    )
    return Fits.BY_VALUE if is_castable else Fits.NEVER


def _no_better(found: Fits) -> Fits:
    return Fits.NEVER if found is Fits.NEVER else Fits.BY_VALUE


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _numbers_fit(source: pa.DataType, target: pa.DataType) -> bool:
    if types.is_boolean(source) and types.is_boolean(target):
        return True
    if types.is_integer(target):
        return bool(types.is_integer(source) or types.is_boolean(source))
    if types.is_floating(target):
        is_wider = types.is_floating(source) and source.bit_width <= target.bit_width
        return bool(types.is_integer(source) or is_wider)
    if types.is_decimal(target):
        return bool(types.is_integer(source) or types.is_decimal(source))
    return False


def _times_fit(source: pa.DataType, target: pa.DataType) -> bool:
    if types.is_date(source) and (types.is_date(target) or types.is_timestamp(target)):
        return not types.is_timestamp(target) or target.tz is None
    if types.is_timestamp(source) and types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    if types.is_time(source) and types.is_time(target):
        return True
    return bool(types.is_duration(source) and types.is_duration(target))


def _nested_fit(source: pa.DataType, target: pa.DataType) -> bool:
    if types.is_struct(source) and types.is_struct(target):
        inner = {field.name: field.type for field in source}
        known = {field.name for field in target}
        return set(inner) <= known and all(
            fits(inner[field.name], field.type) is not Fits.NEVER
            if field.name in inner
            else field.nullable
            for field in target
        )
    if _is_list(source) and _is_list(target):
        # A vector in JSON or Parquet is often one of doubles, and nobody means more than floats.
        both_float = types.is_floating(source.value_type) and types.is_floating(target.value_type)
        return both_float or fits(source.value_type, target.value_type) is not Fits.NEVER
    return False


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_flat(kind: pa.DataType) -> bool:
    """Whether a value has a form as text, and only one."""
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or _is_text(kind)
    )


def widened(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of two, which a column can get; None without one.

    Only where the column's own type does not hold what is new.
    """
    old, new = plain(old), plain(new)
    if types.is_integer(old) and types.is_integer(new):
        return _wider_integer(old, new)
    if types.is_decimal(old) and types.is_decimal(new):
        return _wider_decimal(old, new)
    if types.is_floating(new) and _is_number(old):
        return _wider_real(old, new)
    is_large_text = types.is_string(old) and types.is_large_string(new)
    is_large_binary = types.is_binary(old) and types.is_large_binary(new)
    return new if is_large_text or is_large_binary else None


def _wider_real(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    if types.is_floating(old):
        return new if new.bit_width > old.bit_width else None
    return pa.float64() if old.bit_width <= _EXACT_BITS else None


def _wider_integer(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    if types.is_signed_integer(old) == types.is_signed_integer(new):
        return new if new.bit_width > old.bit_width else None
    if types.is_signed_integer(old):
        bits = new.bit_width * 2
        return _signed(bits) if bits > old.bit_width else None
    return _signed(max(old.bit_width * 2, new.bit_width))


def _signed(bits: int) -> pa.DataType | None:
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _wider_decimal(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    scale = max(old.scale, new.scale)
    digits = max(old.precision - old.scale, new.precision - new.scale) + scale
    if (digits, scale) == (old.precision, old.scale) or digits > 38:  # noqa: PLR2004  # of 128 bits
        return None
    return pa.decimal128(digits, scale)


def json_schema(natural: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Return the types that JSON is read in, before it is fitted to a table.

    Args:
        natural: What the file's beginning tells.
        target: The table's schema.
    """
    kinds = {field.name: field.type for field in target}
    return pa.schema(
        [field.with_type(readable_json(field.type, kinds.get(field.name))) for field in natural]
    )


def readable_json(natural: pa.DataType, target: pa.DataType | None) -> pa.DataType:
    """Return the type that a value of JSON is read in, before it is fitted to the table's.

    Args:
        natural: What the file's beginning tells.
        target: The table's; None where it has no such column.
    """
    if target is None:
        return natural
    target = plain(_storage(target))
    if types.is_timestamp(natural):
        return pa.string()  # its text is kept as it is, for tables that hold text
    if _is_number(natural) and (_is_number(target) or types.is_decimal(target)):
        return target
    if types.is_list(natural) and _is_list(target):
        return pa.list_(readable_json(natural.value_type, target.value_type))
    if types.is_struct(natural) and types.is_struct(target):
        known = {field.name: field.type for field in target}
        return pa.struct(
            [
                pa.field(field.name, readable_json(field.type, known.get(field.name)))
                for field in natural
            ]
        )
    return natural
