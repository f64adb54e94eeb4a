"""A directory of tables in our hands and in those of libraries that open it without a server.

Each library runs in a process of its own (`directory_peer`); where its environment cannot be had,
its tests say so and do not run.

Spec: directory-namespace, "V1: Directory Listing" and "V2: Manifest".
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import lance.namespace
import pyarrow as pa
import pytest

import mooring
from mooring.errors import TableNotFoundError
from tests.interop.directory_peer import LIBRARIES, DirectoryClient
from tests.interop.peer import NotBuiltError, PeerError

pytestmark = pytest.mark.interop

# How the reference implementation and ours are told that there is no manifest.
SETTINGS = {"V1": {"manifest_enabled": "false"}, "V2": {}}
APPENDS = 12
# DuckDB's extension takes every directory for one without a manifest.
UNKNOWING = ("duckdb-lance", "V2")

every_kind = pytest.mark.parametrize("kind", list(SETTINGS))
every_library = pytest.mark.parametrize("library", list(LIBRARIES))


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def connect(root, kind):
    return mooring.connect(root, manifest_enabled=kind == "V2")


def ids_of(catalog, table):
    return sorted(catalog.table(table).to_arrow()["id"].to_pylist())


@pytest.fixture
def start(tmp_path):
    started = []

    def start(library, kind, **more):
        try:
            client = DirectoryClient(library, tmp_path / "lake", SETTINGS[kind], **more)
        except NotBuiltError as exc:
            pytest.skip(f"not run: {exc}")
        started.append(client)
        return client

    yield start
    for client in started:
        client.close()


@every_kind
@every_library
@pytest.mark.peer("{library}", they="list read write", on="{kind}")
def test_a_library_works_in_a_directory_of_ours(tmp_path, start, library, kind):
    catalog = connect(tmp_path / "lake", kind)
    catalog.create_table("kept", ids(1, 2))
    catalog.create_table("dropped", ids(1))
    catalog.drop_table("dropped")
    client = start(library, kind)
    assert client("tables") == ["kept"]
    assert client("ids", table="kept") == [1, 2]
    client("add", table="kept", ids=[3])
    client("create", table="made", ids=[7])
    assert ids_of(catalog, "kept") == [1, 2, 3]
    assert catalog.list_tables() == ["kept", "made"]
    assert ids_of(catalog, "made") == [7]


@every_kind
@every_library
@pytest.mark.peer("{library}", we="list describe read write", on="{kind}")
def test_we_work_in_a_directory_of_a_library(tmp_path, start, library, kind):
    (tmp_path / "lake").mkdir()
    client = start(library, kind)
    client("create", table="theirs", ids=[1, 2])
    catalog = connect(tmp_path / "lake", kind)
    assert catalog.list_tables() == ["theirs"]
    assert catalog.table("theirs").to_lance().schema == pa.schema([("id", pa.int64())])
    assert ids_of(catalog, "theirs") == [1, 2]
    catalog.table("theirs").insert(ids(3))
    catalog.create_table("ours", ids(7))
    assert client("tables") == ["ours", "theirs"]
    assert client("ids", table="theirs") == [1, 2, 3]
    assert client("ids", table="ours") == [7]


@pytest.mark.parametrize(
    ("library", "kind"),
    [(one, kind) for one in LIBRARIES for kind in SETTINGS if (one, kind) != UNKNOWING],
)
@pytest.mark.peer("{library}", they="drop", we="drop", on="{kind}")
def test_what_one_drops_the_other_sees_no_more(tmp_path, start, library, kind):
    catalog = connect(tmp_path / "lake", kind)
    for name in ("a", "b", "c"):
        catalog.create_table(name, ids(1))
    client = start(library, kind)
    client("drop", table="a")
    assert catalog.list_tables() == ["b", "c"]
    catalog.drop_table("b")
    assert client("tables") == ["c"]
    catalog.undrop_table("b")
    assert client("ids", table="b") == [1]


@pytest.mark.peer("duckdb-lance", we="drop", on="V2")
def test_duckdb_knows_no_manifest(tmp_path, start):
    """What it drops loses its files and keeps its name, and it sees the root alone."""
    catalog = connect(tmp_path / "lake", "V2")
    catalog.create_namespace("deep")
    for name in ("a", "b", "deep$c"):
        catalog.create_table(name, ids(1))
    client = start("duckdb-lance", "V2")
    assert client("tables") == ["a", "b"]
    catalog.drop_table("b")
    assert client("tables") == ["a"]
    client("drop", table="a")
    assert catalog.list_tables() == ["a"]
    with pytest.raises(TableNotFoundError, match="only declared"):
        catalog.table("a").count()
    catalog.create_table("a", ids(2))
    assert client("ids", table="a") == [2]


@pytest.mark.peer("lancedb", they="namespaces", we="namespaces", on="V2")
def test_lancedb_and_we_see_each_others_namespaces(tmp_path, start):
    catalog = connect(tmp_path / "lake", "V2")
    catalog.create_namespace("ours")
    catalog.create_table("ours$t", ids(1))
    client = start("lancedb", "V2")
    client("create_namespace", namespace=["theirs"])
    assert client("namespaces") == catalog.list_namespaces() == ["ours", "theirs"]
    assert client("tables", namespace=["ours"]) == ["t"]
    with pytest.raises(PeerError, match="not empty"):
        client("drop_namespace", namespace=["ours"])
    client("drop_namespace", namespace=["theirs"])
    assert client("namespaces") == catalog.list_namespaces() == ["ours"]


@every_kind
@every_library
@pytest.mark.peer("{library}", they="commit", we="commit", on="{kind}")
def test_rows_that_both_append_at_once_are_all_there(tmp_path, start, library, kind):
    catalog = connect(tmp_path / "lake", kind)
    catalog.create_table("shared", ids())
    client = start(library, kind)

    def theirs():
        for at in range(APPENDS):
            client("add", table="shared", ids=[at])

    def ours():
        for at in range(APPENDS):
            catalog.table("shared").insert(ids(100 + at))

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(theirs), pool.submit(ours)]:
            done.result()
    expected = [*range(APPENDS), *range(100, 100 + APPENDS)]
    assert ids_of(catalog, "shared") == client("ids", table="shared") == expected


@pytest.mark.peer("lancedb", they="read write", on="V1, opened by its path")
def test_lancedb_that_opens_a_path_shows_also_what_is_dropped(tmp_path, start):
    """It reads no markers there; through its DirectoryNamespace it does."""
    catalog = connect(tmp_path / "lake", "V1")
    for name in ("kept", "dropped"):
        catalog.create_table(name, ids(1))
    catalog.drop_table("dropped")
    client = start("lancedb", "V1", by_path=True)
    assert client("tables") == ["dropped", "kept"]
    client("add", table="kept", ids=[2])
    client("create", table="made", ids=[7])
    assert catalog.list_tables() == ["kept", "made"]
    assert ids_of(catalog, "kept") == client("ids", table="kept") == [1, 2]


@every_kind
@pytest.mark.peer("pylance-adapter", we="list read write drop", on="Lance REST, {kind} of ours")
def test_our_client_reads_a_directory_of_ours_that_pylance_serves(tmp_path, kind):
    catalog = connect(tmp_path / "lake", kind)
    catalog.create_table("kept", ids(1, 2))
    catalog.create_table("dropped", ids(1))
    catalog.drop_table("dropped")
    settings = {"root": str(tmp_path / "lake"), **SETTINGS[kind]}
    with lance.namespace.RestAdapter("dir", settings, port=0) as adapter:
        served = mooring.connect(f"lance+http://127.0.0.1:{adapter.port}")
        assert served.list_tables() == ["kept"]
        served.table("kept").insert(ids(3))
        assert ids_of(served, "kept") == ids_of(catalog, "kept") == [1, 2, 3]
        served.create_table("made", ids(7))
        assert ids_of(catalog, "made") == [7]
        served.drop_table("kept")
        assert catalog.list_tables() == served.list_tables() == ["made"]
