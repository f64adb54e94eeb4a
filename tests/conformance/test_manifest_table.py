"""The `__manifest` table: schema, rows, indexes, commits, upkeep, and what others leave in it.

Spec: directory-namespace, "Manifest Table Schema", "Manifest Table Indexes", "Manifest Table
Commits".
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.directory.entries import make_row
from mooring.directory.manifest import Manifest
from mooring.errors import (
    CatalogFormatError,
    InvalidInputError,
    MooringError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.states import Exists, NotFound
from mooring.store.scripted import ScriptedStore
from mooring.tables.manifest import BY, NAMESPACE, TABLE, ManifestRow
from tests.conformance.meanwhile import MANIFEST_COMMIT, Meanwhile
from tests.lakes import rows, table_id

NS = ObjectId.of(["ns"])
T = table_id("ns", "t")
# A bound of what upkeep leaves: versions, transactions, fragments, indexes, a hint.
FEW_DOZEN = 48
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key:position": b"0"}


@pytest.fixture
def lake(nested):
    nested.make("ns")
    return nested


def _open(lake, version: int | None = None) -> lance.LanceDataset:
    return lance.dataset(lake.store.location("__manifest"), version=version)


def _rows(lake) -> list[dict]:
    return sorted(_open(lake).to_table().to_pylist(), key=lambda row: row["object_id"])


def _files(lake) -> list[str]:
    return [meta.path for meta in lake.store.list_prefix("__manifest")]


def _pylance(lake):
    return lance.namespace.DirectoryNamespace(root=lake.uri)


# -- the table ------------------------------------------------------------------------------------


def test_the_schema_is_that_of_the_specification(lake):
    """Spec: "Manifest Table Schema", and the primary key that the reference marks."""
    schema = _open(lake).schema
    assert [(field.name, str(field.type), field.nullable) for field in schema] == [
        ("object_id", "string", False),
        ("object_type", "string", False),
        ("location", "string", True),
        ("metadata", "string", True),
        ("base_objects", "list<object_id: string>", True),
    ]
    assert schema.field("object_id").metadata == PRIMARY_KEY
    assert _open(lake).data_storage_version == "2.2"


def test_the_schema_is_the_one_that_pylance_makes(lake, tmp_path):
    other = lance.namespace.DirectoryNamespace(root=str(tmp_path / "theirs"))
    other.create_namespace(spec.CreateNamespaceRequest(id=["ns"]))
    theirs = lance.dataset(str(tmp_path / "theirs" / "__manifest"))
    assert _open(lake).schema.equals(theirs.schema, check_metadata=True)
    assert _open(lake).data_storage_version == theirs.data_storage_version


def test_rows_hold_what_the_specification_says(lake):
    """Spec: "Manifest Table Schema", the descriptions of the columns."""
    lake.backend.create_namespace(table_id("ns", "in'ner"), {"owner": "ann"})
    table = table_id("ns", "in'ner", "t")
    info = lake.backend.create_table(table, rows([1]), properties={"a": "b"})
    location = info.location.removeprefix(lake.store.location("") + "/")
    empty = {"location": None, "metadata": None, "base_objects": None}
    assert _rows(lake) == [
        {**empty, "object_id": "ns", "object_type": "namespace"},
        {
            **empty,
            "object_id": "ns$in'ner",
            "object_type": "namespace",
            "metadata": '{"owner":"ann"}',
        },
        {
            **empty,
            "object_id": "ns$in'ner$t",
            "object_type": "table",
            "location": location,
            "metadata": '{"a":"b"}',
        },
    ]


def test_pylance_reads_every_row(lake):
    lake.backend.update_namespace(NS, {"owner": "ann"})
    lake.create(T, [1])
    pylance = _pylance(lake)
    described = pylance.describe_namespace(spec.DescribeNamespaceRequest(id=["ns"]))
    assert described.properties == {"owner": "ann"}
    found = pylance.describe_table(spec.DescribeTableRequest(id=["ns", "t"]))
    assert lance.dataset(found.location).to_table()["n"].to_pylist() == [1]


# -- indexes --------------------------------------------------------------------------------------

INDEXES = {
    "object_id_btree": ("BTree", ["object_id"]),
    "object_type_bitmap": ("Bitmap", ["object_type"]),
    "base_objects_label_list": ("LabelList", ["base_objects"]),
}


def _indexes(lake) -> dict[str, tuple[str, list[str]]]:
    dataset = _open(lake)
    return {
        index.name: (index.index_type, list(index.field_names))
        for index in dataset.describe_indices()
    }


def _change_often(lake, count: int, prefix: str = "x") -> None:
    for number in range(count):
        lake.backend.update_namespace(NS, {prefix: str(number)})


def test_the_three_indexes_are_there(lake):
    """Spec: "Manifest Table Indexes"."""
    _change_often(lake, 20)
    assert _indexes(lake) == INDEXES


def test_indexes_that_another_program_drops_come_back(lake):
    """Deliver 2: "indexes kept current"; pylance's rewrite drops them."""
    _change_often(lake, 20)
    _pylance(lake).create_namespace(spec.CreateNamespaceRequest(id=["theirs"]))
    assert _indexes(lake) == {}
    _change_often(lake, 40)
    assert _indexes(lake) == INDEXES


def test_a_cold_look_through_the_index_finds_what_a_scan_finds(lake):
    """The first looks of a process read single rows, past the copy in memory."""
    keys = [f"ns$t{number:05}" for number in range(1500)]

    def plan(draft) -> None:
        for key in keys:
            draft.put(make_row(key, TABLE, f"00000000_{key}", None))

    lake.backend.manifest.change(plan)
    _change_often(lake, 20)
    for key in (keys[0], keys[777], keys[-1]):
        assert lake.open().describe_table(ObjectId.parse(key)).location.endswith(key)
    assert lake.open().table_status(table_id("ns", "absent")) == NotFound()
    assert len(lake.open().list_tables(NS)) == 1500


# -- commits --------------------------------------------------------------------------------------


def test_of_two_who_give_one_name_one_wins(lake):
    """Spec: "Manifest Table Commits": "atomically check ... and fail the operation accordingly"."""
    rival = Meanwhile(lambda: lake.open().declare_table(T), *MANIFEST_COMMIT)
    with pytest.raises(TableAlreadyExistsError):
        lake.open(store=ScriptedStore(lake.store, rival)).declare_table(T)
    assert not isinstance(rival.outcome, MooringError)
    assert [row["object_id"] for row in _rows(lake)] == ["ns", "ns$t"]
    assert len(lake.directories()) == 1


def test_a_change_that_meets_another_is_tried_again(lake):
    rival = Meanwhile(lambda: lake.open().declare_table(table_id("ns", "u")), *MANIFEST_COMMIT)
    lake.open(store=ScriptedStore(lake.store, rival)).declare_table(T)
    assert rival.done
    assert lake.open().list_tables(NS) == ["t", "u"]


def test_a_change_that_meets_a_rewrite_of_all_rows_is_tried_again(lake):
    """Every change of pylance is one."""
    lake.backend.declare_table(table_id("ns", "v"))

    def rewrite() -> None:
        _pylance(lake).declare_table(spec.DeclareTableRequest(id=["ns", "u"]))

    rival = Meanwhile(rewrite, *MANIFEST_COMMIT)
    lake.open(store=ScriptedStore(lake.store, rival)).declare_table(T)
    assert rival.done
    assert lake.open().list_tables(NS) == ["t", "u", "v"]
    assert _pylance(lake).list_tables(spec.ListTablesRequest(id=["ns"])).tables


def test_a_commit_costs_what_it_changes(lake):
    """Deliver 2: "Commits that cost what they change"."""
    keys = [f"ns$t{number:05}" for number in range(3000)]

    def plan(draft) -> None:
        for key in keys:
            draft.put(make_row(key, TABLE, f"00000000_{key}", {"note": "x" * 100}))

    lake.backend.manifest.change(plan)
    before = {meta.path: meta.size_bytes for meta in lake.store.list_prefix("__manifest/data")}
    lake.backend.declare_table(table_id("ns", "new"))
    lake.backend.drop_table(table_id("ns", "t00007"))
    after = {meta.path: meta.size_bytes for meta in lake.store.list_prefix("__manifest/data")}
    written = sum(size for path, size in after.items() if path not in before)
    assert written < sum(before.values()) / 10


def test_changes_of_one_process_that_wait_share_a_commit(lake):
    """Deliver 2: "concurrent changes in one process share one commit"."""
    lake.backend.declare_table(table_id("ns", "first"))
    count = 24
    gate = _UntilAllWait(count - 1)
    backend = lake.open(store=ScriptedStore(lake.store, gate))
    gate.manifest = backend.manifest
    backend.list_tables(NS)
    before = _open(lake).version
    gate.armed = True

    def declare(number: int) -> None:
        backend.declare_table(table_id("ns", f"t{number:02}"))

    with ThreadPoolExecutor(count) as pool:
        first = pool.submit(declare, 0)
        assert gate.holding.wait(30), "nothing was committed"
        list(pool.map(declare, range(1, count)))
        first.result()
    assert _open(lake).version == before + 2
    assert len(lake.open().list_tables(NS)) == count + 1


class _UntilAllWait:
    """Holds the first commit until so many other changes wait for theirs."""

    def __init__(self, others: int) -> None:
        self._others = others
        self.manifest = None
        self.armed = False
        self.holding = threading.Event()

    def before(self, call):
        if not self.armed or self.holding.is_set() or call.verb != "put_new":
            return
        if MANIFEST_COMMIT[1] not in call.path:
            return
        self.holding.set()
        deadline = time.monotonic() + 30
        while self.manifest.shared.waiting < self._others:
            assert time.monotonic() < deadline, "the others never came"
            threading.Event().wait(0.001)

    def after(self, call, result):
        pass


def test_one_refused_change_does_not_keep_others_of_its_commit(lake):
    lake.backend.declare_table(table_id("ns", "taken"))
    names = ["taken", *(f"t{number}" for number in range(7))]
    gate = _UntilAllWait(len(names))
    backend = lake.open(store=ScriptedStore(lake.store, gate))
    gate.manifest = backend.manifest
    backend.list_tables(NS)
    gate.armed = True

    def declare(name: str) -> Exception | None:
        try:
            backend.declare_table(table_id("ns", name))
        except MooringError as exc:
            return exc
        return None

    with ThreadPoolExecutor(len(names) + 1) as pool:
        first = pool.submit(declare, "first")
        assert gate.holding.wait(30), "nothing was committed"
        outcomes = dict(zip(names, pool.map(declare, names), strict=True))
        assert first.result() is None
    assert isinstance(outcomes.pop("taken"), TableAlreadyExistsError)
    assert set(outcomes.values()) == {None}
    assert lake.open().list_tables(NS) == sorted(["first", *names])


def test_clients_of_one_process_share_a_manifest(tmp_path):
    """Threads with a client each commit together, too, in whatever names."""
    one = mooring.connect(tmp_path).backend.manifest
    for alike in (
        mooring.connect(tmp_path).backend.manifest,
        mooring.DirectoryNamespace(root=str(tmp_path))._backend.manifest,
        mooring.connect(tmp_path, author="somebody else").backend.manifest,
    ):
        assert alike.shared is one.shared
    elsewhere = mooring.connect(tmp_path / "elsewhere").backend.manifest
    assert elsewhere.shared is not one.shared


def test_a_commit_names_all_whose_changes_it_holds(lake):
    """Concurrent changes of many clients share commits."""
    gate = _UntilAllWait(3)
    backend = lake.open(store=ScriptedStore(lake.store, gate), author="first")
    gate.manifest = backend.manifest
    backend.list_tables(NS)
    gate.armed = True

    def create(author: str) -> None:
        manifest = Manifest(backend.manifest.shared, author)
        manifest.change(lambda draft: _put(draft, make_row(f"ns${author}", NAMESPACE, None, {})))

    def refuse() -> None:
        Manifest(backend.manifest.shared, "eve").change(lambda draft: draft.require_table("ns$no"))

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(create, "first")
        assert gate.holding.wait(30), "nothing was committed"
        others = [pool.submit(refuse), pool.submit(create, "bo"), pool.submit(create, "ada")]
        first.result()
        with pytest.raises(TableNotFoundError):
            others.pop(0).result()
        for other in others:
            other.result()
    dataset = _open(lake)
    commits = [dataset.read_transaction(dataset.version - back) for back in (1, 0)]
    names = [commit.transaction_properties[BY] for commit in commits]
    assert names == ["first", "ada, bo"]


def _put(draft, row: ManifestRow) -> None:
    draft.require_free(row.object_id)
    draft.put(row)


def test_a_plan_with_a_defect_fails_alone(lake):
    """Others of the same commit are neither lost nor told that they were committed."""
    gate = _UntilAllWait(2)
    backend = lake.open(store=ScriptedStore(lake.store, gate))
    gate.manifest = backend.manifest
    backend.list_tables(NS)
    gate.armed = True

    def break_down(draft) -> None:
        draft.put(make_row("ns$half", NAMESPACE, None, {}))
        raise ZeroDivisionError

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(backend.create_namespace, table_id("ns", "first"), {})
        assert gate.holding.wait(30), "nothing was committed"
        broken = pool.submit(backend.manifest.change, break_down)
        good = pool.submit(backend.create_namespace, table_id("ns", "good"), {})
        first.result()
        good.result()
        with pytest.raises(ZeroDivisionError):
            broken.result()
    assert lake.open().list_namespaces(NS) == ["first", "good"]


def test_24_threads_with_a_client_each_lose_nothing(lake):
    """Must show: 0 errors, every acknowledged table present once, 0 orphan directories."""
    count = 24
    clients = [lake.connect(author=f"a{number % 3}") for number in range(count)]
    barrier = threading.Barrier(count)

    def declare(number: int) -> None:
        barrier.wait()
        for turn in range(3):
            clients[number].declare_table(table_id("ns", f"t{number:02}-{turn}"))

    before = _open(lake).version
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(declare, range(count)))
    assert len(lake.open().list_tables(NS)) == 3 * count
    assert len(lake.directories()) == 3 * count
    # Three authors, so three manifests: each shares its commits among eight.
    assert _open(lake).version - before < 3 * count


# -- reads that are never stale -------------------------------------------------------------------


def test_a_reader_sees_every_commit_at_once(lake):
    """Deliver 3: "never stale after a commit that was acknowledged anywhere"."""
    reader = lake.open(author="reader")
    for number in range(30):
        table = table_id("ns", f"t{number:02}")
        lake.backend.declare_table(table)
        assert reader.table_status(table) == Exists()
        assert len(reader.list_tables(NS)) == number + 1
        lake.backend.update_namespace(NS, {"n": str(number)})
        assert reader.describe_namespace(NS) == {"n": str(number)}
    for number in range(30):
        table = table_id("ns", f"t{number:02}")
        lake.backend.drop_table(table)
        assert reader.table_status(table) != Exists()
        assert len(reader.list_tables(NS)) == 29 - number


def test_a_reader_that_slept_through_the_upkeep_goes_on(lake):
    """The version it knows, and those after it, are tidied away."""
    reader = lake.open(author="reader")
    reader.list_tables(NS)
    for number in range(60):
        lake.backend.declare_table(table_id("ns", f"t{number:02}"))
    assert len(reader.list_tables(NS)) == 60
    reader.declare_table(table_id("ns", "own"))
    assert len(lake.open().list_tables(NS)) == 61


def test_a_writer_that_slept_through_the_upkeep_goes_on(lake):
    writer = lake.open(author="writer")
    writer.declare_table(table_id("ns", "a"))
    for number in range(60):
        lake.backend.declare_table(table_id("ns", f"t{number:02}"))
    with pytest.raises(TableAlreadyExistsError):
        writer.declare_table(table_id("ns", "t07"))
    writer.drop_table(table_id("ns", "a"))
    assert len(lake.open().list_tables(NS)) == 60


# -- upkeep ---------------------------------------------------------------------------------------


def test_after_a_thousand_pairs_the_manifest_holds_a_few_dozen_files(v2):
    """Deliver 2: "after 1,000 create+drop pairs the manifest holds at most a few dozen files"."""
    manifest = v2.backend.manifest
    for number in range(1000):
        row = ManifestRow(f"t{number % 7}", TABLE, f"0000000{number % 7}_t")
        manifest.change(lambda draft, row=row: draft.put(row))
        manifest.change(lambda draft, row=row: draft.remove(row.object_id))
    assert _open(v2).count_rows() == 0
    assert len(_files(v2)) <= FEW_DOZEN


def test_after_real_pairs_the_manifest_and_the_root_hold_little(lake):
    for number in range(40):
        table = table_id("ns", f"t{number % 3}")
        lake.create(table, [number])
        lake.drop(table)
        lake.backend.purge_table(table)
    assert len(_files(lake)) <= FEW_DOZEN
    assert lake.directories() == set()
    assert [row["object_id"] for row in _rows(lake)] == ["ns"]


def test_fragments_stay_few_while_rows_grow(lake):
    """Deliver 2: "small fragments are tidied within a bound"."""
    for number in range(150):
        lake.backend.declare_table(table_id("ns", f"t{number:03}"))
    assert len(_open(lake).get_fragments()) <= 12
    assert len(_files(lake)) <= 2 * FEW_DOZEN
    assert len(lake.open().list_tables(NS)) == 150


def test_processes_that_commit_once_leave_few_fragments(lake):
    """Each of them reads single rows only, and adds a fragment."""
    for number in range(60):
        lake.open().declare_table(table_id("ns", f"t{number:02}"))
    assert len(_open(lake).get_fragments()) <= 20
    assert len(lake.open().list_tables(NS)) == 60


def test_numbers_are_kept_in_a_shared_catalog(lake):
    """A program that has no guard against it may go for a number that was set free."""
    lake.open().initialize(shared=True)
    for number in range(100):
        lake.backend.update_namespace(NS, {"number": str(number)})
    known = _open(lake)
    versions = [name for name in _files(lake) if name.endswith(".manifest")]
    assert len(versions) == known.version >= 100
    assert len(_files(lake)) <= known.version + 2 * FEW_DOZEN
    assert lake.open().describe_namespace(ROOT) == {}


def test_changes_meet_in_a_shared_catalog_in_a_bucket(nested_s3):
    """Where numbers are kept, single versions are asked for instead of listing them."""
    nested_s3.make("ns")
    nested_s3.backend.initialize(shared=True)
    rival = Meanwhile(lambda: nested_s3.open().declare_table(table_id("ns", "u")), *MANIFEST_COMMIT)
    client = nested_s3.open(store=ScriptedStore(nested_s3.store, rival))
    client.declare_table(T)
    assert rival.done
    client.drop_table(T)
    client.undrop_table(T)
    assert nested_s3.open().list_tables(NS) == ["t", "u"]


def test_a_change_that_only_looks_at_some_rows_meets_others(lake):
    """Undrop, drop of a tree and registration are planned anew on the rows they look for."""
    for name in ("t", "u", "v"):
        lake.backend.declare_table(table_id("ns", name))
    lake.backend.drop_table(T)
    location = lake.backend.deregister_table(table_id("ns", "v")).location
    changes = {
        "undrop": lambda client: client.undrop_table(T),
        "register": lambda client: client.register_table(table_id("ns", "w"), location),
        "drop": lambda client: client.drop_namespace(NS, cascade=True),
        "undrop all": lambda client: client.undrop_namespace(NS),
    }
    for number, change in enumerate(changes.values()):
        other = f"other{number}"
        rival = Meanwhile(
            lambda other=other: _pylance(lake).create_namespace(
                spec.CreateNamespaceRequest(id=[other])
            ),
            *MANIFEST_COMMIT,
        )
        change(lake.open(store=ScriptedStore(lake.store, rival)))
        assert rival.done
    assert lake.open().list_tables(NS) == ["t", "u", "w"]
    assert lake.open().list_namespaces(ROOT) == ["ns", *(f"other{number}" for number in range(4))]


# -- what others leave in it ----------------------------------------------------------------------


def test_base_objects_and_maps_of_others_are_kept(lake):
    """Spec: "`base_objects`: Reserved for future use"; "preserves table-metadata"."""
    view = ManifestRow("ns$view", TABLE, "01234567_ns$view", '{"k":7}', ("ns$t", "ns$u"))
    lake.backend.manifest.change(lambda draft: draft.put(view))
    lake.backend.update_namespace(ROOT, {"theirs": "kept"})
    _change_often(lake, 30)
    for number in range(5):
        lake.backend.declare_table(table_id("ns", f"t{number}"))
        lake.backend.drop_table(table_id("ns", f"t{number}"))
    (found,) = [row for row in _rows(lake) if row["object_id"] == "ns$view"]
    assert found["base_objects"] == ["ns$t", "ns$u"]
    assert found["metadata"] == '{"k":7}'
    assert lake.open().describe_table(table_id("ns", "view")).properties == {"k": "7"}
    assert lake.open().describe_namespace(ROOT) == {"theirs": "kept"}


@pytest.mark.parametrize("text", ["", "not json", "[1]", "7", "null", '{"a": {"b": [1]}}'])
def test_metadata_that_nobody_understands_does_no_harm(lake, text):
    row = ManifestRow("ns$t", TABLE, "01234567_ns$t", text)
    lake.backend.manifest.change(lambda draft: draft.put(row))
    properties = lake.open().describe_table(T).properties
    assert all(isinstance(value, str) for value in properties.values())
    assert lake.open().list_tables(NS) == ["t"]
    lake.drop(T)
    lake.backend.undrop_table(T)
    (found,) = [row for row in _rows(lake) if row["object_id"] == "ns$t"]
    assert found["metadata"] == text


def test_a_row_of_the_trash_that_nobody_understands_does_no_harm(lake):
    key = "__mooring_trash$x$ns$t"
    lake.backend.manifest.change(lambda draft: draft.put(ManifestRow(key, TABLE, "x", "junk")))
    assert lake.trash() == []
    assert lake.tables() == []
    assert lake.open().table_status(T) != Exists()
    lake.backend.purge_tables()
    lake.create(T, [1])
    assert lake.values(T) == [1]


def test_what_the_catalog_keeps_in_the_map_is_no_property_of_the_root(lake):
    """That others write, such as pylance, is noted in the map."""
    _pylance(lake).create_namespace(spec.CreateNamespaceRequest(id=["theirs"]))
    _change_often(lake, 40)
    kept = dict(_open(lake).metadata)
    assert kept
    assert lake.open().describe_namespace(ROOT) == {}
    lake.backend.update_namespace(ROOT, {"owner": "ann"})
    assert lake.open().describe_namespace(ROOT) == {"owner": "ann"}
    for key in kept:
        with pytest.raises(InvalidInputError):
            lake.backend.update_namespace(ROOT, {key: None})
    assert _open(lake).metadata == {**kept, "owner": "ann"}


@pytest.mark.parametrize("side", ["reader", "writer"])
def test_a_manifest_with_unknown_features_is_refused(lake, side):
    """Reference: `lance.namespace.manifest.{reader,writer}_feature_flags` are a fence."""
    key = f"lance.namespace.manifest.{side}_feature_flags"
    lake.backend.manifest.change_metadata(lambda _: {key: "1024"})
    backend = lake.open()
    with pytest.raises(CatalogFormatError):
        backend.declare_table(T)
    if side == "reader":
        with pytest.raises(CatalogFormatError):
            backend.list_tables(NS)
    else:
        assert backend.list_tables(NS) == []


def test_a_table_that_is_no_manifest_is_not_taken_for_one(v2):
    """Somebody's table lies where the manifest would."""
    lance.write_dataset(pa.table({"n": [1]}), v2.store.location("__manifest"))
    with pytest.raises(MooringError):
        v2.open().list_tables(ROOT)
    with pytest.raises(MooringError):
        v2.backend.create_namespace(NS, {})
    assert lance.dataset(v2.store.location("__manifest")).to_table()["n"].to_pylist() == [1]


# -- unsure outcomes ------------------------------------------------------------------------------


class _LostAnswer:
    """Loses the answer to the put of a version of the manifest, once it was or was not made."""

    def __init__(self, *, made: bool) -> None:
        self._made = made
        self.lost = 0

    def before(self, call):
        if not self._made and self._is_commit(call):
            self.lost += 1
            raise ServiceUnavailableError(call.path)

    def after(self, call, result):
        if self._made and self._is_commit(call):
            self.lost += 1
            raise UnknownOutcomeError(call.path)

    def _is_commit(self, call) -> bool:
        return call.verb == "put_new" and MANIFEST_COMMIT[1] in call.path and self.lost == 0


def test_a_commit_whose_answer_was_lost_is_made_once(lake):
    """Rule: a failed commit that may have happened is never treated as lost."""
    script = _LostAnswer(made=True)
    backend = lake.open(store=ScriptedStore(lake.store, script))
    try:
        backend.create_table(T, rows([1]))
    except UnknownOutcomeError as exc:
        assert not exc.retryable  # noqa: PT017  # both ways of telling are right
    assert script.lost == 1
    assert lake.values(T) == [1]
    assert [row["object_id"] for row in _rows(lake)] == ["ns", "ns$t"]


def test_a_commit_that_was_refused_by_the_store_leaves_nothing(lake):
    script = _LostAnswer(made=False)
    backend = lake.open(store=ScriptedStore(lake.store, script))
    with pytest.raises(ServiceUnavailableError):
        backend.create_table(T, rows([1]))
    assert script.lost == 1
    assert lake.directories() == set()
    assert lake.tables() == []
    lake.create(T, [2])
    assert lake.values(T) == [2]


def test_properties_are_json_objects_of_strings(lake):
    """Spec: "`metadata`: JSON-encoded metadata/properties"."""
    odd = {"it's": 'say "hi"', "日本": "\\ \n \t", "$": "%"}
    lake.backend.update_namespace(NS, odd)
    (found,) = [row for row in _rows(lake) if row["object_id"] == "ns"]
    assert json.loads(found["metadata"]) == odd
    assert lake.open().describe_namespace(NS) == odd


def test_the_first_page_of_a_client_leaves_the_rest_of_the_catalog_alone(lake):
    """Deliver 1: "paging that does not scan everything for ten rows"."""
    names = ["a", "b'", "c%", "d", "漢字"]
    for name in names:
        lake.backend.declare_table(table_id("ns", name))
    lake.backend.create_namespace(table_id("ns", "deeper"), {})
    lake.backend.declare_table(table_id("ns", "deeper", "z"))
    lake.backend.drop_table(table_id("ns", "d"))
    fresh = lake.open()
    assert fresh.list_tables(NS, limit=2) == ["a", "b'"]
    assert fresh.list_tables(NS, after="b'", limit=10) == ["c%", "漢字"]
    assert fresh.list_namespaces(NS, limit=10) == ["deeper"]
    assert fresh.manifest.shared._version == 0
    with pytest.raises(NamespaceNotFoundError):
        lake.open().list_tables(table_id("nothing"), limit=1)
