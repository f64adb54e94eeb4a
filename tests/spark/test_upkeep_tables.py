"""Upkeep of tables on Spark: the same results as in threads of one process."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mooring.errors import InvalidInputError
from mooring.jobs.runner import Threads
from mooring.spark.runner import SparkRunner
from mooring.upkeep import build_index, compact, fill_column
from tests.upkeep.tables import KINDS, make_table, open_catalog, unnamed_files
from tests.upkeep.test_table_indexing import recall, vectors

FUNCTION = """
import pyarrow.compute as pc

def triple(batch):
    return pc.multiply(batch["id"], 3)

def fail(batch):
    raise ValueError("not this one")
"""


@pytest.fixture
def runner(spark):
    return SparkRunner(spark)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTION)
    return str(path)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.interop] * (kind != "metastore")) for kind in KINDS],
)
def test_a_table_is_kept_up_as_threads_do_it(kind, runner, tmp_path, file):
    kept = [
        keep_up(kind, tmp_path / which, one, file)
        for which, one in (("spark", runner), ("threads", Threads(2)))
    ]
    assert kept[0] == kept[1]


def keep_up(kind, root, runner, file):
    """Fill, index and compact a table; return all that can be told of it afterwards."""
    catalog, name = open_catalog(kind, root)
    table = make_table(catalog, name)
    table.delete("id = 7")
    filled = fill_column(catalog, name, "y", f"{file}:triple", runner=runner)
    changed = fill_column(
        catalog,
        name,
        "x",
        lambda batch: pc.cast(pc.negate(batch["id"]), pa.float64()),  # travels by value
        runner=runner,
        where="id < 50",
    )
    built = build_index(catalog, name, "id", runner=runner)
    done = compact(catalog, name, runner=runner, target_rows=200)
    assert table.count("y = id * 3") == 399
    assert "ScalarIndexQuery" in table.explain(where="id = 33")
    assert unnamed_files(table) == set()
    rows = table.to_arrow(columns=["id", "x", "y"]).sort_by("id").to_pylist()
    index = table.indexes.get(built.name)
    return rows, filled.rows, changed.rows, index.rows_indexed, done.fragments_added, done.version


@pytest.mark.interop
def test_a_vector_index_of_workers_finds_the_nearest(runner, tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, vectors(0))
    table.insert(vectors(1))
    built = build_index(catalog, name, "v", "IVF_PQ", runner=runner, num_partitions=2)
    assert (built.parts, built.whole_because) == (2, None)
    assert table.indexes.get("v_idx").rows_indexed == 3000
    assert recall(table, nprobes=2) >= 0.85


def test_a_function_that_fails_in_a_worker_is_told_as_it_is(runner, tmp_path, file):
    catalog, name = open_catalog("manifest", tmp_path / "lake")
    table = make_table(catalog, name)
    with pytest.raises(InvalidInputError, match="failed: ValueError: not this one"):
        fill_column(catalog, name, "y", f"{file}:fail", runner=runner, data_type=pa.int64())
    assert (table.version, unnamed_files(table)) == (4, set())
