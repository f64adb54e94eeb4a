"""What a newcomer does wrong is answered with what, which, and what to do next."""

import shlex
from pathlib import Path

import pytest

FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = 1, 2, 3, 4, 5


@pytest.fixture
def files():
    """Files that nobody would make a table of, and one for which no format is told."""
    Path("empty.csv").touch()
    Path("bad.json").write_text("{bad")
    Path("rows").write_text("id\n1\n")
    Path("folder").mkdir()
    Path("folder/note.txt").write_text("a note")


@pytest.mark.parametrize(
    ("code", "said", "args"),
    [
        (NOT_FOUND, "'fligths'; did you mean 'flights'?", ["table", "describe", "fligths"]),
        (NOT_FOUND, "'fligths'; did you mean 'flights'?", ["table", "drop", "fligths"]),
        (NOT_FOUND, "'fligths'; did you mean 'flights'?", ["table", "drop", "fligths", "x", "-y"]),
        (NOT_FOUND, "'fligths'; did you mean 'flights'?", ["table", "protect", "fligths"]),
        (NOT_FOUND, "'olde'; did you mean 'older' or 'old'?", ["table", "undrop", "olde"]),
        (NOT_FOUND, "lake table undrop old", ["table", "query", "old"]),
        (NOT_FOUND, "lake namespace create geo", ["table", "list", "geo"]),
        (NOT_FOUND, "'aa'; did you mean 'a'?", ["namespace", "describe", "aa"]),
        (
            NOT_FOUND,
            "'flights' has no version 9; the newest is 1",
            ["table", "restore", "flights", "9"],
        ),
        (REFUSED, "lake table unprotect guarded", ["table", "drop", "guarded"]),
        (REFUSED, "by: flag; --no-read-only", ["table", "drop", "flights", "--read-only"]),
        (USAGE, "it should be a whole number. Try", ["table", "query", "flights", "-n", "many"]),
        (
            USAGE,
            "it should be greater than or equal to 0.",
            ["table", "query", "flights", "-n", "-1"],
        ),
        (USAGE, "'-o': 'xml' is not one of", ["ls", "-o", "xml"]),
        (USAGE, "No such option: --set. Try", ["table", "update", "flights", "--set", "x"]),
        (USAGE, "as csv: CSV parse error: Empty", ["table", "create", "t", "--from", "empty.csv"]),
        (USAGE, "as json: JSON parse error", ["table", "create", "t", "--from", "bad.json"]),
        (USAGE, "'rows' tells no format", ["table", "create", "t", "--from", "rows"]),
        (USAGE, "note.txt': ", ["table", "create", "t", "--from", "folder"]),
        (REFUSED, "no change tables: only a metastore has", ["changes", "list"]),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_mistake_is_told_with_what_to_do(on, code, said, args):
    done = on(*args)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["init", "rows"],
        ["ls", "rows"],
        ["init", "metastore+rows"],
        ["-c", "rows", "namespace", "create", "a"],
    ],
)
@pytest.mark.usefixtures("files")
def test_a_file_is_no_catalog(run, args):
    done = run(*args)
    assert done.exit_code == NOT_FOUND
    assert "it is a file, and a catalog is a directory" in done.stderr
    assert Path("rows").read_text() == "id\n1\n"


def test_a_line_names_the_profile_that_was_meant(run, lake):
    run("profile", "set", "prod", lake)
    done = run("--profile", "prod", "table", "query", "old")
    assert '"mooring --profile prod table undrop old"' in done.stderr


def test_a_suggestion_is_a_line_that_helps(run, lake):
    told = run("-c", lake, "table", "query", "old").stderr
    assert run(*shlex.split(told.split('"')[1])[1:]).exit_code == 0
    assert run("-c", lake, "table", "query", "old").exit_code == 0
