"""``mooring changes``: tables of changes made, written, read, deleted from and altered."""

import json
import os
import shutil

import pyarrow.parquet as pq
import pytest

import mooring

FIRST = "id,day,item,price\n1,2013-01-05,pen,1.50\n2,2013-01-06,cup,3.25\n3,2013-02-01,hat,10.00\n"
SECOND = "op,id,day,item\nu,1,2013-01-05,pencil\nd,2,2013-01-06,\nI,4,2013-02-02,bag\n"
COLUMNS = "id int64 not null, day date32, item string, price decimal(10,2)"


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="session")
def _changes_template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "changes"
    catalog = mooring.connect(f"metastore+{root}", author="maker")
    catalog.create_namespace("shop")
    return root


@pytest.fixture
def on(run, _changes_template, tmp_path):
    root = shutil.copytree(_changes_template, tmp_path / "lake")
    (tmp_path / "first.csv").write_text(FIRST)
    (tmp_path / "second.csv").write_text(SECOND)

    def invoke(*args, **options):
        return run("-c", f"metastore+{root}", *args, **options)

    return invoke


@pytest.fixture
def orders(on):
    options = ["--schema", COLUMNS, "--key", "id,day", "--partition-by", "month(day)"]
    done = on("changes", "create", "shop$orders", *options, "--buckets", "4")
    assert done.exit_code == 0, done.output
    assert on("changes", "write", "shop$orders", "first.csv", "--type", "upsert").exit_code == 0
    return "shop$orders"


def data(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def read(on, *options):
    return data(on("changes", "read", "shop$orders", *options, "-o", "json"))


def test_rows_of_files_are_merged_and_read_at_any_position(on, orders):
    done = on("changes", "write", orders, "second.csv", "--type-column", "op", "-m", "week 2")
    assert done.exit_code == 0
    assert "wrote 3 rows to 'shop$orders': position 3" in done.stderr
    now = [(row["id"], row["item"], row["price"]) for row in read(on)]
    assert sorted(now) == [(1, "pencil", "1.50"), (3, "hat", "10.00"), (4, "bag", None)]
    before = read(on, "--at-position", "1", "--where", "price > 2", "--columns", "id,item")
    assert sorted(before, key=str) == [{"id": 2, "item": "cup"}, {"id": 3, "item": "hat"}]
    log = data(on("changes", "log", orders, "-o", "json"))
    assert [(one["position"], one["type"], one["rows"], one["message"]) for one in log] == [
        (3, "upsert", 2, "week 2"),
        (2, "delete", 1, "week 2"),
        (1, "upsert", 3, None),
    ]
    txn = data(on("txn", "list", "-o", "json"))[1]["id"]
    assert len(read(on, "--at-txn", txn)) == 3
    assert len(read(on, "--as-of", log[0]["at"].replace("20", "21", 1))) == 3


def test_people_see_rows_and_whether_there_are_more(on, orders):
    done = on("changes", "read", orders, "-n", "1")
    assert done.stdout.splitlines()[0].split() == ["id", "day", "item", "price"]
    assert "1 row; more follow" in done.stderr
    assert "no rows" in on("changes", "read", orders, "--where", "id = 9").stderr


def test_a_run_of_a_name_counts_once(on, orders):
    for expected in (2, 2):
        args = ["first.csv", "--type", "upsert", "--run-id", "week"]
        done = data(on("changes", "write", orders, *args, "-o", "json"))
        assert done["position"] == expected
    assert done["result"] == "unchanged"


def test_a_table_is_listed_and_shown(on, orders):
    (row,) = data(on("changes", "list", "-o", "json"))
    assert row == {
        "name": "shop$orders",
        "position": 1,
        "keys": "id, day",
        "partitions": "month(day)",
        "buckets": "4",
    }
    shown = data(on("changes", "show", orders, "-o", "json"))
    told = (shown["keys"], shown["order"], shown["partition_by"], shown["buckets"])
    assert told == (["id", "day"], None, ["month(day)"], 4)
    assert [one["type"] for one in shown["columns"]][-1] == "decimal128(10, 2)"
    assert [(one["partition"], one["rows"], one["pending"]) for one in shown["partitions"]] == [
        ("2013-01", 2, 1),
        ("2013-02", 1, 1),
    ]
    assert "2013-02" in on("changes", "show", orders).stdout


def test_a_table_can_be_made_like_a_file(on):
    done = on("changes", "create", "shop$like", "--like", "first.csv", "--key", "id")
    assert done.exit_code == 0, done.output
    shown = data(on("changes", "show", "shop$like", "-o", "json"))
    assert [(one["name"], one["type"]) for one in shown["columns"]] == [
        ("id", "int64"),
        ("day", "date32[day]"),
        ("item", "string"),
        ("price", "double"),
    ]


def test_deleting_shows_a_plan_and_asks(on, orders):
    where = ["--where", "item = 'cup' OR price >= 10"]
    dry = data(on("changes", "delete", orders, *where, "--dry-run", "-o", "json"))
    assert dry == [{"table": orders, "action": "delete", "rows": 2, "position": 1}]
    refused = on("changes", "delete", orders, *where)
    assert (refused.exit_code, "say --yes" in refused.stderr) == (5, True)
    done = data(on("changes", "delete", orders, *where, "--yes", "-o", "json"))
    assert (done["rows"], done["position"]) == (2, 2)
    assert [row["id"] for row in read(on)] == [1]
    again = on("changes", "delete", orders, *where, "--yes")
    assert "nothing changed in 'shop$orders'" in again.stderr


def test_truncate_and_replace(on, orders, tmp_path):
    assert on("changes", "truncate", orders).exit_code == 5
    done = on("changes", "truncate", orders, "--partition", "2013-02", "--yes")
    assert (done.exit_code, "position 2" in done.stderr) == (0, True)
    assert sorted(row["id"] for row in read(on)) == [1, 2]
    wrong = on("changes", "truncate", orders, "--partition", "1999-01", "--yes")
    assert (wrong.exit_code, "they are 2013-01, 2013-02" in wrong.stderr) == (2, True)
    (tmp_path / "third.csv").write_text("id,day\n7,2013-01-09\n")
    assert on("changes", "replace", orders, "third.csv", "--only-touched", "--yes").exit_code == 0
    assert [row["id"] for row in read(on)] == [7]
    assert on("changes", "replace", orders, "first.csv", "--yes").exit_code == 0
    assert sorted(row["id"] for row in read(on)) == [1, 2, 3]
    log = data(on("changes", "log", orders, "-o", "json"))
    assert [one["type"] for one in log] == ["replacement"] * 3 + ["upsert"]


def test_columns_are_altered(on, orders):
    options = ["--add", "stock int32 = 7", "--rename", "item=article", "--drop", "price"]
    done = on("changes", "alter", orders, *options)
    assert "its columns are id, day, article, stock" in done.stderr
    assert read(on, "--where", "id = 1") == [
        {"id": 1, "day": "2013-01-05", "article": "pen", "stock": 7}
    ]
    assert on("changes", "alter", orders, "--widen", "stock=int64").exit_code == 0
    refused = on("changes", "alter", orders, "--widen", "stock=int8")
    assert (refused.exit_code, "may not fit" in refused.stderr) == (2, True)
    assert on("changes", "alter", orders).exit_code == 2


def test_an_alteration_is_done_whole_or_not_at_all(on, orders):
    refused = on("changes", "alter", orders, "--rename", "item=article", "--drop", "nope")
    assert (refused.exit_code, "no column 'nope'" in refused.stderr) == (2, True)
    columns = data(on("changes", "show", orders, "-o", "json"))["columns"]
    assert [one["name"] for one in columns] == ["id", "day", "item", "price"]


def test_rows_go_to_a_file(on, orders, tmp_path):
    done = on("changes", "read", orders, "--to", "out.parquet")
    assert (done.exit_code, "wrote 3 rows" in done.stderr) == (0, True)
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 3


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["create", "shop$t", "--schema", "id"], 2, "write its name and type"),
        (["create", "shop$t", "--schema", "id int9"], 2, "is no type"),
        (["create", "shop$t"], 2, "--schema"),
        (["create", "shop$orders", "--schema", "id int64"], 4, "already"),
        (["create", "nope$t", "--schema", "id int64"], 3, "no namespace"),
        (["create", "t", "--schema", "id int64"], 2, "tables of a metastore lie in a namespace"),
        (
            ["create", "shop$t", "--schema", "id int64", "--property", "compaction.deltas=x"],
            2,
            "'compaction.deltas' is a number, not 'x'",
        ),
        (["read", "shop$order"], 3, "did you mean 'shop$orders'"),
        (["read", "shop$orders", "--where", "nope = 1"], 2, "no column 'nope'"),
        (["read", "shop$orders", "--at-position", "9"], 2, "the newest is 1"),
        (["read", "shop$orders", "--as-of", "noon"], 2, "no date or time"),
        (["write", "shop$orders", "missing.csv"], 3, "missing.csv"),
        (["write", "shop$orders", "first.csv"], 2, "has keys: say what the rows do"),
        (["write", "shop$orders", "second.csv", "--type", "append"], 2, "no column 'op'"),
        (["write", "shop$orders", "first.csv", "--type-column", "op"], 2, "no column 'op'"),
        (["write", "shop$orders", "bad.csv", "--type", "upsert"], 2, "record 2"),
        (["write", "shop$orders", "odd.csv", "--type-column", "op"], 2, "'x' in column 'op'"),
        (["write", "shop$orders", "twice.csv", "--type", "upsert"], 4, "(id=8 and day=2013-01-05)"),
        (["write", "shop$orders", "empty.csv", "--type", "upsert"], 2, "they have no columns"),
        (["replace", "shop$orders", "first.csv", "--partition", "x", "--dry-run"], 2, "'x'"),
        (["write", "shop$orders", "both.csv", "--type-column", "op"], 4, "have the same id, day"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(on, orders, tmp_path, args, code, why):
    (tmp_path / "bad.csv").write_text("id,day\n8,2013-01-05\nnine,2013-01-05\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "odd.csv").write_text("id,day,op\n8,2013-01-05,x\n")
    (tmp_path / "twice.csv").write_text("id,day\n8,2013-01-05\n8,2013-01-05\n")
    (tmp_path / "both.csv").write_text("id,day,op\n8,2013-01-05,u\n8,2013-01-05,d\n")
    done = on("changes", *args)
    assert (done.exit_code, why in done.stderr) == (code, True), done.output
    assert data(on("changes", "show", orders, "-o", "json"))["position"] == 1


def test_a_key_in_two_files_does_not_come_twice_by_a_replacement(on, tmp_path):
    columns = "id int64, seen int64"
    made = on("changes", "create", "shop$t", "--schema", columns, "--key", "id", "--order", "seen")
    assert made.exit_code == 0, made.output
    for name, seen in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.csv").write_text(f"id,seen\n7,{seen}\n")
    refused = on("changes", "replace", "shop$t", "one.csv", "two.csv", "--yes")
    assert (refused.exit_code, "have the same id" in refused.stderr) == (4, True), refused.output
    assert data(on("changes", "show", "shop$t", "-o", "json"))["position"] == 0


def test_vacuum_shows_and_forgets_old_positions_first(on, orders):
    assert on("changes", "replace", orders, "first.csv", "--yes").exit_code == 0
    plan = data(on("vacuum", "--older-than", "0s", "--dry-run", "-o", "json"))
    assert [(one["path"], one["action"], one["files"]) for one in plan] == [(orders, "forget", 2)]
    assert plan[0]["why"] == "2 changes and 0 rounds before position 2"
    assert len(read(on, "--at-position", "1")) == 3
    done = data(on("vacuum", "--older-than", "0s", "--yes", "-o", "json"))
    assert [one["action"] for one in done] == ["forgot", "deleted", "deleted"]
    gone = on("changes", "read", orders, "--at-position", "1")
    assert (gone.exit_code, "is tidied away" in gone.stderr) == (2, True)
    assert len(read(on)) == 3
    assert data(on("vacuum", "--older-than", "7d", "--dry-run", "-o", "json")) == []


def test_what_is_for_lance_tables_names_the_verbs_for_changes(on, orders):
    for args in (["ingest", "first.csv", "--into", orders], ["table", "query", orders]):
        refused = on(*args)
        assert refused.exit_code == 3, refused.output
        assert "is a table of changes, and none of Lance" in refused.stderr
        assert "mooring -c metastore+" in refused.stderr
        assert " changes write 'shop$orders'" in refused.stderr
    assert data(on("changes", "show", orders, "-o", "json"))["position"] == 1
    assert "1 change table is in namespace 'shop': mooring -c" in on("ls", "shop").stderr


def test_the_verbs_of_tables_work_on_change_tables(on, orders):
    plan = data(on("table", "drop", orders, "--dry-run", "-o", "json"))
    assert [(one["table"], one["action"]) for one in plan] == [(orders, "drop")]
    assert on("table", "drop", orders, "--yes").exit_code == 0
    hint = on("changes", "read", orders)
    assert (hint.exit_code, "lake table undrop 'shop$orders'\"" in hint.stderr) == (3, True)
    assert [one["name"] for one in data(on("trash", "list", "-o", "json"))] == [orders]
    assert on("table", "undrop", orders).exit_code == 0
    assert on("table", "rename", orders, "shop$sales").exit_code == 0
    assert [one["name"] for one in data(on("changes", "list", "-o", "json"))] == ["shop$sales"]
    assert on("table", "drop", "shop$sales", "--yes").exit_code == 0
    assert on("trash", "purge", "shop$sales", "--yes").exit_code == 0
    assert data(on("changes", "list", "-o", "json")) == []


def test_a_profile_keeps_a_metastore_by_a_relative_path(run, on, orders):
    assert run("profile", "set", "default", "metastore+lake").exit_code == 0
    assert [one["name"] for one in data(run("changes", "list", "-o", "json"))] == [orders]
