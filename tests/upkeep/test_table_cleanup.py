"""Cleaning a table: old versions, and what runs that were killed left."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

import mooring
from mooring.errors import ConcurrentModificationError, InvalidInputError, ReadOnlyError
from mooring.jobs.runner import Threads
from mooring.jobs.writing import PartWritten, write_parts
from mooring.tables.draft import draft_for
from mooring.tables.fragments import pack
from mooring.tables.pending import PendingRun
from mooring.upkeep import RunState, cleanup, compact, fill_column, sweep_runs
from tests.upkeep.tables import (
    KINDS,
    USUAL_KINDS,
    home,
    make_table,
    numbers,
    open_catalog,
    unnamed_files,
)
from tests.upkeep.test_table_compaction import Meddling

NOW = timedelta(0)


@pytest.fixture(params=USUAL_KINDS)
def made(request, tmp_path):
    catalog, name = open_catalog(request.param, tmp_path)
    return catalog, name, make_table(catalog, name)


def write(table, run, start=1000, stop=1010):
    """Write data files for a run, as a worker does whose driver is then lost."""
    handle = table.handle
    draft = draft_for(handle.location, handle.options, run, handle.open())
    return draft.write(numbers(start, stop).to_reader())


def run_of(table, run):
    return PendingRun(table.handle.place, run)


def states(swept):
    return [(one.run, one.state, one.goes) for one in swept]


def test_a_run_that_may_be_at_work_is_left_alone(made):
    _, _, table = made
    write(table, "young")
    (swept,) = sweep_runs(table)
    assert (swept.run, swept.state, swept.goes) == ("young", RunState.UNDECIDED, False)
    assert len(swept.files) == 1
    assert (home(table) / swept.files[0]).exists()


def test_an_old_run_that_nobody_ended_is_given_up_first(made):
    _, _, table = made
    write(table, "old")
    (would,) = sweep_runs(table, NOW, dry_run=True)
    assert states([would]) == [("old", RunState.UNDECIDED, True)]
    lying = [home(table) / path for path in would.files]
    assert would.bytes == sum(path.stat().st_size for path in lying)
    assert run_of(table, "old").outcome is None
    (swept,) = sweep_runs(table, NOW)
    assert (swept.state, swept.files) == (RunState.ABANDONED, would.files)
    assert not any(path.exists() for path in lying)
    assert unnamed_files(table) == set()
    assert sweep_runs(table, NOW) == []


def test_a_run_that_is_named_goes_however_young(made):
    _, _, table = made
    write(table, "one")
    write(table, "two")
    assert states(sweep_runs(table, run="one")) == [("one", RunState.ABANDONED, True)]
    assert states(sweep_runs(table)) == [("two", RunState.UNDECIDED, False)]
    with pytest.raises(InvalidInputError, match="no files of a run 'one'"):
        sweep_runs(table, run="one")


def test_of_a_run_that_is_in_the_table_only_the_lost_files_go(made):
    catalog, name, table = made
    kept = []

    def work(draft, part):
        done = draft.write(numbers(*part).to_reader())
        draft.write(numbers(0, 5).to_reader())  # an attempt whose result was lost
        kept.append(draft.run)
        return PartWritten(pack(done), part[1] - part[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mooring.jobs.writing._settle", lambda *_: None)  # the driver dies there
        write_parts(
            catalog,
            catalog.identifier(name),
            numbers(0, 0).schema,
            [(400, 410), (410, 420)],
            work=work,
            runner=Threads(2),
        )
    (swept,) = sweep_runs(table)
    assert (swept.run, swept.state, swept.goes) == (kept[0], RunState.COMMITTED, True)
    assert len(swept.files) == 2
    assert table.count() == 420
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(420))
    assert unnamed_files(table) == set()


def test_a_run_that_was_about_to_commit_is_stuck_and_goes_only_by_force(made):
    _, _, table = made
    write(table, "stuck")
    run_of(table, "stuck").claim()
    for swept in (sweep_runs(table, NOW), sweep_runs(table, run="stuck")):
        assert states(swept) == [("stuck", RunState.STUCK, False)]
    assert states(sweep_runs(table, run="stuck", force=True)) == [("stuck", RunState.STUCK, True)]
    assert unnamed_files(table) == set()


def test_no_file_goes_that_a_version_names_whatever_the_record_says(made):
    """Here the record lies: a run was given up, and its file is in a version of a branch."""
    catalog, name, table = made
    table.branches.create("dev")
    named = {
        file.path
        for one in table.to_lance(branch="dev").get_fragments()
        for file in one.metadata.files
    }
    run = run_of(table, "liar")
    run.note(named)
    run.abandon()
    (swept,) = sweep_runs(table)
    assert (swept.state, swept.files) == (RunState.ABANDONED, ())
    assert table.count() == table.count(branch="dev") == 400
    assert catalog.table(name).to_arrow().num_rows == 400


def test_a_run_of_a_branch_is_found(made):
    _, _, table = made
    table.branches.create("dev")
    place = table.handle.place_of("dev")
    PendingRun(place, "side").note(["nothing.lance"])
    (swept,) = sweep_runs(table, NOW)
    assert (swept.branch, swept.goes) == ("dev", True)
    assert sweep_runs(table, NOW) == []


class Slow:
    """A writer that waits in the middle of its rows, or before its commit."""

    def __init__(self, catalog, name, *, at="rows"):
        self._at = at
        self.began, self.go = threading.Event(), threading.Event()
        self.failure = None
        self._write = partial(
            write_parts,
            catalog,
            catalog.identifier(name),
            numbers(0, 0).schema,
            [(400, 500)],
            work=self._work,
            runner=Threads(1),
        )
        self._thread = threading.Thread(target=self._run)

    def _work(self, draft, part):
        draft.write(numbers(*part).to_reader())  # lost, and noted
        rows = pa.RecordBatchReader.from_batches(numbers(0, 0).schema, self._rows(part))
        done = draft.write(rows)
        if self._at == "commit":
            self._wait()
        return PartWritten(pack(done), part[1] - part[0])

    def _rows(self, part):
        middle = sum(part) // 2
        yield from numbers(part[0], middle).to_batches()
        if self._at == "rows":
            self._wait()
        yield from numbers(middle, part[1]).to_batches()

    def _wait(self):
        self.began.set()
        assert self.go.wait(20)

    def _run(self):
        try:
            self._write()
        except (ConcurrentModificationError, OSError) as exc:
            self.failure = exc

    def __enter__(self):
        self._thread.start()
        assert self.began.wait(20)
        return self

    def finish(self):
        self.go.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def __exit__(self, *_):
        self.finish()


def test_files_of_a_writer_at_work_are_left_alone(made):
    catalog, name, table = made
    write(table, "gone")
    run_of(table, "gone").abandon()
    with Slow(catalog, name) as writer:
        found = cleanup(table, keep=1)
        assert {one.state for one in found.runs} == {RunState.ABANDONED, RunState.UNDECIDED}
        writer.finish()
    assert writer.failure is None
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(500))
    assert unnamed_files(table) == set()


@pytest.mark.parametrize("at", ["rows", "commit"])
def test_a_writer_that_was_given_up_is_told_and_leaves_nothing(made, at):
    catalog, name, table = made
    with Slow(catalog, name, at=at) as writer:
        (swept,) = sweep_runs(table, NOW)
        assert swept.state is RunState.ABANDONED
        writer.finish()
    told = ConcurrentModificationError if at == "commit" else OSError  # its files are gone
    assert isinstance(writer.failure, told)
    assert table.count() == 400
    assert unnamed_files(table) == set()


def test_a_compaction_and_a_fill_that_were_given_up_begin_again(made):
    catalog, name, table = made

    def give_up():
        (swept,) = sweep_runs(table, NOW)
        assert swept.state is RunState.ABANDONED
        assert swept.files

    assert compact(catalog, name, runner=Meddling(give_up)).fragments_removed == 4
    table.insert(numbers(400, 450))
    fill_column(catalog, name, "y", lambda batch: batch["id"], runner=Meddling(give_up))
    assert table.count("y = id") == 450
    assert unnamed_files(table) == set()


def test_old_versions_go_and_tagged_ones_stay(made):
    _, _, table = made
    table.tags.create("first", 1)
    would = cleanup(table, keep=1, dry_run=True)
    assert (would.is_plan, would.versions.versions) == (True, 2)
    assert len(table.versions()) == 4
    done = cleanup(table, keep=1)
    assert (done.versions.versions, done.runs) == (2, ())
    assert [record.version for record in table.versions()] == [4, 1]
    assert cleanup(table).versions is None
    with pytest.raises(InvalidInputError, match="cannot be older"):
        cleanup(table, runs_older_than=timedelta(days=-1))


def test_a_read_only_catalog_only_tells(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    write(make_table(catalog, name), "left")
    table = mooring.connect(tmp_path, read_only=True).table(name)
    assert states(sweep_runs(table, NOW, dry_run=True)) == [("left", RunState.UNDECIDED, True)]
    with pytest.raises(ReadOnlyError):
        sweep_runs(table, NOW)


KILLED = """
    import sys, time
    import pyarrow as pa
    import mooring
    from mooring.tables.draft import draft_for

    table = mooring.connect(sys.argv[1]).table(sys.argv[2])
    handle = table.handle
    dataset = handle.open()
    draft = draft_for(handle.location, handle.options, sys.argv[3], dataset)

    def rows():
        for start in range(1000, 5000, 1000):
            ids = list(range(start, start + 1000))
            yield pa.record_batch({"id": ids, "x": [number / 2 for number in ids]})
        print("writing", flush=True)
        time.sleep(600)

    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    draft.write(pa.RecordBatchReader.from_batches(schema, rows()), rows_a_file=1500)
"""


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_worker_left_is_found_and_removed(kind, tmp_path):
    catalog, name = open_catalog(kind, tmp_path)
    table = make_table(catalog, name)
    program = tmp_path / "writer.py"
    program.write_text(textwrap.dedent(KILLED))
    with subprocess.Popen(
        [sys.executable, str(program), catalog.uri, name, "killed"], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout.readline() == b"writing\n"
        left = home(table) / "_pending" / "killed"
        deadline = time.monotonic() + 60
        while not any(path.is_file() for path in left.rglob("*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
    (young,) = sweep_runs(table)
    assert (young.run, young.state, young.goes) == ("killed", RunState.UNDECIDED, False)
    assert young.files
    (swept,) = sweep_runs(table, NOW)
    assert (swept.state, swept.files) == (RunState.ABANDONED, young.files)
    assert table.count() == 400
    assert unnamed_files(table) == set()
