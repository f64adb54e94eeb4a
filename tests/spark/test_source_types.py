"""Arrow types as Spark sees them, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field
from pyspark.sql import types as spark

from mooring.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedError,
)
from mooring.spark.conversion import Conversion, check_fits, check_table_takes
from mooring.spark.types import ARROW_KEY, canonical, from_spark, parse_vectors, to_spark

VECTOR = pa.list_(pa.float32(), 2)
# A column of each type, with a value and without.
EVERY = {
    "null": pa.nulls(2),
    "bool": pa.array([True, None]),
    "int8": pa.array([-1, None], pa.int8()),
    "int64": pa.array([-(2**63), None]),
    "uint8": pa.array([255, None], pa.uint8()),
    "uint16": pa.array([65535, None], pa.uint16()),
    "uint32": pa.array([2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float16": pa.array([1.5, None], pa.float16()),
    "float32": pa.array([1.5, None], pa.float32()),
    "float64": pa.array([0.1, None]),
    "string": pa.array(["it's é", None]),
    "large_string": pa.array(["x", None], pa.large_string()),
    "binary": pa.array([b"\x00\xff", None]),
    "large_binary": pa.array([b"", None], pa.large_binary()),
    "fixed_binary": pa.array([b"ab", None], pa.binary(2)),
    "date": pa.array([date(2026, 2, 28), None]),
    "date64": pa.array([date(2026, 2, 28), None], pa.date64()),
    "zoned": pa.array([datetime(2026, 3, 29, 1, 30, tzinfo=UTC), None], pa.timestamp("us", "CET")),
    "zoned_ms": pa.array([1, None], pa.timestamp("ms", "UTC")),
    "plain_time": pa.array([datetime(2026, 3, 29, 2, 30), None], pa.timestamp("us")),  # noqa: DTZ001
    "nanoseconds": pa.array([1000, None], pa.timestamp("ns")),
    "time32": pa.array([1, None], pa.time32("ms")),
    "time64": pa.array([1, None], pa.time64("ns")),
    "duration": pa.array([1, None], pa.duration("s")),
    "decimal": pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
    "decimal256": pa.array([Decimal("-1.50"), None], pa.decimal256(38, 2)),
    "vector": pa.array([[1, 2], None], VECTOR),
    "half_vector": pa.array([[1, 2], None], pa.list_(pa.float16(), 2)),
    "list": pa.array([["a", None], None]),
    "large_list": pa.array([[1], None], pa.large_list(pa.int64())),
    "struct": pa.array([{"x": 1, "v": [1, 2]}, None], pa.struct({"x": pa.uint8(), "v": VECTOR})),
    "structs": pa.array([[{"x": 1}], None], pa.list_(pa.struct({"x": pa.int32()}))),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "words": pa.array(["a", None]).dictionary_encode(),
    "json": pa.array(['{"a":1}', None], pa.json_()),
    "uuid": pa.array([b"0123456789abcdef", None], pa.uuid()),
}


def every_type() -> pa.Table:
    table = pa.table(EVERY)
    table = table.append_column(blob_field("blob"), blob_array([b"content", None]))
    return table.append_column(
        pa.field("kept", pa.int32(), nullable=False), pa.array([1, 2], "int32")
    )


def as_spark_sends(table: pa.Table) -> pa.RecordBatch:
    """Return rows in the types in which they come back from Spark."""
    schema = to_spark(table.schema)
    wanted = pa.schema([(field.name, canonical(field.dataType, "")) for field in schema])
    read = {
        field.name: pa.array([b"content", None], pa.large_binary())
        if field.name == "blob"
        else table[field.name].combine_chunks()
        for field in table.schema
    }
    batch = pa.record_batch(read)
    return Conversion(batch.schema, wanted, "t", is_exact=True)(batch)


def test_every_type_comes_back_from_spark():
    table = every_type()
    schema = spark.StructType.fromJson(to_spark(table.schema).jsonValue())
    assert from_spark(schema) == table.schema
    sent = as_spark_sends(table)
    back = Conversion(sent.schema, from_spark(schema), "t")(sent)
    assert back.schema == table.schema
    assert str(back.to_pylist()) == str(table.to_pylist())


def test_the_types_that_spark_sees():
    seen = dict(field.simpleString().split(":", 1) for field in to_spark(every_type().schema))
    assert seen["uint64"] == "decimal(20,0)"
    assert seen["float16"] == "float"
    assert seen["zoned"] == "timestamp"
    assert seen["plain_time"] == "timestamp_ntz"
    assert seen["vector"] == "array<float>"
    assert seen["words"] == "string"
    assert seen["blob"] == "binary"
    assert seen["struct"] == "struct<x:smallint,v:array<float>>"


def test_only_what_the_type_does_not_tell_is_kept_in_metadata():
    kept = {field.name for field in to_spark(every_type().schema) if ARROW_KEY in field.metadata}
    assert {"vector", "uint8", "words", "blob", "zoned_ms", "kept"} <= kept
    assert not {"bool", "int64", "string", "plain_time", "list", "structs", "map"} & kept


def test_a_column_that_was_changed_is_of_the_type_that_it_has_now():
    was = to_spark(pa.schema([("v", VECTOR)]))["v"].metadata
    changed = spark.StructType([spark.StructField("v", spark.StringType(), True, was)])
    assert from_spark(changed) == pa.schema([("v", pa.string())])


def test_a_new_table_demands_values_only_where_one_that_was_read_does():
    demanded = pa.schema([pa.field("k", pa.int32(), nullable=False)])
    assert from_spark(to_spark(demanded)) == demanded
    was = to_spark(demanded)["k"].metadata
    may_lack = spark.StructType([spark.StructField("k", spark.IntegerType(), True, was)])
    assert from_spark(may_lack) == pa.schema([("k", pa.int32())])
    always = spark.StructType([spark.StructField("k", spark.IntegerType(), False)])
    assert from_spark(always) == pa.schema([("k", pa.int32())])


def test_vectors_are_made_of_plain_lists():
    schema = spark.StructType().add("id", "integer").add("v", spark.ArrayType(spark.FloatType()))
    assert from_spark(schema, parse_vectors(" v:3 ,")) == pa.schema(
        [("id", pa.int32()), ("v", pa.list_(pa.float32(), 3))]
    )
    for text in ("v", "v:0", "v:x", ":3"):
        with pytest.raises(InvalidInputError, match="NAME:LENGTH"):
            parse_vectors(text)
    with pytest.raises(InvalidInputError, match="names the column 'w'"):
        from_spark(schema, {"w": 3})
    with pytest.raises(InvalidInputError, match="not lists of floats"):
        from_spark(schema, {"id": 3})


def test_what_spark_or_lance_cannot_hold_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"column 's\.d', which is decimal256\(50, 2\)"):
        to_spark(pa.schema([("s", pa.struct([("d", pa.decimal256(50, 2))]))]))
    with pytest.raises(UnsupportedError, match="'v' is variant"):
        from_spark(spark.StructType().add("v", spark.VariantType()))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (pa.schema([("n", pa.int64()), ("zz", pa.int64())]), "no column 'zz': it has n, s, v, k"),
        (
            pa.schema([("n", pa.string()), ("k", pa.int32())]),
            "column 'n' of t is int64, and string",
        ),
        (pa.schema([("n", pa.int64())]), "'k' of t must not be null, and the rows lack it"),
        (pa.schema([("s", pa.struct([("y", pa.int8())])), ("k", pa.int32())]), r"column 's\.y'"),
        (pa.schema([("v", pa.list_(pa.string())), ("k", pa.int32())]), r"'v\[\]' of t is float"),
        (pa.schema([("v", pa.float32()), ("k", pa.int32())]), "'v' of t is fixed_size_list"),
    ],
)
def test_rows_that_a_table_cannot_take_are_refused_by_their_schema(rows, why):
    table = pa.schema(
        [
            pa.field("n", pa.int64()),
            pa.field("s", pa.struct([("x", pa.int8())])),
            pa.field("v", VECTOR),
            pa.field("k", pa.int32(), nullable=False),
        ]
    )
    with pytest.raises((TableColumnNotFoundError, TableSchemaValidationError), match=why):
        check_table_takes(rows, table, "t")


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        (pa.array([[1.0]]), pa.field("c", VECTOR), "vectors of 2 numbers, and a row has 1"),
        (pa.array([300]), pa.field("c", pa.uint8()), "a value does not fit"),
        (pa.array([1.5]), pa.field("c", pa.int64()), "a value does not fit"),
        (pa.array([None, 1]), pa.field("c", pa.int64(), nullable=False), "must not be null"),
    ],
)
def test_values_that_do_not_fit_are_refused(given, field, why):
    batch = pa.record_batch({"c": given})
    with pytest.raises(TableSchemaValidationError, match=why):
        Conversion(batch.schema, pa.schema([field]), "table 't'")(batch)


def test_columns_go_by_name_and_missing_ones_are_null():
    batch = pa.record_batch({"b": [1], "a": ["x"]})
    wanted = pa.schema([("a", pa.string()), ("blob", blob_field("b").type), ("b", pa.int8())])
    found = Conversion(batch.schema, wanted, "t")(batch)
    assert found.schema == wanted
    assert found.to_pylist() == [{"a": "x", "blob": None, "b": 1}]


def test_spark_gets_what_it_can_read_without_a_copy():
    batch = pa.record_batch({"s": pa.array(["x"], pa.large_string()), "n": pa.array([1])})
    wanted = pa.schema([("s", pa.string()), ("n", pa.int64())])
    assert Conversion(batch.schema, wanted, "t", is_exact=False)(batch) is batch


def test_times_with_a_zone_are_no_times_without_one():
    with pytest.raises(TableSchemaValidationError):
        check_fits(pa.timestamp("us"), pa.timestamp("us", "UTC"), "c", "t")
