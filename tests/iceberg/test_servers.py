"""Lance tables in Iceberg REST catalogs that nobody here wrote.

Apache Iceberg's own fixture, Nessie and SeaweedFS; what each of them lacks is told by its
own response.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import lance
import lance_namespace
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    NotLanceTableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.iceberg.opening import open_iceberg
from mooring.iceberg.types import to_iceberg
from mooring.identifiers import ObjectId
from mooring.namespace.table_operations import CreateVersion
from mooring.survey import survey
from mooring.tables.compaction import Cleaning, clean
from mooring.tables.place import open_place
from mooring.tables.seal import renumber
from tests.iceberg.counting import counting
from tests.interop.iceberg_peer import NotBuiltError, find_interpreter

pytestmark = pytest.mark.interop

SERVERS = ("fixture", "nessie", "seaweedfs")
WRITERS, APPENDS = 5, 20
MANY = 2500


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"irc-{name}")) for name in SERVERS]
)
def irc(request):
    return request.getfixturevalue(f"{request.param}_irc")


def connect(irc, **properties):
    """Open a server as people do."""
    own = {k: v for k, v in irc.properties.items() if not k.startswith("storage.")}
    storage = {
        k.removeprefix("storage."): v for k, v in irc.properties.items() if k.startswith("storage.")
    }
    given = {
        f"iceberg.{key}": value for key, value in {**own, **properties}.items() if key != "uri"
    }
    return mooring.connect(f"iceberg+{irc.uri}", storage_options={**storage, **given})


def fresh(kind: str = "n") -> str:
    """Return a name that nothing has."""
    return f"{kind}{uuid4().hex[:8]}"


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def files_of(table) -> set[str]:
    place = open_place(table.location, table.info.storage_options)
    return {meta.path for meta in place.store.list_prefix(place.directory)}


# -- everything of the specification ---------------------------------------------------------------

# What cannot be on any of them: one request decides about one table, and there are no views.
NOWHERE = {
    "batch_commit_tables, several together": "an Iceberg catalog commits new versions",
    "create_materialized_view": "no materialized views",
    "drop_namespace, behavior cascade": "decides about one table at a time",
    "refresh_materialized_view": "no materialized views",
}
BY_STORAGE = {"batch_create_table_versions, several together": "are decided by its storage"}
_DEEP = "lacked the necessary privileges"
_PLACED = "say where it lies"
# What one of them lacks, as it says itself (Nessie tells no place within its warehouse).
LACKS = {
    "fixture": {},
    "nessie": {
        "register_table": _PLACED,
        "register_table, mode overwrite": _PLACED,
        "register_table, properties": _PLACED,
    },
    "seaweedfs": {
        "create_table_branch": _DEEP,
        "delete_table_branch": _DEEP,
        "insert_into_table, branch": _DEEP,
        "list_table_branches": _DEEP,
    },
}


@pytest.mark.parametrize("by", ["storage", "impl"])
@pytest.mark.peer("{irc}", we="list describe read write namespaces drop", on="Iceberg REST")
def test_every_operation(irc, by):
    properties = {**irc.properties, "managed_by": by}
    catalog = lance_namespace.connect("mooring.IcebergNamespace", properties)
    root = irc.properties.get("root", "nowhere").removeprefix("file://")
    first = {"storage": 1, "impl": 1000}[by]
    found = {one.question: one for one in survey(catalog, root, [fresh()], first=first)}
    expected = {**NOWHERE, **LACKS[irc.name], **(BY_STORAGE if by == "storage" else {})}
    lacking = {question: one.reason for question, one in found.items() if one.answer != "yes"}
    assert set(lacking) == set(expected), lacking
    for question, words in expected.items():
        assert words in lacking[question]


# -- names -----------------------------------------------------------------------------------------

NAMES = ["two words", "Καλημέρα", "日本語", "naïve café", "100% & more?", "a+b", "a#b"]
PLAIN_LETTERS = (
    "only 'a-z', '0-9', '_', and '-'|must (start|end) with a letter or digit|answers 400"
)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_script(irc, name):
    catalog, top = connect(irc), fresh()
    catalog.create_namespace(top)
    if irc.name == "seaweedfs" or (irc.name, name) == ("nessie", "a#b"):
        with pytest.raises(MooringError, match=PLAIN_LETTERS):
            catalog.create_namespace([top, name])
        return
    catalog.create_namespace([top, name], {"owner": "Ωmega"})
    catalog.create_table([top, name, name], numbers(1, 2))
    assert catalog.list_namespaces([top]) == [name]
    assert catalog.describe_namespace([top, name])["owner"] == "Ωmega"
    assert catalog.list_tables([top, name]) == [name]
    assert catalog.table([top, name, name]).to_arrow()["n"].to_pylist() == [1, 2]
    catalog.drop_table([top, name, name])
    assert catalog.list_tables([top, name]) == []
    assert ObjectId((top, name, name)) in [one.id for one in catalog.list_purgable_tables()]
    catalog.undrop_table([top, name, name], [top, name, f"{name} 2"])
    assert catalog.list_tables([top, name]) == [f"{name} 2"]


@pytest.mark.peer("{irc}", we="namespaces", on="Iceberg REST")
def test_nested_namespaces(irc):
    catalog, top = connect(irc), fresh()
    path = []
    for name in (top, "b", "c", "d"):
        path.append(name)
        catalog.create_namespace(path)
    catalog.create_table([*path, "t"], numbers(7))
    assert catalog.list_namespaces([top, "b"]) == ["c"]
    assert catalog.list_tables([top, "b"]) == []
    assert [one for one in catalog.list_all_tables() if one.names[0] == top] == [
        ObjectId((*path, "t"))
    ]
    with pytest.raises(MooringError, match="not empty"):
        catalog.drop_namespace([top, "b"])


# -- the lifecycle ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["storage", "impl"])
@pytest.mark.peer("{irc}", we="drop read", on="Iceberg REST")
def test_drop_undrop_and_purge(irc, by):
    catalog, top = connect(irc, managed_by=by), fresh()
    catalog.create_namespace(top)
    table = catalog.create_table([top, "t"], numbers(1))
    table.insert(numbers(2))
    catalog.drop_table([top, "t"], ttl="1h")
    assert isinstance(catalog.table_status([top, "t"]), mooring.SoftDeleted)
    with pytest.raises(TableNotFoundError, match="dropped"):
        catalog.table([top, "t"])
    second = catalog.create_table([top, "t"], numbers(9))
    assert second.location != table.location
    with pytest.raises(TableAlreadyExistsError):
        catalog.undrop_table([top, "t"])
    catalog.undrop_table([top, "t"], [top, "back"])
    assert catalog.table([top, "back"]).to_arrow()["n"].to_pylist() == [1, 2]
    assert catalog.table([top, "t"]).to_arrow()["n"].to_pylist() == [9]
    assert [version.version for version in catalog.table([top, "back"]).versions()] == [2, 1]
    catalog.drop_table([top, "back"], ttl="0s")
    assert ObjectId((top, "back")) in catalog.purge_tables().purged
    assert catalog.table_status([top, "back"]) == mooring.NotFound()
    assert files_of(table) == set()
    assert catalog.table([top, "t"]).to_arrow().num_rows == 1


@pytest.mark.parametrize("by", ["storage", "impl"])
@pytest.mark.peer("{irc}", we="drop", on="Iceberg REST")
def test_what_is_deregistered_keeps_its_bytes(irc, by):
    catalog, top = connect(irc, managed_by=by), fresh()
    catalog.create_namespace(top)
    table = catalog.create_table([top, "t"], numbers(1, 2))
    table.insert(numbers(3))
    catalog.deregister_table([top, "t"])
    assert catalog.table_status([top, "t"]) == mooring.NotFound()
    assert (
        lance.dataset(
            table.location, storage_options=dict(table.info.storage_options) or None
        ).count_rows()
        == 3
    )
    if irc.name == "nessie":  # it puts every table where it wants
        with pytest.raises(UnsupportedError, match="puts"):
            catalog.register_table([top, "again"], table.location)
        assert catalog.list_tables(top) == []
        return
    catalog.register_table([top, "again"], table.location)
    assert catalog.table([top, "again"]).to_arrow()["n"].to_pylist() == [1, 2, 3]
    catalog.table([top, "again"]).insert(numbers(4))
    catalog.drop_table([top, "again"])
    catalog.purge_table([top, "again"])
    # Others may know what was registered: only its entry goes.
    assert any(path.endswith(".lance") for path in files_of(table))


@pytest.mark.peer("{irc}", we="harmless", on="Iceberg REST")
def test_a_table_of_icebergs_is_left_alone(irc):
    catalog, top = connect(irc), fresh()
    catalog.create_namespace(top)
    catalog.create_table([top, "ours"], numbers(1))
    client = catalog.backend.connection.client
    schema = to_iceberg(pa.schema([pa.field("a", pa.int64())]), schema_id=0)
    client.create_table((top,), "theirs", schema=schema, location=None, properties={})
    with pytest.raises(NotLanceTableError, match="table of Iceberg's"):
        catalog.table([top, "theirs"])
    with pytest.raises(NotLanceTableError):
        catalog.drop_table([top, "theirs"])
    with pytest.raises(MooringError):
        catalog.create_table([top, "theirs"], numbers(1), mode="overwrite")
    assert connect(irc, checked_listing="true").list_tables(top) == ["ours"]
    assert client.table_exists((top,), "theirs")


# -- versions that the server decides about --------------------------------------------------------


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_five_writers_lose_nothing(irc):
    properties = {**irc.properties, "managed_by": "impl"}
    catalog, top = connect(irc, managed_by="impl"), fresh()
    catalog.create_namespace(top)
    none = pa.table({"writer": pa.array([], pa.int64()), "n": pa.array([], pa.int64())})
    catalog.create_table([top, "t"], none)
    orders = [json.dumps([properties, [top, "t"], number, APPENDS]) for number in range(WRITERS)]
    program = Path(__file__).with_name("writer.py")
    processes = [
        subprocess.Popen([sys.executable, program, order], stdout=subprocess.PIPE, text=True)
        for order in orders
    ]
    told = [process.communicate()[0].strip() for process in processes]
    assert told == [str(APPENDS)] * WRITERS
    found = catalog.table([top, "t"]).to_arrow()
    rows = list(zip(found["writer"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert len(rows) == WRITERS * APPENDS
    assert set(rows) == {(writer, n) for writer in range(WRITERS) for n in range(APPENDS)}
    loaded = catalog.backend.connection.client.load_table((top,), "t").metadata
    assert (
        loaded["current-snapshot-id"] == WRITERS * APPENDS + 1 == catalog.table([top, "t"]).version
    )


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_one_first_version(irc):
    """Not all servers check that a table has no snapshot yet."""
    catalog, top = connect(irc, managed_by="impl"), fresh()
    catalog.create_namespace(top)
    catalog.declare_table([top, "t"])
    contenders = [connect(irc, managed_by="impl") for _ in range(4)]

    def write(number: int) -> int | None:
        try:
            contenders[number].create_table([top, "t"], numbers(number))
        except (TableAlreadyExistsError, ConcurrentModificationError):
            return None
        return number

    with ThreadPoolExecutor(len(contenders)) as pool:
        winners = [one for one in pool.map(write, range(len(contenders))) if one is not None]
    assert len(winners) == 1
    assert catalog.table([top, "t"]).to_arrow()["n"].to_pylist() == winners
    assert catalog.table([top, "t"]).version == 1


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_two_tables_change_together(irc):
    catalog, top = connect(irc, managed_by="impl"), fresh()
    catalog.create_namespace(top)
    names = [ObjectId((top, name)) for name in ("a", "b")]
    for name in names:
        catalog.create_table(name, numbers(1))
    staged = [_stage(catalog, name) for name in names]
    late = [_stage(catalog, name) for name in names]
    catalog.backend.commit_tables(
        [CreateVersion(name, 2, path) for name, path in zip(names, staged, strict=True)]
    )
    assert [catalog.table(name).version for name in names] == [2, 2]
    third = _stage(catalog, names[0])
    with pytest.raises(ConcurrentModificationError):
        catalog.backend.commit_tables(
            [CreateVersion(names[0], 3, third), CreateVersion(names[1], 2, late[1])]
        )
    assert [catalog.table(name).version for name in names] == [2, 2]


def _stage(catalog, name: ObjectId) -> str:
    """Write a manifest as Lance does before it asks for a version; its rows are the newest's."""
    table = catalog.table(name)
    place = open_place(table.location, table.info.storage_options)
    newest = catalog.backend.list_table_versions(name, limit=1)[0]
    body = place.store.get(place.path(f"_versions/{newest.manifest_path.rpartition('/')[2]}"))
    path = f"_versions/{2**64 - 1 - newest.version - 1:020d}.manifest-{uuid4()}"
    place.store.put(place.path(path), renumber(path, body, newest.version + 1))
    return path


@pytest.mark.peer("{irc}", we="describe", on="Iceberg REST")
def test_versions_that_were_cleaned_up_are_forgotten(irc):
    catalog, top = connect(irc, managed_by="impl"), fresh()
    catalog.create_namespace(top)
    table = catalog.create_table([top, "t"], numbers(0))
    for number in range(1, 6):
        table.insert(numbers(number))
    clean(table.handle, Cleaning(older_than=timedelta(0)))
    assert [version.version for version in catalog.table([top, "t"]).versions()] == [6]
    metadata = catalog.backend.connection.client.load_table((top,), "t").metadata
    assert [one["snapshot-id"] for one in metadata["snapshots"]] == [6]
    table.insert(numbers(6))
    assert sorted(catalog.table([top, "t"]).to_arrow()["n"].to_pylist()) == list(range(7))


@pytest.mark.peer("{irc}", we="describe", on="Iceberg REST")
def test_the_catalog_shows_the_newest_schema(irc):
    catalog, top = connect(irc, managed_by="impl"), fresh()
    catalog.create_namespace(top)
    table = catalog.create_table([top, "t"], numbers(1))
    table.columns.add({"twice": "n * 2"})
    metadata = catalog.backend.connection.client.load_table((top,), "t").metadata
    shown = next(
        one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"]
    )
    assert [field["name"] for field in shown["fields"]] == ["n", "twice"]


# -- many ------------------------------------------------------------------------------------------


@pytest.mark.peer("{irc}", we="list", on="Iceberg REST")
@pytest.mark.peer("impls", they="list", where={"irc": "seaweedfs"}, on="SeaweedFS, tables of ours")
def test_2500_tables_are_listed_completely_by_few_requests(irc):
    top, schema = fresh(), to_iceberg(pa.schema([pa.field("a", pa.int64())]), schema_id=0)
    catalog = connect(irc)
    catalog.create_namespace(top)
    client = catalog.backend.connection.client
    names = [f"t{number:05d}" for number in range(MANY)]
    lance_table = {"table_type": "LANCE"}

    def create(name: str) -> None:
        client.create_table((top,), name, schema=schema, location=None, properties=lance_table)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, names))
    with counting(irc.uri) as way:
        own = {k: v for k, v in irc.properties.items() if not k.startswith("storage.")}
        passing = open_iceberg({**own, "uri": way.uri}, {}, author="tests")
        assert passing.list_tables(ObjectId((top,))) == names
        passing.connection.client.close()
        ours = way.requests
    assert ours <= MANY / 50
    if irc.name == "seaweedfs":  # the only one of them that the peer finds its way on
        assert _requests_of_the_peer(irc, top) >= 50 * ours


def _requests_of_the_peer(irc, namespace: str) -> int:
    """Let lance-namespace-impls list the same tables, and count."""
    try:
        python = find_interpreter()
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")
    identity = irc.properties["credential"].partition(":")
    form = {"grant_type": "client_credentials", "client_id": identity[0]}
    form |= {"client_secret": identity[2], "scope": "catalog"}
    body = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(f"{irc.uri}/v1/oauth/tokens", body) as answer:  # noqa: S310  # ours
        token = json.load(answer)["access_token"]
    with counting(irc.uri) as way:
        order = json.dumps([way.uri, token, [irc.warehouse, namespace]])
        program = Path(__file__).with_name("peer_listing.py")
        done = subprocess.run(
            [python, program, order], capture_output=True, text=True, check=True, timeout=500
        )
        assert 0 < int(done.stdout.split()[0]) <= MANY  # it loses what is not on the first page
        return way.requests
