"""Streams into tables and out of them, through Spark."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import mooring
from mooring.spark.streaming import stream_table, write_stream
from mooring.tables.pending import list_runs
from mooring.tables.runs import list_done

SCHEMA = "n long, word string"
VECTORS = pa.schema([pa.field("n", pa.int64()), pa.field("v", pa.list_(pa.float32(), 2))])
LIMIT_S = 60.0


class Inbox:
    """A directory of files that a stream reads, one in a batch."""

    def __init__(self, spark, directory) -> None:
        directory.mkdir()
        self._spark = spark
        self._directory = directory
        self._count = 0

    def put(self, *numbers: int) -> None:
        self._count += 1
        rows = [json.dumps({"n": number, "word": f"w{number}"}) for number in numbers]
        (self._directory / f"{self._count}.json").write_text("\n".join(rows))

    def stream(self):
        reader = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
        return reader.json(str(self._directory))


@pytest.fixture
def inbox(spark, tmp_path) -> Inbox:
    return Inbox(spark, tmp_path / "inbox")


@pytest.fixture
def lake(tmp_path):
    return mooring.connect(tmp_path / "lake")


@pytest.fixture
def flow(tmp_path):
    """Write what there is of a stream now, from where it was left."""

    def run(frame, catalog, name, checkpoint="checkpoint", **how):
        query = write_stream(
            frame,
            catalog,
            name,
            checkpoint=str(tmp_path / checkpoint),
            available_now=True,
            **how,
        )
        query.awaitTermination()

    return run


def numbers(table) -> list[int]:
    return sorted(table.to_arrow()["n"].to_pylist())


def failure_of(call) -> str:
    with pytest.raises(StreamingQueryException) as raised:
        call()
    return str(raised.value)


@pytest.mark.interop
@pytest.mark.parametrize(
    "kind", ["v1", "v2", "metastore", pytest.param("s3", marks=pytest.mark.s3)]
)
def test_rows_go_through_a_stream_into_a_table_and_on_into_another(
    request, spark, tmp_path, inbox, flow, kind
):
    uri = f"{'metastore+' if kind == 'metastore' else ''}{tmp_path / 'lake'}"
    how = {"manifest_enabled": kind != "v1"}
    if kind == "s3":
        server = request.getfixturevalue("seaweedfs")
        uri = server.uri(request.getfixturevalue("prefix"))
        how["storage_options"] = server.options
    lake = mooring.connect(uri, **how)
    above = ""
    if kind != "v1":
        lake.create_namespace("ns")
        above = "ns$"
    inbox.put(1, 2)
    inbox.put(3)
    flow(inbox.stream(), lake, f"{above}t", query="in")
    table = lake.table(f"{above}t")
    assert numbers(table) == [1, 2, 3]
    assert [(mark.run, mark.batch) for mark, _ in list_done(table.handle.place)] == [
        ("in", 0),
        ("in", 1),
    ]
    assert table.to_lance().version == 3
    flow(stream_table(spark, lake, f"{above}t"), lake, f"{above}copy", "copying")
    assert lake.table(f"{above}copy").to_arrow().sort_by("n") == table.to_arrow().sort_by("n")
    assert not list_runs(table.handle.place)


@pytest.mark.interop
def test_a_stream_goes_on_after_compaction_and_indexing_without_a_row_twice(spark, lake, flow):
    lake.create_table("t", pa.table({"n": [1], "v": [[1.0, 2.0]]}, schema=VECTORS))
    table = lake.table("t")
    copying = stream_table(spark, lake, "t")
    flow(copying, lake, "copy")
    copy = lake.table("copy")
    assert copy.to_lance().schema.field("v").type == VECTORS.field("v").type
    table.insert(pa.table({"n": [2], "v": [[1.0, 2.0]]}, schema=VECTORS))
    table.compact()
    table.indexes.create("n", "BTREE")
    flow(copying, lake, "copy")
    assert numbers(copy) == [1, 2]
    newest = copy.to_lance().version
    table.insert(pa.table({"n": [3], "v": [[3.0, 4.0]]}, schema=VECTORS))
    table.insert(pa.table({"n": [4], "v": [[3.0, 4.0]]}, schema=VECTORS))
    table.compact()
    flow(copying, lake, "copy")
    assert numbers(copy) == [1, 2, 3, 4]
    assert copy.to_lance().version == newest + 1


@pytest.mark.interop
def test_where_a_stream_starts(spark, lake, flow):
    lake.create_table("t", pa.table({"n": [1]}))
    for value in (2, 3):
        lake.table("t").insert(pa.table({"n": [value]}))
    frame = stream_table(spark, lake, "t", startingVersion="3", filter="n > 0")
    flow(frame, lake, "later", "later")
    assert numbers(lake.table("later")) == [3]
    latest = stream_table(spark, lake, "t", startingVersion="latest")
    flow(latest, lake, "news", "news")
    lake.table("t").insert(pa.table({"n": [4]}))
    flow(latest, lake, "news", "news")
    assert numbers(lake.table("news")) == [4]
    wrong = stream_table(spark, lake, "t", startingVersion="9")
    assert "a version from 1 to 5" in failure_of(lambda: flow(wrong, lake, "x", "wrong"))
    assert "x" not in lake


@pytest.mark.interop
def test_rows_that_change_stop_a_stream_unless_they_may_be_skipped(spark, lake, flow):
    lake.create_table("t", pa.table({"n": [1, 2]}))
    flow(stream_table(spark, lake, "t"), lake, "copy")
    lake.table("t").delete("n = 1")
    lake.table("t").insert(pa.table({"n": [3]}))
    said = failure_of(lambda: flow(stream_table(spark, lake, "t"), lake, "copy"))
    assert "version 2 of table 't' changed or deleted rows (Delete)" in said
    assert "skipChangeCommits" in said
    flow(stream_table(spark, lake, "t", skipChangeCommits="true"), lake, "copy")
    assert numbers(lake.table("copy")) == [1, 2, 3]


@pytest.mark.interop
def test_micro_batches_come_as_rows_do(tmp_path, lake, inbox):
    inbox.put(1)
    query = write_stream(
        inbox.stream(), lake, "t", checkpoint=str(tmp_path / "c"), every="200 milliseconds"
    )
    try:
        for count in (1, 2):
            ends_at = time.monotonic() + LIMIT_S
            while not lake.table_exists("t") or lake.table("t").count() < count:
                assert query.isActive
                assert time.monotonic() < ends_at
                time.sleep(0.1)
            inbox.put(count + 1)
    finally:
        query.stop()
    assert numbers(lake.table("t"))[:2] == [1, 2]


@pytest.mark.interop
def test_a_batch_that_fails_leaves_nothing_and_counts_when_it_is_repeated(lake, inbox, flow):
    inbox.put(1)
    flow(inbox.stream(), lake, "t")
    inbox.put(*range(10, 20))
    broken = (
        inbox.stream()
        .repartition(4)
        .selectExpr("n", "if(n = 15, raise_error('a bad row'), word) AS word")
    )
    table = lake.table("t")
    assert "a bad row" in failure_of(lambda: flow(broken, lake, "t"))
    assert numbers(table) == [1]
    flow(inbox.stream(), lake, "t")
    assert numbers(table) == [1, *range(10, 20)]
    assert not list_runs(table.handle.place)
    data = table.handle.place.store.list_prefix(table.handle.place.path("data"))
    fragments = table.to_lance().get_fragments()
    assert len(data) == len(fragments)


@pytest.mark.interop
def test_what_a_sink_cannot_do_is_said(spark, tmp_path, lake, inbox, flow):
    inbox.put(1)
    counts = inbox.stream().groupBy("word").count().writeStream.outputMode("complete")
    options = {"catalog": lake.uri, "table": "t", "query": "q"}
    query = counts.format("mooring").options(
        **options, checkpointLocation=str(tmp_path / "complete")
    )
    said = failure_of(lambda: query.trigger(availableNow=True).start().awaitTermination())
    assert "a stream only appends to a table" in said
    lake.create_table("narrow", pa.table({"n": [1]}))
    said = failure_of(lambda: flow(inbox.stream(), lake, "narrow", "narrow"))
    assert "table 'narrow' has no column 'word': it has n" in said


@pytest.mark.interop
def test_a_table_that_is_dropped_is_not_made_again_under_a_stream(lake, inbox, flow):
    inbox.put(1)
    flow(inbox.stream(), lake, "t")
    lake.drop_table("t")
    inbox.put(2)
    assert "has written into it before" in failure_of(lambda: flow(inbox.stream(), lake, "t"))
    lake.undrop_table("t")
    flow(inbox.stream(), lake, "t")
    assert numbers(lake.table("t")) == [1, 2]


@pytest.mark.interop
def test_a_stream_without_a_name_is_refused_where_its_checkpoint_cannot_be_read(
    spark, tmp_path, lake, inbox
):
    inbox.put(1)
    key = "spark.sql.streaming.checkpointLocation"
    writer = inbox.stream().writeStream.format("mooring").trigger(availableNow=True)
    spark.conf.set(key, str(tmp_path / "set elsewhere"))
    try:
        started = writer.options(catalog=lake.uri, table="t").queryName("label").start()
        said = failure_of(started.awaitTermination)
    finally:
        spark.conf.unset(key)
    assert "give it one of its own with the option 'query'" in said
