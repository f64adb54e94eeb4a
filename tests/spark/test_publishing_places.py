"""Publishing on object stores and on a cluster gives what threads on a disk give."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table, publications, publish
from mooring.jobs.runner import Threads
from mooring.spark.runner import SparkRunner
from tests.spark import cluster as driver

pytestmark = pytest.mark.interop

SCHEMA = pa.schema(
    [("day", pa.date32()), ("id", pa.int64()), ("x", pa.float32()), ("y", pa.float32())]
)
FUNCTION = """
import pyarrow as pa
def embed(batch):
    return pa.array([[x, y, 1.0] for x, y in zip(batch["x"].to_pylist(), batch["y"].to_pylist())])
"""
NEAREST = [500.0, 500.0, 1.0]


def row(number, **others):
    day = dt.date(2013, 1 + number % 3, 1)
    return {"day": day, "id": number, "x": float(number), "y": 0.0, **others}


def follow(uri, options, function, runner, *, elsewhere=None):
    """Publish a table, its changes, and after a cleanup; tell what is there each time."""
    lake = mooring.connect(f"metastore+{uri}/lake", storage_options=options)
    lake.create_namespace("ns")
    other = lake
    if elsewhere is not None:
        other = mooring.connect(f"{uri}/{elsewhere}", storage_options=options)
        other.create_namespace("ns")
    table = create_change_table(
        lake, "ns$t", SCHEMA, keys=["day", "id"], partition_by=["month(day)"], buckets=2
    )
    told = []

    def look(report):
        found = other.table("ns$out").to_lance(report.version).to_table(columns=SCHEMA.names)
        merged = table.to_arrow(position=report.position)
        keys = [("id", "ascending")]
        assert found.sort_by(keys).to_pylist() == merged.sort_by(keys).to_pylist()
        nearest = other.table("ns$out").query(["id"], vector=NEAREST, k=2).read_all()
        states = [str(one.state) for one in report.indexes]
        told.append((report.action, report.rows, states, nearest["id"].to_pylist()))

    table.upsert([row(number) for number in range(300)])
    first = publish(
        table,
        "ns$out",
        catalog=None if elsewhere is None else other,
        vector=f"v={function}:embed",
        indexes=["v:IVF_FLAT:num_partitions=1", "id:BTREE"],
        runner=runner,
    )
    look(first)
    table.upsert([row(7, x=500.0, y=500.0), row(301, x=490.0, y=490.0)])
    look(publish(table, runner=runner))
    table.delete([{"day": dt.date(2013, 2, 1), "id": 7}])
    look(publish(table, runner=runner))
    other.table("ns$out").compact(keep=1)
    assert publish(table, runner=runner).action == "nothing"
    table.upsert([row(302, x=480.0, y=480.0)])
    look(publish(table, runner=runner))
    return told, [one.position for one in publications(table)]


def on_spark(*args, **kwargs):
    return follow(*args, SparkRunner(driver.session()), **kwargs)


EXPECTED = (
    [
        ("create", 300, ["built", "built"], [299, 298]),
        ("update", 301, ["extended", "extended"], [7, 301]),
        ("update", 300, ["kept", "kept"], [301, 299]),
        ("update", 301, ["extended", "extended"], [301, 302]),
    ],
    [4],
)


@pytest.fixture
def function(tmp_path):
    path = tmp_path / "embedding.py"
    path.write_text(FUNCTION)
    return str(path)


@pytest.mark.parametrize("elsewhere", [None, "directory"])
def test_on_an_object_store(seaweedfs, prefix, function, elsewhere):
    uri = seaweedfs.uri(prefix)
    found = follow(uri, seaweedfs.options, function, Threads(2), elsewhere=elsewhere)
    assert found == EXPECTED


def test_on_the_cluster_and_disk(cluster, tmp_path, function):
    assert cluster.run(on_spark, str(tmp_path / "place"), {}, function) == EXPECTED


def test_on_the_cluster_from_one_catalog_of_an_object_store_into_another(
    cluster, seaweedfs, prefix, function
):
    uri = seaweedfs.uri(prefix)
    found = cluster.run(on_spark, uri, seaweedfs.options, function, elsewhere="directory")
    assert found == EXPECTED
