"""Statistics of a table.

Spec: lance-rest-openapi, GetTableStats.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace_urllib3_client import models

from mooring.errors import TableBranchNotFoundError, TableNotFoundError
from mooring.tables.stats import Lengths
from tests.conformance.content import ask, fails_with, fill


def _both(lake):
    """Ask Mooring and pylance about the same table."""
    asked = models.GetTableStatsRequest(id=["t"])
    theirs = DirectoryNamespace(root=lake.uri).get_table_stats(asked)
    return ask(lake, "get_table_stats"), theirs


def test_statistics_tell_rows_bytes_fragments_and_indexes(any_lake):
    """Spec: GetTableStats."""
    table = fill(any_lake, rows=10)
    table.to_lance().create_scalar_index("n", "BTREE")
    found = ask(any_lake, "get_table_stats")
    assert (found.num_rows, found.num_indices) == (30, 1)
    assert found.total_bytes > 0
    assert found.fragment_stats.num_fragments == 3
    assert found.fragment_stats.num_small_fragments == 3
    assert found.fragment_stats.lengths.model_dump() == {
        "min": 10, "max": 10, "mean": 10, "p25": 10, "p50": 10, "p75": 10, "p99": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    "lengths", [(5,), (1, 2), (3, 1, 2), (100, 10, 20, 30), (7, 7, 1, 90, 3, 12, 44, 2, 5, 6)]
)
def test_statistics_are_those_of_pylance(plain_lake, lengths):
    catalog = plain_lake.connect()
    table = catalog.create_table("t", pa.table({"n": range(lengths[0])}))
    for length in lengths[1:]:
        table.insert(pa.table({"n": range(length)}))
    ours, theirs = _both(plain_lake)
    assert ours == theirs


def test_a_fragment_of_a_million_rows_is_not_small(plain_lake):
    table = plain_lake.connect().create_table("t", pa.table({"n": [1] * (1024 * 1024)}))
    table.insert(pa.table({"n": [1] * (1024 * 1024 - 1)}))
    ours, theirs = _both(plain_lake)
    assert ours == theirs
    assert ours.fragment_stats.num_small_fragments == 1


def test_an_empty_table_has_statistics(plain_lake):
    table = fill(plain_lake)
    table.delete("true")
    ours, theirs = _both(plain_lake)
    assert ours == theirs
    assert table.stats().lengths == Lengths()


def test_deleted_rows_are_no_rows_of_the_table(plain_lake):
    """In pylance they are: it counts what is in files. All else is the same."""
    table = fill(plain_lake, rows=10)
    table.delete("n % 2 = 0")
    ours, theirs = _both(plain_lake)
    assert (ours.num_rows, theirs.num_rows) == (15, 30)
    assert ours.model_copy(update={"num_rows": 30}) == theirs
    assert table.stats().deleted_rows == 15


def test_statistics_are_of_the_branch_that_was_asked_for(plain_lake):
    table = fill(plain_lake, rows=10)
    table.branches.create("dev", version=1)
    table.insert(pa.table({"n": [1, 2, 3]}), branch="dev")
    assert ask(plain_lake, "get_table_stats", branch="dev").num_rows == 13
    assert ask(plain_lake, "get_table_stats", branch="main").num_rows == 30
    assert table.stats(branch="dev").versions == 2
    with fails_with(22):
        ask(plain_lake, "get_table_stats", branch="nope")
    with pytest.raises(TableBranchNotFoundError):
        table.stats(branch="nope")


def test_people_also_see_versions_and_files(plain_lake):
    table = fill(plain_lake)
    table.columns.add({"m": "n + 1"})
    found = table.stats()
    data = [name for name in plain_lake.files("t") if name.startswith("data/")]
    assert (found.version, found.versions, found.data_files) == (4, 4, len(data))
    sizes = [plain_lake.store.head(f"t.lance/{name}").size_bytes for name in data]
    assert found.file_bytes == sum(sizes)


def test_a_table_without_data_has_no_statistics(plain_lake):
    plain_lake.connect().declare_table("t")
    with fails_with(4):
        ask(plain_lake, "get_table_stats")
    with pytest.raises(TableNotFoundError, match="only declared"):
        plain_lake.connect().table("t").stats()
