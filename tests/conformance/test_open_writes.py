"""Writes that several processes make together, on every kind of catalog."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    TableAlreadyExistsError,
    TableSchemaValidationError,
)
from mooring.jobs.incoming import INCOMING_DIR, list_incoming, sweep_incoming
from mooring.jobs.open_write import begin_write
from mooring.jobs.writing import WriteMode
from mooring.spark.conversion import Conversion
from mooring.tables.runs import RunMark, find_done
from tests.conformance.conftest import _make as make_lake
from tests.conformance.kinds import params
from tests.lakes import (
    COMPAT_DISK,
    COMPAT_SEAWEEDFS,
    DISK,
    METASTORE_DISK,
    METASTORE_SEAWEEDFS,
    SEAWEEDFS,
)

if TYPE_CHECKING:
    from mooring.jobs.open_write import OpenWrite
    from mooring.jobs.writing import PartWritten
    from tests.lakes import Lake

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ]
)
LARGE = 200_000


def fill(write: OpenWrite, number: int) -> PartWritten:
    """Write one row, in the types of the write: those of the table where there is one."""
    row = pa.RecordBatch.from_pylist([{"n": number, "b": b"x" * LARGE}], schema=SCHEMA)
    return write.write([Conversion(SCHEMA, write.schema, write.what)(row)])


@pytest.fixture(
    params=params(
        DISK, COMPAT_DISK, METASTORE_DISK, SEAWEEDFS, COMPAT_SEAWEEDFS, METASTORE_SEAWEEDFS
    )
)
def any_lake(request: pytest.FixtureRequest) -> Lake:
    """A catalog of each way to make a table, on disk; on SeaweedFS in `make interop`."""
    return make_lake(request.param, request)


def begin(lake: Lake, mode: WriteMode = WriteMode.APPEND, **how):
    """Begin a write, as one process, and send it to another."""
    opened = lake.connect()
    write = begin_write(opened, lake.id("t"), lambda table: table or SCHEMA, mode=mode, **how)
    return send(write)


def send(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own


def make(lake: Lake, *numbers: int, **how):
    write = begin(lake, **how)
    parts = [fill(write, number) for number in numbers]
    return send(write).finish(send(parts))


def numbers(lake: Lake) -> list[int]:
    return sorted(lake.connect().table(lake.id("t")).to_arrow(columns=["n"])["n"].to_pylist())


def left(lake: Lake) -> list[str]:
    """List what is on its way, in the catalog and in its tables."""
    return [
        meta.path
        for meta in lake.store.list_prefix("")
        if meta.path.startswith("_mooring/") or "/_pending/" in meta.path
    ]


def test_a_table_is_made_appended_to_and_overwritten(any_lake):
    assert make(any_lake, 1, 2).version == 1
    assert numbers(any_lake) == [1, 2]
    assert make(any_lake, 3).is_new
    assert numbers(any_lake) == [1, 2, 3]
    make(any_lake, 7, mode=WriteMode.OVERWRITE)
    assert numbers(any_lake) == [7]
    blobs = any_lake.dataset("t").scanner(columns=["b"], blob_handling="all_binary").to_table()
    assert [len(blob) for blob in blobs["b"].to_pylist()] == [LARGE]
    assert left(any_lake) == []


def test_no_rows_make_an_empty_table(any_lake):
    make(any_lake)
    assert numbers(any_lake) == []
    assert left(any_lake) == []


def test_a_write_that_was_given_up_leaves_nothing(any_lake):
    write = begin(any_lake)
    fill(write, 1)
    assert left(any_lake)
    assert any_lake.tables() == []
    write.give_up()
    assert left(any_lake) == []
    assert any_lake.tables() == []
    make(any_lake, 1)
    write = begin(any_lake)
    fill(write, 2)
    write.give_up()
    assert left(any_lake) == []
    assert numbers(any_lake) == [1]


def test_what_is_coming_is_no_table_to_anybody(any_lake):
    """Listings, sweeps and other programs look past it."""
    write = begin(any_lake)
    part = fill(write, 1)
    opened = any_lake.connect()
    assert opened.list_all_tables() == []
    if any_lake.kind.metastore:
        assert opened.metastore.vacuum(older_than_ms=0, dry_run=True) == []
        assert opened.metastore.sweep(older_than_ms=0, dry_run=True) == []
    elif any_lake.kind.manifest:
        assert opened.backend.find_orphans(0) == []
    assert write.finish([part]).version == 1
    assert numbers(any_lake) == [1]


def test_a_table_that_somebody_else_makes_meanwhile_is_left_alone(any_lake):
    write = begin(any_lake)
    part = fill(write, 1)
    make(any_lake, 5)
    with pytest.raises(ConcurrentModificationError, match="made by somebody else meanwhile"):
        write.finish([part])
    assert numbers(any_lake) == [5]
    assert left(any_lake) == []


def test_a_table_that_is_replaced_meanwhile_is_left_alone(any_lake):
    make(any_lake, 1)
    write = begin(any_lake)
    part = fill(write, 2)
    opened = any_lake.connect()
    opened.drop_table(any_lake.id("t"))
    opened.purge_table(any_lake.id("t"))
    make(any_lake, 5)
    with pytest.raises(ConcurrentModificationError):
        write.finish([part])
    assert numbers(any_lake) == [5]
    assert left(any_lake) == []


def test_a_named_run_counts_once(any_lake):
    mark = RunMark("nightly")
    assert make(any_lake, 1, mark=mark).version == 1
    assert make(any_lake, 1, mark=mark) is None
    again = begin(any_lake, mark=mark)
    assert again.is_done
    assert fill(again, 9).rows == 0
    handle = any_lake.connect().table(any_lake.id("t")).handle
    assert find_done(handle, mark).rows == 1
    other = RunMark("other")
    assert make(any_lake, 2, mark=other).is_new
    assert numbers(any_lake) == [1, 2]


def test_two_that_repeat_a_run_at_once_get_in_once(any_lake):
    mark = RunMark("nightly")
    first, second = begin(any_lake, mark=mark), begin(any_lake, mark=mark)
    parts = [fill(first, 1), fill(second, 1)]
    assert first.finish(parts[:1]).is_new
    assert second.finish(parts[1:]) is None
    assert numbers(any_lake) == [1]
    assert left(any_lake) == []


def test_a_table_that_must_not_be_there_is_refused(any_lake):
    make(any_lake, 1)
    with pytest.raises(TableAlreadyExistsError, match="append to it or overwrite it"):
        begin(any_lake, create_only=True)


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(any_lake):
    def refuse(_):
        msg = "they do not fit"
        raise TableSchemaValidationError(msg)

    with pytest.raises(TableSchemaValidationError):
        begin_write(any_lake.connect(), any_lake.id("t"), refuse, mode=WriteMode.APPEND)
    assert left(any_lake) == []


def test_a_sweep_takes_what_a_crash_left_and_the_run_cannot_commit_after(any_lake):
    write = begin(any_lake)
    part = fill(write, 1)
    opened = any_lake.connect()
    assert sweep_incoming(opened, written_before_ms=0) == []
    (found,) = list_incoming(opened)
    assert [one.run for one in sweep_incoming(opened, found.newest_ms + 1)] == [found.run]
    assert any_lake.store.list_prefix(INCOMING_DIR) == []
    with pytest.raises(ConcurrentModificationError, match="was given up"):
        write.finish([part])
    assert any_lake.tables() == []
