"""Lance's own clients on a server: pylance, the generated client, lancedb and lance-spark.

A `mooring serve` of its own serves each kind of catalog. What clients do is compared with what
Mooring reads in the same place. What a client itself cannot do is listed with its words, so that a
change is noticed. Where a client cannot be had, its tests say so and do not run.

Spec: lance-rest-openapi.
"""

from __future__ import annotations

import hashlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import lance
import lance_namespace as spec
import lance_namespace_urllib3_client as generated
import pyarrow as pa
import pytest
from lance.namespace import DynamicContextProvider, RestNamespace
from lance_namespace import errors
from lance_namespace_urllib3_client import models
from lance_namespace_urllib3_client.exceptions import ApiException, ConflictException

import mooring
from mooring.namespace.states import NotFound, SoftDeleted
from tests.docs.documents import DOCS, blocks_of
from tests.interop.lance_peer import (
    CONNECTORS,
    NotBuiltError,
    NotHereError,
    PeerError,
    start_lancedb,
    start_spark,
)
from tests.interop.served import KINDS, run_served
from tests.servers import _HOST, _answers, _free_ports, _process, _tool, _wait_for, run_moto

pytestmark = pytest.mark.interop

GUIDE = DOCS / "how-to" / "use-the-server-from-clients.md"
DAY_MS = 24 * 60 * 60 * 1000
ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "name": [f"word{i % 7} and {i}" for i in range(300)],
        "vector": pa.FixedSizeListArray.from_arrays(
            pa.array([float(i % 17 + j) for i in range(300) for j in range(4)], pa.float32()), 4
        ),
    }
)
# Lance tells the time of a file on a disk in microseconds, and Mooring compares nanoseconds
# (`tables/records.py`, `check_staged`): a version that a client staged there is refused.


class Lake:
    """A served catalog as Lance's clients see it."""

    def __init__(self, name, served):
        self.name, self.served, self.catalog = name, served, served.catalog
        self.base = served.uri.removesuffix("/iceberg")
        self.uri = f"{self.base}/lance"
        self.inner = list(served.inner)

    def connect(self, **properties):
        return spec.connect("rest", {"uri": self.uri, **properties})

    def id(self, table):
        return [*self.inner, table]

    def rows(self, table):
        found = self.catalog.table(self.id(table)).to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])


@pytest.fixture(scope="module", params=list(KINDS))
def lake(request, tmp_path_factory):
    with run_served(request.param, tmp_path_factory.mktemp(request.param)) as served:
        yield Lake(request.param, served)


class Peers:
    """The clients that have been asked for, each started once."""

    def __init__(self, home):
        self._home, self._found = home, {}

    def __call__(self, name, start):
        if name not in self._found:
            try:
                self._found[name] = start(self._home)
            except (NotBuiltError, NotHereError) as exc:
                self._found[name] = exc
        found = self._found[name]
        if isinstance(found, Exception):
            pytest.skip(f"not run: {found}")
        return found

    def close(self):
        for found in self._found.values():
            if not isinstance(found, Exception):
                found.close()


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    found = Peers(tmp_path_factory.mktemp("home"))
    yield found
    found.close()


@pytest.fixture
def namespace(lake):
    return lake.connect()


def ipc(rows):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def create(namespace, table_id, rows=ROWS):
    namespace.create_table(spec.CreateTableRequest(id=table_id), ipc(rows))


# -- pylance ---------------------------------------------------------------------------------------


@pytest.mark.peer("pylance-rest", they="namespaces", on="Lance REST")
def test_pylance_makes_lists_and_drops_namespaces(lake, namespace):
    if not lake.inner:
        with pytest.raises(errors.UnsupportedOperationError):
            namespace.create_namespace(spec.CreateNamespaceRequest(id=["a"]))
        return
    made = namespace.create_namespace(spec.CreateNamespaceRequest(id=["a"], properties={"b": "c"}))
    assert made.properties == {"b": "c"}
    assert lake.catalog.describe_namespace("a") == {"b": "c"}
    with pytest.raises(errors.NamespaceAlreadyExistsError):
        namespace.create_namespace(spec.CreateNamespaceRequest(id=["a"]))
    namespace.create_namespace(spec.CreateNamespaceRequest(id=["a"], mode="exist_ok"))
    described = namespace.describe_namespace(spec.DescribeNamespaceRequest(id=["a"]))
    assert described.properties == {"b": "c"}
    page = namespace.list_namespaces(spec.ListNamespacesRequest(id=[], limit=1))
    rest = namespace.list_namespaces(
        spec.ListNamespacesRequest(id=[], page_token=page.page_token, limit=10)
    )
    assert [*page.namespaces, *rest.namespaces] == lake.catalog.list_namespaces() == ["a", "sales"]
    create(namespace, ["a", "t"], ROWS.slice(0, 1))
    with pytest.raises(errors.NamespaceNotEmptyError):
        namespace.drop_namespace(spec.DropNamespaceRequest(id=["a"]))
    namespace.drop_namespace(spec.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    with pytest.raises(errors.NamespaceNotFoundError):
        namespace.namespace_exists(spec.NamespaceExistsRequest(id=["a"]))


@pytest.mark.peer("pylance-rest", they="describe read write", on="Lance REST")
def test_pylance_writes_and_reads_datasets_by_name(lake, namespace):
    place = {"namespace_client": namespace, "table_id": lake.id("by_name")}
    assert lance.write_dataset(ROWS, mode="create", **place).version == 1
    with pytest.raises(errors.TableAlreadyExistsError):
        lance.write_dataset(ROWS, mode="create", **place)
    assert lance.write_dataset(ROWS.slice(0, 5), mode="append", **place).version == 2
    assert lake.catalog.table(lake.id("by_name")).count() == 305
    assert lance.write_dataset(ROWS.slice(0, 9), mode="overwrite", **place).version == 3
    opened = lance.dataset(**place)
    assert opened.delete("id = 8")["num_deleted_rows"] == 1
    assert lance.dataset(version=2, **place).count_rows() == 305
    assert lake.rows("by_name") == ROWS.slice(0, 8).to_pylist()
    versions = [one.version for one in lake.catalog.table(lake.id("by_name")).versions()]
    assert sorted(versions) == [1, 2, 3, 4]
    listed = namespace.list_table_versions(spec.ListTableVersionsRequest(id=place["table_id"]))
    assert sorted(one.version for one in listed.versions) == [1, 2, 3, 4]
    newest = namespace.describe_table_version({"id": place["table_id"], "version": 4})
    assert newest["version"]["version"] == 4


@pytest.mark.peer("pylance-rest", they="commit", on="Lance REST")
def test_writers_that_commit_at_once_lose_nothing(lake):
    table = lake.id("at_once")
    create(lake.connect(), table, ROWS.slice(0, 0))

    def append(at):
        rows = ROWS.slice(at, 1)
        lance.write_dataset(rows, namespace_client=lake.connect(), table_id=table, mode="append")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(append, range(18)))
    assert lake.rows("at_once") == ROWS.slice(0, 18).to_pylist()
    assert lake.catalog.table(table).version == 19


@pytest.mark.peer("pylance-rest", they="read write commit", on="Lance REST")
def test_versions_of_a_metastore_in_a_bucket_are_committed_through_the_server(tmp_path):
    """There the store gives the tags, and the managed way works from end to end."""
    with run_moto() as store, ExitStack() as stack:
        uri = f"metastore+{store.uri('managed')}"
        catalog = mooring.connect(uri, storage_options=store.options, author="tester")
        catalog.create_namespace("sales")
        (port,) = _free_ports(1)
        options = [word for pair in store.options.items() for word in ("--storage", "=".join(pair))]
        command = [_tool("mooring"), "serve", uri, "--port", str(port), *options]
        log = tmp_path / "serve.log"
        stack.enter_context(_process(command, log, cwd=tmp_path))
        base = f"http://{_HOST}:{port}/lance"
        _wait_for(lambda: _answers(f"{base}/v1/namespace/$/list"), "mooring serve", log)
        place = {
            "namespace_client": spec.connect("rest", {"uri": base}),
            "table_id": ["sales", "items"],
            "storage_options": store.options,
        }
        lance.write_dataset(ROWS, mode="create", **place)
        lance.write_dataset(ROWS.slice(0, 5), mode="append", **place)
        assert lance.dataset(**place).delete("id > 1")["num_deleted_rows"] == 301
        assert lance.dataset(version=1, **place).count_rows() == 300
        assert catalog.table("sales$items").to_arrow().sort_by("id")["id"].to_pylist() == [
            *(0, 0),
            *(1, 1),
        ]
        asked = [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
        created = [one["status"] for one in asked if one["path"].endswith("/version/create")]
        assert created == [200, 200, 200]


@pytest.mark.peer("pylance-rest", they="read write", on="Lance REST")
def test_pylance_changes_and_queries_rows_on_the_server(lake, namespace):
    table = lake.id("rows")
    create(namespace, table)
    namespace.insert_into_table(
        spec.InsertIntoTableRequest(id=table, mode="append"), ipc(ROWS.slice(0, 2))
    )
    assert namespace.count_table_rows(spec.CountTableRowsRequest(id=table)).count == 302
    namespace.delete_from_table(spec.DeleteFromTableRequest(id=table, predicate="id < 2"))
    merged = namespace.merge_insert_into_table(
        spec.MergeInsertIntoTableRequest(
            id=table,
            on=["id"],
            when_matched_update_all=True,
            when_not_matched_insert_all=True,
        ),
        ipc(ROWS.slice(1, 3)),
    )
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (2, 1)
    namespace.update_table(
        spec.UpdateTableRequest(id=table, predicate="id = 5", updates=[["name", "'five'"]])
    )
    assert query(namespace, table, filter="id < 6", columns=["id", "name"]) == [
        {"id": row["id"], "name": "five" if row["id"] == 5 else row["name"]}
        for row in ROWS.slice(1, 5).to_pylist()
    ]
    assert len(lake.rows("rows")) == 299
    inserted = namespace.insert_into_table(
        spec.InsertIntoTableRequest(id=table, mode="overwrite"), ipc(ROWS.slice(0, 4))
    )
    assert inserted is not None
    assert lake.rows("rows") == ROWS.slice(0, 4).to_pylist()


def query(namespace, table, *, k=100, vector=(), text=None, columns=("id",), **more):
    request = spec.QueryTableRequest(
        id=table,
        k=k,
        vector=models.QueryTableRequestVector(single_vector=list(vector)),
        columns=models.QueryTableRequestColumns(column_names=list(columns)),
        full_text_query=text,
        **more,
    )
    answer = namespace.query_table(request)
    rows = pa.ipc.open_file(bytes(answer.data)).read_all().to_pylist()
    return sorted(rows, key=lambda row: row["id"]) if not vector and not text else rows


@pytest.mark.peer("pylance-rest", they="describe read", on="Lance REST")
def test_pylance_indexes_and_searches_on_the_server(lake, namespace):
    table = lake.id("searched")
    create(namespace, table)
    for column, kind, name in (("vector", "IVF_FLAT", "v"), ("name", "FTS", "f")):
        namespace.create_table_index(
            spec.CreateTableIndexRequest(
                id=table, column=column, index_type=kind, name=name, num_partitions=2
            )
            if kind != "FTS"
            else spec.CreateTableIndexRequest(id=table, column=column, index_type=kind, name=name)
        )
    namespace.create_table_scalar_index(
        spec.CreateTableIndexRequest(id=table, column="id", index_type="BTREE", name="b")
    )
    listed = namespace.list_table_indices(spec.ListTableIndicesRequest(id=table)).indexes
    assert sorted(one.index_name for one in listed) == ["b", "f", "v"]
    stats = namespace.describe_table_index_stats(
        spec.DescribeTableIndexStatsRequest(id=table, index_name="b")
    )
    assert stats.num_indexed_rows == 300
    nearest = query(namespace, table, k=3, vector=[0.0, 1.0, 2.0, 3.0])
    assert [row["id"] % 17 for row in nearest] == [0, 0, 0]
    words = models.QueryTableRequestFullTextQuery(string_query=models.StringFtsQuery(query="word3"))
    found = {row["id"] for row in query(namespace, table, text=words)}
    assert found == {i for i in range(300) if i % 7 == 3}
    asked = {"k": 3, "vector": models.QueryTableRequestVector(single_vector=[]), "filter": "id < 3"}
    inner = spec.QueryTableRequest(**asked)
    plan = namespace.explain_table_query_plan(
        spec.ExplainTableQueryPlanRequest(id=table, query=inner)
    )
    told = namespace.analyze_table_query_plan(spec.AnalyzeTableQueryPlanRequest(id=table, **asked))
    assert "LanceRead" in plan or "ScalarIndex" in plan
    assert "metrics" in told
    namespace.drop_table_index(spec.DropTableIndexRequest(id=table, index_name="b"))
    listed = namespace.list_table_indices(spec.ListTableIndicesRequest(id=table)).indexes
    assert sorted(one.index_name for one in listed) == ["f", "v"]


@pytest.mark.peer("pylance-rest", they="describe write", on="Lance REST")
def test_pylance_changes_columns_tags_and_branches(lake, namespace):
    table = lake.id("shaped")
    create(namespace, table)
    namespace.alter_table_add_columns(
        spec.AlterTableAddColumnsRequest(
            id=table, new_columns=[models.AddColumnsEntry(name="twice", expression="id * 2")]
        )
    )
    namespace.alter_table_alter_columns(
        spec.AlterTableAlterColumnsRequest(
            id=table, alterations=[models.AlterColumnsEntry(path="twice", rename="double")]
        )
    )
    assert lake.rows("shaped")[7]["double"] == 14
    namespace.alter_table_drop_columns(
        spec.AlterTableDropColumnsRequest(id=table, columns=["double"])
    )
    changed = namespace.update_table_schema_metadata(
        spec.UpdateTableSchemaMetadataRequest(id=table, metadata={"a": "b"})
    )
    assert changed.metadata == {"a": "b"}
    assert namespace.get_table_stats(spec.GetTableStatsRequest(id=table)).num_rows == 300
    namespace.create_table_tag(spec.CreateTableTagRequest(id=table, tag="first", version=1))
    with pytest.raises(errors.TableTagAlreadyExistsError):
        namespace.create_table_tag(spec.CreateTableTagRequest(id=table, tag="first", version=1))
    namespace.update_table_tag(spec.UpdateTableTagRequest(id=table, tag="first", version=2))
    tagged = spec.GetTableTagVersionRequest(id=table, tag="first")
    assert namespace.get_table_tag_version(tagged).version == 2
    namespace.delete_table_tag(spec.DeleteTableTagRequest(id=table, tag="first"))
    with pytest.raises(errors.TableTagNotFoundError):
        namespace.get_table_tag_version(tagged)
    namespace.create_table_branch(spec.CreateTableBranchRequest(id=table, name="dev"))
    namespace.insert_into_table(
        spec.InsertIntoTableRequest(id=table, mode="append", branch="dev"), ipc(ROWS.slice(0, 2))
    )
    on_branch = spec.CountTableRowsRequest(id=table, branch="dev")
    assert namespace.count_table_rows(on_branch).count == 302
    branches = namespace.list_table_branches(spec.ListTableBranchesRequest(id=table)).branches
    assert list(branches) == ["dev"]
    assert len(lake.rows("shaped")) == 300
    namespace.delete_table_branch(spec.DeleteTableBranchRequest(id=table, name="dev"))
    namespace.delete_from_table(spec.DeleteFromTableRequest(id=table, predicate="id > 0"))
    namespace.restore_table(spec.RestoreTableRequest(id=table, version=1))
    assert lake.rows("shaped") == ROWS.to_pylist()


class Days(DynamicContextProvider):
    """Says with each request how long what it drops is kept."""

    def provide_context(self, info):
        return {"headers.x-mooring-ttl": "3d"} if info["operation"] == "drop_table" else {}


@pytest.mark.peer("pylance-rest", they="list drop", on="Lance REST")
def test_pylance_declares_registers_renames_and_drops(lake, namespace):
    for name in ("by_header", "by_provider", "by_default", "forgotten"):
        create(namespace, lake.id(name), ROWS.slice(0, 3))
    drops = {
        "by_header": (lake.connect(**{"header.x-mooring-ttl": "2d"}), 2),
        "by_provider": (RestNamespace(uri=lake.uri, context_provider=Days()), 3),
        # pylance does not send the context of the request itself.
        "by_default": (namespace, 7),
    }
    for name, (client, days) in drops.items():
        client.drop_table(spec.DropTableRequest(id=lake.id(name), context={"ttl": "9d"}))
        status = lake.catalog.table_status(lake.id(name))
        assert isinstance(status, SoftDeleted)
        assert status.expires_at_ms - status.deleted_at_ms == days * DAY_MS
        with pytest.raises(errors.TableNotFoundError, match="undrop"):
            namespace.describe_table(spec.DescribeTableRequest(id=lake.id(name)))
    lake.catalog.undrop_table(lake.id("by_header"))
    assert lake.rows("by_header") == ROWS.slice(0, 3).to_pylist()
    declared = namespace.declare_table(spec.DeclareTableRequest(id=lake.id("declared")))
    assert declared.location
    listing = spec.ListTablesRequest(id=lake.inner, include_declared=False)
    assert "declared" not in namespace.list_tables(listing).tables
    assert "declared" in namespace.list_tables(spec.ListTablesRequest(id=lake.inner)).tables
    everything = namespace.list_all_tables(spec.ListTablesRequest()).tables
    assert "$".join(lake.id("by_header")) in everything
    namespace.deregister_table(spec.DeregisterTableRequest(id=lake.id("forgotten")))
    assert "forgotten" not in lake.catalog.list_tables(lake.inner)
    renaming = spec.RenameTableRequest(id=lake.id("by_header"), new_table_name="renamed")
    if lake.inner:
        namespace.rename_table(renaming)
        assert lake.rows("renamed") == ROWS.slice(0, 3).to_pylist()
    else:
        with pytest.raises(errors.UnsupportedOperationError, match="the name is the location"):
            namespace.rename_table(renaming)


FAILURES = {
    "no table": (
        errors.TableNotFoundError,
        lambda ns, place: ns.describe_table(spec.DescribeTableRequest(id=[*place, "none"])),
    ),
    "taken": (
        errors.TableAlreadyExistsError,
        lambda ns, place: create(ns, [*place, "people"]),
    ),
    "no version": (
        errors.TableVersionNotFoundError,
        lambda ns, place: ns.describe_table_version({"id": [*place, "people"], "version": 99}),
    ),
    "no index": (
        errors.TableIndexNotFoundError,
        lambda ns, place: ns.drop_table_index(
            spec.DropTableIndexRequest(id=[*place, "people"], index_name="none")
        ),
    ),
    "no column": (
        errors.TableColumnNotFoundError,
        lambda ns, place: ns.alter_table_drop_columns(
            spec.AlterTableDropColumnsRequest(id=[*place, "people"], columns=["none"])
        ),
    ),
    "no limit": (
        errors.InvalidInputError,
        lambda ns, place: ns.list_tables(spec.ListTablesRequest(id=place, limit=-1)),
    ),
    "no view": (
        errors.UnsupportedOperationError,
        lambda ns, place: ns.refresh_materialized_view(
            spec.RefreshMaterializedViewRequest(id=[*place, "people"])
        ),
    ),
    # What pylance's client does not have; the generated one does.
    "no batches": (
        errors.UnsupportedOperationError,
        lambda ns, _: ns.batch_commit_tables(spec.BatchCommitTablesRequest(operations=[])),
    ),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.peer("pylance-rest", they="harmless", on="Lance REST")
def test_failures_are_the_classes_of_lance(lake, namespace, name):
    kind, attempt = FAILURES[name]
    with pytest.raises(kind) as caught:
        attempt(namespace, lake.inner)
    assert type(caught.value) is kind


@pytest.mark.peer("lance-client", they="commit", on="Lance REST")
def test_the_generated_client_commits_several_tables_at_once(lake):
    api = generated.TableApi(generated.ApiClient(generated.Configuration(host=lake.uri)))

    def declare(*names):
        operations = [
            models.CommitTableOperation(declare_table=models.DeclareTableRequest(id=lake.id(name)))
            for name in names
        ]
        return api.batch_commit_tables(models.BatchCommitTablesRequest(operations=operations))

    if lake.name != "metastore":
        with pytest.raises(ApiException, match="one table"):
            declare("one", "two")
        return
    assert len(declare("one", "two").results) == 2
    with pytest.raises(ConflictException):
        declare("three", "two")
    listed = lake.catalog.list_tables(lake.inner)
    assert {"one", "two"} <= set(listed)
    assert "three" not in listed


# -- tokens ----------------------------------------------------------------------------------------


def write_clients(path, **roles):
    """Write who may use a server: each has its own name, reversed, for a secret."""
    tables = []
    for name, (role, namespace) in roles.items():
        digest = hashlib.sha256(name[::-1].encode()).hexdigest()
        lines = [f"[{name}]", f'id = "{name}"', f'secret_sha256 = "{digest}"', f'role = "{role}"']
        tables.append("\n".join([*lines, *([f'namespace = "{namespace}"'] if namespace else [])]))
    path.write_text("\n".join(tables) + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("guarded")
    clients = write_clients(
        directory / "clients.toml",
        reports=("reader", None),
        etl=("writer", None),
        east=("writer", "sales$eu"),
    )
    with run_served("nested", directory, "--credentials", str(clients)) as served:
        yield Lake("nested", served)


@pytest.mark.parametrize("header", ["Authorization", "x-api-key"])
def test_tokens_in_headers_have_their_roles(guarded, header):
    def connect(name, secret=None):
        shown = f"{name}:{secret or name[::-1]}"
        return guarded.connect(
            **{f"header.{header}": f"Bearer {shown}" if header == "Authorization" else shown}
        )

    listing = spec.ListTablesRequest(id=guarded.inner)
    for stranger in (guarded.connect(), connect("etl", "guessed"), connect("nobody")):
        with pytest.raises(errors.UnauthenticatedError):
            stranger.list_tables(listing)
    table = guarded.id(f"by_{header.lower()}")
    with pytest.raises(errors.PermissionDeniedError, match="reports"):
        create(connect("reports"), table)
    create(connect("etl"), table)
    connect("etl").drop_table(spec.DropTableRequest(id=table))
    assert guarded.catalog.history(table)[-1].by == "etl"
    guarded.catalog.undrop_table(table)
    assert table[-1] in connect("reports").list_tables(listing).tables
    with pytest.raises(errors.PermissionDeniedError, match="east"):
        create(connect("east"), ["sales", "outside"])
    place = {"namespace_client": connect("east"), "table_id": guarded.id(f"east_{header.lower()}")}
    lance.write_dataset(ROWS, mode="create", **place)
    assert lance.dataset(**place).count_rows() == 300
    assert guarded.catalog.list_tables("sales") == []


# -- lancedb ---------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "pushed-down"])
def lancedb(lake, request, peers):
    client = peers("lancedb", start_lancedb)
    pushdown = ["QueryTable", "CreateTable"] if request.param == "pushed-down" else []
    client("connect", uri=lake.uri, pushdown=pushdown)
    client.name = request.param
    return client


def some(count, first=0):
    return [
        {"id": i, "name": f"w{i % 3}", "vector": [float(i), 1.0]}
        for i in range(first, first + count)
    ]


@pytest.mark.peer("lancedb", they="list describe read write drop", on="Lance REST")
def test_lancedb_makes_fills_searches_and_drops_tables(lake, lancedb):
    table = f"lancedb_{lancedb.name}"
    place = {"namespace": lake.inner, "table": table}
    assert lancedb("create", rows=some(50), **place) == 50
    with pytest.raises(PeerError, match="already exists"):
        lancedb("create", rows=some(1), **place)
    assert lancedb("add", rows=some(1, 100), **place) == 2
    assert lancedb("nearest", vector=[3.0, 1.0], k=2, **place)[0] == 3
    assert lancedb("where", condition="id > 48", columns=["id"], **place) == [
        {"id": 49},
        {"id": 100},
    ]
    changed = [{**row, "name": "merged"} for row in some(2, 100)]
    assert lancedb("merge", rows=changed, **place) == [1, 1]
    assert lancedb("update", where="id = 1", values={"name": "one"}, **place) == 1
    assert lancedb("delete", where="id = 2", **place) == 1
    expected = [row for row in some(50) if row["id"] != 2]
    expected[1]["name"] = "one"
    assert lake.rows(table) == [*expected, *changed]
    assert lancedb("count", version=1, **place) == 50
    lancedb("index", column="id", **place)
    lancedb("index_words", column="name", **place)
    assert lancedb("indexes", **place) == ["id", "name"]
    lancedb("add_column", name="twice", expression="id * 2", **place)
    assert lake.rows(table)[-1]["twice"] == 202
    assert lancedb("tag", name="first", version=1, **place) == 1
    assert sorted(lancedb("versions", **place)) == sorted(
        one.version for one in lake.catalog.table(lake.id(table)).versions()
    )
    lancedb("restore", version=1, **place)
    lancedb("optimize", **place)
    assert lake.rows(table) == some(50)
    assert lancedb("create", rows=some(3), mode="overwrite", **place) == 3
    assert lake.rows(table) == some(3)
    assert table in lancedb("tables", namespace=lake.inner)
    if lake.inner:
        lancedb("rename", to=f"{table}_2", **place)
        place["table"] = f"{table}_2"
    lancedb("drop", **place)
    assert isinstance(lake.catalog.table_status(lake.id(place["table"])), SoftDeleted)
    with pytest.raises(PeerError, match="not found"):
        lancedb("count", **place)


@pytest.mark.peer("lancedb", they="namespaces", on="Lance REST")
def test_lancedb_makes_and_drops_nested_namespaces(lake, lancedb):
    if lake.name != "nested":
        with pytest.raises(PeerError, match=r"Unsupported|the path says that 'id' is \['x\$y'\]"):
            lancedb("create_namespace", namespace=["x", "y"])
        return
    for namespace in (["x"], ["x", "y"]):
        lancedb("create_namespace", namespace=namespace)
    assert "x" in lancedb("namespaces", parent=[])
    assert lancedb("namespaces", parent=["x"]) == ["y"]
    lancedb("create", namespace=["x", "y"], table="deep", rows=some(2))
    assert lake.catalog.table(["x", "y", "deep"]).count() == 2
    with pytest.raises(PeerError, match="not empty"):
        lancedb("drop_namespace", namespace=["x"])
    lancedb("drop", namespace=["x", "y"], table="deep")
    for namespace in (["x", "y"], ["x"]):
        lancedb("drop_namespace", namespace=namespace)
    assert "x" not in lancedb("namespaces", parent=[])


def test_what_lancedb_itself_lacks(lake, lancedb, namespace):
    """Each of these is the client's: it fails before it asks, or asks for something else."""
    table = f"lacking_{lancedb.name}"
    place = {"namespace": lake.inner, "table": table}
    rows = pa.Table.from_pylist(
        [*({"id": i, "name": f"w{i % 3}"} for i in range(30)), {"id": 30, "name": "boost"}]
    )
    create(namespace, lake.id(table), rows)
    index = spec.CreateTableIndexRequest(id=lake.id(table), column="name", index_type="FTS")
    namespace.create_table_index(index)
    with pytest.raises(PeerError, match="'NoneType' object has no attribute 'table_exists'"):
        lancedb("table_exists", **place)
    found, count = lancedb("words", text="w1", **place), len(lancedb("everything", **place))
    wanted = [i for i in range(30) if i % 3 == 1]
    # Pushed down, all rows are asked for with k = 10, and words as Rust shows the whole query.
    expected = (wanted, 31) if lancedb.name == "local" else ([*wanted, 30], 10)
    assert (found, count) == expected


# -- lance-spark -----------------------------------------------------------------------------------

# Statements in their order, each with its rows.
STATEMENTS = (
    ("CREATE TABLE {place}.items (id BIGINT NOT NULL, name STRING, price DOUBLE)", []),
    ("DESCRIBE TABLE {place}.items", [["id", "bigint"], ["name", "string"], ["price", "double"]]),
    ("INSERT INTO {place}.items VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 3.5)", []),
    ("SELECT * FROM {place}.items ORDER BY id", [[1, "a", 1.5], [2, "b", 2.5], [3, "c", 3.5]]),
    ("SELECT count(*), sum(price) FROM {place}.items WHERE id > 1", [[2, 6.0]]),
    ("UPDATE {place}.items SET price = 9.0 WHERE id = 1", []),
    ("DELETE FROM {place}.items WHERE id = 2", []),
    (
        """
        MERGE INTO {place}.items t
        USING (SELECT * FROM VALUES (3L, 'cc', 33.0D), (4L, 'd', 4.5D) AS v(id, name, price)) s
        ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET name = s.name, price = s.price
        WHEN NOT MATCHED THEN INSERT *
        """,
        [],
    ),
    ("SELECT * FROM {place}.items ORDER BY id", [[1, "a", 9.0], [3, "cc", 33.0], [4, "d", 4.5]]),
    ("SELECT count(*) FROM {place}.items VERSION AS OF 2", [[3]]),
    ("CREATE TABLE {place}.copied AS SELECT id, name FROM {place}.items", []),
    ("SELECT * FROM {place}.copied ORDER BY id", [[1, "a"], [3, "cc"], [4, "d"]]),
    ("INSERT OVERWRITE {place}.copied VALUES (7, 'seven')", []),
    ("SELECT * FROM {place}.copied", [[7, "seven"]]),
)
# What the connector itself refuses, or stumbles over, with its words. Those of the newer release
# are not known.
REFUSED = {
    "spark-3.5": {
        "ALTER TABLE {place}.items ADD COLUMN more STRING": "Table alteration is not supported",
        "ALTER TABLE {place}.items DROP COLUMN name": "Table alteration is not supported",
        "ALTER TABLE {place}.items SET TBLPROPERTIES ('a' = 'b')": (
            "Table alteration is not supported"
        ),
        "ALTER TABLE {place}.items RENAME TO {place}.renamed": "Table renaming is not supported",
        "TRUNCATE TABLE {place}.items": "Table does not support truncates",
        "ALTER TABLE {place}.items CREATE TAG first": '"ctx" is null',
        "SHOW TAGS IN {place}.items": '"ctx" is null',
        "CREATE TABLE {place}.items (id BIGINT)": "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DROP TABLE {place}.none": "TABLE_OR_VIEW_NOT_FOUND",
    },
    "spark-4.1": {},
}
# What works beside, in the order in which it is done.
MORE = {
    "spark-3.5": (
        "OPTIMIZE {place}.items",
        "VACUUM {place}.items WITH (before_version = 2)",
        "ALTER TABLE {place}.items CREATE INDEX by_id USING btree (id)",
        "SHOW INDEXES IN {place}.items",
        """
        CREATE OR REPLACE TEMPORARY VIEW twice
        AS SELECT _rowaddr, _fragid, id * 2 AS twice FROM {place}.items
        """,
        "ALTER TABLE {place}.items ADD COLUMNS twice FROM twice",
    ),
    "spark-4.1": (),
}


@pytest.fixture(params=list(CONNECTORS))
def lance_spark(lake, request, peers):
    client = peers(request.param, lambda home: start_spark(request.param, home))
    client("attach", name=lake.name, uri=lake.uri)
    client.name = request.param
    return client


@pytest.mark.peer("{lance_spark}", they="list describe read write drop", on="Lance REST")
def test_lance_spark_creates_fills_merges_and_drops_tables(lake, lance_spark):
    place = ".".join([lake.name, *(f"`{name}`" for name in lake.inner)])

    def sql(statement):
        return lance_spark("sql", statement=statement.format(place=place))

    for statement, rows in STATEMENTS:
        found = [row[: len(rows[0])] if rows else row for row in sql(statement)]
        assert found == rows, statement
    assert lake.rows("items") == [
        {"id": 1, "name": "a", "price": 9.0},
        {"id": 3, "name": "cc", "price": 33.0},
        {"id": 4, "name": "d", "price": 4.5},
    ]
    assert lake.rows("copied") == [{"id": 7, "name": "seven"}]
    assert {"items", "copied"} <= {row[1] for row in sql("SHOW TABLES IN {place}")}
    for statement, words in REFUSED[lance_spark.name].items():
        with pytest.raises(PeerError) as caught:
            sql(statement)
        assert words in str(caught.value), statement
    # In a metastore an index that follows OPTIMIZE fails: `No fragment with id 1`.
    more = () if lake.name == "metastore" else MORE[lance_spark.name]
    for statement in more:
        sql(statement)
    if more:
        assert [row["twice"] for row in lake.rows("items")] == [2, 6, 8]
    sql("DROP TABLE {place}.items")
    sql("DROP TABLE {place}.copied PURGE")
    assert not {"items", "copied"} & set(lake.catalog.list_tables(lake.inner))
    # Without PURGE the connector deregisters, and Mooring keeps nothing to undrop.
    assert isinstance(lake.catalog.table_status(lake.id("items")), NotFound)
    assert isinstance(lake.catalog.table_status(lake.id("copied")), SoftDeleted)


@pytest.mark.peer("{lance_spark}", they="namespaces", on="Lance REST")
def test_lance_spark_makes_and_drops_namespaces(lake, lance_spark):
    def sql(statement):
        return lance_spark("sql", statement=statement.format(lake=lake.name))

    if not lake.inner:
        with pytest.raises(PeerError, match="a plain directory is a 1-level namespace"):
            sql("CREATE NAMESPACE {lake}.shop")
        return
    sql("CREATE NAMESPACE {lake}.shop")
    sql("CREATE NAMESPACE IF NOT EXISTS {lake}.shop")
    assert ["shop"] in sql("SHOW NAMESPACES IN {lake}")
    assert "shop" in lake.catalog.list_namespaces()
    lake.catalog.create_table("shop$made here", [{"id": 1}])
    assert sql("SELECT id FROM {lake}.shop.`made here`") == [[1]]
    with pytest.raises(PeerError, match="not empty"):
        sql("DROP NAMESPACE {lake}.shop")
    sql("DROP NAMESPACE {lake}.shop CASCADE")
    assert "shop" not in lake.catalog.list_namespaces()


@pytest.mark.peer("{lance_spark}", they="read write drop", on="Lance REST")
def test_the_statements_of_the_guide_run(lake, lance_spark):
    (block,) = blocks_of(GUIDE, "sql")
    first, *others = (one.strip() for one in block.text.split(";") if one.strip())
    assert first == "CREATE NAMESPACE lance.shop"
    place = f"{lake.name}.shop" if lake.inner else lake.name  # a plain directory is one namespace
    if lake.inner:
        lance_spark("sql", statement=f"CREATE NAMESPACE {place}")
    found = {}
    for statement in others:
        here = statement.replace("lance.shop", place)
        found[statement.split()[0]] = lance_spark("sql", statement=here)
    assert found["SELECT"] == [[1, "one"], [2, "two"]]
    made = "shop$items" if lake.inner else "items"
    assert isinstance(lake.catalog.table_status(made), SoftDeleted)
    lake.catalog.purge_table(made)
    if lake.inner:
        lake.catalog.drop_namespace("shop")
