"""Drop, undrop, rename, protect and purge of change tables, beside those of Lance."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mooring.changes import ChangeTable, create_change_table, list_change_tables, write_changes
from mooring.changes.writing import Batch
from mooring.errors import (
    InvalidTableStateError,
    NamespaceNotEmptyError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.namespace.states import Exists, NotFound, SoftDeleted

ROWS = [{"id": n, "item": "pen", "count": n} for n in range(5)]


@pytest.fixture
def orders(orders):
    orders.upsert(ROWS)
    return orders


def test_a_dropped_table_is_gone_with_a_hint_and_comes_back(lake, orders):
    lake.drop_table("shop$orders")
    hint = r"was dropped .* ago; bring it back with \"mooring table undrop 'shop\$orders'\""
    for act in (
        orders.count,
        lambda: orders.upsert(ROWS),
        lambda: ChangeTable(lake, "shop$orders"),
    ):
        with pytest.raises(TableNotFoundError, match=hint):
            act()
    assert isinstance(lake.table_status("shop$orders"), SoftDeleted)
    assert [str(one.id) for one in lake.list_purgable_tables()] == ["shop$orders"]
    assert list_change_tables(lake) == []
    lake.undrop_table("shop$orders")
    assert orders.count() == 5
    assert isinstance(lake.table_status("shop$orders"), Exists)
    orders.upsert([{"id": 9, "item": "cup", "count": 1}])
    assert orders.count() == 6


def test_a_dropped_name_is_free(lake, orders):
    lake.drop_table("shop$orders")
    again = create_change_table(lake, "shop$orders", orders_schema(), keys=["id"])
    assert again.count() == 0
    with pytest.raises(TableAlreadyExistsError):
        lake.undrop_table("shop$orders")
    lake.undrop_table("shop$orders", "shop$older")
    assert ChangeTable(lake, "shop$older").count() == 5


def orders_schema():
    return pa.schema([("id", pa.int64()), ("v", pa.int64())])


def test_a_renamed_table_keeps_its_rows_and_positions(lake, orders):
    lake.create_namespace("other")
    orders.delete([{"id": 1, "item": None, "count": None}])
    lake.rename_table("shop$orders", "shop$sales")
    lake.rename_table("shop$sales", "other$sales")
    moved = ChangeTable(lake, "other$sales")
    assert (moved.count(), moved.position) == (4, 2)
    assert moved.to_arrow(position=1).num_rows == 5
    moved.upsert(ROWS)
    assert moved.count() == 5
    with pytest.raises(TableNotFoundError, match="there is no table"):
        orders.count()


def test_a_protected_table_is_not_dropped(lake, orders):
    lake.protect_table("shop$orders")
    lake.update_table("shop$orders", {"owner": "ada"})
    with pytest.raises(ProtectedError):
        lake.drop_table("shop$orders")
    with pytest.raises(ProtectedError):
        lake.drop_namespace("shop", cascade=True)
    lake.protect_table("shop$orders", protected=False)
    lake.drop_table("shop$orders")
    assert orders.id not in list_change_tables(lake)


def test_a_namespace_goes_and_comes_back_with_its_change_tables(lake, orders):
    with pytest.raises(NamespaceNotEmptyError):
        lake.drop_namespace("shop")
    lake.drop_namespace("shop", cascade=True)
    with pytest.raises(TableNotFoundError, match=r"with namespace 'shop'; .*namespace undrop"):
        orders.count()
    assert lake.undrop_namespace("shop") == 2
    assert orders.count() == 5


def test_a_purge_deletes_the_files_and_leaves_those_of_others(lake, orders, tmp_path):
    other = create_change_table(lake, "shop$other", orders_schema(), keys=["id"])
    batches = [Batch(orders.id, ROWS, "append"), Batch(other.id, [{"id": 1, "v": 2}], "upsert")]
    write_changes(lake, batches)
    lake.create_table("shop$lance", [{"id": 1}])
    assert len(_files(tmp_path)) == 3
    lake.drop_table("shop$orders")
    told = []
    lake.purge_table("shop$orders", lambda *step: told.append(step))
    assert [(str(name), files) for name, files, _ in told] == [("shop$orders", 2)]
    assert len(_files(tmp_path)) == 1
    assert other.count() == 1
    assert lake.table("shop$lance").count() == 1
    assert isinstance(lake.table_status("shop$orders"), NotFound)
    with pytest.raises(TableNotFoundError, match="there is no table"):
        orders.count()


def _files(tmp_path):
    return list((tmp_path / "lake" / "_data").rglob("*.parquet"))


def test_what_is_expired_is_purged_with_its_namespace(lake, orders, tmp_path):
    lake.drop_namespace("shop", cascade=True, ttl="0s")
    assert [str(one) for one in lake.purge_tables().purged] == ["shop$orders"]
    assert _files(tmp_path) == []
    lake.create_namespace("shop")
    assert list_change_tables(lake) == []


def test_a_purge_cut_off_before_the_files_is_finished_by_a_vacuum(
    lake, orders, tmp_path, monkeypatch
):
    def fail(*_):
        raise KeyboardInterrupt

    lake.drop_table("shop$orders")
    with monkeypatch.context() as patch:
        patch.setattr(type(lake.metastore), "delete_unnamed", fail)
        with pytest.raises(KeyboardInterrupt):
            lake.purge_table("shop$orders")
    assert len(_files(tmp_path)) == 1
    found = lake.metastore.vacuum(older_than_ms=-60_000)
    assert len(found) == 1
    assert _files(tmp_path) == []


def test_lance_sees_no_change_tables_and_says_what_they_are(lake, orders):
    lake.create_table("shop$lance", [{"id": 1}])
    assert lake.list_tables("shop") == ["lance"]
    assert [str(one) for one in lake.list_all_tables()] == ["shop$lance"]
    with pytest.raises(TableNotFoundError, match="is a table of changes, and none of Lance"):
        lake.table("shop$orders").count()
    with pytest.raises(InvalidTableStateError, match="it is a Lance table"):
        ChangeTable(lake, "shop$lance")
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table("shop$orders", [{"id": 1}])
    with pytest.raises(TableAlreadyExistsError):
        create_change_table(lake, "shop$lance", orders_schema())
    assert [str(name) for name, _ in lake.backend.states()] == ["shop$lance", "shop$orders"]


def test_the_life_of_a_change_table_is_told(lake, orders):
    lake.drop_table("shop$orders")
    lake.undrop_table("shop$orders")
    told = [change.action for change in lake.backend.table_history(orders.id)]
    assert told[-2:] == ["drop", "undrop"]
