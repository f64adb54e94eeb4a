"""Change tables on a real cluster: executors write and merge what plain Python comes to."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.spark import (
    read_changes,
    read_table,
    stream_table,
    write_changes,
    write_stream,
)
from tests.changes.model import KEYS, SCHEMA, Model, canonical, has_key, random_batch, to_table
from tests.spark.changes_tables import data_files, named_files
from tests.spark.cluster import session

pytestmark = pytest.mark.interop

BATCHES = 5
LOG = pa.schema([("batch", pa.int64()), ("rows", pa.int64())])
OUT = pa.schema([*SCHEMA, ("kind", pa.string()), ("position", pa.int64())])


def batches() -> list[tuple[str, list[dict[str, object]]]]:
    random_ = random.Random(7)
    found = []
    while len(found) < BATCHES:
        type_, rows = random_batch(random_)
        kept = [row for row in rows if has_key(row)]
        if kept:
            found.append((type_, kept))
    return found


def write_there(uri: str) -> list[tuple[int, int]]:
    """Write batches by executors, each with a row of a log in the same transaction."""
    spark, catalog = session(), mooring.connect(uri)
    told = []
    for number, (type_, rows) in enumerate(batches()):
        frame = spark.createDataFrame(to_table(rows, SCHEMA)).repartition(2)
        note = spark.createDataFrame([(number, len(rows))], "batch long, rows long")
        landed = write_changes(
            catalog, [(frame, "ns$t", type_), (note, "ns$log", "append")], run=f"batch {number}"
        )
        assert len({one.txn_id for one in landed}) == 1
        told.append((landed[0].position, landed[1].position))
    return told


def read_there(uri: str, **options: object) -> list[dict[str, object]]:
    frame = read_table(session(), uri, "ns$t", **options)
    return [row.asDict() for row in frame.collect()]


def stream_there(uri: str, places: list[str]) -> None:
    """Have changes go out of one table and into another, and rows of that one on as upserts."""
    spark = session()
    changes = stream_table(spark, uri, "ns$t").withColumnsRenamed(
        {"_change_type": "kind", "_change_position": "position"}
    )
    first = write_stream(changes, uri, "ns$out", checkpoint=places[0], available_now=True)
    first.awaitTermination()
    log = stream_table(spark, uri, "ns$log").select("batch", "rows")
    second = write_stream(
        log, uri, "ns$last", checkpoint=places[1], available_now=True, change="upsert"
    )
    second.awaitTermination()


def changes_there(uri: str) -> list[tuple[object, ...]]:
    rows = read_changes(session(), uri, "ns$t").collect()
    return sorted(((*row,) for row in rows), key=str)


@pytest.fixture
def lake(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
    catalog.create_namespace("ns")
    create_change_table(catalog, "ns$t", SCHEMA, keys=KEYS, partition_by=["month(at)"], buckets=3)
    create_change_table(catalog, "ns$log", LOG)
    create_change_table(catalog, "ns$out", OUT)
    create_change_table(catalog, "ns$last", LOG, keys=["batch"])
    return catalog


def test_executors_write_merge_and_stream_what_python_comes_to(cluster, lake, tmp_path):
    uri = lake.uri
    assert cluster.run(write_there, uri) == [(at, at) for at in range(1, BATCHES + 1)]
    # Repeated, nothing happens.
    assert cluster.run(write_there, uri) == [(at, at) for at in range(1, BATCHES + 1)]
    model, expected = Model(), []
    for type_, rows in batches():
        model.apply(type_, rows)
        expected.append(model.rows())
    assert canonical(cluster.run(read_there, uri)) == expected[-1]
    middle = cluster.run(read_there, uri, position=BATCHES // 2, tasks=5)
    assert canonical(middle) == expected[BATCHES // 2 - 1]
    table, log = ChangeTable(lake, "ns$t"), ChangeTable(lake, "ns$log")
    assert canonical(table.to_arrow().to_pylist()) == expected[-1]
    assert data_files(lake) == named_files(table, log)

    cluster.run(stream_there, uri, [str(tmp_path / "one"), str(tmp_path / "two")])
    out = [tuple(row.values()) for row in ChangeTable(lake, "ns$out").to_arrow().to_pylist()]
    assert sorted(out, key=str) == cluster.run(changes_there, uri)
    assert len(out) == sum(len(rows) for _, rows in batches())
    last = ChangeTable(lake, "ns$last").to_arrow().to_pylist()
    assert sorted(row["rows"] for row in last) == sorted(len(rows) for _, rows in batches())
