"""Changes are written whole, once, and in the order of their commits."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import mooring
from mooring.changes import Batch, ChangeRun, ChangeTable, create_change_table, write_changes
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.log import PartitionLog
from mooring.changes.tidying import tidy
from mooring.changes.writing import store_of
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.metastore.layout import DATA_DIR


def _row(number, item="pen", count=1):
    return {"id": number, "item": item, "count": count}


def _rows(table, **at):
    return sorted(table.to_arrow(**at).to_pylist(), key=lambda row: row["id"])


def _files(lake):
    return {meta.path for meta in store_of(lake).list_prefix(DATA_DIR)}


# -- what changes do -------------------------------------------------------------------------------


def test_each_kind_of_change_does_what_its_word_says(orders):
    orders.upsert([_row(1), _row(2)])
    orders.append([_row(2, "cup")])
    orders.upsert([{"id": 1, "count": 7}])
    orders.delete([{"id": 2}])
    orders.upsert([{"id": 3, "item": "mug"}])
    assert _rows(orders, position=2) == [_row(1), _row(2), _row(2, "cup")]
    assert _rows(orders) == [_row(1, "pen", 7), _row(3, "mug", None)]
    assert orders.position == 5


def test_a_deletion_that_brings_more_columns_than_keys_is_one_by_key(orders):
    orders.upsert([_row(1), _row(2)])
    orders.delete(pa.table({"id": [1], "item": ["whatever"]}))
    assert _rows(orders) == [_row(2)]


def test_rows_come_as_tables_batches_readers_and_dictionaries(orders):
    table = pa.table({"id": [1], "item": ["a"], "count": [1]})
    orders.append(table)
    orders.append(table.to_batches()[0])
    orders.append(table.to_reader())
    orders.append(table.to_pandas())
    orders.append(table.to_pylist())
    assert orders.count() == 5


def test_a_change_without_rows_takes_no_position(orders):
    landed = orders.upsert(pa.table({"id": pa.array([], pa.int64())}))
    assert (landed.position, landed.is_new, orders.position) == (0, False, 0)


def test_smaller_types_are_widened_and_values_that_do_not_fit_refused(orders):
    orders.upsert(pa.table({"id": pa.array([1], pa.int8()), "count": pa.array([3], pa.int32())}))
    assert _rows(orders) == [_row(1, None, 3)]
    with pytest.raises(TableSchemaValidationError, match="column 'count' of change table"):
        orders.upsert(pa.table({"id": [2], "count": ["many"]}))


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "error", "told"),
    [
        ([{"item": "pen"}], InvalidInputError, "lack 'id' of its merge keys: they have item"),
        ([_row(None)], InvalidInputError, "1 of 1 rows .* id is null throughout"),
        ([_row(1), _row(1, "cup")], ConflictError, r"the same id \(id=1\)"),
        ([_row(1) | {"colour": "red"}], TableSchemaValidationError, "no column 'colour'"),
    ],
)
def test_bad_rows_are_refused_and_nothing_is_left(lake, orders, rows, error, told):
    orders.upsert([_row(9)])
    before = _files(lake)
    with pytest.raises(error, match=told):
        orders.upsert(rows)
    assert (_rows(orders), orders.position) == ([_row(9)], 1)
    assert _files(lake) == before


def test_where_the_second_table_is_refused_the_first_has_nothing(lake, orders):
    create_change_table(lake, "shop$stock", pa.schema([("item", pa.string())]), keys=["item"])
    batches = [
        Batch("shop$orders", [_row(1)], "upsert"),
        Batch("shop$stock", [{"item": None}], "upsert"),
    ]
    with pytest.raises(InvalidInputError, match=r"shop.stock"):
        write_changes(lake, batches)
    assert (orders.position, _files(lake)) == (0, set())


def test_a_table_without_keys_takes_no_changes_by_key(lake):
    table = create_change_table(lake, "shop$log", pa.schema([("text", pa.string())]))
    table.append([{"text": "a"}, {"text": "a"}, {"text": None}])
    with pytest.raises(InvalidInputError, match="has no merge keys: it takes append and add"):
        table.upsert([{"text": "b"}])
    assert table.count() == 3


def test_rows_without_the_column_that_they_are_parted_by_are_refused(lake):
    schema = pa.schema([("text", pa.string()), ("on", pa.date32())])
    table = create_change_table(lake, "shop$log", schema, partition_by=["day(on)"])
    with pytest.raises(InvalidInputError, match="lack 'on', by which they are parted"):
        table.append([{"text": "a"}])
    assert table.position == 0


def test_what_is_no_change_table_is_told_so(lake, tmp_path):
    lake.create_table("shop$plain", [{"n": 1}])
    with pytest.raises(InvalidTableStateError, match="takes no changes"):
        ChangeTable(lake, "shop$plain")
    with pytest.raises(TableNotFoundError, match=r"no table 'shop.none'"):
        ChangeTable(lake, "shop$none")
    with pytest.raises(TableAlreadyExistsError, match=r"shop.plain"):
        create_change_table(lake, "shop$plain", pa.schema([("n", pa.int64())]))
    with pytest.raises(NamespaceNotFoundError):
        create_change_table(lake, "nowhere$t", pa.schema([("n", pa.int64())]))
    with pytest.raises(UnsupportedError, match="metastore"):
        create_change_table(mooring.connect(tmp_path / "plain"), "t", pa.schema([("n", "int64")]))
    orders = create_change_table(lake, "shop$orders", pa.schema([("n", pa.int64())]))
    with pytest.raises(InvalidInputError, match="not 'merge'"):
        write_changes(lake, [Batch(orders.id, [], "merge")])


# -- commits ---------------------------------------------------------------------------------------


def test_all_tables_of_a_run_are_one_transaction(lake, orders):
    stock = create_change_table(
        lake, "shop$stock", pa.schema([("item", pa.string()), ("left", pa.int64())]), keys=["item"]
    )
    landed = write_changes(
        lake,
        [
            Batch("shop$orders", [_row(1)], "upsert"),
            Batch("shop$stock", [{"item": "pen", "left": 9}], "upsert"),
            Batch("shop$orders", [{"id": 5}], "delete"),
        ],
        message="one day",
    )
    assert [one.position for one in landed] == [1, 1, 2]
    assert len({one.txn_id for one in landed}) == 1
    assert next(lake.metastore.transactions())[1].message == "one day"
    then = lake.metastore.state_at(txn_id=landed[0].txn_id) - 1
    before = lake.metastore.begin(at=then)
    assert not before.children(orders.at().table.changes)
    assert (orders.count(), stock.count()) == (1, 1)


def test_who_comes_second_gets_the_next_position(lake, orders):
    other = ChangeTable(mooring.connect(lake.uri), "shop$orders")
    with ChangeRun(lake) as run:
        draft = run.draft("shop$orders", "upsert")
        run.add(
            "shop$orders",
            draft,
            [draft.write(pa.table({"id": [1], "count": [5]}).to_batches(), "a")],
        )
        assert other.upsert([_row(1)]).position == 1
        (landed,) = run.commit()
    assert landed.position == 2
    assert _rows(orders) == [_row(1, "pen", 5)]


def test_threads_that_write_at_once_all_get_in(lake, orders):
    def write(number):
        table = ChangeTable(mooring.connect(lake.uri), "shop$orders")
        for step in range(5):
            table.upsert([_row(number * 5 + step)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (orders.position, orders.count()) == (20, 20)


def test_a_named_run_counts_once(lake, orders):
    first = orders.upsert([_row(1)], run="monday")
    again = orders.upsert([_row(1, "cup")], run="monday")
    assert (first.is_new, again.is_new, again.position, again.rows) == (True, False, 1, 1)
    assert (orders.position, _rows(orders)) == (1, [_row(1)])
    assert len(_files(lake)) == 1


def test_a_named_run_that_two_do_at_once_counts_once(lake, orders):
    with ChangeRun(lake, run="monday") as run:
        draft = run.draft("shop$orders", "append")
        run.add("shop$orders", draft, [draft.write(pa.table({"id": [1]}).to_batches(), "a")])
        orders.append([_row(1)], run="monday")
        (landed,) = run.commit()
    assert (landed.is_new, orders.count(), len(_files(lake))) == (False, 1, 1)


def test_a_table_whose_columns_changed_meanwhile_refuses(lake, orders):
    with ChangeRun(lake) as run:
        draft = run.draft("shop$orders", "upsert")
        run.add("shop$orders", draft, [draft.write(pa.table({"id": [1]}).to_batches(), "a")])
        orders.rename_column("id", "number")
        with pytest.raises(ConcurrentModificationError, match="write the rows again"):
            run.commit()
    assert (orders.position, _files(lake)) == (0, set())


def test_a_table_that_was_made_anew_meanwhile_refuses(lake, orders):
    with ChangeRun(lake) as run:
        draft = run.draft("shop$orders", "upsert")
        run.add("shop$orders", draft, [draft.write(pa.table({"id": [1]}).to_batches(), "a")])
        schema = orders.schema
        lake.drop_table("shop$orders")
        create_change_table(lake, "shop$orders", schema, keys=["id"])
        with pytest.raises(ConcurrentModificationError, match="write the rows again"):
            run.commit()
    assert ChangeTable(lake, "shop$orders").position == 0


def test_what_a_vacuum_gave_up_is_not_committed(lake, orders):
    with ChangeRun(lake) as run:
        draft = run.draft("shop$orders", "upsert")
        run.add("shop$orders", draft, [draft.write(pa.table({"id": [1]}).to_batches(), "a")])
        lake.metastore.vacuum(older_than_ms=-60_000)
        with pytest.raises(ConcurrentModificationError):
            run.commit()
    assert orders.position == 0


@pytest.mark.parametrize("failure", [KeyboardInterrupt, UnknownOutcomeError("gone")])
def test_files_of_a_commit_that_nobody_heard_of_stay(lake, orders, monkeypatch, failure):
    commit = lake.metastore.run

    def unheard(*args, **kwargs):
        commit(*args, **kwargs)
        raise failure

    monkeypatch.setattr(lake.metastore, "run", unheard)
    with pytest.raises((KeyboardInterrupt, MooringError)):
        orders.upsert([_row(1)])
    monkeypatch.undo()
    assert _rows(orders) == [_row(1)]


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_known_by_numbers(orders):
    orders.upsert([_row(1, "pen", 3)])
    orders.rename_column("count", "pieces")
    orders.add_columns(
        [pa.field("colour", pa.string()), pa.field("count", pa.int32())], {"colour": "red"}
    )
    orders.upsert([{"id": 2, "pieces": 4, "count": 1}])
    orders.drop_columns(["item"])
    assert _rows(orders) == [
        {"id": 1, "pieces": 3, "colour": "red", "count": None},
        {"id": 2, "pieces": 4, "colour": "red", "count": 1},
    ]
    orders.upsert([{"id": 1, "colour": "blue"}])
    assert _rows(orders)[0] == {"id": 1, "pieces": 3, "colour": "blue", "count": None}


def test_a_wider_key_finds_the_rows_of_the_narrow_one(lake):
    table = create_change_table(
        lake, "shop$t", pa.schema([("id", pa.int32()), ("n", pa.int32())]), keys=["id"]
    )
    table.upsert([{"id": number, "n": 1} for number in range(50)])
    table.widen_column("id", pa.int64())
    table.widen_column("n", pa.int64())
    table.upsert([{"id": number, "n": 2**40} for number in range(0, 50, 2)])
    assert {row["n"] for row in _rows(table)} == {1, 2**40}
    assert table.count() == 50


def test_the_columns_of_then_are_those_of_a_transaction_and_a_time(lake, orders):
    landed = orders.upsert([_row(1)])
    orders.drop_columns(["item"])
    assert _rows(orders, txn_id=landed.txn_id) == [_row(1)]
    assert _rows(orders) == [{"id": 1, "count": 1}]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table.drop_columns(["id"]), "rows are merged, parted or sorted by it"),
        (lambda table: table.drop_columns(["none"]), "there is no column 'none'"),
        (lambda table: table.rename_column("item", "count"), "comes twice"),
        (lambda table: table.widen_column("count", pa.int32()), "may not fit int32"),
        (
            lambda table: table.add_columns([pa.field("n", pa.int64())], {"n": "x"}),
            "default of column 'n'",
        ),
        (
            lambda table: table.add_columns([pa.field("n", pa.int64(), nullable=False)]),
            "needs a default",
        ),
    ],
)
def test_changes_of_columns_that_make_no_sense_are_refused(orders, change, told):
    before = orders.definition
    with pytest.raises(InvalidInputError, match=told):
        change(orders)
    assert orders.definition == before


def test_an_upsert_may_make_a_row_without_a_column_that_takes_no_nulls(lake):
    columns = pa.schema([("id", pa.int64()), pa.field("must", pa.int64(), nullable=False)])
    table = create_change_table(lake, "shop$t", columns, keys=["id"])
    table.upsert(pa.table({"id": [1]}))
    table.upsert(pa.table({"id": [2], "must": [5]}))
    assert sorted(table.to_arrow().to_pylist(), key=str) == [
        {"id": 1, "must": None},
        {"id": 2, "must": 5},
    ]


@pytest.mark.parametrize("value", [None, 1.5, float("nan")])
def test_rows_of_one_key_with_the_same_order_are_refused(lake, value):
    columns = pa.schema([("id", pa.int64()), ("seen", pa.float64()), ("v", pa.int64())])
    table = create_change_table(lake, "shop$t", columns, keys=["id"], order="seen")
    rows = {"id": [1, 1], "seen": pa.array([value, value], pa.float64()), "v": [1, 2]}
    with pytest.raises(ConflictError, match="with the same seen"):
        table.upsert(pa.table(rows))
    table.upsert(pa.table({**rows, "seen": pa.array([1.0, float("nan")])}))
    assert table.to_arrow()["v"].to_pylist() == [2]  # as it is where two changes bring them


def test_a_run_of_other_tables_needs_another_name(lake, orders):
    other = create_change_table(lake, "shop$other", orders.schema, keys=["id"])
    orders.upsert([{"id": 1}], run="nightly")
    both = [Batch(one.id, [{"id": 2}], "upsert") for one in (orders, other)]
    with pytest.raises(
        ConflictError, match=r"'nightly' has changed .*orders' before, and not .*other'"
    ):
        write_changes(lake, both, run="nightly")
    assert (orders.count(), other.count()) == (1, 0)


def test_a_table_is_itself_in_older_states_whatever_it_was_called(lake, orders):
    first = orders.upsert([{"id": 1}])
    lake.rename_table("shop$orders", "shop$renamed")
    renamed = ChangeTable(lake, "shop$renamed")
    renamed.upsert([{"id": 2}])
    assert renamed.to_arrow(txn_id=first.txn_id)["id"].to_pylist() == [1]
    anew = create_change_table(lake, "shop$orders", renamed.schema, keys=["id"])
    anew.upsert([{"id": 3}])
    with pytest.raises(TableNotFoundError, match=r"there was no .*orders' then"):
        anew.to_arrow(txn_id=first.txn_id)


def test_a_table_that_was_elsewhere_and_came_back_is_itself(lake, orders):
    first = orders.upsert([{"id": 1}])
    lake.create_namespace("elsewhere")
    lake.rename_table("shop$orders", "elsewhere$orders")
    moved = ChangeTable(lake, "elsewhere$orders")
    moved.upsert([{"id": 2}])
    with pytest.raises(TableNotFoundError, match="moved here"):
        moved.to_arrow(txn_id=first.txn_id)
    assert moved.to_arrow(position=first.position)["id"].to_pylist() == [1]
    lake.rename_table("elsewhere$orders", "shop$orders")
    assert orders.to_arrow(txn_id=first.txn_id)["id"].to_pylist() == [1]
    assert orders.count() == 2


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("s"), pa.date32(), pa.date64()]
)
def test_times_that_python_does_not_have_are_written_and_found(lake, kind):
    columns = pa.schema([("id", pa.int64()), ("at", kind)])
    table = create_change_table(lake, "shop$t", columns, keys=["id"])
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    late = {pa.date32(): 2**30, pa.date64(): 86_400_000 * 2**30}.get(
        kind, 2**50 if kind == pa.timestamp("s") else 2**60
    )
    numbers = pa.array([late, 0], width)
    table.upsert(pa.table({"id": [1, 2], "at": numbers.view(kind)}))
    assert table.count("at > DATE '2020-01-01'") == 1


def test_wide_rows_are_written_in_several_files(lake, orders, monkeypatch):
    monkeypatch.setattr("mooring.changes.parts._BYTES_A_FILE", 1000)
    batches = pa.table({"id": range(1000), "item": ["x" * 10] * 1000}).to_batches(max_chunksize=100)
    assert orders.upsert(pa.Table.from_batches(batches)).rows == 1000
    assert len(_files(lake)) == 10
    assert orders.count() == 1000


@pytest.mark.parametrize("is_tidied", [False, True])
def test_a_look_at_the_changes_that_was_interrupted_leaves_nothing_half_known(
    orders, monkeypatch, is_tidied
):
    orders.append([_row(1)])
    assert orders.count() == 1
    for number in (2, 3):
        orders.append([_row(number)])
    if is_tidied:
        orders.compact(CompactionPolicy(force=True))
        tidy(orders, keep=2)
    for name in ("add_delta", "add_base"):
        add, left = getattr(PartitionLog, name), [2]

        def interrupted(log, one, add=add, left=left):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            add(log, one)

        monkeypatch.setattr(PartitionLog, name, interrupted)
    for number in (4, 5):
        orders.append([_row(number)])
    with pytest.raises(KeyboardInterrupt):
        orders.count()
    monkeypatch.undo()
    assert orders.count() == 5
