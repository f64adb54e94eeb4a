"""``mooring compact``: plans, rounds, limits, and what it says no to."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table
from mooring.cli.sizes import parse_size
from mooring.errors import InvalidInputError

SCHEMA = pa.schema([("region", pa.string()), ("id", pa.int64()), ("v", pa.int64())])


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    uri = f"metastore+{tmp_path / 'meta'}"
    lake = mooring.connect(uri, author="maker")
    lake.create_namespace("shop")
    table = create_change_table(
        lake, "shop$orders", SCHEMA, keys=["region", "id"], partition_by=["region"], buckets=2
    )
    for number in range(4):
        table.upsert([{"region": "north", "id": one, "v": number} for one in range(10)])
    table.upsert([{"region": "south", "id": 1, "v": 0}])
    few = create_change_table(lake, "shop$few", SCHEMA, properties={"compaction.deltas": "2"})
    for number in range(2):
        few.append([{"region": "x", "id": number, "v": 0}])
    lake.create_table("shop$lance", [{"a": 1}])
    return uri


@pytest.fixture
def compact(run, uri):
    """Run the command on the metastore."""

    def invoke(*args):
        return run("-c", uri, "compact", *args)

    return invoke


@pytest.fixture
def told(compact):
    """Run the command and return what it tells programs."""

    def invoke(*args):
        found = compact("-o", "json", *args)
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    return invoke


def test_plan_tells_what_is_pending_and_changes_nothing(told, compact):
    few, north, south = told("--plan", "--deltas", "4")
    assert (few["table"], few["action"], few["deltas"]) == ("shop$few", "nothing", 2)
    shown = {key: north[key] for key in ("partition", "action", "deltas", "files", "rewrite", "of")}
    assert shown == {
        "partition": "north",
        "action": "merge",
        "deltas": 4,
        "files": 4,
        "rewrite": 2,
        "of": 2,
    }
    assert north["bytes"] == north["read"] > 0
    assert (south["partition"], south["action"], south["rewrite"]) == ("south", "nothing", 0)
    shown = compact("shop$orders", "--plan", "--deltas", "4").stdout
    assert shown.splitlines()[0].split()[:4] == ["TABLE", "PARTITION", "ACTION", "DELTAS"]
    assert told("--rounds") == []


def test_all_tables_that_need_it_are_compacted_by_their_own_limits(told, compact):
    (done,) = told()
    assert (done["table"], done["deltas"], done["rows_out"]) == ("shop$few", 2, 2)
    assert told() == []
    assert "nothing is due in any change table" in compact().stderr


def test_named_table_is_compacted_by_the_limits_given(told, compact):
    found = compact("shop$orders", "--deltas", "3")
    assert found.exit_code == 0
    assert "compacted 'shop$orders': 1 partition, 4 deltas; rewrote 2 of 2 buckets" in found.stderr
    again = compact("shop$orders", "--deltas", "3")
    assert "nothing is due in 'shop$orders': --plan shows what is pending" in again.stderr
    (south,) = told("shop$orders", "--level", "1")
    assert (south["partition"], south["level"]) == ("south", 1)
    full = told("shop$orders", "--full", "--target-size", "1MiB")
    assert {(one["partition"], one["level"], one["round"]) for one in full} == {
        ("north", 2, 2),
        ("south", 2, 2),
    }
    assert [one["round"] for one in told("shop$orders", "--rounds")] == [2, 1, 2, 1]
    shown = compact("shop$orders", "--rounds").stdout
    assert "40 to 10" in shown
    assert "gather" in shown


def test_bytes_and_files_make_a_round_due(told):
    assert [one["action"] for one in told("shop$orders", "--plan", "--bytes", "3kB")] == [
        "merge",
        "nothing",
    ]
    assert [one["action"] for one in told("shop$orders", "--plan", "--files", "1")] == [
        "merge",
        "merge",
    ]


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (("shop$lance",), 2, "meta table compact 'shop$lance'"),
        (("shop$order",), 3, "did you mean 'shop$orders'"),
        (("--plan", "--rounds"), 2, "name one"),
        (("--full", "--level", "1"), 2, "leave --level out"),
        (("--bytes", "much"), 2, "is no size"),
        (("--no-spark", "--master", "local[1]"), 2, "leave one out"),
    ],
)
def test_what_makes_no_sense_is_refused(compact, args, code, why):
    found = compact(*args)
    assert found.exit_code == code
    assert why in found.stderr


def test_table_that_cannot_be_compacted_does_not_stop_others(uri, compact):
    lake = mooring.connect(uri)
    create_change_table(lake, "shop$bad", SCHEMA)
    lake.update_table("shop$bad", {"compaction.deltas": "many"})
    found = compact()
    assert found.exit_code != 0
    assert "left 'shop$bad' alone" in found.stderr
    assert "compacted 'shop$few'" in found.stderr


def test_table_of_a_directory_is_named_as_what_it_is(run, lake):
    found = run("-c", lake, "compact", "flights")
    assert found.exit_code == 2
    assert f"mooring -c {lake} table compact 'flights'" in found.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("64MB", 64_000_000), ("1.5 GiB", 3 * 2**29), ("2k", 2000)]
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1XB", "0", "1 2"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InvalidInputError):
        parse_size(text)
