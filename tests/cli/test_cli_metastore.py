"""The program on a metastore: names and tables as elsewhere, transactions, objects, vacuum."""

import csv
import io
import json
import os
import shutil

import pytest

import mooring
from tests.cli.conftest import ROWS

EXIT = {"failed": 1, "usage": 2, "not found": 3, "conflict": 4, "refused": 5}


@pytest.fixture(scope="session")
def _metastore_template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "metastore"
    catalog = mooring.connect(f"metastore+{root}", author="maker")
    catalog.create_namespace("shop", {"owner": "ada"})
    orders = catalog.create_table("shop$orders", ROWS)
    orders.insert(ROWS)
    catalog.create_table("shop$stock", ROWS)
    catalog.declare_table("shop$soon")
    return root


@pytest.fixture
def root(_metastore_template, tmp_path):
    return shutil.copytree(_metastore_template, tmp_path / "lake")


@pytest.fixture
def on(run, root):
    def invoke(*args, **options):
        return run("-c", f"metastore+{root}", *args, **options)

    return invoke


def rows_of(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_init_makes_a_metastore_and_shows_its_settings(run, tmp_path):
    done = run("init", f"metastore+{tmp_path / 'new'}", "--default-ttl", "3d")
    assert (done.exit_code, "dropped tables stay for 3 d" in done.stderr) == (0, True)
    assert "adopt" not in done.output
    assert rows_of(run("ls", f"metastore+{tmp_path / 'new'}", "-a", "-o", "json")) == []


@pytest.mark.parametrize("flag", ["--shared", "--no-managed-versions"])
def test_settings_that_a_metastore_does_not_have_are_refused(run, tmp_path, flag):
    done = run("init", f"metastore+{tmp_path / 'new'}", flag)
    assert done.exit_code != 0
    assert "a metastore" in done.stderr
    assert not (tmp_path / "new" / "txn").exists()


def test_a_metastore_that_is_not_there_is_named_with_what_makes_it(run, tmp_path):
    done = run("-c", f"metastore+{tmp_path / 'none'}", "ls")
    assert done.exit_code == EXIT["not found"]
    assert f"mooring init metastore+{tmp_path / 'none'}" in done.stderr


def test_a_catalog_is_opened_as_what_it_is(run, root, lake_of_tables):
    done = run("ls", root)
    assert f"open it as 'metastore+{root}'" in done.stderr
    other = run("ls", f"metastore+{lake_of_tables}")
    assert f"open it as '{lake_of_tables}'" in other.stderr
    assert {done.exit_code, other.exit_code} == {EXIT["usage"]}


@pytest.fixture
def lake_of_tables(tmp_path):
    mooring.connect(tmp_path / "directory").create_table("t", ROWS)
    return tmp_path / "directory"


def test_names_are_listed_and_described(on):
    assert on("ls", "shop").stdout.split() == ["orders", "soon", "stock"]
    assert "1 namespace is in it" in on("ls").stderr
    assert on("namespace", "list").stdout.split() == ["shop"]
    tree = on("namespace", "tree").stdout.splitlines()[1:]
    assert [line.strip() for line in tree] == ["shop/", "orders", "soon", "stock"]
    found = rows_of(on("table", "describe", "shop$orders", "-o", "json"))
    assert (found["version"], found["rows"]) == (2, 4)


def test_a_table_is_dropped_listed_undropped_renamed_and_purged(on):
    done = on("table", "drop", "shop$orders", "--ttl", "0s")
    assert "undo: mooring -c metastore+" in done.stderr
    [row] = rows_of(on("trash", "list", "-o", "json"))
    assert (row["name"], row["expired"]) == ("shop$orders", True)
    on("table", "undrop", "shop$orders", "--to", "shop$back")
    assert on("table", "count", "shop$back").stdout.strip() == "4"
    assert "renamed" in on("table", "rename", "shop$back", "shop$orders").stderr
    on("table", "drop", "shop$orders", "--ttl", "0s")
    assert on("trash", "purge", "--yes").exit_code == 0
    assert rows_of(on("ls", "-a", "-o", "json"))[0]["name"] == "shop$soon"


def test_a_namespace_is_dropped_with_all_in_it_and_comes_back(on):
    refused = on("namespace", "drop", "shop")
    assert refused.exit_code == EXIT["conflict"]
    assert on("namespace", "drop", "shop", "--cascade", "--yes").exit_code == 0
    states = {row["name"]: row["state"] for row in rows_of(on("ls", "-a", "-o", "json"))}
    assert set(states.values()) == {"dropped"}
    assert "namespace undrop shop" in on("table", "describe", "shop$orders").stderr
    assert on("namespace", "undrop", "shop").exit_code == 0
    assert on("ls", "shop").stdout.split() == ["orders", "soon", "stock"]


def test_transactions_are_listed_and_shown(on):
    listed = rows_of(on("txn", "list", "-o", "json"))
    assert [row["message"] for row in listed][::-1] == [
        "create namespace shop",
        "create table shop$orders",
        "version 2 of table shop$orders",
        "create table shop$stock",
        "declare table shop$soon",
    ]
    assert {row["by"] for row in listed} == {"maker"}
    shown = rows_of(on("txn", "show", listed[2]["id"], "-o", "json"))
    assert [(one["operation"], one["kind"], one["object"]) for one in shown["changes"]] == [
        ("update", "partition", "shop$orders$1$lance$main"),
        ("create", "delta", "shop$orders$1$lance$main$2"),
    ]
    assert "version 2 of table" in on("txn", "show", listed[2]["id"]).stdout
    short = on("txn", "list", "--limit", "2")
    assert len(short.stdout.splitlines()) == 3
    assert "--limit shows more" in short.stderr


def test_an_unknown_transaction_is_not_found(on):
    done = on("txn", "show", "1_2")
    assert done.exit_code == EXIT["not found"]
    assert "no transaction '1_2' is committed" in done.stderr


def test_streams_partitions_and_deltas_of_a_table(on):
    [stream] = rows_of(on("table", "streams", "shop$orders", "-o", "json"))
    assert (stream["format"], stream["state"], stream["partitions"]) == ("lance", "committed", 1)
    assert stream["location"].startswith("_tables/")
    on("table", "branch", "create", "shop$orders", "side")
    parts = rows_of(on("table", "partitions", "shop$orders", "-o", "json"))
    assert sorted((one["values"], one["position"]) for one in parts) == [([], 2), (["side"], 2)]
    deltas = rows_of(on("table", "deltas", "shop$orders", "--partition", "main", "-o", "json"))
    assert [(one["position"], one["by"]) for one in deltas] == [(1, "maker"), (2, "maker")]
    first = rows_of(on("txn", "list", "-o", "json"))[-2]["id"]
    then = on("table", "deltas", "shop$orders", "--as-of", first, "-o", "csv")
    assert [row["position"] for row in csv.DictReader(io.StringIO(then.stdout))] == ["1"]


def test_an_alias_is_one_more_name(on):
    assert on("table", "alias", "shop$orders", "commands").exit_code == 0
    assert on("table", "count", "shop$commands").stdout.strip() == "4"
    taken = on("table", "alias", "shop$orders", "stock")
    assert taken.exit_code == EXIT["conflict"]


def test_history_tells_who_did_what(on):
    on("table", "rename", "shop$orders", "shop$sold")
    done = rows_of(on("table", "history", "shop$sold", "-o", "json"))
    assert [(row["action"], row["by"]) for row in done] == [
        ("create", "maker"),
        ("write", "maker"),
        ("write", "maker"),
        ("rename", "tester"),
    ]


def test_vacuum_shows_and_deletes_what_nobody_names(on, root):
    stray = root / "_data" / "0123" / "part.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x" * 10)
    os.utime(stray, (1_700_000_000, 1_700_000_000))
    done = on("vacuum", "--dry-run", "-o", "json")
    assert [(row["path"], row["bytes"]) for row in rows_of(done)] == [
        ("_data/0123/part.parquet", 10)
    ]
    assert stray.exists()
    assert on("vacuum").exit_code == EXIT["refused"]
    assert "deleted 1" in on("vacuum", "--yes").stderr
    assert not stray.exists()
    assert "nothing to delete" in on("vacuum", "--yes").stderr
    assert on("table", "count", "shop$orders").stdout.strip() == "4"


def test_vacuum_wants_an_age(on):
    done = on("vacuum", "--older-than", "never")
    assert done.exit_code == EXIT["usage"]
    assert "'never' is no age" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("txn", "list"),
        ("vacuum", "--dry-run"),
        ("table", "streams", "t"),
        ("table", "alias", "t", "u"),
    ],
    ids=" ".join,
)
def test_a_directory_has_no_transactions(run, lake_of_tables, words):
    done = run("-c", lake_of_tables, *words)
    assert done.exit_code != 0
    assert "only a metastore has transactions" in done.stderr


def test_sweeping_a_metastore_is_another_verb(on):
    assert "vacuum" in on("trash", "sweep").stderr


def test_doctor_looks_at_a_metastore(on):
    found = {(row["section"], row["name"]): row for row in rows_of(on("doctor", "-o", "json"))}
    assert found["catalog", "mode"]["value"] == "metastore"
    assert found["metastore", "commits"]["value"] == "5"
    assert found["tables", "live"]["value"] == "3"
    assert ("catalog", "adopted") not in found


def test_names_travel_between_metastores(on, run, root, tmp_path):
    assert on("export", tmp_path / "names.jsonl").exit_code == 0
    other = f"metastore+{tmp_path / 'other'}"
    assert run("init", other).exit_code == 0
    shutil.copytree(root / "_tables", tmp_path / "other" / "_tables")
    done = run("-c", other, "import", tmp_path / "names.jsonl")
    assert run("-c", other, "ls", "shop").stdout.split() == ["orders", "stock"], done.output
    assert run("-c", other, "table", "count", "shop$orders").stdout.strip() == "4"
