"""Properties of tables on the command line, and the sweep of what no name leads to."""

import json
import os
import time

import pytest

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
LEFTOVER, KEPT, FRESH = "0a1b2c3d_sales$lost", "0a1b2c3e_sales$whole", "0a1b2c3f_sales$new"


@pytest.fixture
def told(on_tree):
    """Run on the tree and return what it wrote as JSON."""

    def invoke(*args):
        result = on_tree(*args, "-o", "json")
        assert result.exit_code == DONE, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def leftovers(tree):
    """Leave what crashed creators leave: a part of a table, a whole one, one just begun."""
    old = time.time() - 3 * 86_400
    for directory, file in [
        (LEFTOVER, "data/a.lance"),
        (KEPT, "_versions/18446744073709551614.manifest"),
        (FRESH, "data/b.lance"),
    ]:
        path = tree / directory / file
        path.parent.mkdir(parents=True)
        path.write_bytes(b"12345")
        if directory != FRESH:
            os.utime(path, (old, old))
    return lambda: {path.name for path in tree.iterdir()} & {LEFTOVER, KEPT, FRESH}


def test_a_table_is_created_with_properties(on_tree, told, rows_file):
    made = on_tree(
        *("table", "create", "sales$new", "--from", str(rows_file), "--owner", "ada"),
        *("--label", "raw", "--label", "eu", "--description", "fresh", "-p", "k=v=w"),
    )
    assert made.exit_code == DONE, made.output
    assert told("table", "describe", "sales$new")["properties"] == {
        "description": "fresh",
        "k": "v=w",
        "labels": "raw,eu",
        "owner": "ada",
    }


def test_a_table_is_declared_with_properties(on_tree, told):
    on_tree("table", "declare", "sales$later", "--owner", "ada")
    assert told("table", "describe", "sales$later")["properties"] == {"owner": "ada"}


def test_set_changes_what_is_named_and_keeps_the_rest(told, on_tree):
    on_tree("table", "declare", "sales$t", "--owner", "ada", "-p", "a=1")
    kept = told("table", "set", "sales$t", "--unset", "owner", "-p", "b=2")
    assert kept == {"table": "sales$t", "result": "set", "properties": {"a": "1", "b": "2"}}
    shown = on_tree("table", "set", "sales$t", "--unset", "a")
    assert shown.stderr == "'sales$t' has 1 property now\n"


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (USAGE, ["set", "ports"]),
        (USAGE, ["set", "ports", "-p", "novalue"]),
        (USAGE, ["set", "ports", "-p", "a=1", "--unset", "a"]),
        (USAGE, ["set", "ports", "-p", "mooring.renaming=x"]),
        (USAGE, ["declare", "new", "--label", "a,b"]),
        (NOT_FOUND, ["set", "nothing", "--owner", "ada"]),
        (REFUSED, ["set", "ports", "--owner", "ada", "--read-only"]),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(on_tree, code, args):
    result = on_tree("table", *args)
    assert result.exit_code == code, result.output


def test_a_plain_directory_keeps_no_properties(on_plain):
    result = on_plain("table", "set", "flights", "--owner", "ada")
    assert result.exit_code == REFUSED, result.output
    assert "propert" in result.stderr


def test_a_sweep_deletes_what_no_name_leads_to_and_keeps_whole_tables(on_tree, told, leftovers):
    plan = on_tree("trash", "sweep", "--dry-run")
    assert leftovers() == {LEFTOVER, KEPT, FRESH}
    assert "would delete 1 directory" in plan.stderr
    assert on_tree("trash", "sweep").exit_code == REFUSED
    rows = told("trash", "sweep", "--yes")
    assert [(row["location"], row["action"], row["bytes"]) for row in rows] == [
        (LEFTOVER, "deleted", 5),
        (KEPT, "kept", 5),
    ]
    assert leftovers() == {KEPT, FRESH}
    again = on_tree("trash", "sweep")
    assert again.exit_code == DONE
    assert "1 directory without a name" in again.stderr


def test_a_sweep_takes_what_is_as_old_as_was_said(on_tree, leftovers):
    swept = on_tree("trash", "sweep", "--older-than", "0s", "--yes")
    assert swept.exit_code == DONE, swept.output
    assert leftovers() == {KEPT}


def test_there_is_nothing_to_sweep_where_every_directory_has_a_name(on_tree):
    result = on_tree("trash", "sweep")
    assert result.exit_code == DONE, result.output
    assert "nothing to sweep" in result.stderr


def test_a_sweep_without_the_manifest_is_refused(on_tree, on_plain, leftovers):
    """Whoever does not look at the manifest cannot tell what it lacks."""
    assert on_plain("trash", "sweep").exit_code == REFUSED
    result = on_tree("trash", "sweep", "--no-manifest", "--listing", "--yes")
    assert result.exit_code == REFUSED, result.output
    assert leftovers() == {LEFTOVER, KEPT, FRESH}


@pytest.mark.parametrize("age", ["never", "soon"])
def test_a_sweep_wants_an_age(on_tree, age):
    assert on_tree("trash", "sweep", "--older-than", age).exit_code == USAGE
