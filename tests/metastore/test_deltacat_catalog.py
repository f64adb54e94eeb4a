"""A catalog of deltacat read, written into and adopted, with files as its library leaves them.

The library itself takes part in `tests/interop/test_deltacat.py`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest

from mooring.errors import (
    CatalogFormatError,
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    ProtectedError,
    TransactionNotFoundError,
)
from mooring.metastore.deltacat.adoption import adopt
from mooring.metastore.locator import ROOT, Kind, Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import (
    CommitState,
    DataFile,
    Delta,
    Manifest,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
)
from mooring.metastore.recognition import Layout, create_metastore, open_metastore, recognise
from mooring.store import open_store
from tests.metastore.deltacat_files import NO_SCHEME, START_NS, Peer, files, namespace, table

HOUR_NS = 3600 * 10**9
STREAM, PARTITION, SECOND = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "123")
VERSION = Locator.of("sales", "orders", "1")
PARTED = VERSION.child(STREAM).child(PARTITION)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "catalog"


@pytest.fixture
def peer(root):
    return Peer(root)


@pytest.fixture
def open_one(root):
    def open_one(*, beside_others: bool = False, author: str = "ada") -> Metastore:
        return open_metastore(open_store(root), author=author, beside_others=beside_others)

    return open_one


@pytest.fixture
def ours(root):
    """A catalog of ours in deltacat's layout, with one of everything."""
    found = create_metastore(open_store(root), author="ada", layout=Layout.DELTACAT)
    with found.transaction(message="all") as txn:
        txn.create(Locator.of("sales"), Namespace(properties={"owner": "ada"}))
        txn.create(Locator.of("sales", "orders"), Table(description="d"))
        txn.create(VERSION, TableVersion(version="1"))
        txn.create(VERSION.child(STREAM), Stream(stream_id=STREAM, state=CommitState.COMMITTED))
        txn.create(PARTED, Partition(partition_id=PARTITION, state=CommitState.COMMITTED))
        file = DataFile(path="data/a.parquet", rows=2, size_bytes=9, nulls={"id": 1})
        delta = Delta(stream_position=1, manifest=Manifest(files=(file,)))
        txn.create(PARTED.child("1"), delta)
    return found


def names(meta: Metastore, *above: str) -> list[str]:
    return [one.locator.parts[0] for one in meta.begin().children(Locator.of(*above))]


def digest(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()  # noqa: S324  # as the layout has it


class Counting:
    """A store that counts what it is asked, and where it is listed."""

    def __init__(self, store) -> None:
        self._store = store
        self.calls = Counter()
        self.listed = []
        self.first_at = {}

    def __getattr__(self, verb):
        found = getattr(self._store, verb)
        if not callable(found):
            return found

        def counted(*args, **kwargs):
            self.first_at.pop(verb, lambda: None)()
            self.calls[verb] += 1
            if verb.startswith("list"):
                self.listed.append((verb, args[0]))
            return found(*args, **kwargs)

        return counted


# -- what a root is ------------------------------------------------------------------------------


def test_an_empty_root_is_recognised(root):
    assert recognise(open_store(root)) is Layout.EMPTY


def test_a_catalog_of_the_document_is_recognised(root, open_one):
    Metastore(open_store(root), author="ada").run(
        lambda txn: txn.create(Locator.of("a"), Namespace())
    )
    assert recognise(open_store(root)) is Layout.DOCUMENT
    assert open_one().dialect.name == "document"


def test_a_catalog_that_deltacat_wrote_is_recognised_with_a_chain_and_without(root, peer, open_one):
    peer.make_namespace("sales")
    assert recognise(open_store(root)) is Layout.DELTACAT
    open_one().adopt_commits()
    assert recognise(open_store(root)) is Layout.DELTACAT


def test_a_catalog_is_recognised_before_its_first_log(root):
    store = open_store(root)
    create_metastore(store, author="ada", layout=Layout.DELTACAT)
    assert recognise(store) is Layout.DELTACAT
    with pytest.raises(ConflictError, match="of layout deltacat already"):
        create_metastore(store, author="ada")
    create_metastore(store, author="bob", layout=Layout.DELTACAT)
    assert files(root) == {"txn/_dialect"}


def test_a_layout_of_the_future_is_refused(root, peer):
    peer.write("txn/_dialect", b"other")
    with pytest.raises(CatalogFormatError, match="'other'"):
        recognise(open_store(root))


def test_a_metastore_is_not_made_with_no_layout(root):
    with pytest.raises(InvalidInputError, match="document or deltacat"):
        create_metastore(open_store(root), author="ada", layout=Layout.EMPTY)


# -- reading -------------------------------------------------------------------------------------


def test_names_values_and_history_are_read_and_nothing_is_written(root, peer, open_one):
    sales = peer.make_namespace("sales", message="the first")
    orders = peer.make_table(sales, "orders")
    work = peer.begin()
    work.revise((sales, orders), "update", table(orders, "purchases", sales, "better"))
    work.map((sales, orders), "delete", "orders")
    work.map((sales, orders), "create", "purchases")
    work.commit(message="a better name")
    gone = peer.make_namespace("gone")
    work = peer.begin()
    work.revise((gone,), "delete", namespace(gone, "gone"))
    work.map((gone,), "delete", "gone")
    work.commit()
    before = files(root)
    meta = open_one()
    assert names(meta) == ["sales"]
    assert names(meta, "sales") == ["purchases"]
    txn = meta.begin()
    found = txn.get(Locator.of("sales", "purchases"))
    assert (found.ids, found.revision) == ((sales, orders), 2)
    assert found.value.description == "better"
    assert [change.revision for _, change in txn.history(found.locator)] == [1, 2]
    assert txn.find(Locator.of("sales", "orders")) is None
    messages = [record.message for _, record in meta.transactions()]
    assert messages == [None, None, "a better name", None, "the first"]
    assert {record.by for _, record in meta.transactions()} == {"deltacat"}
    assert files(root) == before


def test_an_older_state_is_read_by_transaction_and_by_time(peer, open_one):
    sales = peer.make_namespace("sales")
    peer.make_table(sales, "orders")
    work = peer.begin()
    work.map((sales,), "delete", "sales")
    work.revise((sales,), "update", namespace(sales, "trade"))
    work.map((sales,), "create", "trade")
    renamed = work.commit()
    peer.make_namespace("later")
    meta = open_one()
    seq = meta.state_at(txn_id=renamed)
    assert [str(one.locator) for one in meta.begin(at=seq).children(ROOT)] == ["trade"]
    assert [str(one.locator) for one in meta.begin(at=seq - 1).children(ROOT)] == ["sales"]
    record = meta.find_transaction(renamed)[1]
    assert meta.state_at(time_ms=record.end_ms) == seq
    assert meta.state_at(time_ms=record.end_ms - 1) == seq - 1
    with pytest.raises(TransactionNotFoundError):
        meta.find_transaction("no-such-transaction")


def test_what_is_not_committed_is_not_seen(peer, open_one):
    sales = peer.make_namespace("sales")
    work = peer.begin()
    work.hold()
    work.revise((sales,), "update", namespace(sales, "trade"))
    work.map((sales,), "create", "trade")
    assert names(open_one()) == ["sales"]


@pytest.mark.parametrize("log", ["empty", "flat"])
def test_logs_that_are_empty_or_from_before_commit_as_well(peer, open_one, log):
    sales = peer.make_namespace("sales", log=log)
    peer.make_table(sales, "orders", log=log)
    assert names(open_one(), "sales") == ["orders"]


def test_of_two_revisions_with_one_number_the_later_name_counts(peer, open_one):
    sales = peer.make_namespace("sales")
    first, second = peer.begin(), peer.begin()
    second.revise((sales,), "update", namespace(sales, "sales", {"by": "second"}), number=2)
    first.revise((sales,), "update", namespace(sales, "sales", {"by": "first"}), number=2)
    second.commit()
    first.commit()
    value = open_one().begin().get(Locator.of("sales")).value
    assert value.properties == {"by": "second"}


def test_reading_takes_a_handful_of_listings_however_many_objects_there_are(root, peer):
    sales = peer.make_namespace("sales")
    for number in range(30):
        peer.make_table(sales, f"t{number:02}")
    store = Counting(open_store(root))
    meta = open_metastore(store, author="ada")
    assert len(names(meta, "sales")) == 30
    opened = dict(store.calls)
    assert opened["list_dir"] + opened["list_prefix"] <= 5
    assert opened["get"] <= 2 * 31 + 2
    store.calls.clear()
    store.listed.clear()
    assert len(names(meta, "sales")) == 30
    assert store.calls["get"] <= 2
    assert len(store.listed) <= 8
    assert ("list_prefix", "txn/success") not in store.listed


def test_later_commits_are_found_in_the_last_minutes(root, peer):
    sales = peer.make_namespace("sales")
    peer.now_ns += 30 * HOUR_NS
    peer.make_table(sales, "early")
    store = Counting(open_store(root))
    meta = open_metastore(store, author="ada")
    assert names(meta, "sales") == ["early"]
    store.listed.clear()
    peer.now_ns += 40 * HOUR_NS
    peer.make_table(sales, "late")
    assert names(meta, "sales") == ["early", "late"]
    assert ("list_prefix", "txn/success") not in store.listed
    assert not [path for _, path in store.listed if "/11/15" in path], "the first day is over"


def test_a_transaction_that_ran_for_hours_is_seen_when_it_ends(peer, open_one):
    sales = peer.make_namespace("sales")
    long = peer.begin()
    long.hold()
    long.revise((sales,), "update", namespace(sales, "sales", {"ran": "long"}))
    peer.now_ns += 5 * HOUR_NS
    peer.make_table(sales, "orders")
    meta = open_one()
    assert names(meta, "sales") == ["orders"]
    long.commit()
    assert meta.begin().get(Locator.of("sales")).value.properties == {"ran": "long"}


# -- writing beside it ---------------------------------------------------------------------------


def test_writing_is_refused_until_commits_are_adopted(root, peer, open_one):
    peer.make_namespace("sales")
    store = Counting(open_store(root))
    meta = open_metastore(store, author="ada")
    before = files(root)
    with pytest.raises(ProtectedError, match="1 commits of deltacat are not adopted"):
        meta.run(lambda txn: txn.create(Locator.of("a"), Namespace()))
    assert (files(root), store.calls["put"]) == (before, 0)
    assert meta.adopt_commits() == 1
    assert meta.adopt_commits() == 0
    meta.run(lambda txn: txn.create(Locator.of("a"), Namespace()))
    peer.make_namespace("more")
    with pytest.raises(ProtectedError, match="beside_others=True"):
        meta.run(lambda txn: txn.create(Locator.of("b"), Namespace()))
    open_one(beside_others=True).run(lambda txn: txn.create(Locator.of("b"), Namespace()))
    assert names(meta) == ["a", "b", "more", "sales"]


def test_writing_is_refused_while_deltacat_writes(peer, open_one):
    peer.make_namespace("sales")
    meta = open_one()
    meta.adopt_commits()
    work = peer.begin()
    work.hold()
    with pytest.raises(ProtectedError, match=f"running \\({work.txn_id}\\)"):
        meta.run(lambda txn: txn.create(Locator.of("a"), Namespace()))


def test_a_commit_of_deltacat_interferes_with_a_transaction_that_read_before(peer, open_one):
    sales = peer.make_namespace("sales")
    meta = open_one(beside_others=True)
    txn = meta.begin()
    txn.update(Locator.of("sales"), Namespace(properties={"by": "ours"}))
    work = peer.begin()
    work.revise((sales,), "update", namespace(sales, "sales", {"by": "theirs"}))
    work.commit()
    with pytest.raises(ConcurrentModificationError, match="deltacat's commit"):
        txn.commit()
    assert meta.begin().get(Locator.of("sales")).value.properties == {"by": "theirs"}


def test_whoever_adopted_in_another_order_is_followed(root, peer, open_one):
    peer.make_namespace("first", end_ns=START_NS + 9 * HOUR_NS)
    reader = open_one()
    assert names(reader) == ["first"]
    before = reader.begin()
    # Its log comes late, with an earlier time: others sort it before.
    peer.make_namespace("second", end_ns=START_NS + HOUR_NS)
    other = open_one(beside_others=True)
    other.run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    assert names(reader) == ["first", "ours", "second"]
    assert [str(one.locator) for one in before.children(ROOT)] == ["first"]
    orders = [[r.txn_id for _, r in one.transactions()] for one in (reader, other, open_one())]
    assert orders[0] == orders[1] == orders[2]


def test_a_transaction_from_before_another_order_is_checked_against_everything(peer, open_one):
    first = peer.make_namespace("first")
    open_one().adopt_commits()
    peer.make_namespace("second", end_ns=START_NS + 9 * HOUR_NS)
    late = open_one(beside_others=True)
    txn = late.begin()
    txn.update(Locator.of("first"), Namespace(properties={"by": "late"}))
    # Its log comes late, with an earlier time: in the chain it has a number that was looked at.
    work = peer.begin()
    work.revise((first,), "update", namespace(first, "first", {"by": "theirs"}))
    work.commit(end_ns=START_NS + HOUR_NS)
    open_one(beside_others=True).run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    with pytest.raises(ConcurrentModificationError):
        txn.commit()


def test_two_of_ours_are_nobody_else_to_each_other(root, ours, open_one):
    other = open_one(author="bob")
    other.begin()
    ours.run(lambda txn: txn.create(Locator.of("a"), Namespace()))
    other.run(lambda txn: txn.create(Locator.of("b"), Namespace()))
    ours.run(lambda txn: txn.create(Locator.of("c"), Namespace()))
    assert names(other) == ["a", "b", "c", "sales"]
    assert {record.by for _, record in other.transactions()} == {"ada", "bob"}
    assert len(list(root.glob("txn/_commits/*"))) == 4


def test_one_of_ours_that_commits_while_another_looks_is_nobody_else(root, ours, open_one):
    store = Counting(open_store(root))
    other = open_metastore(store, author="bob")
    txn = other.begin()
    txn.create(Locator.of("b"), Namespace())
    store.first_at["list_dir"] = lambda: ours.run(
        lambda txn: txn.create(Locator.of("a"), Namespace())
    )
    txn.commit()
    assert not store.first_at
    assert names(open_one()) == ["a", "b", "sales"]


def test_no_checkpoint_holds_what_the_chain_does_not(root, ours, peer):
    peer.make_namespace("theirs")
    assert names(ours) == ["sales", "theirs"]
    ours.chain.checkpoint()
    assert not list(root.glob("txn/_checkpoints/*"))


def test_adopted_commits_are_known_behind_a_checkpoint(root, peer, open_one):
    sales = peer.make_namespace("sales")
    running = peer.begin()
    running.hold()
    running.revise((sales,), "update", namespace(sales, "sales", {"ran": "long"}))
    peer.now_ns += 5 * HOUR_NS
    peer.make_table(sales, "orders")
    meta = open_one(beside_others=True)
    meta.run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    logs = {path for path in files(root) if path.startswith("txn/success/")}
    meta.chain.checkpoint()
    assert {path for path in files(root) if path.startswith("txn/success/")} == logs
    again = open_one()
    assert names(again) == ["ours", "sales"]
    assert again.adopt_commits() == 0
    running.commit()
    late = open_one()
    assert late.begin().get(Locator.of("sales")).value.properties == {"ran": "long"}
    assert late.adopt_commits() == 1


def test_a_commit_by_a_clock_that_is_days_behind_is_found_by_looking_everywhere(peer, open_one):
    sales = peer.make_namespace("sales")
    peer.now_ns += 100 * HOUR_NS
    peer.make_table(sales, "orders")
    meta = open_one(beside_others=True)
    meta.run(lambda txn: txn.create(Locator.of("ours"), Namespace()))
    meta.chain.checkpoint()
    peer.now_ns -= 90 * HOUR_NS
    peer.make_table(sales, "behind")
    again = open_one()
    assert names(again, "sales") == ["orders"]
    assert again.adopt_commits() == 0
    assert again.adopt_commits(everywhere=True) == 1
    assert again.adopt_commits(everywhere=True) == 0
    assert names(meta, "sales") == ["behind", "orders"]


def test_a_missing_log_is_written_with_the_next_checkpoint(root, ours):
    (log,) = root.glob("txn/success/*/*/*/*/*/*/*")
    body = log.read_bytes()
    log.unlink()
    ours.chain.checkpoint()
    assert log.read_bytes() == body


# -- what we write -------------------------------------------------------------------------------


def test_the_tree_is_that_of_the_library(root, ours):
    txn = ours.begin()
    ns, orders = txn.get(PARTED.parent.parent.parent).ids
    ((_, record),) = ours.transactions()
    first = f"1000000/1000/{1:020d}_create_{record.txn_id}"
    above = f"{ns}/{orders}/1/{STREAM}"
    minute = "/".join(log_minute(record.start_ms))
    assert files(root) == {
        "txn/_dialect",
        f"txn/_commits/{1:020d}",
        f"txn/success/{minute}/{record.txn_id}/{record.end_ms}000000",
        f"{ns}/rev/{first}.mpk",
        f"{digest('sales')}/{first}.{ns}",
        f"{ns}/{orders}/rev/{first}.mpk",
        f"{ns}/{digest('orders')}/{first}.{orders}",
        f"{ns}/{orders}/1/rev/{first}.mpk",
        f"{above}/rev/{first}.mpk",
        f"{ns}/{orders}/1/{digest('deltacat')}/{first}.{STREAM}",
        f"{above}/{PARTITION}/rev/{first}.mpk",
        f"{above}/{digest(f'None|{NO_SCHEME}')}/{first}.{PARTITION}",
        f"{above}/{PARTITION}/1/rev/{first}.mpk",
    }
    assert int(record.txn_id.partition("_")[0]) == record.start_ms * 10**6


def log_minute(time_ms: int) -> list[str]:
    moment = datetime.fromtimestamp(time_ms / 1000, tz=UTC)
    return moment.strftime("%Y %m %d %H %M").split()


def test_dictionaries_hold_ids_where_names_may_change(root, ours):
    (path,) = root.glob(f"*/*/1/{STREAM}/{PARTITION}/1/rev/*/*/*.mpk")
    found = msgspec.msgpack.decode(path.read_bytes())
    locator = found["deltaLocator"]["partitionLocator"]["streamLocator"]
    assert locator["format"] == "deltacat"
    names_above = locator["tableVersionLocator"]["tableLocator"]
    assert names_above == {"namespaceLocator": {"namespace": "1"}, "tableName": "1"}
    ids = ours.begin().get(PARTED).ids
    assert found["ancestor_ids"] == list(ids)
    (entry,) = found["manifest"]["entries"]
    assert (entry["url"], entry["mooring"]) == ("data/a.parquet", {"nulls": {"id": 1}})
    assert found["meta"]["record_count"] == 2


def test_a_deletion_holds_what_the_object_was(root, ours):
    with ours.transaction() as txn:
        txn.delete(Locator.of("sales", "orders"), cascade=True)
    (path,) = root.glob(f"*/*/1/{STREAM}/{PARTITION}/rev/*/*/*_delete_*.mpk")
    assert msgspec.msgpack.decode(path.read_bytes())["state"] == "deprecated"
    assert len(list(root.glob(f"*/*/1/{STREAM}/*/*/*/*_delete_*.{PARTITION}"))) == 1
    assert len(list(root.glob("**/*_delete_*.mpk"))) == 5


def test_a_rename_of_the_parent_writes_nothing_for_its_children(root, ours):
    with ours.transaction() as txn:
        txn.rename(Locator.of("sales"), "trade")
    ((_, record), _) = ours.transactions()
    assert len([path for path in files(root) if record.txn_id in path]) == 4
    assert names(ours, "trade") == ["orders"]


def test_a_name_that_ends_and_begins_in_one_transaction_ends_up_begun(root, ours):
    with ours.transaction() as txn:
        txn.rename(Locator.of("sales", "orders"), "old")
        new = txn.create(Locator.of("sales", "orders"), Table()).id
    mapped = sorted(path.name for path in root.glob(f"*/{digest('orders')}/*/*/*"))
    assert [name.split("_")[1] for name in mapped] == ["create", "delete", "create"]
    assert [int(name[:20]) for name in mapped] == [1, 2, 3]
    assert mapped[-1].endswith(new)


def test_streams_and_partitions_are_found_by_what_they_are_once_committed(ours):
    txn = ours.begin()
    by_format = VERSION.child("deltacat")
    assert txn.get(by_format).id == STREAM
    assert txn.get(by_format.child("None", NO_SCHEME)).id == PARTITION
    staged = Partition(partition_id=SECOND, values=(1, "a"), scheme_id="s")
    place = VERSION.child(STREAM).child(SECOND)
    txn.create(place, staged)
    alias = place.parent.child("[1, 'a']", "s")
    assert txn.find(alias) is None
    txn.update(place, msgspec.structs.replace(staged, state=CommitState.COMMITTED))
    assert txn.get(alias).id == SECOND
    txn.commit()
    again = ours.begin()
    again.delete(place)
    assert again.find(alias) is None


def test_a_second_committed_partition_with_the_same_values_is_refused(ours):
    txn = ours.begin()
    second = Partition(partition_id=SECOND, state=CommitState.COMMITTED)
    with pytest.raises(ConflictError, match="already"):
        txn.create(VERSION.child(STREAM).child(SECOND), second)
    txn.delete(PARTED, cascade=True)
    txn.create(VERSION.child(STREAM).child(SECOND), second)
    txn.commit()
    found = ours.begin().get(VERSION.child(STREAM).child("None", NO_SCHEME))
    assert found.id == SECOND


@pytest.mark.parametrize("version", ["v1", "01", "1.x", "a-b.1"])
def test_versions_that_its_library_cannot_read_are_refused(ours, version):
    txn = ours.begin()
    place = Locator.of("sales", "orders").child(version)
    with pytest.raises(InvalidInputError, match="table version of a deltacat catalog"):
        txn.create(place, TableVersion(version=version))


def test_sweep_leaves_what_deltacat_still_holds(root, ours, peer, open_one):
    work = peer.begin()
    work.hold()
    work.revise((STREAM,), "create", namespace(STREAM, "late"))
    left = peer.begin()
    left.revise((SECOND,), "create", namespace(SECOND, "never"))
    shared = open_one(beside_others=True)
    (swept,) = shared.sweep(older_than_ms=-60_000)
    assert swept.txn_id == left.txn_id
    assert [path for path in files(root) if work.txn_id in path and "/rev/" in path]
    assert not [path for path in files(root) if left.txn_id in path]


# -- adoption ------------------------------------------------------------------------------------


def test_a_catalog_is_adopted_into_a_new_root(root, ours, open_one, tmp_path):
    with ours.transaction() as txn:
        txn.add_alias(Locator.of("sales", "orders"), "o")
        txn.create(Locator.of("gone"), Namespace())
    with ours.transaction() as txn:
        txn.delete(Locator.of("gone"))
    target = open_store(tmp_path / "adopted")
    before = files(root)
    planned = adopt(open_one(), target, author="eve", dry_run=True)
    assert planned.objects == dict.fromkeys(Kind, 1)
    assert (planned.data_files, planned.data_bytes, planned.seq) == (1, 9, None)
    assert recognise(target) is Layout.EMPTY
    assert adopt(open_one(), target, author="eve").seq == 1
    assert files(root) == before
    adopted, source = open_metastore(target, author="eve").begin(), ours.begin()
    assert adopted.get(PARTED).ids == source.get(PARTED).ids
    assert adopted.get(Locator.of("sales", "o")).value == Table(description="d")
    (file,) = adopted.get(PARTED.child("1")).value.manifest.files
    assert (file.path, file.nulls) == (str(root / "data/a.parquet"), {"id": 1})
    with pytest.raises(ConflictError, match="holds a metastore already"):
        adopt(open_one(), target, author="eve")


def test_an_adoption_that_was_cut_off_is_done_again(ours, tmp_path, monkeypatch):
    target = open_store(tmp_path / "adopted")
    with monkeypatch.context() as patched:
        patched.setattr("mooring.metastore.chain.create_once", _crash)
        with pytest.raises(KeyboardInterrupt):
            adopt(ours, target, author="eve")
    assert recognise(target) is Layout.EMPTY
    assert adopt(ours, target, author="eve").seq == 1
    assert names(open_metastore(target, author="eve")) == ["sales"]


def _crash(*_args) -> None:
    raise KeyboardInterrupt
