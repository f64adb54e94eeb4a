"""Other implementations of Lance's namespaces behind the server."""

from __future__ import annotations

import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    PermissionDeniedError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from starlette.testclient import TestClient

from mooring.identifiers import ObjectId
from mooring.server.app import create_app
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.survey import survey
from tests.lakes import COMPAT_DISK, Lake
from tests.own_server import run_server
from tests.server.lance_served import ARROW, files_of, stream_of, table_of

ROWS = pa.table({"n": pa.array(range(5), pa.int64()), "word": list("abcde")})
# Where pylance's own implementation fails by an error that has no code.
BETTER = {"alter_table_backfill_columns"}


def connect(address: str, **properties: str) -> spec.LanceNamespace:
    return spec.connect("rest", {"uri": f"{address}/lance", **properties})


def _own(root) -> spec.LanceNamespace:
    """Pylance's own implementation."""
    root.mkdir()
    return spec.connect("dir", {"root": str(root)})


@pytest.mark.interop
@pytest.mark.peer(
    "pylance-dir", we="list describe read write namespaces drop", on="V2, behind `mooring serve`"
)
def test_pylances_own_implementation_is_served(tmp_path):
    itself, behind = _own(tmp_path / "a"), _own(tmp_path / "b")
    expected = {one.question: one for one in survey(itself, str(tmp_path / "a"))}
    with run_server(behind) as address:
        found = {one.question: one for one in survey(connect(address), str(tmp_path / "b"))}
    differ = {
        question: (expected[question], one)
        for question, one in found.items()
        if one.answer != expected[question].answer
    }
    assert set(differ) <= BETTER, differ
    assert not [one for one in found.values() if "unexpected" in (one.reason or "")]


@pytest.fixture
def foreign(tmp_path):
    behind = _own(tmp_path / "lake")
    behind.create_table(spec.CreateTableRequest(id=["t"]), stream_of(ROWS))
    with run_server(behind) as address:
        yield connect(address), tmp_path


def test_what_is_the_clients_fault_is_told_as_such(foreign):
    client, home = foreign
    before = files_of(str(home))
    insert = spec.InsertIntoTableRequest(id=["t"])
    asks = [
        (InvalidInputError, client.create_table, spec.CreateTableRequest(id=["g"]), b"garbage"),
        (
            InvalidInputError,
            client.create_table,
            spec.CreateTableRequest(id=["g"]),
            stream_of(ROWS)[:300],
        ),
        (InvalidInputError, client.insert_into_table, insert, stream_of(ROWS)[:300]),
        (
            TableSchemaValidationError,
            client.insert_into_table,
            insert,
            stream_of(pa.table({"other": [1]})),
        ),
        (
            TableNotFoundError,
            client.insert_into_table,
            spec.InsertIntoTableRequest(id=["absent"]),
            stream_of(ROWS),
        ),
        (
            InvalidInputError,
            client.query_table,
            spec.QueryTableRequest(id=["t"], vector={}, k=0, filter="bad bad"),
        ),
        (
            InvalidInputError,
            client.query_table,
            spec.QueryTableRequest(id=["t"], vector={}, k=0, filter="absent > 1"),
        ),
        (
            UnsupportedOperationError,
            client.rename_table,
            spec.RenameTableRequest(id=["t"], new_table_name="u"),
        ),
        (
            InvalidInputError,
            client.create_table,
            spec.CreateTableRequest(id=[".."]),
            stream_of(ROWS),
        ),
        (
            InvalidInputError,
            client.create_table,
            spec.CreateTableRequest(id=["a/../../b"]),
            stream_of(ROWS),
        ),
    ]
    for kind, method, *given in asks:
        with pytest.raises(LanceNamespaceError) as caught:
            method(*given)
        assert type(caught.value) is kind, (given[0], caught.value)
    assert files_of(str(home)) == before


def test_rows_go_through_whole(foreign):
    client, _ = foreign
    many = pa.table({"n": range(100_000), "word": ["x" * 100] * 100_000})
    client.insert_into_table(spec.InsertIntoTableRequest(id=["t"]), stream_of(many))
    found = client.query_table(spec.QueryTableRequest(id=["t"], vector={}, k=0))
    assert table_of(found.data).num_rows == 100_005


def test_roles_hold_whatever_is_behind(tmp_path):
    behind = _own(tmp_path / "lake")
    for name in ("a", "b"):
        behind.create_namespace(spec.CreateNamespaceRequest(id=[name]))
        behind.create_table(spec.CreateTableRequest(id=[name, "t"]), stream_of(ROWS))
    within = Grant(Role.WRITER, namespace=ObjectId.of(["a"]))
    clients = (Client.of("ada", "s3cret", within), Client.of("bob", "hunter2"))
    with run_server(behind, ServerSettings(clients=clients)) as address:
        ada = connect(address, **{"header.x-api-key": "ada:s3cret"})
        bob = connect(address, **{"header.x-api-key": "bob:hunter2"})
        ada.drop_table(spec.DropTableRequest(id=["a", "t"]))
        assert ada.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == ["a"]
        assert bob.count_table_rows(spec.CountTableRowsRequest(id=["b", "t"])).count == 5
        for client, method, request in (
            (ada, "count_table_rows", spec.CountTableRowsRequest(id=["b", "t"])),
            (ada, "drop_table", spec.DropTableRequest(id=["b", "t"])),
            (bob, "drop_table", spec.DropTableRequest(id=["b", "t"])),
            (bob, "create_namespace", spec.CreateNamespaceRequest(id=["c"])),
        ):
            with pytest.raises(PermissionDeniedError):
                getattr(client, method)(request)


class _Answers(spec.LanceNamespace):
    """An implementation that says what it was told, and may fail in any way."""

    def __init__(self, failure: Exception | None = None, context=None):
        self._failure, self._context = failure, context
        self.heard = None

    def namespace_id(self):
        return "says what it was told"

    def describe_table(self, request):
        self.heard = request
        if self._failure is not None:
            raise self._failure
        return spec.DescribeTableResponse(location="/x", context=self._context)


def _ask(behind, settings=None, **headers):
    client = TestClient(create_app(behind, settings), base_url="http://localhost/lance/v1")
    with client:
        return client.post("/table/t/describe", json={}, headers=headers)


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (ValueError("Invalid user input: no"), 400, 13),
        (RuntimeError("LanceError(Invalid input): no, /x/y.rs:1"), 400, 13),
        (InternalError("Internal error: SchemaError(FieldNotFound)"), 400, 13),
        (InternalError("the disk is on fire"), 500, 18),
        (RuntimeError("the disk is on fire"), 500, 18),
        (NotImplementedError("no"), 400, 0),
        (TableNotFoundError("no"), 404, 4),
        (spec.ConcurrentModificationError("no"), 503, 14),
        (KeyError("x"), 500, 18),
    ],
    ids=str,
)
def test_failures_of_others(failure, status, code):
    response = _ask(_Answers(failure))
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert ".rs:" not in response.text


def test_context_of_an_answer_is_headers():
    context = {
        "header.x-seen": "yes",
        "header.content-length": "999",
        "header.Transfer-Encoding": "chunked",
        "header.set-cookie": "a=b",
        "header.bad name": "x",
        "header.x-bad": "a\r\nx-evil: 1",
        "plain": "stays",
    }
    response = _ask(_Answers(context=context))
    assert response.json() == {"context": {"plain": "stays"}, "location": "/x"}
    assert response.headers["x-seen"] == "yes"
    assert not {"set-cookie", "x-bad", "x-evil", "transfer-encoding"} & set(response.headers)


def test_who_asks_is_told_on_unless_it_was_for_this_server():
    behind = _Answers()
    given = {"authorization": "Bearer abc", "x-api-key": "key", "x-mooring-ttl": "7d"}
    _ask(behind, **given)
    assert behind.heard.identity.to_dict() == {"api_key": "key", "auth_token": "abc"}
    assert behind.heard.context == {"ttl": "7d"}
    settings = ServerSettings(clients=(Client.of("ada", "s3cret"),))
    assert _ask(behind, settings, authorization="Bearer ada:s3cret").status_code == 200
    assert behind.heard.identity is None


def test_a_server_may_stand_behind_another(tmp_path, clock):
    """The answers of the one behind bring headers that are not for the one before it to send."""
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    with run_server(lake.connect()) as far, run_server(connect(far)) as near:
        client = connect(near)
        client.create_namespace(spec.CreateNamespaceRequest(id=["a"]))
        client.create_table(spec.CreateTableRequest(id=["a", "t"]), stream_of(ROWS))
        assert client.list_tables(spec.ListTablesRequest(id=["a"])).tables == ["t"]
        found = client.query_table(spec.QueryTableRequest(id=["a", "t"], vector={}, k=0))
        assert table_of(found.data) == ROWS
        with pytest.raises(TableNotFoundError):
            client.describe_table(spec.DescribeTableRequest(id=["a", "absent"]))


def test_rows_of_others_come_as_a_stream_as_well(tmp_path):
    behind = _own(tmp_path / "lake")
    with TestClient(create_app(behind), base_url="http://localhost/lance/v1") as client:
        made = client.post(
            "/table/t/create", content=stream_of(ROWS), headers={"content-type": ARROW}
        )
        assert made.status_code == 200
        found = client.post("/table/t/query", json={}, headers={"accept": ARROW})
        assert pa.ipc.open_stream(found.content).read_all() == ROWS
