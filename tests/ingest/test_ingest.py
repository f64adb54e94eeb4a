"""Rows from files into tables: formats, modes, schemas, records that do not fit."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from mooring.errors import (
    ConflictError,
    InvalidInputError,
    NamespaceNotFoundError,
    NotFoundError,
    ReadOnlyError,
    TableNotFoundError,
    TableSchemaValidationError,
)
from mooring.ingest import FileSource, ingest
from mooring.ingest.sources import TextOptions
from mooring.jobs.runner import Threads
from tests.ingest.files import ROWS, open_lake, rejects_in, same_rows, tree, write_source


@pytest.fixture
def lake(tmp_path):
    return open_lake("v2", tmp_path / "lake")[0]


# -- sources -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "orc", "lance"])
def test_a_table_is_made_of_a_file_of_any_format(lake, tmp_path, suffix):
    source = write_source(tmp_path / f"rows.{suffix}", ROWS)
    report = ingest(lake, source, "a$t")
    assert same_rows(lake.table("a$t"), ROWS)
    assert (report.rows_in, report.rows_written, report.version) == (3, 3, 1)
    assert report.bytes_read > 0
    assert ingest(lake, source, "a$t").version == 2
    assert lake.table("a$t").count() == 6


@pytest.mark.parametrize("kind", ["v1", "metastore"])
def test_all_modes_work_on_other_kinds_of_catalogs(tmp_path, kind):
    catalog, above = open_lake(kind, tmp_path / "lake")
    name = f"{above}t"
    source = write_source(tmp_path / "rows.parquet", ROWS)
    ingest(catalog, source, name)
    assert ingest(catalog, source, name, mode="overwrite").rows_inserted == 3
    assert catalog.table(name).count() == 3
    more = write_source(tmp_path / "more.csv", pa.table({"id": [3, 4], "city": ["Rome", "Bern"]}))
    report = ingest(catalog, more, name, mode="upsert", key="id", run_id="r")
    assert (report.rows_updated, report.rows_inserted) == (1, 1)
    assert not ingest(catalog, more, name, mode="upsert", key="id", run_id="r").is_new
    assert ingest(catalog, more, name, mode="delete", key="id").rows_deleted == 2
    assert sorted(catalog.table(name).to_arrow()["id"].to_pylist()) == [1, 2]
    assert not [path for path in tree(tmp_path / "lake") if "_pending" in path]


def test_directories_patterns_and_several_sources_are_read_without_hidden_files(lake, tmp_path):
    for number in range(4):
        write_source(tmp_path / f"d/x{number}/rows.parquet", ROWS)
    write_source(tmp_path / "d/_temporary/rows.parquet", ROWS)
    (tmp_path / "d/_SUCCESS").touch()
    (tmp_path / "d/.rows.parquet.crc").write_bytes(b"x")
    assert ingest(lake, str(tmp_path / "d"), "a$all").rows_written == 12
    assert ingest(lake, str(tmp_path / "d/x[01]/*.parquet"), "a$some").files == 2
    two = [str(tmp_path / "d/x0"), str(tmp_path / "d/x3/rows.parquet")]
    assert ingest(lake, two, "a$two").rows_written == 6
    assert ingest(lake, str(tmp_path / "d/**/rows.parquet"), "a$deep").files == 4


def test_columns_told_by_directories_are_read(lake, tmp_path):
    write_source(tmp_path / "d/year=2023/kind=a%20b/rows.parquet", ROWS.slice(0, 1))
    write_source(tmp_path / "d/year=2024/kind=c/rows.parquet", ROWS.slice(1, 2))
    ingest(lake, str(tmp_path / "d"), "a$t")
    found = lake.table("a$t").to_arrow().sort_by("id")
    assert found["year"].to_pylist() == [2023, 2024, 2024]
    assert found["kind"].to_pylist() == ["a b", "c", "c"]


def test_a_table_of_another_catalog_is_read_at_one_version(lake, tmp_path):
    other, above = open_lake("metastore", tmp_path / "other")
    vectors = pa.table(
        {
            "id": [1, 2],
            "v": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "s": pa.array([{"x": 1, "y": "a"}, None]),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "w": pa.array(["p", "q"]).dictionary_encode(),
        }
    )
    other.create_table(f"{above}s", vectors)
    other.table(f"{above}s").insert(vectors)
    report = ingest(lake, FileSource.of_table(other, f"{above}s"), "a$t")
    assert report.rows_written == 4
    assert lake.table("a$t").schema == other.table(f"{above}s").schema
    assert (
        lake.table("a$t").to_arrow().to_pylist() == other.table(f"{above}s").to_arrow().to_pylist()
    )


def test_a_large_file_is_divided_by_row_groups_and_keeps_its_order(lake, tmp_path, monkeypatch):
    monkeypatch.setattr("mooring.ingest.splits._LEAST_BYTES", 1000)
    rows = pa.table({"id": range(5000), "t": [f"row {n}" for n in range(5000)]})
    source = write_source(tmp_path / "rows.parquet", rows, row_group_size=500)
    told = []
    ingest(lake, source, "a$t", runner=Threads(2), on_progress=told.append)
    dataset = lake.table("a$t").to_lance()
    assert len(dataset.get_fragments()) == 6
    assert dataset.to_table()["id"].to_pylist() == list(range(5000))
    assert (told[-1].rows, told[-1].bytes) == (5000, told[-1].total_bytes)


def test_csv_is_read_as_it_is_written(lake, tmp_path):
    path = tmp_path / "rows.csv.gz"
    text = 'id;city;note\n1;"Oslo;\nNorway";-\n 2 ;"";x\n'
    path.write_bytes(gzip.compress(text.encode()))
    options = TextOptions(delimiter=";", null_values=("-",))
    ingest(lake, FileSource.find(str(path), options=options), "a$t")
    assert lake.table("a$t").to_arrow().to_pylist() == [
        {"id": 1, "city": "Oslo;\nNorway", "note": None},
        {"id": 2, "city": "", "note": "x"},
    ]
    (tmp_path / "bare.csv").write_text("7,Rome\n")
    bare = FileSource.find(str(tmp_path / "bare.csv"), options=TextOptions(has_header=False))
    ingest(lake, bare, "a$t")
    assert lake.table("a$t").to_arrow(filter="id = 7")["city"].to_pylist() == ["Rome"]
    (tmp_path / "tab.tsv").write_text("id\tcity\n8\tBern\n")
    assert ingest(lake, str(tmp_path / "tab.tsv"), "a$t").rows_written == 1


# -- schemas -----------------------------------------------------------------------------------


def test_values_are_cast_where_nothing_is_lost(lake, tmp_path):
    target = pa.schema(
        [
            ("small", pa.int8()),
            ("real", pa.float64()),
            ("day", pa.date32()),
            ("time", pa.timestamp("us")),
            ("cost", pa.decimal128(10, 2)),
            ("flag", pa.bool_()),
            ("word", pa.string()),
            ("vector", pa.list_(pa.float32(), 2)),
            ("clock", pa.time64("us")),
            ("absent", pa.string()),
        ]
    )
    lake.create_table("a$t", target.empty_table())
    (tmp_path / "rows.csv").write_text(
        "vector,word,flag,cost,time,day,real,small,clock\n"
        '"[1.5, 2]",007,true,1.5,2024-01-02 03:04:05,2024-01-02,7,-5,12:30:00\n'
    )
    (tmp_path / "rows.json").write_text(
        '{"small": 5, "real": 1, "day": "2024-01-02", "time": "2024-01-02T03:04:05", "cost": 2.25,'
        ' "flag": false, "word": "x", "vector": [0.1, 2], "clock": "01:02:03"}\n'
    )
    typed = pa.table(
        {
            "small": pa.array([4], pa.int64()),
            "real": pa.array([3], pa.int32()),
            "time": pa.array([datetime(2024, 1, 2)], pa.timestamp("ms")),  # noqa: DTZ001  # without a zone
            "word": pa.array([12]),
            "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float64())),
        }
    )
    write_source(tmp_path / "rows.parquet", typed)
    ingest(lake, [str(tmp_path / f"rows.{kind}") for kind in ("csv", "json", "parquet")], "a$t")
    one, two, three = lake.table("a$t").to_arrow().to_pylist()
    assert (one["small"], one["real"], one["day"]) == (-5, 7.0, date(2024, 1, 2))
    assert (one["word"], one["flag"], one["cost"]) == ("007", True, Decimal("1.50"))
    assert one["vector"] == [1.5, 2.0]
    assert one["clock"].isoformat() == "12:30:00"
    assert one["absent"] is None
    assert (two["cost"], two["day"], two["flag"]) == (Decimal("2.25"), date(2024, 1, 2), False)
    assert (three["small"], three["word"], three["day"]) == (4, "12", None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"id": [1], "more": [1.5]}, r"column 'more' \(double\), which .* lacks; --evolve"),
        ({"id": [1], "height": ["a"], "city": [[1]]}, "'city' .* does not fit string"),
        ({"id": [1.5]}, "'id' .* is double, which does not fit int64"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_and_nothing_is_left(lake, tmp_path, rows, said):
    lake.create_table("a$t", ROWS)
    before = tree(tmp_path / "lake")
    source = write_source(tmp_path / "rows.parquet", pa.table(rows))
    with pytest.raises(TableSchemaValidationError, match=said):
        ingest(lake, source, "a$t")
    assert tree(tmp_path / "lake") == before


def test_a_column_that_may_not_be_null_must_be_there(lake, tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.int64())])
    lake.create_table("a$t", schema.empty_table())
    source = write_source(tmp_path / "rows.parquet", pa.table({"x": [1]}))
    with pytest.raises(TableSchemaValidationError, match="lacks the column 'id'"):
        ingest(lake, source, "a$t")
    (tmp_path / "rows.csv").write_text("id,x\n,1\n2,2\n")
    report = ingest(lake, str(tmp_path / "rows.csv"), "a$t", rejects=str(tmp_path / "no"))
    assert rejects_in(tmp_path / "no") == [
        (1, "column 'id' is null, which the table does not allow")
    ]
    assert report.rows_written == 1


def test_columns_are_added_and_widened_where_that_is_allowed(lake, tmp_path):
    old = pa.table(
        {
            "i": pa.array([1], pa.int32()),
            "f": pa.array([1.5], pa.float32()),
            "d": pa.array([Decimal("1.2")], pa.decimal128(3, 1)),
            "s": ["x"],
            "k": [1],
        }
    )
    lake.create_table("a$t", old)
    new = pa.table(
        {
            "i": pa.array([2**40]),
            "f": pa.array([0.1]),
            "d": pa.array([Decimal("123456.25")], pa.decimal128(10, 2)),
            "s": pa.array(["y"], pa.large_string()),
            "k": pa.array([2], pa.int16()),
            "more": [True],
        }
    )
    source = write_source(tmp_path / "rows.parquet", new)
    with pytest.raises(TableSchemaValidationError, match="--evolve"):
        ingest(lake, source, "a$t")
    report = ingest(lake, source, "a$t", evolve=True)
    table = lake.table("a$t")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "i": "int64",
        "f": "double",
        "d": "decimal128(10, 2)",
        "s": "large_string",
        "k": "int64",
        "more": "bool",
    }
    assert "more (bool) is new" in report.changes
    assert table.to_arrow().slice(1).to_pylist() == new.to_pylist()
    assert table.to_arrow().slice(0, 1)["more"].to_pylist() == [None]


def test_a_change_of_columns_is_undone_where_the_rows_do_not_get_in(lake, tmp_path):
    lake.create_table("a$t", ROWS)
    (tmp_path / "rows.csv").write_text("id,more\n1,x\nbad,y\n")
    with pytest.raises(InvalidInputError, match="record 2: 'bad' in column 'id'"):
        ingest(lake, str(tmp_path / "rows.csv"), "a$t", evolve=True)
    assert lake.table("a$t").schema == ROWS.schema
    assert same_rows(lake.table("a$t"), ROWS)


def test_a_change_of_columns_stays_where_others_followed_and_is_told(lake, tmp_path, monkeypatch):
    from mooring.ingest import running

    lake.create_table("a$t", ROWS)
    (tmp_path / "rows.csv").write_text("id,more\nbad,y\n")
    write = running.write_parts

    def late(*args, **options):
        lake.table("a$t").delete("id = 1")
        return write(*args, **options)

    monkeypatch.setattr(running, "write_parts", late)
    with pytest.raises(InvalidInputError, match=r"'bad'.*this stays: more \(string\) is new"):
        ingest(lake, str(tmp_path / "rows.csv"), "a$t", evolve=True)
    assert lake.table("a$t").schema.names == [*ROWS.schema.names, "more"]


def test_overwriting_keeps_the_schema_unless_it_may_change(lake, tmp_path):
    lake.create_table("a$t", ROWS)
    source = write_source(tmp_path / "rows.parquet", pa.table({"other": ["x"]}))
    with pytest.raises(TableSchemaValidationError, match="'other'"):
        ingest(lake, source, "a$t", mode="overwrite")
    ingest(lake, source, "a$t", mode="overwrite", evolve=True)
    assert lake.table("a$t").to_arrow().to_pylist() == [{"other": "x"}]


# -- records that do not fit ---------------------------------------------------------------------

BAD_CSV = "id,city\n1,Oslo\nabc,Lima\n2,Rome,extra\n99999999999999999999,Bern\n3,Kyiv\n4\n"
BAD_JSON = (
    '{"id": 1, "city": "Oslo"}\n{"id": "abc"}\n{"id": 2\n\n{"id": 5, "wrong": 1}\n[1]\n'
    '{"id": 3, "city": "Kyiv"}\n'
)


def test_records_that_do_not_fit_go_to_a_file_with_the_reason(lake, tmp_path):
    lake.create_table("a$t", ROWS.slice(0, 0))
    (tmp_path / "bad.csv").write_text(BAD_CSV)
    report = ingest(lake, str(tmp_path / "bad.csv"), "a$t", rejects=str(tmp_path / "no"))
    assert (report.rows_in, report.rows_written, report.rows_rejected) == (6, 2, 4)
    assert rejects_in(tmp_path / "no") == [
        (2, "'abc' in column 'id' does not fit int64"),
        (3, "it has 3 values, and 2 are expected"),
        (4, "'99999999999999999999' in column 'id' does not fit int64"),
        (6, "it has 1 values, and 2 are expected"),
    ]
    first = json.loads((tmp_path / "no").read_text().splitlines()[0])
    assert first["record"] == {"id": "abc", "city": "Lima"}
    assert first["file"].endswith("bad.csv")


def test_lines_of_json_that_are_none_go_to_a_file_with_the_reason(lake, tmp_path):
    lake.create_table("a$t", ROWS.slice(0, 0))
    (tmp_path / "bad.json").write_text(BAD_JSON)
    with pytest.raises(TableSchemaValidationError, match="'wrong'"):
        ingest(lake, str(tmp_path / "bad.json"), "a$t", rejects=str(tmp_path / "no"))
    (tmp_path / "bad.json").write_text(BAD_JSON.replace(', "wrong": 1', ""))
    report = ingest(lake, str(tmp_path / "bad.json"), "a$t", rejects=str(tmp_path / "no"))
    assert (report.rows_in, report.rows_written, report.rows_rejected) == (6, 3, 3)
    assert [row for row, _ in rejects_in(tmp_path / "no")] == [2, 3, 6]


def test_the_first_bad_record_ends_a_run_unless_more_are_allowed(lake, tmp_path):
    lake.create_table("a$t", ROWS)
    (tmp_path / "bad.csv").write_text(BAD_CSV)
    before = tree(tmp_path / "lake")
    for options, said in (
        ({}, "record 3: it has 3 values.*--rejects FILE"),
        ({"max_rejects": 3}, "more than 3 records"),
        ({"max_rejects": 3, "rejects": str(tmp_path / "no")}, "more than 3 records"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            ingest(lake, str(tmp_path / "bad.csv"), "a$t", **options)
    assert tree(tmp_path / "lake") == before
    assert ingest(lake, str(tmp_path / "bad.csv"), "a$t", max_rejects=4).rows_rejected == 4


# -- keys ----------------------------------------------------------------------------------------


def test_an_upsert_makes_a_table_and_its_key_is_minded_by_appends(lake, tmp_path):
    source = write_source(tmp_path / "rows.parquet", ROWS)
    assert ingest(lake, source, "a$t", mode="upsert", key="id").rows_inserted == 3
    with pytest.raises(ConflictError, match=r"3 of the rows .* id=1; id=2; id=3; .*upsert"):
        ingest(lake, source, "a$t")
    with pytest.raises(ConflictError, match="the table's key is id"):
        ingest(lake, source, "a$t", mode="upsert", key="city")
    twice = pa.concat_tables([ROWS, ROWS.slice(0, 1)])
    with pytest.raises(ConflictError, match="1 of the rows"):
        ingest(lake, write_source(tmp_path / "two.parquet", twice), "a$t", mode="overwrite")
    (tmp_path / "more.csv").write_text("id,city\n3,x\n4,y\nabc,z\n4,again\n,none\n5,w\n")
    report = ingest(
        lake,
        str(tmp_path / "more.csv"),
        "a$t",
        on_conflict="reject",
        rejects=str(tmp_path / "no"),
    )
    assert (report.rows_written, report.rows_rejected) == (2, 4)
    assert rejects_in(tmp_path / "no") == [
        (1, "key exists"),
        (3, "'abc' in column 'id' does not fit int64"),
        (4, "key repeats"),
        (5, "key is null"),
    ]
    assert sorted(lake.table("a$t").to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]


def test_keys_may_have_several_columns_of_several_types(lake, tmp_path):
    def rows(word, *pairs):
        return pa.table(
            {
                "a": pa.array([pair[0] for pair in pairs], pa.large_string()),
                "b": pa.array([pair[1] for pair in pairs], pa.date32()),
                "w": [word] * len(pairs),
            }
        )

    one, two = date(2024, 1, 1), date(2024, 1, 2)
    lake.create_table("a$t", rows("old", ("x", one), ("x", two), ("y", one)))
    source = write_source(tmp_path / "rows.parquet", rows("new", ("x", two), ("y", two)))
    report = ingest(lake, source, "a$t", mode="upsert", key=("a", "b"))
    assert (report.rows_updated, report.rows_inserted) == (1, 1)
    found = {(row["a"], row["b"]): row["w"] for row in lake.table("a$t").to_arrow().to_pylist()}
    assert found == {("x", one): "old", ("x", two): "new", ("y", one): "old", ("y", two): "new"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,city\n7,a\n8,b\n7,c\n", "come more than once in the source: id=7"),
        ("id,city\n7,a\n,b\n", "1 rows of the source have no value in their key"),
        ("city\nOslo\n", "lacks the key column 'id'"),
    ],
)
def test_keys_that_are_none_are_refused_and_nothing_is_left(lake, tmp_path, text, said):
    lake.create_table("a$t", ROWS)
    before = tree(tmp_path / "lake")
    (tmp_path / "rows.csv").write_text(text)
    for name in ("a$t", "a$new"):
        with pytest.raises(InvalidInputError, match=said):
            ingest(lake, str(tmp_path / "rows.csv"), name, mode="upsert", key="id")
    assert tree(tmp_path / "lake") == before


def test_a_deletion_needs_the_key_alone(lake, tmp_path):
    lake.create_table("a$t", ROWS)
    source = write_source(tmp_path / "gone.parquet", pa.table({"id": [2, 2, 9], "odd": [[1]] * 3}))
    report = ingest(lake, source, "a$t", mode="delete", key="id", run_id="once")
    assert (report.rows_in, report.rows_deleted) == (3, 1)
    again = ingest(lake, source, "a$t", mode="delete", key="id", run_id="once")
    assert (again.is_new, again.version) == (False, report.version)
    assert ingest(lake, source, "a$t", mode="delete", key="id").rows_deleted == 0
    assert lake.table("a$t").version == report.version
    with pytest.raises(TableNotFoundError, match="to delete from"):
        ingest(lake, source, "a$none", mode="delete", key="id")


# -- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite", "upsert"])
def test_a_run_counts_once_also_where_it_made_the_table(lake, tmp_path, mode):
    source = write_source(tmp_path / "rows.parquet", ROWS)
    key = {"key": "id"} if mode == "upsert" else {}
    assert ingest(lake, source, "a$t", mode=mode, run_id="one", **key).is_new
    files = tree(tmp_path / "lake")
    again = ingest(lake, source, "a$t", mode=mode, run_id="one", **key)
    assert (again.is_new, again.version, again.rows_written) == (False, 1, 0)
    assert tree(tmp_path / "lake") == files
    if mode != "append":
        assert ingest(lake, source, "a$t", mode=mode, run_id="two", **key).version == 2


# -- what cannot be --------------------------------------------------------------------------------


def test_what_cannot_be_is_refused_and_nothing_is_left(lake, tmp_path):
    good = write_source(tmp_path / "rows.parquet", ROWS)
    (tmp_path / "empty").mkdir()
    (tmp_path / "not.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "twice.csv").write_text("id,id\n1,2\n")
    (tmp_path / "none.csv").write_text("")
    before = tree(tmp_path / "lake")
    for source, into, options, error, said in (
        (str(tmp_path / "absent.parquet"), "a$t", {}, NotFoundError, "no source"),
        (str(tmp_path / "*.orc"), "a$t", {}, NotFoundError, "nothing to read"),
        (str(tmp_path / "empty"), "a$t", {}, NotFoundError, "nothing to read"),
        (str(tmp_path / "not.parquet"), "a$t", {}, InvalidInputError, "cannot be read as parquet"),
        (str(tmp_path / "notes.txt"), "a$t", {}, InvalidInputError, "--format"),
        (str(tmp_path / "twice.csv"), "a$t", {}, InvalidInputError, "two columns 'id'"),
        (str(tmp_path / "none.csv"), "a$t", {}, InvalidInputError, "no columns"),
        ([], "a$t", {}, InvalidInputError, "at least one source"),
        (good, "nope$t", {}, NamespaceNotFoundError, "nope"),
        (good, "a$t", {"mode": "upsert"}, InvalidInputError, "needs a key"),
        (good, "a$t", {"key": "id"}, InvalidInputError, "needs none"),
        (good, "a$t", {"mode": "merge"}, InvalidInputError, "no mode"),
        (good, "a$t", {"kind": "xml"}, InvalidInputError, "no format"),
        (good, "a$t", {"mode": "upsert", "key": "height"}, InvalidInputError, "cannot be a key"),
        (
            good,
            "a$t",
            {"mode": "upsert", "key": "no"},
            InvalidInputError,
            "lacks the key column 'no'",
        ),
        (good, "a$t", {"run_id": "a/b"}, InvalidInputError, "cannot name a run"),
        (good, "a$t", {"rejects": "/nowhere/x"}, InvalidInputError, "directory is not there"),
        (good, "a$t", {"max_rejects": -1}, InvalidInputError, "starts at 0"),
    ):
        with pytest.raises(error, match=said):
            ingest(lake, source, into, **options)
    assert tree(tmp_path / "lake") == before
    import mooring

    with pytest.raises(ReadOnlyError):
        ingest(mooring.connect(tmp_path / "lake", read_only=True), good, "a$t")


FULL_DISK = """
import resource, signal, sys
import mooring
from mooring.ingest import ingest
from mooring.errors import MooringError

root, source, mode = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
catalog = mooring.connect(root)
key = {"key": "id"} if mode == "upsert" else {}
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
for name in ("a$t", "a$new"):
    try:
        ingest(catalog, source, name, mode=mode, **key)
    except MooringError as exc:
        print(type(exc).__name__, exc)
    else:
        raise SystemExit("it was written")
"""


@pytest.mark.parametrize("mode", ["append", pytest.param("upsert", marks=pytest.mark.torture)])
def test_a_full_disk_is_told_and_nothing_is_left(lake, tmp_path, mode):
    lake.create_table("a$t", pa.table({"id": [1], "s": ["x"]}))
    before = tree(tmp_path / "lake")
    rows = pa.table({"id": range(50_000), "s": [f"{n * 7919:x}" * 3 for n in range(50_000)]})
    source = write_source(tmp_path / "rows.parquet", rows)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "lake"), source, mode],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("File too large") == 2
    assert tree(tmp_path / "lake") == before
    assert lake.table("a$t").count() == 1
