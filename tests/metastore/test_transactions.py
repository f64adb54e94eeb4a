"""Transactions of a metastore, and the tree that they leave.

Spec: deltacat-storage-model, whole; "Transactions".
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from functools import partial

import pytest

from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotEmptyError,
    NotFoundError,
)
from mooring.metastore.committer import Request
from mooring.metastore.locator import ROOT, Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import (
    CommitState,
    DataFile,
    Delta,
    DeltaType,
    Manifest,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
    decode_object,
)
from mooring.store import open_store

NS, TABLE = Locator.of("MyNamespace"), Locator.of("MyNamespace", "MyTable")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "meta"


@pytest.fixture
def open_one(root):
    def open_one(author: str = "ada") -> Metastore:
        return Metastore(open_store(root), author=author)

    return open_one


@pytest.fixture
def meta(open_one):
    """A metastore with one namespace and one table."""
    found = open_one()
    with found.transaction() as txn:
        txn.create(NS, Namespace(properties={"owner": "ada"}))
        txn.create(TABLE, Table())
    return found


def _files(root) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


# -- the tree of the document ----------------------------------------------------------------------


def test_example_of_the_document_is_reproduced_name_for_name(meta, root):
    """Spec: "Example"."""
    txn = meta.begin()
    ns, table = txn.get(NS), txn.get(TABLE)
    uuid.UUID(ns.id)
    uuid.UUID(table.id)
    ours = {path for path in _files(root) if "/_" not in path}
    (log,) = [path for path in ours if path.startswith("txn/")]
    txn_id = log.removeprefix("txn/")
    assert ours == {
        f"txn/{txn_id}",
        f"{NS.digest}/00000000000000000001_create_{txn_id}.{ns.id}",
        f"{ns.id}/rev/00000000000000000001_create_{txn_id}.mpk",
        f"{ns.id}/{table.id}/rev/00000000000000000001_create_{txn_id}.mpk",
        f"{ns.id}/{TABLE.digest}/00000000000000000001_create_{txn_id}.{table.id}",
    }
    mapping = root / NS.digest / f"00000000000000000001_create_{txn_id}.{ns.id}"
    assert mapping.stat().st_size == 0
    revision = root / ns.id / "rev" / f"00000000000000000001_create_{txn_id}.mpk"
    assert decode_object(revision.read_bytes(), "x") == Namespace(properties={"owner": "ada"})


def test_root_of_a_namespace_has_its_revisions_and_a_directory_for_each_table(meta, root):
    """Spec: "Object Directories (Immutable ID Directories)"."""
    second = Locator.of("MyNamespace", "Second")
    with meta.transaction() as txn:
        txn.create(second, Table())
    txn = meta.begin()
    namespace, tables = txn.get(NS), [txn.get(TABLE), txn.get(second)]
    home = root / namespace.id
    digests = {TABLE.digest, second.digest}
    assert {path.name for path in home.iterdir()} == {"rev", *digests, *(t.id for t in tables)}
    for table in tables:
        assert [path.name for path in (home / table.id).iterdir()] == ["rev"]
    assert NS.digest == hashlib.sha1(b"MyNamespace").hexdigest()  # noqa: S324  # the document's
    assert TABLE.digest == hashlib.sha1(b"MyNamespace|MyTable").hexdigest()  # noqa: S324


def test_transaction_log_directory_has_a_log_for_each_commit(meta, root):
    """Spec: "Transaction Log Directory"."""
    with meta.transaction() as second:
        second.rename(TABLE, "Renamed")
    failed = meta.begin()
    failed.create(Locator.of("Lost"), Namespace())
    with meta.transaction() as other:
        other.create(Locator.of("Lost"), Namespace())
    with pytest.raises(ConcurrentModificationError):
        failed.commit()
    names = {path.name for path in (root / "txn").iterdir() if not path.name.startswith("_")}
    ids = {record.txn_id for _, record in meta.transactions()}
    assert names == ids
    assert {second.id, other.id} < ids
    for name in names:
        start, _, unique = name.partition("_")
        assert start.isdecimal()
        assert str(uuid.UUID(unique)) == unique


def test_every_object_below_a_table_lies_in_a_directory_of_its_id(meta, root):
    """Spec: "Child Object Directories"."""
    below = TABLE.child("1").child("s", "deltacat").child("p").child("7")
    with meta.transaction() as txn:
        txn.create(TABLE.child("1"), TableVersion(version="1"))
        txn.create(below.parent.parent, Stream(stream_id="s"))
        txn.create(below.parent, Partition(partition_id="p"))
        txn.create(below, Delta(stream_position=7))
    table = meta.begin().get(TABLE)
    home = root.joinpath(*table.ids)
    made = {str(path.relative_to(home)) for path in home.rglob("rev")}
    assert made == {"rev", "1/rev", "1/s/rev", "1/s/p/rev", "1/s/p/7/rev"}
    [name] = [path.name for path in (home / "1/s/p/7/rev").iterdir()]
    assert name == f"00000000000000000001_create_{txn.id}.mpk"


def test_rename_moves_nothing_and_is_in_the_history(meta, root):
    before = meta.begin().get(TABLE)
    with meta.transaction() as txn:
        txn.rename(TABLE, "Renamed")
    txn = meta.begin()
    new = Locator.of("MyNamespace", "Renamed")
    assert txn.get(new).ids == before.ids
    assert txn.find(TABLE) is None
    assert [change.operation for _, change in txn.history(new)] == ["create", "update"]
    names = {path.rpartition("/")[2] for path in _files(root) if TABLE.digest in path}
    assert {name.split("_")[1] for name in names} == {"create", "delete"}
    assert any(new.digest in path for path in _files(root))


def test_children_of_a_renamed_namespace_are_found_by_their_new_canonical_strings(meta, root):
    with meta.transaction() as txn:
        txn.rename(NS, "Other")
    moved = Locator.of("Other", "MyTable")
    assert meta.begin().get(moved)
    assert meta.begin().find(TABLE) is None
    assert any(moved.digest in path for path in _files(root))


def test_alias_means_the_same_object(meta):
    with meta.transaction() as txn:
        txn.add_alias(TABLE, "Alias")
    txn = meta.begin()
    alias = Locator.of("MyNamespace", "Alias")
    assert txn.get(alias).ids == txn.get(TABLE).ids
    assert [str(found.locator) for found in txn.children(NS)] == ["MyNamespace$MyTable"]
    with meta.transaction() as txn:
        txn.delete(TABLE)
    assert meta.begin().find(alias) is None


def test_every_kind_of_object_is_kept(meta, open_one):
    version = TABLE.child("1")
    stream = version.child("s-1", "deltacat")
    partition = stream.child("p-1", "2024")
    delta = Delta(
        stream_position=1,
        type=DeltaType.UPSERT,
        manifest=Manifest(files=(DataFile(path="data/a.parquet", rows=3, maximum={"n": 7}),)),
    )
    with meta.transaction(message="first rows") as txn:
        txn.create(version, TableVersion(version="1", schema=b"ipc"))
        txn.create(stream, Stream(stream_id="s-1", state=CommitState.COMMITTED))
        txn.create(partition, Partition(partition_id="p-1", values=("2024",)))
        txn.create(partition.child("1"), delta)
    txn = open_one("ben").begin()
    assert txn.get(partition.child("1")).value == delta
    assert txn.get(stream).value.state is CommitState.COMMITTED
    assert [found.id for found in txn.children(partition)] == ["1"]


@pytest.mark.parametrize(
    ("locator", "value"),
    [
        (TABLE.child("1"), TableVersion()),
        (TABLE.child("1").child("s"), Stream()),
        (TABLE.child("1").child("s").child("p"), Partition()),
        (TABLE.child("1").child("s").child("p").child("1"), Delta()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_object_that_must_bring_its_id_and_does_not_is_refused(meta, locator, value):
    with meta.transaction() as txn:
        txn.create(TABLE.child("1"), TableVersion(version="1")) if locator.kind.level > 3 else None
        if locator.kind.level > 4:
            txn.create(TABLE.child("1").child("s"), Stream(stream_id="s"))
        if locator.kind.level > 5:
            txn.create(TABLE.child("1").child("s").child("p"), Partition(partition_id="p"))
        with pytest.raises(InvalidInputError, match="an id of its own"):
            txn.create(locator, value)


# -- one state, all or nothing ---------------------------------------------------------------------


def test_nothing_is_seen_before_the_commit_and_all_of_it_after(meta, open_one):
    other = open_one("ben")
    txn = meta.begin()
    txn.create(Locator.of("Second"), Namespace())
    assert txn.find(Locator.of("Second"))
    assert [str(found.locator) for found in other.begin().children(ROOT)] == ["MyNamespace"]
    reader = other.begin()
    txn.commit()
    assert reader.find(Locator.of("Second")) is None
    assert other.begin().find(Locator.of("Second"))


def test_block_that_raises_changes_nothing(meta, root):
    before = _files(root)

    def fail() -> None:
        with meta.transaction() as txn:
            txn.create(Locator.of("Second"), Namespace())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _files(root) == before


def test_two_that_change_one_object_do_not_both_win(meta, open_one, root):
    first, second = meta.begin(), open_one("ben").begin()
    first.update(NS, Namespace(properties={"n": "1"}))
    second.update(NS, Namespace(properties={"n": "2"}))
    first.commit()
    before = _files(root)
    with pytest.raises(ConcurrentModificationError, match="ada's commit"):
        second.commit()
    assert _files(root) == before
    assert meta.begin().get(NS).value.properties == {"n": "1"}


def test_write_skew_is_caught(meta, open_one):
    """Each reads both and changes one: in no order would both see what they saw."""
    other = Locator.of("Second")
    with meta.transaction() as txn:
        txn.create(other, Namespace(properties={"on": "yes"}))
        txn.update(NS, Namespace(properties={"on": "yes"}))
    first, second = meta.begin(), open_one("ben").begin()
    for txn, mine, yours in ((first, NS, other), (second, other, NS)):
        assert txn.get(yours).value.properties == {"on": "yes"}
        txn.update(mine, Namespace(properties={"on": "no"}))
    first.commit()
    with pytest.raises(ConcurrentModificationError):
        second.commit()


def test_phantoms_are_caught(meta, open_one):
    """Whoever lists and acts on it does not miss what came meanwhile."""
    first, second = meta.begin(), open_one("ben").begin()
    count = len(first.children(NS))
    first.update(NS, Namespace(properties={"tables": str(count)}))
    second.create(Locator.of("MyNamespace", "Late"), Table())
    second.commit()
    with pytest.raises(ConcurrentModificationError):
        first.commit()


def test_two_creations_under_one_parent_do_not_conflict(meta, open_one):
    first, second = meta.begin(), open_one("ben").begin()
    first.create(Locator.of("MyNamespace", "a"), Table())
    second.create(Locator.of("MyNamespace", "b"), Table())
    first.commit()
    second.commit()
    names = [found.locator.parts[0] for found in meta.begin().children(NS)]
    assert names == ["MyTable", "a", "b"]


def test_one_name_is_given_once(meta, open_one):
    first, second = meta.begin(), open_one("ben").begin()
    new = Locator.of("MyNamespace", "a")
    first.create(new, Table())
    second.create(new, Table())
    first.commit()
    with pytest.raises(ConcurrentModificationError):
        second.commit()
    with pytest.raises(ConflictError, match="already"), meta.transaction() as txn:
        txn.create(new, Table())


def test_no_child_comes_under_a_parent_that_is_deleted(meta, open_one):
    with meta.transaction() as txn:
        txn.delete(TABLE)
    first, second = meta.begin(), open_one("ben").begin()
    first.delete(NS)
    second.create(Locator.of("MyNamespace", "late"), Table())
    first.commit()
    with pytest.raises(ConcurrentModificationError):
        second.commit()
    first, second = meta.begin(), open_one("ben").begin()
    first.create(NS, Namespace())
    first.commit()


def test_deletion_is_restricted_or_takes_all_along(meta):
    with pytest.raises(NamespaceNotEmptyError), meta.transaction() as txn:
        txn.delete(NS)
    with meta.transaction() as txn:
        txn.create(TABLE.child("1"), TableVersion(version="1"))
    with pytest.raises(InvalidTableStateError), meta.transaction() as txn:
        txn.delete(TABLE)
    with meta.transaction() as txn:
        txn.delete(NS, cascade=True)
    txn = meta.begin()
    assert txn.children(ROOT) == []
    with pytest.raises(NotFoundError):
        txn.get(TABLE)


def test_older_state_is_read(meta):
    seq = meta.chain.refresh()
    with meta.transaction() as txn:
        txn.update(NS, Namespace(properties={"owner": "ben"}))
    older = meta.begin(at=seq)
    assert older.get(NS).value.properties == {"owner": "ada"}
    with pytest.raises(InvalidInputError, match="only reads"):
        older.delete(TABLE)
    with pytest.raises(InvalidInputError, match="no state"):
        meta.begin(at=99)


def test_work_is_done_again_where_somebody_was_first(meta, open_one):
    """Counters of several threads, each with a metastore of its own: none is lost."""

    def increment(txn) -> None:
        value = txn.get(NS).value
        count = int(value.properties.get("count", "0")) + 1
        txn.update(NS, Namespace(properties={"count": str(count)}))

    def work(author: str) -> None:
        own = open_one(author)
        for _ in range(10):
            own.run(increment)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meta.begin().get(NS).value.properties == {"count": "40"}


def _make(name: str, txn) -> None:
    txn.create(NS.child(name), Table())


def test_commits_that_wait_together_share_an_entry(meta):
    """Threads of one process: the entries are fewer than the commits, and none is lost."""
    start = meta.chain.refresh()

    def work(number: int) -> None:
        for at in range(10):
            meta.run(partial(_make, f"t{number}-{at}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(meta.begin().children(NS)) == 81
    assert meta.chain.refresh() - start < 80


def test_one_of_those_that_wait_together_loses_where_they_interfere(meta):
    first, second = meta.begin(), meta.begin()
    first.create(NS.child("same"), Table())
    second.create(NS.child("same"), Table())
    requests = [
        Request(txn._record(), frozenset(txn._draft.reads), txn.seq) for txn in (first, second)
    ]
    committer = meta._committer
    committer._line._waiting.append(requests[0])
    with pytest.raises(ConcurrentModificationError, match="ada's commit"):
        committer.commit(requests[1])
    assert requests[0].seq == meta.chain.refresh()
