"""Transactions and runs over ``/mooring/v1``."""

from __future__ import annotations

import pytest

from mooring.pipelines.expectations import Checked
from mooring.pipelines.history import (
    InputRecord,
    OutputRecord,
    RunRecord,
    StepRecord,
    save_record,
)
from tests.server.mooring_api import Api, code_of


@pytest.fixture
def api(metastore):
    return Api(metastore.client)


def test_transactions_are_told_newest_first(metastore, api):
    metastore.lake.create("t", [1])
    metastore.lake.drop("t")
    found = api.found("/transactions")["transactions"]
    assert [one["message"] for one in found][:2] == ["drop table main$t", "create table main$t"]
    assert [one["commit"] for one in found] == sorted(
        (one["commit"] for one in found), reverse=True
    )
    assert api.found("/transactions", limit=1)["transactions"] == found[:1]
    assert all(one["by"] == "alice" and one["changes"] for one in found)


@pytest.mark.parametrize("limit", ["0", "-1", "x", "10001", ""])
def test_limits_are_bounded(api, limit):
    assert code_of(api.get("/transactions", limit=limit)) == (400, 13)
    assert code_of(api.get("/runs", limit=limit)) == (400, 13)


def test_transaction_is_told_with_its_changes(metastore, api):
    metastore.lake.create("t", [1])
    newest = api.found("/transactions")["transactions"][0]
    told = api.found(f"/transactions/{newest['id']}")
    assert {key: told[key] for key in ("id", "commit", "by", "at_ms", "message")} == {
        key: newest[key] for key in ("id", "commit", "by", "at_ms", "message")
    }
    assert len(told["changes"]) == newest["changes"]
    created = told["changes"][0]
    assert (created["operation"], created["kind"], created["object"]) == (
        "create",
        "table",
        "main$t",
    )
    assert created["names"] == ["+t"]
    metastore.lake.drop("t")
    metastore.lake.backend.purge_table(metastore.lake.id("t"))
    gone = api.found("/transactions")["transactions"][0]
    deleted = api.found(f"/transactions/{gone['id']}")["changes"]
    assert any(one["operation"] == "delete" for one in deleted)
    assert code_of(api.get("/transactions/never")) == (404, 10)


def _record(run, started_ms, *, read, wrote, **more):
    return RunRecord(
        run=run,
        pipeline="daily",
        state="done",
        fingerprint=f"of {run}",
        parameters={"day": "1"},
        by="ada",
        started_ms=started_ms,
        ended_ms=started_ms + 10,
        inputs=(
            InputRecord(
                source="in",
                kind="change table",
                name=f"main${read}",
                shown="3",
                version={"table_id": read, "position": 3},
            ),
        ),
        steps=(StepRecord(name="clean", kind="sql", needs=("in",)),),
        expectations=(Checked(step="clean", name="n > 0", on_failure="drop", rows=5, failed=2),),
        outputs=(
            OutputRecord(
                table=f"main${wrote}",
                change="append",
                source="clean",
                rows=3,
                position=2,
                table_id=wrote,
                token="a token",
            ),
        ),
        txn_id="a txn",
        **more,
    )


def test_runs_are_told_with_what_they_read_and_wrote(metastore, api):
    assert api.found("/runs") == {"runs": []}
    catalog = metastore.catalog
    first = _record("run-1", 100, read="a", wrote="b")
    second = _record("run-2", 200, read="b", wrote="c", error=None, file="daily.yaml")
    with catalog.transaction() as txn:
        save_record(txn, first)
        save_record(txn, second)
    newest, oldest = api.found("/runs")["runs"]
    assert (newest["run"], oldest["run"]) == ("run-2", "run-1")
    assert (newest["started_at_ms"], newest["ended_at_ms"]) == (200, 210)
    assert newest["inputs"][0]["version"] == {"table_id": "b", "position": 3}
    assert newest["steps"] == [{"name": "clean", "kind": "sql", "needs": ["in"]}]
    (counted,) = newest["expectations"]
    assert (counted["expectation"], counted["passed"], counted["failed"]) == ("n > 0", 3, 2)
    assert newest["outputs"][0]["position"] == 2
    assert "token" not in newest["outputs"][0]
    assert api.found("/runs", limit=1)["runs"] == [newest]
    assert api.found("/runs", pipeline="daily", table="main$a")["runs"] == [oldest]
    assert code_of(api.get("/runs", pipeline="never")) == (404, 4)

    told = api.found("/runs/run-2")
    assert told["upstream"] == [{"run": "run-1", "table": "main$b"}]
    assert told["downstream"] == []
    assert {key: told[key] for key in newest} == newest
    assert code_of(api.get("/runs/run")) == (404, 4)


def test_other_kinds_have_neither(compat):
    api = Api(compat.client)
    for path in ("/transactions", "/transactions/x", "/runs", "/runs/x"):
        answer = api.get(path)
        assert code_of(answer) == (406, 0)
        assert "a directory of tables" in answer.json()["error"]
        assert str(compat.lake.uri) not in answer.text
