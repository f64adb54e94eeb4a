"""Changes of a table's rows, through requests and through the friendly interface.

Spec: lance-rest-openapi, InsertIntoTable, MergeInsertIntoTable, UpdateTable, DeleteFromTable,
RestoreTable.
"""

from __future__ import annotations

import threading

import lance_namespace as spec
import pyarrow as pa
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableNotFoundError,
    TableSchemaValidationError,
    TableVersionNotFoundError,
)
from tests.lakes import table_id

ROWS = pa.table({"id": [1, 2, 3], "kind": ["a", "b", "c"]})
T = table_id("t")


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _namespace(lake):
    return spec.connect(lake.kind.namespace, lake.properties)


def _content(table) -> dict[int, str]:
    found = table.to_arrow()
    return dict(zip(found["id"].to_pylist(), found["kind"].to_pylist(), strict=True))


@pytest.fixture
def table(any_lake):
    return any_lake.connect().create_table(any_lake.id("t"), ROWS)


@pytest.fixture
def disk_table(disk_lake):
    return disk_lake.connect().create_table("t", ROWS)


# -- one story on every kind ---------------------------------------------------------------------


def test_rows_come_change_and_go_by_requests(any_lake, table):
    names, t = _namespace(any_lake), any_lake.path("t")
    more = pa.table({"id": [4], "kind": ["d"]})
    inserted = names.insert_into_table(spec.InsertIntoTableRequest(id=t), _ipc(more))
    assert (inserted.num_inserted_rows, inserted.version) == (1, 2)
    merged = names.merge_insert_into_table(
        spec.MergeInsertIntoTableRequest(
            id=t, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True
        ),
        _ipc(pa.table({"id": [4, 5], "kind": ["D", "E"]})),
    )
    assert (merged.num_updated_rows, merged.num_inserted_rows, merged.version) == (1, 1, 3)
    updated = names.update_table(
        spec.UpdateTableRequest(id=t, updates=[["kind", "upper(kind)"]], predicate="id < 3")
    )
    assert (updated.updated_rows, updated.version) == (2, 4)
    deleted = names.delete_from_table(spec.DeleteFromTableRequest(id=t, predicate="id = 3"))
    assert deleted.version == 5
    assert _content(table) == {1: "A", 2: "B", 4: "D", 5: "E"}
    restored = names.restore_table(spec.RestoreTableRequest(id=t, version=1))
    assert restored.transaction_id
    assert _content(table) == {1: "a", 2: "b", 3: "c"}
    assert table.version == 6


def test_rows_come_change_and_go_by_the_friendly_way(table):
    assert table.insert([{"id": 4, "kind": "d"}]).inserted == 1
    assert table.merge([{"id": 4, "kind": "D"}, {"id": 5, "kind": "E"}], "id").updated == 1
    assert table.update({"kind": "upper(kind)"}, "id < 3").updated == 2
    assert table.delete("id = 3").deleted == 1
    assert _content(table) == {1: "A", 2: "B", 4: "D", 5: "E"}
    assert table.restore(1).version == 6
    assert _content(table) == {1: "a", 2: "b", 3: "c"}


def test_first_rows_of_a_declared_table_are_inserted(any_lake):
    names, d = _namespace(any_lake), any_lake.path("d")
    names.declare_table(spec.DeclareTableRequest(id=d))
    done = names.insert_into_table(spec.InsertIntoTableRequest(id=d), _ipc(ROWS))
    assert (done.num_inserted_rows, done.version) == (3, 1)
    assert any_lake.connect().table(d).count() == 3


# -- insert --------------------------------------------------------------------------------------


def test_overwriting_insert_replaces_rows_and_schema(disk_table):
    done = disk_table.insert(pa.table({"other": [7]}), overwrite=True)
    assert (done.inserted, done.version) == (1, 2)
    assert disk_table.schema.names == ["other"]


def test_columns_that_rows_lack_are_null(disk_table):
    disk_table.insert(pa.table({"id": [4]}))
    assert _content(disk_table)[4] is None


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": [4], "other": ["x"]}),
        pa.table({"id": ["four"], "kind": ["d"]}),
    ],
    ids=["unknown column", "other type"],
)
def test_rows_that_do_not_fit_are_refused(disk_table, rows):
    with pytest.raises(TableSchemaValidationError, match="table 't'"):
        disk_table.insert(rows)
    assert disk_table.version == 1


def test_rows_that_cannot_be_read_to_their_end_change_nothing(disk_table):
    def batches():
        yield pa.record_batch({"id": [4], "kind": ["d"]})
        msg = "the source broke"
        raise OSError(msg)

    rows = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    with pytest.raises(InvalidInputError, match="the source broke"):
        disk_table.insert(rows)
    assert disk_table.version == 1


def test_body_that_is_no_arrow_stream_is_refused(disk_lake, disk_table):
    names = _namespace(disk_lake)
    with pytest.raises(spec.errors.InvalidInputError, match="Arrow IPC stream"):
        names.insert_into_table(spec.InsertIntoTableRequest(id=["t"]), b"nonsense")
    with pytest.raises(spec.errors.InvalidInputError, match="use one of append, overwrite"):
        names.insert_into_table(spec.InsertIntoTableRequest(id=["t"], mode="sideways"), _ipc(ROWS))


def test_absent_and_dropped_tables_take_no_rows(disk_lake, disk_table):
    names = _namespace(disk_lake)
    with pytest.raises(spec.errors.TableNotFoundError):
        names.insert_into_table(spec.InsertIntoTableRequest(id=["absent"]), _ipc(ROWS))
    disk_lake.connect().drop_table("t")
    for change in (
        lambda: disk_table.insert(ROWS),
        lambda: disk_table.delete("id = 1"),
        lambda: disk_table.update({"id": "1"}),
        lambda: disk_table.merge(ROWS, "id"),
        lambda: disk_table.restore(1),
    ):
        with pytest.raises(TableNotFoundError, match="was dropped"):
            change()


# -- merge ---------------------------------------------------------------------------------------


def test_merge_updates_only_where_its_condition_holds(disk_table):
    source = pa.table({"id": [1, 2], "kind": ["x", "y"]})
    done = disk_table.merge(source, "id", update_if="source.id > 1", insert=False)
    assert done.updated == 1
    assert _content(disk_table) == {1: "a", 2: "y", 3: "c"}


def test_merge_inserts_only_what_is_not_there(disk_table):
    source = pa.table({"id": [1, 9], "kind": ["x", "y"]})
    done = disk_table.merge(source, "id", update=False)
    assert (done.inserted, done.updated) == (1, 0)
    assert _content(disk_table) == {1: "a", 2: "b", 3: "c", 9: "y"}


def test_merge_deletes_what_the_source_lacks_where_its_condition_holds(disk_table):
    source = pa.table({"id": [1], "kind": ["x"]})
    done = disk_table.merge(source, "id", delete=True, delete_if="id > 2")
    assert done.deleted == 1
    assert _content(disk_table) == {1: "x", 2: "b"}


def test_merge_by_several_columns(disk_table):
    source = pa.table({"id": [1, 1], "kind": ["a", "z"]})
    done = disk_table.merge(source, ["id", "kind"])
    assert (done.updated, done.inserted) == (1, 1)


def test_condition_alone_asks_for_what_it_is_the_condition_of(disk_lake, disk_table):
    """The reference takes a filter for the wish itself."""
    done = _namespace(disk_lake).merge_insert_into_table(
        spec.MergeInsertIntoTableRequest(
            id=["t"], on=["id"], when_matched_update_all_filt="source.id = 2", timeout="30s"
        ),
        _ipc(pa.table({"id": [1, 2], "kind": ["x", "y"]})),
    )
    assert done.num_updated_rows == 1
    assert _content(disk_table)[2] == "y"


def test_merge_without_sense_is_refused(disk_lake, disk_table):
    with pytest.raises(TableColumnNotFoundError, match="no column 'nope'"):
        disk_table.merge(ROWS, "nope")
    with pytest.raises(InvalidInputError, match="would do nothing"):
        disk_table.merge(ROWS, "id", update=False, insert=False)
    with pytest.raises(InvalidInputError, match="needs updates"):
        disk_table.merge(ROWS, "id", update=False, update_if="source.id > 1")
    with pytest.raises(TableColumnNotFoundError):
        disk_table.merge(ROWS, "id", update_if="source.nope > 1")
    with pytest.raises(InvalidInputError, match="multiple source rows"):
        disk_table.merge(pa.concat_tables([ROWS, ROWS]), "id")
    ask = spec.MergeInsertIntoTableRequest
    names = _namespace(disk_lake)
    with pytest.raises(spec.errors.InvalidInputError, match="30s"):
        names.merge_insert_into_table(
            ask(id=["t"], on=["id"], when_matched_update_all=True, timeout="soon"), _ipc(ROWS)
        )
    with pytest.raises(spec.errors.InvalidInputError, match="key"):
        names.merge_insert_into_table(ask(id=["t"], when_matched_update_all=True), _ipc(ROWS))
    assert disk_table.version == 1


# -- update and delete ---------------------------------------------------------------------------


def test_update_that_makes_no_sense_is_refused(disk_table):
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        disk_table.update({"nope": "1"})
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        disk_table.update({"id": "nope + 1"})
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        disk_table.update({"id": "1"}, "nope = 1")
    with pytest.raises(InvalidInputError):
        disk_table.update({"id": "'text'"})
    with pytest.raises(InvalidInputError):
        disk_table.update({"id": "1 +"})
    with pytest.raises(InvalidInputError, match="at least one column"):
        disk_table.update({})
    assert disk_table.version == 1


def test_deletion_needs_a_filter_that_makes_sense(disk_table):
    with pytest.raises(TableColumnNotFoundError, match="nope"):
        disk_table.delete("nope = 1")
    with pytest.raises(InvalidInputError):
        disk_table.delete("id >< 1")
    with pytest.raises(InvalidInputError, match="'true' selects every row"):
        disk_table.delete(" ")
    assert disk_table.version == 1
    assert disk_table.delete("true").deleted == 3
    assert disk_table.count() == 0


def test_update_of_properties_goes_with_that_of_rows(nested):
    table = nested.connect().create_table("t", ROWS)
    names = _namespace(nested)
    ask = spec.UpdateTableRequest
    done = names.update_table(ask(id=["t"], updates=[["kind", "'z'"]], properties={"owner": "ada"}))
    assert (done.updated_rows, done.properties) == (3, {"owner": "ada"})
    only = names.update_table(ask(id=["t"], updates=[], properties={"owner": "ben"}))
    assert (only.updated_rows, only.version, only.properties) == (0, 2, {"owner": "ben"})
    with pytest.raises(spec.errors.TableColumnNotFoundError):
        names.update_table(ask(id=["t"], updates=[["no", "1"]], properties={"owner": "eve"}))
    assert nested.connect().describe_table("t").properties["owner"] == "ben"
    with pytest.raises(spec.errors.InvalidInputError, match="comes twice"):
        names.update_table(ask(id=["t"], updates=[["kind", "'a'"], ["kind", "'b'"]]))
    assert set(_content(table).values()) == {"z"}


def test_refused_properties_leave_the_rows_alone(plain_lake):
    table = plain_lake.connect().create_table("t", ROWS)
    ask = spec.UpdateTableRequest(id=["t"], updates=[["kind", "'z'"]], properties={"a": "b"})
    with pytest.raises(spec.errors.UnsupportedOperationError, match="keeps no properties"):
        _namespace(plain_lake).update_table(ask)
    assert table.version == 1


# -- versions and branches -----------------------------------------------------------------------


def test_restore_of_what_is_not_there_is_refused(disk_table):
    with pytest.raises(TableVersionNotFoundError, match="no version 9"):
        disk_table.restore(9)


def test_changes_of_a_branch_leave_main_alone(any_lake, table):
    any_lake.dataset("t").create_branch("dev")
    table.insert(pa.table({"id": [4], "kind": ["d"]}), branch="dev")
    table.update({"kind": "'x'"}, "id = 1", branch="dev")
    table.delete("id = 2", branch="dev")
    assert _content(table) == {1: "a", 2: "b", 3: "c"}
    found = table.to_lance(branch="dev").to_table()
    assert sorted(found["id"].to_pylist()) == [1, 3, 4]
    table.insert(pa.table({"id": [5], "kind": ["e"]}), branch="main")
    assert table.count() == 4


def test_absent_branch_is_told(disk_table):
    for change in (
        lambda: disk_table.insert(ROWS, branch="nope"),
        lambda: disk_table.delete("id = 1", branch="nope"),
        lambda: disk_table.restore(1, branch="nope"),
    ):
        with pytest.raises(TableBranchNotFoundError, match="nope"):
            change()


# -- who wrote, and at the same time -------------------------------------------------------------


def test_inserts_are_in_the_history_with_their_author(disk_lake, disk_table):
    table = disk_lake.connect(author="ben").table("t")
    table.insert(pa.table({"id": [4], "kind": ["d"]}))
    writes = [change for change in table.history() if change.version == 2]
    assert [change.by for change in writes] == ["ben"]


def test_threads_that_append_lose_nothing(disk_lake, disk_table):
    """Each thread has a catalog of its own; a caller may retry a conflict."""
    failures: list[Exception] = []

    def append(start: int) -> None:
        table = disk_lake.connect().table("t")
        for number in range(start, start + 5):
            while True:
                try:
                    table.insert(pa.table({"id": [number], "kind": ["t"]}))
                except ConcurrentModificationError:
                    continue
                except Exception as exc:  # noqa: BLE001  # told to the test
                    failures.append(exc)
                break

    threads = [threading.Thread(target=append, args=(start,)) for start in (100, 200, 300, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = sorted(disk_table.to_arrow()["id"].to_pylist())
    assert found == [1, 2, 3, *(start + n for start in (100, 200, 300, 400) for n in range(5))]
    versions = [one.version for one in disk_table.versions()]
    assert versions == list(range(21, 0, -1))


def test_conflicting_changes_are_told_as_such(disk_lake, disk_table):
    """An append to rows that were overwritten meanwhile: Lance cannot do both."""

    def append() -> None:
        with disk_lake.connect().table("t").handle.changing() as dataset:
            disk_table.insert(pa.table({"id": [9], "kind": ["z"]}), overwrite=True)
            dataset.insert(pa.table({"id": [4], "kind": ["d"]}))

    with pytest.raises(ConcurrentModificationError):
        append()
    assert _content(disk_table) == {9: "z"}
