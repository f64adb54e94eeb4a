"""Runs are kept in the catalog, and nobody takes them for tables."""

import json

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table, list_change_tables
from mooring.errors import InvalidNameError, MooringError, NotFoundError, UnsupportedError
from mooring.metastore.lance_table import HISTORY
from mooring.pipelines import list_runs, require_run, trace
from tests.pipelines.direct import do
from tests.program import invoke

FOLLOW = """
    name: follow
    sources: {orders: {table: shop$orders}, news: {changes: shop$items}}
    outputs: [{from: news, table: shop$copy, change: append, create: {}}]
"""


def run(*words):
    done = invoke(*words)
    return done.exit_code, done.output


def fail(name):
    raise MooringError(f"no {name}")


def test_runs_are_no_tables_and_outlive_a_vacuum(lake, plain):
    report, _ = do(lake)
    assert lake.list_namespaces() == ["shop"]
    assert list(map(str, list_change_tables(lake))) == ["shop$items", "shop$orders"]
    lake.metastore.vacuum(older_than_ms=-1000)
    lake.metastore.sweep(older_than_ms=-1000)
    assert list_runs(mooring.connect(lake.uri)) == [report.record]
    for act in (lake.create_namespace, lake.drop_namespace, lake.describe_namespace):
        with pytest.raises(InvalidNameError, match="keeps runs of pipelines"):
            act(HISTORY)
    with pytest.raises(InvalidNameError, match="keeps runs of pipelines"):
        create_change_table(lake, f"{HISTORY}$t", pa.schema([("a", pa.int64())]))
    code, shown = run("-c", lake.uri, "namespace", "list")
    assert (code, shown.split()) == (0, ["shop"])


def test_runs_are_found_by_pipeline_table_and_id(lake, plain, write):
    first, _ = do(lake)
    with pytest.raises(MooringError, match="no orders"):
        do(lake, write("other.yaml", plain.read_text().replace("name: shop", "name: other")),
           before_write=fail)  # fmt: skip
    assert [one.pipeline for one in list_runs(lake)] == ["other", "shop"]
    assert [one.pipeline for one in list_runs(lake, limit=1)] == ["other"]
    assert [one.state for one in list_runs(lake, "other")] == ["failed"]
    assert len(list_runs(lake, table="shop$items")) == 2
    assert list_runs(lake, table="shop$nothing") == []
    assert require_run(lake, first.record.run[:8]) == first.record
    for act, told in (
        (lambda: list_runs(lake, "nope"), "no pipeline 'nope' ever ran here: .* other, shop"),
        (lambda: require_run(lake, "nope"), "there is no run 'nope'"),
    ):
        with pytest.raises(NotFoundError, match=told):
            act()


def test_lineage_leads_to_the_runs_before_and_after(lake, plain, write):
    first, _ = do(lake)
    second, _ = do(lake, write("follow.yaml", FOLLOW))
    write("items.csv", "id,item\n7,ale\n")
    third, _ = do(lake)
    fourth, _ = do(lake, "follow.yaml")
    one, two, three, four = (item.record.run for item in (first, second, third, fourth))
    assert trace(lake, second.record).upstream == ((one, "shop$items"), (one, "shop$orders"))
    assert trace(lake, first.record).downstream == (
        tuple(sorted([(two, "shop$items"), (two, "shop$orders"), (four, "shop$orders")]))
    )
    assert trace(lake, fourth.record).upstream == tuple(
        sorted([(one, "shop$orders"), (three, "shop$items"), (three, "shop$orders")])
    )


def test_commands_show_runs(lake, plain, write):
    report, _ = do(lake)
    do(lake, write("follow.yaml", FOLLOW))
    own = report.record.run
    for words in (["runs"], ["runs", "list"], ["runs", "shop", "-n", "5"]):
        code, shown = run("-c", lake.uri, *words)
        assert code == 0
        assert own in shown
    code, shown = run("-c", lake.uri, "runs", "--table", "shop$copy", "-o", "json")
    (told,) = json.loads(shown)
    assert told["pipeline"] == "follow"
    assert told["wrote"] == "shop$copy (append 3 rows at 1)"
    code, shown = run("-c", lake.uri, "runs", "show", own, "-o", "json")
    told = json.loads(shown)
    assert (told["state"], told["by"], told["parameters"]) == ("done", "tester", {})
    assert [one["position"] for one in told["outputs"]] == [1, 1]
    assert [one["table"] for one in told["downstream"]] == ["shop$items", "shop$orders"]
    assert told["inputs"][0]["version"]["files"] == 1
    code, shown = run("-c", lake.uri, "runs", "show", own)
    assert "downstream" in shown
    assert "orders.csv" in shown
    assert run("-c", lake.uri, "runs", "show", "nope")[0] == 3
    assert run("-c", lake.uri, "runs", "nope")[0] == 3


def test_directory_has_no_runs(tmp_path):
    mooring.connect(tmp_path / "plain").create_table("t", [{"a": 1}])
    with pytest.raises(UnsupportedError):
        list_runs(mooring.connect(tmp_path / "plain"))


def test_deltacat_layout_keeps_runs(plain, tmp_path, write):
    lake = mooring.connect(f"metastore+{tmp_path / 'cat'}", dialect="deltacat")
    lake.create_namespace("shop")
    text = plain.read_text().replace("catalog: metastore+lake\n", "")
    report, _ = do(lake, write("other.yaml", text))
    assert list_runs(mooring.connect(lake.uri)) == [report.record]
    assert lake.list_namespaces() == ["shop"]


# -- the plan --------------------------------------------------------------------------------------


def test_dry_run_shows_the_plan_and_changes_nothing(lake, plain):
    before = lake.metastore.chain.refresh()
    code, shown = run("run", plain, "--dry-run", "-o", "json")
    told = json.loads(shown)
    assert (code, told["state"], told["pipeline"]) == (0, "to be done", "shop")
    parts = [(one["part"], one["name"], one["what"]) for one in told["plan"]]
    assert parts[2:] == [
        ("output", "shop$orders", "make it, upsert, from orders"),
        ("output", "shop$items", "make it, append, from items"),
    ]
    assert told["plan"][0]["version"] == "1 file"
    assert told["plan"][0]["size"] == "20 B"
    assert lake.metastore.chain.refresh() == before
    with pytest.raises(MooringError, match="no items"):
        do(lake, before_write=lambda name: name == "items" and fail(name))
    told = json.loads(run("run", plain, "--dry-run", "-o", "json")[1])
    assert told["state"] == "failed: running it goes on"
    assert told["plan"][2]["what"] == "make it, upsert, written by an earlier try, from orders"
    do(lake)
    code, shown = run("run", plain, "--dry-run")
    assert "done: running it changes nothing" in shown
    # Nothing is to be done, so that Spark does not start.
    code, shown = run("run", plain)
    assert (code, "is done already: nothing changed" in shown) == (0, True)
    told = json.loads(run("run", plain, "-o", "json")[1])
    assert (told["is_new"], told["state"]) == (False, "done")


def test_run_refuses_before_spark_starts(lake, plain, write):
    code, shown = run("-c", "metastore+other", "run", plain)
    assert (code, "two catalogs are named" in shown) == (2, True)
    code, shown = run("run", plain, "--param", "x=1")
    assert (code, "has no parameter 'x'" in shown) == (2, True)
    code, shown = run("run", plain, "-p", "x")
    assert (code, "a parameter is KEY=VALUE" in shown) == (2, True)
    code, shown = run("run", write("bad.yaml", "name: [\n"))
    assert (code, "line 2, column 1: this is no YAML" in shown) == (2, True)
    assert run("run", "nope.yaml")[0] == 3
