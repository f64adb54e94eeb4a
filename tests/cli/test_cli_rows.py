"""Rows from files into tables, and changes of the rows that are there."""

import io
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
PLACES = pa.schema(
    [
        ("code", pa.string()),
        ("height", pa.float32()),
        ("place", pa.list_(pa.float32(), 2)),
        ("seen", pa.timestamp("us")),
    ]
)


@pytest.fixture
def flights(lake):
    return mooring.connect(lake).table("flights")


@pytest.fixture
def places(lake):
    """A table whose types no text file has."""
    rows = [{"code": "007", "height": 1.5, "place": [1.0, 2.0], "seen": None}]
    return mooring.connect(lake).create_table("places", rows, schema=PLACES)


def rows_of(table):
    return table.to_arrow().to_pylist()


# -- insert ----------------------------------------------------------------------------------------


def test_insert_appends_and_tells_the_version(on, rows_file, flights):
    result = on("table", "insert", "flights", rows_file)
    assert result.exit_code == DONE, result.output
    assert result.stdout == ""
    assert result.stderr == "inserted 3 rows into 'flights': version 2\n"
    assert (flights.count(), flights.version) == (5, 2)


def test_insert_tells_programs_what_it_did(on, rows_file):
    result = on("table", "insert", "flights", rows_file, "-o", "json")
    assert json.loads(result.stdout) == {
        "table": "flights",
        "result": "inserted",
        "version": 2,
        "inserted": 3,
        "updated": 0,
        "deleted": 0,
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "jsonl", "arrow", "feather"])
def test_insert_reads_every_format(on, flights, tmp_path, kind):
    table = pa.table({"id": [7], "city": ["Kyiv"]})
    path = tmp_path / f"more.{kind}"
    match kind:
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "csv":
            path.write_text("id,city\n7,Kyiv\n")
        case "json" | "jsonl":
            path.write_text('{"id": 7, "city": "Kyiv"}\n')
        case _:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
    assert on("table", "insert", "flights", path).exit_code == DONE
    assert rows_of(flights)[-1] == {"id": 7, "city": "Kyiv"}


def test_several_files_are_one_version(on, flights, rows_file, tmp_path):
    """Columns are found by name; what a file lacks is null."""
    other = tmp_path / "other.json"
    other.write_text('{"city": "Bern"}\n')
    result = on("table", "insert", "flights", rows_file, other)
    assert result.exit_code == DONE, result.output
    assert (flights.version, flights.count()) == (2, 6)
    assert rows_of(flights)[-1] == {"id": None, "city": "Bern"}


def test_a_failing_file_leaves_the_table_as_it_was(on, flights, rows_file, tmp_path):
    broken = tmp_path / "broken.csv"
    broken.write_text("id,city\nseven,Bern\n")
    result = on("table", "insert", "flights", rows_file, broken)
    assert result.exit_code == USAGE
    assert "broken.csv" in result.stderr
    assert (flights.version, flights.count()) == (1, 2)


def test_standard_input_needs_its_format(run, lake, flights):
    args = ["-c", lake, "table", "insert", "flights", "-"]
    result = run(*args, input="id,city\n9,Cork\n")
    assert result.exit_code == USAGE
    assert "say one of parquet, csv, json, arrow with --format" in result.stderr
    result = run(*args, "--format", "csv", input="id,city\n9,Cork\n")
    assert result.exit_code == DONE, result.output
    assert rows_of(flights)[-1] == {"id": 9, "city": "Cork"}
    twice = run(*args, "-", "--format", "csv", input="id,city\n")
    assert (twice.exit_code, flights.version) == (USAGE, 2)


def test_standard_input_takes_an_arrow_stream(run, lake, flights):
    sink = io.BytesIO()
    table = pa.table({"id": [9], "city": ["Cork"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    args = ["-c", lake, "table", "insert", "flights", "-", "--format", "arrow"]
    assert run(*args, input=sink.getvalue()).exit_code == DONE
    assert flights.count() == 3
    broken = run(*args, input=b"no arrow")
    assert broken.exit_code == USAGE
    assert "'standard input' cannot be read as arrow" in broken.stderr


def test_a_directory_of_files_is_read(on, flights, tmp_path):
    for number in (7, 8):
        table = pa.table({"id": [number], "city": ["Kyiv"]})
        (tmp_path / "parts").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(table, tmp_path / "parts" / f"{number}.parquet")
    assert on("table", "insert", "flights", tmp_path / "parts").exit_code == DONE
    assert flights.count("city = 'Kyiv'") == 2


def test_text_is_read_in_the_types_of_the_table(on, places, tmp_path):
    """What looks like a number or a time stays the text that it is."""
    (tmp_path / "p.csv").write_text('code,height,place\n0150,2,"[3, 4]"\n2020-01-01,,\n')
    (tmp_path / "p.json").write_text(
        '{"code": "2020-01-01 10:00:00", "height": 3, "place": [5, 6],'
        ' "seen": "2024-05-06 07:08:09"}\n'
    )
    result = on("table", "insert", "places", tmp_path / "p.csv", tmp_path / "p.json")
    assert result.exit_code == DONE, result.output
    rows = rows_of(places)
    assert [row["code"] for row in rows] == ["007", "0150", "2020-01-01", "2020-01-01 10:00:00"]
    assert [row["place"] for row in rows] == [[1, 2], [3, 4], None, [5, 6]]
    assert rows[3]["seen"].isoformat() == "2024-05-06T07:08:09"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"code": "x", "place": [1, 2, 3]}', "the column 'place' does not fit"),
        ('{"code": "x", "hieght": 1}', "did you mean 'height'?"),
        ('{"code": "x", "zzz": 1}', "there are code, height, place, seen"),
    ],
)
def test_rows_that_do_not_fit_are_refused(on, places, tmp_path, text, said):
    (tmp_path / "p.json").write_text(f"{text}\n")
    result = on("table", "insert", "places", tmp_path / "p.json", "-o", "json")
    assert result.exit_code == USAGE
    error = json.loads(result.stderr)["error"]
    assert (error["type"], error["code"]) == ("TableSchemaValidationError", 20)
    assert said in error["message"]
    assert places.version == 1


def test_overwrite_replaces_rows_and_schema_and_tells_how_to_undo_it(on, flights, tmp_path, lake):
    (tmp_path / "new.csv").write_text("n\n5\n")
    result = on("table", "insert", "flights", tmp_path / "new.csv", "--overwrite")
    assert result.exit_code == DONE, result.output
    assert result.stderr == (
        "overwrote 'flights' with 1 row: version 2;"
        f" undo: mooring -c {lake} table restore flights 1\n"
    )
    assert rows_of(flights) == [{"n": 5}]


def test_files_to_overwrite_with_need_a_common_schema(on, flights, tmp_path):
    (tmp_path / "a.csv").write_text("n\n5\n")
    (tmp_path / "b.csv").write_text("n,m\n2.5,x\n")
    (tmp_path / "c.json").write_text('{"n": {"deep": 1}}\n')
    overwrite = ["table", "insert", "flights", "--overwrite"]
    assert on(*overwrite, "a.csv", "b.csv").exit_code == DONE
    assert rows_of(flights) == [{"n": 5.0, "m": None}, {"n": 2.5, "m": "x"}]
    result = on(*overwrite, "a.csv", "c.json")
    assert result.exit_code == USAGE
    assert "no common schema" in result.stderr


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (USAGE, ["insert", "flights"]),
        (USAGE, ["insert", "flights", "nothing.csv"]),
        (USAGE, ["insert", "flights", "rows.xml"]),
        (USAGE, ["merge", "flights", "rows.csv"]),
        (USAGE, ["merge", "flights", "rows.csv", "--on", "id", "--no-insert", "--no-update"]),
        (USAGE, ["merge", "flights", "rows.csv", "--on", "id", "--delete-if", "id > 1"]),
        (USAGE, ["update", "flights", "city"]),
        (USAGE, ["update", "flights", "city='X'", "--where", "id >"]),
        (USAGE, ["delete", "flights"]),
        (USAGE, ["delete", "flights", "--where", " "]),
        (NOT_FOUND, ["insert", "nothing", "rows.csv"]),
        (NOT_FOUND, ["insert", "old", "rows.csv"]),
        (NOT_FOUND, ["insert", "soon", "rows.csv"]),
        (NOT_FOUND, ["insert", "flights", "rows.csv", "--branch", "nowhere"]),
        (NOT_FOUND, ["merge", "flights", "rows.csv", "--on", "idd"]),
        (NOT_FOUND, ["update", "flights", "citi='X'"]),
        (NOT_FOUND, ["update", "flights", "city='X'", "-w", "idd = 1"]),
        (NOT_FOUND, ["delete", "flights", "--where", "idd = 1"]),
        (NOT_FOUND, ["delete", "flights", "--where", "idd = 1", "--dry-run"]),
        (REFUSED, ["insert", "flights", "rows.csv", "--read-only"]),
        (REFUSED, ["delete", "flights", "--where", "id = 1", "--read-only"]),
    ],
)
def test_exit_code(on, rows_file, flights, code, args):
    rows_file.with_name("rows.xml").write_text("<rows/>")
    result = on("table", *args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1 or "Usage" in result.stderr
    assert (flights.version, flights.count()) == (1, 2)


@pytest.mark.parametrize(
    ("args", "close"),
    [
        (["insert", "flihgts", "rows.csv"], "there is no table 'flihgts'; did you mean 'flights'?"),
        (["delete", "flights", "-w", "Citty = 'x'"], "city"),
        (["update", "flights", "citi='X'"], "did you mean 'city'?"),
        (["merge", "flights", "rows.csv", "--on", "cty"], "did you mean 'city'?"),
        (["merge", "flights", "rows.csv", "--on", "zz"], "they have id, city"),
        (["insert", "flights", "rows.csv", "--branch", "man"], "did you mean 'main'?"),
    ],
)
def test_a_wrong_name_is_answered_with_the_close_ones(on, rows_file, args, close):
    result = on("table", *args)
    assert result.exit_code == NOT_FOUND
    assert close in result.stderr
    assert result.stderr.lower().count("did you mean") <= 1


# -- changes of rows -------------------------------------------------------------------------------


def test_merge_updates_inserts_and_deletes(on, flights, tmp_path, lake):
    path = tmp_path / "m.csv"
    path.write_text("id,city\n2,Cusco\n3,Rome\n")
    result = on("table", "merge", "flights", path, "--on", "id")
    assert result.exit_code == DONE, result.output
    assert result.stderr == (
        "merged into 'flights': 1 inserted, 1 updated, 0 deleted: version 2;"
        f" undo: mooring -c {lake} table restore flights 1\n"
    )
    assert {row["id"]: row["city"] for row in rows_of(flights)} == {
        1: "Oslo",
        2: "Cusco",
        3: "Rome",
    }
    result = on("table", "merge", "flights", path, "--on", "id", "--delete", "-o", "json")
    assert json.loads(result.stdout)["deleted"] == 1
    assert flights.count() == 2


def test_merge_minds_its_conditions(on, flights, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("id,city\n1,Bergen\n2,Cusco\n3,Rome\n")
    condition = "source.id > 1 AND target.city = 'Lima'"
    args = ["--on", "id", "--update-if", condition, "--no-insert", "-o", "json"]
    record = json.loads(on("table", "merge", "flights", path, *args).stdout)
    assert (record["updated"], record["inserted"]) == (1, 0)
    assert {row["city"] for row in rows_of(flights)} == {"Oslo", "Cusco"}


def test_update_sets_expressions(on, flights):
    result = on("table", "update", "flights", "city=upper(city)", "id=id + 10", "-w", "id = 2")
    assert result.exit_code == DONE, result.output
    assert "updated 1 row of 'flights': version 2; undo: " in result.stderr
    assert {(row["id"], row["city"]) for row in rows_of(flights)} == {(1, "Oslo"), (12, "LIMA")}


def test_delete_keeps_earlier_versions(on, flights):
    result = on("table", "delete", "flights", "--where", "city = 'Oslo'")
    assert result.exit_code == DONE, result.output
    assert "deleted 1 row of 'flights': version 2; undo: " in result.stderr
    assert flights.count() == 1
    assert flights.to_lance(1).count_rows() == 2


@pytest.mark.parametrize(
    ("verb", "args"), [("update", ["city='X'"]), ("delete", [])], ids=["update", "delete"]
)
def test_a_dry_run_counts_and_changes_nothing(on, flights, verb, args):
    words = ["table", verb, "flights", *args, "--where", "id < 9", "--dry-run"]
    assert on(*words).stderr == (
        f"dry run: would {verb} 2 rows of 'flights'; nothing was changed\n"
    )
    assert json.loads(on(*words, "-o", "json").stdout) == {
        "table": "flights",
        "action": verb,
        "rows": 2,
    }
    assert flights.version == 1


def test_rows_go_into_a_table_of_a_namespace(on_tree, rows_file, tree):
    assert on_tree("table", "insert", "sales$eu$orders", rows_file).exit_code == DONE
    catalog = mooring.connect(tree, dir_listing_enabled=False)
    assert catalog.table("sales$eu$orders").count() == 5


def test_rows_go_into_a_table_of_a_plain_directory(on_plain, rows_file, plain):
    assert on_plain("table", "insert", "a$b", rows_file).exit_code == DONE
    assert mooring.connect(plain, manifest_enabled=False).table("a$b").count() == 5
