"""Ingestion through Spark: the same as without it, and what only Spark can read."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest

from mooring.errors import ConflictError, InvalidInputError, MooringError
from mooring.ingest import ingest
from mooring.spark.ingest import ingest_with, read_jdbc, read_query
from mooring.spark.runner import SparkRunner
from tests.ingest.files import open_lake, tree, write_source


@pytest.fixture
def runner(spark):
    return SparkRunner(spark)


def rows(keys, word):
    return pa.table(
        {
            "a": pa.array([f"k{n // 2}" for n in keys]),
            "b": pa.array([date(2024, 1, 1 + n % 2) for n in keys]),
            "n": pa.array(keys, pa.int64()),
            "w": [word] * len(keys),
        }
    )


def content(table):
    return sorted(map(str, table.to_arrow().to_pylist()))


def told(report):
    """What a report says, but for who did it and how long it took."""
    return {
        name: value
        for name, value in vars(report).items()
        if name not in {"seconds", "engine", "table"}
    }


@pytest.mark.interop
def test_both_engines_give_the_same_tables_reports_and_rejects(runner, tmp_path, monkeypatch):
    monkeypatch.setattr("mooring.ingest.splits._LEAST_BYTES", 500)
    lake, _ = open_lake("v2", tmp_path / "lake")
    first = write_source(tmp_path / "first.parquet", rows(range(200), "old"), row_group_size=20)
    second = write_source(tmp_path / "second.parquet", rows(range(150, 260), "new"))
    (tmp_path / "bad.csv").write_text("a,b,n\nk1,2024-01-01,2\nk9999,2024-01-01,x\nk5,2024-01-02\n")
    steps = [
        (first, {}),
        (second, {"mode": "upsert", "key": ("a", "b")}),
        (str(tmp_path / "bad.csv"), {"mode": "delete", "key": ("a", "b")}),
    ]
    for source, options in steps:
        reports = []
        for engine in ("threads", "spark"):
            keep = {"rejects": str(tmp_path / f"{engine}.json")}
            if engine == "threads":
                report = ingest(lake, source, "a$threads", **options, **keep)
            else:
                report = ingest_with(runner, lake, source, "a$spark", **options, **keep)
            assert report.engine == engine
            reports.append(told(report))
        assert reports[0] == reports[1]
        assert content(lake.table("a$threads")) == content(lake.table("a$spark"))
        lines = [(tmp_path / f"{engine}.json").read_text() for engine in ("threads", "spark")]
        assert lines[0] == lines[1]
    assert lines[0].count("\n") == 1
    with pytest.raises(ConflictError, match="a='k0' and b=") as local:
        ingest(lake, first, "a$threads")
    with pytest.raises(ConflictError) as remote:
        ingest_with(runner, lake, first, "a$spark")
    assert str(remote.value).replace("a$spark", "a$threads") == str(local.value)
    before = tree(tmp_path / "lake")
    twice = write_source(tmp_path / "twice.parquet", rows([1, 1], "x"))
    with pytest.raises(InvalidInputError, match="more than once in the source: a='k0'"):
        ingest_with(runner, lake, twice, "a$spark", mode="upsert", key=("a", "b"))
    assert tree(tmp_path / "lake") == before


@pytest.mark.interop
def test_a_query_and_a_database_are_sources(runner, spark, tmp_path):
    lake, _ = open_lake("metastore", tmp_path / "lake")
    source = write_source(tmp_path / "rows.parquet", rows(range(10), "x"))
    spark.read.parquet(source).createOrReplaceTempView("ingested")
    query = read_query(runner, "SELECT n + 1 AS n, w FROM ingested WHERE n < 5")
    assert ingest_with(runner, lake, query, "a$t", run_id="q").rows_written == 5
    assert not ingest_with(runner, lake, query, "a$t", run_id="q").is_new
    assert sorted(lake.table("a$t").to_arrow()["n"].to_pylist()) == [1, 2, 3, 4, 5]
    # Derby lies in Spark, and keeps its log where it is told to.
    log = str(tmp_path / "derby.log")
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    people = spark.createDataFrame([(1, "ann", 1.5), (2, None, 2.5)], "n int, w string, x double")
    people.write.format("jdbc").option("url", url).option("dbtable", "people").save()
    report = ingest_with(
        runner, lake, read_jdbc(runner, url, {"query": 'SELECT "n", "w" FROM people'}), "a$t"
    )
    assert (report.rows_in, report.rows_written, report.files) == (2, 2, 0)
    assert lake.table("a$t").to_arrow(filter="w = 'ann'")["n"].to_pylist() == [1]
    with pytest.raises(InvalidInputError, match="dbtable"):
        read_jdbc(runner, url, {})
    with pytest.raises(MooringError, match="NOPE"):
        read_jdbc(runner, url, {"dbtable": "nope"})
    with pytest.raises(InvalidInputError, match="does not understand"):
        read_query(runner, "SELECT nothing FROM nowhere")


def test_a_bad_record_of_a_query_ends_the_run_and_nothing_is_left(runner, tmp_path):
    lake, _ = open_lake("v2", tmp_path / "lake")
    lake.create_table("a$t", pa.table({"n": pa.array([1], pa.int64())}))
    before = tree(tmp_path / "lake")
    sql = "SELECT CASE WHEN id = 7 THEN 'x' ELSE string(id) END AS n FROM range(10)"
    with pytest.raises(InvalidInputError, match="'x' in column 'n' does not fit int64"):
        ingest_with(runner, lake, read_query(runner, sql), "a$t")
    assert tree(tmp_path / "lake") == before
    no = tmp_path / "no"
    report = ingest_with(runner, lake, read_query(runner, sql), "a$t", rejects=str(no))
    assert (report.rows_written, report.rows_rejected) == (9, 1)
    assert json.loads(no.read_text())["record"] == {"n": "x"}
