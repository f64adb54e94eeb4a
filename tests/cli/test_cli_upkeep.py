"""``mooring table``: compact, cleanup, indexes and backfills by a function."""

from __future__ import annotations

import json

import pytest

import mooring
from mooring.tables.draft import draft_for
from mooring.tables.pending import PendingRun
from tests.upkeep.tables import make_table, numbers, unnamed_files

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
FUNCTION = (
    "import pyarrow.compute as pc\ndef double(batch):\n    return pc.multiply(batch['id'], 2)\n"
)


@pytest.fixture
def table(tmp_path):
    return make_table(mooring.connect(tmp_path / "lake"), "ships")


@pytest.fixture
def on(run, tmp_path, table):
    def invoke(*args):
        return run("-c", tmp_path / "lake", "table", *args)

    return invoke


def leave(table, run):
    """Write what a lost worker leaves."""
    handle = table.handle
    draft = draft_for(handle.location, handle.options, run, handle.open())
    draft.write(numbers(1000, 1010).to_reader())
    return PendingRun(handle.place, run)


def test_a_dry_run_tells_what_would_go_and_changes_nothing(on, table):
    leave(table, "lost")
    told = on(
        "cleanup", "ships", "--keep", "1", "--runs-older-than", "0s", "--dry-run", "-o", "json"
    )
    versions, run = json.loads(told.stdout)
    assert (versions["item"], versions["action"]) == ("3 old versions", "delete")
    assert (run["item"], run["state"], run["action"]) == ("run lost", "undecided", "delete")
    (path,) = run["files"]
    assert path.startswith("data/")
    assert run["size"] > 0
    assert len(table.versions()) == 4
    people = on("cleanup", "ships", "--dry-run")
    assert "would delete 0 old versions of 'ships' and what 0 runs left" in people.stderr
    assert "keep" in people.stdout


def test_cleanup_asks_and_then_deletes(on, table):
    leave(table, "lost")
    young = leave(table, "young")
    command = ["cleanup", "ships", "--run", "lost"]
    refused = on(*command)
    assert refused.exit_code == REFUSED
    assert "--yes" in refused.stderr
    done = on(*command, "--yes", "-o", "json")
    assert json.loads(done.stdout)["runs_ended"] == ["lost"]
    told = on("cleanup", "ships")
    assert told.exit_code == DONE
    assert "left run young alone, which is undecided" in told.stdout + told.stderr
    young.claim()
    stuck = on("cleanup", "ships", "--run", "young", "-o", "json")
    assert json.loads(stuck.stdout)["runs_kept"] == [{"run": "young", "state": "stuck"}]
    assert on("cleanup", "ships", "--run", "young", "--yes").exit_code == DONE
    assert unnamed_files(table) == set()
    assert on("cleanup", "ships", "--run", "young").exit_code != DONE


def test_versions_go_with_yes(on, table):
    told = json.loads(on("cleanup", "ships", "--keep", "2", "--yes", "-o", "json").stdout)
    assert (told["result"], told["versions_deleted"], told["runs_ended"]) == ("cleaned", 2, [])
    assert len(table.versions()) == 2


def test_a_function_fills_a_new_column(on, table, tmp_path):
    (tmp_path / "f.py").write_text(FUNCTION)
    told = on("column", "backfill", "ships", "y", "--function", "f.py:double", "--reads", "id")
    assert told.exit_code == DONE, told.stderr
    assert "filled column 'y' of 'ships' in 400 rows" in told.stdout + told.stderr
    assert table.count("y = id * 2") == 400
    typed = on("column", "backfill", "ships", "z", "--function", "f.py:double", "--type", "double")
    assert typed.exit_code == DONE, typed.stderr
    assert str(table.schema.field("z").type) == "double"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--reads", "id"], "--reads is for a column that a Python function computes"),
        (["--spark"], "--spark is for a column that a Python function computes"),
        (["--function", "f.py:x", "--expression", "id"], "give one of them"),
        (["--function", "nowhere.py:x"], "'nowhere.py' cannot be read"),
    ],
)
def test_what_makes_no_sense_for_a_backfill_is_told(on, options, told):
    result = on("column", "backfill", "ships", "x", *options)
    assert result.exit_code == USAGE
    assert told in result.stderr


def test_compaction_of_the_program_is_that_of_the_library(on, table):
    told = json.loads(on("compact", "ships", "-o", "json").stdout)
    assert (told["fragments_removed"], told["fragments_added"]) == (4, 1)
    assert told["version"] == table.version


@pytest.mark.interop
def test_spark_keeps_a_table_up_for_the_program(on, table, spark):
    """The session is there already, so the commands use it and leave it."""
    for command in (["index", "create", "ships", "id", "--spark"], ["compact", "ships", "--spark"]):
        told = on(*command)
        assert told.exit_code == DONE, told.stderr
    assert table.indexes.get("id_idx").rows_indexed == 400
    assert len(table.to_lance().get_fragments()) == 1
    assert spark.range(3).count() == 3
