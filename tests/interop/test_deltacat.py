"""One catalog in the hands of the released deltacat library and in ours.

The library runs in an environment of its own (`deltacat_peer`); where that cannot be built, these
tests say so and do not run.

Spec: deltacat-storage-model, whole; "Dialect deltacat".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mooring
from mooring.errors import NotFoundError, ProtectedError
from mooring.metastore.deltacat import codec
from mooring.metastore.deltacat.adoption import adopt
from mooring.metastore.deltacat.layout import parse_file
from mooring.metastore.deltacat.locators import read_around
from mooring.metastore.layout import Operation
from mooring.metastore.locator import ROOT, Kind, Locator
from mooring.metastore.model import (
    CommitState,
    DataFile,
    Delta,
    DeltaType,
    Lifecycle,
    Manifest,
    Namespace,
    Partition,
    PartitionField,
    PartitionScheme,
    SortField,
    SortScheme,
    Stream,
    Table,
    TableVersion,
)
from mooring.metastore.recognition import Layout, create_metastore, open_metastore, recognise
from mooring.store import open_store
from tests.interop.deltacat_peer import Deltacat, DeltacatError, NotBuiltError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

STREAM = "11111111-1111-4111-8111-111111111111"
PARTITION = "22222222-2222-4222-8222-222222222222"
PARTED = "33333333-3333-4333-8333-333333333333"
VERSION = Locator.of("sales", "orders", "1")
OURS = VERSION.child(STREAM).child(PARTITION)
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
SCHEME = PartitionScheme(
    fields=(
        PartitionField(columns=("id",), transform="bucket", argument=4, name="b"),
        PartitionField(columns=("name",), transform="truncate", argument=2),
        PartitionField(columns=("name",)),
    ),
    name="by id",
    id="scheme-9",
)
SORTED = SortScheme(
    fields=(SortField(columns=("name",), descending=True, nulls_first=True),),
    name="by name",
    id="sort-9",
)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "catalog"


@pytest.fixture(scope="module")
def peer_process():
    try:
        process = Deltacat()
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")
    yield process
    process.close()


@pytest.fixture
def start(peer_process, root):
    """Open the catalog by the library, which makes a namespace `default` wherever it does."""

    def start() -> Deltacat:
        peer_process("start", root=str(root))
        return peer_process

    return start


@pytest.fixture
def open_ours(root):
    def open_ours(*, beside_others: bool = False):
        return open_metastore(open_store(root), author="ada", beside_others=beside_others)

    return open_ours


def write_ours(root: Path):
    """Make a catalog of ours in the library's layout, with one row in a file."""
    found = create_metastore(open_store(root), author="ada", layout=Layout.DELTACAT)
    file = write_rows(root, "data/ours/a.parquet", {"id": [1], "name": ["a"]})
    with found.transaction(message="the beginning") as txn:
        txn.create(Locator.of("sales"), Namespace(properties={"owner": "ada"}))
        txn.create(
            Locator.of("sales", "orders"),
            Table(
                description="all of them",
                properties={"tier": "2"},
                latest_version="1",
                latest_active_version="1",
            ),
        )
        schema = bytes(SCHEMA.serialize())
        txn.create(VERSION, TableVersion(version="1", schema=schema, state=Lifecycle.ACTIVE))
        txn.create(VERSION.child(STREAM), Stream(stream_id=STREAM, state=CommitState.COMMITTED))
        txn.create(
            OURS,
            Partition(partition_id=PARTITION, state=CommitState.COMMITTED, stream_position=1),
        )
        txn.create(
            OURS.child("1"),
            Delta(
                stream_position=1,
                previous_position=0,
                properties={"batch": "7"},
                manifest=Manifest(files=(file,), author="ada"),
            ),
        )
    return found


def write_rows(root: Path, path: str, rows: dict) -> DataFile:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), target)
    return DataFile(path=path, rows=len(rows["id"]), size_bytes=target.stat().st_size)


def append_ours(meta, root: Path, position: int, rows: dict, table: str = "orders") -> None:
    partition = Locator.of("sales", table, "1", STREAM, PARTITION)
    file = write_rows(root, f"data/ours/{position}.parquet", rows)
    with meta.transaction() as txn:
        found = txn.get(partition).value
        txn.create(
            partition.child(str(position)),
            Delta(
                stream_position=position,
                previous_position=found.stream_position,
                manifest=Manifest(files=(file,)),
            ),
        )
        txn.update(partition, msgspec.structs.replace(found, stream_position=position))


def tree(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}


def tables(meta, namespace: str = "sales") -> list[str]:
    return [one.locator.parts[0] for one in meta.begin().children(Locator.of(namespace))]


# -- it works in a catalog that we wrote ---------------------------------------------------------


@pytest.mark.peer("deltacat", they="list describe read namespaces", on="metastore")
def test_deltacat_lists_and_reads_a_catalog_that_we_wrote(root, start):
    ours = write_ours(root)
    peer = start()
    found = peer("describe")
    assert sorted(found) == ["default", "sales"]
    txn = ours.begin()
    sales = found["sales"]
    assert sales["value"]["id"] == txn.get(Locator.of("sales")).id
    assert sales["value"]["properties"] == {"owner": "ada"}
    table = sales["tables"]["orders"]
    assert table["value"]["id"] == txn.get(Locator.of("sales", "orders")).id
    assert table["value"]["description"] == "all of them"
    assert table["value"]["properties"] == {"tier": "2"}
    assert table["value"]["latest_table_version"] == "1"
    version = table["versions"]["1"]
    assert version["value"]["state"] == "active"
    assert version["value"]["schema"]["arrow"][0] == ["id", "int64", True]
    stream = version["streams"][STREAM]
    assert stream["value"]["streamLocator"]["format"] == "deltacat"
    partition = stream["partitions"][PARTITION]
    assert partition["value"]["streamPosition"] == 1
    delta = partition["deltas"]["1"]
    assert delta["type"] == "append"
    assert delta["properties"] == {"batch": "7"}
    assert delta["manifest"]["author"] == {"name": "ada"}
    assert delta["manifest"]["entries"][0]["url"] == "data/ours/a.parquet"
    assert delta["meta"]["record_count"] == 1
    assert peer("rows", namespace="sales", table="orders") == [{"id": 1, "name": "a"}]


@pytest.mark.peer("deltacat", they="describe", on="metastore")
def test_deltacat_reads_schemes_and_parted_streams_that_we_wrote(root, start):
    ours = write_ours(root)
    stream = Locator.of("sales", "parted", "1", STREAM)
    with ours.transaction() as txn:
        txn.create(stream.parent.parent, Table(latest_version="1", latest_active_version="1"))
        txn.create(
            stream.parent,
            TableVersion(
                version="1",
                schema=bytes(SCHEMA.serialize()),
                state=Lifecycle.ACTIVE,
                partition_scheme=SCHEME,
                sort_scheme=SORTED,
                content_types=("application/parquet",),
            ),
        )
        txn.create(
            stream,
            Stream(stream_id=STREAM, state=CommitState.COMMITTED, partition_scheme=SCHEME),
        )
        txn.create(
            stream.child(PARTED),
            Partition(
                partition_id=PARTED,
                values=(3, "it's", None),
                scheme_id="scheme-9",
                state=CommitState.COMMITTED,
            ),
        )
    peer = start()
    version = peer("describe")["sales"]["tables"]["parted"]["versions"]["1"]["value"]
    bucket, truncate, plain = version["partitionScheme"]["keys"]
    assert bucket["transform"]["parameters"] == {"numBuckets": 4, "bucketingStrategy": "default"}
    assert truncate["transform"]["parameters"]["width"] == 2
    assert plain["transform"] == {"name": "identity"}
    assert version["sortScheme"]["keys"] == [[["name"], "descending", "at_start", None, None]]
    found = peer(
        "partition_by_values",
        namespace="sales",
        table="parted",
        values=[3, "it's", None],
        scheme_id="scheme-9",
    )
    assert found["partitionLocator"]["partitionId"] == PARTED
    # And it can go on with them.
    added = peer("add_partition", namespace="sales", table="parted", values=[1, "ab", "x"])
    value = open_metastore(open_store(root), author="ada").begin().get(stream.child(added)).value
    assert (value.values, value.scheme_id) == ((1, "ab", "x"), "scheme-9")


@pytest.mark.peer("deltacat", they="write", we="read", on="metastore")
def test_deltacat_renames_and_appends_in_a_catalog_that_we_wrote(root, start, open_ours):
    write_ours(root)
    peer = start()
    assert peer("append", namespace="sales", table="orders", rows={"id": [2], "name": ["b"]}) == 2
    peer("rename_table", namespace="sales", table="orders", to="purchases")
    peer("rename_namespace", name="sales", to="trade")
    assert peer("tables", namespace="trade") == ["purchases"]
    txn = open_ours().begin()
    moved = Locator.of("trade", "purchases", "1", STREAM, PARTITION)
    assert [one.value.stream_position for one in txn.children(moved)] == [1, 2]
    assert txn.get(moved).value.stream_position == 2
    assert txn.find(Locator.of("sales")) is None
    assert txn.get(moved.parent.parent.parent).value.properties == {"tier": "2"}


@pytest.mark.peer("deltacat", they="list read", on="metastore")
def test_deltacat_sees_our_renames_drops_and_deltas(root, start):
    ours = write_ours(root)
    append_ours(ours, root, 2, {"id": [2], "name": ["b"]})
    with ours.transaction() as txn:
        txn.rename(Locator.of("sales", "orders"), "purchases")
        txn.create(Locator.of("sales", "orders"), Table(description="another"))
        txn.create(Locator.of("sales", "gone"), Table())
        txn.rename(Locator.of("sales"), "trade")
    with ours.transaction() as txn:
        txn.delete(Locator.of("trade", "gone"))
    peer = start()
    assert peer("tables", namespace="trade") == ["orders", "purchases"]
    assert [row["id"] for row in peer("rows", namespace="trade", table="purchases")] == [1, 2]
    with pytest.raises(DeltacatError, match="sales"):
        peer("create_plain_table", namespace="sales", table="t")
    shared = open_metastore(open_store(root), author="ada", beside_others=True)
    with shared.transaction() as txn:
        txn.delete(Locator.of("trade", "purchases", "1"), cascade=True)
    left = peer("describe")["trade"]["tables"]["purchases"]
    assert left["versions"] == {}


@pytest.mark.peer("deltacat", they="describe", on="metastore")
def test_deltacat_reads_the_logs_of_our_transactions(root, start):
    write_ours(root)
    found = {one["commit_message"]: one for one in start()("transactions")}
    ours = found["the beginning"]
    assert (ours["operation_count"], ours["operation_types"]) == (6, ["create"])
    counted = ("namespace", "table", "table_version", "stream", "partition", "delta")
    assert [ours[f"{kind}_count"] for kind in counted] == [1] * 6


@pytest.mark.peer("deltacat", they="read", on="metastore")
def test_deltacat_reads_our_history_as_of_a_time(root, start):
    ours = write_ours(root)
    before_ns = ours.begin().id.partition("_")[0]
    for name in ("first", "second"):
        with ours.transaction() as txn:
            found = txn.get(Locator.of("sales", "orders"))
            value = msgspec.structs.replace(found.value, description=name)
            txn.update(found.locator, value)
    first_end_ms = next(
        record.end_ms for _, record in ours.transactions() if len(record.changes) == 1
    )
    peer = start()
    now = peer("table_as_of", namespace="sales", table="orders", time_ns=(first_end_ms + 1) * 10**6)
    assert now["description"] == "second"
    old = peer("table_as_of", namespace="sales", table="orders", time_ns=int(before_ns) + 1)
    assert old["description"] in {"all of them", "first"}


@pytest.mark.peer("deltacat", they="list write", on="metastore")
def test_deltacat_lists_and_renames_lance_tables_of_ours(root, start):
    catalog = mooring.connect(f"metastore+{root}", dialect="deltacat")
    catalog.create_namespace("sales")
    catalog.create_table("sales$orders", pa.table({"id": [1, 2]}))
    peer = start()
    version = peer("describe")["sales"]["tables"]["orders"]["versions"]["1"]
    (stream,) = version["streams"].values()
    assert stream["value"]["streamLocator"]["format"] == "lance"
    peer("rename_table", namespace="sales", table="orders", to="purchases")
    shared = mooring.connect(f"metastore+{root}", beside_others=True)
    assert list(shared.list_tables("sales")) == ["purchases"]
    shared.create_table("sales$more", pa.table({"id": [3]}))
    assert peer("tables", namespace="sales") == ["more", "purchases"]


# -- we read a catalog that it wrote -------------------------------------------------------------


def build_theirs(peer) -> None:
    """Let the library write what it can: schemes, versions, renames, deltas, deletions."""
    peer("create_namespace", name="sales", properties={"owner": "ada", "tier": 2, "deep": {"a": 1}})
    peer("create_rich_table", namespace="sales", table="orders")
    peer("create_plain_table", namespace="sales", table="plain", columns={"id": "int64"})
    peer("create_plain_table", namespace="sales", table="plain", columns={"id": "int64"})
    peer("add_partition", namespace="sales", table="plain")
    peer("append", namespace="sales", table="plain", rows={"id": [1, 2]}, properties={"q": 1})
    peer("append", namespace="sales", table="plain", rows={"id": [3]}, kind="add")
    peer("append", namespace="sales", table="plain", rows={"id": [1]}, kind="upsert")
    peer("add_partition", namespace="sales", table="orders", values=[3, 7])
    peer("stage_partition", namespace="sales", table="plain", version="2")
    peer("with_message", namespace="sales", table="plain", to="renamed", message="a better name")
    peer("create_plain_table", namespace="sales", table="dropped")
    peer("delete_table", namespace="sales", table="dropped")
    peer("create_namespace", name="gone")
    peer("delete_namespace", name="gone")
    peer("create_plain_table", namespace="sales", table="replaced")
    peer("add_partition", namespace="sales", table="replaced")
    peer("add_partition", namespace="sales", table="replaced")
    peer("update_twice", namespace="sales", table="replaced")


@pytest.mark.peer("deltacat", we="list describe read", on="metastore")
def test_we_read_a_catalog_that_deltacat_wrote_field_for_field(root, start, open_ours):
    peer = start()
    build_theirs(peer)
    before = tree(root)
    store = open_store(root)
    assert recognise(store) is Layout.DELTACAT
    txn = open_ours().begin()
    compare(peer("describe"), txn)
    assert tree(root) == before, "reading left something"


def compare(theirs: dict, txn) -> None:
    """Hold what the library tells of every object against what we read."""
    names = [one.locator.parts[0] for one in txn.children(ROOT)]
    assert names == sorted(theirs)
    for name, namespace in theirs.items():
        ours = txn.get(Locator.of(name))
        assert ours.id == namespace["value"]["id"]
        assert set(ours.value.properties) == set(namespace["value"]["properties"] or {})
        listed = txn.children(ours.locator)
        assert [one.locator.parts[0] for one in listed] == sorted(namespace["tables"])
        for table in listed:
            compare_table(namespace["tables"][table.locator.parts[0]], table, txn)


def compare_table(theirs: dict, ours, txn) -> None:
    value = theirs["value"]
    assert ours.id == value["id"]
    assert ours.value.description == value["description"]
    assert ours.value.latest_version == value["latest_table_version"]
    assert ours.value.latest_active_version == value["latest_active_table_version"]
    versions = txn.children(ours.locator)
    assert {one.id for one in versions} == set(theirs["versions"])
    for version in versions:
        compare_version(theirs["versions"][version.id], version, txn)


def compare_version(theirs: dict, ours, txn) -> None:
    value = theirs["value"]
    assert ours.value.state == value["state"]
    assert ours.value.description == value["description"]
    assert ours.value.previous_version == value["previous_table_version"]
    assert list(ours.value.content_types) == (value["contentTypes"] or [])
    if value["schema"] is not None:
        schema = pa.ipc.read_schema(pa.py_buffer(ours.value.schema))
        columns = [[one.name, str(one.type), one.nullable] for one in schema]
        assert columns == value["schema"]["arrow"]
    assert (ours.value.partition_scheme is None) == (value["partitionScheme"]["keys"] is None)
    assert (ours.value.sort_scheme is None) == (value["sortScheme"]["keys"] is None)
    streams = txn.children(ours.locator)
    assert {one.id for one in streams} == set(theirs["streams"])
    for stream in streams:
        found = theirs["streams"][stream.id]
        assert stream.value.format == found["value"]["streamLocator"]["format"]
        assert stream.value.state == found["value"]["state"]
        partitions = txn.children(stream.locator)
        assert {one.id for one in partitions} == set(found["partitions"])
        for partition in partitions:
            compare_partition(found["partitions"][partition.id], partition, txn)


def compare_partition(theirs: dict, ours, txn) -> None:
    value = theirs["value"]
    assert ours.value.state == value["state"]
    assert list(ours.value.values) == (value["partitionLocator"]["partitionValues"] or [])
    assert ours.value.stream_position == value["streamPosition"]
    assert ours.value.previous_partition_id == value["previousPartitionId"]
    deltas = txn.children(ours.locator)
    assert {one.id for one in deltas} == set(theirs["deltas"])
    for delta in deltas:
        found = theirs["deltas"][delta.id]
        assert delta.value.type == found["type"]
        assert delta.value.previous_position == found["previousStreamPosition"]
        entries = found["manifest"]["entries"]
        assert [file.path for file in delta.value.manifest.files] == [e["url"] for e in entries]
        assert [file.rows for file in delta.value.manifest.files] == [
            e["meta"]["record_count"] for e in entries
        ]


@pytest.mark.peer("deltacat", we="write", on="metastore")
def test_what_deltacat_wrote_is_written_back_key_for_key(root, start):
    build_theirs(start())
    count = 0
    for path in root.rglob("*.mpk"):
        name = parse_file(str(path.relative_to(root)))
        if name.operation is Operation.DELETE:
            continue  # it may tell of the object that came instead
        body = path.read_bytes()
        decoded = codec.decode(body, name.ids, str(path))
        raw = msgspec.msgpack.decode(body)
        around = read_around(raw, Kind.at(len(name.ids)))
        assert msgspec.msgpack.decode(codec.encode(decoded.value, name.ids, around)) == raw
        count += 1
    assert count > 20


@pytest.mark.peer("deltacat", we="read", on="metastore")
def test_we_read_the_history_that_deltacat_wrote(root, start, open_ours):
    peer = start()
    build_theirs(peer)
    ours = open_ours()
    txn = ours.begin()
    table = Locator.of("sales", "renamed")
    operations = [change.operation for _, change in txn.history(table)]
    assert operations == [Operation.CREATE, Operation.UPDATE, Operation.UPDATE]
    seq, record = next(one for one in ours.transactions() if one[1].message == "a better name")
    assert tables(ours) == ["orders", "renamed", "replaced"]
    old = ours.begin(at=seq - 1)
    assert [one.locator.parts[0] for one in old.children(Locator.of("sales"))] == [
        "orders",
        "plain",
    ]
    assert ours.state_at(txn_id=record.txn_id) == seq
    # The library's own way back tells the same.
    then_ns = int(record.txn_id.partition("_")[0])
    assert peer("table_as_of", namespace="sales", table="plain", time_ns=then_ns) is not None
    assert peer("table_as_of", namespace="sales", table="renamed", time_ns=then_ns) is None


@pytest.mark.peer("deltacat", we="describe", on="metastore")
def test_a_committed_partition_is_found_by_its_values(root, start, open_ours):
    build_theirs(start())
    txn = open_ours().begin()
    stream = Locator.of("sales", "orders", "1", "deltacat")
    found = txn.get(stream.child("[3, 7]", "scheme-1"))
    assert found.value.values == (3, 7)
    staged = txn.children(Locator.of("sales", "renamed", "2", "deltacat"))
    assert [one.value.state for one in staged] == [CommitState.STAGED]


# -- both take turns -----------------------------------------------------------------------------


@pytest.mark.peer("deltacat", they="read write", we="read write", on="metastore")
def test_both_take_turns_on_one_catalog(root, start, open_ours):
    ours = write_ours(root)
    peer = start()
    shared = open_ours(beside_others=True)
    expected = [1]
    for turn in range(4):
        position = 2 * turn + 2
        rows = {"id": [position], "name": ["theirs"]}
        table = tables(shared)[0]
        assert peer("append", namespace="sales", table=table, rows=rows) == position
        append_ours(shared, root, position + 1, {"id": [position + 1], "name": ["ours"]}, table)
        expected += [position, position + 1]
        with shared.transaction() as txn:
            txn.rename(Locator.of("sales", table), f"ours-{turn}")
        peer("rename_table", namespace="sales", table=f"ours-{turn}", to=f"theirs-{turn}")
    assert [row["id"] for row in peer("rows", namespace="sales", table="theirs-3")] == expected
    # Whoever opens it anew, or had it open all the time, sees the same.
    for meta in (ours, shared, open_ours()):
        partition = Locator.of("sales", "theirs-3", "1", STREAM, PARTITION)
        positions = [one.value.stream_position for one in meta.begin().children(partition)]
        assert sorted(positions) == expected
        compare(peer("describe"), meta.begin())


@pytest.mark.peer("deltacat", we="harmless", on="metastore")
def test_writing_beside_deltacat_is_refused_unless_asked_for(root, start, open_ours):
    peer = start()
    peer("create_namespace", name="sales")
    ours = open_ours()
    with pytest.raises(ProtectedError, match="commits of deltacat are not adopted"):
        ours.run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    assert ours.adopt_commits() == 2
    ours.run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    assert peer("namespaces") == ["default", "ours", "sales"]
    running = peer("begin_and_leave", name="late")
    with pytest.raises(ProtectedError, match=running):
        ours.run(lambda txn: txn.create(Locator.of("more"), Namespace()))
    open_ours(beside_others=True).run(lambda txn: txn.create(Locator.of("more"), Namespace()))
    peer("finish")
    names = [one.locator.parts[0] for one in ours.begin().children(ROOT)]
    assert names == ["default", "late", "more", "ours", "sales"] == peer("namespaces")
    assert list(root.glob("txn/running/*")) == []


@pytest.mark.peer("deltacat", we="harmless", on="metastore")
def test_sweep_leaves_a_running_transaction_of_deltacat_alone(root, start, open_ours):
    ours = write_ours(root)
    peer = start()
    peer("begin_and_leave", name="late")
    shared = open_ours(beside_others=True)
    assert shared.sweep(older_than_ms=-60_000) == []
    peer("finish")
    assert ours.begin().get(Locator.of("late")).value == Namespace()
    assert "late" in peer("namespaces")


@pytest.mark.peer("deltacat", they="read", on="metastore")
def test_checkpoints_do_not_come_in_the_way_of_deltacat(root, start, open_ours):
    ours = write_ours(root)
    peer = start()
    peer("rename_table", namespace="sales", table="orders", to="theirs")
    ours.adopt_commits()
    ours.chain.checkpoint()
    peer("rename_table", namespace="sales", table="theirs", to="again")
    assert tables(open_ours()) == ["again"]
    again = open_ours()
    assert again.adopt_commits() == 1
    again.run(lambda txn: txn.rename(Locator.of("sales", "again"), "orders"))
    again.chain.checkpoint()
    assert peer("tables", namespace="sales") == ["orders"]
    assert len(peer("transactions")) == len(list(ours.transactions()))


# -- adoption ------------------------------------------------------------------------------------


@pytest.mark.peer("deltacat", we="read", on="metastore")
def test_a_catalog_of_deltacat_is_adopted_into_ours(root, start, open_ours, tmp_path):
    peer = start()
    build_theirs(peer)
    before = tree(root)
    source = open_ours()
    target = open_store(tmp_path / "adopted")
    planned = adopt(source, target, author="ada", dry_run=True)
    assert recognise(target) is Layout.EMPTY
    done = adopt(source, target, author="ada")
    assert done.seq == 1
    assert (done.objects, done.data_files) == (planned.objects, planned.data_files)
    assert done.objects == {
        Kind.NAMESPACE: 2,
        Kind.TABLE: 3,
        Kind.TABLE_VERSION: 4,
        Kind.STREAM: 4,
        Kind.PARTITION: 4,
        Kind.DELTA: 3,
    }
    assert tree(root) == before
    assert recognise(target) is Layout.DOCUMENT
    adopted = open_metastore(target, author="ada").begin()
    theirs, txn = peer("describe"), source.begin()
    for one in everything(txn):
        found = adopted.get(one.locator)
        assert found.ids == one.ids
        if one.value.kind is not Kind.DELTA:
            assert found.value == one.value
            continue
        (file,) = found.value.manifest.files
        assert pq.read_table(file.path).num_rows == file.rows
    assert len(list(everything(adopted))) == len(list(everything(txn)))
    assert set(theirs) == {one.locator.parts[0] for one in adopted.children(ROOT)}
    with pytest.raises(NotFoundError):
        adopted.get(Locator.of("gone"))


def everything(txn, above: Locator = ROOT):
    for one in txn.children(above):
        yield one
        if one.value.kind is not Kind.DELTA:
            yield from everything(txn, one.locator)


@pytest.mark.peer("deltacat", we="describe", on="metastore")
def test_delta_types_are_read(root, start, open_ours):
    build_theirs(start())
    txn = open_ours().begin()
    (partition,) = txn.children(Locator.of("sales", "renamed", "1", "deltacat"))
    types = [one.value.type for one in txn.children(partition.locator)]
    assert sorted(types) == [DeltaType.ADD, DeltaType.APPEND, DeltaType.UPSERT]
