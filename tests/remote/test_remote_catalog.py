"""A catalog behind a server of Mooring's, as people use it from afar."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    ProtectedError,
    ReadOnlyError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnauthenticatedError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.table_operations import Declare
from mooring.remote.rows import stream_chunks
from mooring.remote.settings import RemoteSettings
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.iceberg.passing import Answer, passing
from tests.lakes import rows
from tests.own_server import run_server

ROWS = pa.table({"n": [1, 2, 3]})


@pytest.fixture(params=["compat", "metastore"])
def catalog(request):
    """A remote catalog with namespaces."""
    found = request.getfixturevalue(request.param).connect()
    found.create_namespace("ns", {"owner": "ada"})
    return found


# -- a whole life ----------------------------------------------------------------------------------


def test_namespaces_and_tables_come_change_and_go(catalog):
    assert catalog.describe_namespace("ns") == {"owner": "ada"}
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("ns")
    table = catalog.create_table("ns$t", ROWS, properties={"kind": "numbers"})
    assert table.version == 1
    assert table.insert(pa.table({"n": [4]})).version == 2
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2, 3, 4]
    assert [one.version for one in table.versions()] == [2, 1]
    assert table.delete("n = 4").version == 3
    assert catalog.list_tables("ns") == ["t"]
    assert catalog.list_all_tables() == [ObjectId(("ns", "t"))]
    assert catalog.update_table("ns$t", {"kind": None, "size": "3"}) == {"size": "3"}
    assert catalog.update_namespace("ns", {"owner": None}) == {}
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("ns")
    catalog.rename_table("ns$t", "ns$u")
    assert catalog.list_tables("ns") == ["u"]
    assert catalog.history("ns$u")


def test_what_was_dropped_comes_back_or_is_purged(catalog):
    catalog.create_table("ns$t", ROWS)
    catalog.drop_table("ns$t", ttl="1d")
    status = catalog.table_status("ns$t")
    assert isinstance(status, mooring.SoftDeleted)
    assert status.expires_at_ms - status.deleted_at_ms == 86_400_000
    assert [one.id for one in catalog.list_purgable_tables()] == [ObjectId(("ns", "t"))]
    assert catalog.list_purgable_tables(0) == []
    with pytest.raises(TableNotFoundError, match="undrop"):
        catalog.table("ns$t")
    info = catalog.undrop_table("ns$t", "ns$back")
    assert info.id == ObjectId(("ns", "back"))
    assert catalog.table("ns$back").count() == 3
    catalog.drop_table("ns$back")
    report = catalog.purge_tables([["ns", "back"], ["ns", "nothing"]])
    assert report.purged == [ObjectId(("ns", "back"))]
    (failure,) = report.failed.values()
    assert isinstance(failure, TableNotFoundError)
    assert catalog.table_status("ns$back") == mooring.NotFound()


def test_a_namespace_comes_back_with_all_that_was_in_it(catalog):
    catalog.create_table("ns$t", ROWS)
    catalog.drop_namespace("ns", cascade=True, ttl="never")
    ((name, standing),) = catalog.backend.dropped_namespaces()
    assert (name, standing.ttl_ms) == (ObjectId(("ns",)), None)
    assert catalog.undrop_namespace("ns") == 2
    assert catalog.table("ns$t").count() == 3


def test_a_protected_table_is_not_dropped(catalog):
    catalog.create_table("ns$t", ROWS)
    catalog.protect_table("ns$t")
    with pytest.raises(ProtectedError, match="unprotect"):
        catalog.drop_table("ns$t")
    catalog.protect_table("ns$t", protected=False)
    catalog.drop_table("ns$t")


def test_everything_is_described_at_once(catalog):
    catalog.create_table("ns$t", ROWS)
    catalog.declare_table("ns$soon")
    described = {info.id.name: info for info in catalog.backend.describe_tables()}
    assert set(described) == {"t", "soon"}
    assert described["t"].location == catalog.describe_table("ns$t").location
    assert described["t"].keeps_versions == catalog.describe_table("ns$t").keeps_versions
    assert (ObjectId(("ns",)), {"owner": "ada"}) in catalog.backend.describe_namespaces()
    catalog.drop_table("ns$t")
    assert [(str(one), told.state) for one, told in catalog.backend.states()] == [
        ("ns$soon", "live"),
        ("ns$t", "deleted"),
    ]


def test_a_declared_table_gets_its_first_rows(catalog):
    assert catalog.declare_table("ns$t").is_only_declared
    assert catalog.describe_table("ns$t").is_only_declared
    with pytest.raises(TableNotFoundError, match="only declared"):
        catalog.table("ns$t").to_arrow()
    catalog.table("ns$t").insert(ROWS)
    assert catalog.table("ns$t").count() == 3


def test_several_tables_change_together_or_not_at_all(metastore):
    backend = metastore.open()
    backend.create_namespace(ObjectId(("ns",)), {})
    made = backend.commit_tables([Declare(ObjectId(("ns", name))) for name in "ab"])
    assert [one.id.name for one in made] == ["a", "b"]
    with pytest.raises(TableAlreadyExistsError):
        backend.commit_tables([Declare(ObjectId(("ns", name))) for name in "ca"])
    assert backend.list_tables(ObjectId(("ns",))) == ["a", "b"]


def test_a_read_only_catalog_sends_no_change(compat):
    backend = compat.open(read_only=True)
    with pytest.raises(ReadOnlyError):
        backend.create_table(ObjectId(("t",)), rows([1]))
    assert backend.list_tables(ROOT) == []


def test_names_of_a_plain_directory_are_whole_names(plain_lake):
    catalog = plain_lake.connect()
    catalog.create_table("a$b", ROWS)
    assert catalog.list_tables() == ["a$b"]
    assert catalog.table("a$b").count() == 3
    assert catalog.table("a$b").info.id == ObjectId(("a$b",))
    with pytest.raises(TableNotFoundError):
        catalog.table(["a", "b"])


def test_identifiers_are_joined_by_any_delimiter(compat):
    catalog = mooring.connect(f"lance+{compat.address()}?delimiter=.")
    catalog.create_namespace("ns")
    catalog.create_table("ns$t", ROWS)
    assert catalog.list_tables("ns") == ["t"]
    assert catalog.list_all_tables() == [ObjectId(("ns", "t"))]


def test_a_table_of_the_root_is_registered_where_its_name_says(compat):
    catalog = compat.connect()
    compat.write_elsewhere("t")
    compat.write_elsewhere("u")
    catalog.deregister_table("t")
    assert catalog.register_table("t").location.endswith("/t.lance")
    with pytest.raises(InvalidInputError, match="say where it lies"):
        catalog.register_table(["ns", "t"])


def test_listings_are_read_page_by_page(compat):
    made = [f"t{number}" for number in range(7)]
    for name in made:
        compat.beneath().declare_table(ObjectId((name,)))
    paged = mooring.connect(f"lance+{compat.address()}?page_size=3")
    assert paged.list_tables() == made
    assert [str(one) for one in paged.list_all_tables()] == made
    assert paged.backend.list_tables(ROOT, after="t2", limit=2) == ["t3", "t4"]


# -- rows on their way -----------------------------------------------------------------------------


def test_rows_are_sent_while_they_are_read():
    taken = []

    def batches():
        for number in range(4):
            taken.append(number)
            yield pa.record_batch({"n": pa.array(range(2**18), pa.int64())})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    chunks = stream_chunks(reader)
    first = next(chunks)
    assert taken == [0]
    sent = b"".join([first, *chunks])
    assert pa.ipc.open_stream(sent).read_all().num_rows == 4 * 2**18


def test_a_large_batch_is_sent_in_pieces():
    batch = pa.record_batch({"n": pa.array(range(2**20), pa.int64())})
    sizes = [len(chunk) for chunk in stream_chunks(pa.Table.from_batches([batch]).to_reader())]
    assert max(sizes) < 3 * 2**20
    assert sum(sizes) > 8 * 2**20


def test_a_table_that_is_there_refuses_rows_before_all_are_sent(compat):
    catalog = compat.connect()
    catalog.create_table("t", ROWS)

    def batches():
        for _ in range(64):
            yield pa.record_batch({"n": pa.array(range(2**16), pa.int64())})

    more = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("t", more)
    assert catalog.table("t").count() == 3
    assert catalog.create_table("t", ROWS, mode="exist_ok").count() == 3
    assert catalog.create_table("t", ROWS.slice(1), mode="overwrite").count() == 2


def test_a_place_that_is_out_of_reach_is_told(compat, tmp_path):
    compat.connect().create_table("t", ROWS)
    here, there = str(tmp_path).encode(), b"/nowhere/on/this/machine"

    def elsewhere(answer: Answer) -> Answer:
        return Answer(answer.status, answer.content.replace(here, there), answer.headers)

    with passing(compat.address(), change=elsewhere) as address:
        table = mooring.connect(f"lance+{address}").table("t")
        with pytest.raises(UnsupportedError, match="storage options that reach it"):
            table.to_arrow()


# -- races -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["namespace", "table", "declaration"])
def test_of_many_who_make_the_same_one_wins(catalog, what):
    others = [mooring.connect(catalog.uri) for _ in range(6)]

    def make(one):
        try:
            match what:
                case "namespace":
                    one.create_namespace("same")
                case "table":
                    one.create_table("ns$same", ROWS)
                case _:
                    one.declare_table("ns$same")
        except (NamespaceAlreadyExistsError, TableAlreadyExistsError):
            return False
        return True

    with ThreadPoolExecutor(len(others)) as makers:
        assert sum(makers.map(make, others)) == 1


def test_no_row_of_two_writers_is_lost(catalog):
    catalog.create_table("ns$t", ROWS)
    others = [mooring.connect(catalog.uri) for _ in range(2)]

    def insert(one):
        for _ in range(3):
            one.table("ns$t").insert(pa.table({"n": [0]}))

    with ThreadPoolExecutor(2) as writers:
        list(writers.map(insert, others))
    assert catalog.table("ns$t").count() == 9


# -- who asks --------------------------------------------------------------------------------------


@pytest.fixture
def guarded(compat):
    """A server that knows a writer and a reader."""
    clients = (
        Client.of("ada", "ada-secret", Grant(Role.ADMIN)),
        Client.of("bob", "bob-secret", Grant(Role.READER)),
    )
    served = mooring.connect(compat.uri, author="server")
    with run_server(served, ServerSettings(clients=clients)) as address:
        yield f"lance+{address}/lance"


@pytest.mark.parametrize("option", ["lance.credential", "lance.token", "lance.api_key"])
def test_a_credential_opens_a_guarded_server(guarded, option):
    catalog = mooring.connect(guarded, storage_options={option: "ada:ada-secret"})
    catalog.create_table("t", ROWS)
    assert {change.by for change in catalog.history("t")} == {"ada"}
    assert "ada-secret" not in repr(catalog.backend.connection.settings)


def test_tokens_are_got_for_a_credential_where_somebody_gives_them(guarded):
    address = guarded.removeprefix("lance+").removesuffix("/lance")
    options = {
        "lance.credential": "ada:ada-secret",
        "lance.oauth2_server_uri": f"{address}/iceberg/v1/oauth/tokens",
    }
    assert mooring.connect(guarded, storage_options=options).list_tables() == []


@pytest.mark.parametrize("options", [{}, {"lance.credential": "ada:wrong-one"}])
def test_whoever_is_not_known_is_told_so(guarded, options):
    with pytest.raises(UnauthenticatedError, match="give a token or a credential") as caught:
        mooring.connect(guarded, storage_options=options).list_tables()
    assert "wrong-one" not in str(caught.value)


def test_a_reader_changes_nothing(guarded):
    catalog = mooring.connect(guarded, storage_options={"lance.credential": "bob:bob-secret"})
    assert catalog.list_tables() == []
    with pytest.raises(mooring.errors.PermissionDeniedError):
        catalog.create_table("t", ROWS)


# -- as a LanceNamespace ---------------------------------------------------------------------------


def test_lance_opens_tables_through_the_class(catalog):
    catalog.create_table("ns$t", ROWS)
    uri = catalog.uri.removeprefix("lance+")
    client = spec.connect("mooring.RemoteNamespace", {"uri": uri})
    opened = lance.dataset(namespace_client=client, table_id=["ns", "t"])
    assert opened.count_rows() == 3
    assert client.table_status(["ns", "t"]) == mooring.Exists()
    client.drop_table(spec.DropTableRequest(id=["ns", "t"]))
    client.undrop_table(["ns", "t"])
    again = pickle.loads(pickle.dumps(client))  # noqa: S301  # it was made here
    assert again.list_tables(spec.ListTablesRequest(id=["ns"])).tables == ["t"]
    with pytest.raises(ValueError, match="unknown property 'colour'"):
        spec.connect("mooring.RemoteNamespace", {"uri": uri, "colour": "blue"})


# -- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "beside"),
    [
        ("http://host/lance", "http://host/mooring"),
        ("http://host/lance/", "http://host/mooring"),
        ("http://host/lance/v1", "http://host/mooring"),
        ("http://host/lance/lake", "http://host/mooring/lake"),
        ("http://host/x/lance/lake/", "http://host/x/mooring/lake"),
        ("http://host/lance/lance", "http://host/lance/mooring"),
        ("http://host", None),
        ("http://lance/x", None),
    ],
)
def test_what_is_beside_lance_rest_lies_beside_its_address(uri, beside):
    assert RemoteSettings(uri).mooring_address == beside


def test_a_named_catalog_is_one_of_several(compat, metastore):
    named = {"first": mooring.connect(compat.uri), "second": metastore.beneath_catalog()}
    with run_server(named) as address:
        second = mooring.connect(f"lance+{address}/lance/second")
        assert second.backend.facts.kind == "metastore"
        assert mooring.connect(f"lance+{address}/lance").backend.facts.name == "first"


@pytest.mark.parametrize("uri", ["lance+ftp://x", "lance+host", "lance+http://"])
def test_what_is_no_address_is_refused(uri):
    with pytest.raises(InvalidInputError, match="no address"):
        mooring.connect(uri)


def test_an_unknown_property_is_named():
    with pytest.raises(InvalidInputError, match="'colour'"):
        mooring.connect("lance+http://host/lance?colour=blue")
    with pytest.raises(InvalidInputError, match="neither a manifest"):
        mooring.connect("lance+http://host/lance", manifest_enabled=False)


def test_create_modes_are_the_servers(compat):
    backend = compat.open()
    ns = ObjectId(("ns",))
    backend.create_namespace(ns, {"a": "1"})
    assert backend.create_namespace(ns, {"a": "2"}, CreateMode.EXIST_OK) == {"a": "1"}
    assert backend.create_namespace(ns, {"b": "2"}, CreateMode.OVERWRITE) == {"b": "2"}
