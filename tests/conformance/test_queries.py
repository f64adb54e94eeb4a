"""Queries by filter, by vector and by words, beside what NumPy and pylance find.

Spec: lance-rest-openapi, QueryTable, ExplainTableQueryPlan, AnalyzeTableQueryPlan, CountTableRows.
"""

from __future__ import annotations

import io

import lance
import lance.namespace
import lance_namespace as spec
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import models

import mooring
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from mooring.tables.full_text import Boolean, Boost, Match, MultiMatch, Phrase
from tests.conformance.kinds import every_kind

ROWS, SIZE = 400, 8
HALF = ROWS // 2
NOTHING = models.QueryTableRequestVector()


def _name(part: object) -> str | None:
    """Name a part of a case; a function has no name that is the same in every process."""
    return None if callable(part) else str(part)


def _vectors(numbers: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1), kind), numbers.shape[1])


RANDOM = np.random.default_rng(7)
V = RANDOM.random((ROWS, SIZE), dtype=np.float32)
LONG = RANDOM.random((ROWS, SIZE))
BITS = RANDOM.integers(0, 255, (ROWS, SIZE), dtype=np.uint8)
N = np.arange(ROWS)
TITLES = [f"sea{n % 7} deep blue" if n % 2 else f"blue sea{n % 7}" for n in N]
BODIES = [f"ship{n % 5} on the sea{n % 3}" for n in N]
DATA = pa.table(
    {
        "n": N,
        "zero": [int(n != ROWS - 1) for n in N],
        "digits": [str(n) if n != ROWS - 1 else "tag x does not exist" for n in N],
        "title": TITLES,
        "body": BODIES,
        "v": _vectors(V, pa.float32()),
        "s": pa.array([{"a": int(n), "b.c": -int(n)} for n in N]),
        "d": pa.array([f"half {n // HALF} of {n % 3}" for n in N]),
    }
)
SEVERAL = pa.table(
    {
        "n": N,
        "short": _vectors(V.astype(np.float16), pa.float16()),
        "long": _vectors(LONG, pa.float64()),
        "bits": _vectors(BITS, pa.uint8()),
        "many": pa.array(
            [[V[n].tolist(), V[(n + 1) % ROWS].tolist()] for n in N],
            pa.list_(pa.list_(pa.float32(), SIZE)),
        ),
        "s": pa.StructArray.from_arrays([_vectors(V, pa.float32())], ["in.side"]),
    }
)


def _halves(table: pa.Table) -> pa.RecordBatchReader:
    """Stream halves whose column ``d`` has a dictionary of its own each."""
    batches = []
    for part in (table.slice(0, HALF), table.slice(HALF)):
        encoded = part["d"].combine_chunks().dictionary_encode()
        index = part.schema.get_field_index("d")
        batches += part.set_column(index, "d", encoded).combine_chunks().to_batches()
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A directory of tables that the tests of this module only read."""
    root = tmp_path_factory.mktemp("queries") / "lake"
    for name in ("plain", "indexed"):
        first, second = _halves(DATA)
        path = root / f"{name}.lance"
        lance.write_dataset(pa.table(first), path)
        if name == "indexed":
            _index(lance.dataset(path))
        lance.write_dataset(pa.table(second), path, mode="append")
    lance.write_dataset(SEVERAL, root / "several.lance")
    return root


def _index(dataset: lance.LanceDataset) -> None:
    dataset.create_index("v", "IVF_FLAT", num_partitions=4, metric="l2")
    for column in ("title", "body"):
        dataset.create_scalar_index(column, "INVERTED", with_position=True)


@pytest.fixture(scope="module")
def catalog(root):
    return mooring.connect(root, manifest_enabled=False, read_only=True)


@pytest.fixture(scope="module")
def ours(root):
    return mooring.DirectoryNamespace(root=str(root), manifest_enabled="false")


@pytest.fixture(scope="module")
def theirs(root):
    return lance.namespace.DirectoryNamespace(root=str(root), manifest_enabled="false")


@pytest.fixture(params=["plain", "indexed"])
def table(request, catalog):
    """The same rows without indexes, and with indexes that cover the first half."""
    return catalog.table(request.param)


@pytest.fixture(scope="module")
def plain(catalog):
    return catalog.table("plain")


@pytest.fixture(scope="module")
def indexed(catalog):
    return catalog.table("indexed")


@pytest.fixture(scope="module")
def several(catalog):
    return catalog.table("several")


def _n(reader: pa.RecordBatchReader) -> list[int]:
    return reader.read_all()["n"].to_pylist()


def _ranked(distances: np.ndarray, among: np.ndarray | None = None) -> list[int]:
    """Return the numbers of rows, the nearest first."""
    order = np.argsort(distances, kind="stable").tolist()
    return order if among is None else [n for n in order if among[n]]


def _l2(vector: np.ndarray, of: np.ndarray = V) -> np.ndarray:
    return ((of - vector) ** 2).sum(axis=1)


def _request(table: str, kind=spec.QueryTableRequest, **fields):
    return kind(id=[table], **{"vector": NOTHING, "k": 0, **fields})


def _answer(namespace, request) -> pa.Table:
    data = namespace.query_table(request).data
    assert isinstance(data, bytes)
    return pa.ipc.open_file(io.BytesIO(data)).read_all()


def _single(vector: np.ndarray) -> models.QueryTableRequestVector:
    return models.QueryTableRequestVector(single_vector=vector.tolist())


def _words(query: str, columns: list[str] | None = None) -> models.QueryTableRequestFullTextQuery:
    return models.QueryTableRequestFullTextQuery(
        string_query=models.StringFtsQuery(query=query, columns=columns)
    )


def _structured(**query) -> models.QueryTableRequestFullTextQuery:
    return models.QueryTableRequestFullTextQuery(
        structured_query=models.StructuredFtsQuery(query=models.FtsQuery(**query))
    )


# -- rows and columns ----------------------------------------------------------------------------


def test_a_query_of_nothing_in_particular_is_the_whole_table(plain, root):
    assert plain.query().read_all().equals(lance.dataset(root / "plain.lance").to_table())


def test_batches_come_as_lance_makes_them(plain, root):
    direct = lance.dataset(root / "plain.lance").scanner(filter="n % 3 = 0").to_reader()
    assert list(plain.query(where="n % 3 = 0")) == list(direct)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("n", {"n": N}),
        (["digits", "n"], {"digits": DATA["digits"].to_pylist(), "n": N}),
        (["s.a"], {"s.a": N}),
        (["s.`b.c`"], {"s.`b.c`": -N}),
        ({"twice": "n * 2"}, {"twice": N * 2}),
        ({"a": "s.a", "same": "n -- a comment"}, {"a": N, "same": N}),
    ],
    ids=str,
)
def test_columns_are_paths_or_expressions(plain, columns, expected):
    found = plain.query(columns).read_all()
    assert found.column_names == list(expected)
    assert {name: found[name].to_pylist() for name in expected} == {
        name: list(values) for name, values in expected.items()
    }


@pytest.mark.parametrize("limit", [None, 0, 3, ROWS * 2, 2**63, 2**64 - 1])
@pytest.mark.parametrize("offset", [None, 0, 5, ROWS - 1, ROWS * 2])
@pytest.mark.parametrize("where", [None, "n >= 100"])
def test_limit_and_offset_cut_the_rows_that_the_filter_leaves(plain, where, limit, offset):
    left = [n for n in range(ROWS) if where is None or n >= 100]
    end = None if limit is None else (offset or 0) + limit
    assert _n(plain.query("n", where, limit=limit, offset=offset)) == left[offset or 0 : end]


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("n > 297 AND n < 300", lambda n: 297 < n < 300),
        ("title LIKE 'sea3%' or n = 2 -- a comment", lambda n: (n % 2 and n % 7 == 3) or n == 2),
        ("s.a IN (1, 2)", lambda n: n in {1, 2}),
        ("s.`b.c` = -7", lambda n: n == 7),
        ("d = 'half 1 of 2'", lambda n: n >= HALF and n % 3 == 2),
        ("false", lambda n: False),
    ],
)
def test_a_filter_selects_rows_and_counts_them(table, where, holds):
    expected = [n for n in range(ROWS) if holds(n)]
    assert _n(table.query("n", where)) == expected
    assert table.count(where) == len(expected)


def test_row_ids_are_those_of_lance(plain, root):
    direct = lance.dataset(root / "plain.lance").to_table(columns=["n"], with_row_id=True)
    assert plain.query("n", with_row_id=True).read_all().equals(direct)
    assert plain.query([], with_row_id=True).read_all().equals(direct.select(["_rowid"]))


def test_a_query_opens_the_table_once(catalog, monkeypatch):
    opened = []
    real = lance.dataset
    monkeypatch.setattr(lance, "dataset", lambda *a, **k: opened.append(a) or real(*a, **k))
    table = catalog.table("plain")
    opened.clear()
    table.query(where="n > 3", version=1).read_all()
    table.query(vector=V[3]).read_all()
    assert len(opened) == 2


# -- vectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 7, ROWS, ROWS * 3])
def test_the_nearest_are_those_that_numpy_finds(table, k):
    found = table.query(vector=V[3], k=k, nprobes=4).read_all()
    assert found["n"].to_pylist() == _ranked(_l2(V[3]))[:k]
    assert np.allclose(found["_distance"], np.sort(_l2(V[3]))[:k], atol=1e-6)


def test_ten_are_searched_unless_said_and_a_limit_says_it(plain):
    assert _n(plain.query(vector=V[3])) == _ranked(_l2(V[3]))[:10]
    assert _n(plain.query(vector=V[3], limit=4)) == _ranked(_l2(V[3]))[:4]
    assert _n(plain.query(vector=V[3], k=6, limit=4)) == _ranked(_l2(V[3]))[:4]
    assert _n(plain.query(vector=V[3], limit=0)) == []


@pytest.mark.parametrize("index", ["plain", "indexed"])
def test_an_offset_skips_the_nearest_and_as_many_follow(ours, catalog, index):
    """`k` is the "number of results to return", `offset` the "number of results to skip"."""
    ranked = _ranked(_l2(V[3]))
    found = catalog.table(index).query("n", vector=V[3], k=5, offset=2, nprobes=4)
    assert _n(found) == ranked[2:7]
    request = _request(index, vector=_single(V[3]), k=5, offset=2, nprobes=4)
    assert _answer(ours, request)["n"].to_pylist() == ranked[2:7]


@pytest.mark.parametrize(
    "vector",
    [V[3], V[3].tolist(), tuple(V[3]), pa.array(V[3]), DATA["v"][3], list(V[3])],
    ids=["array", "list", "tuple", "arrow", "scalar", "list of scalars"],
)
def test_a_vector_is_given_in_any_form(plain, vector):
    assert _n(plain.query(vector=vector, k=5)) == _ranked(_l2(V[3]))[:5]


@pytest.mark.parametrize("distance", ["l2", "L2", "euclidean", "cosine", "dot"])
def test_distances_are_measured_as_asked(table, distance):
    cosine = 1 - V @ V[3] / np.linalg.norm(V, axis=1) / np.linalg.norm(V[3])
    measured = {"cosine": cosine, "dot": 1 - V @ V[3]}.get(distance, _l2(V[3]))
    found = table.query(vector=V[3], k=9, distance=distance, nprobes=4).read_all()
    assert found["n"].to_pylist() == _ranked(measured)[:9]
    assert np.allclose(found["_distance"], np.sort(measured)[:9], atol=1e-5)


def test_bits_are_compared_by_how_many_differ(several):
    differing = np.unpackbits(BITS ^ BITS[3], axis=1).sum(axis=1)
    found = several.query(vector=BITS[3], vector_column="bits", k=9, distance="hamming")
    assert found.read_all()["_distance"].to_pylist() == np.sort(differing)[:9].tolist()


def test_bounds_keep_distances_from_the_lower_to_below_the_upper(table):
    distances = np.sort(_l2(V[3]))
    low, high = float(distances[4]) + 1e-6, float(distances[20]) + 1e-6
    bounds = {"k": ROWS, "nprobes": 4}
    ranked = _ranked(_l2(V[3]))
    assert _n(table.query(vector=V[3], lower_bound=low, upper_bound=high, **bounds)) == ranked[5:21]
    assert _n(table.query(vector=V[3], lower_bound=low, **bounds)) == ranked[5:]
    assert _n(table.query(vector=V[3], upper_bound=high, **bounds)) == ranked[:21]


def test_a_filter_applies_before_the_search_or_after_it(table):
    ranked = _ranked(_l2(V[3]))
    search = {"vector": V[3], "k": 20, "nprobes": 4, "where": "n >= 300"}
    assert _n(table.query(**search)) == [n for n in ranked if n >= 300][:20]
    assert _n(table.query(**search, prefilter=False)) == [n for n in ranked[:20] if n >= 300]


def test_several_vectors_are_several_searches(table):
    found = table.query("n", vector=V[:3], k=4, nprobes=4).read_all()
    assert found.column_names == ["query_index", "n", "_distance"]
    pairs = list(zip(found["query_index"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert pairs == [(i, n) for i in range(3) for n in _ranked(_l2(V[i]))[:4]]
    cut = table.query("n", vector=V[:3], k=4, nprobes=4, offset=3, limit=2)
    assert _n(cut) == [n for _, n in pairs[3:5]]


@pytest.mark.parametrize("distance", ["l2", "cosine"])
def test_several_vectors_in_a_column_of_lists_are_one_search(several, root, distance):
    def measure(vector: np.ndarray) -> np.ndarray:
        if distance == "l2":
            return _l2(vector)
        return 1 - V @ vector / np.linalg.norm(V, axis=1) / np.linalg.norm(vector)

    # The distance of a row is the sum of those of each vector to the nearest one in the row.
    each = [np.minimum(one, np.roll(one, -1)) for one in (measure(V[3]), measure(V[9]))]
    expected = each[0] + each[1]
    found = several.query(
        "n", vector=[V[3], V[9]], vector_column="many", k=12, offset=2, distance=distance
    ).read_all()
    assert np.allclose(found["_distance"], np.sort(expected)[2:14], atol=1e-5)
    assert "query_index" not in found.column_names


def test_a_column_of_long_numbers_is_searched_with_long_numbers(several):
    nearly = LONG[3].copy()
    nearly[0] += 1e-12
    found = several.query(vector=nearly, vector_column="long", k=1).read_all()
    assert found["n"].to_pylist() == [3]
    assert 0 < found["_distance"][0].as_py() < 1e-20


@pytest.mark.parametrize("column", ["short", "s.`in.side`", "`short`"])
def test_any_column_of_vectors_is_searched(several, column):
    assert _n(several.query(vector=V[3], vector_column=column, k=1)) == [3]


def test_a_column_called_vector_is_searched_where_there_are_several(plain_lake):
    catalog = plain_lake.connect()
    data = pa.table({"n": N, "other": DATA["v"], "vector": _vectors(V[::-1].copy(), pa.float32())})
    found = catalog.create_table("t", data).query("n", vector=V[3], k=1)
    assert _n(found) == [ROWS - 4]


# -- vectors by an index -------------------------------------------------------------------------


def test_an_index_is_used_unless_bypassed(indexed):
    assert "ANN" in indexed.explain(vector=V[3])
    assert "ANN" not in indexed.explain(vector=V[3], bypass_vector_index=True)
    exact = indexed.query("n", vector=V[3], k=50, bypass_vector_index=True)
    assert _n(exact) == _ranked(_l2(V[3]))[:50]


def test_probes_limit_how_much_of_an_index_is_searched(indexed, root):
    dataset = lance.dataset(root / "indexed.lance")

    def direct(**how: int) -> list[int]:
        nearest = {"column": "v", "q": V[3], "k": ROWS, **how}
        return dataset.to_table(columns=["n", "_distance"], nearest=nearest)["n"].to_pylist()

    def query(**how: int) -> list[int]:
        return _n(indexed.query("n", vector=V[3], k=ROWS, **how))

    assert query(nprobes=1) == direct(nprobes=1)
    assert HALF < len(query(nprobes=1)) < ROWS == len(query(nprobes=4))
    assert query(maximum_nprobes=2) == direct(maximum_nprobes=2)
    assert query(minimum_nprobes=1, maximum_nprobes=1) == query(nprobes=1)
    assert len(query(minimum_nprobes=4)) == ROWS
    assert len(query(minimum_nprobes=4, nprobes=1)) == ROWS, "nprobes is ignored beside the others"


def test_a_fast_search_leaves_out_what_no_index_covers(indexed, plain):
    fast = indexed.query("n", vector=V[3], k=20, nprobes=4, fast_search=True)
    assert _n(fast) == [n for n in _ranked(_l2(V[3])) if n < HALF][:20]
    assert _n(plain.query("n", vector=V[3], fast_search=True)) == []
    assert max(_n(indexed.query("n", text="sea3", fast_search=True))) < HALF


@pytest.fixture(scope="module")
def approximate(tmp_path_factory):
    """Tables whose indexes know vectors roughly: by quantization, and by a graph."""
    root = tmp_path_factory.mktemp("approximate") / "lake"
    catalog = mooring.connect(root, manifest_enabled=False)
    for name, kind, how in (
        ("pq", "IVF_PQ", {"num_sub_vectors": 2}),
        ("hnsw", "IVF_HNSW_SQ", {}),
    ):
        table = catalog.create_table(name, DATA.select(["n", "v"]))
        table.to_lance().create_index("v", kind, num_partitions=2, metric="l2", **how)
    return catalog


def test_a_refined_search_is_exact_among_its_candidates(approximate):
    table = approximate.table("pq")
    rough = table.query("n", vector=V[3], k=10, nprobes=2).read_all()
    refined = table.query("n", vector=V[3], k=10, nprobes=2, refine_factor=40).read_all()
    exact = np.sort(_l2(V[3]))[:10]
    assert not np.allclose(rough["_distance"], exact, atol=1e-5)
    assert np.allclose(refined["_distance"], exact, atol=1e-5)
    assert refined["n"].to_pylist() == _ranked(_l2(V[3]))[:10]


def test_a_graph_keeps_as_many_candidates_as_asked(approximate):
    table = approximate.table("hnsw")
    found = _n(table.query("n", vector=V[3], k=10, ef=ROWS, nprobes=2, refine_factor=4))
    assert found == _ranked(_l2(V[3]))[:10]
    for how in ({"ef": 10}, {"ef": 30, "refine_factor": 3}):
        skipping = table.query("n", vector=V[3], k=10, offset=20, nprobes=2, **how)
        assert len(_n(skipping)) == 10
    with pytest.raises(InvalidInputError, match="ef must be"):
        table.query("n", vector=V[3], k=10, ef=2).read_all()


@pytest.mark.parametrize("index", ["pq", "hnsw"])
@pytest.mark.parametrize(
    "how",
    [
        {"k": 2**62},
        {"k": 2**64 - 1},
        {"k": 5, "refine_factor": 2**31},
        {"k": 5, "ef": 2**40},
        {"k": 5, "nprobes": 2**63},
        {"k": 5, "offset": 2**62},
        {"k": 5, "offset": 2**63, "ef": 10, "refine_factor": 2},
    ],
    ids=str,
)
def test_no_number_is_too_large_for_a_search(approximate, index, how):
    """Lance sets aside memory for what is asked for, and aborts the process if there is none."""
    found = approximate.table(index).query("n", vector=V[3], **{"nprobes": 2, **how})
    expected = 0 if "offset" in how else min(how["k"], ROWS)
    assert found.read_all().num_rows == expected


# -- words ---------------------------------------------------------------------------------------

SEA3 = [n for n in range(ROWS) if n % 7 == 3]


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        (Match("sea3", "title"), lambda n: n % 7 == 3),
        (Match("sea3 deep", "title"), lambda n: n % 7 == 3 or n % 2),
        (Match("sea3 deep", "title", operator="And"), lambda n: n % 7 == 3 and n % 2),
        (Match("dxep", "title"), lambda n: False),
        (Phrase("deep blue", "title"), lambda n: n % 2),
        (Phrase("sea3 blue", "title"), lambda n: False),
        (Phrase("sea3 blue", "title", slop=1), lambda n: n % 7 == 3 and n % 2),
        (Boost(Match("sea3", "title"), Match("deep", "title")), lambda n: n % 7 == 3),
        (
            MultiMatch((Match("sea1", "title"), Match("sea1", "body", boost=3.0))),
            lambda n: n % 7 == 1 or n % 3 == 1,
        ),
        (
            MultiMatch((Match("sea3", "title"), Match("ship1", "body"))),
            lambda n: n % 7 == 3 or n % 5 == 1,
        ),
        (
            Boolean(must=(Match("sea3", "title"),), must_not=(Match("deep", "title"),)),
            lambda n: n % 7 == 3 and not n % 2,
        ),
        (
            Boolean(should=(Match("sea3", "title"), Match("ship4", "body"))),
            lambda n: n % 7 == 3 or n % 5 == 4,
        ),
    ],
    ids=_name,
)
def test_words_match_the_rows_that_have_them(table, query, matches):
    found = table.query(["n"], text=query).read_all()
    assert sorted(found["n"].to_pylist()) == [n for n in range(ROWS) if matches(n)]
    assert found.column_names == ["n", "_score"]
    assert found["_score"].to_pylist() == sorted(found["_score"].to_pylist(), reverse=True)


def test_words_are_searched_in_some_columns_or_in_all_that_have_an_index(indexed):
    both = [n for n in range(ROWS) if n % 7 == 1 or n % 3 == 1]
    one = [n for n in range(ROWS) if n % 3 == 1]
    assert sorted(_n(indexed.query(text="sea1"))) == both
    assert sorted(_n(indexed.query(text="sea1", text_columns=["title", "body"]))) == both
    assert sorted(_n(indexed.query(text="sea1", text_columns="body"))) == one
    assert sorted(_n(indexed.query(text=Phrase("deep blue")))) == list(range(1, ROWS, 2))


def test_a_score_is_raised_by_a_boost_and_lowered_by_a_negative_query(indexed):
    plain = indexed.query(text=Match("sea3", "title")).read_all()["_score"]
    raised = indexed.query(text=Match("sea3", "title", boost=3.0)).read_all()["_score"]
    assert np.allclose(np.array(plain) * 3, raised)
    lowered = Boost(Match("sea3", "title"), Match("deep", "title"), negative_boost=0.9)
    found = _n(indexed.query(text=lowered))
    assert [n % 2 for n in found] == sorted(n % 2 for n in found)


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        (Match("dxep", "title", fuzziness=0), lambda n: False),
        (Match("dxep", "title", fuzziness=1), lambda n: n % 2),
        (Match("dxxp", "title", fuzziness=1), lambda n: False),
        (Match("dxxp", "title", fuzziness=2), lambda n: n % 2),
        (Match("xeep", "title", fuzziness=1, prefix_length=1), lambda n: False),
        (Match("dexp", "title", fuzziness=1, prefix_length=2), lambda n: n % 2),
        (Match("ship9", "body", fuzziness=1), lambda n: True),
        (Match("seax", fuzziness=1), lambda n: True),
        (MultiMatch((Match("sea3", "title"), Match("shipx", "body", fuzziness=1))), lambda n: True),
    ],
    ids=_name,
)
def test_words_may_differ_by_letters_where_an_index_covers_them(indexed, query, matches):
    found = _n(indexed.query(text=query, fast_search=True))
    assert sorted(found) == [n for n in range(HALF) if matches(n)]


def test_a_fuzzy_word_expands_to_so_many_words(indexed):
    few = Match("ship9", "body", fuzziness=1, max_expansions=1)
    assert 0 < len(_n(indexed.query(text=few, fast_search=True))) < HALF


def test_a_fuzzy_search_needs_an_index(plain):
    with pytest.raises(InvalidInputError, match="in 'title' needs a full-text index"):
        plain.query(text=Match("dxep", "title", fuzziness=1))


def test_the_best_match_ranks_a_row_that_several_match(indexed):
    words = MultiMatch((Match("sea1", "title"), Match("sea1", "body", boost=9.0)))
    found = _n(indexed.query(text=words))
    in_body = [n % 3 == 1 for n in found]
    assert in_body == sorted(in_body, reverse=True)


def test_a_filter_applies_before_the_best_are_taken_or_after_it(indexed):
    before = indexed.query(where="n >= 300", text="sea3", text_columns="title", limit=5)
    found = _n(before)
    assert len(found) == 5
    assert set(found) <= {n for n in SEA3 if n >= 300}
    everything = indexed.query(where="n >= 300", text="sea3", text_columns="title", prefilter=False)
    assert sorted(_n(everything)) == [n for n in SEA3 if n >= 300]


def test_matches_are_limited_and_skipped(indexed):
    words = {"text": "sea3", "text_columns": "title"}
    ranked = _n(indexed.query(**words))
    assert sorted(ranked) == SEA3
    assert len(_n(indexed.query(**words, limit=5))) == 5
    assert len(_n(indexed.query(**words, limit=50, offset=len(SEA3) - 3))) == 3


@pytest.mark.parametrize("where", [None, "n >= 100"])
def test_with_words_and_a_vector_the_nearest_of_those_that_match_are_found(table, where):
    among = np.array([n % 7 == 3 and (where is None or n >= 100) for n in N])
    found = table.query("n", where, vector=V[3], k=6, text="sea3", text_columns="title", nprobes=4)
    assert _n(found) == _ranked(_l2(V[3]), among)[:6]
    after = table.query(
        "n", vector=V[3], k=99, text=Match("sea3", "title"), prefilter=False, nprobes=4
    )
    assert _n(after) == [n for n in _ranked(_l2(V[3]))[:99] if n % 7 == 3]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            {"match": {"terms": "sea3", "column": "title", "operator": "AND", "boost": 2}},
            Match("sea3", "title", 2, operator="AND"),
        ),
        ({"phrase": {"terms": "deep blue", "slop": 2}}, Phrase("deep blue", slop=2)),
        (
            {"multi_match": {"match_queries": [{"terms": "sea3"}]}},
            MultiMatch((Match("sea3"),)),
        ),
        (
            {
                "boost": {
                    "positive": {"match": {"terms": "a"}},
                    "negative": {"match": {"terms": "b"}},
                }
            },
            Boost(Match("a"), Match("b"), 0.5),
        ),
        (
            {"boolean": {"must": [{"match": {"terms": "a"}}], "must_not": [], "should": []}},
            Boolean(must=(Match("a"),)),
        ),
    ],
)
def test_a_full_text_query_is_read_as_the_specification_writes_it(indexed, written, meant):
    found, expected = (indexed.query("n", text=text).read_all() for text in (written, meant))
    assert _sorted(found) == _sorted(expected)


# -- requests, beside pylance's answers ----------------------------------------------------------

SINGLE = {"vector": _single(V[3]), "vector_column": "v"}
AND = models.MatchQuery(terms="sea3 deep", column="title", operator="And")


@pytest.mark.parametrize("name", ["plain", "indexed"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"k": 5},
        {"k": 5, "offset": 7},
        {"vector": models.QueryTableRequestVector(single_vector=[]), "k": 5},
        {"filter": "n > 300 AND title LIKE 'sea%'"},
        {"with_row_id": True, "k": 3},
        {"columns": models.QueryTableRequestColumns(column_names=["n", "s.a"])},
        {"columns": models.QueryTableRequestColumns(column_names=[]), "k": 3},
        {"columns": models.QueryTableRequestColumns(column_aliases={"b": "n + 1"})},
        {"columns": None, "version": 1},
        {**SINGLE},
        {**SINGLE, "k": 5},
        {**SINGLE, "k": 5, "with_row_id": True},
        {**SINGLE, "k": 5, "columns": models.QueryTableRequestColumns(column_names=["n"])},
        {**SINGLE, "k": 5, "columns": models.QueryTableRequestColumns(column_aliases={"a": "n"})},
        {**SINGLE, "k": 5, "distance_type": "cosine"},
        {**SINGLE, "k": 9, "filter": "n > 100"},
        {**SINGLE, "k": 9, "filter": "n > 100", "prefilter": True},
        {**SINGLE, "k": 300, "lower_bound": 0.2, "upper_bound": 0.4},
        {**SINGLE, "k": 300, "nprobes": 1},
        {**SINGLE, "k": 300, "minimum_nprobes": 2, "maximum_nprobes": 2},
        {**SINGLE, "k": 300, "nprobes": 1, "bypass_vector_index": True},
        {**SINGLE, "k": 300, "nprobes": 4, "fast_search": True},
        {**SINGLE, "k": 5, "refine_factor": 3, "ef": 20},
        {"full_text_query": models.QueryTableRequestFullTextQuery()},
        {"full_text_query": _words("sea3", ["title"])},
        {"full_text_query": _words("sea3 ship1", ["title", "body"])},
        {"full_text_query": _structured(match=AND)},
        {
            "full_text_query": _structured(
                phrase=models.PhraseQuery(terms="sea3 blue", column="title", slop=1)
            )
        },
    ],
    ids=str,
)
def test_requests_are_answered_as_pylance_answers_them(ours, theirs, name, fields):
    request = _request(name, **fields)
    expected, found = _answer(theirs, request), _answer(ours, request)
    assert found.schema.equals(expected.schema)
    assert _sorted(found) == _sorted(expected)


def _sorted(table: pa.Table) -> list[str]:
    """Order rows that have the same score or distance, which no answer promises."""
    return sorted(map(str, table.to_pylist()))


def test_a_request_for_several_vectors_is_answered_for_each(ours):
    """Spec: "Multiple query vectors for batch search"; pylance answers for the first alone."""
    vectors = models.QueryTableRequestVector(multi_vector=V[:2].tolist())
    found = _answer(ours, _request("indexed", vector=vectors, k=3, nprobes=4))
    assert found["query_index"].to_pylist() == [0, 0, 0, 1, 1, 1]
    assert found["n"].to_pylist() == _ranked(_l2(V[0]))[:3] + _ranked(_l2(V[1]))[:3]


def test_a_query_is_asked_with_a_dictionary_too(ours, theirs):
    request = {"id": ["plain"], "vector": {}, "k": 3, "filter": "n > 5"}
    assert _answer(ours, request).equals(_answer(theirs, request))
    assert _answer(ours, {"id": ["plain"], "filter": "n > 390"}).num_rows == 9
    with pytest.raises(spec.InvalidInputError):
        ours.query_table({"id": ["plain"], "k": -1})


def test_zero_is_as_good_as_nothing_said(ours):
    """The specification allows 0; pylance searches nothing, or fails."""
    zeros = {"nprobes": 0, "ef": 0, "refine_factor": 0}
    found, expected = (
        _answer(ours, _request("indexed", **SINGLE, k=5, **how)) for how in (zeros, {})
    )
    assert found.equals(expected)


def test_a_request_without_a_limit_skips_rows_too(ours):
    """Pylance ignores an offset without a limit."""
    assert _answer(ours, _request("plain", offset=ROWS - 2))["n"].to_pylist() == [398, 399]


def test_a_request_for_words_and_a_vector_is_answered(ours):
    request = _request(
        "indexed", **SINGLE, k=4, nprobes=4, full_text_query=_words("sea3", ["title"])
    )
    expected = _ranked(_l2(V[3]), N % 7 == 3)[:4]
    assert _answer(ours, request)["n"].to_pylist() == expected


@pytest.mark.parametrize(
    "query",
    [
        {"match": models.MatchQuery(terms="sea3 deep", column="title", boost=2.0)},
        {"match": models.MatchQuery(terms="sea1")},
        {"match": models.MatchQuery(terms="dxep", column="title", fuzziness=1, prefix_length=1)},
        {"match": models.MatchQuery(terms="ship9", fuzziness=1, max_expansions=9, column="body")},
        {"phrase": models.PhraseQuery(terms="deep blue", column="title")},
        {
            "multi_match": models.MultiMatchQuery(
                match_queries=[
                    models.MatchQuery(terms="sea1", column="title"),
                    models.MatchQuery(terms="sea1", column="body", boost=2.0),
                ]
            )
        },
        {
            "boost": models.BoostQuery(
                positive=models.FtsQuery(match=models.MatchQuery(terms="sea3", column="title")),
                negative=models.FtsQuery(match=models.MatchQuery(terms="deep", column="title")),
                negative_boost=0.2,
            )
        },
        {
            "boolean": models.BooleanQuery(
                must=[models.FtsQuery(match=models.MatchQuery(terms="blue", column="title"))],
                must_not=[models.FtsQuery(match=models.MatchQuery(terms="sea3", column="title"))],
                should=[models.FtsQuery(match=models.MatchQuery(terms="ship1", column="body"))],
            )
        },
    ],
    ids=lambda query: next(iter(query)),
)
def test_structured_full_text_queries_are_answered_as_pylance_does(ours, theirs, query):
    request = _request("indexed", full_text_query=_structured(**query))
    found, expected = _answer(ours, request), _answer(theirs, request)
    assert found.num_rows > 0
    assert _sorted(found) == _sorted(expected)


def test_matches_of_different_words_find_the_rows_that_pylance_finds(ours, theirs):
    matches = [
        models.MatchQuery(terms="sea3", column="title"),
        models.MatchQuery(terms="ship1", column="body", boost=2.0),
    ]
    words = _structured(multi_match=models.MultiMatchQuery(match_queries=matches))
    request = _request("indexed", full_text_query=words)
    found, expected = _answer(ours, request), _answer(theirs, request)
    assert sorted(found["n"].to_pylist()) == sorted(expected["n"].to_pylist())


@pytest.mark.parametrize("verbose", [None, True])
def test_plans_are_those_of_pylance(ours, theirs, verbose):
    request = spec.ExplainTableQueryPlanRequest(
        id=["plain"],
        verbose=verbose,
        query=spec.QueryTableRequest(vector=NOTHING, k=5, filter="n < 10"),
    )
    assert ours.explain_table_query_plan(request) == theirs.explain_table_query_plan(request)
    analysis = ours.analyze_table_query_plan(
        _request("plain", spec.AnalyzeTableQueryPlanRequest, k=5, filter="n < 10")
    )
    assert "output_rows=5" in analysis


def test_people_see_plans_too(plain):
    assert "n < Int64(10)" in plain.explain(where="n < 10", verbose=True)
    assert "output_rows=10" in plain.analyze(where="n < 10")


def test_the_table_of_an_explained_query_is_said_once_or_twice_alike(ours):
    query = spec.QueryTableRequest(id=["plain"], vector=NOTHING, k=1)
    for table in (None, ["plain"]):
        request = spec.ExplainTableQueryPlanRequest(id=table, query=query)
        assert "LanceRead" in ours.explain_table_query_plan(request)
    with pytest.raises(spec.InvalidInputError, match="id"):
        ours.explain_table_query_plan(
            spec.ExplainTableQueryPlanRequest(id=["indexed"], query=query)
        )
    branched = spec.QueryTableRequest(branch="other", vector=NOTHING, k=1)
    with pytest.raises(spec.InvalidInputError, match="branch"):
        ours.explain_table_query_plan(
            spec.ExplainTableQueryPlanRequest(id=["plain"], branch="one", query=branched)
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"columns": models.QueryTableRequestColumns(column_names=["n"], column_aliases={"a": "n"})},
        {
            "vector": models.QueryTableRequestVector(
                single_vector=V[0].tolist(), multi_vector=V[:2].tolist()
            )
        },
        {
            "full_text_query": models.QueryTableRequestFullTextQuery(
                string_query=models.StringFtsQuery(query="sea3"),
                structured_query=models.StructuredFtsQuery(query=models.FtsQuery(match=AND)),
            )
        },
        {"full_text_query": _structured()},
        {"full_text_query": _structured(match=AND, phrase=models.PhraseQuery(terms="a"))},
        {
            "full_text_query": _structured(
                boolean=models.BooleanQuery(must=[], must_not=[], should=[])
            )
        },
        {"full_text_query": _structured(multi_match=models.MultiMatchQuery(match_queries=[]))},
        {"full_text_query": _structured(match=models.MatchQuery(terms="a", operator="xor"))},
        {**SINGLE, "k": 5, "minimum_nprobes": 4, "maximum_nprobes": 2},
        {"nprobes": 3},
        {"distance_type": "l2"},
        {"vector_column": "v"},
        {"bypass_vector_index": True},
    ],
    ids=str,
)
def test_a_request_that_contradicts_itself_is_refused(ours, fields):
    with pytest.raises(spec.InvalidInputError):
        ours.query_table(_request("indexed", **fields))


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        (
            {"columns": ["n", "nope"]},
            TableColumnNotFoundError,
            "no column 'nope'; its columns are n,",
        ),
        ({"columns": ["s.nope"]}, TableColumnNotFoundError, "no column 's.nope'"),
        ({"columns": ["n + 1"]}, TableColumnNotFoundError, "'n + 1'"),
        ({"columns": {"a": "nope + 1"}}, TableColumnNotFoundError, "nope; its columns are n,"),
        ({"columns": {"a": "n +"}}, InvalidInputError, "does not parse"),
        ({"columns": {"a": "n, zero"}}, InvalidInputError, "not supported"),
        ({"columns": {"a": " "}}, InvalidInputError, "empty"),
        ({"columns": ["n", "n"]}, InvalidInputError, "Duplicate"),
        (
            {"where": "nope > 3"},
            TableColumnNotFoundError,
            "No field named nope; its columns are n,",
        ),
        ({"where": "n >"}, InvalidInputError, "the filter 'n >' does not parse: Expected: an exp"),
        ({"where": ""}, InvalidInputError, "the filter is empty"),
        ({"where": "n > 'abc'"}, InvalidInputError, "filter expression n > 'abc': "),
        ({"where": "n > ?"}, InvalidInputError, "cannot plan"),
        ({"where": "(" * 300 + "n > 1" + ")" * 300}, InvalidInputError, "recursion limit"),
        ({"where": "title > 3"}, InvalidInputError, "title > 3"),
        ({"where": "n + 1"}, InvalidInputError, "boolean"),
        ({"where": "nofunction(n)"}, InvalidInputError, "nofunction"),
        ({"where": "n > 3 LIMIT 1"}, InvalidInputError, "Expected: its end, found: LIMIT"),
        ({"where": "n > 3; DROP TABLE t"}, InvalidInputError, "found: ;"),
        ({"where": "n IN (SELECT 1)"}, InvalidInputError, "not supported"),
        ({"where": "sum(n) > 3"}, InvalidInputError, "not implemented"),
        ({"where": "title = 'tag x does not exist' AND"}, InvalidInputError, "does not parse"),
        ({"limit": -1}, InvalidInputError, "limit is -1"),
        ({"offset": -1}, InvalidInputError, "offset is -1"),
        ({"k": 3}, InvalidInputError, "say limit instead"),
        ({"vector": V[3], "k": 0}, InvalidInputError, "k is 0"),
        ({"vector": V[3], "refine_factor": 0}, InvalidInputError, "refine_factor is 0"),
        ({"vector": V[3], "vector_column": "nope"}, TableColumnNotFoundError, "vectors: v"),
        ({"vector": V[3], "vector_column": "n"}, InvalidInputError, "of type int64"),
        ({"vector": V[3][:2]}, InvalidInputError, "has 2 numbers, but those of column 'v' have 8"),
        ({"vector": [V[3], V[3][:2]]}, InvalidInputError, "has 2 numbers"),
        ({"vector": [[]]}, InvalidInputError, "has 0 numbers"),
        ({"vector": "abc"}, InvalidInputError, "list of numbers"),
        ({"vector": [1.0, float("nan")]}, InvalidInputError, "finite"),
        ({"vector": [10**400] * SIZE}, InvalidInputError, "finite"),
        ({"vector": ["a"] * SIZE}, InvalidInputError, "list of numbers"),
        ({"vector": V[3], "distance": "manhattan"}, InvalidInputError, "manhattan"),
        ({"vector": V[3], "distance": "hamming"}, InvalidInputError, "hamming"),
        ({"vector": V[3], "where": "nope > 3"}, TableColumnNotFoundError, "nope"),
        ({"text": "sea"}, InvalidInputError, "no full-text index"),
        ({"text": "sea", "text_columns": "nope"}, TableColumnNotFoundError, "nope"),
        ({"text": "sea", "text_columns": "n"}, InvalidInputError, "'n' must"),
        ({"text": Phrase("sea", "nope")}, TableColumnNotFoundError, "nope"),
        ({"text": {"match": {"terms": "a", "colour": "b"}}}, InvalidInputError, "no match query"),
        ({"text": {"match": {}}}, InvalidInputError, "no match query"),
        ({"text": {"word": "sea"}}, InvalidInputError, "exactly one of match"),
        ({"text": {"match": {"terms": "a"}}, "text_columns": "body"}, InvalidInputError, "words"),
        ({"version": 99}, TableVersionNotFoundError, "99"),
        ({"version": 0}, TableVersionNotFoundError, "0"),
        ({"tag": "nope"}, TableTagNotFoundError, "nope"),
        ({"branch": "nope"}, TableBranchNotFoundError, "nope"),
        ({"tag": "nope", "version": 1}, InvalidInputError, "tag"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_told(plain, how, error, words):
    for ask in (plain.query, plain.explain, plain.analyze):
        with pytest.raises(error) as caught:
            ask(**how)
        assert type(caught.value) is error
        assert words in str(caught.value)
        assert ".rs:" not in str(caught.value)


def test_several_columns_of_vectors_are_named_where_one_must_be_chosen(several, plain):
    with pytest.raises(InvalidInputError, match=r"say which of short, long, bits, many, s\.`in"):
        several.query(vector=V[3])


def test_a_table_without_vectors_says_so(plain_lake):
    table = plain_lake.connect().create_table("t", pa.table({"n": N}))
    with pytest.raises(TableColumnNotFoundError, match="no column of vectors"):
        table.query(vector=V[3])


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("nope > 3", TableColumnNotFoundError),
        ("n >", InvalidInputError),
        ("n > 3 LIMIT 1", InvalidInputError),
        ("n + 1", InvalidInputError),
        ("n > 'abc'", InvalidInputError),
        ("n / zero > 1", InvalidInputError),
        ("n % zero > 1", InvalidInputError),
        ("cast(digits as int) > 3", InvalidInputError),
        ("regexp_match(title, '(')", InvalidInputError),
        ("sum(n) > 3", InvalidInputError),
        ("n > ?", InvalidInputError),
        ("", InvalidInputError),
    ],
)
def test_a_count_refuses_what_a_query_refuses(plain, ours, where, error):
    with pytest.raises(error) as caught:
        plain.count(where)
    assert type(caught.value) is error
    with pytest.raises(spec.LanceNamespaceError) as worded:
        ours.count_table_rows(spec.CountTableRowsRequest(id=["plain"], predicate=where))
    assert worded.value.code == error.code


LATE = 200_000


@pytest.fixture(scope="module")
def late(root):
    """A table whose last row alone cannot be cast, or be a divisor."""
    numbers = np.arange(LATE)
    data = pa.table(
        {"n": numbers, "digits": numbers.astype(str), "zero": (numbers != LATE - 1).astype(int)}
    )
    text = pa.array([*numbers[:-1].astype(str), "tag x does not exist"])
    lance.write_dataset(data.set_column(1, "digits", text), root / "late.lance")


@pytest.mark.parametrize(
    "how",
    [
        {"where": "cast(digits as int) >= 0"},
        {"where": "n / zero >= 0"},
        {"columns": {"a": "n / zero"}},
        {"columns": {"a": "cast(digits as int)"}},
    ],
    ids=str,
)
def test_a_failure_at_the_last_row_comes_after_the_batches_before_it(catalog, late, how):
    rows = catalog.table("late").query(**how)
    assert rows.read_next_batch().num_rows > 0
    with pytest.raises(InvalidInputError) as caught:
        rows.read_all()
    assert type(caught.value) is InvalidInputError
    assert "table 'late'" in str(caught.value)


def test_a_stream_fails_in_the_words_of_the_specification(ours, late):
    request = _request("late", filter="n / zero >= 0")
    rows = ours.query_table_stream(request)
    assert rows.read_next_batch().num_rows > 0
    with pytest.raises(spec.InvalidInputError):
        rows.read_all()
    with pytest.raises(spec.InvalidInputError):
        ours.query_table(request)
    with pytest.raises(spec.TableColumnNotFoundError):
        ours.query_table_stream(_request("late", filter="nope > 3"))


def test_a_stream_is_what_the_file_holds(ours):
    request = _request("plain", filter="n % 3 = 0")
    rows = ours.query_table_stream(request)
    assert isinstance(rows, pa.RecordBatchReader)
    streamed = rows.read_all().unify_dictionaries().combine_chunks()
    assert streamed.to_pylist() == _answer(ours, request).to_pylist()


@pytest.mark.parametrize("body", [None, b"x" * 2000], ids=["gone", "no data"])
def test_data_that_cannot_be_read_is_a_state_of_the_table(plain_lake, body):
    table = plain_lake.connect().create_table("t", pa.table({"n": N}))
    (data,) = [path for path in plain_lake.files("t") if path.startswith("data/")]
    plain_lake.store.delete([f"t.lance/{data}"])
    if body is not None:
        plain_lake.store.put(f"t.lance/{data}", body)
    for ask in (lambda: table.query().read_all(), lambda: table.count("n > 3")):
        with pytest.raises(InvalidTableStateError):
            ask()


# -- every kind of catalog -----------------------------------------------------------------------


@every_kind
def test_a_table_is_read_at_a_version_tag_or_branch(lake):
    lake.create("t", [1, 2, 3])
    dataset = lake.dataset("t")
    dataset.tags.create("first", 1)
    dataset.create_branch("side", 1)
    catalog = lake.connect()
    table = catalog.table("t")
    table.insert(pa.table({"n": [4]}))
    table.insert(pa.table({"n": [9]}), branch="side")
    expected = {
        (): [1, 2, 3, 4],
        (("version", 1),): [1, 2, 3],
        (("tag", "first"),): [1, 2, 3],
        (("branch", "side"),): [1, 2, 3, 9],
        (("branch", "main"),): [1, 2, 3, 4],
    }
    for at, values in expected.items():
        assert _n(table.query("n", "n > 1", **dict(at))) == values[1:]
        assert table.count("n > 1", **dict(at)) == len(values) - 1
    namespace = mooring.DirectoryNamespace(**lake.properties)
    for at in ({}, {"version": 1}, {"branch": "side"}):
        values = expected[tuple(at.items())]
        assert _answer(namespace, _request("t", **at))["n"].to_pylist() == values
        assert _n(namespace.query_table_stream(_request("t", **at))) == values
        counted = namespace.count_table_rows(spec.CountTableRowsRequest(id=["t"], **at))
        assert counted.count == len(values)
        analyzed = _request("t", spec.AnalyzeTableQueryPlanRequest, **at)
        assert f"output_rows={len(values)}" in namespace.analyze_table_query_plan(analyzed)
    for at, code in (({"version": 77}, 11), ({"branch": "nope"}, 22)):
        for ask in (
            lambda at: namespace.query_table(_request("t", **at)),
            lambda at: namespace.count_table_rows(spec.CountTableRowsRequest(id=["t"], **at)),
        ):
            with pytest.raises(spec.LanceNamespaceError) as caught:
                ask(at)
            assert caught.value.code == code


def test_what_is_not_there_is_not_read(plain_lake):
    catalog = plain_lake.connect()
    catalog.declare_table("declared")
    with pytest.raises(MooringError) as caught:
        catalog.table("declared").query()
    assert caught.value.code == 4
    namespace = mooring.DirectoryNamespace(**plain_lake.properties)
    for name in ("declared", "nope"):
        with pytest.raises(spec.TableNotFoundError):
            namespace.query_table(_request(name))
        with pytest.raises(spec.TableNotFoundError):
            namespace.count_table_rows(spec.CountTableRowsRequest(id=[name]))
