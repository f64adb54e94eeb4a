"""Namespaces on the command line.

Spec: objects-and-relationships, "Namespace"; directory-namespace, "V2: Manifest".
"""

import json

import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
DAY_MS = 86_400_000


@pytest.fixture
def told(on_tree):
    """Run on the tree and return what it wrote as JSON."""

    def invoke(*args):
        result = on_tree(*args, "-o", "json")
        assert result.exit_code == DONE, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def files(tree):
    """Tell what the tree holds on disk, to see that nothing was written."""
    return lambda: sorted((path, path.stat().st_mtime_ns) for path in tree.rglob("*"))


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (DONE, ["list"]),
        (DONE, ["list", "sales"]),
        (DONE, ["tree", "sales"]),
        (DONE, ["create", "new"]),
        (DONE, ["create", "sales", "--exist-ok"]),
        (DONE, ["drop", "sales$us"]),
        (DONE, ["drop", "sales", "--cascade", "--yes"]),
        (DONE, ["drop", "nothing", "--if-exists"]),
        (DONE, ["drop", "nothing$deeper", "--if-exists"]),
        (USAGE, []),
        (USAGE, ["create"]),
        (USAGE, ["create", ""]),
        (USAGE, ["create", "a/b"]),
        (USAGE, ["create", "sales$$x"]),
        (USAGE, ["create", "new", "-p", "novalue"]),
        (USAGE, ["create", "new", "-p", "=value"]),
        (USAGE, ["create", "new", "--retention", "soon"]),
        (USAGE, ["create", "new", "--label", "a,b"]),
        (USAGE, ["create", "new", "--label", " "]),
        (USAGE, ["create", "new", "--exist-ok", "--overwrite"]),
        (USAGE, ["create", "new", "--owner", "ada", "-p", "owner=eve"]),
        (USAGE, ["create", "new", "-p", "mooring.protected=maybe"]),
        (USAGE, ["set", "sales"]),
        (USAGE, ["set", "sales", "-p", "x=y", "--unset", "x"]),
        (USAGE, ["set", "sales", "--protect", "--unset", "mooring.protected"]),
        (USAGE, ["set", "--retention", "30d"]),
        (USAGE, ["drop"]),
        (USAGE, ["drop", ""]),
        (USAGE, ["drop", "sales$us", "--ttl", "soon"]),
        (NOT_FOUND, ["list", "nothing"]),
        (NOT_FOUND, ["list", "nothing", "-a"]),
        (NOT_FOUND, ["list", "ports"]),
        (NOT_FOUND, ["describe", "nothing"]),
        (NOT_FOUND, ["tree", "nothing"]),
        (NOT_FOUND, ["set", "nothing", "--owner", "ada"]),
        (NOT_FOUND, ["create", "nothing$new"]),
        (NOT_FOUND, ["drop", "nothing"]),
        (NOT_FOUND, ["drop", "nothing", "--dry-run"]),
        (NOT_FOUND, ["drop", "ports"]),
        (NOT_FOUND, ["undrop", "sales"]),
        (NOT_FOUND, ["undrop", "nothing"]),
        (CONFLICT, ["create", "sales"]),
        (CONFLICT, ["create", "ports"]),
        (CONFLICT, ["create", "ports", "--exist-ok"]),
        (CONFLICT, ["drop", "sales"]),
        (CONFLICT, ["drop", "sales", "--dry-run"]),
        (CONFLICT, ["drop", "sales", "--if-exists"]),
        (REFUSED, ["drop", "sales", "--cascade"]),
        (REFUSED, ["drop", "vault", "--cascade", "--yes"]),
        (REFUSED, ["drop", "vault", "--cascade", "--dry-run"]),
        (REFUSED, ["create", "new", "--read-only"]),
        (REFUSED, ["drop", "sales$us", "--read-only"]),
    ],
)
def test_exit_code(on_tree, code, args):
    result = on_tree("namespace", *args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (DONE, ["list"]),
        (DONE, ["tree"]),
        (DONE, ["describe"]),
        (REFUSED, ["create", "new"]),
        (REFUSED, ["set", "-p", "x=y"]),
        (NOT_FOUND, ["describe", "a"]),
        (NOT_FOUND, ["drop", "a"]),
        (REFUSED, ["undrop", "a"]),
    ],
)
def test_exit_code_in_a_plain_directory(on_plain, code, args):
    """Spec: directory-namespace, "V1: Directory Listing": a 1-level namespace."""
    result = on_plain("namespace", *args)
    assert result.exit_code == code, result.output


# -- list and tree -------------------------------------------------------------------------------


def test_list_names_direct_children(on_tree):
    assert on_tree("namespace", "list").stdout == "sales\nvault\n"
    assert on_tree("namespace", "list", "sales").stdout == "eu\nus\n"
    empty = on_tree("namespace", "list", "sales$eu")
    assert (empty.stdout, empty.stderr) == ("", "no namespaces in namespace 'sales$eu'\n")


def test_list_all_has_full_identifiers_and_states(told, on_tree):
    on_tree("namespace", "drop", "sales$us", "--ttl", "never")
    rows = told("namespace", "list", "--all")
    assert [(row["name"], row["state"]) for row in rows] == [
        ("sales", "live"),
        ("sales$eu", "live"),
        ("sales$us", "dropped"),
        ("vault", "live"),
    ]
    assert rows[2]["deleted_at"]
    assert rows[2]["expires_at"] is None
    below = told("namespace", "list", "sales", "-a")
    assert [row["name"] for row in below] == ["sales$eu", "sales$us"]


def test_tree_is_indented_for_people(on_tree, tree):
    assert on_tree("namespace", "tree").stdout.splitlines() == [
        f"{tree}/",
        "  sales/",
        "    eu/",
        "      orders",
        "    us/",
        "    orders",
        "  vault/",
        "    gold",
        "  ports",
    ]
    assert on_tree("namespace", "tree", "sales$eu").stdout.splitlines() == ["sales$eu/", "  orders"]


def test_tree_is_rows_for_programs(told):
    assert told("namespace", "tree", "sales") == [
        {"path": "sales", "kind": "namespace", "properties": 2},
        {"path": "sales$eu", "kind": "namespace", "properties": 1},
        {"path": "sales$eu$orders", "kind": "table", "properties": 0},
        {"path": "sales$us", "kind": "namespace", "properties": 0},
        {"path": "sales$orders", "kind": "table", "properties": 1},
    ]
    assert [row["path"] for row in told("namespace", "tree")][-1] == "ports"


def test_tree_of_a_plain_directory_is_its_tables(on_plain):
    lines = on_plain("namespace", "tree").stdout.splitlines()
    assert "  a$b" in lines
    assert "  flights" in lines


# -- create, describe, set -----------------------------------------------------------------------


def test_create_keeps_every_kind_of_property(told, tree):
    made = told(
        *["namespace", "create", "ops", "-p", "tier=1", "-p", "url=a=b", "--description", "Duty"],
        *["--owner", "ada", "--label", "hot", "--label", "eu", "--retention", "30d", "--protect"],
    )
    kept = {
        "tier": "1",
        "url": "a=b",
        "description": "Duty",
        "owner": "ada",
        "labels": "hot,eu",
        "mooring.retention": "30d",
        "mooring.protected": "true",
    }
    assert made == {"namespace": "ops", "result": "created", "properties": kept}
    assert mooring.connect(tree).describe_namespace("ops") == kept


def test_create_makes_the_catalog_too(run):
    assert run("namespace", "create", "a", "-c", "new").exit_code == DONE
    assert run("namespace", "list", "-c", "new").stdout == "a\n"


def test_create_where_it_exists(told):
    kept = told("namespace", "create", "sales", "--exist-ok", "--owner", "eve")
    assert (kept["result"], kept["properties"]["owner"]) == ("exists", "ada")
    over = told("namespace", "create", "sales", "--overwrite", "--owner", "eve")
    assert (over["result"], over["properties"]) == ("overwritten", {"owner": "eve"})
    assert told("namespace", "describe", "sales")["properties"] == {"owner": "eve"}


def test_describe_counts_what_is_in_it(told):
    assert told("namespace", "describe", "sales") == {
        "name": "sales",
        "namespaces": 2,
        "tables": 1,
        "protected": False,
        "retention": None,
        "properties": {"owner": "ada", "description": "What is sold"},
    }
    assert told("namespace", "describe", "sales$eu")["retention"] == "30d"
    assert told("namespace", "describe", "vault")["protected"] is True
    root = told("namespace", "describe")
    assert (root["name"], root["namespaces"], root["tables"]) == ("", 2, 1)


def test_describe_for_people_lists_the_properties(on_tree):
    lines = on_tree("namespace", "describe", "sales").stdout.splitlines()
    assert lines[0].split() == ["name", "sales"]
    assert lines[-2:] == ["description  What is sold", "owner        ada"]


def test_set_changes_what_it_names(told):
    told("namespace", "set", "sales", "-p", "tier=2", "--unset", "description", "--label", "x")
    kept = told("namespace", "describe", "sales")["properties"]
    assert kept == {"owner": "ada", "tier": "2", "labels": "x"}
    told("namespace", "set", "sales", "--unset", "tier", "--unset", "never-there")
    assert "tier" not in told("namespace", "describe", "sales")["properties"]


def test_set_of_the_root(told, tree):
    done = told("namespace", "set", "--owner", "eve")
    assert done == {"namespace": "", "result": "set", "properties": {"owner": "eve"}}
    assert mooring.connect(tree).describe_namespace() == {"owner": "eve"}


def test_protection_is_set_and_lifted(on_tree, told):
    told("namespace", "set", "sales", "--protect")
    refused = on_tree("table", "drop", "sales$orders", "--dry-run")
    assert refused.exit_code == REFUSED
    assert "namespace set --unprotect sales" in refused.stderr
    assert on_tree("table", "drop", "sales$orders").exit_code == REFUSED
    assert on_tree("namespace", "drop", "sales$us").exit_code == REFUSED
    assert "mooring.protected" not in told("namespace", "set", "sales", "--unprotect")["properties"]
    assert on_tree("table", "drop", "sales$orders").exit_code == DONE


# -- drop and undrop -----------------------------------------------------------------------------


def test_the_plan_tells_what_goes_along(told, files):
    before = files()
    (row,) = told("namespace", "drop", "sales", "--cascade", "--dry-run")
    assert row == {"namespace": "sales", "action": "drop", "namespaces": 2, "tables": 2}
    assert files() == before


def test_a_drop_that_takes_something_along_asks(on_tree, files):
    before = files()
    result = on_tree("namespace", "drop", "sales", "--cascade")
    assert "about to drop namespace 'sales' with 2 tables and 2 namespaces:" in result.stderr
    assert "say --yes" in result.stderr
    assert files() == before


def test_an_empty_namespace_goes_without_asking(on_tree, told):
    told("namespace", "drop", "sales$us")
    assert on_tree("namespace", "list", "sales").stdout == "eu\n"


def test_drop_and_undrop_of_a_whole_tree(on_tree, told, tree):
    dropped = told("namespace", "drop", "sales", "--cascade", "--yes", "--ttl", "never")
    assert dropped == {
        "namespace": "sales",
        "result": "dropped",
        "namespaces": 2,
        "tables": 2,
        "expires_at": None,
    }
    assert on_tree("ls", "-a").stdout.count("dropped") == 2
    lost = on_tree("table", "describe", "sales$eu$orders")
    assert lost.exit_code == NOT_FOUND
    assert f'"mooring -c {tree} --no-listing namespace undrop sales"' in lost.stderr
    back = told("namespace", "undrop", "sales")
    assert back == {"namespace": "sales", "result": "undropped", "objects": 5}
    assert mooring.connect(tree).table("sales$eu$orders").count() == 2


def test_the_hint_of_a_drop_undoes_it(on_tree, tree):
    result = on_tree("namespace", "drop", "sales", "--cascade", "--yes")
    assert "dropped namespace 'sales' with 2 tables and 2 namespaces" in result.stderr
    assert f"undo: mooring -c {tree} --no-listing namespace undrop sales" in result.stderr


def test_the_retention_of_a_namespace_counts_for_its_drops(told):
    told("namespace", "create", "brief", "--retention", "0s")
    told("namespace", "drop", "brief")
    (row,) = [row for row in told("namespace", "list", "-a") if row["name"] == "brief"]
    assert row["expires_at"] == row["deleted_at"]


def test_an_absent_namespace_is_dropped_already(told):
    assert told("namespace", "drop", "nothing", "--if-exists") == {
        "namespace": "nothing",
        "result": "absent",
    }


def test_undrop_waits_for_its_name(on_tree, told):
    told("namespace", "drop", "sales", "--cascade", "--yes")
    told("namespace", "create", "sales")
    assert on_tree("namespace", "undrop", "sales").exit_code == CONFLICT


def test_a_purge_takes_expired_namespaces_along(on_tree, told):
    told("namespace", "create", "brief", "--retention", "0s")
    told("namespace", "drop", "brief")
    planned = told("trash", "purge", "--dry-run")
    assert [(row["namespace"], row["state"]) for row in planned] == [("brief", "dropped")]
    assert told("trash", "purge", "--yes") == [{"namespace": "brief", "result": "purged"}]
    assert on_tree("namespace", "undrop", "brief").exit_code == NOT_FOUND


@pytest.mark.parametrize("name", ["quo'te", "漢字", "50%", "-dash", "a b", "__manifest"])
def test_odd_names_go_through_a_whole_life(on_tree, name):
    """Names are data: none can see or harm another namespace."""
    before = on_tree("namespace", "tree", "-o", "json").stdout
    for verb in ("create", "describe", "tree", "drop", "undrop", "drop"):
        result = on_tree("namespace", verb, "--", name)
        assert result.exit_code == DONE, (verb, result.output)
    assert on_tree("namespace", "tree", "-o", "json").stdout == before


@pytest.mark.parametrize(
    "args", [["list", "-a"], ["tree"], ["describe", "sales"], ["drop", "sales$us", "--dry-run"]]
)
def test_reading_writes_nothing(on_tree, files, args):
    before = files()
    assert on_tree("namespace", *args).exit_code == DONE
    assert files() == before
