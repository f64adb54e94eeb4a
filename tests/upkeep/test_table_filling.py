"""Columns that a Python function computes."""

from __future__ import annotations

import sys
import threading

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
)
from mooring.jobs.runner import Threads
from mooring.upkeep import fill_column
from mooring.upkeep.functions import parse_function
from tests.upkeep.tables import USUAL_KINDS, make_table, numbers, open_catalog, unnamed_files

FUNCTIONS = """
from dataclasses import dataclass
import pyarrow.compute as pc

@dataclass
class Factor:
    by: int

FACTOR = Factor(2)

def double(batch):
    return pc.multiply(batch["id"], FACTOR.by)

def fail(batch):
    raise KeyError("nothing here")

def short(batch):
    return [1]

def words(batch):
    return ["a"] * len(batch)

constant = 3
"""


@pytest.fixture(params=USUAL_KINDS)
def made(request, tmp_path):
    catalog, name = open_catalog(request.param, tmp_path / "lake")
    return catalog, name, make_table(catalog, name)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    return str(path)


class Once:
    """Does something else while the first value is computed."""

    def __init__(self, meddle, compute):
        self._meddle = meddle
        self._compute = compute
        self._lock = threading.Lock()
        self.calls = 0

    def __call__(self, batch):
        with self._lock:
            self.calls += 1
            if self.calls == 1:
                self._meddle()
        return self._compute(batch)


def holds(table, column, factor):
    rows = table.to_arrow()
    return rows[column].to_pylist() == pc.multiply(rows["id"], factor).to_pylist()


def test_a_new_column_is_computed_in_every_row(made, file):
    catalog, name, table = made
    table.delete("id = 7")
    done = fill_column(catalog, name, "y", f"{file}:double", runner=Threads(2))
    assert (done.rows, done.commit.version) == (399, table.version)
    assert holds(table, "y", 2)
    assert table.schema.field("y").type == pa.int64()
    assert table.log(1)[0].operation == "Merge"
    assert unnamed_files(table) == set()


def test_a_column_that_is_there_is_computed_where_it_has_no_value(made, file):
    catalog, name, table = made
    table.columns.add({"y": pa.int64()})
    table.columns.backfill("y", expression="id * 2", where="id < 100")
    table.indexes.create("x")
    done = fill_column(catalog, name, "y", f"{file}:double", runner=Threads(2), reads=["id"])
    assert done.rows == 300
    assert holds(table, "y", 2)
    assert table.indexes.get("x_idx").rows_unindexed == 0
    again = fill_column(catalog, name, "y", f"{file}:double", runner=Threads(2))
    assert (again.rows, again.commit) == (0, done_at(table))
    assert unnamed_files(table) == set()


def done_at(table):
    from mooring.tables.commits import Committed

    return Committed.of(table.to_lance())


def test_a_filter_says_in_which_rows(made):
    catalog, name, table = made
    done = fill_column(
        catalog, name, "x", lambda batch: [-1.0] * len(batch), runner=Threads(2), where="id < 10"
    )
    assert done.rows == 10
    assert table.count("x = -1") == 10


def test_a_new_column_comes_with_rows_that_came_meanwhile(made):
    catalog, name, table = made

    def change():
        table.insert(numbers(400, 450))
        table.delete("id = 205")

    compute = Once(change, lambda batch: pc.multiply(batch["id"], 3))
    fill_column(catalog, name, "y", compute, runner=Threads(2), data_type=pa.int64())
    assert table.count() == 449
    assert holds(table, "y", 3)
    assert compute.calls == 5  # what was computed before the change is not computed again
    assert unnamed_files(table) == set()


def test_a_column_that_is_there_has_no_wrong_values_after_changes_meanwhile(made):
    catalog, name, table = made
    table.columns.add({"y": pa.int64()})

    def change():
        table.insert(numbers(400, 450))
        table.update({"id": "id + 1000"}, where="id = 11")
        table.delete("id = 205")

    compute = Once(change, lambda batch: pc.multiply(batch["id"], 3))
    fill_column(catalog, name, "y", compute, runner=Threads(2), where="id >= 0")
    assert table.count() == 449
    assert holds(table, "y", 3)
    assert unnamed_files(table) == set()


def test_after_a_compaction_meanwhile_it_is_computed_again(made):
    catalog, name, table = made
    compute = Once(table.compact, lambda batch: pc.multiply(batch["id"], 3))
    fill_column(catalog, name, "y", compute, runner=Threads(2), data_type=pa.int64())
    assert holds(table, "y", 3)
    assert unnamed_files(table) == set()


def test_after_rows_came_back_meanwhile_they_are_computed(made):
    """A restored version has fewer deleted rows in the same files."""
    catalog, name, table = made
    version = table.version
    table.delete("id < 20")
    compute = Once(lambda: table.restore(version), lambda batch: pc.multiply(batch["id"], 3))
    fill_column(catalog, name, "y", compute, runner=Threads(2), data_type=pa.int64())
    assert table.count() == 400
    assert holds(table, "y", 3)


def test_who_always_loses_is_told_and_leaves_nothing(made, monkeypatch):
    catalog, name, table = made
    monkeypatch.setattr("mooring.upkeep.filling._ATTEMPTS", 3)
    left = iter(range(100))

    class Busy(Threads):
        def run(self, work, items, **told):
            done = super().run(work, items, **told)
            table.delete(f"id = {next(left)}")
            return done

    with pytest.raises(ConcurrentModificationError):
        fill_column(catalog, name, "y", lambda batch: batch["id"], runner=Busy(2))
    assert "y" not in table.schema.names
    assert unnamed_files(table) == set()


def test_a_function_may_use_lance_itself(made, tmp_path):
    catalog, name, table = made
    lookup = tmp_path / "lookup.lance"
    lance.write_dataset(pa.table({"factor": [5]}), lookup)

    def compute(batch):
        return pc.multiply(batch["id"], lance.dataset(lookup).to_table()["factor"][0])

    fill_column(catalog, name, "y", compute, runner=Threads(2))
    assert holds(table, "y", 5)


def test_vectors_and_other_results_become_arrays(made):
    catalog, name, table = made
    kind = pa.list_(pa.float32(), 2)
    fill_column(
        catalog, name, "v", lambda b: [[1.0, 2.0]] * len(b), runner=Threads(2), data_type=kind
    )
    fill_column(catalog, name, "n", lambda b: b["id"].to_numpy() + 1, runner=Threads(2))
    fill_column(catalog, name, "c", lambda b: pa.chunked_array([b["id"]]), runner=Threads(2))
    rows = table.to_arrow(filter="id = 42").to_pylist()
    assert rows == [{"id": 42, "x": 21.0, "v": [1.0, 2.0], "n": 43, "c": 42}]


def test_a_branch_is_filled_by_itself(made):
    catalog, name, table = made
    table.branches.create("dev")
    fill_column(catalog, name, "y", lambda b: b["id"], runner=Threads(2), branch="dev")
    assert "y" not in table.schema.names
    assert "y" in table.to_lance(branch="dev").schema.names


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("fail", "'.*:fail' of column 'y' failed: KeyError: 'nothing here'"),
        ("short", "returned 1 values for"),
        ("words", "returned what is no int64"),
        ("nope", "has no function 'nope'"),
        ("constant", "has no function 'constant'"),
    ],
)
def test_a_function_that_does_not_do_is_told_and_leaves_nothing(tmp_path, file, function, told):
    catalog, name = open_catalog("manifest", tmp_path / "lake")
    table = make_table(catalog, name)
    with pytest.raises(InvalidInputError, match=told):
        fill_column(
            catalog, name, "y", f"{file}:{function}", runner=Threads(2), data_type=pa.int64()
        )
    assert (table.version, unnamed_files(table)) == (4, set())


def test_what_cannot_be_filled_is_refused(tmp_path, file):
    catalog, name = open_catalog("manifest", tmp_path / "lake")
    make_table(catalog, name)
    double = f"{file}:double"
    with pytest.raises(InvalidInputError, match="in every row"):
        fill_column(catalog, name, "y", double, runner=Threads(2), where="id > 1")
    with pytest.raises(TableColumnNotFoundError, match="'nope'"):
        fill_column(catalog, name, "y", double, runner=Threads(2), reads=["nope"])
    with pytest.raises(InvalidInputError, match="a field of a struct"):
        fill_column(catalog, name, "a.b", double, runner=Threads(2))
    with pytest.raises(InvalidInputError, match="has the type double"):
        fill_column(catalog, name, "x", double, runner=Threads(2), data_type=pa.int64())
    with pytest.raises(InvalidInputError, match="nothing tells the type"):
        fill_column(catalog, name, "y", lambda b: [None] * len(b), runner=Threads(2))


def test_a_column_for_no_rows_is_added_where_its_type_is_given(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, numbers(0, 0))
    with pytest.raises(InvalidInputError, match="give it"):
        fill_column(catalog, name, "y", lambda b: b["id"], runner=Threads(2))
    fill_column(catalog, name, "y", lambda b: b["id"], runner=Threads(2), data_type=pa.int8())
    assert table.schema.field("y").type == pa.int8()


def test_a_module_travels_as_its_text(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("")
    (tmp_path / "tools" / "parts.py").write_text("NUMBER = 4\n")
    (tmp_path / "tools" / "sums.py").write_text(
        "from .parts import NUMBER\ndef four(batch):\n    return [NUMBER] * len(batch)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    function = parse_function("tools.sums:four")
    assert "NUMBER" in function.text
    assert function.package == "tools"
    assert function.load()([1, 2]) == [4, 4]
    assert parse_function("math:sqrt").text is None


@pytest.mark.parametrize(
    "text", ["double", ":double", "x.py:", "x.py:a b", "no_such.py:f", "no.such.module:f"]
)
def test_what_names_no_function_is_told(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError):
        parse_function(text)
