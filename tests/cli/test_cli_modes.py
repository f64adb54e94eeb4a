"""Nested identifiers on the command line, and the three modes that a catalog is opened in.

Spec: directory-namespace, "V1: Directory Listing", "V2: Manifest", "Compatibility Mode".
"""

import json
import shlex

import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
MODES = {"compatibility": [], "manifest": ["--no-listing"], "plain": ["--no-manifest"]}


@pytest.fixture(params=["compatibility", "manifest"])
def nesting(request, run, tree):
    """Run on the tree in each of the modes that nest."""
    return lambda *args: run("-c", tree, *MODES[request.param], *args)


def rows_of(result):
    assert result.exit_code == DONE, result.output
    return json.loads(result.stdout)


# -- a table in a namespace ----------------------------------------------------------------------


def test_a_nested_table_goes_through_a_whole_life(nesting, rows_file):
    created = nesting("table", "create", "sales$us$trips", "--from", rows_file)
    assert created.stderr == "created 'sales$us$trips': 3 rows, version 1\n"
    described = rows_of(nesting("table", "describe", "sales$us$trips", "-o", "json"))
    assert (described["name"], described["rows"]) == ("sales$us$trips", 3)
    assert nesting("ls", "sales$us").stdout == "trips\n"
    for verb in ("protect", "unprotect", "drop", "undrop", "history"):
        result = nesting("table", verb, "sales$us$trips")
        assert result.exit_code == DONE, (verb, result.output)
    assert nesting("table", "rename", "sales$us$trips", "sales$eu$rides").exit_code == DONE
    assert nesting("ls", "sales$eu").stdout == "orders\nrides\n"
    nesting("table", "drop", "sales$eu$rides", "--ttl", "0s")
    (purged,) = rows_of(nesting("trash", "purge", "--yes", "-o", "json"))
    assert (purged["table"], purged["result"]) == ("sales$eu$rides", "purged")
    assert purged["files"] > 0
    assert "rides" not in nesting("ls", "-a").stdout


def test_a_nested_table_comes_back_under_another_name(nesting, tree):
    nesting("table", "drop", "sales$orders")
    undropped = nesting("table", "undrop", "sales$orders", "--to", "sales$us$kept")
    assert undropped.stderr == "'sales$us$kept' is live again\n"
    assert mooring.connect(tree).table("sales$us$kept").count() == 2


def test_a_declared_nested_table(nesting):
    declared = rows_of(nesting("table", "declare", "sales$soon", "-o", "json"))
    assert declared["table"] == "sales$soon"
    assert rows_of(nesting("table", "describe", "sales$soon", "-o", "json"))["declared"] is True


def test_the_hint_of_a_deregistration_can_be_pasted(nesting, tree):
    told = nesting("table", "deregister", "sales$orders").stderr
    words = shlex.split(told.partition("undo: mooring ")[2])
    assert words[-3] == "--location"
    assert nesting("table", "describe", "sales$orders").exit_code == NOT_FOUND
    registered = nesting(*words[words.index("table") :])
    assert registered.exit_code == DONE, registered.output
    assert mooring.connect(tree).table("sales$orders").count() == 2


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (NOT_FOUND, ["table", "describe", "sales$nothing"]),
        (NOT_FOUND, ["table", "describe", "nothing$orders"]),
        (NOT_FOUND, ["table", "describe", "sales"]),
        (NOT_FOUND, ["table", "list", "nothing"]),
        (NOT_FOUND, ["table", "list", "nothing", "--all"]),
        (NOT_FOUND, ["ls", "sales$orders"]),
        (NOT_FOUND, ["table", "create", "nothing$new", "--from", "rows.csv"]),
        (NOT_FOUND, ["table", "rename", "sales$orders", "nothing$new"]),
        (NOT_FOUND, ["table", "undrop", "sales$orders"]),
        (NOT_FOUND, ["trash", "purge", "sales$orders", "--yes"]),
        (USAGE, ["table", "declare", "sales$"]),
        (USAGE, ["table", "register", "sales$new"]),
        (USAGE, ["table", "register", "sales$new", "--location", "../x"]),
        (CONFLICT, ["table", "create", "sales$orders", "--from", "rows.csv"]),
        (CONFLICT, ["table", "create", "sales", "--from", "rows.csv"]),
        (CONFLICT, ["table", "rename", "sales$orders", "sales$eu$orders"]),
        (REFUSED, ["table", "drop", "vault$gold"]),
        (REFUSED, ["table", "drop", "vault$gold", "--dry-run"]),
        (REFUSED, ["table", "drop", "sales$orders", "sales$eu$orders"]),
    ],
)
def test_exit_code(nesting, rows_file, code, args):
    result = nesting(*args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


def test_a_purge_by_name_takes_every_drop_of_it_and_one_by_time_does_not(nesting, rows_file):
    """A name can be in the trash several times."""
    nesting("table", "drop", "sales$orders", "--ttl", "0s")
    nesting("table", "create", "sales$orders", "--from", rows_file)
    nesting("table", "drop", "sales$orders", "--ttl", "never")
    assert len(rows_of(nesting("trash", "list", "-o", "json"))) == 2
    assert len(rows_of(nesting("trash", "purge", "--dry-run", "-o", "json"))) == 1
    nesting("trash", "purge", "--yes")
    (left,) = rows_of(nesting("trash", "list", "-o", "json"))
    assert left["expires_at"] is None
    nesting("table", "create", "sales$orders", "--from", rows_file)
    assert nesting("trash", "purge", "sales$orders", "--yes").exit_code == DONE
    assert rows_of(nesting("trash", "list", "-o", "json")) == []
    assert nesting("table", "describe", "sales$orders").exit_code == DONE


# -- ls ------------------------------------------------------------------------------------------


def test_ls_names_what_is_directly_in_a_namespace(on_tree):
    assert on_tree("ls").stdout == "ports\n"
    assert on_tree("ls", "sales").stdout == "orders\n"
    assert on_tree("table", "list", "sales$eu").stdout == "orders\n"
    bare = on_tree("ls", "sales$us")
    assert (bare.stdout, bare.stderr) == ("", "no tables in namespace 'sales$us'\n")


def test_ls_says_that_there_are_namespaces(run):
    run("namespace", "create", "a", "-c", "new")
    told = run("ls", "new").stderr
    assert told == "no tables in 'new'; 1 namespace is in it: mooring -c new namespace list\n"


def test_all_has_full_identifiers_of_all_namespaces(on_tree):
    on_tree("table", "drop", "sales$eu$orders", "--ttl", "never")
    rows = rows_of(on_tree("table", "list", "--all", "-o", "json"))
    assert [(row["name"], row["state"]) for row in rows] == [
        ("ports", "live"),
        ("sales$eu$orders", "dropped"),
        ("sales$orders", "live"),
        ("vault$gold", "live"),
    ]
    assert rows_of(on_tree("ls", "--all", "-o", "json")) == rows
    below = rows_of(on_tree("ls", "sales", "-a", "-o", "json"))
    assert [row["name"] for row in below] == ["sales$eu$orders", "sales$orders"]


def test_the_trash_has_full_identifiers(on_tree):
    on_tree("namespace", "drop", "sales", "--cascade", "--yes")
    rows = rows_of(on_tree("trash", "list", "-o", "json"))
    assert [row["name"] for row in rows] == ["sales$eu$orders", "sales$orders"]


def test_the_argument_of_ls_is_a_catalog_or_a_namespace(run, tree, monkeypatch):
    assert run("ls", "tree").stdout == "ports\n"
    assert run("ls", "tree", "sales").stdout == "orders\n"
    assert run("ls", "-c", "tree", "sales").stdout == "orders\n"
    monkeypatch.setenv("MOORING_CATALOG", "tree")
    assert run("ls", "sales").stdout == "orders\n"
    assert run("ls", "./tree", "sales$eu").stdout == "orders\n"
    lost = run("ls", "tree")
    assert lost.exit_code == NOT_FOUND
    assert "write './tree'" in lost.stderr
    assert "write" not in run("ls", "nothing").stderr


# -- modes ---------------------------------------------------------------------------------------


@pytest.fixture
def mixed(run, tree, plain):
    """A catalog with rows in a manifest, and tables beside it that only a listing finds."""
    for name in ("flights", "guarded"):
        (plain / f"{name}.lance").rename(tree / f"{name}.lance")
    return lambda mode, *args: run("-c", tree, *MODES[mode], *args)


def test_what_each_mode_finds(mixed):
    """Spec: directory-namespace, "Compatibility Mode", rules 1 and 2."""
    assert mixed("compatibility", "ls").stdout == "flights\nguarded\nports\n"
    assert mixed("manifest", "ls").stdout == "ports\n"
    assert mixed("plain", "ls").stdout == "flights\nguarded\n"
    assert mixed("plain", "namespace", "list").stdout == ""
    assert mixed("plain", "table", "describe", "sales$orders").exit_code == NOT_FOUND


def test_a_root_table_is_created_in_its_own_directory(on, lake, rows_file):
    """Spec: directory-namespace, "Compatibility Mode", rule 3."""
    on("table", "create", "t", "--from", rows_file)
    assert (lake / "t.lance").is_dir()
    assert (lake / "__manifest").is_dir()


def test_a_root_table_can_be_renamed_into_a_namespace(on, lake):
    """Spec: directory-namespace, "Compatibility Mode", rule 4."""
    result = on("table", "rename", "flights", "a$trips")
    assert result.exit_code == DONE, result.output
    assert on("ls", "a").stdout == "b\ntrips\n"
    assert mooring.connect(lake).table("a$trips").count() == 2


def test_a_plain_directory_takes_no_manifest(run, plain, rows_file):
    run("-c", plain, "--no-manifest", "table", "create", "t", "--from", rows_file)
    assert not (plain / "__manifest").exists()
    run("-c", plain, "table", "create", "u", "--from", rows_file)
    assert (plain / "__manifest").is_dir()


def test_neither_manifest_nor_listing_leaves_nothing(on):
    result = on("--no-manifest", "--no-listing", "ls")
    assert result.exit_code == USAGE


def test_hints_keep_the_mode(on_plain, plain):
    told = on_plain("table", "drop", "a$b").stderr
    assert f"undo: mooring -c {plain} --no-manifest table undrop 'a$b'" in told


# -- locations outside of the root ---------------------------------------------------------------


def test_allowed_locations_are_set_and_used(run, tree, plain):
    outside = str(plain / "flights.lance")
    register = ["table", "register", "sales$far", "--location", outside, "-c", tree]
    refused = run(*register)
    assert refused.exit_code == USAGE
    assert "mooring init --allow-location" in refused.stderr
    allow = ["--allow-location", plain, "--allow-location", "s3://bucket/x", "-o", "json"]
    settings = rows_of(run("init", tree, *allow))
    assert settings["allowed_locations"] == [str(plain), "s3://bucket/x"]
    assert run(*register).exit_code == DONE
    assert mooring.connect(tree).table("sales$far").count() == 2
    kept = rows_of(run("init", tree, "-o", "json"))
    assert kept["allowed_locations"] == settings["allowed_locations"]
    assert "tables may also lie below" in run("init", tree, "--allow-location", plain).stderr


@pytest.mark.parametrize("location", ["", "relative", "../up", "./here"])
def test_a_relative_location_cannot_be_allowed(run, tree, location):
    result = run("init", tree, "--allow-location", location)
    assert result.exit_code == USAGE
    assert mooring.connect(tree).backend.settings.allowed_locations == ()
