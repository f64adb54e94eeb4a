"""Every verb in every format."""

import csv
import io
import json
import shlex

import pytest

VERBS = {
    "init": ["init"],
    "ls": ["ls"],
    "ls all": ["ls", "-a"],
    "ls namespace": ["ls", "a"],
    "export": ["export", "new.jsonl"],
    "import": ["import", "names.jsonl"],
    "import dry": ["import", "names.jsonl", "--dry-run"],
    "namespace list": ["namespace", "list"],
    "namespace list all": ["namespace", "list", "-a"],
    "namespace create": ["namespace", "create", "n", "-p", "x=y", "--label", "l"],
    "namespace exists": ["namespace", "create", "a", "--exist-ok"],
    "namespace describe": ["namespace", "describe", "a"],
    "namespace describe root": ["namespace", "describe"],
    "namespace set": ["namespace", "set", "a", "--owner", "ada"],
    "namespace set root": ["namespace", "set", "-p", "x=y"],
    "namespace drop": ["namespace", "drop", "a", "--cascade", "--yes"],
    "namespace drop dry": ["namespace", "drop", "a", "--cascade", "--dry-run"],
    "namespace drop absent": ["namespace", "drop", "nothing", "--if-exists"],
    "namespace undrop": ["namespace", "undrop", "gone"],
    "namespace tree": ["namespace", "tree"],
    "namespace tree part": ["namespace", "tree", "a"],
    "table list": ["table", "list"],
    "table list all": ["table", "list", "a", "--all"],
    "describe": ["table", "describe", "flights"],
    "describe declared": ["table", "describe", "soon"],
    "create": ["table", "create", "new", "--from", "rows.csv"],
    "declare": ["table", "declare", "new"],
    "register": ["table", "register", "hidden"],
    "history": ["table", "history", "old"],
    "drop": ["table", "drop", "flights"],
    "drop two": ["table", "drop", "flights", "a$b", "--yes"],
    "drop dry": ["table", "drop", "flights", "--dry-run"],
    "undrop": ["table", "undrop", "old"],
    "deregister": ["table", "deregister", "flights"],
    "protect": ["table", "protect", "flights"],
    "unprotect": ["table", "unprotect", "guarded"],
    "trash list": ["trash", "list"],
    "purge": ["trash", "purge", "old", "--yes"],
    "purge expired": ["trash", "purge", "--yes"],
    "purge dry": ["trash", "purge", "old", "--dry-run"],
    "doctor": ["doctor"],
    "profile list": ["profile", "list"],
    "profile set": ["profile", "set", "prod"],
    "profile remove": ["profile", "remove", "kept"],
}


@pytest.fixture
def verb(request, on, run, lake, rows_file):
    run("profile", "set", "kept", "--storage", "aws_region=eu")
    if request.param.startswith("import"):
        on("export", "names.jsonl")
    return lambda form: on(*VERBS[request.param], "-o", form)


every_verb = pytest.mark.parametrize("verb", VERBS, indirect=True)


@every_verb
def test_json_is_one_document(verb):
    result = verb("json")
    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict | list)
    assert result.stderr == ""


@every_verb
def test_ndjson_is_an_object_a_line(verb):
    result = verb("ndjson")
    assert result.exit_code == 0, result.output
    assert all(isinstance(json.loads(line), dict) for line in result.stdout.splitlines())


@every_verb
def test_csv_has_a_header_and_even_rows(verb):
    result = verb("csv")
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader(io.StringIO(result.stdout))
    assert len(set(header)) == len(header)
    assert all(len(row) == len(header) for row in rows)


@every_verb
def test_text_is_plain_without_a_terminal(verb):
    result = verb("table")
    assert result.exit_code == 0, result.output
    assert "\033" not in result.output
    assert not set(result.output) & set("│─╭┃━┏|")


@pytest.mark.parametrize("form", ["table", "csv", "json", "ndjson"])
def test_quiet_says_nothing_of_a_change(on, form):
    result = on("table", "drop", "flights", "-q", "-o", form)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert bool(result.stdout) is (form != "table")


def test_a_change_is_told_on_stderr(on, lake):
    result = on("table", "drop", "a$b")
    assert result.stdout == ""
    assert f"undo: mooring -c {shlex.quote(str(lake))} table undrop 'a$b'" in result.stderr


def test_names_are_bare_lines(on):
    names = on("ls").stdout.splitlines()
    assert names == ["-dash", "flights", "guarded", "quo'te", "soon", "漢字"]
    assert on("table", "list").stdout == on("ls").stdout


def test_all_shows_every_state(on):
    rows = json.loads(on("ls", "-a", "-o", "json").stdout)
    states = {row["name"]: row["state"] for row in rows}
    assert states["flights"] == "live"
    assert states["old"] == "dropped"
    assert states["hidden"] == "deregistered"


def test_wide_letters_are_aligned(on):
    lines = on("ls", "-a").stdout.splitlines()
    plain = next(line for line in lines if line.startswith("flights"))
    wide = next(line for line in lines if line.startswith("漢字"))
    assert plain.index("live") == wide.index("live") + len("漢字")


def test_names_on_disk_cannot_drive_the_terminal(on, lake):
    (lake / "ev\033[31mil.lance").mkdir()
    (lake / "n\udcff.lance").mkdir()
    shown = on("doctor").stdout
    assert "ev\\x1b[31mil.lance" in shown
    assert "n\\udcff.lance" in shown
    names = [row["name"] for row in json.loads(on("doctor", "-o", "json").stdout)]
    assert {"ev\033[31mil.lance", "n\udcff.lance"} <= set(names)
    assert on("doctor", "-o", "csv").exit_code == 0


def test_describe_tells_everything(on, lake):
    record = json.loads(on("table", "describe", "guarded", "-o", "json").stdout)
    assert record == {
        "name": "guarded",
        "location": str(lake / "guarded.lance"),
        "version": 1,
        "rows": 2,
        "protected": True,
        "declared": False,
        "properties": {"mooring.protected": "true"},
        "schema": [
            {"name": "id", "type": "int64", "nullable": True},
            {"name": "city", "type": "string", "nullable": True},
        ],
    }


def test_describe_of_a_declared_table_has_no_rows(on):
    record = json.loads(on("table", "describe", "soon", "-o", "json").stdout)
    assert (record["declared"], record["rows"], record["schema"]) == (True, None, None)
