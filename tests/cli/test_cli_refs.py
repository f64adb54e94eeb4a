"""Tags and branches by the command line."""

import json
import shlex

import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "fleet"


@pytest.fixture
def ships(root):
    """A table of two versions."""
    table = mooring.connect(root, author="maker").create_table("ships", [{"id": 1}])
    table.insert([{"id": 2}])
    return table


@pytest.fixture
def on(run, root, ships):
    def invoke(*args, **options):
        return run("-c", root, "table", *args, **options)

    return invoke


# -- tags ------------------------------------------------------------------------------------------


def test_a_tag_lives_its_life(on, run):
    assert on("tag", "list", "ships").stderr == "'ships' has no tags\n"
    created = on("tag", "create", "ships", "first", "1")
    assert created.stderr == "created tag 'first' of 'ships': version 1\n"
    assert on("tag", "create", "ships", "newest").exit_code == DONE
    rows = json.loads(on("tag", "list", "ships", "-o", "json").stdout)
    assert [(row["tag"], row["version"], row["branch"], row["by"]) for row in rows] == [
        ("first", 1, "main", "tester"),
        ("newest", 2, "main", "tester"),
    ]
    assert on("tag", "move", "ships", "first").stderr == (
        "moved tag 'first' of 'ships': version 2\n"
    )
    told = on("tag", "delete", "ships", "first").stderr
    assert told.startswith("deleted tag 'first' of 'ships'; undo: ")
    assert run(*shlex.split(told.partition("undo: mooring ")[2])).exit_code == DONE
    lines = on("tag", "list", "ships").stdout.splitlines()
    assert lines[1].split()[:3] == ["first", "2", "main"]


def test_a_tag_names_a_version_of_a_branch(on):
    on("branch", "create", "ships", "dev", "--version", "1")
    record = json.loads(on("tag", "create", "ships", "t", "--branch", "dev", "-o", "json").stdout)
    assert record == {
        "table": "ships",
        "result": "created",
        "tag": "t",
        "version": 1,
        "branch": "dev",
    }
    told = on("tag", "delete", "ships", "t").stderr
    assert "table tag create --branch dev ships t 1" in told


# -- branches --------------------------------------------------------------------------------------


def test_a_branch_lives_its_life(on, ships, tmp_path):
    assert on("branch", "list", "ships").stderr == "'ships' has no branches beside main\n"
    created = on("branch", "create", "ships", "dev", "--version", "1")
    assert created.stderr == "created branch 'dev' of 'ships' from version 1 of main\n"
    rows = json.loads(on("branch", "list", "ships", "-o", "json").stdout)
    assert [
        (row["branch"], row["from_branch"], row["from_version"], row["by"]) for row in rows
    ] == [("dev", "main", 1, "tester")]
    (tmp_path / "more.csv").write_text("id\n7\n8\n")
    assert on("insert", "ships", "more.csv", "--branch", "dev").exit_code == DONE
    assert on("count", "ships", "--branch", "dev").stdout == "3\n"
    assert ships.count() == 2
    assert on("branch", "delete", "ships", "dev", "--yes").stderr.endswith(
        "deleted branch 'dev' of 'ships'\n"
    )
    assert on("branch", "list", "ships").stdout.count("\n") == 1


def test_a_branch_begins_at_a_tag_or_another_branch(on):
    on("tag", "create", "ships", "first", "1")
    on("branch", "create", "ships", "dev", "--tag", "first")
    result = on("branch", "create", "ships", "fix", "--branch", "dev", "-o", "json")
    assert json.loads(result.stdout) == {
        "table": "ships",
        "result": "created",
        "branch": "fix",
        "from_branch": "dev",
        "from_version": 1,
    }


def test_a_branch_is_deleted_only_with_consent(on):
    on("branch", "create", "ships", "dev")
    result = on("branch", "delete", "ships", "dev")
    assert result.exit_code == REFUSED
    assert "about to delete branch 'dev' of 'ships' for good:" in result.stderr
    shown = on("branch", "delete", "ships", "dev", "--dry-run")
    assert shown.stdout.splitlines()[1].split()[:3] == ["ships", "delete", "dev"]
    assert on("branch", "list", "ships").stdout.count("\n") == 2


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said", "args"),
    [
        (USAGE, "Usage: mooring table tag", ["tag"]),
        (USAGE, "Usage: mooring table branch", ["branch"]),
        (USAGE, "cannot name a tag", ["tag", "create", "ships", "a b"]),
        (USAGE, "Invalid value", ["tag", "create", "ships", "x", "one"]),
        (USAGE, "cannot name a branch", ["branch", "create", "ships", "a b"]),
        (USAGE, "main", ["branch", "delete", "ships", "main", "--yes"]),
        (NOT_FOUND, "did you mean 'ships'?", ["tag", "list", "shops"]),
        (NOT_FOUND, "no version 9", ["tag", "create", "ships", "x", "9"]),
        (NOT_FOUND, "has no tag 'firts'; did you mean 'first'?", ["tag", "move", "ships", "firts"]),
        (NOT_FOUND, "has no tag 'x'; there is first", ["tag", "delete", "ships", "x"]),
        (NOT_FOUND, "did you mean 'dev'?", ["tag", "create", "ships", "x", "--branch", "def"]),
        (NOT_FOUND, "did you mean 'dev'?", ["branch", "delete", "ships", "def", "--dry-run"]),
        (NOT_FOUND, "did you mean 'dev'?", ["branch", "delete", "ships", "def", "--yes"]),
        (NOT_FOUND, "has no tag 'x'", ["branch", "create", "ships", "b", "--tag", "x"]),
        (CONFLICT, "has a tag 'first' already", ["tag", "create", "ships", "first"]),
        (CONFLICT, "has a branch 'dev' already", ["branch", "create", "ships", "dev"]),
        (REFUSED, "read-only", ["tag", "create", "ships", "x", "--read-only"]),
        (REFUSED, "read-only", ["branch", "create", "ships", "x", "--read-only"]),
    ],
)
def test_a_mistake_is_told(on, ships, code, said, args):
    ships.tags.create("first", 1)
    ships.branches.create("dev")
    result = on(*args)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
