"""What differs between two versions of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mooring.errors import (
    InvalidInputError,
    TableBranchNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from mooring.tables.comparison import RowChanges, compare
from mooring.tables.handle import At
from tests.conformance.content import fill


@pytest.fixture
def table(plain_lake):
    return fill(plain_lake)


def _numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def _schema(diff) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.path, str(one.kind), one.before, one.after) for one in diff.schema]


def test_a_comparison_tells_what_came_and_went(any_lake):
    table = fill(any_lake)
    table.delete("n = 0")
    table.update({"n": "n + 10"}, "n = 5")
    found = table.diff(1, 5)
    assert (found.old, found.new) == (1, 5)
    assert (found.rows_before, found.rows_after) == (2, 5)
    assert found.rows == RowChanges(added=4, deleted=1, updated=1)
    assert (found.files_added, found.files_removed) == (3, 0)
    assert (found.bytes_added > 0, found.bytes_removed) == (True, 0)
    assert found.schema == ()


# -- rows ------------------------------------------------------------------------------------------


def test_nothing_differs_between_a_version_and_itself(table):
    found = table.diff(2, 2)
    assert found.rows == RowChanges()
    assert (found.schema, found.files_added, found.indexes_added) == ((), 0, ())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.insert(_numbers(7, 8, 9)), RowChanges(added=3)),
        (lambda table: table.delete("n >= 2"), RowChanges(deleted=4)),
        (lambda table: table.delete("n = 1"), RowChanges(deleted=1)),
        (lambda table: table.update({"n": "n + 1"}, "n > 3"), RowChanges(updated=2)),
        (lambda table: table.merge(_numbers(5, 6), "n"), RowChanges(added=1, updated=1)),
        (lambda table: table.merge(_numbers(5, 6), "n", update=False), RowChanges(added=1)),
        (lambda table: table.insert(_numbers(1), overwrite=True), RowChanges(1, 6)),
        (lambda table: table.restore(1), RowChanges(deleted=4)),
        (lambda table: table.compact(), RowChanges()),
        (lambda table: table.columns.add({"m": "n + 1"}), RowChanges()),
        (lambda table: table.to_lance().create_scalar_index("n", "BTREE"), RowChanges()),
    ],
    ids=[
        "insert",
        "delete-fragments",
        "delete-rows",
        "update",
        "merge",
        "merge-inserts",
        "overwrite",
        "restore",
        "compact",
        "add-column",
        "index",
    ],
)
def test_rows_are_followed_through_every_operation(table, change, expected):
    change(table)
    found = table.diff(3)
    assert found.rows == expected
    assert found.rows_after - found.rows_before == expected.added - expected.deleted


def test_the_way_back_is_the_way_reversed(table):
    table.delete("n < 2")
    there, back = table.diff(2, 4), table.diff(4, 2)
    assert there.rows == RowChanges(added=2, deleted=2)
    assert back.rows == RowChanges(added=2, deleted=2)
    assert (back.rows_before, back.rows_after) == (there.rows_after, there.rows_before)
    assert (back.files_added, back.files_removed) == (there.files_removed, there.files_added)
    assert table.diff(3, 1).rows == RowChanges(deleted=4)


def test_a_change_beside_a_compaction_is_told_from_it(table):
    table.update({"n": "n + 10"}, "n = 0")
    table.compact()
    table.insert(_numbers(7))
    found = table.diff(3)
    assert found.rows == RowChanges(added=1, updated=1)
    assert found.files_removed == 3


def test_where_versions_in_between_are_gone_updates_are_not_known(table):
    table.tags.create("v1", 1)
    table.update({"n": "n + 10"}, "n = 0")
    table.compact(keep=1)
    found = table.diff("v1")
    assert (found.rows_before, found.rows_after, found.rows.updated) == (2, 6, None)
    assert found.rows.added - found.rows.deleted == 4


def test_columns_that_are_merged_in_place_leave_updates_unknown(plain_lake):
    catalog = plain_lake.connect()
    table = catalog.create_table("t", pa.table({"n": [1, 2], "s": ["a", "b"], "w": [1, 2]}))
    table.merge(pa.table({"n": [1, 2], "s": ["c", "d"]}), "n", insert=False)
    found = table.diff(1)
    assert found.rows_before == found.rows_after
    assert found.rows.updated in {None, 2}


# -- tags and branches -----------------------------------------------------------------------------


def test_tags_and_the_newest_version_are_compared(table):
    table.tags.create("v1", 1)
    table.tags.create("v2", 2)
    assert table.diff("v1", "v2").rows == RowChanges(added=2)
    assert table.diff("v1").rows == RowChanges(added=4)


def test_versions_of_branches_are_compared(table):
    table.branches.create("dev", version=2)
    table.insert(_numbers(7, 8, 9), branch="dev")
    assert table.diff(2, branch="dev").rows == RowChanges(added=3)
    across = compare(table.handle, At(3), At(branch="dev"))
    assert (across.rows_before, across.rows_after) == (6, 7)
    assert (across.rows.added, across.rows.deleted) == (3, 2)
    table.tags.create("d", 3, branch="dev")
    assert compare(table.handle, At(3), At(tag="d")) == across


def test_what_is_not_there_cannot_be_compared(table):
    with pytest.raises(TableVersionNotFoundError):
        table.diff(1, 9)
    with pytest.raises(TableTagNotFoundError):
        table.diff("nope")
    with pytest.raises(TableBranchNotFoundError, match="no branch 'nope'"):
        table.diff(1, branch="nope")
    with pytest.raises(InvalidInputError):
        table.diff(1, branch="..")


# -- schema and indexes ----------------------------------------------------------------------------


def test_changes_of_the_schema_are_told_field_by_field(table):
    table.columns.add({"m": "n + 1", "o": "n + 2"})
    dataset = table.to_lance()
    dataset.alter_columns({"path": "m", "name": "mm"})
    dataset.drop_columns(["o"])
    dataset.alter_columns({"path": "n", "nullable": False})
    assert _schema(table.diff(3, 4)) == [
        ("m", "added", None, "int64"),
        ("o", "added", None, "int64"),
    ]
    assert _schema(table.diff(4, 5)) == [("mm", "renamed", "m", "mm")]
    assert _schema(table.diff(5, 6)) == [("o", "removed", "int64", None)]
    assert _schema(table.diff(6, 7)) == [("n", "nullability", "nullable", "not null")]
    assert _schema(table.diff(3, 7)) == [
        ("n", "nullability", "nullable", "not null"),
        ("mm", "added", None, "int64"),
    ]


def test_types_and_metadata_are_compared(table):
    dataset = table.to_lance()
    dataset.alter_columns({"path": "n", "data_type": pa.int32()})
    dataset.update_field_metadata({"n": {"unit": "m"}})
    dataset.update_schema_metadata({"owner": "alice"})
    assert _schema(table.diff(3, 4)) == [("n", "type", "int64", "int32")]
    assert table.diff(3, 4).rows == RowChanges()
    assert _schema(table.diff(4, 5)) == [("n", "metadata", None, "unit=m")]
    assert _schema(table.diff(5, 6)) == [("", "metadata", None, "owner=alice")]
    assert _schema(table.diff(6, 5)) == [("", "metadata", "owner=alice", None)]


def test_fields_of_structs_are_compared_on_their_own(plain_lake):
    catalog = plain_lake.connect()
    inner = pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int8()))])
    table = catalog.create_table("t", pa.table({"s": pa.array([{"x": 1, "l": [1]}], inner)}))
    wider = pa.struct([("x", pa.int32()), ("y", pa.string())])
    table.insert(pa.table({"s": pa.array([{"x": 1, "y": "a"}], wider)}), overwrite=True)
    assert set(_schema(table.diff(1))) == {
        ("s.l", "removed", "list<item: int8>", None),
        ("s.x", "type", "int64", "int32"),
        ("s.y", "added", None, "string"),
    }


def test_indexes_are_compared_by_name(table):
    table.to_lance().create_scalar_index("n", "BTREE", name="by_n")
    table.to_lance().drop_index("by_n")
    assert (table.diff(3, 4).indexes_added, table.diff(3, 4).indexes_removed) == (("by_n",), ())
    assert (table.diff(4, 5).indexes_added, table.diff(4, 5).indexes_removed) == ((), ("by_n",))
