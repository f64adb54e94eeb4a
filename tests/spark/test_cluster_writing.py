"""Tables written on a real cluster are those that are written here; a lost executor leaves none."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from mooring.jobs.runner import Threads
from mooring.jobs.writing import PartWritten, WriteMode, write_parts
from mooring.spark.runner import SparkRunner
from mooring.tables.draft import draft_for
from mooring.tables.fragments import commit, pack
from mooring.tables.pending import PendingRun, list_runs
from tests.spark.cluster import session
from tests.spark.places import KINDS, Place

SCHEMA = pa.schema([("n", pa.int64()), ("v", pa.list_(pa.float32(), 2)), ("word", pa.string())])
LIMIT_S = 300


@pytest.fixture
def place(request, tmp_path, prefix) -> Place:
    """A catalog of the kind that the test is run for."""
    kind = request.param
    if not kind.endswith("seaweedfs"):
        return Place.of(kind, str(tmp_path / "lake"))
    server = request.getfixturevalue("seaweedfs")
    return Place.of(kind, server.uri(prefix), server.options)


def rows_of(part: int) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pylist(
            [{"n": 100 * part + n, "v": [n, part], "word": "x" * n} for n in range(at, at + 10)],
            schema=SCHEMA,
        )
        for at in (0, 10, 20)
    ]


def write(draft, part):
    reader = pa.RecordBatchReader.from_batches(SCHEMA, rows_of(part))
    return PartWritten(pack(draft.write(reader, rows_a_file=20)), 30)


def write_thrice(place: Place, runner) -> list[object]:
    """Make a table, append to it, overwrite it; tell what is in it each time."""
    catalog, told = place.open(), []
    for parts, mode in (
        ([1, 2, 3], WriteMode.APPEND),
        ([4], WriteMode.APPEND),
        ([5, 6], WriteMode.OVERWRITE),
    ):
        done = write_parts(catalog, place.name, SCHEMA, parts, work=write, runner=runner, mode=mode)
        rows = sorted(done.table.to_arrow().to_pylist(), key=lambda row: row["n"])
        lengths = [one.count_rows() for one in done.table.to_lance().get_fragments()]
        told.append((done.version, done.rows, lengths, rows))
    assert not list_runs(done.table.handle.place)
    return told


def write_thrice_there(place: Place) -> list[object]:
    return write_thrice(place, SparkRunner(session()))


@pytest.mark.interop
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_a_cluster_writes_what_local_mode_and_threads_write(place, cluster, spark, tmp_path):
    there = cluster.run(write_thrice_there, place)
    local = Place.of("v2", str(tmp_path / "local"))
    threads = Place.of("v2", str(tmp_path / "threads"))
    assert there == write_thrice(local, SparkRunner(spark))
    assert there == write_thrice(threads, Threads(2))


def write_slowly(started: str, draft, part):
    """Write a part; the first that tries part 1 tells who it is, writes a bit, and waits."""
    from pathlib import Path

    def batches():
        first, *more = rows_of(part)
        yield first
        yield more[0]
        if part == 1 and be_first():
            time.sleep(LIMIT_S)
        yield from more[1:]

    def be_first() -> bool:
        parent = os.getppid()
        java = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1]
        try:
            with Path(started).open("x") as file:
                file.write(json.dumps([os.getpid(), parent, int(java)]))
        except FileExistsError:
            return False
        return True

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    return PartWritten(pack(draft.write(reader, rows_a_file=10)), 30)


def write_slowly_there(place: Place, started: str) -> int:
    done = write_parts(
        place.open(),
        place.name,
        SCHEMA,
        [1, 2],
        work=partial(write_slowly, started),
        runner=SparkRunner(session()),
    )
    return done.version


class OtherWriter:
    """Another run that writes into the same table at the same time, in a thread."""

    def __init__(self, table) -> None:
        self._handle = table.handle
        with self._handle.reading() as dataset:
            draft = draft_for(self._handle.location, self._handle.options, "other", dataset)
            self._read = dataset.version
        self._go_on = threading.Event()
        self._fragments: list[object] = []
        self._thread = threading.Thread(target=self._write, args=(draft,))
        self._thread.start()

    def _write(self, draft) -> None:
        def batches():
            first, *more = rows_of(9)
            yield first
            yield more[0]
            self._go_on.wait(LIMIT_S)
            yield from more[1:]

        reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
        self._fragments = draft.write(reader, rows_a_file=10)

    def commit(self) -> None:
        self._go_on.set()
        self._thread.join()
        run = PendingRun(self._handle.place, "other")
        operation = lance.LanceOperation.Append(self._fragments)
        commit(self._handle, operation, self._read, rows=30, claim=run.claim)
        run.settle({file.path for one in self._fragments for file in one.files})


def stray_files(table) -> set[str]:
    """Name the data files that the newest version does not."""
    place = table.handle.place
    found = {
        meta.path.rpartition("/")[2]
        for meta in place.store.list_prefix(place.path("data"))
        if meta.path.endswith(".lance")
    }
    fragments = table.to_lance().get_fragments()
    return found - {file.path for one in fragments for file in one.data_files()}


def numbers(table) -> list[int]:
    return sorted(table.to_arrow(columns=["n"])["n"].to_pylist())


@pytest.mark.torture
@pytest.mark.parametrize(
    "place",
    ["v1-disk", "v2-disk", "metastore-disk", "v2-seaweedfs", "metastore-seaweedfs"],
    indirect=True,
)
def test_a_killed_executor_leaves_nothing_and_others_are_left_alone(place, cluster, tmp_path):
    table = write_parts(place.open(), place.name, SCHEMA, [0], work=write, runner=Threads(1)).table
    other = OtherWriter(table)
    started = tmp_path / "started"
    job = cluster.driver.submit(write_slowly_there, place, str(started))
    wait_until(lambda: started.exists() and started.read_text())
    before = numbers(table)
    _, daemon, java = json.loads(started.read_text())
    assert Path(f"/proc/{java}/comm").read_text().strip() == "java"
    wait_until(lambda: files_of_attempts(table) > 0)
    os.kill(java, signal.SIGKILL)
    version = job.result(timeout=LIMIT_S)
    wait_until(lambda: not Path(f"/proc/{daemon}").exists())

    table = place.open().table(place.name)
    assert table.to_lance().version == version
    first = list(range(30))
    assert before == first
    assert numbers(table) == [*first, *range(100, 130), *range(200, 230)]
    assert [run.run for run in list_runs(table.handle.place)] == ["other"]
    in_flight = PendingRun(table.handle.place, "other").files()
    assert stray_files(table) <= in_flight

    other.commit()
    table = place.open().table(place.name)
    assert numbers(table) == [*first, *range(100, 130), *range(200, 230), *range(900, 930)]
    assert not stray_files(table)
    assert not list_runs(table.handle.place)


def files_of_attempts(table) -> int:
    """Count what the job's attempts have left so far."""
    place = table.handle.place
    return sum(
        len(place.store.list_prefix(run._directory))
        for run in list_runs(place)
        if run.run != "other"
    )


def wait_until(condition) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
