"""Indexes and columns by the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.cli.closeness import names_in

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
MOORING = str(Path(sys.executable).with_name("mooring"))


@pytest.fixture
def root(tmp_path):
    return tmp_path / "fleet"


@pytest.fixture
def ships(root):
    rows = [{"id": n, "name": f"Ship {n}", "v": [n / 9, 1.0]} for n in range(4)]
    schema = pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("v", pa.list_(pa.float32(), 2))]
    )
    return mooring.connect(root, author="maker").create_table("ships", rows, schema=schema)


@pytest.fixture
def on(run, root, ships):
    def invoke(*args):
        return run("-c", root, "table", *args)

    return invoke


# -- indexes ---------------------------------------------------------------------------------------


def test_an_index_lives_its_life(on, ships):
    assert on("index", "list", "ships").stderr == "'ships' has no indexes\n"
    created = on("index", "create", "ships", "id")
    assert created.stderr == "built index 'id_idx' of 'ships': version 2\n"
    ships.insert([{"id": 9, "name": "New", "v": [0.0, 0.0]}], schema=ships.schema)
    lines = on("index", "list", "ships").stdout.splitlines()
    assert lines[1].split()[:5] == ["id_idx", "BTree", "id", "4", "1"]
    (row,) = json.loads(on("index", "list", "ships", "-o", "json").stdout)
    assert (row["columns"], row["rows_indexed"], row["rows_unindexed"]) == (["id"], 4, 1)
    stats = json.loads(on("index", "stats", "ships", "id_idx", "-o", "json").stdout)
    assert (stats["type"], stats["segments"]) == ("BTree", 1)
    dropped = on("index", "drop", "ships", "id_idx")
    assert dropped.stderr == "dropped index 'id_idx' of 'ships': version 4\n"
    assert ships.indexes.list() == []


def test_vectors_and_words_are_indexed(on):
    given = ["--set", "distance_type=cosine", "--set", "num_partitions=1", "--name", "near"]
    made = on("index", "create", "ships", "v", "--type", "IVF_FLAT", *given, "-o", "json")
    assert json.loads(made.stdout)["index"] == "near"
    assert on("index", "create", "ships", "name", "--type", "fts").exit_code == DONE
    rows = json.loads(on("index", "list", "ships", "-o", "json").stdout)
    assert {row["name"]: row["distance"] for row in rows} == {"near": "cosine", "name_idx": None}
    assert "(cosine)" in on("index", "list", "ships").stdout
    result = on("query", "ships", "--text", "ship", "--columns", "id", "-o", "ndjson")
    assert len(result.stdout.splitlines()) == 4


def test_an_index_is_replaced_on_demand(on):
    create = ["index", "create", "ships", "id", "--name", "n"]
    assert on(*create).exit_code == DONE
    assert on(*create).exit_code == CONFLICT
    assert on(*create, "--replace").exit_code == DONE


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_added_altered_filled_and_dropped(on, ships, root):
    result = on(
        "column", "add", "ships", "twice=id * 2", "--type", "note=string", "--type", "w=float[3]"
    )
    undo = f"undo: mooring -c {root} table restore ships 1"
    assert result.stderr == f"added columns 'twice', 'note', 'w' of 'ships': version 2; {undo}\n"
    assert ships.schema.field("w").type == pa.list_(pa.float32(), 3)
    assert ships.count("twice = 6") == 1
    assert (
        on("column", "alter", "ships", "twice", "--rename", "double", "--type", "int32").exit_code
        == DONE
    )
    assert ships.schema.field("double").type == pa.int32()
    filled = on(
        "column", "backfill", "ships", "note", "--expression", "upper(name)", "-w", "id > 1"
    )
    assert "filled column 'note' of 'ships' in 2 rows: version " in filled.stderr
    record = json.loads(on("column", "drop", "ships", "double", "w", "-o", "json").stdout)
    assert (record["result"], record["columns"]) == ("dropped", ["double", "w"])
    assert ships.schema.names == ["id", "name", "v", "note"]


def test_a_computed_column_keeps_its_expression(on, ships):
    on("column", "add", "ships", "twice=id * 2", "--computed")
    assert ships.count("twice IS NULL") == 4
    record = json.loads(on("column", "backfill", "ships", "twice", "-o", "json").stdout)
    assert record["rows"] == 4
    assert ships.count("twice = 6") == 1


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said", "args"),
    [
        (USAGE, "Usage: mooring table index", ["index"]),
        (USAGE, "not a type of index", ["index", "create", "ships", "id", "--type", "MAGIC"]),
        (USAGE, "KEY=VALUE", ["index", "create", "ships", "id", "--set", "m"]),
        (USAGE, "has no 'm'", ["index", "create", "ships", "id", "--set", "m=3"]),
        (USAGE, "nothing to add", ["column", "add", "ships"]),
        (USAGE, "KEY=VALUE", ["column", "add", "ships", "n"]),
        (USAGE, "'thing' is no type", ["column", "add", "ships", "--type", "n=thing"]),
        (USAGE, "nothing is to change", ["column", "alter", "ships", "id"]),
        (USAGE, "name", ["column", "add", "ships", "name=id"]),
        (NOT_FOUND, "did you mean 'name'?", ["index", "create", "ships", "nam"]),
        (NOT_FOUND, "has no index 'x'; there is none", ["index", "drop", "ships", "x"]),
        (NOT_FOUND, "has no index 'x'", ["index", "stats", "ships", "x"]),
        (NOT_FOUND, "has no branch 'x'", ["index", "list", "ships", "--branch", "x"]),
        (NOT_FOUND, "did you mean 'name'?", ["column", "drop", "ships", "nmae"]),
        (NOT_FOUND, "name", ["column", "add", "ships", "n=nmae"]),
        (NOT_FOUND, "did you mean 'id'?", ["column", "alter", "ships", "idd", "--rename", "x"]),
        (REFUSED, "read-only", ["index", "create", "ships", "id", "--read-only"]),
        (REFUSED, "read-only", ["column", "drop", "ships", "id", "--read-only"]),
    ],
)
def test_a_mistake_is_told(on, ships, code, said, args):
    result = on(*args)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.lower().count("did you mean") <= 1
    assert ships.version == 1


# -- the shell -------------------------------------------------------------------------------------


def test_the_shell_completes_names_of_a_table(root, ships):
    ships.tags.create("first", 1)
    ships.branches.create("dev")
    ships.indexes.create("id")
    assert names_in(ships, "branches") == ["main", "dev"]
    assert names_in(ships, "indexes") == ["id_idx"]
    asked = {
        "table tag delete ships ": {"first"},
        "table query ships --columns ": {"id", "name", "v"},
    }
    for words, names in asked.items():
        line = f"mooring -c {root} {words}"
        environ = {
            **os.environ,
            "_MOORING_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        done = subprocess.run([MOORING], env=environ, capture_output=True, text=True, check=False)
        assert set(done.stdout.split()) == names, words
