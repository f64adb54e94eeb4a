"""Streams into change tables and out of them."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import mooring
from mooring.changes import create_change_table, objects
from mooring.changes.replacement import truncate
from mooring.errors import (
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.spark.options import options_of
from mooring.spark.source import MooringDataSource
from mooring.spark.streaming import stream_table, write_stream
from mooring.spark.types import to_spark
from tests.spark.changes_tables import data_files, named_files, source_of

ROWS = pa.schema([("id", pa.int64()), ("word", pa.string())])
interop = pytest.mark.interop


@pytest.fixture
def catalog(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'store'}")
    catalog.create_namespace("ns")
    return catalog


@pytest.fixture
def table(catalog):
    return create_change_table(catalog, "ns$t", ROWS, keys=["id"])


class Sink:
    """A streaming sink, asked as Spark asks it: another writer commits what workers wrote."""

    def __init__(self, table, **options) -> None:
        self._source = source_of(table, **{"query": "q", "change": "upsert", **options})

    def _writer(self):
        return self._source.streamWriter(to_spark(ROWS), overwrite=False)

    def write(self, *parts):
        """Have workers write parts of a batch."""
        writer = pickle.dumps(self._writer())
        messages = []
        for rows in parts:
            batch = pa.RecordBatch.from_pylist([{"id": n, "word": word} for n, word in rows], ROWS)
            worker = pickle.loads(writer)  # noqa: S301  # our own
            messages.append(pickle.loads(pickle.dumps(worker.write(iter([batch])))))  # noqa: S301
        return messages

    def commit(self, batch, messages):
        self._writer().commit(messages, batch)

    def abort(self, batch, messages):
        self._writer().abort(messages, batch)

    def batch(self, number, *parts):
        self.commit(number, self.write(*parts))


def words(table) -> dict[int, str]:
    return {row["id"]: row["word"] for row in table.to_arrow().to_pylist()}


def test_a_batch_is_one_change_and_counts_once(table):
    sink = Sink(table)
    sink.batch(0, [(1, "a")], [(2, "b")], [])
    sink.batch(1, [(1, "c")])
    # It was committed, and Spark never heard of it.
    Sink(table).batch(1, [(1, "c")])
    assert words(table) == {1: "c", 2: "b"}
    assert table.position == 2
    assert data_files(table.catalog) == named_files(table)
    sink.batch(2)
    sink.batch(2, [])
    sink.batch(3, [(3, "d")])
    assert (len(words(table)), table.position) == (3, 3)


def test_two_drivers_with_one_batch_write_it_once(table):
    one, other = Sink(table), Sink(table)
    first, second = one.write([(1, "a")]), other.write([(1, "a")])
    one.commit(0, first)
    other.commit(0, second)
    assert table.position == 1
    # Even told twice the files of what was committed stay.
    one.commit(0, first)
    other.abort(0, second)
    one.abort(0, first)
    assert words(table) == {1: "a"}


def test_one_note_holds_the_last_batch_of_each_stream(table):
    for query in ("q", "r"):
        for number in range(5):
            Sink(table, query=query, change="append").batch(number, [(number, query)])
    view = table.catalog.metastore.begin()
    runs = objects.stream_of(
        objects.require_objects(view, table.id).locator,
        objects.RUNS,
    )
    notes = [child.value.properties for child in view.children(runs)]
    assert sorted((one["stream"], one["batch"]) for one in notes) == [("q", "4"), ("r", "4")]
    assert table.count() == 10


def test_a_batch_that_cannot_be_the_next_one_is_refused(table, tmp_path):
    sink = Sink(table)
    sink.batch(0, [(1, "a")])
    sink.batch(1, [(2, "b")])
    with pytest.raises(InvalidTableStateError, match=r"up to 1 .*, and this is batch 0"):
        sink.batch(0, [(9, "lost?")])
    assert data_files(table.catalog) == named_files(table)

    def checkpoint(name):
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        (place / "metadata").write_text(json.dumps({"id": name}))
        return {"checkpointLocation": str(place)}

    named = Sink(table, query="named", **checkpoint("old"))
    named.batch(0, [(3, "c")])
    # Begun anew, with the old name: nothing is passed over in silence.
    with pytest.raises(InvalidTableStateError, match="batch 0 of another checkpoint"):
        Sink(table, query="named", **checkpoint("new")).batch(0, [(4, "d")])
    Sink(table, query=None, **checkpoint("new")).batch(0, [(4, "d")])
    assert words(table) == {1: "a", 2: "b", 3: "c", 4: "d"}


def test_a_new_table_of_the_name_does_not_get_the_middle_of_a_stream(catalog, table):
    Sink(table).batch(0, [(1, "a")])
    other = create_change_table(catalog, "ns$other", ROWS, keys=["id"])
    with pytest.raises(InvalidTableStateError, match="is new and empty, and batch 1"):
        Sink(other).batch(1, [(2, "b")])
    assert other.position == 0


def test_a_batch_that_failed_leaves_nothing(table):
    sink = Sink(table)
    messages = sink.write([(1, "a")], [(1, "b")])
    with pytest.raises(ConflictError):
        sink.commit(0, messages)
    sink.abort(0, messages)
    sink.abort(0, [*sink.write([(5, "e")]), None])
    assert data_files(table.catalog) == set()
    sink.batch(0, [(1, "a")])
    assert words(table) == {1: "a"}


def test_what_a_stream_cannot_do_is_told(catalog, table):
    def writer(overwrite=False, **options):
        return source_of(table, **options).streamWriter(to_spark(ROWS), overwrite=overwrite)

    with pytest.raises(InvalidInputError, match="say what the rows do with the option 'change'"):
        writer(query="q")
    with pytest.raises(InvalidInputError, match="needs a name by which its batches"):
        writer(change="upsert")
    with pytest.raises(UnsupportedError, match="foreachBatch"):
        writer(query="q", change="upsert", overwrite=True)
    with pytest.raises(InvalidInputError, match="'run' is not for a stream"):
        writer(query="q", change="upsert", run="r")
    none = MooringDataSource(options_of(catalog, "ns$none", {"query": "q", "change": "upsert"}))
    with pytest.raises(TableNotFoundError, match="no change table 'ns\\$none'"):
        none.streamWriter(to_spark(ROWS), overwrite=False)


# -- out of a table ------------------------------------------------------------------------------


def stream_of(table, **options):
    source = source_of(table, **{"changes": True, **options})
    return source.streamReader(source.schema())


def between(reader, start, end):
    parts = reader.partitions({"position": start}, {"position": end})
    reader = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    return [(row["_change_position"], row["_change_type"], row["id"]) for row in rows]


def test_an_offset_is_a_position(table):
    table.upsert([{"id": 1, "word": "a"}])
    reader = stream_of(table)
    own = {"table": table.definition.identity}
    assert reader.initialOffset() == {"position": 0, **own}
    assert reader.latestOffset() == {"position": 1, **own}
    table.delete([{"id": 1}])
    table.rename_column("word", "text")
    assert reader.latestOffset() == {"position": 2, **own}
    assert between(reader, 0, 2) == [(1, "upsert", 1), (2, "delete", 1)]
    assert between(reader, 1, 2) == [(2, "delete", 1)]
    assert between(reader, 2, 2) == []
    assert stream_of(table, startingPosition="latest").initialOffset() == {"position": 2, **own}
    assert stream_of(table, startingPosition=2).initialOffset() == {"position": 1, **own}
    with pytest.raises(InvalidInputError, match="from 1 to 3, the next one, not '9'"):
        stream_of(table, startingPosition=9).initialOffset()
    with pytest.raises(InvalidTableStateError, match="has no position 7"):
        between(reader, 2, 7)
    truncate(table)
    with pytest.raises(InvalidTableStateError, match="skipReplacements=true"):
        between(reader, 2, 3)
    assert between(stream_of(table, skipReplacements=True), 1, 3) == [(2, "delete", 1)]


def test_a_table_that_was_made_anew_is_not_gone_on_with(catalog, table):
    table.upsert([{"id": 1, "word": "a"}])
    start = stream_of(table).latestOffset()
    schema, name = table.schema, str(table.id)
    catalog.drop_table(name)
    anew = create_change_table(catalog, name, schema, keys=["id"])
    for number in range(3):
        anew.upsert([{"id": number, "word": "b"}])
    reader = stream_of(anew)
    with pytest.raises(InvalidTableStateError, match="another table than the one that was read"):
        reader.partitions(start, reader.latestOffset())


def test_a_stream_of_changes_is_asked_for_by_name(table):
    source = source_of(table)
    with pytest.raises(InvalidInputError, match="say so with the option changes=true"):
        source.streamReader(source.schema())
    with pytest.raises(InvalidInputError, match="a stream has 'startingPosition'"):
        stream_of(table, fromPosition=1)


# -- in Spark ------------------------------------------------------------------------------------


class Inbox:
    """A directory of files that a stream reads, one in a batch."""

    def __init__(self, spark, directory) -> None:
        directory.mkdir()
        self._spark = spark
        self._directory = directory
        self._count = 0

    def put(self, **rows: str) -> None:
        self._count += 1
        lines = [json.dumps({"id": int(name[1:]), "word": word}) for name, word in rows.items()]
        (self._directory / f"{self._count}.json").write_text("\n".join(lines))

    def stream(self):
        reader = self._spark.readStream.schema("id long, word string")
        return reader.option("maxFilesPerTrigger", "1").json(str(self._directory))


@pytest.fixture
def inbox(spark, tmp_path):
    return Inbox(spark, tmp_path / "inbox")


@pytest.fixture
def flow(tmp_path):
    """Write what there is of a stream now, from where it was left."""

    def run(frame, table, **how):
        place = str(tmp_path / f"checkpoint-{table.id.names[-1]}")
        query = write_stream(
            frame, table.catalog, table.id, checkpoint=place, available_now=True, **how
        )
        query.awaitTermination()

    return run


@interop
def test_rows_go_through_a_stream_into_a_table_and_on(spark, catalog, table, inbox, flow):
    inbox.put(n1="a", n2="b")
    inbox.put(n1="c")
    flow(inbox.stream(), table, change="upsert")
    assert (words(table), table.position) == ({1: "c", 2: "b"}, 2)
    log = create_change_table(
        catalog,
        "ns$log",
        pa.schema([*ROWS, ("kind", pa.string()), ("position", pa.int64())]),
    )
    told = stream_table(spark, catalog, "ns$t").withColumnsRenamed(
        {"_change_type": "kind", "_change_position": "position"}
    )
    flow(told, log)
    rows = log.to_arrow().to_pylist()
    assert sorted((row["position"], row["kind"], row["id"], row["word"]) for row in rows) == [
        (1, "upsert", 1, "a"),
        (1, "upsert", 2, "b"),
        (2, "upsert", 1, "c"),
    ]


@interop
def test_a_stream_goes_on_where_it_was_left(spark, catalog, table, inbox, flow):
    inbox.put(n1="a")
    flow(inbox.stream(), table, change="upsert", query="in")
    inbox.put(n2="b")
    flow(inbox.stream(), table, change="upsert", query="in")
    flow(inbox.stream(), table, change="upsert", query="in")
    assert (words(table), table.position) == ({1: "a", 2: "b"}, 2)
    copy = create_change_table(catalog, "ns$copy", ROWS, keys=["id"])
    changes = stream_table(spark, catalog, "ns$t", columns="id,word").select("id", "word")
    flow(changes, copy, change="upsert")
    table.upsert([{"id": 3, "word": "x"}])
    flow(changes, copy, change="upsert")
    assert words(copy) == words(table) == {1: "a", 2: "b", 3: "x"}
    truncate(table)
    with pytest.raises(StreamingQueryException, match="replaced at position 4"):
        flow(changes, copy, change="upsert")
    assert words(copy) == {1: "a", 2: "b", 3: "x"}
