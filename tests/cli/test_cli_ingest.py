"""The verb ``mooring ingest``."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mooring


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [2, 3], "city": ["Bonn", "Rome"]}), path)
    return path


def test_rows_are_appended_and_told_as_a_table_and_as_json(on, lake, rows_file, parquet):
    result = on("ingest", rows_file, "--into", "a$new")
    assert result.exit_code == 0, result.stderr
    assert "rows inserted" in result.stdout
    found = json.loads(on("ingest", parquet, "--into", "a$new", "-o", "json").stdout)
    assert found["rows_in"] == found["rows_written"] == found["rows_inserted"] == 2
    assert (found["version"], found["engine"], found["mode"]) == (2, "threads", "append")
    assert {"bytes_read", "files", "seconds", "rows_rejected", "rows_updated"} <= set(found)
    assert mooring.connect(lake).table("a$new").count() == 5


def test_rows_are_upserted_and_deleted_by_key_and_a_run_counts_once(on, lake, parquet):
    words = ("ingest", parquet, "--into", "flights", "--mode", "upsert", "--key", "id")
    once = ("--run-id", "night-1")
    found = json.loads(on(*words, *once, "-o", "json").stdout)
    assert (found["rows_updated"], found["rows_inserted"], found["is_new"]) == (1, 1, True)
    again = on(*words, *once)
    assert again.exit_code == 0
    assert "nothing changed" in again.stderr
    refused = on("ingest", parquet, "--into", "flights")
    assert refused.exit_code == 4
    assert "id=2; id=3" in refused.stderr
    gone = on(
        "ingest", parquet, "--into", "flights", "--mode", "delete", "--key", "id", "-o", "json"
    )
    assert json.loads(gone.stdout)["rows_deleted"] == 2
    assert mooring.connect(lake).table("flights").to_arrow()["id"].to_pylist() == [1]


def test_records_that_do_not_fit_end_the_run_or_go_to_a_file(on, lake, tmp_path):
    (tmp_path / "bad.csv").write_text("id;city\nx;Oslo\n7;-\n")
    words = ("ingest", tmp_path / "bad.csv", "--into", "flights", "--delimiter", ";")
    refused = on(*words, "--null-value", "-")
    assert refused.exit_code == 2
    assert "record 1: 'x' in column 'id' does not fit int64" in refused.stderr
    result = on(*words, "--null-value", "-", "--rejects", tmp_path / "no", "-o", "json")
    assert json.loads(result.stdout)["rows_rejected"] == 1
    assert json.loads((tmp_path / "no").read_text())["record"] == {"id": "x", "city": "Oslo"}
    rows = mooring.connect(lake).table("flights").to_arrow(filter="id = 7").to_pylist()
    assert rows == [{"id": 7, "city": None}]


def test_a_table_of_a_catalog_is_a_source(on, lake, tree):
    result = on("ingest", "ports", "--source-catalog", tree, "--into", "a$ports", "-o", "json")
    assert json.loads(result.stdout)["rows_written"] == 2


def test_columns_are_added_where_that_is_asked_for(on, lake, tmp_path):
    (tmp_path / "wide.csv").write_text("id,size\n9,2.5\n")
    words = ("ingest", tmp_path / "wide.csv", "--into", "flights")
    refused = on(*words)
    assert refused.exit_code == 2
    assert "--evolve" in refused.stderr
    assert "size (double) is new" in on(*words, "--evolve").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("rows.csv",), 2, "--into NAME"),
        (("--into", "t"), 2, "give a SOURCE"),
        (("rows.csv", "--into", "t", "--query", "SELECT 1"), 2, "not both"),
        (("nowhere.parquet", "--into", "t"), 3, "no source"),
        (("jdbc:x", "--into", "t", "--no-spark"), 2, "--no-spark"),
        (("rows.csv", "--into", "t", "--format", "jdbc"), 2, "jdbc:"),
        (("rows.csv", "--into", "t", "--delimiter", ";;"), 2, "one character"),
        (("rows.csv", "--into", "nope$t"), 3, "nope"),
    ],
)
def test_what_cannot_be_is_told(on, rows_file, words, code, said):
    result = on("ingest", *words)
    assert result.exit_code == code, result.output
    assert said in result.stderr
