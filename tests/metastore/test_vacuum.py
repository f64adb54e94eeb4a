"""Vacuum: data that no object names goes, after a grace period, and nothing else.

"Vacuum of data files that no committed delta references, after a grace period, with a dry
run".
"""

from __future__ import annotations

import time

import pytest

from mooring.clock import RandomIds
from mooring.errors import ConcurrentModificationError
from mooring.metastore.layout import COMMITS_DIR, KEPT_MARKER, data_dir, table_dir
from mooring.metastore.locator import Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import (
    DataFile,
    Delta,
    Manifest,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
)
from mooring.store.local import LocalStore
from mooring.store.observed import ObservedStore
from tests.lakes import FakeClock

VERSION = Locator.of("n", "t", "1")
STREAM = VERSION.child("s", "deltacat")
PARTITION = STREAM.child("p")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
def clock():
    """Runs from now on: files get their times from the system."""
    clock = FakeClock()
    clock.advance(time.time_ns() // 1_000_000 - clock.now_ms())
    return clock


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "meta", durable=False)


@pytest.fixture
def meta(store, clock):
    meta = Metastore(store, author="ada", clock=clock, ids=RandomIds())
    with meta.transaction() as txn:
        txn.create(Locator.of("n"), Namespace())
        txn.create(Locator.of("n", "t"), Table())
        txn.create(VERSION, TableVersion(version="1"))
        txn.create(STREAM, Stream(stream_id="s"))
        txn.create(PARTITION, Partition(partition_id="p"))
    return meta


def _delta(position: int, *paths: str) -> Delta:
    files = tuple(DataFile(path=path) for path in paths)
    return Delta(stream_position=position, manifest=Manifest(files=files))


def _write(meta, position: int, *names: str, extra: tuple[str, ...] = ()) -> list[str]:
    """Append a delta of some files, and leave more of them unnamed."""
    with meta.transaction() as txn:
        paths = [f"{data_dir(txn.id)}/{name}" for name in (*names, *extra)]
        for path in paths:
            meta.store.put(path, b"rows")
        txn.create(PARTITION.child(str(position)), _delta(position, *paths[: len(names)]))
    return paths


def _data(store) -> list[str]:
    return sorted(
        meta.path for meta in store.list_prefix("") if meta.path.startswith(("_data/", "_tables/"))
    )


def test_data_that_is_named_stays_and_the_rest_goes(meta, store, clock):
    named, stray = _write(meta, 1, "a", extra=("b",))
    store.put("_data/left/sub/c", b"rows")
    clock.advance(2 * HOUR_MS)
    told = meta.vacuum(older_than_ms=HOUR_MS, dry_run=True)
    assert [(one.path, one.size_bytes) for one in told] == [(stray, 4), ("_data/left/sub/c", 4)]
    assert all(one.modified_ms < clock.now_ms() - HOUR_MS for one in told)
    assert len(_data(store)) == 3
    assert meta.vacuum(older_than_ms=HOUR_MS) == told
    assert _data(store) == [named]
    assert store.list_dir("_data").directories == [named.split("/")[1]]
    assert meta.vacuum(older_than_ms=HOUR_MS) == []


def test_dry_run_and_nothing_to_do_write_nothing(meta, store, clock):
    clock.advance(2 * HOUR_MS)
    entries = len(store.list_dir(COMMITS_DIR).files)
    assert meta.vacuum(older_than_ms=HOUR_MS) == []
    store.put("_data/left/a", b"rows")
    meta.vacuum(older_than_ms=-DAY_MS, dry_run=True)
    assert len(store.list_dir(COMMITS_DIR).files) == entries
    assert _data(store) == ["_data/left/a"]


def test_grace_period_keeps_all_of_an_id_that_is_written_to(meta, store, clock):
    store.put("_data/left/a", b"rows")
    assert meta.vacuum(older_than_ms=HOUR_MS) == []
    clock.advance(2 * HOUR_MS)
    assert [one.path for one in meta.vacuum(older_than_ms=3 * HOUR_MS)] == []
    assert [one.path for one in meta.vacuum(older_than_ms=HOUR_MS)] == ["_data/left/a"]


def test_data_of_a_deleted_delta_stays_for_those_who_may_read_it(meta, store, clock):
    (path,) = _write(meta, 1, "a")
    clock.advance(DAY_MS)
    before = meta.begin()
    with meta.transaction() as txn:
        txn.delete(PARTITION.child("1"))
    assert meta.vacuum(older_than_ms=HOUR_MS) == []
    assert store.get(before.get(PARTITION.child("1")).value.manifest.files[0].path)
    # Others who know the chain from a checkpoint only find the same.
    meta.chain.checkpoint()
    other = Metastore(store, author="ben", clock=clock)
    assert other.vacuum(older_than_ms=HOUR_MS) == []
    clock.advance(2 * HOUR_MS)
    assert [one.path for one in other.vacuum(older_than_ms=HOUR_MS)] == [path]
    assert _data(store) == []


def test_data_of_a_changed_delta_stays_for_those_who_may_read_it(meta, store, clock):
    (path,) = _write(meta, 1, "a")
    clock.advance(DAY_MS)
    with meta.transaction() as txn:
        txn.update(PARTITION.child("1"), _delta(1))
    with meta.transaction() as txn:
        txn.update(PARTITION.child("1"), _delta(1))
    assert meta.vacuum(older_than_ms=HOUR_MS) == []
    clock.advance(2 * HOUR_MS)
    assert [one.path for one in meta.vacuum(older_than_ms=HOUR_MS)] == [path]


def test_transaction_whose_data_was_given_up_does_not_commit(meta, store, clock):
    store.put("_data/mine/a", b"rows")
    txn = meta.begin()
    txn.depends_on("mine")
    txn.create(PARTITION.child("1"), _delta(1, "_data/mine/a"))
    own = meta.begin()
    store.put(f"{data_dir(own.id)}/a", b"rows")
    own.create(PARTITION.child("2"), _delta(2, f"{data_dir(own.id)}/a"))
    assert len(meta.vacuum(older_than_ms=-DAY_MS)) == 2
    with pytest.raises(ConcurrentModificationError, match="vacuum has given 'mine' up"):
        txn.commit()
    with pytest.raises(ConcurrentModificationError, match="given the transaction up"):
        own.commit()
    assert meta.begin().children(PARTITION) == []


def test_what_was_given_up_before_a_transaction_began_counts_also_after_a_checkpoint(
    meta, store, clock
):
    store.put("_data/mine/a", b"rows")
    meta.vacuum(older_than_ms=-DAY_MS)
    meta.chain.checkpoint()
    other = Metastore(store, author="ben", clock=clock)
    with pytest.raises(ConcurrentModificationError, match="'mine'"):
        other.begin().depends_on("mine")
    with pytest.raises(ConcurrentModificationError, match="'mine'"):
        other.run(lambda txn: txn.depends_on("mine"))


def test_transaction_that_is_committed_stays_so_when_its_id_is_given_up(meta, store, clock):
    named, _ = _write(meta, 1, "a", extra=("b",))
    meta.vacuum(older_than_ms=-DAY_MS)
    assert _data(store) == [named]
    assert meta.sweep(older_than_ms=-DAY_MS) == []
    assert meta.begin().get(PARTITION.child("1"))


def test_lance_tables_that_no_stream_names_go_whole(meta, store, clock):
    for stage_id in ("kept", "left"):
        store.put(f"{table_dir(stage_id)}/data/part.lance", b"rows")
        store.put(f"{table_dir(stage_id)}/_versions/1.manifest", b"v")
    with meta.transaction() as txn:
        txn.depends_on("kept")
        stream = Stream(stream_id="l", format="lance", properties={"location": table_dir("kept")})
        txn.create(VERSION.child("l", "lance"), stream)
    # A table that is dropped, and may come back, is only called something else.
    with meta.transaction() as txn:
        txn.rename(Locator.of("n", "t"), "dropped")
    clock.advance(DAY_MS)
    (found,) = meta.vacuum(older_than_ms=HOUR_MS)
    assert (found.path, found.stage_id, found.size_bytes) == (table_dir("left"), "left", 5)
    assert {path.split("/")[1] for path in _data(store)} == {"kept.lance"}
    with pytest.raises(ConcurrentModificationError, match="'left'"):
        meta.begin().depends_on("left")
    with meta.transaction() as txn:
        txn.delete(Locator.of("n"), cascade=True)
    clock.advance(DAY_MS)
    assert [one.path for one in meta.vacuum(older_than_ms=HOUR_MS)] == [table_dir("kept")]
    assert _data(store) == []


def test_lance_tables_that_were_forgotten_on_purpose_stay(meta, store, clock):
    store.put(f"{table_dir('forgotten')}/data/part.lance", b"rows")
    store.put(f"{table_dir('forgotten')}/{KEPT_MARKER}", b"")
    clock.advance(DAY_MS)
    assert meta.vacuum(older_than_ms=HOUR_MS, dry_run=True) == []
    assert meta.vacuum(older_than_ms=HOUR_MS) == []
    assert len(_data(store)) == 2


def test_data_that_is_named_in_full_is_named(meta, store):
    paths = ["_data/mine/a", "_tables/mine.lance/data/b", "_tables/other.lance/data/c"]
    for path in paths:
        store.put(path, b"rows")
    with meta.transaction() as txn:
        named = [store.location(paths[0]), paths[1]]
        txn.create(PARTITION.child("1"), _delta(1, *named))
        location = {"location": f"{store.location(table_dir('other'))}/"}
        stream = Stream(stream_id="l", format="lance", properties=location)
        txn.create(VERSION.child("l", "lance"), stream)
    assert meta.vacuum(older_than_ms=-DAY_MS) == []


def test_tables_in_unlikely_places_are_named(meta, store):
    for path in ("_data/mine/t.lance/data/a", "_data/mine/b", "_tables/mine.lance/t.lance/data/c"):
        store.put(path, b"rows")
    with meta.transaction() as txn:
        for number, location in enumerate(("_data/mine/t.lance", "_tables/mine.lance/t.lance")):
            stream_id = f"l{number}"
            stream = Stream(stream_id=stream_id, properties={"location": location})
            txn.create(VERSION.child(stream_id, "lance"), stream)
    assert meta.vacuum(older_than_ms=-DAY_MS) == []


def test_files_beside_the_ids_are_left_alone(meta, store):
    for path in ("_data/README", "_tables/README", "_tables/other/part", "data/part"):
        store.put(path, b"x")
    kept = {found.path for found in store.list_prefix("")}
    assert meta.vacuum(older_than_ms=-DAY_MS) == []
    assert {found.path for found in store.list_prefix("")} == kept


def test_vacuum_asks_for_two_listings_however_much_there_is(meta, store, clock):
    for position in range(1, 31):
        _write(meta, position, "a", "b")
    seen = ObservedStore(store)
    other = Metastore(seen, author="ben", clock=clock)
    other.begin()
    seen.counts.clear()
    assert other.vacuum(older_than_ms=-DAY_MS) == []
    assert seen.counts == {"list_prefix": 2, "get": 1}
