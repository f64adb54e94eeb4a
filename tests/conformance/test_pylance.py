"""Lance and pylance's own DirectoryNamespace on the same directory.

Spec: directory-namespace, "V1: Directory Listing"; "The LanceNamespace adapter".
"""

from __future__ import annotations

import pickle

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

import mooring
from mooring.identifiers import ROOT
from mooring.namespace.api import CreateMode
from mooring.namespace.states import Exists
from mooring.tables.schema import schema_to_json
from tests.lakes import rows, table_id

T = table_id("t")


def _connect(lake, **more: str):
    return spec.connect("mooring.DirectoryNamespace", {**lake.properties, **more})


def _pylance(lake):
    """Open the reference implementation on the same directory, as a V1 reader."""
    properties = {**lake.properties, "manifest_enabled": "false"}
    return lance.namespace.DirectoryNamespace(**properties)


def _names(namespace, **asked) -> list[str]:
    return sorted(namespace.list_tables(spec.ListTablesRequest(id=[], **asked)).tables)


def _exists(namespace, name: str) -> bool:
    try:
        namespace.table_exists(spec.TableExistsRequest(id=[name]))
    except spec.errors.TableNotFoundError:
        return False
    return True


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


BODY = _ipc(pa.table({"n": [1, 2]}))


# -- through lance --------------------------------------------------------------------------------


def test_lance_writes_and_reads_tables_through_the_namespace(lake):
    """Deliver 6: `lance.write_dataset` and `lance.dataset` with `namespace_client`."""
    namespace = _connect(lake)
    where = {"namespace_client": namespace, "table_id": ["t"]}
    lance.write_dataset(rows([1]), mode="create", **where)
    assert lake.names() == ["t"]
    lance.write_dataset(rows([2]), mode="append", **where)
    assert lance.dataset(**where).to_table()["n"].to_pylist() == [1, 2]
    lance.write_dataset(rows([3]), mode="overwrite", **where)
    opened = lance.dataset(**where)
    assert opened.to_table()["n"].to_pylist() == [3]
    assert opened.version == 3
    assert lance.dataset(version=2, **where).count_rows() == 2


def test_lance_cannot_create_a_table_twice(lake):
    namespace = _connect(lake)
    where = {"namespace_client": namespace, "table_id": ["t"]}
    lance.write_dataset(rows([1]), mode="create", **where)
    with pytest.raises((spec.errors.TableAlreadyExistsError, OSError)):
        lance.write_dataset(rows([2]), mode="create", **where)
    assert lake.values("t") == [1]


def test_lance_does_not_find_a_dropped_table(lake):
    namespace = _connect(lake)
    where = {"namespace_client": namespace, "table_id": ["t"]}
    lance.write_dataset(rows([1]), mode="create", **where)
    namespace.drop_table(spec.DropTableRequest(id=["t"]))
    with pytest.raises(spec.errors.TableNotFoundError):
        lance.dataset(**where)
    with pytest.raises(spec.errors.TableNotFoundError):
        lance.write_dataset(rows([2]), mode="append", **where)
    namespace.undrop_table(["t"])
    lance.write_dataset(rows([2]), mode="append", **where)
    assert lance.dataset(**where).to_table()["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_lance_cannot_write_over_a_dropped_table_unseen(lake, mode):
    """It would commit a version of its own; the catalog's create_table keeps the lineage."""
    namespace = _connect(lake)
    lake.create("t", [1])
    lake.drop("t")
    with pytest.raises(spec.errors.LanceNamespaceError) as caught:
        lance.write_dataset(rows([2]), namespace_client=namespace, table_id=["t"], mode=mode)
    assert caught.value.code in {4, 19}
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_a_namespace_can_be_pickled(lake):
    namespace = _connect(lake)
    namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    again = pickle.loads(pickle.dumps(namespace))  # noqa: S301  # our own bytes
    assert again.namespace_id() == namespace.namespace_id()
    assert _names(again) == ["t"]


def test_a_namespace_is_identified_by_its_root(lake):
    assert lake.store.location("") in _connect(lake).namespace_id()


# -- requests and responses -----------------------------------------------------------------------


def test_create_takes_an_arrow_stream_and_answers_location_and_version(lake):
    """Spec: lance-rest-openapi, CreateTable."""
    namespace = _connect(lake)
    answer = namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    assert answer.location == lake.store.location("t.lance")
    assert answer.version == 1
    assert (answer.storage_options or {}) == lake.options


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("exist_ok", [1, 2]),
        ("ExistOk", [1, 2]),
        ("EXIST_OK", [1, 2]),
        ("overwrite", [7]),
        ("Overwrite", [7]),
    ],
)
def test_modes_are_read_in_every_spelling(lake, mode, values):
    """Spec: lance-rest-openapi, CreateTableRequest: "supports both PascalCase and snake_case"."""
    namespace = _connect(lake)
    namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    body = _ipc(pa.table({"n": [7]}))
    namespace.create_table(spec.CreateTableRequest(id=["t"], mode=mode), body)
    assert lake.values("t") == values


def test_describe_answers_what_was_asked_for(lake):
    """Spec: lance-rest-openapi, DescribeTableRequest."""
    namespace = _connect(lake)
    namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    plain = namespace.describe_table(spec.DescribeTableRequest(id=["t"]))
    assert plain.location == lake.store.location("t.lance")
    assert (plain.version, plain.var_schema, plain.is_only_declared) == (None, None, None)
    full = namespace.describe_table(
        spec.DescribeTableRequest(id=["t"], load_detailed_metadata=True, with_table_uri=True)
    )
    assert (full.table, full.namespace, full.version) == ("t", [], 1)
    assert [field.name for field in full.var_schema.fields] == ["n"]
    assert full.stats.num_fragments == 1
    assert full.is_only_declared is False
    assert "://" in full.table_uri


def test_describe_finds_versions_and_tags(lake):
    namespace = _connect(lake)
    namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    namespace.create_table(spec.CreateTableRequest(id=["t"], mode="overwrite"), BODY)
    lake.dataset("t").tags.create("first", 1)

    def version_of(**asked) -> int:
        request = spec.DescribeTableRequest(id=["t"], load_detailed_metadata=True, **asked)
        return namespace.describe_table(request).version

    assert version_of() == 2
    assert version_of(version=1) == 1
    assert version_of(tag="first") == 1
    for wrong in ({"version": 9}, {"tag": "absent"}):
        with pytest.raises(spec.errors.LanceNamespaceError) as caught:
            version_of(**wrong)
        assert caught.value.code in {8, 11}
    with pytest.raises(spec.errors.InvalidInputError):
        version_of(version=1, tag="first")


def test_a_declared_table_is_described_without_details(lake):
    """Spec: lance-rest-openapi, DescribeTableRequest, `check_declared`."""
    namespace = _connect(lake)
    answer = namespace.declare_table(spec.DeclareTableRequest(id=["t"]))
    assert answer.location == lake.store.location("t.lance")
    for asked in ({"check_declared": True}, {"load_detailed_metadata": True}):
        found = namespace.describe_table(spec.DescribeTableRequest(id=["t"], **asked))
        assert found.is_only_declared is True
        assert found.version is None
    assert _names(namespace) == ["t"]
    assert _names(namespace, include_declared=False) == []
    lance.write_dataset(rows([1]), answer.location, storage_options=lake.options or None)
    assert _names(namespace, include_declared=False) == ["t"]


def test_pages_follow_each_other_while_tables_come_and_go(lake):
    """Spec: lance-rest-openapi, PageToken, PageLimit."""
    for name in ("a", "c", "e", "g"):
        lake.store.put(f"{name}.lance/_versions/1.manifest", b"")
    namespace = _connect(lake)
    everything = namespace.list_tables(spec.ListTablesRequest(id=[]))
    assert (everything.tables, everything.page_token) == (["a", "c", "e", "g"], None)
    first = namespace.list_tables(spec.ListTablesRequest(id=[], limit=2))
    assert first.tables == ["a", "c"]
    lake.store.put("b.lance/_versions/1.manifest", b"")
    lake.store.put("d.lance/_versions/1.manifest", b"")
    lake.store.delete_prefix("c.lance")
    second = namespace.list_tables(
        spec.ListTablesRequest(id=[], limit=2, page_token=first.page_token)
    )
    assert second.tables == ["d", "e"]
    third = namespace.list_tables(
        spec.ListTablesRequest(id=[], limit=2, page_token=second.page_token)
    )
    assert (third.tables, third.page_token) == (["g"], None)


def test_the_ttl_of_a_drop_travels_in_the_context(lake):
    """Spec: ARCHITECTURE, "`DropTableRequest` has no TTL: it travels in `context["ttl"]`"."""
    namespace = _connect(lake)
    namespace.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    namespace.drop_table(spec.DropTableRequest(id=["t"], context={"ttl": "never"}))
    assert namespace.table_status(["t"]).expires_at_ms is None
    namespace.undrop_table(["t"])
    answer = namespace.drop_table(spec.DropTableRequest(id=["t"], context={"ttl": "2h"}))
    assert answer.id == ["t"]
    (dropped,) = namespace.list_purgable_tables()
    assert dropped.expires_at_ms - dropped.deleted_at_ms == 2 * 3_600_000
    namespace.undrop_table(["t"])
    with pytest.raises(spec.errors.InvalidInputError, match="soon"):
        namespace.drop_table(spec.DropTableRequest(id=["t"], context={"ttl": "soon"}))
    assert _names(namespace) == ["t"]


def test_the_lifecycle_is_there_beside_the_operations_of_the_specification(lake):
    namespace = _connect(lake)
    for name in ("a", "b", "c"):
        namespace.create_table(spec.CreateTableRequest(id=[name]), BODY)
        namespace.drop_table(spec.DropTableRequest(id=[name], context={"ttl": "0s"}))
    (first, *_) = namespace.list_purgable_tables()
    assert namespace.list_purgable_tables(deleted_before=first.deleted_at_ms) == []
    namespace.purge_table(["a"])
    assert [str(found) for found in namespace.purge_tables([["b"]]).purged] == ["b"]
    assert [str(found) for found in namespace.purge_tables().purged] == ["c"]
    namespace.create_table(spec.CreateTableRequest(id=["d"]), BODY)
    namespace.protect_table(["d"])
    with pytest.raises(spec.errors.InvalidTableStateError):
        namespace.drop_table(spec.DropTableRequest(id=["d"]))
    namespace.protect_table(["d"], protected=False)
    namespace.drop_table(spec.DropTableRequest(id=["d"]))


def test_namespaces_are_at_first_the_root_alone(lake):
    namespace = _connect(lake)
    assert namespace.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == []
    namespace.namespace_exists(spec.NamespaceExistsRequest(id=[]))
    assert namespace.describe_namespace(spec.DescribeNamespaceRequest(id=[])).properties == {}
    for act in (
        lambda: namespace.list_namespaces(spec.ListNamespacesRequest(id=["ns"])),
        lambda: namespace.namespace_exists(spec.NamespaceExistsRequest(id=["ns"])),
        lambda: namespace.describe_namespace(spec.DescribeNamespaceRequest(id=["ns"])),
        lambda: namespace.list_tables(spec.ListTablesRequest(id=["ns"])),
        lambda: namespace.create_table(spec.CreateTableRequest(id=["ns", "t"]), BODY),
    ):
        with pytest.raises(spec.errors.NamespaceNotFoundError):
            act()


# -- errors ---------------------------------------------------------------------------------------

FAILURES = {
    "table not found": (
        4,
        lambda ns: ns.describe_table(spec.DescribeTableRequest(id=["absent"])),
    ),
    "exists not found": (4, lambda ns: ns.table_exists(spec.TableExistsRequest(id=["absent"]))),
    "drop not found": (4, lambda ns: ns.drop_table(spec.DropTableRequest(id=["absent"]))),
    "undrop not found": (4, lambda ns: ns.undrop_table(["t"])),
    "purge of a live table": (4, lambda ns: ns.purge_table(["t"])),
    "already exists": (5, lambda ns: ns.create_table(spec.CreateTableRequest(id=["t"]), BODY)),
    "already declared": (5, lambda ns: ns.declare_table(spec.DeclareTableRequest(id=["t"]))),
    "already registered": (
        5,
        lambda ns: ns.register_table(spec.RegisterTableRequest(id=["t"], location="t.lance")),
    ),
    "version not found": (
        11,
        lambda ns: ns.describe_table(spec.DescribeTableRequest(id=["t"], version=77)),
    ),
    "exists at no version": (
        11,
        lambda ns: ns.table_exists(spec.TableExistsRequest(id=["t"], version=77)),
    ),
    "no name": (13, lambda ns: ns.describe_table(spec.DescribeTableRequest(id=[]))),
    "no id": (13, lambda ns: ns.drop_table(spec.DropTableRequest())),
    "bad mode": (
        13,
        lambda ns: ns.create_table(spec.CreateTableRequest(id=["u"], mode="maybe"), BODY),
    ),
    "register does not exist_ok": (
        13,
        lambda ns: ns.register_table(
            spec.RegisterTableRequest(id=["t"], location="t.lance", mode="exist_ok")
        ),
    ),
    "empty body": (13, lambda ns: ns.create_table(spec.CreateTableRequest(id=["u"]), b"")),
    "no arrow": (13, lambda ns: ns.create_table(spec.CreateTableRequest(id=["u"]), b"junk")),
    "cut off": (13, lambda ns: ns.create_table(spec.CreateTableRequest(id=["u"]), BODY[:-60])),
    "bad token": (
        13,
        lambda ns: ns.list_tables(spec.ListTablesRequest(id=[], page_token="é")),
    ),
    "bad limit": (13, lambda ns: ns.list_tables(spec.ListTablesRequest(id=[], limit=0))),
    "other location": (
        13,
        lambda ns: ns.register_table(spec.RegisterTableRequest(id=["u"], location="/etc")),
    ),
    "other namespace": (1, lambda ns: ns.list_tables(spec.ListTablesRequest(id=["ns"]))),
}
# What a plain directory cannot do.
BEYOND = {
    "rename": (
        0,
        lambda ns: ns.rename_table(spec.RenameTableRequest(id=["t"], new_table_name="u")),
    ),
    "properties": (
        0,
        lambda ns: ns.declare_table(spec.DeclareTableRequest(id=["u"], properties={"a": "b"})),
    ),
    "create namespace": (
        0,
        lambda ns: ns.create_namespace(spec.CreateNamespaceRequest(id=["ns"])),
    ),
    "drop namespace": (0, lambda ns: ns.drop_namespace(spec.DropNamespaceRequest(id=["ns"]))),
}


@pytest.fixture
def with_table(lake):
    lake.create("t")
    return lake


def test_every_failure_has_the_error_of_the_specification(with_table):
    """Spec: lance-rest-openapi, ErrorResponse, "Error codes"."""
    namespace = _connect(with_table)
    failures = FAILURES if with_table.kind.manifest else {**FAILURES, **BEYOND}
    for failure, (code, act) in failures.items():
        with pytest.raises(spec.errors.LanceNamespaceError) as caught:
            act(namespace)
        assert caught.value.code == code, failure
        assert type(caught.value) is type(spec.errors.from_error_code(code, "")), failure
        assert str(caught.value), failure
    assert with_table.names() == ["t"]


def test_a_lost_race_has_code_14(with_table, monkeypatch):
    namespace = _connect(with_table)
    other = with_table.open(author="bob")
    chains = getattr(namespace._backend, "_listed", namespace._backend)._chains
    real = chains.advance

    def late(*args, **kwargs):
        other.drop_table(T)
        return real(*args, **kwargs)

    monkeypatch.setattr(chains, "advance", late)
    with pytest.raises(spec.errors.ConcurrentModificationError):
        namespace.drop_table(spec.DropTableRequest(id=["t"]))


def test_a_read_only_namespace_answers_code_15(with_table):
    namespace = _connect(with_table, read_only="true")
    assert _names(namespace) == ["t"]
    with pytest.raises(spec.errors.PermissionDeniedError):
        namespace.drop_table(spec.DropTableRequest(id=["t"]))


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({}, 13),
        ({"root": ""}, 13),
        ({"root": "/tmp/x", "colour": "blue"}, 13),
        ({"root": "/tmp/x", "read_only": "perhaps"}, 13),
        ({"root": "ftp://host/x"}, 13),
        ({"root": "/tmp/x", "manifest_enabled": "perhaps"}, 13),
        ({"root": "/tmp/x", "manifest_enabled": "false", "dir_listing_enabled": "false"}, 13),
    ],
    ids=str,
)
def test_properties_that_make_no_sense_are_refused(properties, code):
    with pytest.raises(spec.errors.LanceNamespaceError) as caught:
        mooring.DirectoryNamespace(**properties)
    assert caught.value.code == code


COMPATIBLE, V1_ONLY, V2_ONLY = (True, True), (False, True), (True, False)


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        ({}, COMPATIBLE),
        ({"manifest_enabled": "true"}, COMPATIBLE),
        ({"manifest_enabled": "True", "dir_listing_enabled": "1"}, COMPATIBLE),
        ({"manifest_enabled": "false"}, V1_ONLY),
        ({"manifest_enabled": "0", "dir_listing_enabled": "True"}, V1_ONLY),
        ({"dir_listing_enabled": "false"}, V2_ONLY),
        ({"manifest_enabled": "TRUE", "dir_listing_enabled": "False"}, V2_ONLY),
    ],
    ids=str,
)
@pytest.mark.parametrize("surface", ["properties", "arguments"])
def test_properties_of_the_reference_choose_the_mode(tmp_path, surface, properties, mode):
    """Spec: "Compatibility Mode": "By default"; Deliver 4: "by the same properties as pylance"."""
    lance.write_dataset(rows([1]), str(tmp_path / "found.lance"))
    if surface == "properties":
        namespace = mooring.DirectoryNamespace(root=str(tmp_path), **properties)
        backend = namespace._backend
    else:
        flags = {key: value.lower() in {"true", "1"} for key, value in properties.items()}
        backend = mooring.connect(tmp_path, **flags).backend
    has_namespaces, has_listing = mode
    assert (backend.levels is None) == has_namespaces
    assert (backend.list_tables(ROOT) == ["found"]) == has_listing
    created = backend.create_table(T, rows([1])).location
    assert (created == str(tmp_path / "t.lance")) == has_listing
    assert (tmp_path / "__manifest").exists() == has_namespaces


def test_the_author_is_a_property(lake):
    _connect(lake, author="carol").create_table(spec.CreateTableRequest(id=["t"]), BODY)
    _connect(lake, author="carol").drop_table(spec.DropTableRequest(id=["t"]))
    assert {entry.by for entry in lake.backend.table_history(T)} == {"carol"}


def test_a_newer_catalog_answers_code_0(lake):
    lake.store.put_new("_mooring-catalog.00000000000000000001", b'{"format": 2}')
    with pytest.raises(spec.errors.UnsupportedOperationError, match="upgrade"):
        mooring.DirectoryNamespace(**lake.properties)


# -- pylance's own directory namespace ------------------------------------------------------------


def test_pylance_sees_exactly_our_live_tables_in_every_state(lake):
    """Must show: pylance with `manifest_enabled=false` on the same directory."""
    backend = lake.backend

    def agree(*live: str) -> None:
        expected = sorted(live)
        assert lake.names() == expected
        pylance = _pylance(lake)
        assert _names(pylance) == expected
        for name in ("t", "other", "declared"):
            assert _exists(pylance, name) == (name in live), name

    lake.create("t", [1])
    lake.create("other", [2])
    agree("other", "t")
    lake.drop("t")
    agree("other")
    backend.undrop_table(T)
    agree("other", "t")
    backend.deregister_table(T)
    agree("other")
    backend.register_table(T, "t.lance")
    agree("other", "t")
    lake.drop("t")
    lake.create("t", [3])
    agree("other", "t")
    lake.drop("t")
    backend.purge_table(T)
    agree("other")
    lake.create("t", [4])
    agree("other", "t")
    lake.create("t", [5], CreateMode.OVERWRITE)
    backend.protect_table(T)
    agree("other", "t")
    backend.declare_table(table_id("declared"))
    agree("declared", "other", "t")
    described = _pylance(lake).describe_table(
        spec.DescribeTableRequest(id=["declared"], check_declared=True)
    )
    assert described.is_only_declared is True


def test_pylance_reads_what_we_wrote_and_we_read_what_it_wrote(lake):
    """Must show: "tables that it writes are seen by us"."""
    lake.create("ours", [1])
    pylance = _pylance(lake)
    # Its answers hold no storage options, so whoever opens a table brings them.
    client = {"namespace_client": pylance, "storage_options": lake.options or None}
    opened = lance.dataset(table_id=["ours"], **client)
    assert opened.to_table()["n"].to_pylist() == [1]
    pylance.create_table(spec.CreateTableRequest(id=["theirs"]), BODY)
    lance.write_dataset(rows([5]), table_id=["written"], mode="create", **client)
    lance.write_dataset(rows([6]), table_id=["ours"], mode="append", **client)
    assert lake.names() == ["ours", "theirs", "written"]
    assert lake.values("theirs") == [1, 2]
    assert lake.values("written") == [5]
    assert lake.values("ours") == [1, 6]
    for name in ("theirs", "written"):
        lake.drop(name)
        assert not _exists(pylance, name)
        lake.backend.undrop_table(table_id(name))
        assert _exists(pylance, name)
    assert lake.values("theirs") == [1, 2]


def test_what_pylance_declares_is_declared(lake):
    pylance = _pylance(lake)
    pylance.declare_table(spec.DeclareTableRequest(id=["t"]))
    assert lake.names() == ["t"]
    assert lake.backend.list_tables(ROOT, include_declared=False) == []
    assert lake.backend.describe_table(T, check_declared=True).is_only_declared is True
    lake.create("t", [1])
    assert lake.values("t") == [1]
    assert _names(pylance) == ["t"]


def test_what_pylance_deregisters_is_hidden_and_can_be_registered_again(lake):
    pylance = _pylance(lake)
    pylance.create_table(spec.CreateTableRequest(id=["t"]), BODY)
    pylance.deregister_table(spec.DeregisterTableRequest(id=["t"]))
    assert lake.names() == []
    assert lake.backend.table_status(T) != Exists()
    lake.backend.register_table(T, "t.lance")
    assert lake.names() == ["t"]
    assert _names(pylance) == ["t"]
    assert lake.values("t") == [1, 2]


def test_what_pylance_drops_is_gone_and_can_be_created_again(lake):
    """Its drop is a hard delete: nothing is left, whatever our chain says."""
    lake.create("t", [1])
    lake.drop("t")
    lake.backend.undrop_table(T)
    _pylance(lake).drop_table(spec.DropTableRequest(id=["t"]))
    if lake.kind.manifest:
        # The row that a V1 writer does not know of is left: a name without data.
        assert lake.backend.describe_table(T, check_declared=True).is_only_declared
    else:
        assert lake.backend.table_status(T) != Exists()
        assert lake.names() == [] or lake.kind.lists_emptied
    lake.create("t", [2])
    assert lake.values("t") == [2]
    assert _names(_pylance(lake)) == ["t"]


def test_lance_maintains_a_table_of_ours_with_its_own_tools(lake):
    """Compaction and cleanup leave the lifecycle alone."""
    lake.create("t", [1])
    for value in (2, 3):
        lake.write_elsewhere("t", [value], mode="append")
    dataset = lake.dataset("t")
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(older_than=None, retain_versions=1)
    lake.drop("t")
    lake.backend.undrop_table(T)
    assert sorted(lake.values("t")) == [1, 2, 3]
    lake.drop("t")
    newest = dataset.version
    assert lake.create("t", [9]).version > newest
    assert lake.values("t") == [9]


@pytest.mark.parametrize(
    "how",
    [
        {"enable_v2_manifest_paths": False},
        {"data_storage_version": "legacy"},
        {"data_storage_version": "2.0"},
        {"enable_stable_row_ids": True},
    ],
    ids=str,
)
def test_tables_of_older_writers_live_the_same_life(disk_lake, how):
    """Manifests that count up, older file formats and features: every operation works."""
    disk_lake.write_elsewhere("t", [1], **how)
    disk_lake.write_elsewhere("t", [2], mode="append")
    disk_lake.drop("t")
    disk_lake.backend.undrop_table(T)
    assert disk_lake.values("t") == [1, 2]
    disk_lake.create("t", [3], CreateMode.OVERWRITE)
    assert (disk_lake.values("t"), disk_lake.dataset("t").version) == ([3], 3)
    disk_lake.drop("t")
    assert disk_lake.create("t", [4]).version == 4
    assert disk_lake.values("t", version=2) == [1, 2]
    disk_lake.drop("t")
    disk_lake.backend.purge_table(T)
    assert disk_lake.create("t", [5]).version == 5
    assert disk_lake.values("t") == [5]
    disk_lake.write_elsewhere("t", [6], mode="append")
    assert disk_lake.values("t") == [5, 6]
    assert _names(_pylance(disk_lake)) == ["t"]


# -- schemas --------------------------------------------------------------------------------------

TYPES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed_binary": pa.binary(7),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32": pa.time32("ms"),
    "time64": pa.time64("ns"),
    "timestamp": pa.timestamp("s"),
    "zoned": pa.timestamp("us", "Europe/Paris"),
    "duration": pa.duration("ms"),
    "decimal128": pa.decimal128(12, 3),
    "decimal256": pa.decimal256(50, 10),
    "list": pa.list_(pa.int32()),
    "large_list": pa.large_list(pa.string()),
    "vector": pa.list_(pa.float32(), 4),
    "struct": pa.struct([("x", pa.int8()), pa.field("y", pa.string(), nullable=False)]),
    "nested": pa.list_(pa.struct([("z", pa.list_(pa.float64(), 2))])),
    "map": pa.map_(pa.string(), pa.int32()),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
}


def test_a_schema_is_described_as_pylance_describes_it(disk_lake):
    """Spec: lance-rest-openapi, JsonArrowSchema."""
    fields = [pa.field(name, kind) for name, kind in TYPES.items()]
    fields += [
        pa.field("required", pa.int64(), nullable=False),
        pa.field("noted", pa.int8(), metadata={"unit": "m"}),
    ]
    schema = pa.schema(fields, metadata={"owner": "somebody"})
    arrays = [_empty(field.type) for field in schema]
    disk_lake.backend.create_table(T, pa.Table.from_arrays(arrays, schema=schema).to_reader())
    asked = spec.DescribeTableRequest(id=["t"], load_detailed_metadata=True)
    theirs = _pylance(disk_lake).describe_table(asked).var_schema
    ours = _connect(disk_lake).describe_table(asked).var_schema
    assert ours.to_dict() == theirs.to_dict()
    directly = schema_to_json(disk_lake.dataset("t").schema)
    assert JsonArrowSchema.from_dict(directly).to_dict() == theirs.to_dict()


def _empty(kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.DictionaryType):
        indices = pa.array([], kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, pa.array([], kind.value_type))
    return pa.array([], kind)


# -- arguments that the reference ignores ---------------------------------------------------------


def test_credentials_are_left_out_where_they_are_not_wanted(moto_lake):
    moto_lake.create("t")
    names = _connect(moto_lake)
    full = names.describe_table(spec.DescribeTableRequest(id=["t"])).storage_options
    assert any("secret" in key for key in full)
    asked = spec.DescribeTableRequest(id=["t"], vend_credentials=False)
    bare = names.describe_table(asked).storage_options
    assert bare
    assert set(bare) < set(full)
    assert not any("key" in key for key in bare)


def test_all_tables_without_those_that_are_only_declared(nested):
    nested.make("a", "a$b")
    nested.create(table_id("a", "b", "written"))
    nested.backend.declare_table(table_id("a", "declared"))
    names = _connect(nested)
    both = names.list_all_tables(spec.ListTablesRequest()).tables
    assert both == ["a$b$written", "a$declared"]
    written = names.list_all_tables(spec.ListTablesRequest(include_declared=False)).tables
    assert written == ["a$b$written"]


def test_storage_options_of_one_creation_are_refused(plain_lake):
    asked = spec.CreateTableRequest(id=["t"], storage_options={"timeout": "30s"})
    with pytest.raises(spec.errors.UnsupportedOperationError, match="open the catalog with"):
        _connect(plain_lake).create_table(asked, BODY)
    assert plain_lake.names() == []
