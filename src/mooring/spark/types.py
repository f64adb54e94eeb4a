"""Arrow types as Spark types and back.

Spark has fewer types than Arrow: a fixed-size list becomes an array, an unsigned number a wider
signed one, a dictionary its values. What a column was is kept in its metadata, so that a table
that is made of a data frame gets the type back.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as kinds
from pyspark.sql import types as spark

from mooring.errors import InvalidInputError, TableSchemaValidationError, UnsupportedError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ARROW_KEY",
    "canonical",
    "from_spark",
    "is_blob",
    "parse_vectors",
    "to_spark",
    "to_spark_type",
]

# In the metadata of a column of Spark: the Arrow field that it was.
ARROW_KEY = "mooring.arrow"
_MAX_PRECISION = 38

_PLAIN: dict[pa.DataType, spark.DataType] = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.uint8(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(),
    pa.uint32(): spark.LongType(),
    pa.uint64(): spark.DecimalType(20, 0),
    pa.float16(): spark.FloatType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.string_view(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.binary_view(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.date64(): spark.DateType(),
    # Spark's own type of times is not to be used yet: the count since midnight is.
    pa.time32("s"): spark.IntegerType(),
    pa.time32("ms"): spark.IntegerType(),
    pa.time64("us"): spark.LongType(),
    pa.time64("ns"): spark.LongType(),
}
_CANONICAL: dict[type[spark.DataType], pa.DataType] = {
    spark.NullType: pa.null(),
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.CharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", tz="UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.DayTimeIntervalType: pa.duration("us"),
}


def to_spark(schema: pa.Schema) -> spark.StructType:
    """Return the schema that Spark sees.

    Raises:
        UnsupportedError: Spark has no type for a column.
    """
    return spark.StructType([_to_spark_field(field, field.name) for field in schema])


def to_spark_type(  # noqa: PLR0911  # a kind of types each
    kind: pa.DataType, path: str
) -> spark.DataType:
    """Return the type that Spark sees.

    Args:
        kind: The Arrow type.
        path: Whose it is, for messages.

    Raises:
        UnsupportedError: Spark has none for it.
    """
    if is_blob(kind):
        return spark.BinaryType()
    if isinstance(kind, pa.BaseExtensionType):
        return to_spark_type(kind.storage_type, path)
    if kinds.is_dictionary(kind):
        return to_spark_type(kind.value_type, path)
    if kinds.is_fixed_size_binary(kind):
        return spark.BinaryType()
    if kinds.is_timestamp(kind):
        return spark.TimestampNTZType() if kind.tz is None else spark.TimestampType()
    if kinds.is_duration(kind):
        return spark.DayTimeIntervalType()
    if kinds.is_decimal(kind) and kind.precision <= _MAX_PRECISION and kind.scale >= 0:
        return spark.DecimalType(kind.precision, kind.scale)
    if kinds.is_nested(kind):
        return _to_spark_nested(kind, path)
    found = _PLAIN.get(kind)
    if found is None:
        msg = (
            f"Spark has no type for column {quote(path)}, which is {kind}: name the columns to"
            " read with the option 'columns'"
        )
        raise UnsupportedError(msg)
    return found


def canonical(kind: spark.DataType, path: str) -> pa.DataType:
    """Return the Arrow type in which Spark hands out a type of its own.

    Raises:
        UnsupportedError: no table can have it.
    """
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.ArrayType):
        return pa.list_(pa.field("item", canonical(kind.elementType, f"{path}[]")))
    if isinstance(kind, spark.MapType):
        inside = f"{path}{{}}"
        return pa.map_(canonical(kind.keyType, inside), canonical(kind.valueType, inside))
    if isinstance(kind, spark.StructType):
        return pa.struct(
            [
                pa.field(one.name, canonical(one.dataType, f"{path}.{one.name}"))
                for one in kind.fields
            ]
        )
    found = _CANONICAL.get(type(kind))
    if found is None:
        msg = f"column {quote(path)} is {kind.simpleString()}, which no Lance table can keep"
        raise UnsupportedError(msg)
    return found


def from_spark(schema: spark.StructType, vectors: Mapping[str, int] | None = None) -> pa.Schema:
    """Return the schema of a new table for the rows of a data frame.

    What Spark knows never to be null is more than a table should demand of all rows to come: only
    a column that was read from one that does so is demanded again.

    Args:
        schema: The data frame's.
        vectors: The columns of numbers that become vectors, and how long these are.

    Raises:
        InvalidInputError: a vector is to be made of something else.
        UnsupportedError: no table can have a column's type.
    """
    vectors = vectors or {}
    unknown = next((name for name in vectors if name not in schema.names), None)
    if unknown is not None:
        known = ", ".join(schema.names)
        msg = f"'vectors' names the column {quote(unknown)}, and the rows have {known}"
        raise InvalidInputError(msg)
    return pa.schema([_from_spark_field(field, vectors.get(field.name)) for field in schema.fields])


def parse_vectors(text: str) -> dict[str, int]:
    """Read which columns are vectors: ``embedding:128, other:64``.

    Raises:
        InvalidInputError: it is something else.
    """
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, length = part.rpartition(":")
        if not name or not length.isdecimal() or int(length) < 1:
            msg = f"'vectors' is NAME:LENGTH, several with commas between, not {quote(text)}"
            raise InvalidInputError(msg)
        found[name.strip()] = int(length)
    return found


def _to_spark_field(field: pa.Field, path: str) -> spark.StructField:
    kind = to_spark_type(field.type, path)
    return spark.StructField(field.name, kind, field.nullable, _kept(field, kind))


def _kept(field: pa.Field, kind: spark.DataType) -> dict[str, str]:
    """Keep what the type alone does not tell."""
    if field.nullable and not field.metadata and canonical(kind, field.name) == field.type:
        return {}
    text = base64.b64encode(pa.schema([field]).serialize()).decode()
    return {ARROW_KEY: text}


def _to_spark_nested(kind: pa.DataType, path: str) -> spark.DataType:
    if kinds.is_struct(kind):
        return spark.StructType(
            [
                spark.StructField(one.name, to_spark_type(one.type, f"{path}.{one.name}"))
                for one in kind
            ]
        )
    if kinds.is_map(kind):
        key = to_spark_type(kind.key_type, f"{path}{{}}")
        return spark.MapType(key, to_spark_type(kind.item_type, f"{path}{{}}"))
    return spark.ArrayType(to_spark_type(kind.value_type, f"{path}[]"))


def _from_spark_field(field: spark.StructField, length: int | None) -> pa.Field:
    kind = canonical(field.dataType, field.name)
    if length is not None:
        return pa.field(field.name, _vector(kind, length, field.name))
    kept = _read_kept(field)
    if kept is not None:
        return kept.with_name(field.name).with_nullable(kept.nullable or field.nullable)
    return pa.field(field.name, kind)


def _vector(kind: pa.DataType, length: int, name: str) -> pa.DataType:
    if not kinds.is_list(kind) or not kinds.is_floating(kind.value_type):
        msg = f"column {quote(name)} cannot become vectors: it is {kind}, not lists of floats"
        raise InvalidInputError(msg)
    return pa.list_(pa.field("item", kind.value_type), length)


def _read_kept(field: spark.StructField) -> pa.Field | None:
    """Return the Arrow field that a column was, as far as it still is of that type."""
    text = field.metadata.get(ARROW_KEY)
    if not isinstance(text, str):
        return None
    try:
        kept: pa.Field = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))).field(0)
    except (ValueError, pa.ArrowException) as exc:
        msg = f"the metadata {quote(ARROW_KEY)} of column {quote(field.name)} cannot be read"
        raise TableSchemaValidationError(msg) from exc
    same = _without_nullability(to_spark_type(kept.type, field.name))
    return kept if same == _without_nullability(field.dataType) else None


def _without_nullability(kind: spark.DataType) -> spark.DataType:
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_without_nullability(kind.elementType))
    if isinstance(kind, spark.MapType):
        return spark.MapType(
            _without_nullability(kind.keyType), _without_nullability(kind.valueType)
        )
    if isinstance(kind, spark.StructType):
        return spark.StructType(
            [spark.StructField(one.name, _without_nullability(one.dataType)) for one in kind.fields]
        )
    return kind


def is_blob(kind: pa.DataType) -> bool:
    """Whether a column holds blobs, which are read and written as their content."""
    return getattr(kind, "extension_name", "") == "lance.blob.v2"
