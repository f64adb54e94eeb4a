"""Tables written in parts, on every kind of catalog: one commit, and nothing left of failures."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    ServiceUnavailableError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.jobs.runner import Threads
from mooring.jobs.writing import PartWritten, WriteMode, write_parts
from mooring.tables.draft import draft_for
from mooring.tables.fragments import pack
from mooring.tables.pending import PendingRun, list_runs
from mooring.tables.runs import RunMark, Runs, find_done, list_done

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        BLOB,
        pa.field("s", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
        pa.field("v", pa.list_(pa.float32(), 2)),
    ]
)
LARGE = 200_000


def part_rows(part: int) -> pa.Table:
    rows = [
        {"n": 10 * part + at, "b": b"x" * (LARGE if at == 0 else 3), "s": {"x": at}, "v": [1, 2]}
        for at in range(3)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write(draft, part):
    if part < 0:
        msg = f"part {part} cannot be written"
        raise InvalidInputError(msg)
    rows = part_rows(part)
    return PartWritten(pack(draft.write(rows.to_reader(), rows_a_file=2)), rows.num_rows)


@pytest.fixture
def place(any_lake):
    """A catalog, and the identifier of a table in it."""
    return any_lake.connect(), any_lake.id("t")


def run(place, parts, **how):
    catalog, name = place
    return write_parts(catalog, name, SCHEMA, parts, work=write, runner=Threads(2), **how)


def numbers(table) -> list[int]:
    return sorted(table.to_arrow(columns=["n"])["n"].to_pylist())


def data_files(store) -> set[str]:
    return {meta.path for meta in store.list_prefix("") if "/data/" in meta.path}


def test_parts_become_a_table_and_more_rows_of_it(place):
    made = run(place, [1, 2])
    assert (made.rows, made.is_new, numbers(made.table)) == (6, True, [10, 11, 12, 20, 21, 22])
    more = run(place, [3])
    assert more.version == made.version + 1
    assert numbers(more.table) == [10, 11, 12, 20, 21, 22, 30, 31, 32]
    dataset = more.table.to_lance()
    dataset.validate()
    assert {len(blob.readall()) for blob in dataset.take_blobs("b", indices=[0, 1])} == {LARGE, 3}
    assert dataset.to_table(columns=["s", "v"])["v"].to_pylist()[0] == [1.0, 2.0]
    assert not list_runs(more.table.handle.place)


def test_a_table_with_dropped_columns_takes_parts_in_its_own_numbering(place):
    wider = SCHEMA.insert(0, pa.field("gone", pa.int64()))
    catalog, name = place
    table = catalog.create_table(name, wider.empty_table())
    table.columns.drop("gone")
    assert numbers(run(place, [1]).table) == [10, 11, 12]


def test_an_overwrite_replaces_rows_and_schema(place):
    run(place, [1])
    catalog, name = place
    other = pa.schema([("word", pa.string())])

    def words(draft, part):
        rows = pa.table({"word": [part]})
        return PartWritten(pack(draft.write(rows.to_reader())), 1)

    made = write_parts(
        catalog, name, other, ["a", "b"], work=words, runner=Threads(1), mode=WriteMode.OVERWRITE
    )
    assert made.table.to_arrow().to_pydict() == {"word": ["a", "b"]}


@pytest.mark.parametrize("exists", [False, True], ids=["new", "not new"])
def test_a_failure_shows_nothing_and_leaves_no_file(place, any_lake, exists):
    catalog, name = place
    if exists:
        run(place, [1])
    before = data_files(any_lake.store)
    with pytest.raises(InvalidInputError, match="part -1 cannot be written"):
        run(place, [2, 3, -1])
    assert catalog.table_exists(name) is exists
    assert data_files(any_lake.store) == before
    left = {meta.path for meta in any_lake.store.list_prefix("")}
    assert not [path for path in left if "_pending" in path or "_runs" in path]


def test_a_run_counts_once(place):
    first = run(place, [1], mark=RunMark("load-1"))
    again = run(place, [1], mark=RunMark("load-1"))
    assert (again.version, again.rows, again.is_new) == (first.version, 3, False)
    other = run(place, [2], mark=RunMark("load-2"))
    assert run(place, [2], mark=RunMark("load-2")).version == other.version
    assert numbers(other.table) == [10, 11, 12, 20, 21, 22]
    known = [mark.run for mark, _ in list_done(other.table.handle.place)]
    assert known == ["load-1", "load-2"]


def test_a_run_that_died_before_it_noted_its_end_counts_once(place):
    mark = RunMark("load-1")
    made = run(place, [1], mark=mark)
    runs = Runs(made.table.handle.place, mark)
    made.table.handle.place.store.delete([runs._path(".done")])
    run(place, [5])
    assert run(place, [1], mark=mark).is_new is False
    assert numbers(made.table) == [10, 11, 12, 50, 51, 52]
    assert find_done(made.table.handle, mark).version == made.version


def test_runs_of_the_same_name_at_once_count_once(place):
    run(place, [0])
    barrier = threading.Barrier(3)

    def slow(draft, part):
        written = write(draft, part)
        barrier.wait(timeout=60)  # all have written before anybody commits
        return written

    def attempt(_):
        catalog, name = place
        return write_parts(
            catalog,
            name,
            SCHEMA,
            [1],
            work=slow,
            runner=Threads(1),
            mark=RunMark("stream", 7),
        )

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(attempt, range(3)))
    assert sum(one.is_new for one in found) == 1
    assert len({one.version for one in found}) == 1
    assert numbers(found[0].table) == [0, 1, 2, 10, 11, 12]


def test_a_run_that_a_cleanup_gave_up_does_not_commit(place):
    made = run(place, [1])
    table = made.table

    def given_up(draft, part):
        written = write(draft, part)
        assert PendingRun(table.handle.place, draft.run).abandon()
        return written

    catalog, name = place
    with pytest.raises(ConcurrentModificationError, match="given up by a cleanup"):
        write_parts(catalog, name, SCHEMA, [2], work=given_up, runner=Threads(1))
    assert numbers(table) == [10, 11, 12]


def test_what_a_lost_attempt_wrote_goes_with_the_run_and_other_runs_stay(place):
    table = run(place, [1]).table
    handle = table.handle
    with handle.reading() as dataset:
        other = draft_for(handle.location, handle.options, "other", dataset)
    in_flight = other.write(part_rows(9).to_reader())

    def twice(draft, part):
        write(draft, part)  # an attempt whose answer never came
        return write(draft, part)

    catalog, name = place
    made = write_parts(catalog, name, SCHEMA, [2], work=twice, runner=Threads(1))
    named = {
        file.path
        for fragment in made.table.to_lance().get_fragments()
        for file in fragment.data_files()
    }
    found = {
        meta.path.rpartition("/")[2]
        for meta in handle.place.store.list_prefix(handle.place.path("data"))
        if meta.path.endswith(".lance")
    }
    assert found - named == {file.path for one in in_flight for file in one.files}
    assert [run.run for run in list_runs(handle.place)] == ["other"]
    PendingRun(handle.place, "other").settle()


def test_a_commit_that_landed_unheard_keeps_its_files(place, monkeypatch):
    run(place, [1])
    real = lance.LanceDataset.commit

    def unheard(*args, **how):
        real(*args, **how)
        msg = "the connection broke"
        raise OSError(msg)

    monkeypatch.setattr(lance.LanceDataset, "commit", unheard)
    with pytest.raises(UnknownOutcomeError, match="the connection broke"):
        run(place, [2])
    monkeypatch.undo()
    catalog, name = place
    table = catalog.table(name)
    assert numbers(table) == [10, 11, 12, 20, 21, 22]
    table.to_lance().validate()


def test_a_commit_that_failed_leaves_nothing(place, any_lake, monkeypatch):
    run(place, [1])
    before = data_files(any_lake.store)

    def failing(*_, **__):
        msg = "no space left on device"
        raise OSError(msg)

    monkeypatch.setattr(lance.LanceDataset, "commit", failing)
    with pytest.raises(ServiceUnavailableError, match="no space left"):
        run(place, [2])
    monkeypatch.undo()
    assert data_files(any_lake.store) == before
    catalog, name = place
    assert not list_runs(catalog.table(name).handle.place)


def test_a_table_that_is_dropped_while_it_is_written_stays_dropped(place):
    run(place, [1])
    catalog, name = place

    def dropping(draft, part):
        written = write(draft, part)
        catalog.drop_table(name)
        return written

    with pytest.raises(TableNotFoundError):
        write_parts(catalog, name, SCHEMA, [2], work=dropping, runner=Threads(1))
    assert not catalog.table_exists(name)
    catalog.undrop_table(name)
    assert numbers(catalog.table(name)) == [10, 11, 12]
