"""Checkpoints, older states and sweeps of a metastore.

"Opening, reading and committing do not grow with history"; "Sweep".
"""

from __future__ import annotations

import threading

import pytest

from mooring.clock import RandomIds
from mooring.errors import (
    ConcurrentModificationError,
    ServiceUnavailableError,
    TransactionNotFoundError,
    UnknownOutcomeError,
)
from mooring.metastore.layout import CHECKPOINTS_DIR, COMMITS_DIR
from mooring.metastore.locator import ROOT, Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Namespace, Table
from mooring.store import open_store
from mooring.store.local import LocalStore
from mooring.store.observed import ObservedStore
from mooring.store.wrapped import WrappedStore
from tests.lakes import FakeClock

NS = Locator.of("n")
COMMITS = 300


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "meta", durable=False)


@pytest.fixture
def meta(store):
    return Metastore(store, author="ada", clock=FakeClock(), ids=RandomIds())


@pytest.fixture
def long(meta):
    """A metastore of one namespace with a long history."""
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    for number in range(COMMITS):
        with meta.transaction() as txn:
            txn.update(NS, Namespace(properties={"n": str(number)}))
    return meta


def _calls(store, work) -> dict[str, int]:
    seen = ObservedStore(store)
    work(Metastore(seen, author="ben"))
    return dict(seen.counts)


def test_opening_reads_the_newest_checkpoint_and_what_came_after(long, store):
    assert len(store.list_dir(CHECKPOINTS_DIR).files) == COMMITS // 64
    counts = _calls(store, lambda meta: meta.begin().get(NS))
    assert counts["iter_dir"] == 1
    assert sum(counts.values()) <= 64 + 4


def test_opening_reads_what_came_after_from_a_service_some_at_once():
    store = open_store("memory://")
    meta = Metastore(store, author="ada")
    for number in range(60):
        with meta.transaction() as txn:
            txn.create(Locator.of(f"n{number}"), Namespace())
    asked = []

    class Service(WrappedStore):
        def location(self, path):
            return f"s3://bucket/{path}"

        def _around(self, call, run):
            asked.append((call.verb, threading.current_thread() is threading.main_thread()))
            return run()

    other = Metastore(Service(store), author="ben")
    assert len(other.begin().children(ROOT)) == 60
    in_turn = [verb for verb, is_alone in asked if is_alone]
    assert len(in_turn) == 1 + 8  # the checkpoints, and the first entries
    assert len(asked) - len(in_turn) == 4 * 16
    asked.clear()
    assert other.begin().seq == 60
    assert asked == [("get", True)]


def test_reading_again_asks_for_the_next_entry_only(long, store):
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben")
    other.begin()
    seen.counts.clear()
    assert other.begin().get(NS).value.properties == {"n": str(COMMITS - 1)}
    assert seen.counts == {"get": 1}


def test_listing_many_tables_asks_for_nothing_each(meta, store):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
        for number in range(200):
            txn.create(NS.child(f"t{number:03}"), Table())
    counts = _calls(store, lambda other: len(other.begin().children(NS)))
    assert sum(counts.values()) <= 5


def test_state_before_the_checkpoint_is_read(long, store):
    other = Metastore(store, author="ben")
    assert other.begin(at=5).get(NS).value.properties == {"n": "3"}
    assert other.begin(at=0).children(ROOT) == []
    assert other.begin(at=100).get(NS).value.properties == {"n": "98"}


def test_names_and_revisions_are_in_a_checkpoint(meta, store):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
        txn.create(NS.child("a"), Table())
        txn.add_alias(NS.child("a"), "alias")
        txn.create(NS.child("gone"), Table())
    with meta.transaction() as txn:
        txn.rename(NS.child("a"), "b")
        txn.delete(NS.child("gone"))
    meta.chain.checkpoint()
    other = Metastore(store, author="ben")
    txn = other.begin()
    assert other.chain.timeline.begins_at == 2
    assert txn.get(NS.child("alias")).ids == txn.get(NS.child("b")).ids
    assert [str(found.locator) for found in txn.children(NS)] == ["n$b"]
    with other.transaction() as txn:
        txn.rename(NS.child("b"), "a")
    assert meta.begin().get(NS.child("a")).revision == 3


def test_logs_of_transactions_that_died_are_written_before_a_checkpoint(meta, store):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    path = f"txn/{txn.id}"
    body = store.get(path)
    store.delete([path])
    other = Metastore(store, author="ben")
    other.begin()
    other.chain.checkpoint()
    assert store.get(path) == body


def _leave(meta) -> object:
    """Stage a transaction and die."""
    txn = meta.begin()
    txn.create(Locator.of("left"), Namespace())
    txn._stage(txn._record())
    return txn


def test_what_a_dead_transaction_left_is_swept_and_it_can_commit_no_more(meta, store):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    kept = {found.path for found in store.list_prefix("")}
    left = _leave(meta)
    assert len(meta.sweep(older_than_ms=-1, dry_run=True)) == 1
    (swept,) = meta.sweep(older_than_ms=-(10**15))
    assert swept.txn_id == left.id
    assert kept <= {found.path for found in store.list_prefix("")}
    assert not [f for f in store.list_prefix("") if left.id in f.path]
    with pytest.raises(ConcurrentModificationError, match="sweep"):
        left.commit()
    assert meta.begin().find(Locator.of("left")) is None
    assert meta.sweep(older_than_ms=-(10**15)) == []


def test_sweep_leaves_alone_who_wrote_lately_and_who_committed(meta, store):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    left = _leave(meta)
    assert meta.sweep(older_than_ms=10**15) == []
    entries = len(store.list_dir(COMMITS_DIR).files)
    assert entries == 1
    meta.chain.checkpoint()
    other = Metastore(store, author="ben", clock=FakeClock())
    assert [one.txn_id for one in other.sweep(older_than_ms=-(10**15))] == [left.id]
    assert other.begin().get(NS)


def test_sweep_asks_nothing_about_each_transaction(long, store):
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben")
    other.begin()
    seen.counts.clear()
    assert other.sweep(older_than_ms=-(10**15)) == []
    assert seen.counts == {"list_prefix": 1, "get": 1}


def test_transactions_are_listed_and_states_found_by_them_and_by_time(meta, store):
    clock = meta._clock
    for number in range(3):
        with meta.transaction(message=f"number {number}") as txn:
            if number:
                txn.update(NS, Namespace(properties={"n": str(number)}))
            else:
                txn.create(NS, Namespace())
        clock.advance(1000)
    meta.chain.checkpoint()
    other = Metastore(store, author="ben", clock=clock)
    found = list(other.transactions())
    assert [record.message for _, record in found] == ["number 2", "number 1", "number 0"]
    assert [seq for seq, _ in other.transactions(2)] == [3, 2]
    first = found[2][1]
    assert other.find_transaction(first.txn_id) == (1, first)
    assert first.by == "ada"
    assert [change.operation for change in first.changes] == ["create"]
    assert other.state_at(txn_id=found[1][1].txn_id) == 2
    assert other.state_at(time_ms=found[1][1].end_ms) == 2
    assert other.state_at(time_ms=0) == 0
    assert other.begin(at=2).get(NS).value.properties == {"n": "1"}
    with pytest.raises(TransactionNotFoundError, match="'absent'"):
        other.find_transaction("absent")


# -- processes that live long ----------------------------------------------------------------------


@pytest.fixture
def forgetful(monkeypatch):
    """Processes keep few entries."""
    monkeypatch.setattr("mooring.metastore.chain._KEPT", 4)


def _count_up(meta, times: int) -> None:
    for _ in range(times):
        with meta.transaction() as txn:
            known = int(txn.get(NS).value.properties.get("n", "0"))
            txn.update(NS, Namespace(properties={"n": str(known + 1)}))


def test_process_keeps_few_entries_and_states_however_long_it_lives(meta, store, forgetful):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    reader = Metastore(store, author="ben")
    for _ in range(50):
        _count_up(meta, 1)
        reader.begin()
    for chain in (meta.chain, reader.chain):
        assert len(chain._entries) <= 4
        assert chain.timeline.seq - chain.timeline.begins_at <= 4
    assert reader.begin().get(NS).value.properties == {"n": "50"}
    assert meta.begin(at=7).get(NS).value.properties == {"n": "6"}


def test_long_transaction_reads_its_own_state_and_is_checked_against_all_since(
    meta, store, forgetful
):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
        txn.create(Locator.of("other"), Namespace())
    apart, against = meta.begin(), meta.begin()
    _count_up(meta, 20)
    assert apart.get(Locator.of("other")).revision == 1
    assert against.get(NS).value.properties == {}
    apart.update(Locator.of("other"), Namespace(properties={"late": "yes"}))
    assert apart.commit() == 22
    against.update(Locator.of("other"), Namespace())
    with pytest.raises(ConcurrentModificationError):
        against.commit()


def test_process_that_forgot_knows_who_committed_without_a_log(meta, store, forgetful):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    store.delete([f"txn/{txn.id}"])
    _count_up(meta, 20)
    assert meta.chain.timeline.begins_at > 1
    assert meta.chain.is_committed(txn.id)
    assert meta.sweep(older_than_ms=-(10**15)) == []
    assert meta.find_transaction(txn.id)[0] == 1


def test_process_that_forgot_remembers_only_what_no_checkpoint_covers(meta, store, forgetful):
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    first = txn.id
    other = Metastore(store, author="ben")
    _count_up(meta, 20)
    other.begin()
    assert other.chain.timeline.committed_at(first) == 1
    meta.chain.checkpoint()
    _count_up(meta, 5)
    other.begin()
    assert other.chain.timeline.committed_at(first) is None
    assert other.chain.is_committed(first)


def test_history_is_whole_after_a_checkpoint(long, store):
    other = Metastore(store, author="ben")
    history = other.begin().history(NS)
    assert [seq for seq, _ in history] == list(range(1, COMMITS + 2))
    assert [change.revision for _, change in history] == list(range(1, COMMITS + 2))
    assert history[0][1].operation == "create"
    assert [seq for seq, _ in other.begin(at=3).history(NS)] == [1, 2, 3]


def test_history_ends_where_the_object_begins(long, store):
    with long.transaction() as txn:
        txn.create(Locator.of("late"), Namespace())
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben")
    other.begin()
    seen.counts.clear()
    assert len(other.begin().history(Locator.of("late"))) == 1
    assert seen.total == 1


def test_transaction_that_is_known_is_not_searched_for(long, store):
    newest, record = next(iter(long.transactions()))
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben")
    other.begin()
    seen.counts.clear()
    assert other.find_transaction(record.txn_id) == (newest, record)
    assert seen.total == 1


# -- after a power cut, which takes what is derived and leaves what was decided --------------------


def test_damaged_checkpoint_is_passed_over(long, store):
    checkpoints = [meta.path for meta in store.iter_dir(CHECKPOINTS_DIR)]
    store.put(checkpoints[0], b"")
    other = Metastore(store, author="ben")
    assert other.begin().get(NS).value.properties == {"n": str(COMMITS - 1)}
    assert other.chain.timeline.begins_at == 3 * 64
    for path in checkpoints:
        store.put(path, b"\x00")
    other = Metastore(store, author="ben")
    assert other.begin().get(NS).value.properties == {"n": str(COMMITS - 1)}
    assert other.chain.timeline.begins_at == 0


def test_sweep_leaves_alone_who_committed_though_the_log_is_lost(long, store):
    left = _leave(long)
    lost = [record.txn_id for _, record in long.transactions()][-3:]
    store.delete(f"txn/{txn_id}" for txn_id in lost)
    other = Metastore(store, author="ben")
    assert [one.txn_id for one in other.sweep(older_than_ms=-(10**15))] == [left.id]
    assert other.find_transaction(lost[-1])[0] == 1


def test_newest_transactions_are_read_from_what_is_known(long, store):
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben")
    other.begin()
    seen.counts.clear()
    assert len(list(other.transactions(10))) == 10
    assert seen.total == 1


def test_unknown_outcome_of_a_store_that_stays_silent_deletes_nothing(meta, store, monkeypatch):
    """A commit that may have happened keeps its files, also where looking for it fails."""
    monkeypatch.setattr("mooring.store.numbered.pause", lambda _: None)
    with meta.transaction() as txn:
        txn.create(NS, Namespace())
    silent = _SilentStore(store)
    other = Metastore(silent, author="ben")
    txn = other.begin()
    txn.update(NS, Namespace(properties={"n": "1"}))
    with pytest.raises(UnknownOutcomeError):
        txn.commit()
    assert meta.begin().get(NS).value.properties == {"n": "1"}
    assert [found for found in store.list_prefix("") if txn.id in found.path]


class _SilentStore(WrappedStore):
    """Commits, and says nothing ever after."""

    silent = False

    def _around(self, call, run):
        if self.silent and call.verb != "delete":
            raise ServiceUnavailableError("silence")
        if call.verb != "put_new":
            return run()
        run()
        self.silent = True
        raise UnknownOutcomeError("silence")
