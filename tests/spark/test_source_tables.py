"""Tables in and out of Spark, through the data source and its helpers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import mooring
from mooring.errors import (
    InvalidInputError,
    MooringError,
    TableAlreadyExistsError,
    TableColumnNotFoundError,
    TableNotFoundError,
    TableSchemaValidationError,
    TableVersionNotFoundError,
)
from mooring.spark import create_views, read_table, write_table
from tests.spark.test_source_types import every_type

# The fast suite has no time for more than a few tests that use Spark.
interop = pytest.mark.interop


@pytest.fixture
def lake(tmp_path):
    return mooring.connect(tmp_path / "lake")


@pytest.fixture
def numbers(lake):
    """A table of ten rows in two versions, of five fragments each."""
    table = lake.create_table("numbers", pa.table({"n": range(5), "word": list("abcde")}))
    table.insert(pa.table({"n": range(5, 10), "word": list("fghij")}))
    return table


def left(lake):
    """List what is on its way into tables."""
    found = [meta.path for meta in lake.backend.store.list_prefix("")]
    return [path for path in found if path.startswith("_mooring/") or "/_pending/" in path]


def sorted_numbers(frame):
    return sorted(row[0] for row in frame.select("n").collect())


def test_every_type_makes_the_round_trip(spark, lake):
    rows = every_type()
    lake.create_table("types", rows)
    frame = read_table(spark, lake, "types")
    made = write_table(frame, lake, "copy")
    assert (made.version, made.rows, made.is_new) == (1, 2, True)
    write_table(frame, lake, "types", mode="append")
    scans = [
        lake.table(name).to_lance().scanner(blob_handling="all_binary").to_table()
        for name in ("copy", "types")
    ]
    assert lake.table("copy").to_lance().schema == lake.table("types").to_lance().schema
    expected = [{**row, "blob": content} for row, content in zip(
        rows.drop_columns("blob").to_pylist(), [b"content", None], strict=True
    )]  # fmt: skip
    assert str(scans[0].select(list(expected[0])).to_pylist()) == str(expected)
    assert str(scans[1].select(list(expected[0])).to_pylist()) == str(expected * 2)
    assert left(lake) == []


@interop
def test_a_query_stays_at_the_version_that_was_there_when_it_was_planned(spark, lake, numbers):
    frame = read_table(spark, lake, "numbers")
    numbers.insert(pa.table({"n": [10], "word": ["k"]}))
    assert sorted_numbers(frame) == list(range(10))
    numbers.tags.create("first", version=1)
    assert sorted_numbers(read_table(spark, lake, "numbers", version=1)) == list(range(5))
    assert sorted_numbers(read_table(spark, lake, "numbers", tag="first")) == list(range(5))
    made_ms = numbers.handle.ledger.describe(2, None).at_ms
    assert sorted_numbers(read_table(spark, lake, "numbers", as_of=made_ms)) == list(range(10))


def test_one_frame_serves_several_scans_with_filters_of_their_own(spark, lake, numbers):
    """Spark keeps one plan for a frame: were filters pushed, each scan would see the last's."""
    frame = read_table(spark, lake, "numbers")
    low, high = frame.filter("n < 2"), frame.filter("n >= 8")
    assert sorted_numbers(low.union(high)) == [0, 1, 8, 9]
    assert (low.count(), frame.count(), high.count()) == (2, 10, 2)


@interop
def test_columns_filters_and_schemas_select_what_is_read(spark, lake, numbers):
    assert read_table(spark, lake, "numbers", columns="word").columns == ["word"]
    found = read_table(spark, lake, "numbers", filter="n > 7 AND word <> 'i'", columns=["word"])
    assert [row.word for row in found.collect()] == ["j"]
    reader = spark.read.format("mooring").option("catalog", lake.uri).schema("n int")
    assert sorted_numbers(reader.load("numbers")) == list(range(10))


@interop
def test_pushdown_reads_less_and_finds_the_same(spark, lake, numbers):
    frame = read_table(spark, lake, "numbers", pushdown=True, columns="n")
    assert sorted_numbers(frame.filter("n between 3 and 6 and n <> 4")) == [3, 5, 6]


def test_writes_append_and_overwrite_by_one_commit(spark, lake, numbers):
    more = spark.createDataFrame([("x", 10), ("y", 11)], "word string, n int").repartition(2)
    assert write_table(more, lake, "numbers", mode="append").version == 3
    assert numbers.count() == 12
    told = write_table(spark.range(3), lake, "numbers", mode="overwrite")
    assert (told.version, told.rows) == (4, 3)
    assert lake.table("numbers").to_arrow().column_names == ["id"]
    with pytest.raises(TableAlreadyExistsError):
        write_table(spark.range(3), lake, "numbers")
    assert not write_table(spark.range(3), lake, "numbers", mode="ignore").is_new
    assert lake.table("numbers").version == 4
    assert left(lake) == []


@interop
def test_a_named_write_counts_once(spark, lake):
    first = write_table(spark.range(3), lake, "t", mode="append", run="nightly")
    again = write_table(spark.range(3), lake, "t", mode="append", run="nightly")
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.version, again.rows) == (first.version, 3)
    options = {"catalog": lake.uri, "run": "nightly"}
    spark.range(3).write.format("mooring").options(**options).mode("append").save("t")
    assert lake.table("t").count() == 3


@interop
def test_a_write_that_fails_leaves_nothing(spark, lake, numbers):
    def fail(batches):
        for batch in batches:
            if 3 in batch.column(0).to_pylist():
                msg = "boo"
                raise ValueError(msg)
            yield batch

    rows = spark.range(0, 40, 1, 4).mapInArrow(fail, "n long")
    before = [meta.path for meta in lake.backend.store.list_prefix("")]
    for name in ("numbers", "new"):
        with pytest.raises(MooringError, match="boo"):
            write_table(rows, lake, name, mode="append")
    assert [meta.path for meta in lake.backend.store.list_prefix("")] == before
    assert lake.list_tables() == ["numbers"]


@interop
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(spark, lake):
    lake.create_table("v", pa.table({"v": pa.array([[1, 2]], pa.list_(pa.float32(), 2))}))
    with pytest.raises(TableSchemaValidationError, match="vectors of 2 numbers, and a row has 1"):
        write_table(spark.sql("select array(1.5D) as v"), lake, "v", mode="append")
    with pytest.raises(TableColumnNotFoundError, match="no column 'w': it has v"):
        write_table(spark.sql("select 1 as w"), lake, "v", mode="append")
    with pytest.raises(TableSchemaValidationError, match="and string does not fit"):
        write_table(spark.sql("select 'x' as v"), lake, "v", mode="append")
    write_table(spark.sql("select array(1.5D, 2D) as v"), lake, "new", vectors="v:2")
    assert lake.table("new").to_arrow().schema.field("v").type == pa.list_(pa.float64(), 2)
    assert lake.table("v").count() == 1
    assert left(lake) == []


@interop
def test_what_is_wrong_is_told_through_spark(spark, lake, numbers):
    reader = spark.read.format("mooring").option("catalog", lake.uri)
    with pytest.raises(AnalysisException, match="TableNotFoundError: there is no table 'nope'"):
        reader.load("nope")
    with pytest.raises(AnalysisException, match="'colums' is no option of 'mooring'"):
        reader.option("colums", "n").load("numbers")
    with pytest.raises(TableNotFoundError, match="no table 'nope'"):
        read_table(spark, lake, "nope")
    with pytest.raises(TableVersionNotFoundError, match="has no version 9"):
        read_table(spark, lake, "numbers", version=9)
    with pytest.raises(TableVersionNotFoundError, match="no version from 2001-01-01 or before"):
        read_table(spark, lake, "numbers", as_of="2001-01-01")
    with pytest.raises(TableColumnNotFoundError, match="no column 'x': it has n, word"):
        read_table(spark, lake, "numbers", columns="n, x")
    with pytest.raises(TableColumnNotFoundError, match="the filter 'x = 1' cannot be used"):
        read_table(spark, lake, "numbers", filter="x = 1")
    with pytest.raises(InvalidInputError, match="option 'tag' is for reading"):
        write_table(spark.range(1), lake, "t", tag="x")
    with pytest.raises(InvalidInputError, match="the mode is one of"):
        write_table(spark.range(1), lake, "t", mode="upsert")


@interop
def test_views_give_sql_the_tables_of_a_namespace(spark, lake, numbers):
    lake.create_namespace("sales")
    lake.create_table("sales$odd name", pa.table({"k": [1, 2], "w": ["a", "j"]}))
    lake.declare_table("sales$later")
    assert create_views(spark, lake) == ["numbers"]
    assert create_views(spark, lake, "sales") == ["odd name"]
    found = spark.sql("select n from numbers join `odd name` on word = w where n > 1")
    assert sorted_numbers(found) == [9]
