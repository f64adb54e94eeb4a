"""Retention: what is forgotten, what stays readable, and when files go."""

from __future__ import annotations

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.changed_rows import is_replaced
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.tidying import tidy, tidy_all
from mooring.errors import InvalidInputError
from mooring.metastore.metastore import Metastore
from tests.changes.model import canonical
from tests.lakes import FakeClock

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
ALL = CompactionPolicy(force=True)
HOUR_MS = 3_600_000


@pytest.fixture
def clock(lake):
    """A clock that the metastore goes by."""
    found = FakeClock()
    lake.metastore._clock = found
    return found


@pytest.fixture
def table(lake):
    return create_change_table(
        lake, "shop$t", SCHEMA, keys=["id", "part"], partition_by=["part"], buckets=2
    )


def _fill(table, count, start=0, run=None):
    for number in range(start, start + count):
        rows = [{"id": n % 7, "part": "ab"[n % 2], "v": number} for n in range(number, number + 5)]
        table.upsert(rows, run=run and f"{run}{number}")


def _states(table, positions):
    return {one: canonical(table.to_arrow(position=one).to_pylist()) for one in positions}


def test_without_a_base_everything_stays(table):
    _fill(table, 4)
    assert tidy(table, keep=4).is_empty
    assert table.at(1).position == 1


def test_what_a_base_holds_goes_and_newer_positions_stay(table):
    _fill(table, 4)
    table.compact(ALL)
    _fill(table, 3, start=4)
    want = _states(table, range(4, 8))
    told = tidy(table, keep=5, dry_run=True)
    assert table.at(1).position == 1
    assert tidy(table, keep=5) == told
    assert (told.deltas, told.rounds, told.horizon) == (8, 0, 4)
    assert _states(table, range(4, 8)) == want
    assert _states(ChangeTable(table.catalog, table.id), range(4, 8)) == want
    with pytest.raises(InvalidInputError, match="what was before 4 is tidied away"):
        table.at(3)
    assert tidy(table, keep=5).is_empty


def test_another_process_reads_the_same_after_a_tidy(table, tmp_path):
    _fill(table, 4)
    table.compact(ALL)
    other = ChangeTable(mooring.connect(f"metastore+{tmp_path / 'lake'}"), table.id)
    want = _states(other, [4])
    _fill(table, 1, start=4)
    tidy(table, keep=4)
    assert _states(other, [4]) == want
    assert other.position == 5


def test_rounds_that_others_followed_go(table):
    for start in range(0, 9, 3):
        _fill(table, 3, start=start)
        table.compact(ALL)
    want = _states(table, range(6, 10))
    told = tidy(table, keep=6)
    assert (told.rounds, told.horizon) == (2, 6)
    assert _states(table, range(6, 10)) == want
    assert {one.through for one in table.rounds()} == {6, 9}


def test_replacements_stay_as_long_as_they_are_needed(table):
    _fill(table, 3)
    table.truncate([("a",)])
    _fill(table, 2, start=3)
    want = _states(table, range(4, 7))
    told = tidy(table, keep=4)
    assert told.horizon == 4
    assert _states(table, range(4, 7)) == want
    # Nothing of b is in a base.
    assert {tuple(log.values): len(log.deltas) for log in table.at().partitions.values()} == {
        ("a",): 2,
        ("b",): 5,
    }


def test_positions_within_the_grace_stay_and_files_go_after_it(table, clock, tmp_path):
    _fill(table, 3)
    table.compact(ALL)
    clock.advance(2 * HOUR_MS)
    _fill(table, 2, start=3)
    assert tidy(table, older_than_ms=3 * HOUR_MS, dry_run=True).is_empty
    (told,) = tidy_all(table.catalog, older_than_ms=HOUR_MS)
    assert (told.horizon, told.deltas) == (3, 6)
    want = _states(table, [3, 4, 5])
    assert table.catalog.metastore.vacuum(older_than_ms=HOUR_MS) == []
    before = _count(tmp_path)
    clock.advance(10 * 365 * 24 * HOUR_MS)  # files have the time of the disk
    gone = table.catalog.metastore.vacuum(older_than_ms=HOUR_MS)
    assert len(gone) == told.files == 6
    assert before - _count(tmp_path) == 6
    assert _states(table, [3, 4, 5]) == want


def _count(tmp_path):
    return sum(1 for path in (tmp_path / "lake" / "_data").rglob("*.parquet"))


def test_notes_of_old_runs_go(table, clock):
    _fill(table, 2, run="old")
    clock.advance(2 * HOUR_MS)
    _fill(table, 1, start=2, run="new")
    assert tidy(table, keep=0, runs_older_than_ms=None).runs == 0
    assert tidy(table, keep=0, runs_older_than_ms=HOUR_MS).runs == 2
    position = table.position
    _fill(table, 1, start=2, run="new")
    assert table.position == position
    _fill(table, 1, run="old")
    assert table.position == position + 1


def test_who_reads_columns_that_were_dropped_since_still_can(table):
    _fill(table, 3)
    before = table.catalog.metastore.transactions(1)
    txn_id = next(iter(before))[1].txn_id
    want = canonical(table.to_arrow(txn_id=txn_id).to_pylist())
    table.drop_columns(["v"])
    table.compact(ALL)
    assert tidy(table, keep=3).is_empty
    assert canonical(table.to_arrow(txn_id=txn_id).to_pylist()) == want


def test_a_writer_meanwhile_is_not_in_the_way(table, monkeypatch):
    _fill(table, 3)
    table.compact(ALL)
    run, begun = Metastore.run, []

    def once(metastore, work, **options):
        def also(txn):
            found = work(txn)
            if not begun:
                begun.append(txn.id)
                table.upsert([{"id": 1, "part": "a", "v": 99}])
            return found

        return run(metastore, also if options["message"].startswith("tidy") else work, **options)

    monkeypatch.setattr(Metastore, "run", once)
    attempts = []
    monkeypatch.setattr("mooring.metastore.metastore.pause", attempts.append)
    assert tidy(table, keep=3).deltas == 6
    assert attempts == []
    assert table.position == 4
    assert table.count("v = 99") == 1


def test_neither_or_both_is_refused(table):
    for options in ({}, {"keep": 1, "older_than_ms": 2}):
        with pytest.raises(InvalidInputError, match="say which positions to keep"):
            tidy(table, **options)


def test_who_follows_changes_hears_of_a_replacement_that_a_round_took_in(table):
    table.upsert([{"id": 1, "part": "a", "v": 1}])
    table.replace([{"id": 2, "part": "b", "v": 2}], only_touched=True)
    table.compact(ALL)
    tidy(table, keep=2)
    moment = table.at()
    assert is_replaced(moment, 1) or moment.table.horizon == 2


def test_horizon_is_that_of_the_changes_which_are_known(table, monkeypatch):
    """A reader began before a tidy that the log of its process has seen already."""
    _fill(table, 3)
    table.compact(ALL)
    view = table.catalog.metastore.begin()
    tidy(table, keep=3)
    assert table.at().table.horizon == 3
    monkeypatch.setattr(Metastore, "begin", lambda *_, **__: view)
    assert table.at().table.horizon == 3
