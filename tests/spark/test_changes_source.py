"""Change tables as data frames: merged rows, and the changes themselves."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from msgspec.structs import replace
from pyspark.sql.datasource import EqualTo, GreaterThan, In, Not, StringStartsWith
from pyspark.sql.types import StringType, StructField, StructType

import mooring
from mooring.changes import create_change_table
from mooring.changes.objects import require_objects
from mooring.changes.replacement import truncate
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    TransactionNotFoundError,
)
from mooring.spark import create_views, read_changes, read_table
from mooring.spark.changes_reader import MergedReader, PushingMergedReader, merged_schema
from mooring.spark.changes_table import fix_table
from mooring.spark.options import SourceOptions, options_of
from mooring.spark.source import MooringDataSource
from tests.spark.changes_tables import (
    key,
    make_orders,
    order,
    read,
    reader_of,
    rows_of,
    source_of,
)
from tests.spark.test_source_filters import TEXT, every_row, filters, holds

WIDE = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2)), ("u", pa.uint8())])


@pytest.fixture
def catalog(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'store'}")
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def orders(catalog):
    """A table of four positions: rows, a partial change, a deletion, a row more."""
    table = make_orders(catalog)
    table.upsert([order(1, 1, 10, "a"), order(1, None, 20, "b"), order(2, 3, 30, "c")])
    table.upsert(pa.Table.from_pylist([{**key(1, 1), "v": 11}]))
    table.delete([key(2, 3)])
    table.append([order(3, 4, 40, "d")])
    return table


def values(rows) -> list[object]:
    return sorted(row["v"] for row in rows)


def test_rows_are_merged_at_the_newest_position(orders):
    assert sorted(read(orders), key=lambda row: row["v"]) == [
        order(1, 1, 11, "a"),
        order(1, None, 20, "b"),
        order(3, 4, 40, "d"),
    ]


def test_a_query_may_go_back_to_a_position_a_transaction_or_a_time(orders):
    assert values(read(orders, position=0)) == []
    assert values(read(orders, position=1)) == [10, 20, 30]
    landed = orders.upsert([order(1, 1, 12, "z")])
    orders.upsert([order(1, 1, 13, "z")])
    assert values(read(orders, txn=landed.txn_id)) == [12, 20, 40]
    logs = orders.at().partitions.values()
    newest_ms = max(delta.at_ms for log in logs for delta in log.deltas)
    assert values(read(orders, as_of=newest_ms + 60_000)) == [13, 20, 40]
    later = dt.datetime.fromtimestamp(newest_ms / 1000 + 60, dt.UTC).isoformat()
    assert values(read(orders, as_of=later)) == [13, 20, 40]


def test_a_query_stays_at_the_position_and_the_columns_that_its_schema_had(orders):
    source = source_of(orders)
    schema = source.schema()
    orders.upsert([order(1, 1, 99, "new")])
    orders.rename_column("word", "text")
    rows = rows_of(source.reader(schema))
    assert values(rows) == [11, 20, 40]
    assert set(rows[0]) == {"day", "id", "v", "word"}
    assert {row["text"] for row in read(orders)} == {"new", "b", "d"}


def test_columns_are_chosen_by_an_option_or_by_the_schema(orders):
    assert read(orders, columns="v, id", position=1, filter="id = 3") == [{"v": 30, "id": 3}]
    given = StructType([source_of(orders).schema()["v"]])
    assert {tuple(row) for row in rows_of(source_of(orders).reader(given))} == {("v",)}
    with pytest.raises(TableSchemaValidationError, match="'v' of change table"):
        source_of(orders).reader(StructType([StructField("v", StringType())]))


def test_what_cannot_match_a_filter_gets_no_task(orders):
    assert len(reader_of(source_of(orders, tasks=50)).partitions()) == 4
    march = reader_of(source_of(orders, tasks=50, filter="day >= '2013-03-01'"))
    assert len(march.partitions()) == 1
    assert values(rows_of(march)) == [40]
    assert reader_of(source_of(orders, filter="id > 1000")).partitions() == []
    assert values(read(orders, filter="v IN (11, 20) AND word = 'a'")) == [11]


def test_filters_of_spark_are_pushed_where_somebody_asks(orders):
    source = source_of(orders, pushdown=True, tasks=50, filter="v > 0")
    day = EqualTo(("day",), dt.date(2013, 1, 1))
    reader = reader_of(source, [day, In(("v",), (11, 20, 40)), StringStartsWith(("word",), "a")])
    assert len(reader.partitions()) == 2
    # What cannot be evaluated here is left to Spark.
    assert values(rows_of(reader)) == [11, 20]
    nothing = reader_of(source_of(orders, pushdown=True), [GreaterThan(("v",), 1000)])
    assert nothing.partitions() == []
    assert "pushFilters" not in vars(MergedReader)


@pytest.fixture(scope="module")
def tricky(tmp_path_factory):
    """A table of tricky values, in files of one row each."""
    catalog = mooring.connect(f"metastore+{tmp_path_factory.mktemp('pushed') / 'store'}")
    catalog.create_namespace("ns")
    rows = every_row()
    table = create_change_table(catalog, "ns$t", rows.schema, keys=["at"], buckets=2)
    for number in range(rows.num_rows):
        table.upsert(rows.slice(number, 1))
    return table


@settings(max_examples=100, deadline=None)
@given(wanted=filters())
def test_no_row_is_lost_to_what_spark_pushes(tricky, wanted):
    inner = wanted.child if isinstance(wanted, Not) else wanted
    assume(not isinstance(inner, TEXT) or inner.attribute != ("n",))  # a number is no text
    expected = {row["at"] for row in every_row().to_pylist() if holds(wanted, row) is True}
    reader = PushingMergedReader(*_asked(tricky, columns="at"))
    list(reader.pushFilters([wanted]))
    assert expected <= {row["at"] for row in rows_of(reader)}


def _asked(table, **options):
    parsed = SourceOptions.parse(options_of(table.catalog, table.id, options))
    fixed = fix_table(table, parsed)
    return fixed, parsed, merged_schema(fixed, parsed)


def test_tasks_share_the_buckets(orders):
    assert len(reader_of(source_of(orders, tasks=2)).partitions()) == 2
    rows = read(orders, tasks=2)
    assert values(rows) == [11, 20, 40]


def test_types_are_those_of_spark(catalog):
    table = create_change_table(catalog, "shop$wide", WIDE, keys=["id"])
    table.upsert([{"id": 1, "v": [1.0, 2.0], "u": 200}])
    assert source_of(table).schema().simpleString() == "struct<id:bigint,v:array<float>,u:smallint>"
    assert read(table) == [{"id": 1, "v": [1.0, 2.0], "u": 200}]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"version": 1}, InvalidInputError, "'version' is for Lance tables"),
        ({"position": 9}, InvalidInputError, "has no position 9: the newest is 4"),
        ({"position": "x"}, InvalidInputError, "'position' is a number, not 'x'"),
        ({"position": 1, "txn": "y"}, InvalidInputError, "name one"),
        ({"txn": "y"}, TransactionNotFoundError, "y"),
        ({"columns": "v,nope"}, TableColumnNotFoundError, "has no column 'nope': it has day, id"),
        ({"filter": "nope = 1"}, InvalidInputError, "there is no column 'nope'"),
        ({"changes": "true", "position": 1}, InvalidInputError, "'position' names one state"),
        ({"changes": "true", "filter": "v = 1"}, InvalidInputError, "filter the data frame"),
        ({"changes": "true", "fromPosition": 6}, InvalidInputError, "from 1 to 5, not 6"),
    ],
)
def test_options_that_make_no_sense_are_refused(orders, options, error, told):
    with pytest.raises(error, match=told):
        source_of(orders, **options).schema()


@pytest.mark.parametrize("options", [{}, {"changes": True}])
def test_a_table_that_was_made_anew_is_not_read_for_the_old_one(catalog, orders, options):
    reader = reader_of(source_of(orders, **options))
    name, definition = str(orders.id), orders.definition
    catalog.drop_table(name)
    anew = create_change_table(catalog, name, definition.schema, keys=definition.keys)
    while anew.position < 9:
        anew.upsert([dict.fromkeys(definition.keys, 1)])
    with pytest.raises(InvalidTableStateError, match="was made anew since"):
        reader.partitions()


def test_a_lance_table_is_read_as_before_and_knows_no_positions(catalog):
    catalog.create_table("shop$lance", pa.table({"n": [1, 2]}))
    options = {"catalog": catalog.uri, "table": "shop$lance"}
    assert rows_of(reader_of(MooringDataSource(options))) == [{"n": 1}, {"n": 2}]
    with pytest.raises(InvalidInputError, match="'position' is for change tables, and 'shop\\$lan"):
        MooringDataSource({**options, "position": "1"}).schema()


# -- the changes themselves ----------------------------------------------------------------------


def changed(rows) -> list[tuple[object, ...]]:
    return [(row["_change_position"], row["_change_type"], row["id"], row["v"]) for row in rows]


def test_changes_come_as_they_were_made(orders):
    found = changed(read(orders, changes=True, fromPosition=2))
    assert found == [(2, "upsert", 1, 11), (3, "delete", 3, None), (4, "append", 4, 40)]
    rows = read(orders, changes=True, fromPosition=2, toPosition=2)
    # What the change does not bring is null, though the table has it.
    assert rows == [{**order(1, 1, 11), "_change_type": "upsert", "_change_position": 2}]
    assert len(read(orders, changes=True, toPosition=1)) == 3
    assert read(orders, changes=True, fromPosition=5) == []
    named = read(orders, changes=True, fromPosition=4, columns="_change_type,id")
    assert named == [{"_change_type": "append", "id": 4, "_change_position": 4}]


def test_rows_that_were_appended_before_a_column_came_have_its_default(orders):
    orders.add_columns([pa.field("n", pa.int32())], {"n": 7})
    rows = read(orders, changes=True)
    assert {(row["_change_type"], row["n"]) for row in rows} == {
        ("upsert", None),
        ("delete", None),
        ("append", 7),
    }


def test_a_replacement_is_no_change_of_rows(orders):
    truncate(orders)
    orders.upsert([order(5, 5, 50)])
    with pytest.raises(InvalidTableStateError, match="replaced at position 5"):
        read(orders, changes=True, fromPosition=4)
    assert changed(read(orders, changes=True, fromPosition=6)) == [(6, "upsert", 5, 50)]
    skipped = read(orders, changes=True, fromPosition=4, skipReplacements=True)
    assert changed(skipped) == [(4, "append", 4, 40), (6, "upsert", 5, 50)]


def test_changes_that_are_tidied_away_are_told(orders):
    def move_horizon(txn):
        locator = require_objects(txn, orders.id).bases
        txn.update(locator, replace(txn.get(locator).value, watermark=2))

    orders.catalog.metastore.run(move_horizon)
    with pytest.raises(
        InvalidInputError, match="before position 3 are tidied away: read the table"
    ):
        read(orders, changes=True)
    with pytest.raises(InvalidInputError, match="position 1 any more"):
        read(orders, position=1)
    assert len(read(orders, changes=True, fromPosition=3)) == 2


# -- in Spark ------------------------------------------------------------------------------------


def test_a_session_reads_merged_rows_and_changes(spark, orders):
    frame = read_table(spark, orders.catalog, "shop$orders")
    orders.upsert([order(1, 1, 99, "later")])
    assert sorted(row["v"] for row in frame.collect()) == [11, 20, 40]
    joined = read_changes(spark, orders.catalog, "shop$orders", first=2).where("id < 4")
    assert [tuple(row) for row in joined.select("_change_type", "v").collect()] == [
        ("upsert", 11),
        ("delete", None),
        ("upsert", 99),
    ]


@pytest.mark.interop
@pytest.mark.peer("pyspark", they="read", on="change tables")
def test_sql_and_pushed_filters_find_what_python_finds(spark, orders):
    assert create_views(spark, orders.catalog, "shop") == ["orders"]
    assert spark.sql("select sum(v) from orders").first()[0] == 71
    pushed = read_table(spark, orders.catalog, "shop$orders", pushdown=True)
    found = pushed.where("day = date'2013-01-01' and v >= 11 and id is null")
    assert [row["word"] for row in found.collect()] == ["b"]
    told = "change table 'shop$orders' has no position 9"
    with pytest.raises(InvalidInputError, match=told.replace("$", "\\$")):
        read_table(spark, orders.catalog, "shop$orders", position=9)
