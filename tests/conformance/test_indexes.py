"""Indexes, through requests and through Python.

Spec: lance-rest-openapi, CreateTableIndex, CreateTableScalarIndex, ListTableIndices,
DescribeTableIndexStats, DropTableIndex.
"""

from __future__ import annotations

import json

import lance
import lance.namespace
import lance_namespace as spec
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

import mooring
from mooring.errors import (
    InvalidInputError,
    ReadOnlyError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
    TableVersionNotFoundError,
)
from mooring.tables.handle import At
from tests.conformance.kinds import every_kind

COUNT = 600
DIMENSION = 8
SCALAR = ["BTREE", "BITMAP", "NGRAM", "ZONEMAP", "BLOOMFILTER", "FTS", "INVERTED"]
VECTOR = [
    "IVF_FLAT",
    "IVF_PQ",
    "IVF_SQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_PQ",
    "IVF_HNSW_SQ",
]


def _rows(count: int = COUNT) -> pa.Table:
    numbers = np.random.default_rng(7).random(count * DIMENSION, dtype=np.float32)
    return pa.table(
        {
            "n": pa.array(range(count), pa.int64()),
            "text": [f"the cats of word{number % 5}" for number in range(count)],
            "tags": pa.array([["a", "b"]] * count),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSION),
            "place": pa.array([{"x": number, "y.z": "p"} for number in range(count)]),
        }
    )


ROWS = _rows()


@pytest.fixture
def table(plain_lake):
    return plain_lake.connect().create_table("t", ROWS)


@pytest.fixture
def namespace(plain_lake, table):
    """Requests to the catalog in which `table` is."""
    return mooring.DirectoryNamespace(**plain_lake.properties)


@pytest.fixture
def theirs(plain_lake, table):
    """The same catalog, opened by pylance."""
    return lance.namespace.DirectoryNamespace(**plain_lake.properties)


def _create(namespace, column: str, kind: str, **more):
    return namespace.create_table_index(
        spec.CreateTableIndexRequest(id=["t"], column=column, index_type=kind, **more)
    )


def _names(namespace, **asked) -> list[str]:
    found = namespace.list_table_indices(spec.ListTableIndicesRequest(id=["t"], **asked))
    return [index.index_name for index in found.indexes]


def _stats(namespace, name: str, **asked):
    return namespace.describe_table_index_stats(
        spec.DescribeTableIndexStatsRequest(id=["t"], index_name=name, **asked)
    )


# -- on every kind of catalog ----------------------------------------------------------------------


@every_kind
def test_indexes_are_created_listed_described_and_dropped_by_requests(lake):
    """Spec: lance-rest-openapi, CreateTableIndex to DropTableIndex."""
    table = lake.connect().create_table("t", ROWS)
    namespace = mooring.DirectoryNamespace(**lake.properties)
    made = _create(namespace, "vector", "IVF_PQ", distance_type="cosine", num_sub_vectors=4)
    assert made.transaction_id == table.handle.open().read_transaction(2).uuid
    scalar = namespace.create_table_scalar_index(
        spec.CreateTableIndexRequest(id=["t"], column="n", index_type="BTREE", name="numbers")
    )
    assert scalar.transaction_id
    table.insert(ROWS.slice(0, 10))

    listed = namespace.list_table_indices(spec.ListTableIndicesRequest(id=["t"]))
    numbers, vectors = listed.indexes
    assert (numbers.index_name, numbers.columns, numbers.index_type) == ("numbers", ["n"], "BTree")
    assert (vectors.index_name, vectors.columns) == ("vector_idx", ["vector"])
    assert json.loads(vectors.index_details)["metric_type"] == "COSINE"
    stats = _stats(namespace, "vector_idx")
    assert stats.distance_type == "cosine"
    assert stats.index_type == "IVF_PQ"
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (COUNT, 10)
    assert stats.num_indices == 1

    dropped = namespace.drop_table_index(spec.DropTableIndexRequest(id=["t"], index_name="numbers"))
    assert dropped.transaction_id
    assert _names(namespace) == ["vector_idx"]
    assert _names(namespace, version=3) == ["numbers", "vector_idx"]
    assert table.version == 5


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*SCALAR, "LABEL_LIST", *VECTOR, "SCALAR", "VECTOR", "label_list"])
def test_an_index_of_every_type_is_told_as_pylance_tells_it(namespace, theirs, kind):
    vector = kind in {*VECTOR, "VECTOR"}
    column = "vector" if vector else "tags" if "list" in kind.lower() else "text"
    _create(namespace, column, kind, name="one")
    asked = spec.ListTableIndicesRequest(id=["t"])
    (ours,) = namespace.list_table_indices(asked).indexes
    (reference,) = theirs.list_table_indices(asked).indexes
    details = json.loads(ours.index_details)
    assert details == json.loads(reference.index_details)
    assert ours == reference.model_copy(update={"index_details": ours.index_details})
    told = _stats(namespace, "one")
    same = _stats(theirs, "one").model_copy(update={"distance_type": told.distance_type})
    assert told == same
    assert told.distance_type == ("l2" if vector else None)  # pylance never tells it


def test_a_type_of_index_is_known_in_any_writing(table):
    for written in ("BTree", "ZoneMap", "bloom_filter", "Inverted"):
        table.indexes.create("text", written, name=written)
    kinds = [index.kind for index in table.indexes.list()]
    assert kinds == ["BTree", "Inverted", "ZoneMap", "BloomFilter"]


def test_a_search_finds_the_same_by_the_index(table):
    table.indexes.create("vector", "IVF_FLAT", num_partitions=2)
    table.indexes.create("text", "FTS")
    nearest = {"column": "vector", "q": ROWS["vector"][3].as_py(), "k": 1}
    assert table.to_arrow(nearest=nearest, columns=["n"])["n"].to_pylist() == [3]
    found = table.to_arrow(full_text_query="word3", columns=["n"])
    assert found.num_rows == COUNT // 5


# -- parameters ------------------------------------------------------------------------------------


def test_every_parameter_of_a_vector_index_reaches_lance(namespace, table):
    _create(
        namespace,
        "vector",
        "IVF_HNSW_PQ",
        distance_type="Cosine",
        num_partitions=2,
        num_sub_vectors=2,
        num_bits=4,
        sample_rate=100,
        max_iterations=7,
        m=10,
        ef_construction=33,
    )
    details = table.indexes.get("vector_idx").details
    assert details["metric_type"] == "COSINE"
    assert details["compression"] == {"type": "pq", "num_bits": 4, "num_sub_vectors": 2}
    assert details["hnsw"]["max_connections"] == 10
    assert details["hnsw"]["construction_ef"] == 33
    assert details["runtime_hints"]["lance.ivf.sample_rate"] == "100"
    assert details["runtime_hints"]["lance.ivf.max_iters"] == "7"
    (stats,) = table.handle.open().stats.index_stats("vector_idx")["indices"]
    assert stats["num_partitions"] == 2
    _create(namespace, "vector", "IVF_FLAT", name="sized", target_partition_size=50)
    assert table.indexes.get("sized").details["target_partition_size"] == 50


def test_every_parameter_of_a_text_index_reaches_lance(namespace, table):
    given = {
        "with_position": True,
        "base_tokenizer": "whitespace",
        "language": "French",
        "max_token_length": 10,
        "lower_case": False,
        "stem": False,
        "remove_stop_words": False,
        "ascii_folding": False,
    }
    _create(namespace, "text", "FTS", **given)
    details = table.indexes.get("text_idx").details
    assert {name: details[name] for name in given} == given
    table.indexes.create("text", "FTS", name="lower", language="german")
    assert table.indexes.get("lower").details["language"] == "German"


@pytest.mark.parametrize("dimension", [1, 7, 12, 32])
def test_sub_vectors_that_are_not_given_fit_the_vector(plain_lake, dimension):
    values = pa.array(np.random.default_rng(1).random(300 * dimension, dtype=np.float32))
    rows = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, dimension)})
    table = plain_lake.connect().create_table("t", rows)
    table.indexes.create("v", "IVF_PQ")
    chosen = table.indexes.get("v_idx").details["compression"]["num_sub_vectors"]
    assert chosen == {1: 1, 7: 7, 12: 12, 32: 16}[dimension]


@pytest.mark.parametrize(
    ("column", "kind", "given"),
    [
        ("n", "WHAT", {}),
        ("n", "FTS", {}),
        ("n", "NGRAM", {}),
        ("n", "IVF_FLAT", {}),
        ("tags", "IVF_FLAT", {}),
        ("vector", "BTREE", {}),
        ("vector", "BITMAP", {}),
        ("tags", "BTREE", {}),
        ("tags", "BLOOMFILTER", {}),
        ("place", "BTREE", {}),
        ("text", "LABEL_LIST", {}),
        ("text", "RTREE", {}),
        ("text", "FTS", {"language": "Klingon"}),
        ("text", "FTS", {"base_tokenizer": "nothing"}),
        ("text", "FTS", {"num_partitions": 2}),
        ("text", "BTREE", {"stem": True}),
        ("vector", "IVF_FLAT", {"stem": True}),
        ("vector", "IVF_FLAT", {"num_bits": 8}),
        ("vector", "IVF_FLAT", {"num_sub_vectors": 8}),
        ("vector", "IVF_PQ", {"m": 8}),
        ("vector", "IVF_SQ", {"num_bits": 4}),
        ("vector", "IVF_PQ", {"num_bits": 3}),
        ("vector", "IVF_PQ", {"num_sub_vectors": 3}),
        ("vector", "IVF_HNSW_SQ", {"m": 1}),
        ("vector", "IVF_FLAT", {"distance_type": "manhattan"}),
        ("vector", "IVF_FLAT", {"distance_type": "hamming"}),
        ("vector", "IVF_FLAT", {"num_partitions": 2, "target_partition_size": 5}),
        ("n", "BTREE", {"name": ""}),
        ("n.", "BTREE", {}),
    ],
)
def test_an_index_that_cannot_be_is_invalid_input(namespace, table, column, kind, given):
    with pytest.raises(LanceNamespaceError) as caught:
        _create(namespace, column, kind, **given)
    assert caught.value.code == 13
    assert ".rs:" not in str(caught.value)
    assert table.version == 1
    assert table.indexes.list() == []


def test_a_parameter_that_nobody_knows_is_refused(table):
    with pytest.raises(InvalidInputError, match="'speed' is not a parameter"):
        table.indexes.create("vector", "IVF_FLAT", speed=9)


def test_the_request_for_scalar_indexes_makes_no_vector_index(namespace, table):
    request = spec.CreateTableIndexRequest(id=["t"], column="vector", index_type="IVF_FLAT")
    with pytest.raises(LanceNamespaceError, match="CreateTableIndex") as caught:
        namespace.create_table_scalar_index(request)
    assert caught.value.code == 13
    assert table.version == 1


# -- columns and names -----------------------------------------------------------------------------


def test_a_nested_column_is_indexed_by_its_path(table):
    """Spec: lance-rest-openapi, IndexContent.columns: canonical field paths."""
    assert table.indexes.create("place.`x`").name == "place.x_idx"
    table.indexes.create("PLACE.`Y.Z`", "BITMAP", name="quoted")
    columns = {index.name: index.columns for index in table.indexes.list()}
    assert columns == {"place.x_idx": ("place.x",), "quoted": ("place.`y.z`",)}
    with pytest.raises(TableColumnNotFoundError, match="'x'"):
        table.indexes.create("x")


def test_a_name_that_is_taken_is_refused_unless_the_index_is_replaced(table):
    """Spec: errors, TableIndexAlreadyExists (7)."""
    table.indexes.create("n")
    for again in ({"column": "n"}, {"column": "place.x", "name": "n_idx"}):
        with pytest.raises(TableIndexAlreadyExistsError, match="n_idx"):
            table.indexes.create(**again)
    assert table.indexes.create("n", "BITMAP").name == "n_idx_2"
    before = table.indexes.get("n_idx")
    table.indexes.create("n", "BITMAP", name="n_idx", replace=True)
    after = table.indexes.get("n_idx")
    assert (before.kind, after.kind) == ("BTree", "Bitmap")
    with pytest.raises(TableIndexAlreadyExistsError, match="different fields"):
        table.indexes.create("text", name="n_idx", replace=True)


@pytest.mark.parametrize(
    ("column", "kind", "name", "code"),
    [("missing", "BTREE", None, 12), ("missing", "IVF_FLAT", None, 12), ("n", "BTREE", "a", 7)],
)
def test_requests_tell_missing_columns_and_taken_names_by_code(
    namespace, table, column, kind, name, code
):
    table.indexes.create("n", name="a")
    with pytest.raises(LanceNamespaceError) as caught:
        _create(namespace, column, kind, name=name)
    assert caught.value.code == code


def test_an_index_that_is_not_there_is_neither_described_nor_dropped(namespace, table):
    """Spec: errors, TableIndexNotFound (6)."""
    table.indexes.create("n")
    with pytest.raises(TableIndexNotFoundError, match="its indexes are n_idx"):
        table.indexes.get("other")
    with pytest.raises(TableIndexNotFoundError, match="other"):
        table.indexes.drop("other")
    for name, code in (("other", 6), (None, 13)):
        request = spec.DropTableIndexRequest(id=["t"], index_name=name)
        with pytest.raises(LanceNamespaceError) as caught:
            namespace.drop_table_index(request)
        assert caught.value.code == code
        with pytest.raises(LanceNamespaceError) as caught:
            _stats(namespace, name)
        assert caught.value.code == code


# -- listing ---------------------------------------------------------------------------------------


def test_indexes_are_listed_in_pages(namespace, table):
    for name in ("c", "a", "b"):
        table.indexes.create("n", "BTREE" if name == "c" else "BITMAP", name=name)
    request = spec.ListTableIndicesRequest(id=["t"], limit=2)
    first = namespace.list_table_indices(request)
    rest = namespace.list_table_indices(
        spec.ListTableIndicesRequest(id=["t"], limit=2, page_token=first.page_token)
    )
    assert [index.index_name for index in (*first.indexes, *rest.indexes)] == ["a", "b", "c"]
    assert rest.page_token is None


def test_an_index_counts_the_rows_that_it_covers_as_pylance_does(namespace, theirs, table):
    table.indexes.create("n")
    table.insert(ROWS.slice(0, 50))
    table.delete("n % 7 = 0")
    table.handle.open().optimize.optimize_indices(num_indices_to_merge=0)
    table.insert(ROWS.slice(0, 5))
    index = table.indexes.get("n_idx")
    live = table.count() - 5
    assert (index.segments, index.rows_indexed, index.rows_unindexed) == (2, live, 5)
    asked = spec.ListTableIndicesRequest(id=["t"])
    (ours,) = namespace.list_table_indices(asked).indexes
    (reference,) = theirs.list_table_indices(asked).indexes
    assert ours == reference


def test_what_lance_keeps_among_the_indexes_is_not_listed(table):
    table.indexes.create("n")
    table.insert(ROWS.slice(0, 50))
    table.handle.open().optimize.compact_files(defer_index_remap=True)
    assert [index.name for index in table.indexes.list()] == ["n_idx"]


def test_an_index_of_a_table_too_small_to_train_on_covers_nothing_yet(plain_lake):
    table = plain_lake.connect().create_table("t", _rows(20))
    table.indexes.create("vector", "IVF_PQ")
    index = table.indexes.get("vector_idx")
    assert (index.rows_indexed, index.rows_unindexed) == (0, 20)
    nearest = {"column": "vector", "q": ROWS["vector"][3].as_py(), "k": 1}
    assert table.to_arrow(nearest=nearest, columns=["n"])["n"].to_pylist() == [3]


# -- branches, versions, and who may not -----------------------------------------------------------


def test_indexes_are_those_of_the_branch_and_version_that_are_named(namespace, table):
    dataset = table.handle.open()
    dataset.create_branch("b", dataset.version)
    _create(namespace, "n", "BTREE", branch="b")
    table.indexes.create("text", branch="b")
    assert _names(namespace) == []
    assert _names(namespace, branch="main") == []
    assert _names(namespace, branch="b") == ["n_idx", "text_idx"]
    assert _names(namespace, branch="b", version=2) == ["n_idx"]
    assert _stats(namespace, "n_idx", branch="b").num_indexed_rows == COUNT
    with pytest.raises(LanceNamespaceError) as caught:
        _stats(namespace, "text_idx", branch="b", version=2)
    assert caught.value.code == 6
    namespace.drop_table_index(spec.DropTableIndexRequest(id=["t"], index_name="n_idx", branch="b"))
    assert [index.name for index in table.indexes.list(At(branch="b"))] == ["text_idx"]
    assert table.version == 1


def test_a_branch_or_version_that_is_not_there_is_told_so(table):
    with pytest.raises(TableBranchNotFoundError, match="other"):
        table.indexes.list(At(branch="other"))
    with pytest.raises(TableBranchNotFoundError, match="other"):
        table.indexes.create("n", branch="other")
    for version in (0, 9):
        with pytest.raises(TableVersionNotFoundError):
            table.indexes.list(At(version))


def test_a_read_only_catalog_makes_no_index(plain_lake, table):
    table.indexes.create("n")
    indexes = plain_lake.connect(read_only=True).table("t").indexes
    with pytest.raises(ReadOnlyError):
        indexes.create("text")
    with pytest.raises(ReadOnlyError):
        indexes.drop("n_idx")
    assert [index.name for index in indexes.list()] == ["n_idx"]
