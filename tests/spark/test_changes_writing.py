"""Data frames as changes of tables: by Spark's own writer, and several tables at once."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table
from mooring.errors import (
    ConflictError,
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
)
from mooring.metastore.transaction import Transaction
from mooring.spark import read_table, write_changes, write_table
from mooring.spark.conversion import Conversion
from mooring.spark.options import options_of
from mooring.spark.source import MooringDataSource
from mooring.spark.types import to_spark
from tests.spark.changes_tables import (
    SCHEMA,
    data_files,
    key,
    make_orders,
    named_files,
    order,
    source_of,
)

interop = pytest.mark.interop
COLUMNS = "day date, id long, v long, word string"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Nobody is left to wait for: tasks are functions here."""
    monkeypatch.setattr("mooring.spark.changes_rows._STRAGGLERS_S", 0.01)


@pytest.fixture
def catalog(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'store'}")
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def orders(catalog):
    return make_orders(catalog)


@pytest.fixture
def log(catalog):
    return create_change_table(catalog, "shop$log", pa.schema([("n", pa.int64())]))


class Write:
    """A write in the steps in which Spark does it."""

    def __init__(self, table, schema=SCHEMA, *, overwrite=False, **options) -> None:
        self._schema = schema
        writer = source_of(table, **options).writer(to_spark(schema), overwrite=overwrite)
        self._writer = pickle.dumps(writer)
        self.messages = []

    @property
    def writer(self):
        return pickle.loads(self._writer)  # noqa: S301  # our own

    def task(self, *rows, counts=True):
        """Write rows; of a try that does not count the driver never hears."""
        batch = pa.RecordBatch.from_pylist(list(rows), self._schema)
        message = pickle.loads(pickle.dumps(self.writer.write(iter([batch]))))  # noqa: S301
        if counts:
            self.messages.append(message)
        return self

    def commit(self):
        self.writer.commit(self.messages)

    def abort(self):
        self.writer.abort(self.messages)


def values(table) -> list[object]:
    return sorted(table.to_arrow()["v"].to_pylist())


def test_tasks_write_and_one_commit_makes_it_visible(orders):
    write = Write(orders, change="upsert").task(order(1, 1, 10), order(2, 2, 20))
    write.task(order(1, 3, 30)).task()
    assert orders.position == 0
    write.commit()
    assert values(orders) == [10, 20, 30]
    Write(orders, pa.schema([SCHEMA.field("day"), SCHEMA.field("id")]), change="delete").task(
        key(2, 2)
    ).commit()
    partial = Write(orders, SCHEMA.remove(2), change="upsert")
    partial.task({**key(1, 1), "word": "w"}).commit()
    assert orders.position == 3
    assert order(1, 1, 10, "w") in orders.to_arrow().to_pylist()
    assert values(orders) == [10, 30]


def test_a_try_that_does_not_count_adds_nothing(orders):
    write = Write(orders, change="append").task(order(1, 1, 10), counts=False)
    write.task(order(1, 1, 10)).commit()
    assert values(orders) == [10]
    # A vacuum finds what the other try left.
    assert len(data_files(orders.catalog)) == 2
    orders.catalog.metastore.vacuum(older_than_ms=-60_000)
    assert data_files(orders.catalog) == named_files(orders)
    assert values(orders) == [10]


def test_a_write_that_is_given_up_leaves_nothing(orders):
    write = Write(orders, change="append").task(order(1, 1, 10)).task(order(1, 2), counts=False)
    write.abort()
    assert data_files(orders.catalog) == set()
    # Should its commit come late, it is refused.
    with pytest.raises(mooring.errors.ConcurrentModificationError):
        write.commit()
    assert orders.position == 0


def test_giving_up_what_was_committed_takes_nothing_away(orders):
    write = Write(orders, change="append").task(order(1, 1, 10))
    write.commit()
    write.abort()
    assert values(orders) == [10]
    again = Write(orders, overwrite=True).task(order(1, 1, 11))
    again.commit()
    again.abort()
    assert values(orders) == [11]


def test_a_task_that_fails_leaves_nothing_of_its_own(orders):
    write = Write(orders, change="upsert").task(order(1, 1, 10))
    before = data_files(orders.catalog)
    with pytest.raises(ConflictError, match="id=2"):
        write.task(order(1, 2, 1), order(1, 2, 2))
    with pytest.raises(InvalidInputError, match="have no key"):
        write.task({"day": None, "id": None, "v": 1, "word": None})
    assert data_files(orders.catalog) == before


def test_a_key_in_two_tasks_is_refused_unless_an_order_tells(catalog, orders):
    write = Write(orders, change="upsert").task(order(1, 1, 10)).task(order(1, 1, 11))
    with pytest.raises(ConflictError, match="several rows for change table 'shop\\$orders'"):
        write.commit()
    assert data_files(catalog) == set()
    ordered = make_orders(catalog, "shop$ordered", order="v")
    Write(ordered, change="upsert").task(order(1, 1, 12)).task(order(1, 1, 11)).commit()
    assert values(ordered) == [12]
    # The order has to be there to tell.
    blind = Write(ordered, SCHEMA.remove(2), change="upsert")
    blind.task({**key(1, 1), "word": "a"}).task({**key(1, 1), "word": "b"})
    with pytest.raises(ConflictError):
        blind.commit()
    # Rows that replace all others are not merged: each key comes once.
    twice = Write(ordered, overwrite=True).task(order(1, 1, 12)).task(order(1, 1, 11))
    with pytest.raises(ConflictError):
        twice.commit()
    assert values(ordered) == [12]


def test_a_run_that_is_repeated_changes_nothing(orders):
    for _ in range(2):
        Write(orders, change="append", run="monday").task(order(1, 1, 10)).commit()
    assert values(orders) == [10]
    assert orders.position == 1
    assert data_files(orders.catalog) == named_files(orders)


def test_overwriting_replaces_the_rows_and_keeps_what_was(orders):
    Write(orders, change="upsert").task(order(1, 1, 10), order(2, 2, 20)).commit()
    Write(orders, overwrite=True).task(order(1, 1, 11)).task(order(3, 3, 33)).commit()
    assert values(orders) == [11, 33]
    assert sorted(orders.to_arrow(position=1)["v"].to_pylist()) == [10, 20]
    Write(orders, overwrite=True).commit()
    assert values(orders) == []


def begin(table, fields, **how):
    schema = pa.schema(fields)
    return lambda: source_of(table, **how).writer(to_spark(schema), overwrite=False)


def test_rows_that_cannot_fit_are_refused_before_a_task_runs(catalog, orders, log):
    every = list(SCHEMA)
    cases = [
        (begin(orders, every), InvalidInputError, "merge keys \\(day, id\\): say what the rows do"),
        (begin(orders, every, change="merge"), InvalidInputError, "a table, not 'merge'"),
        (begin(orders, every, change="upsert", columns="v"), InvalidInputError, "for reading"),
        (begin(orders, every[1:], change="upsert"), InvalidInputError, "lack 'day'"),
        (begin(log, [("n", pa.int64())], change="delete"), InvalidInputError, "no merge keys"),
        (begin(log, [("x", pa.int64())]), TableSchemaValidationError, "has no column 'x'"),
        (begin(log, [("n", pa.string())]), TableSchemaValidationError, "string does not fit"),
        (begin(log, [("n", pa.int64())], vectors="n:2"), InvalidInputError, "for Lance tables"),
    ]
    for call, error, told in cases:
        with pytest.raises(error, match=told):
            call()
    options = options_of(catalog, "shop$none", {"change": "upsert"})
    with pytest.raises(TableNotFoundError, match="no change table 'shop\\$none'"):
        MooringDataSource(options).writer(to_spark(SCHEMA), overwrite=False)
    with pytest.raises(InvalidInputError, match="'change' is for the mode 'append'"):
        source_of(orders, change="upsert").writer(to_spark(SCHEMA), overwrite=True)
    begin(log, [("n", pa.int32())])().commit([])
    assert (orders.position, log.position) == (0, 0)


# -- in Spark ------------------------------------------------------------------------------------


def frame_of(spark, *rows):
    return spark.createDataFrame([tuple(row.values()) for row in rows], COLUMNS)


def test_several_tables_change_in_one_transaction(spark, catalog, orders, log):
    rows = frame_of(spark, *(order(1 + n % 3, n, 10 * n) for n in range(8))).repartition(2)
    landed = write_changes(
        catalog,
        [
            (rows, "shop$orders", "upsert"),
            (rows.where("id < 2").select("day", "id"), "shop$orders", "delete"),
            (rows.selectExpr("id as n"), "shop$log", "append"),
        ],
        run="first",
        message="two tables",
    )
    assert [(one.position, one.rows, one.is_new) for one in landed] == [
        (1, 8, True),
        (2, 2, True),
        (1, 8, True),
    ]
    assert len({one.txn_id for one in landed}) == 1
    assert values(orders) == [10 * n for n in range(2, 8)]
    assert sorted(log.to_arrow()["n"].to_pylist()) == list(range(8))
    again = write_changes(catalog, [(rows, "shop$orders", "append")], run="first")
    assert [(one.position, one.is_new) for one in again] == [(2, False)]
    assert (orders.position, log.position) == (2, 1)
    assert data_files(catalog) == named_files(orders, log)


@interop
def test_a_change_is_visible_in_all_tables_or_in_none(spark, catalog, orders, log, monkeypatch):
    rows = frame_of(spark, order(1, 1, 10), order(1, 2, 20)).repartition(2)
    changes = [(rows, "shop$orders", "upsert"), (rows.selectExpr("id as n"), "shop$log", "append")]
    put = Transaction.commit

    def fail(txn):
        raise mooring.errors.ServiceUnavailableError("no store")

    monkeypatch.setattr(Transaction, "commit", fail)
    with pytest.raises(mooring.errors.ServiceUnavailableError):
        write_changes(catalog, changes)
    monkeypatch.setattr(Transaction, "commit", put)
    doubled = (rows.union(rows).selectExpr("id", "day").repartition(3), orders.id, "delete")
    with pytest.raises(ConflictError):
        write_changes(catalog, [changes[1], doubled])
    late = rows.selectExpr("case when id = 2 then raise_error('no') else id end as n")
    with pytest.raises(mooring.errors.MooringError, match="no"):
        write_changes(catalog, [changes[0], (late, "shop$log", "add")])
    assert (orders.position, log.position, data_files(catalog)) == (0, 0, set())
    write_changes(catalog, changes)
    assert (orders.position, log.position) == (1, 1)


@interop
def test_a_data_frame_writes_itself(spark, catalog, orders):
    options = options_of(catalog, "shop$orders")
    rows = frame_of(spark, order(1, 1, 10), order(2, 2, 20), order(3, 3, 30)).repartition(2)
    to = rows.write.format("mooring").options(**options)
    to.mode("append").option("change", "upsert").save()
    assert values(orders) == [10, 20, 30]
    rows.where("id > 1").write.format("mooring").options(**options).mode("overwrite").save()
    assert values(orders) == [20, 30]
    told = write_table(rows, catalog, "shop$orders", mode="append", change="upsert", run="again")
    assert (told.version, told.rows, told.is_new) == (3, 3, True)
    told = write_table(rows, catalog, "shop$orders", mode="append", change="upsert", run="again")
    assert (told.version, told.is_new) == (3, False)
    assert write_table(rows, catalog, "shop$orders", mode="ignore").is_new is False
    with pytest.raises(TableAlreadyExistsError, match="use the mode 'append'"):
        write_table(rows, catalog, "shop$orders")
    assert values(orders) == [10, 20, 30]
    assert data_files(catalog) == named_files(orders)
    with pytest.raises(Exception, match="say what the rows do with the option 'change'"):
        rows.write.format("mooring").options(**options).mode("append").save()


@interop
def test_every_type_makes_the_round_trip(spark, catalog):
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "small": pa.array([255, None], pa.uint8()),
            "at": pa.array([1, None], pa.timestamp("ms", "UTC")),
            "plain": pa.array([1, None], pa.timestamp("us")),
            "price": pa.array([None, 3], pa.decimal128(9, 2)),
            "raw": pa.array([b"x", None], pa.large_binary()),
            "tags": pa.array([["a", None], None], pa.list_(pa.string())),
            "deep": pa.array([{"n": 1}, None], pa.struct([("n", pa.int32())])),
            "time": pa.array([5, None], pa.time64("us")),
        }
    )
    table = create_change_table(catalog, "shop$types", rows.schema, keys=["id"])
    copy = create_change_table(catalog, "shop$copy", rows.schema, keys=["id"])
    table.upsert(rows)
    write_changes(catalog, [(read_table(spark, catalog, "shop$types"), "shop$copy", "upsert")])
    assert copy.to_arrow().sort_by("id") == table.to_arrow().sort_by("id") == rows.sort_by("id")


def test_vectors_that_are_all_missing_come_without_a_buffer():
    """As Spark sends them, which Arrow's own cast does not survive."""
    kind = pa.list_(pa.field("item", pa.float32()))
    none = pa.Array.from_buffers(pa.float32(), 0, [None, None])
    buffers = [pa.py_buffer(b"\0"), pa.py_buffer(bytes(8))]
    column = pa.Array.from_buffers(kind, 1, buffers, null_count=1, children=[none])
    batch = pa.RecordBatch.from_arrays([column], names=["v"])
    wanted = pa.schema([("v", pa.list_(pa.float32(), 2))])
    assert Conversion(batch.schema, wanted, "it")(batch).to_pylist() == [{"v": None}]
