"""Outputs of a run become visible together or not at all; a run counts once, and goes on."""

import threading

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.replacement import replace
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    MooringError,
    NamespaceNotFoundError,
    NotFoundError,
    TableNotFoundError,
)
from mooring.pipelines import list_runs, load_pipeline, plan_run, run_pipeline
from mooring.store import open_store
from tests.pipelines.conftest import PLAIN
from tests.pipelines.direct import DirectEngine, do, rows_of

ORDERS = [(1, 10), (2, 20)]
ITEMS = [(1, "tea"), (2, "gin"), (2, "rum")]


def nothing_is_visible(catalog):
    return rows_of(catalog, "shop$orders") is None and rows_of(catalog, "shop$items") is None


def test_both_outputs_come_in_one_transaction(lake, plain):
    report, written = do(lake)
    assert report.is_new
    assert written == ["orders", "items"]
    assert rows_of(lake, "shop$orders") == ORDERS
    assert rows_of(lake, "shop$items") == ITEMS
    # The first entry is the namespace's.
    ((_, record),) = lake.metastore.transactions(1)
    assert record.txn_id == report.record.txn_id
    assert [one.position for one in report.record.outputs] == [1, 1]
    assert [one.rows for one in report.record.outputs] == [2, 3]
    assert all(one.is_created for one in report.record.outputs)


def test_repeated_run_changes_nothing(lake, plain):
    first, _ = do(lake)
    before = lake.metastore.chain.refresh()
    again, written = do(lake)
    assert not again.is_new
    assert again.record == first.record
    assert written == []
    assert lake.metastore.chain.refresh() == before


def test_run_is_another_with_other_files_parameters_or_definition(lake, plain, write):
    def run_id():
        return plan_run(lake, load_pipeline(plain)).run

    first = run_id()
    write("pipeline.yaml", "# a remark\ndescription: Words.\n" + plain.read_text())
    assert run_id() == first
    write("orders.csv", "id,amount\n1,11\n")
    second = run_id()
    write("pipeline.yaml", PLAIN.replace("change: upsert", "change: append"))
    assert len({first, second, run_id()}) == 3


def test_again_and_an_id_of_its_own_make_new_runs(lake, plain):
    first, _ = do(lake)
    second, _ = do(lake, again=True)
    third, _ = do(lake, run="by-hand")
    assert [one.record.run for one in (second, third)] == [f"{first.record.run}-2", "by-hand"]
    assert rows_of(lake, "shop$items") == sorted(3 * ITEMS)
    assert rows_of(lake, "shop$orders") == ORDERS
    known, written = do(lake, run="by-hand")
    assert (known.is_new, written) == (False, [])
    with pytest.raises(InvalidInputError, match="leave one out"):
        do(lake, run="x", again=True)
    with pytest.raises(InvalidInputError, match="cannot name a run"):
        do(lake, run="a/b")


@pytest.mark.parametrize("fails_at", ["orders", "items"])
def test_output_that_cannot_be_written_leaves_nothing_and_the_run_goes_on(lake, plain, fails_at):
    def fail(name):
        if name == fails_at:
            raise MooringError("the disk is full")

    with pytest.raises(MooringError, match=r"line [78], .*output 'shop\$.*': the disk is full"):
        do(lake, before_write=fail)
    assert nothing_is_visible(lake)
    (record,) = list_runs(lake)
    assert (record.state, record.attempts) == ("failed", 1)
    assert record.error.endswith("the disk is full")
    report, written = do(lake)
    # What was written before is not computed again.
    assert written == (["items"] if fails_at == "items" else ["orders", "items"])
    assert report.record.attempts == 2
    assert [one.was_kept for one in report.record.outputs] == [fails_at == "items", False]
    assert (rows_of(lake, "shop$orders"), rows_of(lake, "shop$items")) == (ORDERS, ITEMS)
    assert lake.metastore.vacuum(older_than_ms=-1000, dry_run=True) == []


def test_row_without_key_or_with_anothers_leaves_nothing(lake, plain, write):
    write("orders.csv", "id,amount\n1,10\n1,20\n")
    with pytest.raises(ConflictError, match=r"line 7, .*have the same id"):
        do(lake)
    write("orders.csv", "id,amount\n1,10\n,20\n")
    with pytest.raises(InvalidInputError, match=r"line 7, .*1 of 2 rows .* have no key"):
        do(lake)
    write("orders.csv", "no,amount\n1,10\n")
    with pytest.raises(MooringError, match=r"line 7, .*id"):
        do(lake)
    assert nothing_is_visible(lake)
    assert [one.state for one in list_runs(lake)] == ["failed"] * 3


def test_table_that_is_changed_meanwhile_refuses_the_commit(lake, plain):
    create_change_table(lake, "shop$items", pa.schema([("id", pa.int64()), ("item", pa.string())]))

    def meddle(name):
        if name == "items":
            mine = mooring.connect(lake.uri)
            schema = pa.schema([("id", pa.int64()), ("amount", pa.int32())])
            create_change_table(mine, "shop$orders", schema, keys=["id"])

    with pytest.raises(ConcurrentModificationError, match="made or changed while the run wrote"):
        do(lake, before_write=meddle)
    assert rows_of(lake, "shop$orders") == rows_of(lake, "shop$items") == []
    (record,) = list_runs(lake)
    assert record.state == "failed"


def test_files_for_a_table_that_is_another_now_are_written_again(lake, plain):
    def fail(name):
        if name == "items":
            raise MooringError("no")

    with pytest.raises(MooringError, match="no"):
        do(lake, before_write=fail)
    schema = pa.schema([("amount", pa.int64()), ("id", pa.int64())])
    create_change_table(lake, "shop$orders", schema, keys=["id"])
    report, written = do(lake)
    assert written == ["orders", "items"]
    assert [one.is_created for one in report.record.outputs] == [False, True]
    assert rows_of(lake, "shop$orders") == [(10, 1), (20, 2)]


def test_two_outputs_may_make_one_table(lake, plain, write):
    text = PLAIN.replace("shop$items, change: append, create: {}", "shop$orders, change: delete")
    write("items.csv", "id\n2\n")
    path = write("pipeline.yaml", text.replace("delete", "delete, create: {keys: id, buckets: 2}"))
    report, _ = do(lake, path)
    assert [one.position for one in report.record.outputs] == [1, 2]
    assert [one.is_created for one in report.record.outputs] == [True, False]
    assert rows_of(lake, "shop$orders") == [(1, 10)]


def test_files_that_a_vacuum_took_are_written_again(lake, plain):
    def fail(name):
        if name == "items":
            raise MooringError("no")

    with pytest.raises(MooringError, match="no"):
        do(lake, before_write=fail)
    lake.metastore.vacuum(older_than_ms=-1000)

    def vacuum(name):
        if name == "items" and not taken:
            taken.append(name)
            mooring.connect(lake.uri).metastore.vacuum(older_than_ms=-1000)

    taken = []
    report, written = do(lake, before_write=vacuum)
    # The first vacuum came before the run, the second after it had written the first output.
    assert written == ["orders", "items", "orders"]
    assert report.is_new
    assert rows_of(lake, "shop$orders") == ORDERS
    assert lake.metastore.vacuum(older_than_ms=-1000, dry_run=True) == []


def test_two_same_runs_at_once_count_once(lake, plain):
    together = threading.Barrier(2)
    reports = []

    def run():
        mine = mooring.connect(lake.uri, author="other")
        plan = plan_run(mine, load_pipeline(plain))
        engine = DirectEngine(mine, plan, lambda name: name == "items" and together.wait())
        reports.append(run_pipeline(mine, plan, lambda: engine))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.is_new for one in reports) == [False, True]
    assert reports[0].record == reports[1].record
    assert rows_of(lake, "shop$items") == ITEMS
    assert lake.metastore.vacuum(older_than_ms=-1000, dry_run=True) == []


def test_file_that_changes_while_it_is_read_is_refused(lake, plain, write):
    def change(name):
        if name == "items":
            write("orders.csv", "id,amount\n1,10\n2,20\n3,30\n")

    with pytest.raises(InvalidInputError, match="was changed while the run read it"):
        do(lake, before_write=change)
    assert nothing_is_visible(lake)
    report, written = do(lake)
    assert written == ["orders", "items"]
    assert report.record.attempts == 1


def test_changes_are_read_once(lake, write):
    source = create_change_table(
        lake, "shop$news", pa.schema([("id", pa.int64()), ("what", pa.string())])
    )
    create_change_table(lake, "shop$seen", source.schema)
    write(
        "pipeline.yaml",
        """
        name: follow
        sources: {news: {changes: shop$news}}
        outputs: [{from: news, table: shop$seen, change: append}]
        """,
    )
    source.append([{"id": 1, "what": "a"}])
    source.append([{"id": 2, "what": "b"}])
    first, _ = do(lake)
    assert first.record.inputs[0].shown == "positions 1 to 2"
    # Nothing is left to read: it is the same run.
    again, _ = do(lake)
    assert (again.is_new, again.record.run) == (False, first.record.run)
    source.append([{"id": 3, "what": "c"}])
    second, _ = do(lake)
    assert second.record.inputs[0].version["after"] == 2
    assert rows_of(lake, "shop$seen") == [(1, "a"), (2, "b"), (3, "c")]
    repeated, _ = do(lake, again=True)
    assert repeated.record.inputs[0].shown == "position 3"
    assert rows_of(lake, "shop$seen") == [(1, "a"), (2, "b"), (3, "c"), (3, "c")]


def test_rows_that_were_replaced_are_no_changes_and_are_passed_over_on_demand(lake, write):
    source = create_change_table(lake, "shop$news", pa.schema([("id", pa.int64())]))
    create_change_table(lake, "shop$seen", source.schema)
    text = """
        name: follow
        sources: {news: {changes: shop$news}}
        outputs: [{from: news, table: shop$seen, change: append}]
        """
    write("pipeline.yaml", text)
    source.append([{"id": 1}])
    do(lake)
    replace(source, [{"id": 2}])
    source.append([{"id": 3}])
    with pytest.raises(InvalidInputError, match=r"line 2, .*replaced at position 2.*'after: 2'"):
        do(lake)
    report, _ = do(lake, write("pipeline.yaml", text.replace("news}", "news, after: 2}")))
    assert report.record.inputs[0].shown == "position 3"
    assert rows_of(lake, "shop$seen") == [(1,), (3,)]


def test_of_two_runs_that_read_the_same_changes_one_is_refused(lake, write):
    source = create_change_table(lake, "shop$news", pa.schema([("id", pa.int64())]))
    create_change_table(lake, "shop$seen", source.schema)
    write(
        "pipeline.yaml",
        """
        name: follow
        sources: {news: {changes: shop$news}}
        outputs: [{from: news, table: shop$seen, change: append}]
        """,
    )
    source.append([{"id": 1}])
    early = plan_run(lake, load_pipeline("pipeline.yaml"))
    source.append([{"id": 2}])
    do(lake)
    with pytest.raises(ConcurrentModificationError, match=r"has read changes of 'shop.news'"):
        run_pipeline(lake, early, lambda: DirectEngine(lake, early))
    assert rows_of(lake, "shop$seen") == [(1,), (2,)]


def test_publishing_follows_the_run_and_is_made_up_for(lake, plain, write):
    lake.create_table("shop$pub", pa.table({"mine": [1]}))
    publish = "create: {keys: id, buckets: 2}, publish: {into: shop$pub}"
    text = PLAIN.replace("create: {keys: id, buckets: 2}", publish)
    path = write("pipeline.yaml", text)
    with pytest.raises(ConflictError, match=r"line 7, .*the run is done, but 'shop\$orders' could"):
        do(lake, path)
    assert rows_of(lake, "shop$orders") == ORDERS
    (record,) = list_runs(lake)
    assert (record.state, record.outputs[0].published) == ("done", None)
    lake.drop_table("shop$pub")
    report, written = do(lake, path)
    assert (report.is_new, written) == (False, [])
    assert report.record.outputs[0].published == "shop$pub version 1"
    assert list_runs(lake) == [report.record]
    assert sorted(row["id"] for row in lake.table("shop$pub").to_arrow().to_pylist()) == [1, 2]
    version = lake.table("shop$pub").version
    do(lake, path)
    assert lake.table("shop$pub").version == version


def test_replace_and_delete_change_tables_that_are_there(lake, plain, write):
    do(lake)
    write("orders.csv", "id\n2\n")
    write("items.csv", "id,item\n9,ale\n")
    text = PLAIN.replace("change: upsert", "change: delete").replace("append", "replace")
    report, _ = do(lake, write("pipeline.yaml", text))
    assert rows_of(lake, "shop$orders") == [(1, 10)]
    assert rows_of(lake, "shop$items") == [(9, "ale")]
    assert [one.position for one in report.record.outputs] == [2, 2]
    assert len(ChangeTable(lake, "shop$items").to_arrow(position=1)) == 3


def test_source_without_rows_takes_no_position_and_the_run_is_kept(lake, plain, write):
    do(lake)
    write("orders.csv", "id,amount\n")
    write("items.csv", "id,item\n")
    report, _ = do(lake)
    assert [one.position for one in report.record.outputs] == [None, None]
    assert do(lake)[0].is_new is False
    assert ChangeTable(lake, "shop$orders").position == 1


@pytest.mark.parametrize(
    ("old", "new", "kind", "told"),
    [
        ("orders.csv", "nope.csv", NotFoundError, "line 4, .*source 'orders' cannot be read"),
        (", create: {}", "", TableNotFoundError, "line 8, .*say with 'create' how it is made"),
        ("keys: id, ", "", InvalidInputError, "line 7, .*name them with 'create'"),
        ("shop$items", "shap$items", NamespaceNotFoundError, "line 8, .*no namespace 'shap'"),
        ("shop$items", "items", InvalidInputError, "line 8, .*write namespace.table"),
        ("shop$items", "shop$lance", MooringError, "line 8, .*it is a Lance table"),
        ("{files: items.csv}", "{table: shop$nope}", TableNotFoundError, "line 5, .*no table"),
        ("{files: items.csv}", "{table: shop$lance, position: 1}", InvalidInputError, "line 5"),
        ("{files: items.csv}", "{table: shop$lance, tag: x}", NotFoundError, "line 5, .*tag"),
        ("{files: items.csv}", "{changes: shop$lance}", InvalidInputError, "no changes to read"),
    ],
)
def test_plan_refuses_what_is_not_there(lake, plain, write, old, new, kind, told):
    lake.create_table("shop$lance", pa.table({"id": [1]}))
    with pytest.raises(kind, match=told):
        plan_run(lake, load_pipeline(write("pipeline.yaml", PLAIN.replace(old, new))))
    assert list_runs(lake) == []


def test_tables_are_read_at_versions_that_stay(lake, plain, write):
    lake.create_table("shop$lance", pa.table({"id": [1]}))
    do(lake)
    text = PLAIN.replace("{files: items.csv}", "{table: shop$lance}")
    text = text.replace("shop$orders", "shop$other")
    text = text.replace("{files: orders.csv}", "{table: shop$orders}")
    pipeline = load_pipeline(write("pipeline.yaml", text))
    first = plan_run(lake, pipeline)
    assert [one.show() for one in first.inputs.values()] == ["position 1", "version 1"]
    lake.table("shop$lance").insert([{"id": 2}])
    second = plan_run(lake, pipeline)
    ChangeTable(lake, "shop$orders").append([{"id": 5, "amount": 1}])
    third = plan_run(lake, pipeline)
    assert [one.row_count for one in third.inputs.values()] == [3, 2]
    assert len({first.run, second.run, third.run}) == 3


@pytest.mark.interop
@pytest.mark.s3
def test_run_on_an_object_store_goes_on_and_counts_once(seaweedfs, prefix, plain):
    uri = f"metastore+{seaweedfs.uri(prefix)}"
    lake = mooring.connect(uri, storage_options=seaweedfs.options)
    lake.create_namespace("shop")
    files = seaweedfs.uri(prefix.replace("lake", "files"))
    store = open_store(files, seaweedfs.options)
    for name in ("orders.csv", "items.csv"):
        store.put(name, plain.with_name(name).read_bytes())
    text = plain.read_text().replace("files: ", f"files: {files}/")
    plain.write_text(text.replace("catalog: metastore+lake\n", ""))

    def fail(name):
        if name == "items":
            raise MooringError("no")

    with pytest.raises(MooringError, match="no"):
        do(lake, before_write=fail)
    report, written = do(lake)
    assert (report.is_new, written) == (True, ["items"])
    assert report.record.inputs[0].version["bytes"] == 20
    assert do(lake)[0].is_new is False
    assert len(ChangeTable(lake, "shop$items").to_arrow()) == 3
    store.put("items.csv", b"id,item\n3,ale\n")
    assert do(lake)[0].is_new
    assert len(ChangeTable(lake, "shop$items").to_arrow()) == 4
