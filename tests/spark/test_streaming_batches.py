"""Batches of a stream in a table, without Spark: each counts once, lost ones leave nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from mooring.jobs.streaming import Stream
from mooring.tables.additions import list_additions
from mooring.tables.pending import PendingRun, list_runs
from mooring.tables.runs import RunMark, Runs, list_done, note_runs

# The scheme before the root, how the catalog is opened, and the table.
KINDS = {
    "v1": ("", {"manifest_enabled": False}, "t"),
    "v2": ("", {}, "t"),
    "metastore": ("metastore+", {}, "ns$t"),
}
PLACES = [
    *KINDS,
    *(
        pytest.param(f"{kind}-s3", marks=[pytest.mark.s3, pytest.mark.interop])
        for kind in ("v2", "metastore")
    ),
]
ROUNDS, MANY_ROUNDS = 8, 40
NOTE = "mooring.tables.runs.Runs.end"


class Target:
    """A table of one column, opened anew by each of its writers."""

    def __init__(self, root, kind: str, options: dict[str, str] | None = None) -> None:
        scheme, flags, self.name = KINDS[kind]
        self.open = partial(mooring.connect, f"{scheme}{root}", storage_options=options, **flags)
        catalog = self.open()
        if "$" in self.name:
            catalog.create_namespace("ns")
        catalog.create_table(self.name, numbers())
        self.table = catalog.table(self.name)

    def stream(self, query: str = "q", driver: str | None = None) -> Stream:
        return Stream(self.open().table(self.name).handle, query, driver)

    def values(self) -> list[int]:
        return sorted(self.open().table(self.name).to_arrow()["n"].to_pylist())

    @property
    def place(self):
        return self.table.handle.place

    def data_files(self) -> set[str]:
        above = self.place.path("data")
        return {meta.path for meta in self.place.store.list_prefix(above)}

    def clean(self) -> None:
        self.table.compact(older_than=timedelta(0), keep=1)


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def put(stream: Stream, batch: int, *values: int):
    return stream.commit(batch, [written(stream, *values)])


def written(stream: Stream, *values: int):
    draft = stream.begin()
    return draft.write(numbers(*values).to_reader()) if values else draft.nothing


@pytest.fixture(params=PLACES)
def target(request, tmp_path) -> Target:
    kind, _, store = request.param.partition("-")
    if not store:
        return Target(tmp_path / "lake", kind)
    server = request.getfixturevalue("seaweedfs")
    return Target(server.uri(request.getfixturevalue("prefix")), kind, server.options)


@pytest.fixture
def plain(tmp_path) -> Target:
    return Target(tmp_path / "lake", "v2")


def test_two_drivers_of_one_batch_count_it_once(target):
    race(target, ROUNDS)


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_two_drivers_of_many_batches_count_each_once(tmp_path, kind):
    race(Target(tmp_path / "lake", kind), MANY_ROUNDS)


def test_a_driver_whose_try_its_successor_gave_up_learns_that_the_batch_is_there(
    target, monkeypatch
):
    late = target.stream()
    part = written(late, 1, 2)
    claim = PendingRun.claim

    def claim_too_late(self, *args):
        monkeypatch.setattr(PendingRun, "claim", claim)
        assert put(target.stream(), 0, 1, 2).is_new
        claim(self, *args)

    monkeypatch.setattr(PendingRun, "claim", claim_too_late)
    assert not late.commit(0, [part]).is_new
    assert target.values() == [1, 2]
    assert len(target.data_files()) == 1
    assert not list_runs(target.place)


def race(target: Target, rounds: int) -> None:
    """Have a driver that should be dead, and its successor, commit each batch at once."""

    def repeat(batch: int) -> bool:
        stream = target.stream()
        part = written(stream, 2 * batch, 2 * batch + 1)
        start.wait()
        return stream.commit(batch, [part]).is_new

    for batch in range(rounds):
        start = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(repeat, [batch, batch])) == [False, True]
    assert target.values() == list(range(2 * rounds))
    assert len(target.data_files()) == rounds
    assert not list_runs(target.place)


def test_a_batch_is_recorded_with_its_commit_and_beside_the_table(target):
    landed = put(target.stream(), 0, 1, 2)
    made = target.table.transaction(str(landed.version))
    assert made.properties["mooring.run"] == "q"
    assert made.properties["mooring.batch"] == "0"
    assert [(mark.batch, done.rows) for mark, done in list_done(target.place)] == [(0, 2)]


def test_a_batch_without_rows_makes_no_version_and_is_recorded(target):
    before = target.table.to_lance().version
    assert put(target.stream(), 0).version == before
    assert target.table.to_lance().version == before
    assert [(mark.batch, done.rows) for mark, done in list_done(target.place)] == [(0, 0)]
    assert not list_runs(target.place)


class Killed(BaseException):
    """Nothing runs after this."""


@pytest.fixture
def kill(monkeypatch):
    """Call something that is killed where it calls something else."""

    def call(where: str, work) -> None:
        def die(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(where, die)
            with pytest.raises(Killed):
                work()

    return call


@pytest.fixture
def kill_before_note(kill):
    """Commit a batch, and be killed before that is noted."""

    def commit(target: Target, batch: int, *values: int) -> None:
        kill(NOTE, partial(put, target.stream(), batch, *values))

    return commit


def test_a_batch_that_was_not_noted_is_found_in_its_version(target, kill_before_note):
    kill_before_note(target, 0, 1, 2)
    assert not list_done(target.place)
    assert not put(target.stream(), 0, 1, 2).is_new
    assert target.values() == [1, 2]
    assert len(target.data_files()) == 1
    assert not list_runs(target.place)


def test_cleaning_away_its_version_does_not_forget_a_batch(target, kill_before_note):
    kill_before_note(target, 0, 1, 2)
    target.table.insert(numbers(3))
    target.clean()
    assert len(target.table.versions()) == 1
    assert [mark.batch for mark, _ in list_done(target.place)] == [0]
    assert not put(target.stream(), 0, 1, 2).is_new
    assert target.values() == [1, 2, 3]


def test_cleaning_while_a_batch_has_only_begun_does_not_stop_it(target):
    stream = target.stream()
    part = written(stream, 1, 2)
    Runs(target.place, RunMark("q")).begin(part.version)
    target.table.insert(numbers(3))
    target.table.insert(numbers(4))
    target.clean()
    assert stream.commit(0, [part]).is_new
    assert target.values() == [1, 2, 3, 4]


def test_versions_that_went_unseen_are_told_of_and_nothing_counts_twice(plain, kill_before_note):
    kill_before_note(plain, 0, 1)
    plain.table.insert(numbers(2))
    # As another program would, which knows nothing of runs.
    plain.table.to_lance().cleanup_old_versions(timedelta(0))
    with pytest.raises(InvalidTableStateError, match="nobody can tell whether run 'q'"):
        put(plain.stream(), 0, 1)
    assert plain.values() == [1, 2]


def test_a_run_that_cannot_be_told_of_does_not_stop_a_cleanup(plain, kill_before_note):
    kill_before_note(plain, 0, 1)
    plain.table.insert(numbers(2))
    plain.table.to_lance().cleanup_old_versions(timedelta(0))
    note_runs(plain.table.handle)
    plain.clean()
    assert not list_done(plain.place)


def test_a_batch_of_the_past_is_refused(plain):
    """Of a driver that slept for long, or of a checkpoint that was replaced."""
    for batch in range(5):
        put(plain.stream(), batch, batch)
    stream = plain.stream()
    part = written(stream, 9)
    with pytest.raises(InvalidTableStateError, match="'q', batch 1 comes after batch 4"):
        stream.commit(1, [part])
    stream.give_up([part.run])
    assert plain.values() == [0, 1, 2, 3, 4]
    assert not list_runs(plain.place)
    assert len(plain.data_files()) == 5


def test_streams_do_not_touch_each_other(plain):
    other = plain.stream("q.2")
    waiting = written(other, 7)
    put(plain.stream("q"), 0, 1)
    assert other.commit(0, [waiting]).is_new
    assert plain.values() == [1, 7]


def test_what_a_lost_driver_wrote_goes_with_the_next_batch(target):
    written(target.stream(), 1, 2)
    assert len(list_runs(target.place)) == 1
    assert put(target.stream(), 0, 1, 2).is_new
    assert target.values() == [1, 2]
    assert not list_runs(target.place)
    assert len(target.data_files()) == 1


def test_what_a_driver_lost_that_was_about_to_commit_goes_too(plain, kill):
    kill("lance.LanceDataset.commit", partial(put, plain.stream(), 0, 1, 2))
    assert [run.outcome for run in list_runs(plain.place)] == ["commit"]
    assert put(plain.stream(), 0, 1, 2).is_new
    assert not list_runs(plain.place)
    assert len(plain.data_files()) == 1


def test_giving_a_batch_up_deletes_what_it_left(plain):
    stream = plain.stream(driver="here")
    written(stream, 1)
    others = written(plain.stream(driver="there"), 1)
    stream.give_up()
    assert [run.run for run in list_runs(plain.place)] == [others.run]
    stream.give_up([others.run])
    assert not list_runs(plain.place)
    assert not plain.data_files()


def test_giving_up_leaves_what_is_in_a_version(plain, kill):
    """Spark gives a batch up when its commit fails, and the commit may have landed."""
    stream = plain.stream(driver="here")
    part = written(stream, 1, 2)
    kill(NOTE, partial(stream.commit, 0, [part]))
    stream.give_up([part.run])
    assert plain.values() == [1, 2]


def test_a_note_that_fails_does_not_undo_a_batch(plain, monkeypatch):
    def end(*_: object) -> None:
        msg = "the store is gone"
        raise ServiceUnavailableError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "end", end)
        assert put(plain.stream(), 0, 1).is_new
    assert not put(plain.stream(), 0, 1).is_new
    assert plain.values() == [1]


def test_a_batch_that_a_cleanup_gave_up_is_refused(plain):
    stream = plain.stream()
    part = written(stream, 1)
    (run,) = list_runs(plain.place)
    assert run.abandon()
    with pytest.raises(ConcurrentModificationError, match="given up by a cleanup"):
        stream.commit(0, [part])
    assert plain.values() == []


def test_a_table_that_took_the_place_of_the_streams_is_refused(plain):
    put(plain.stream(), 0, 1)
    part = written(plain.stream(), 2)
    catalog = plain.open()
    catalog.drop_table("t")
    catalog.create_namespace("a")
    catalog.create_table("a$t", numbers())
    stream = Stream(catalog.table("a$t").handle, "q")
    with pytest.raises(ConcurrentModificationError, match="was replaced while 'q', batch 1"):
        stream.commit(1, [part])
    with pytest.raises(InvalidTableStateError, match="is new and empty, and 'q', batch 1"):
        stream.commit(1, [written(stream, 2)])


def test_a_stream_needs_a_plain_name(plain):
    with pytest.raises(InvalidInputError, match="cannot name a run"):
        plain.stream("a/b")


# -- which rows versions add -----------------------------------------------------------------------


def added(target: Target, after: int, up_to: int | None = None, **how: bool) -> list[list[int]]:
    handle = target.table.handle
    found = []
    for addition in list_additions(handle, after, up_to or target.table.to_lance().version, **how):
        dataset = target.table.to_lance(addition.version)
        fragments = [dataset.get_fragment(number) for number in addition.fragments]
        rows = dataset.scanner(fragments=fragments).to_table()["n"].to_pylist()
        found.append(sorted(rows))
    return found


def test_versions_add_rows_and_the_first_batch_is_all_of_them(target):
    target.table.insert(numbers(1, 2))
    target.table.insert(numbers(3))
    assert added(target, 1) == [[1, 2], [3]]
    assert added(target, 2) == [[3]]
    assert added(target, 3) == []
    target.table.delete("n = 1")
    assert added(target, 0) == [[2, 3]]


def test_what_moves_rows_adds_none(plain):
    table = plain.table
    table.insert(numbers(1, 2))
    table.insert(numbers(3))
    since = table.to_lance().version
    table.compact()
    table.indexes.create("n", "BTREE")
    table.columns.add({"twice": "n * 2"})
    table.columns.drop("twice")
    table.insert(numbers(4))
    table.compact()
    assert table.to_lance().version > since + 5
    assert added(plain, since) == [[4]]


def test_inserting_by_a_merge_is_an_addition(plain):
    plain.table.insert(numbers(1))
    since = plain.table.to_lance().version
    plain.table.to_lance().merge_insert("n").when_not_matched_insert_all().execute(numbers(1, 5))
    assert added(plain, since) == [[5]]


@pytest.mark.parametrize("change", ["delete", "update", "overwrite", "restore"])
def test_what_changes_rows_is_refused_or_passed_over(plain, change):
    table = plain.table
    table.insert(numbers(1, 2))
    since = table.to_lance().version
    match change:
        case "delete":
            table.delete("n = 1")
        case "update":
            table.update({"n": "n + 10"}, where="n = 1")
        case "overwrite":
            table.insert(numbers(7), overwrite=True)
        case "restore":
            table.restore(1)
    table.insert(numbers(3))
    with pytest.raises(InvalidTableStateError, match=f"version {since + 1} of table 't' changed"):
        added(plain, since)
    assert added(plain, since, skip_changes=True) == [[3]]


def test_versions_that_were_cleaned_away_are_named(plain):
    for value in range(4):
        plain.table.insert(numbers(value))
    plain.clean()
    newest = plain.table.to_lance().version
    with pytest.raises(TableVersionNotFoundError, match=f"versions 3 to {newest - 1} of table 't'"):
        added(plain, 2)
    assert added(plain, newest) == []


def test_only_the_versions_to_read_must_be_there(plain):
    """A version that was read may go, as soon as another one is the newest."""
    plain.table.insert(numbers(1))
    since = plain.table.to_lance().version
    plain.table.insert(numbers(2))
    plain.table.to_lance().cleanup_old_versions(timedelta(0))
    assert added(plain, since) == [[2]]


def test_a_table_that_went_back_is_another_one(plain):
    with pytest.raises(InvalidTableStateError, match="is another table now"):
        added(plain, 7)
