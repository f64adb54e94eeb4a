"""Indexes built in parts: used by queries, with the answers of one built in one process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mooring.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
)
from mooring.jobs.runner import Threads
from mooring.upkeep import build_index
from tests.upkeep.tables import USUAL_KINDS, home, make_table, numbers, open_catalog, unnamed_files
from tests.upkeep.test_table_compaction import Meddling

DIMENSION = 16


@pytest.fixture(params=USUAL_KINDS)
def made(request, tmp_path):
    catalog, name = open_catalog(request.param, tmp_path)
    return catalog, name, make_table(catalog, name)


def test_an_index_of_several_parts_is_one_and_is_used(made):
    catalog, name, table = made
    built = build_index(catalog, name, "ID", runner=Threads(3))
    assert (built.name, built.parts, built.whole_because) == ("id_idx", 3, None)
    assert built.commit.version == table.version
    found = table.indexes.get("id_idx")
    assert (found.rows_indexed, found.segments, found.kind) == (400, 1, "BTree")
    assert "ScalarIndexQuery" in table.explain(where="id = 321")
    assert table.to_arrow(filter="id >= 395")["id"].to_pylist() == [395, 396, 397, 398, 399]
    assert unnamed_files(table) == set()


def test_an_index_that_is_there_is_replaced_only_on_request(made):
    catalog, name, table = made
    build_index(catalog, name, "id", runner=Threads(2))
    with pytest.raises(TableIndexAlreadyExistsError, match="id_idx"):
        build_index(catalog, name, "id", runner=Threads(2))
    with pytest.raises(TableIndexAlreadyExistsError, match="id_idx"):
        build_index(catalog, name, "x", runner=Threads(2), index_name="id_idx", replace=True)
    before = table.indexes.get("id_idx").uuid
    build_index(catalog, name, "id", runner=Threads(2), replace=True)
    assert table.indexes.get("id_idx").uuid != before
    assert build_index(catalog, name, "id", "ZONEMAP", runner=Threads(2)).name == "id_idx_2"
    assert unnamed_files(table) == set()


def test_what_cannot_be_is_refused(made):
    catalog, name, _ = made
    with pytest.raises(TableColumnNotFoundError, match="'nope'"):
        build_index(catalog, name, "nope", runner=Threads(2))
    with pytest.raises(InvalidInputError, match="num_partitions"):
        build_index(catalog, name, "id", runner=Threads(2), num_partitions=4)
    with pytest.raises(InvalidInputError, match="needs a name"):
        build_index(catalog, name, "id", runner=Threads(2), index_name=" ")


def test_changes_meanwhile_are_not_lost(made):
    catalog, name, table = made

    def change():
        table.insert(numbers(400, 420))
        table.delete("id = 7")
        table.update({"x": "9.0"}, where="id = 9")

    build_index(catalog, name, "x", runner=Meddling(change))
    assert table.count("x = 9") == 2  # of 9 and of 18
    assert (table.count("x = 3.5"), table.count("x = 205")) == (0, 1)


def test_after_a_compaction_meanwhile_it_is_built_again(made):
    catalog, name, table = made
    runner = Meddling(table.compact)
    assert build_index(catalog, name, "id", runner=runner).parts == 1
    assert table.indexes.get("id_idx").rows_indexed == 400
    assert unnamed_files(table) == set()


def test_a_worker_that_fails_leaves_no_segment(made):
    catalog, name, table = made

    class Failing(Threads):
        def run(self, work, items, **told):
            super().run(work, items, **told)
            raise OSError("gone")

    with pytest.raises(Exception, match="gone"):
        build_index(catalog, name, "id", runner=Failing(2))
    assert list((home(table) / "_indices").glob("*")) == []


def test_a_table_without_rows_is_indexed_by_one_process(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    catalog.create_table(name, numbers(0, 0))
    built = build_index(catalog, name, "id", runner=Threads(2))
    assert (built.parts, built.whole_because) == (0, "there are no rows")


@pytest.mark.parametrize(
    ("kind", "column", "where"),
    [
        ("BTREE", "id", "id > 1490"),
        ("BITMAP", "color", "color = 3"),
        ("LABEL_LIST", "labels", "array_has_any(labels, ['l5'])"),
        ("NGRAM", "text", "contains(text, 'row 77')"),
        ("ZONEMAP", "id", "id BETWEEN 700 AND 710"),
        ("BLOOMFILTER", "id", "id = 1234"),
    ],
)
def test_each_scalar_kind_answers_as_if_one_process_had_built_it(tmp_path, kind, column, where):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, scalars(0))
    for part in range(1, 3):
        table.insert(scalars(part))
    expected = sorted(table.to_arrow(filter=where)["id"].to_pylist())
    built = build_index(catalog, name, column, kind, runner=Threads(2))
    assert (built.parts, built.whole_because) == (2, None)
    assert "ScalarIndexQuery" in table.explain(where=where)
    assert sorted(table.to_arrow(filter=where)["id"].to_pylist()) == expected
    assert expected


def scalars(part):
    ids = range(part * 500, (part + 1) * 500)
    return pa.table(
        {
            "id": ids,
            "color": [n % 5 for n in ids],
            "labels": [[f"l{n % 9}", "all"] for n in ids],
            "text": [f"this is row {n}" for n in ids],
        }
    )


def test_words_are_found_by_an_index_of_several_parts(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, scalars(0))
    table.insert(scalars(1))
    assert build_index(catalog, name, "text", "FTS", runner=Threads(2)).parts == 2
    found = pa.Table.from_batches(list(table.query(["id"], text="777", limit=5)))
    assert found["id"].to_pylist() == [777]


def vectors(part, count=1500):
    """Return vectors whose scale differs from part to part."""
    rng = np.random.default_rng(part)
    values = (rng.random((count, DIMENSION)) * (part + 1)).astype("f4")
    ids = np.arange(part * count, (part + 1) * count)
    return pa.table(
        {"id": ids, "v": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)}
    )


def recall(table, **how):
    """Return which share of the nearest is found by an index."""
    queries = np.random.default_rng(99).random((20, DIMENSION)).astype("f4") * 2
    shares = []
    for query in queries:
        exact = nearest(table, query, bypass_vector_index=True)
        shares.append(len(exact & nearest(table, query, **how)) / len(exact))
    return float(np.mean(shares))


def nearest(table, query, **how):
    batches = table.query(["id"], vector=query, k=10, **how)
    return set(pa.Table.from_batches(list(batches))["id"].to_pylist())


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    catalog, name = open_catalog("manifest", tmp_path_factory.mktemp("vectors"))
    table = catalog.create_table(name, vectors(0))
    for part in range(1, 4):
        table.insert(vectors(part))
    return catalog, name, table


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        pytest.param("IVF_PQ", 0.85, marks=pytest.mark.interop),  # trains long
        ("IVF_FLAT", 0.99),
        ("IVF_RQ", 0.75),
    ],
)
def test_the_nearest_are_found_as_by_an_index_of_one_process(searched, kind, least):
    catalog, name, table = searched
    given = {"num_partitions": 4, "distance_type": "l2"}
    table.indexes.create("v", kind, name="vec", replace=True, **given)
    alone = recall(table, nprobes=4)
    built = build_index(
        catalog, name, "v", kind, runner=Threads(2), index_name="vec", replace=True, **given
    )
    assert (built.parts, built.whole_because) == (2, None)
    index = table.indexes.get("vec")
    assert (index.rows_indexed, index.segments, index.distance) == (6000, 1, "l2")
    assert "ANN" in table.explain(vector=[1.0] * DIMENSION, k=10)
    together = recall(table, nprobes=4)
    assert together >= least
    assert together >= alone - 0.1, (together, alone)


def test_a_scale_of_its_own_keeps_an_index_in_one_piece(searched):
    """In segments, distances of one would mean nothing beside those of another."""
    catalog, name, table = searched
    built = build_index(
        catalog, name, "v", "IVF_SQ", runner=Threads(2), index_name="sq", num_partitions=4
    )
    assert built.parts == 0
    assert "scale of its own" in built.whole_because
    assert recall(table, nprobes=4) >= 0.85
    table.indexes.drop("sq")


def test_too_few_vectors_to_train_are_indexed_by_one_process(tmp_path):
    catalog, name = open_catalog("manifest", tmp_path)
    table = catalog.create_table(name, vectors(0, 200))
    table.insert(vectors(1, 200))
    built = build_index(
        catalog, name, "v", "IVF_PQ", runner=Threads(2), num_partitions=1, num_sub_vectors=4
    )
    assert "too few" in built.whole_because
    assert table.indexes.get("v_idx").rows_indexed == 400
