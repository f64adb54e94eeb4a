"""Rows, counts and schemas of tables, to read and to take away."""

import csv
import datetime as dt
import io
import json
import os
import re
import shutil
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import mooring
from mooring.cli.cells import fit, plain_rows, shorten, show_values
from tests.cli.terminal import on_terminal
from tests.cli.test_cli_processes import _process

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
ART = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), metadata={"lang": "en"}),
        ("embedding", pa.list_(pa.float32(), 8)),
        ("image", pa.binary()),
        ("size", pa.struct([("width", pa.int32()), ("height", pa.int32())])),
        ("made", pa.date32()),
    ]
)


def works(count):
    return [
        {
            "id": number,
            "title": None if number == 1 else f"Work {number}",
            "embedding": [number / 10] * 8,
            "image": b"\x89PNG" * 10,
            "size": {"width": number, "height": 2},
            "made": dt.date(1900 + number % 100, 1, 1),
        }
        for number in range(count)
    ]


@pytest.fixture(scope="session")
def _museum_template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "museum"
    mooring.connect(root, author="maker").create_table("art", works(30), schema=ART)
    return root


@pytest.fixture
def museum(_museum_template, tmp_path):
    return shutil.copytree(_museum_template, tmp_path / "museum")


@pytest.fixture
def art(museum):
    return mooring.connect(museum).table("art")


@pytest.fixture
def on(run, museum):
    def invoke(*args, **options):
        return run("-c", museum, "table", *args, **options)

    return invoke


# -- to read ---------------------------------------------------------------------------------------


def test_people_see_twenty_rows_and_that_there_is_more(on):
    result = on("query", "art", "--columns", "id,title")
    assert result.exit_code == DONE, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 21
    assert lines[:3] == ["id  title", "0   Work 0", "1   null"]
    assert result.stderr == (
        "20 rows; more follow: --limit and --offset choose, --to FILE takes all\n"
    )


def test_a_limit_that_leaves_nothing_out_says_nothing(on):
    result = on("query", "art", "--columns", "id", "-n", "30")
    assert (len(result.stdout.splitlines()), result.stderr) == (31, "")
    result = on("query", "art", "--columns", "id", "-n", "2", "--offset", "28")
    assert (result.stdout, result.stderr) == ("id\n28\n29\n", "")
    result = on("query", "art", "--where", "id > 99")
    assert (len(result.stdout.splitlines()), result.stderr) == (1, "no rows\n")


def test_values_are_shortened(on):
    result = on("query", "art", "--where", "id = 7")
    assert result.stdout.splitlines()[1].split("  ") == [
        "7",
        " Work 7",
        "[0.7, 0.7, … 8 values]",
        "0x89504e4789504e47… 40 B",
        '{"width": 7, "height": 2}',
        "1907-01-01",
    ]


def test_names_of_columns_stay_as_they_are(run, tmp_path):
    """Lance tells "id" from "ID"."""
    mooring.connect(tmp_path / "c").create_table("t", [{"Id": 1, "naïve": "x"}])
    assert run("-c", tmp_path / "c", "table", "query", "t").stdout == "Id  naïve\n1   x\n"


def test_a_wide_table_fits_the_terminal(museum):
    args = ["table", "query", "art", "-c", str(museum), "-n", "3"]
    code, shown = on_terminal(args, COLUMNS="40")
    assert code == DONE
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert {len(line) for line in plain.splitlines() if "│" in line} == {40}
    assert "no room for size, made: choose with --columns" in shown
    assert "…" in shown


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, pa.int64(), "null"),
        ("null", pa.string(), '"null"'),
        ("", pa.string(), '""'),
        (" a", pa.string(), '" a"'),
        ("a\nb\x1b[31m", pa.string(), "a\\nb\\x1b[31m"),
        ("x" * 100, pa.string(), "x" * 59 + "…"),
        ("漢" * 40, pa.string(), "漢" * 29 + "…"),
        (True, pa.bool_(), "yes"),
        (0.1, pa.float32(), "0.1"),
        (float("nan"), pa.float64(), "nan"),
        (1e300, pa.float64(), "1e+300"),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        ([], pa.list_(pa.int8()), "[]"),
        ([1, None], pa.list_(pa.int8()), "[1, null]"),
        (["a", "b"], pa.list_(pa.string()), '["a", "b"]'),
        ([0.123456789] * 128, pa.list_(pa.float32()), "[0.1235, 0.1235, … 128 values]"),
        ([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.list_(pa.float32(), 2)), "[[1, 2], [3, 4]]"),
        (b"", pa.binary(), "0x"),
        (b"abc", pa.binary(3), "0x616263"),
        (b"a" * 2000, pa.large_binary(), "0x6161616161616161… 2.0 kB"),
        ({"a": 1}, pa.struct([("a", pa.int8())]), '{"a": 1}'),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), '[["k", 1]]'),
        (0, pa.timestamp("us", "UTC"), "1970-01-01T00:00:00+00:00"),
        (1, pa.timestamp("ns"), "1970-01-01 00:00:00.000000001"),
        (dt.timedelta(seconds=90), pa.duration("s"), "90.0"),
    ],
)
def test_a_value_is_shown(value, kind, text):
    assert show_values(pa.array([value], kind)) == [text]


def test_encoded_values_are_shown_as_what_they_are():
    assert show_values(pa.array(["a", None, "a"]).dictionary_encode()) == ["a", "null", "a"]
    storage = pa.array([b"0" * 16], pa.binary(16))
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    assert show_values(uuid) == ["30303030-3030-3030-3030-303030303030"]
    tensors = pa.fixed_shape_tensor(pa.float32(), (2,))
    array = pa.ExtensionArray.from_storage(tensors, pa.array([[1, 2]], tensors.storage_type))
    assert show_values(array) == ["[1, 2]"]


def test_tables_are_fitted_by_cutting_the_widest_first():
    kept, lines = fit([["a", "b"], ["x" * 50, "yy"]], 40)
    assert (kept, lines) == ([0, 1], [["a", "b"], ["x" * 30 + "…", "yy"]])
    kept, lines = fit([["a", "heading" * 3, "c"], ["x" * 50, "y", "z" * 9]], 24)
    assert (kept, lines[1][1]) == ([0, 1], "y")
    assert [len(cell) for cell in lines[0]] == [1, 9]
    assert fit([["a"], ["x" * 50]], 3)[0] == [0]
    assert fit([["a", "b"]], 80) == ([0, 1], [["a", "b"]])
    assert shorten("abc", 3) == "abc"


# -- for programs ----------------------------------------------------------------------------------


def test_programs_get_every_row_whole(on):
    rows = json.loads(on("query", "art", "-o", "json").stdout)
    assert len(rows) == 30
    assert rows[7] == {
        "id": 7,
        "title": "Work 7",
        "embedding": [0.7] * 8,
        "image": "iVBOR4lQTkeJUE5HiVBOR4lQTkeJUE5HiVBOR4lQTkeJUE5HiVBORw==",
        "size": {"width": 7, "height": 2},
        "made": "1907-01-01",
    }
    lines = on("query", "art", "-o", "ndjson", "-n", "3").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [0, 1, 2]
    header, *table = csv.reader(io.StringIO(on("query", "art", "-o", "csv").stdout))
    assert (header, len(table)) == (ART.names, 30)
    assert json.loads(on("query", "art", "-w", "id < 0", "-o", "json").stdout) == []


def test_what_json_has_no_number_for_is_null():
    values = [float("nan"), float("inf"), 1.5, None]
    for kind in (pa.float32(), pa.float64()):
        batch = pa.record_batch({"n": pa.array(values, kind)})
        assert [row["n"] for row in plain_rows(batch)] == [None, None, 1.5, None]


def test_separators_of_unicode_stay_inside_their_text(run, tmp_path):
    text = "a\u2028b\x85c"
    mooring.connect(tmp_path / "c").create_table("t", [{"x": text}])
    shown = run("-c", tmp_path / "c", "table", "query", "t", "-o", "json").stdout
    assert json.loads(shown) == [{"x": text}]


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "json", "jsonl"])
def test_a_file_goes_back_into_a_table(on, art, tmp_path, kind):
    """Binary is base64 in CSV and JSON, where nothing tells it from text."""
    path = tmp_path / f"out.{kind}"
    columns = [name for name in ART.names if name != "image"]
    result = on("query", "art", "--columns", ",".join(columns), "--to", path)
    assert result.exit_code == DONE, result.output
    assert (result.stdout, result.stderr) == ("", f"wrote 30 rows to '{path}'\n")
    assert on("insert", "art", path).exit_code == DONE
    rows = art.to_arrow(columns=columns).to_pylist()
    assert rows[30:] == [
        {**row, "title": row["title"] or ("" if kind == "csv" else None)} for row in rows[:30]
    ]


def test_files_keep_types_where_their_format_does(on, tmp_path):
    on("query", "art", "--to", tmp_path / "art.parquet")
    assert pyarrow.parquet.read_schema(tmp_path / "art.parquet").equals(ART)
    on("query", "art", "--to", tmp_path / "art.arrow")
    with pa.memory_map(str(tmp_path / "art.arrow")) as file:
        assert pa.ipc.open_file(file).schema.equals(ART)


def test_a_file_is_told_to_programs(on):
    result = on("query", "art", "-n", "4", "--to", "art.csv", "-o", "json")
    assert json.loads(result.stdout) == {"file": "art.csv", "result": "written", "rows": 4}


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (["art"], "tells no format"),
        (["art.xml"], "tells no format"),
        (["-"], "a stream has no suffix"),
        (["nowhere/art.csv"], "cannot be written: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(on, tmp_path, to, said):
    result = on("query", "art", "--to", *to)
    assert result.exit_code == USAGE
    assert said in result.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"museum", "config"}


def test_a_file_is_complete_or_as_it_was(on, tmp_path, monkeypatch):
    (tmp_path / "art.json").write_text("precious\n")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = on("query", "art", "--to", "art.json")
    assert result.exit_code == USAGE
    assert "'art.json' cannot be written: No space left on device" in result.stderr
    assert (tmp_path / "art.json").read_text() == "precious\n"
    assert {path.name for path in tmp_path.iterdir()} <= {"museum", "config", "art.json"}


def test_rows_go_through_a_pipe(museum, tmp_path):
    written = _process(
        *["table", "query", "art", "-c", str(museum), "--columns", "id", "--to", "-"],
        *["--format", "csv", "-n", "2"],
    )
    assert (written.stdout, written.stderr) == ('"id"\n0\n1\n', "wrote 2 rows\n")


# -- which rows ------------------------------------------------------------------------------------


def test_the_nearest_are_found(on, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps([0.51] * 8))
    for vector in (str([0.51] * 8), "@v.json"):
        result = on("query", "art", "--vector", vector, "-k", "2", "--columns", "id", "-o", "json")
        rows = json.loads(result.stdout)
        assert [row["id"] for row in rows] == [5, 6]
        assert all("_distance" in row for row in rows)
    shown = on("query", "art", "--vector", "@v.json", "--columns", "id")
    assert (len(shown.stdout.splitlines()), shown.stderr) == (11, "")
    filtered = ["--vector", "@v.json", "--where", "id > 20", "-k", "3", "-o", "json"]
    assert [row["id"] for row in json.loads(on("query", "art", *filtered).stdout)] == [21, 22, 23]
    late = [*filtered, "--search", "prefilter=false"]
    assert json.loads(on("query", "art", *late).stdout) == []


def test_words_are_found(on, art):
    art.indexes.create("title", "FTS")
    result = on("query", "art", "--text", "7", "--columns", "id", "-o", "json")
    assert [row["id"] for row in json.loads(result.stdout)] == [7]
    result = on("query", "art", "--text", "8", "--text-columns", "title", "--columns", "id")
    assert result.stdout.splitlines()[1].startswith("8 ")


def test_earlier_states_are_read(on, art):
    art.delete("id > 4")
    on("tag", "create", "art", "first", "1")
    on("branch", "create", "art", "dev", "--version", "1")
    on("delete", "art", "--where", "id > 2", "--branch", "dev")
    counts = {
        (): "5",
        ("--version", "1"): "30",
        ("--tag", "first"): "30",
        ("--branch", "dev"): "3",
        ("--branch", "main", "-w", "id = 0"): "1",
        ("--branch", "dev", "--version", "1"): "30",
    }
    for options, rows in counts.items():
        assert on("count", "art", *options).stdout == f"{rows}\n"
        shown = on("query", "art", *options, "-o", "ndjson")
        assert len(shown.stdout.splitlines()) == int(rows)


def test_a_count_is_a_record_for_programs(on):
    assert json.loads(on("count", "art", "-o", "json").stdout) == {"table": "art", "rows": 30}


def test_a_plan_is_shown(on):
    result = on("query", "art", "--where", "id > 3", "--explain")
    assert "LanceRead" in result.stdout
    assert (
        "id > "
        in json.loads(on("query", "art", "-w", "id > 3", "--explain", "-o", "json").stdout)["plan"]
    )
    assert "elapsed" in on("query", "art", "--analyze").stdout.lower()


def test_the_id_of_a_row_is_shown_on_demand(on):
    result = on("query", "art", "--row-id", "--columns", "id", "-n", "1", "-o", "json")
    assert json.loads(result.stdout) == [{"id": 0, "_rowid": 0}]


# -- schemas ---------------------------------------------------------------------------------------


def test_a_schema_tells_types_dimensions_and_metadata(on):
    rows = json.loads(on("schema", "art", "-o", "json").stdout)
    assert [row["name"] for row in rows] == [
        "id", "title", "embedding", "image", "size", "size.width", "size.height", "made",
    ]  # fmt: skip
    found = {row["name"]: row for row in rows}
    assert (found["id"]["nullable"], found["title"]["nullable"]) == (False, True)
    assert found["title"]["metadata"] == {"lang": "en"}
    assert found["embedding"]["dimension"] == 8
    assert found["size.width"]["type"] == "int32"
    shown = on("schema", "art").stdout
    assert shown.splitlines()[0].split() == ["NAME", "TYPE", "NULLABLE", "DIMENSION", "METADATA"]
    assert "lang=en" in shown


def test_a_schema_of_an_earlier_version_is_shown(on, art):
    art.columns.drop("embedding", "title")
    heading = ["NAME", "TYPE", "NULLABLE"]
    assert on("schema", "art").stdout.splitlines()[0].split() == heading
    assert "embedding" in on("schema", "art", "--version", "1").stdout


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said", "args"),
    [
        (NOT_FOUND, "did you mean 'art'?", ["query", "arts"]),
        (NOT_FOUND, "did you mean 'title'?", ["query", "art", "--columns", "id,tittle"]),
        (NOT_FOUND, "title", ["query", "art", "--where", "tittle = 'x'"]),
        (NOT_FOUND, "embedding", ["query", "art", "--vector", "[1]", "--vector-column", "embed"]),
        (NOT_FOUND, "no version", ["query", "art", "--version", "99"]),
        (NOT_FOUND, "has no tag 'x'; there is none", ["query", "art", "--tag", "x"]),
        (NOT_FOUND, "has no branch 'x'; there is main", ["query", "art", "--branch", "x"]),
        (NOT_FOUND, "has no tag 'x'", ["count", "art", "--tag", "x"]),
        (NOT_FOUND, "has no branch 'x'", ["schema", "art", "--branch", "x"]),
        (USAGE, "a list of numbers", ["query", "art", "--vector", "5"]),
        (USAGE, "a list of numbers", ["query", "art", "--vector", "[0.1"]),
        (USAGE, "cannot be read", ["query", "art", "--vector", "@nothing.json"]),
        (USAGE, "a list of numbers", ["query", "art", "--vector", '["a"]']),
        (USAGE, "have 8", ["query", "art", "--vector", "[1, 2]"]),
        (USAGE, "k is of a search", ["query", "art", "-k", "3"]),
        (USAGE, "separated by commas", ["query", "art", "--columns", "id,,title"]),
        (USAGE, "did you mean 'nprobes'", ["query", "art", "--search", "nprobe=3"]),
        (USAGE, "nprobes is a number", ["query", "art", "--search", "nprobes=many"]),
        (USAGE, "prefilter is true or false", ["query", "art", "--search", "prefilter=1"]),
        (USAGE, "full-text index", ["query", "art", "--text", "word"]),
        (USAGE, "does not parse", ["query", "art", "--where", "id >"]),
        (USAGE, "without a version or branch", ["query", "art", "--tag", "x", "--version", "1"]),
        (USAGE, "--limit", ["query", "art", "--limit", "-1"]),
    ],
)
def test_a_mistake_is_told(on, code, said, args):
    result = on(*args)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""
