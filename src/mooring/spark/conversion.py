"""Batches of rows in the types of whoever takes them: Spark, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from mooring.errors import TableColumnNotFoundError, TableSchemaValidationError
from mooring.identifiers import quote
from mooring.spark.types import is_blob

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Conversion", "check_fits", "check_table_takes"]

_DECIMAL_BYTES = 16
_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


class Conversion:
    """Casts batches to a schema; columns are found by name, and missing ones are null."""

    def __init__(
        self, source: pa.Schema, target: pa.Schema, what: str, *, is_exact: bool = True
    ) -> None:
        """Decide how, once for all batches.

        Args:
            source: The batches' schema.
            target: The schema that is wanted.
            what: Whose columns they are, for messages.
            is_exact: Whether the schema is wanted to the letter, as Lance wants it; Spark takes
                some types for others.
        """
        self._target = target
        self._is_exact = is_exact
        self._steps = [_step(source, field, what, is_exact=is_exact) for field in target]
        self._is_same = not is_exact and source.names == target.names and not any(self._steps)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cast a batch.

        Raises:
            TableSchemaValidationError: a value does not fit.
        """
        if self._is_same:
            return batch
        arrays = [
            batch.column(field.name) if step is None else step(batch)
            for field, step in zip(self._target, self._steps, strict=True)
        ]
        if self._is_exact:
            return pa.RecordBatch.from_arrays(
                [_aligned(array) for array in arrays], schema=self._target
            )
        return pa.RecordBatch.from_arrays(arrays, names=self._target.names)


def check_fits(source: pa.DataType, target: pa.DataType, path: str, what: str) -> None:
    """Refuse what can never be cast without changing what it means.

    Raises:
        TableSchemaValidationError: the types are of different kinds.
        TableColumnNotFoundError: a struct has a field that the other lacks.
    """
    source, target = _bare(source), _bare(target)
    if kinds.is_null(source):
        return
    if kinds.is_struct(source) and kinds.is_struct(target):
        _check_structs(source, target, path, what)
        return
    if kinds.is_map(source) and kinds.is_map(target):
        check_fits(source.key_type, target.key_type, f"{path}{{}}", what)
        check_fits(source.item_type, target.item_type, f"{path}{{}}", what)
        return
    if _is_list(source) and _is_list(target):
        check_fits(source.value_type, target.value_type, f"{path}[]", what)
        return
    is_time_count = kinds.is_integer(source) and kinds.is_time(target)
    if _family(source) != _family(target) and not is_time_count:
        msg = f"column {quote(path)} of {what} is {target}, and {source} does not fit"
        raise TableSchemaValidationError(msg)


def check_table_takes(rows: pa.Schema, table: pa.Schema, what: str) -> None:
    """Refuse rows that a table cannot take, by their schema.

    Raises:
        TableColumnNotFoundError: the table lacks a column.
        TableSchemaValidationError: a type does not fit, or a column that must not be null is
            missing.
    """
    unknown = next((name for name in rows.names if name not in table.names), None)
    if unknown is not None:
        known = ", ".join(table.names)
        msg = f"{what} has no column {quote(unknown)}: it has {known}"
        raise TableColumnNotFoundError(msg)
    for field in table:
        if field.name in rows.names:
            check_fits(rows.field(field.name).type, field.type, field.name, what)
        elif not field.nullable:
            msg = f"column {quote(field.name)} of {what} must not be null, and the rows lack it"
            raise TableSchemaValidationError(msg)


def _check_structs(source: pa.DataType, target: pa.DataType, path: str, what: str) -> None:
    known = [one.name for one in target]
    for one in source:
        below = f"{path}.{one.name}"
        if one.name not in known:
            has = ", ".join(known)
            msg = f"{what} has no column {quote(below)}: {quote(path)} has {has}"
            raise TableColumnNotFoundError(msg)
        check_fits(one.type, target.field(one.name).type, below, what)


def _bare(kind: pa.DataType) -> pa.DataType:
    if is_blob(kind):
        return pa.large_binary()
    if isinstance(kind, pa.BaseExtensionType):
        return _bare(kind.storage_type)
    return _bare(kind.value_type) if kinds.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _family(kind: pa.DataType) -> str:
    """Name what a type is about; within a family values are cast where they fit."""
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "number"
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return "text"
    if kinds.is_timestamp(kind):
        return "time" if kind.tz is None else "time with zone"
    for name, belongs in (
        ("date", kinds.is_date),
        ("bytes", _is_bytes),
        ("duration", kinds.is_duration),
    ):
        if belongs(kind):
            return name
    return str(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    )


def _step(
    source: pa.Schema, field: pa.Field, what: str, *, is_exact: bool
) -> Callable[[pa.RecordBatch], pa.Array] | None:
    """Return what makes a column; None where it is taken as it comes."""
    if field.name not in source.names:
        return lambda batch: pa.nulls(batch.num_rows, field.type)
    given = source.field(field.name)
    needs_check = given.nullable and not field.nullable
    is_taken = given.type == field.type or (not is_exact and _is_taken(given.type, field.type))
    if is_taken and not needs_check:
        return None

    def cast(batch: pa.RecordBatch) -> pa.Array:
        array = batch.column(field.name)
        if needs_check and array.null_count:
            msg = f"column {quote(field.name)} of {what} must not be null, and a row has no value"
            raise TableSchemaValidationError(msg)
        try:
            return _cast(array, field.type)
        except _FAILURES as exc:
            raise _explain(array, field, what, exc) from exc

    return cast


def _is_taken(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark takes one type for the other as it is."""
    if given == wanted:
        return True
    if kinds.is_timestamp(given) and kinds.is_timestamp(wanted):
        return given.unit == wanted.unit and bool(given.tz) and bool(wanted.tz)
    if kinds.is_list(given) and kinds.is_list(wanted):
        return _is_taken(given.value_type, wanted.value_type)
    if kinds.is_struct(given) and kinds.is_struct(wanted):
        return [one.name for one in given] == [one.name for one in wanted] and all(
            _is_taken(one.type, other.type) for one, other in zip(given, wanted, strict=True)
        )
    return (given, wanted) in _SPARK_TAKES


# Spark's columns read both from the same vectors.
_SPARK_TAKES = {(pa.large_string(), pa.string()), (pa.large_binary(), pa.binary())}


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if is_blob(wanted):
        return _blobs(array, wanted)
    if isinstance(array.type, pa.BaseExtensionType) and array.type != wanted:
        return _cast(array.storage, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, _cast(array, wanted.storage_type))
    if kinds.is_fixed_size_list(wanted) and kinds.is_list(array.type) and not len(array.values):
        # Spark sends no buffer for values where no row has any, and Arrow's cast crashes on that.
        array = pa.array(array.to_pylist(), array.type)
    # Spark counts microseconds: what is finer is cut off, what is coarser must not overflow.
    return array.cast(wanted, safe=not _has_nanoseconds(array.type))


def _blobs(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Give content the form in which Lance takes blobs."""
    fields = list(wanted.storage_type)
    content = array.cast(pa.large_binary())
    columns = [content, *(pa.nulls(len(array), field.type) for field in fields[1:])]
    storage = pa.StructArray.from_arrays(columns, fields=fields, mask=pc.is_null(content))
    return pa.ExtensionArray.from_storage(wanted, storage)


def _aligned(array: pa.Array) -> pa.Array:
    """Return decimals as Lance can read them: Spark sends them at any multiple of eight bytes."""
    if not _has_decimals(array.type):
        return array
    if all(buffer is None or buffer.address % _DECIMAL_BYTES == 0 for buffer in array.buffers()):
        return array
    return array.take(pa.array(np.arange(len(array))))  # which copies


def _has_decimals(kind: pa.DataType) -> bool:
    if kinds.is_decimal(kind):
        return True
    return any(_has_decimals(kind.field(number).type) for number in range(kind.num_fields))


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if kinds.is_timestamp(kind) or kinds.is_duration(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(number).type) for number in range(kind.num_fields))


def _explain(
    array: pa.Array, field: pa.Field, what: str, failure: Exception
) -> TableSchemaValidationError:
    wanted = field.type
    column = f"column {quote(field.name)} of {what}"
    if kinds.is_fixed_size_list(wanted) and _is_list(array.type):
        lengths = pc.list_value_length(array)
        wrong = lengths.filter(pc.not_equal(lengths, wanted.list_size))
        if len(wrong):
            msg = f"{column} holds vectors of {wanted.list_size} numbers, and a row has {wrong[0]}"
            return TableSchemaValidationError(msg)
    return TableSchemaValidationError(f"{column} is {wanted}, and a value does not fit: {failure}")
