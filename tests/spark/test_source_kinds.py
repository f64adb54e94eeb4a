"""The data source on every kind of catalog, on disk and on SeaweedFS."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mooring.spark import create_views, read_table, write_table
from tests.spark.places import DISK, SEAWEEDFS, Place

pytestmark = pytest.mark.interop


@pytest.fixture(params=DISK)
def on_disk(request, tmp_path):
    return Place.of(request.param, str(tmp_path / "lake"))


@pytest.fixture(params=SEAWEEDFS)
def in_bucket(request, seaweedfs, prefix):
    return Place.of(request.param, seaweedfs.uri(prefix), seaweedfs.options)


def check(spark, place):
    """Make a table, append to it, read it at both versions, overwrite it, and fail to."""
    catalog, name = place.open(), place.name
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "array(float(id), float(1)) as v")
    made = write_table(rows, catalog, name, run="first", vectors="v:2")
    assert (made.version, made.rows) == (1, 100)
    assert not write_table(rows, catalog, name, mode="append", run="first").is_new
    more = spark.createDataFrame([(-1,)], "id long")
    assert write_table(more, catalog, name, mode="append").version == 2
    schema = place.open().table(name).to_lance().schema
    assert schema.field("v").type == pa.list_(pa.float32(), 2)
    frame = read_table(spark, catalog, name, tasks=4)
    assert frame.selectExpr("count(*)", "sum(id)", "count(v)").first()[:] == (101, 4949, 100)
    assert read_table(spark, catalog, name, version=1).count() == 100
    assert read_table(spark, catalog, name, pushdown=True).filter("id < 0").count() == 1
    parent = list(name.names[:-1]) or None
    assert create_views(spark, catalog, parent, columns="id") == ["t"]
    assert spark.sql("select max(id) from t").first()[0] == 99

    def fail(batches):
        msg = "boo"
        yield next(batches)
        raise ValueError(msg)

    before = paths(catalog)
    with pytest.raises(Exception, match="boo"):
        write_table(frame.mapInArrow(fail, "id long, v array<float>"), catalog, name, mode="append")
    assert paths(catalog) == before
    assert write_table(more, catalog, name, mode="overwrite").version == 3
    assert [row.id for row in read_table(spark, catalog, name).collect()] == [-1]
    assert not [
        path for path in paths(catalog) if "_pending/" in path or path.startswith("_mooring/")
    ]


def paths(catalog):
    return sorted(meta.path for meta in catalog.backend.store.list_prefix(""))


@pytest.mark.peer("pyspark", they="list read write harmless", on="every kind of catalog")
def test_tables_on_disk(spark, on_disk):
    check(spark, on_disk)


@pytest.mark.s3
@pytest.mark.peer("pyspark", they="list read write harmless", on="every kind of catalog")
def test_tables_in_a_bucket(spark, in_bucket):
    check(spark, in_bucket)
