"""History, differences, restoring, statistics and compaction."""

import csv
import io
import json
import shlex

import lance
import pyarrow as pa
import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "fleet"


@pytest.fixture
def ships(root):
    """A table of three versions."""
    table = mooring.connect(root, author="maker").create_table(
        "ships", [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bo"}]
    )
    table.insert([{"id": 3, "name": "Cy"}])
    table.delete("id = 1")
    return table


@pytest.fixture
def on(run, root, ships):
    def invoke(*args):
        return run("-c", root, "table", *args)

    return invoke


# -- history ---------------------------------------------------------------------------------------


def test_history_tells_each_version_and_each_life(on, run, root):
    on("tag", "create", "ships", "first", "1")
    run("-c", root, "table", "drop", "ships")
    run("-c", root, "table", "undrop", "ships")
    rows = json.loads(on("history", "ships", "-o", "json").stdout)
    told = [(row["action"], row["version"], row["operation"], row["rows"]) for row in rows]
    assert told == [
        ("write", 1, "Overwrite", 2),
        ("write", 2, "Append", 3),
        ("write", 3, "Delete", 2),
        ("drop", 3, None, None),
        ("undrop", None, None, None),
    ]
    assert rows[0]["tags"] == ["first"]
    assert [row["by"] for row in rows if row["by"]] == ["maker", "maker", "tester", "tester"]
    assert all(row["at"] for row in rows)


def test_history_for_people_leaves_out_what_says_nothing(on, run, root):
    lines = on("history", "ships").stdout.splitlines()
    assert lines[0].split() == ["ACTION", "STATE", "VERSION", "OPERATION", "ROWS", "BY", "AT"]
    assert lines[2].split()[:6] == ["write", "live", "2", "Append", "3", "maker"]
    run("-c", root, "table", "drop", "ships")
    lines = on("history", "ships").stdout.splitlines()
    assert lines[0].split() == ["ACTION", "STATE", "VERSION", "BY", "AT"]


def test_history_tells_what_other_programs_wrote(on, ships):
    lance.write_dataset(pa.table({"id": [9], "name": ["Di"]}), ships.location, mode="append")
    rows = json.loads(on("history", "ships", "-o", "json").stdout)
    assert (rows[-1]["version"], rows[-1]["operation"], rows[-1]["by"]) == (4, "Append", None)


def test_history_goes_over_a_compaction_of_indexed_rows(on, ships):
    """Lance cannot make an object of such a transaction."""
    ships.indexes.create("id")
    ships.compact()
    rows = json.loads(on("history", "ships", "-o", "json").stdout)
    assert [row["by"] for row in rows][:2] == ["maker", "maker"]
    assert rows[-1]["operation"] == "Rewrite"


def test_history_can_be_limited(on):
    result = on("history", "ships", "-n", "2")
    assert [line.split()[2] for line in result.stdout.splitlines()[1:]] == ["2", "3"]
    assert result.stderr == "older entries are left out: --limit shows more\n"
    assert on("history", "ships", "-n", "3").stderr == ""


def test_history_of_a_branch(on, run, tmp_path):
    (tmp_path / "more.csv").write_text("id,name\n7,Eve\n")
    on("branch", "create", "ships", "dev", "--version", "2")
    on("insert", "ships", "more.csv", "--branch", "dev")
    rows = json.loads(on("history", "ships", "--branch", "dev", "-o", "json").stdout)
    assert [(row["version"], row["rows"]) for row in rows] == [(2, 3), (3, 4)]


# -- differences -----------------------------------------------------------------------------------


def test_diff_tells_rows_files_indexes_and_schema(on, ships):
    ships.columns.add({"age": "id * 10"})
    ships.indexes.create("id")
    record = json.loads(on("diff", "ships", "1", "-o", "json").stdout)
    assert {key: record[key] for key in ("table", "old", "new", "rows_before", "rows_after")} == {
        "table": "ships",
        "old": 1,
        "new": 5,
        "rows_before": 2,
        "rows_after": 2,
    }
    assert (record["rows_added"], record["rows_deleted"]) == (1, 1)
    assert record["indexes_added"] == ["id_idx"]
    assert record["schema"] == [
        {"column": "age", "change": "added", "before": None, "after": "int64"}
    ]


def test_diff_for_people(on, ships):
    result = on("diff", "ships", "1", "2")
    lines = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert lines == ["versions", "rows", "files", "indexes"]
    assert "2 -> 3 (+1, -0)" in result.stdout
    assert result.stderr == "the schema is the same\n"
    ships.columns.alter("name", rename="title")
    shown = on("diff", "ships", "3", "4").stdout.splitlines()
    assert shown[-1].split() == ["title", "renamed", "name", "title"]


def test_diff_takes_versions_tags_and_branches(on):
    on("tag", "create", "ships", "first", "1")
    on("branch", "create", "ships", "dev", "--tag", "first")
    on("delete", "ships", "--where", "true", "--branch", "dev")
    for old, new, versions in [
        ("first", "3", "1 -> 3"),
        ("3", "first", "3 -> 1"),
        ("first", "dev", "1 -> 2"),
        ("dev:1", "dev:2", "1 -> 2"),
        ("main:2", "main", "2 -> 3"),
    ]:
        result = on("diff", "ships", old, new)
        assert result.exit_code == DONE, result.output
        assert versions in result.stdout


# -- restoring -------------------------------------------------------------------------------------


def test_restore_and_the_way_back(on, run, root, ships):
    result = on("restore", "ships", "1")
    assert result.exit_code == DONE, result.output
    undo = f"mooring -c {root} table restore ships 3"
    assert result.stderr == f"restored version 1 of 'ships': version 4; undo: {undo}\n"
    assert [row["id"] for row in ships.to_arrow().to_pylist()] == [1, 2]
    assert run(*shlex.split(undo)[1:]).exit_code == DONE
    assert ships.count("id = 3") == 1


def test_restore_takes_a_tag(on, ships):
    on("tag", "create", "ships", "full", "2")
    record = json.loads(on("restore", "ships", "full", "-o", "json").stdout)
    assert record == {"table": "ships", "result": "restored", "restored": 2, "version": 4}
    assert ships.count() == 3


def test_what_undoes_a_change_is_told(on, run, ships):
    told = on("update", "ships", "name='X'").stderr
    run(*shlex.split(told.partition("undo: mooring ")[2]))
    assert ships.count("name = 'X'") == 0


# -- upkeep ----------------------------------------------------------------------------------------


def test_stats(on, ships):
    record = json.loads(on("stats", "ships", "-o", "json").stdout)
    assert (record["version"], record["versions"], record["rows"]) == (3, 3, 2)
    assert record["fragments"] == len(ships.to_lance().get_fragments())
    assert record["bytes"] > 0
    shown = on("stats", "ships").stdout
    assert "on average" in shown
    assert "small" in shown


def test_compact_merges_fragments_and_keeps_versions(on, ships):
    ships.insert([{"id": 4, "name": "Di"}])
    before = len(ships.to_lance().get_fragments())
    result = on("compact", "ships", "--dry-run")
    assert result.stdout.splitlines()[1].split()[:2] == ["ships", "compact"]
    assert "nothing was changed" in result.stderr
    assert ships.version == 4
    result = on("compact", "ships")
    assert result.exit_code == DONE, result.output
    assert f"compacted 'ships': {before} fragments became 1: version" in result.stderr
    assert len(ships.to_lance().get_fragments()) == 1
    assert (ships.count(), len(ships.to_lance(1).to_table())) == (3, 2)
    assert "nothing to merge" in on("compact", "ships").stderr


def test_old_versions_go_for_good_only_with_consent(on, ships):
    on("tag", "create", "ships", "first", "1")
    clean = ["compact", "ships", "--older-than", "0s", "--keep", "1"]
    refused = on(*clean)
    assert refused.exit_code == REFUSED
    assert "for good" in refused.stderr
    assert "say --yes" in refused.stderr
    assert [record.version for record in ships.versions()][-3:] == [3, 2, 1]
    record = json.loads(on(*clean, "--yes", "-o", "json").stdout)
    assert record["result"] == "compacted"
    assert record["versions_deleted"] >= 1
    kept = {record.version for record in ships.versions()}
    assert 1 in kept
    assert 2 not in kept
    assert ships.count() == 2


def test_compact_tells_programs_what_it_would_do(on, ships):
    rows = json.loads(
        on("compact", "ships", "--older-than", "0s", "--dry-run", "-o", "json").stdout
    )
    assert [row["table"] for row in rows] == ["ships"]
    assert rows[0]["versions"] == 2
    assert ships.version == 3


# -- formats ---------------------------------------------------------------------------------------

VERBS = [
    "insert ships more.csv",
    "merge ships more.csv --on id",
    "update ships id=id",
    "update ships id=id --dry-run",
    "delete ships --where id=7",
    "query ships",
    "query ships --explain",
    "query ships --to out.parquet",
    "count ships",
    "schema ships",
    "tag create ships T",
    "tag move ships T 1",
    "tag list ships",
    "branch create ships B",
    "branch list ships",
    "branch delete ships B --dry-run",
    "branch delete ships B --yes",
    "column add ships extra=id",
    "column alter ships extra --rename more",
    "column backfill ships more --expression id",
    "column drop ships more",
    "index create ships id",
    "index list ships",
    "index stats ships id_idx",
    "index drop ships id_idx",
    "history ships",
    "history ships --branch main",
    "diff ships 1 2",
    "restore ships T",
    "tag delete ships T",
    "stats ships",
    "compact ships --dry-run",
    "compact ships",
    "compact ships --keep 3 --yes",
]


def check_json(text):
    assert isinstance(json.loads(text), dict | list)


def check_ndjson(text):
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def check_csv(text):
    header, *rows = csv.reader(io.StringIO(text))
    assert len(set(header)) == len(header)
    assert all(len(row) == len(header) for row in rows)


def check_table(text):
    assert "\033" not in text
    assert not set(text) & set("│─╭┃━┏")


@pytest.mark.parametrize("check", [check_json, check_ndjson, check_csv, check_table])
def test_every_verb_writes_every_format(on, tmp_path, check):
    (tmp_path / "more.csv").write_text("id,name\n7,Eve\n")
    form = check.__name__.removeprefix("check_")
    for verb in VERBS:
        result = on(*shlex.split(verb), "-o", form)
        assert result.exit_code == DONE, (verb, result.output)
        check(result.stdout)
        assert form == "table" or result.stderr == "", verb


def test_quiet_says_nothing_of_a_change(on):
    for verb in VERBS:
        if verb.startswith(("update", "tag move", "column add", "index create", "restore")):
            on("tag", "create", "ships", "T", "-q")
            assert on(*shlex.split(verb), "-q").output == "", verb


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said", "args"),
    [
        (NOT_FOUND, "there never was; did you mean 'ships'?", ["history", "ship"]),
        (NOT_FOUND, "has no branch 'dev'; there is main", ["history", "ships", "--branch", "dev"]),
        (NOT_FOUND, "no version", ["diff", "ships", "1", "99"]),
        (NOT_FOUND, "has no tag or branch 'mian'; did you mean 'main'?", ["diff", "ships", "mian"]),
        (NOT_FOUND, "dev", ["diff", "ships", "dev:1"]),
        (NOT_FOUND, "no version 99", ["restore", "ships", "99"]),
        (NOT_FOUND, "has no tag or branch 'x'", ["restore", "ships", "x"]),
        (NOT_FOUND, "has no branch 'x'", ["stats", "ships", "--branch", "x"]),
        (NOT_FOUND, "has no branch 'x'", ["compact", "ships", "--branch", "x"]),
        (USAGE, "BRANCH:VERSION", ["diff", "ships", "main:last"]),
        (USAGE, "is no version of main", ["restore", "ships", "main"]),
        (USAGE, "--limit", ["history", "ships", "--limit", "0"]),
        (USAGE, "not a duration", ["compact", "ships", "--older-than", "soon"]),
        (USAGE, "older than never", ["compact", "ships", "--older-than", "never"]),
        (USAGE, "--keep", ["compact", "ships", "--keep", "0"]),
        (REFUSED, "read-only", ["restore", "ships", "1", "--read-only"]),
        (REFUSED, "read-only", ["compact", "ships", "--read-only"]),
    ],
)
def test_a_mistake_is_told(on, ships, code, said, args):
    result = on(*args)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert ships.version == 3
