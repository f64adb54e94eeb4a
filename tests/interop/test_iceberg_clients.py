"""Iceberg clients on the server: they browse, their scans fail loudly, and no Lance table suffers.

Each client runs in a process of its own (`iceberg_peer`); where its environment or its jar cannot
be had, its tests say so and do not run.

Spec: iceberg-namespace, "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from mooring.errors import MooringError
from tests.interop.iceberg_peer import (
    IcebergClient,
    NotBuiltError,
    PeerError,
    find_interpreter,
)
from tests.interop.java_peers import NotHereError, find_jar
from tests.interop.served import EVERY_TYPE, KINDS, PEOPLE, TIMES, read_files, run_served

pytestmark = pytest.mark.interop

SPARK_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
CLIENTS = ("pyiceberg", "polars", "daft", "duckdb", "spark")

# The scheme that no client opens, or the address that tells why.
LOUD = r"lance://|this_is_a_lance_table|: lance\b"
# Or what else the client itself gives as its reason.
EXPLAINED = rf"{LOUD}|protocol lance\b|Lance table|with Lance|GC is disabled|already exists"

# How each client shows the columns of the table of people.
COLUMNS = {
    "pyiceberg": [["id", "int"], ["name", "string"]],
    "polars": [["id", "Int32"], ["name", "String"]],
    "daft": [["id", "Int32"], ["name", "String"]],
    "spark": [["id", "int"], ["name", "string"]],
}
# What each client can try to do to a table, besides dropping it.
ATTEMPTS = {
    "pyiceberg": (
        "append",
        "overwrite",
        "delete_rows",
        "upsert",
        "create_over",
        "create_plain",
        "create_staged",
        "expire_one",
        "add_column",
        "drop_column",
        "partition",
        "make_branch",
        "move_away",
        "unguard",
    ),
    "polars": ("append", "overwrite"),
    "daft": ("append", "overwrite", "create_over"),
    "duckdb": (
        "insert",
        "update_rows",
        "delete_rows",
        "create_over",
        "create_plain",
        "create_as",
        "add_column",
    ),
    "spark": (
        "insert",
        "overwrite",
        "delete_rows",
        "update_rows",
        "truncate",
        "merge",
        "create_over",
        "create_plain",
        "create_as",
        "replace",
        "expire",
        "remove_orphans",
        "rewrite",
        "rewrite_manifests",
        "roll_back",
        "add_column",
        "drop_column",
        "make_branch",
        "unguard",
        "purge",
    ),
}
TRIED = [(client, attempt) for client in CLIENTS for attempt in ATTEMPTS[client]]
DROPS = [
    ("pyiceberg", "drop"),
    ("pyiceberg", "purge"),
    ("daft", "drop"),
    ("duckdb", "drop"),
    ("duckdb", "purge"),
    ("spark", "drop"),
]


@pytest.fixture(scope="module", params=list(KINDS))
def served(request, tmp_path_factory):
    with run_served(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


class Clients:
    """The clients that have been asked for, each started once for a catalog."""

    def __init__(self, uri, home):
        self._uri, self.home, self._started = uri, home, {}

    def __call__(self, name):
        if name not in self._started:
            self._started[name] = self._start(name)
        return self._started[name]

    def close(self):
        for client in self._started.values():
            client.close()

    def _start(self, name):
        try:
            more = {"jar": str(find_jar(SPARK_JAR))} if name == "spark" else {}
            python = sys.executable if name == "spark" else find_interpreter()
        except (NotBuiltError, NotHereError) as exc:
            pytest.skip(f"not run: {exc}")
        client = IcebergClient(python, self.home)
        client("start", client=name, uri=self._uri, **more)
        return client


@pytest.fixture(scope="module")
def clients(served, tmp_path_factory):
    found = Clients(served.uri, tmp_path_factory.mktemp("home"))
    yield found
    found.close()


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.peer("{name}", they="list", on="Iceberg REST")
def test_namespaces_and_tables_are_listed(served, clients, name):
    client = clients(name)
    assert sorted(_namespaces(client, name)) == sorted(served.namespaces)
    assert sorted(client("tables", namespace=served.namespace)) == served.tables


def _namespaces(client, name):
    if name == "duckdb":  # it lists them all at once, with dots
        return [tuple(one[0].split(".")) for one in client("namespaces", parent=[])]
    found, waiting = [], [()]
    while waiting:
        inner = [tuple(one) for one in client("namespaces", parent=waiting.pop())]
        found += inner
        waiting += inner
    return found


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.peer("{name}", they="describe", on="Iceberg REST")
def test_schemas_and_snapshots_are_shown(served, clients, name):
    client, place = clients(name), {"namespace": served.namespace, "table": "people"}
    assert client("columns", **place) == COLUMNS[name]
    versions = [one.version for one in served.catalog.table(served.name("people")).versions()]
    shown = client("snapshots", **place)
    # Spark tells the newest alone.
    assert sorted(shown) == ([max(versions)] if name == "spark" else sorted(versions))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.peer("{name}", they="describe", on="Iceberg REST")
def test_a_table_of_every_type_is_shown(served, clients, name):
    place = {"namespace": served.namespace, "table": "every type"}
    found = [column for column, _ in clients(name)("columns", **place)]
    assert found == EVERY_TYPE.names


@pytest.mark.parametrize("name", ["pyiceberg", "polars", "daft"])
@pytest.mark.peer("{name}", they="describe", on="Iceberg REST")
def test_times_of_day_are_shown(served, clients, name):
    """Spark opens no table with one: `Spark does not support time fields`."""
    place = {"namespace": served.namespace, "table": "times"}
    assert [column for column, _ in clients(name)("columns", **place)] == TIMES.names


@pytest.mark.parametrize("name", ["pyiceberg", "spark"])
@pytest.mark.peer("{name}", they="describe", on="Iceberg REST")
def test_the_arrow_type_is_told_with_each_column(served, clients, name):
    place = {"namespace": served.namespace, "table": "every type"}
    docs = {column: doc for _, column, doc in clients(name)("docs", **place)}
    assert docs["vector"] == "arrow: fixed_size_list<float32>[8]"
    assert docs["many"] == "arrow: uint64"
    assert all("arrow: " in doc for doc in docs.values())


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.peer("{name}", they="harmless", on="Iceberg REST")
def test_a_scan_fails_and_says_that_it_is_a_lance_table(served, clients, name):
    with pytest.raises(PeerError, match=LOUD):
        clients(name)("scan", namespace=served.namespace, table="people")


@pytest.mark.peer("spark", they="harmless", on="Iceberg REST")
def test_sparks_count_fails_too(served, clients):
    with pytest.raises(PeerError, match=LOUD):
        clients("spark")("count", namespace=served.namespace, table="people")


@pytest.mark.parametrize(("name", "attempt"), TRIED, ids=[f"{a}-{b}" for a, b in TRIED])
@pytest.mark.peer("{name}", they="harmless", on="Iceberg REST")
def test_an_attempt_fails_and_leaves_every_byte_as_it_was(served, clients, name, attempt):
    client = clients(name)
    before, rows, listed = read_files(served.root), served.rows("people"), served.tables
    assert any(path.endswith(".lance") and "/data/" in path for path in before)
    with pytest.raises(PeerError, match=EXPLAINED):
        client(attempt, namespace=served.namespace, table="people")
    assert read_files(served.root) == before
    assert served.tables == listed
    assert served.rows("people") == rows
    assert not list(clients.home.glob("lance*"))  # nor was anything written to where it ran


@pytest.mark.parametrize(("name", "verb"), DROPS, ids=[f"{a}-{b}" for a, b in DROPS])
@pytest.mark.peer("{name}", they="drop", on="Iceberg REST")
def test_a_drop_hides_a_table_and_keeps_its_bytes(served, clients, name, verb):
    client, table = clients(name), f"{verb}_by_{name}"
    served.add(table)
    place, rows = served.directory(table), served.rows(table)
    before = read_files(place)
    client(verb, namespace=served.namespace, table=table)
    assert table not in served.tables
    assert table not in client("tables", namespace=served.namespace)
    # A directory catalog marks what is dropped, beside the files of Lance.
    after = read_files(place)
    assert after == {**before, **{path: after[path] for path in after if _is_mark(path)}}
    served.catalog.undrop_table(served.name(table))
    assert read_files(place).items() >= before.items()
    assert served.rows(table) == rows
    served.catalog.drop_table(served.name(table))


def _is_mark(path):
    return "/" not in path and path.startswith(".")


@pytest.mark.peer("pyiceberg", they="harmless", on="Iceberg REST")
def test_a_table_that_is_only_declared_cannot_be_written_by_iceberg(served, clients):
    """Without a snapshot PyIceberg and DuckDB would write Parquet into the Lance directory."""
    served.catalog.declare_table(served.name("declared"))
    place = {"namespace": served.namespace, "table": "declared"}
    before = read_files(served.root)
    for name, attempt in (
        ("pyiceberg", "scan"),
        ("pyiceberg", "append_nothing"),
        ("duckdb", "scan"),
        ("spark", "scan"),
    ):
        with pytest.raises(PeerError, match=LOUD):
            clients(name)(attempt, **place)
        assert read_files(served.root) == before
    served.catalog.deregister_table(served.name("declared"))


@pytest.mark.peer("pyiceberg", they="harmless", on="Iceberg REST")
def test_a_lance_table_made_by_pyiceberg_is_written_with_lance_alone(served, clients):
    client, place = clients("pyiceberg"), {"namespace": served.namespace, "table": "made"}
    client("create_lance", **place)
    table, before = served.catalog.table(served.name("made")), read_files(served.root)
    assert client("columns", **place) == [["id", "int"], ["name", "string"]]
    with pytest.raises(PeerError, match=EXPLAINED):
        client("append", **place)
    with pytest.raises(PeerError, match=LOUD):
        client("scan", **place)
    assert read_files(served.root) == before
    table.insert(pa.table({"id": [1], "name": ["x"]}, schema=PEOPLE))
    assert client("snapshots", **place)[-1] == served.catalog.table(served.name("made")).version
    served.catalog.drop_table(served.name("made"))


@pytest.mark.peer("pyiceberg", they="drop", on="Iceberg REST")
def test_a_purge_makes_it_purgable_at_once(served, clients):
    client = clients("pyiceberg")
    served.add("soon gone")
    client("purge", namespace=served.namespace, table="soon gone")
    due = [one.id.name for one in served.catalog.list_purgable_tables()]
    assert "soon gone" in due
    served.catalog.purge_table(served.name("soon gone"))
    with pytest.raises(MooringError):
        served.catalog.undrop_table(served.name("soon gone"))
