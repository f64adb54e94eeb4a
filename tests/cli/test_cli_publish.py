"""``mooring publish``: what it says, what it keeps, and how it refuses."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float32()), ("y", pa.float32())])


@pytest.fixture
def table(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'store'}")
    catalog.create_namespace("shop")
    table = create_change_table(catalog, "shop$points", SCHEMA, keys=["id"], buckets=2)
    table.upsert([{"id": number, "x": float(number), "y": 1.0} for number in range(10)])
    return table


@pytest.fixture
def on_store(run, table):
    def invoke(*args):
        return run("-c", table.catalog.uri, *args)

    return invoke


def told(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_first_time_says_how_and_later_the_name_is_enough(on_store, table):
    options = ["--into", "shop$out", "--columns", "id as key,x", "--vector", "v=x,y"]
    first = on_store("publish", "shop$points", *options, "--index", "key:BTREE")
    assert first.exit_code == 0, first.stderr
    assert first.stderr == (
        "published position 1 of 'shop$points': made 'shop$out' with 10 rows: version 1; 2 of 2"
        " buckets looked at; indexes: key_btree built\n"
    )
    table.upsert([{"id": 1, "x": 5.0}])
    report = told(on_store("publish", "shop$points", "-o", "json"))
    assert (report["action"], report["position"], report["rows_deleted"]) == ("update", 2, 1)
    assert report["indexes"] == [
        {"name": "key_btree", "column": "key", "kind": "BTREE", "state": "extended"}
    ]
    found = table.catalog.table("shop$out").to_arrow(filter="key = 1").to_pylist()
    assert found == [{"key": 1, "x": 5.0, "v": [5.0, 1.0]}]
    again = on_store("publish", "shop$points")
    assert "holds position 2 of 'shop$points' already, as version 3: nothing changed" in (
        again.stderr
    )


def test_status_and_dry_run_change_nothing(on_store, table):
    (plan,) = told(
        on_store("publish", "shop$points", "--into", "shop$out", "--dry-run", "-o", "json")
    )
    assert (plan["action"], plan["to"], plan["changed_rows"]) == ("create", 1, 10)
    assert not table.catalog.table_exists("shop$out")
    told(on_store("publish", "shop$points", "--into", "shop$out", "-o", "json"))
    table.delete([{"id": 1}])
    (status,) = told(on_store("publish", "--status", "-o", "json"))
    assert told(on_store("publish", "--all", "--status", "-o", "json")) == [status]
    assert (status["state"], status["position"], status["newest"]) == ("behind", 1, 2)
    assert (status["version"], status["by"]) == (1, "tester")


def test_all_that_was_published_before_is_published_again(on_store, table, tmp_path):
    told(on_store("publish", "shop$points", "--into", "shop$out", "-o", "json"))
    (tmp_path / "other").mkdir()
    elsewhere = ["--into", "copy", "--to-catalog", tmp_path / "other"]
    told(on_store("publish", "shop$points", *elsewhere, "-o", "json"))
    table.delete([{"id": 1}])
    reports = told(on_store("publish", "--all", "-o", "json"))
    assert [(one["into"], one["action"], one["rows"]) for one in reports] == [
        ("shop$out", "update", 9),
        ("copy", "update", 9),
    ]
    assert mooring.connect(tmp_path / "other").table("copy").to_arrow().num_rows == 9
    assert on_store("publish", "shop$points", "--into", "copy", "--forget").exit_code == 0
    assert len(told(on_store("publish", "--all", "-o", "json"))) == 1


def test_somebody_elses_rows_are_refused_until_force_or_full_is_said(on_store, table):
    on_store("publish", "shop$points", "--into", "shop$out")
    out = table.catalog.table("shop$out")
    out.insert(out.to_arrow().slice(0, 1))
    refused = on_store("publish", "shop$points")
    assert refused.exit_code != 0
    assert "go on and leave that with --force, or write all rows anew with --full" in refused.stderr
    report = told(on_store("publish", "shop$points", "--full", "-o", "json"))
    assert (report["action"], report["rows"]) == ("overwrite", 10)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([], 2, "name a change table, or say --all"),
        (["shop$points", "--all"], 2, "and not both"),
        (["--all", "--into", "shop$out"], 2, "--all publishes as before"),
        (["shop$points"], 2, "is not published yet: say into which table, with --into"),
        (["shop$nothing", "--into", "shop$out"], 3, "there is no table 'shop$nothing'"),
        (["shop$points", "--into", "shop$out", "--vector", "v"], 2, "is no vector column"),
        (["shop$points", "--into", "shop$points"], 4, "is a change table"),
        (["shop$points", "--into", "shop$out", "--forget"], 3, "is not published into 'shop$out'"),
        (["shop$point", "--into", "shop$out"], 3, "did you mean 'shop$points'"),
        (["shop$points", "--into", "shop$out", "--at-position", "7"], 2, "has no position 7"),
        (["shop$points", "--into", "t", "--to-catalog", "nowhere"], 3, "no catalog at 'nowhere'"),
    ],
)
def test_what_makes_no_sense_is_told(on_store, table, args, code, message):
    result = on_store("publish", *args)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not table.catalog.table_exists("shop$out")


@pytest.mark.interop
def test_spark_does_the_same(on_store, table, spark):
    del spark  # it runs, so the command uses it
    report = told(on_store("publish", "shop$points", "--into", "shop$out", "--spark", "-o", "json"))
    assert report["rows"] == 10
    table.delete([{"id": 3}])
    report = told(on_store("publish", "shop$points", "--spark", "-o", "json"))
    assert (report["action"], report["rows_deleted"]) == ("update", 1)
    found = ChangeTable(table.catalog, "shop$points").to_arrow()
    assert table.catalog.table("shop$out").to_arrow().sort_by("id") == found.sort_by("id")
