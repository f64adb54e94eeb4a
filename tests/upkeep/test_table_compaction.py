"""Compaction in parts: the same result in threads as in one process, and nothing is lost."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import mooring
from mooring.errors import ConcurrentModificationError, ReadOnlyError
from mooring.jobs.runner import Threads
from mooring.upkeep import compact
from tests.upkeep.tables import USUAL_KINDS, home, make_table, numbers, open_catalog, unnamed_files


class Meddling(Threads):
    """Does something else before it returns what was done, a few times."""

    def __init__(self, meddle, times=1):
        super().__init__(2)
        self._meddle = meddle
        self.left = times

    def run(self, work, items, **told):
        done = super().run(work, items, **told)
        if self.left:
            self.left -= 1
            self._meddle()
        return done


@pytest.fixture(params=USUAL_KINDS)
def made(request, tmp_path):
    catalog, name = open_catalog(request.param, tmp_path)
    return catalog, name, make_table(catalog, name)


def ids(table):
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_fragments_are_merged_and_every_row_stays(made):
    catalog, name, table = made
    done = compact(catalog, name, runner=Threads(2))
    assert (done.fragments_removed, done.fragments_added) == (4, 1)
    assert done.version == table.version
    assert ids(table) == list(range(400))
    assert unnamed_files(table) == set()
    assert compact(catalog, name, runner=Threads(2)).fragments_removed == 0


def test_a_table_compacts_by_itself_in_the_same_way(made):
    _, _, table = made
    assert table.compact(target_rows=200).fragments_added == 2
    assert ids(table) == list(range(400))
    assert unnamed_files(table) == set()


def test_rows_that_come_meanwhile_stay(made):
    catalog, name, table = made
    runner = Meddling(lambda: table.insert(numbers(400, 450)))
    assert compact(catalog, name, runner=runner).fragments_removed == 4
    assert ids(table) == list(range(450))
    assert runner.left == 0


def test_rows_that_go_meanwhile_stay_away(made):
    catalog, name, table = made
    runner = Meddling(lambda: table.delete("id < 50"))
    done = compact(catalog, name, runner=runner)
    assert done.fragments_added == 1
    assert ids(table) == list(range(50, 400))
    assert unnamed_files(table) == set()  # nor is there anything of the try that lost


def test_who_always_loses_is_told_and_leaves_nothing(made):
    catalog, name, table = made
    left = iter(range(400))

    def delete_one():
        table.delete(f"id = {next(left)}")

    with pytest.raises(ConcurrentModificationError):
        compact(catalog, name, runner=Meddling(delete_one, times=10))
    assert table.count() == 395
    assert unnamed_files(table) == set()


def test_a_worker_that_fails_leaves_nothing(made):
    catalog, name, table = made

    class Failing(Threads):
        def run(self, work, items, **told):
            super().run(work, items, **told)
            raise OSError("no space left")

    with pytest.raises(Exception, match="no space left"):
        compact(catalog, name, runner=Failing(2), target_rows=200)
    assert unnamed_files(table) == set()
    assert table.version == 4


def test_a_branch_is_compacted_by_itself(made):
    catalog, name, table = made
    table.branches.create("dev")
    table.insert(numbers(400, 410), branch="dev")
    done = compact(catalog, name, runner=Threads(2), branch="dev")
    assert done.fragments_removed == 5
    assert (table.count(branch="dev"), table.count()) == (410, 400)
    assert list((home(table) / "tree" / "dev").glob("_pending")) == []


def test_old_versions_go_where_that_is_asked_for(made):
    catalog, name, table = made
    would = compact(catalog, name, runner=Threads(2), keep=1, dry_run=True)
    assert (would.is_plan, would.fragments_removed, table.version) == (True, 4, 4)
    done = compact(catalog, name, runner=Threads(2), keep=1)
    assert done.cleaned.versions >= 4
    assert len(table.versions()) == 1
    assert ids(table) == list(range(400))


def test_a_read_only_catalog_refuses_before_any_work(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = make_table(catalog, name)
    reader = mooring.connect(tmp_path, read_only=True)
    with pytest.raises(ReadOnlyError):
        compact(reader, name, runner=Threads(2))
    assert unnamed_files(table) == set()


def everything(start, stop):
    """Return rows of many types."""
    span = range(start, stop)
    count = len(span)
    return pa.table(
        {
            "id": pa.array(span, pa.int64()),
            "text": pa.array([None if n % 7 == 0 else f"row {n}" for n in span]),
            "price": pa.array([Decimal(n) / 100 for n in span], pa.decimal128(12, 2)),
            "at": pa.array([n * 1000 for n in span], pa.timestamp("us", "UTC")),
            "kind": pa.array([f"k{n % 3}" for n in span]).dictionary_encode(),
            "tags": pa.array([[str(n)] * (n % 4) for n in span]),
            "spot": pa.array([{"x": n, "y": None if n % 2 else str(n)} for n in span]),
            "v": pa.FixedSizeListArray.from_arrays(
                pa.array(np.arange(count * 4, dtype="f4") + start), 4
            ),
            "flag": pa.array([n % 2 == 0 for n in span]),
        }
    )


def test_copied_pages_hold_what_the_rows_held(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, everything(0, 500))
    for start in range(500, 3000, 500):
        table.insert(everything(start, start + 500))
    table.indexes.create("id")
    before = table.to_arrow()
    assert compact(catalog, name, runner=Threads(2)).fragments_added == 1
    after = table.to_arrow()
    assert after.schema == before.schema
    assert after.to_pylist() == before.to_pylist()
    assert "ScalarIndexQuery" in table.explain(where="id = 1234")
    assert table.count("id = 1234") == 1
    sizes = [file.file_size_bytes for file in table.to_lance().get_fragments()[0].metadata.files]
    assert sizes == [path.stat().st_size for path in named_files(table)]


def named_files(table):
    files = table.to_lance().get_fragments()[0].metadata.files
    return [home(table) / "data" / file.path for file in files]


def test_rows_that_were_deleted_are_left_out_of_the_files(made):
    catalog, name, table = made
    table.delete("id % 2 = 0")
    compact(catalog, name, runner=Threads(2))
    (fragment,) = table.to_lance().get_fragments()
    assert (fragment.physical_rows, fragment.metadata.deletion_file) == (200, None)
    assert ids(table) == list(range(1, 400, 2))
