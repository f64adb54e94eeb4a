"""Lance REST as pylance's own client asks for it, over a socket, beside the catalog itself."""

from __future__ import annotations

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

from mooring.namespace.lance import LanceAdapter
from mooring.survey import survey
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake
from tests.own_server import run_server
from tests.server.lance_served import stream_of, table_of

ROWS = pa.table({"n": pa.array(range(5), pa.int64())})
# What pylance's client does not ask for, whatever the server can.
NOT_SENT = {
    "update_field_metadata": "Not supported: update_field_metadata",
    "batch_create_table_versions, one": "Not supported: batch_create_table_versions",
    "batch_create_table_versions, several together": "Not supported: batch_create_table_versions",
    "batch_commit_tables, one": "Not supported: batch_commit_tables",
    "batch_commit_tables, several together": "Not supported: batch_commit_tables",
    # It sends empty actions: it writes their fields in another way than the document.
    "alter_transaction": "each action sets the status",
}


def connect(address: str, **properties: str) -> spec.LanceNamespace:
    return spec.connect("rest", {"uri": f"{address}/lance", **properties})


@pytest.mark.interop
@pytest.mark.parametrize("kind", [COMPAT_DISK, DISK, METASTORE_DISK], ids=lambda kind: kind.name)
@pytest.mark.peer("pylance-rest", they="list describe read write namespaces drop", on="Lance REST")
def test_everything_that_a_catalog_can_do_can_be_done_through_the_server(tmp_path, clock, kind):
    within = ["w"] if kind.metastore else []
    beside = Lake(kind, str(tmp_path / "beside"), {}, clock)
    itself = spec.connect(kind.namespace, beside.properties)
    expected = {one.question: one.answer for one in survey(itself, beside.uri, within)}
    lake = Lake(kind, str(tmp_path / "lake"), {}, clock)
    with run_server(lake.connect()) as address:
        found = {one.question: one for one in survey(connect(address), lake.uri, within)}
    differ = {question: one for question, one in found.items() if one.answer != expected[question]}
    can = {question for question, answer in expected.items() if answer == "yes"}
    assert set(differ) == set(NOT_SENT) & can, differ
    for question, one in differ.items():
        assert NOT_SENT[question] in (one.reason or "")


@pytest.fixture
def pair(tmp_path, clock):
    """A catalog, and the same through its server."""
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    catalog = lake.connect()
    catalog.create_table(["t"], ROWS)
    catalog.create_namespace(["full"])
    catalog.create_table(["full", "t"], ROWS)
    with run_server(catalog) as address:
        yield LanceAdapter(catalog.backend, "a catalog"), connect(address), address


T, ABSENT = ["t"], ["absent"]
FAILURES = {
    "create_namespace": [{"id": ["full"]}, {"id": ["absent", "x"]}, {"id": ["a/b"]}],
    "describe_namespace": [{"id": ABSENT}],
    "drop_namespace": [{"id": ["full"]}, {"id": ABSENT}, {"id": ["full"], "mode": "silly"}],
    "namespace_exists": [{"id": ABSENT}],
    "list_tables": [{"id": ABSENT}, {"id": [], "page_token": "!"}, {"id": [], "limit": 0}],
    "describe_table": [{"id": ABSENT}, {"id": T, "version": 9}, {"id": ["absent", "t"]}],
    "table_exists": [{"id": ABSENT}, {"id": T, "version": 9}],
    "drop_table": [{"id": ABSENT}, {"id": ["absent", "t"]}],
    "deregister_table": [{"id": ABSENT}],
    "declare_table": [{"id": T}, {"id": ["x"], "location": "/etc"}],
    "register_table": [{"id": T, "location": "x.lance"}, {"id": ["x"], "location": "../x"}],
    "rename_table": [{"id": ABSENT, "new_table_name": "x"}, {"id": T, "new_table_name": "a/b"}],
    "count_table_rows": [{"id": T, "predicate": "((("}, {"id": T, "predicate": "absent > 1"}],
    "query_table": [{"id": T, "vector": {}, "k": 0, "filter": "absent > 1"}],
    "update_table": [{"id": T, "updates": [["absent", "1"]]}],
    "delete_from_table": [{"id": T, "predicate": ""}, {"id": ABSENT, "predicate": "true"}],
    "restore_table": [{"id": T, "version": 9}],
    "create_table_tag": [
        {"id": T, "tag": "x", "version": 9},
        {"id": T, "tag": "a b", "version": 1},
    ],
    "get_table_tag_version": [{"id": T, "tag": "absent"}],
    "delete_table_branch": [{"id": T, "name": "absent"}],
    "drop_table_index": [{"id": T, "index_name": "absent"}],
    "create_table_index": [{"id": T, "column": "absent", "index_type": "BTREE"}],
    "alter_table_drop_columns": [{"id": T, "columns": ["absent"]}],
    "describe_transaction": [{"id": ["t", "absent"]}],
    "refresh_materialized_view": [{"id": T}],
}
MODELS = {
    "create_table_index": spec.CreateTableIndexRequest,
    "delete_table_branch": spec.DeleteTableBranchRequest,
}


@pytest.mark.parametrize("operation", FAILURES)
def test_failures_are_those_of_the_catalog_itself(pair, operation):
    """The same class, so that whoever catches one does not care where the catalog is."""
    itself, client, _ = pair
    title = "".join(word.capitalize() for word in operation.split("_"))
    model = MODELS.get(operation) or getattr(spec, f"{title}Request")
    for fields in FAILURES[operation]:
        with pytest.raises(LanceNamespaceError) as expected:
            getattr(itself, operation)(model(**fields))
        with pytest.raises(LanceNamespaceError) as found:
            getattr(client, operation)(model(**fields))
        assert type(found.value) is type(expected.value), (fields, found.value)
        assert str(expected.value) in str(found.value)


def test_failures_of_rows_are_those_of_the_catalog_itself(pair):
    itself, client, _ = pair
    for operation, model, fields, body in (
        ("create_table", spec.CreateTableRequest, {"id": T}, stream_of(ROWS)),
        ("create_table", spec.CreateTableRequest, {"id": ["u"]}, b"garbage"),
        ("insert_into_table", spec.InsertIntoTableRequest, {"id": ABSENT}, stream_of(ROWS)),
        (
            "insert_into_table",
            spec.InsertIntoTableRequest,
            {"id": T},
            stream_of(pa.table({"x": [1]})),
        ),
        (
            "merge_insert_into_table",
            spec.MergeInsertIntoTableRequest,
            {"id": T, "on": ["absent"], "when_matched_update_all": True},
            stream_of(ROWS),
        ),
    ):
        caught = []
        for namespace in (itself, client):
            with pytest.raises(LanceNamespaceError) as failure:
                getattr(namespace, operation)(model(**fields), body)
            caught.append(type(failure.value))
        assert caught[0] is caught[1], (operation, fields)


@pytest.mark.parametrize("delimiter", ["$", ".", "::", "/"])
def test_any_delimiter_will_do(pair, delimiter):
    _, _, address = pair
    client = connect(address, delimiter=delimiter)
    assert client.list_tables(spec.ListTablesRequest(id=[])).tables == ["t"]
    assert client.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == ["full"]
    assert client.list_tables(spec.ListTablesRequest(id=["full"])).tables == ["t"]
    assert client.list_all_tables(spec.ListTablesRequest(id=[])).tables == [
        f"full{delimiter}t",
        "t",
    ]
    count = spec.CountTableRowsRequest(id=["full", "t"])
    assert client.count_table_rows(count).count == 5
    more = spec.InsertIntoTableRequest(id=["full", "t"])
    assert client.insert_into_table(more, stream_of(ROWS)).num_inserted_rows == 5


def test_context_travels_in_headers(pair):
    """RestNamespace sends no body with DropTable, and context only where its key is a header's."""
    itself, client, _ = pair
    request = spec.DropTableRequest(id=T, context={"header.x-mooring-ttl": "1d"})
    dropped = client.drop_table(request)
    assert dropped.id == T
    assert "header.content-type" in (dropped.context or {})
    [gone] = itself.list_purgable_tables()
    assert gone.expires_at_ms - gone.deleted_at_ms == 24 * 3600 * 1000


def test_lance_opens_and_writes_tables_by_the_server(pair):
    _, client, _ = pair
    found = lance.dataset(namespace_client=client, table_id=["full", "t"])
    assert found.count_rows() == 5
    lance.write_dataset(ROWS, namespace_client=client, table_id=["full", "t"], mode="append")
    asked = spec.QueryTableRequest(id=["full", "t"], vector={}, k=0)
    assert table_of(client.query_table(asked).data).num_rows == 10
