"""Pipelines on Spark: the example, steps that fail, expectations, and a cluster."""

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.errors import InvalidInputError, MooringError
from mooring.pipelines import list_runs, load_pipeline, plan_run, run_pipeline
from mooring.spark.pipeline_steps import SparkSteps
from tests.pipelines.direct import rows_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"


def do(session, catalog, path, given=None, **options):
    plan = plan_run(catalog, load_pipeline(path, given or {}), **options)
    return run_pipeline(catalog, plan, lambda: SparkSteps(session, catalog, plan))


def copy_example(tmp_path):
    place = shutil.copytree(EXAMPLE, tmp_path / "example")
    sys.path.insert(0, str(place))
    try:
        import make_orders
    finally:
        sys.path.remove(str(place))
    make_orders.main(place)
    return place / "pipeline.yaml"


def check_example(catalog, record):
    counts = {one.name: (one.rows, one.failed) for one in record.expectations}
    assert counts == {
        "has_customer": (400, 2),
        "amount_is_positive": (400, 8),
        "order_has_id": (400, 0),
    }
    assert [(one.table, one.rows) for one in record.outputs] == [
        ("shop$orders", 390),
        ("shop$by_country", 3),
        ("shop$rejected_orders", 8),
    ]
    orders = ChangeTable(catalog, "shop$orders").to_arrow().to_pylist()
    assert all(row["tax"] == pytest.approx(row["amount"] * 0.9 * RATES[row["country"]], abs=0.01)
               for row in orders)  # fmt: skip
    totals = ChangeTable(catalog, "shop$by_country").to_arrow().to_pylist()
    assert sum(row["orders"] for row in totals) == 390
    assert sum(row["amount"] for row in totals) == pytest.approx(sum(o["amount"] for o in orders))
    rejected = ChangeTable(catalog, "shop$rejected_orders").to_arrow().to_pylist()
    assert {row["_reason"] for row in rejected} == {"amount_is_positive"}
    assert {row["_run"] for row in rejected} == {record.run}
    assert all(row["amount"] < 0 for row in rejected)


RATES = {"NO": 0.25, "PE": 0.18, "IT": 0.22}


def test_example_runs_once(spark, lake, tmp_path):
    path = copy_example(tmp_path)
    report = do(spark, lake, path)
    check_example(lake, report.record)
    assert report.record.outputs[0].published == "shop$orders_published version 1"
    assert lake.table("shop$orders_published").count() == 390
    again = do(spark, lake, path)
    assert (again.is_new, again.record) == (False, report.record)


@pytest.mark.interop
def test_parameters_choose_files_and_reach_functions(spark, lake, tmp_path):
    path = copy_example(tmp_path)
    report = do(spark, lake, path, {"day": "2024-02-01", "rebate": "1"})
    assert report.record.outputs[0].rows == 195
    assert {row["tax"] for row in ChangeTable(lake, "shop$orders").to_arrow().to_pylist()} == {0.0}


TWO = """
    name: two
    parameters: {least: 1}
    sources:
      orders: {files: orders.csv}
      old: {table: shop$old}
      lance: {table: shop$lance}
      news: {changes: shop$news}
    steps:
      good: {sql: "SELECT id, amount FROM orders WHERE amount >= :least"}
      all:
        sql: |
          SELECT id, 'old' AS kind FROM old UNION ALL SELECT id, 'lance' FROM lance
          UNION ALL SELECT id, concat(_change_type, _change_position) FROM news
    outputs:
      - {from: good, table: shop$good, change: upsert, create: {keys: id}}
      - {from: all, table: shop$all, change: append, create: {}}
"""


@pytest.fixture
def two(lake, write):
    """A pipeline that reads sources of all kinds."""
    schema = pa.schema([("id", pa.int64()), ("what", pa.string())])
    old = create_change_table(lake, "shop$old", schema, keys=["id"])
    old.upsert([{"id": 1, "what": "a"}, {"id": 2, "what": "b"}])
    old.delete(pa.table({"id": [2]}))
    lake.create_table("shop$lance", pa.table({"id": [7]}))
    news = create_change_table(lake, "shop$news", schema, keys=["id"])
    news.upsert([{"id": 3, "what": "c"}])
    news.delete(pa.table({"id": [3]}))
    write("orders.csv", "id,amount\n1,10\n2,0\n3,30\n")
    return write("two.yaml", TWO)


def visible(catalog):
    return rows_of(catalog, "shop$good"), rows_of(catalog, "shop$all")


ALL = [(1, "old"), (3, "delete2"), (3, "upsert1"), (7, "lance")]


@pytest.mark.interop
def test_sources_of_all_kinds_and_only_new_changes(spark, lake, two):
    do(spark, lake, two)
    assert visible(lake) == ([(1, 10), (3, 30)], ALL)
    ChangeTable(lake, "shop$news").upsert([{"id": 4, "what": "d"}])
    report = do(spark, lake, two)
    assert [one.shown for one in report.record.inputs][-1] == "position 3"
    assert visible(lake)[1] == sorted([*ALL, (1, "old"), (4, "upsert3"), (7, "lance")])
    again = do(spark, lake, two)
    assert not again.is_new


BROKEN = [
    ("SELECT id, amount", "SELECT id, amnt", r"line 9, .*step 'good' failed: .*amnt"),
    ("SELECT id, 'old' AS kind", "SELECT id, NULL + AS kind", r"line 11, .*step 'all' failed"),
    ("{keys: id}", "{keys: no}", r"line 15, .*shop\$good.*'no'"),
    ("'old' AS kind", "raise_error('bad') AS kind", r"line 16, .*shop\$all.*bad"),
]


@pytest.mark.interop
def test_failure_of_either_output_leaves_nothing(spark, lake, two, write):
    for old, new, told in BROKEN:
        write("two.yaml", TWO.replace(old, new))
        with pytest.raises(MooringError, match=told):
            do(spark, lake, two)
        assert visible(lake) == (None, None)
    assert [one.state for one in list_runs(lake)] == ["failed"] * len(BROKEN)
    # Mended, it is another run.
    assert do(spark, lake, write("two.yaml", TWO)).is_new
    assert visible(lake) == ([(1, 10), (3, 30)], ALL)


@pytest.mark.interop
def test_finished_output_is_not_computed_again(spark, lake, two, write, tmp_path):
    """The first output is of a function that counts its calls; the second fails once."""
    write(
        "steps.py",
        """
        from pathlib import Path

        def counted(orders, parameters):
            log = Path(parameters["log"])
            log.write_text(log.read_text() + "x" if log.exists() else "x")
            return orders

        def fails_once(old, parameters):
            if not Path(parameters["log"] + ".ok").exists():
                Path(parameters["log"] + ".ok").write_text("")
                raise ValueError("not yet")
            return old.select("id")
        """,
    )
    path = write(
        "once.yaml",
        f"""
        name: once
        parameters: {{log: {tmp_path}/log}}
        sources: {{orders: {{files: orders.csv}}, old: {{table: shop$old}}}}
        steps:
          good: {{python: "steps.py:counted"}}
          all: {{python: "steps.py:fails_once"}}
        outputs:
          - {{from: good, table: shop$good, change: append, create: {{}}}}
          - {{from: all, table: shop$all, change: append, create: {{}}}}
        """,
    )
    with pytest.raises(MooringError, match=r"line 6, .*step 'all' failed: ValueError: not yet"):
        do(spark, lake, path)
    assert visible(lake) == (None, None)
    report = do(spark, lake, path)
    assert (tmp_path / "log").read_text() == "x"
    assert [one.was_kept for one in report.record.outputs] == [True, False]
    assert visible(lake) == ([(1, 10), (2, 0), (3, 30)], [(1,)])


CHECKED = """
    name: checked
    sources: {orders: {files: orders.csv}}
    steps:
      good:
        sql: SELECT * FROM orders
        expectations:
          - {name: paid, check: amount > 0%s}
    outputs:
      - {from: good, table: shop$good, change: append, create: {}}
"""


@pytest.mark.interop
@pytest.mark.parametrize(
    ("options", "rows", "told"),
    [
        ("", None, "1 of 4 rows .25.00%. of step 'good' are not as expectation 'paid'.*id=2"),
        (", max_fraction: 0.25", [1, 2, 3, 4], ""),
        (", on_failure: drop", [1, 3, 4], ""),
        (", on_failure: drop, max_fraction: 0.2", None, "and at most 20.00% may be so"),
        (", on_failure: quarantine, table: shop$bad, max_fraction: 0.2", None, "20.00%"),
        ("; what", None, "line 7, .*the check of expectation 'paid'"),
    ],
)  # fmt: skip
def test_expectations_fail_drop_and_pass(spark, lake, write, options, rows, told):
    write("orders.csv", "id,amount\n1,10\n2,0\n3,30\n4,40\n")
    path = write("checked.yaml", CHECKED % options)
    if rows is None:
        with pytest.raises(InvalidInputError, match=told):
            do(spark, lake, path)
        assert rows_of(lake, "shop$good") is None
        assert list_runs(lake)[0].state == "failed"
        return
    report = do(spark, lake, path)
    assert [row[0] for row in rows_of(lake, "shop$good")] == rows
    (counted,) = report.record.expectations
    assert (counted.rows, counted.failed, counted.passed) == (4, 1, 3)


@pytest.mark.interop
def test_rows_are_checked_once_and_rejected_rows_stay(spark, lake, write):
    """A run whose files a vacuum took computes outputs again, with the same engine."""
    write("orders.csv", "id,amount\n1,10\n2,0\n")
    path = write("checked.yaml", CHECKED % ", on_failure: quarantine, table: shop$bad")
    plan = plan_run(lake, load_pipeline(path))
    steps = SparkSteps(spark, lake, plan)

    class Vacuumed:
        def __init__(self):
            self.left = 1

        def __getattr__(self, name):
            return getattr(steps, name)

        def write(self, name, draft):
            written = steps.write(name, draft)
            if self.left and name.startswith("good!"):
                self.left -= 1
                mooring.connect(lake.uri).metastore.vacuum(older_than_ms=-1000)
            return written

    report = run_pipeline(lake, plan, Vacuumed)
    assert [(one.rows, one.failed) for one in report.record.expectations] == [(2, 1)]
    assert rows_of(lake, "shop$good") == [(1, 10)]
    assert rows_of(lake, "shop$bad") == [(2, 0, "paid", plan.run)]


def _on_cluster(uri, path):
    from tests.spark.cluster import session

    catalog = mooring.connect(uri)
    plan = plan_run(catalog, load_pipeline(path))
    return run_pipeline(catalog, plan, lambda: SparkSteps(session(), catalog, plan)).record


@pytest.mark.interop
def test_example_on_a_cluster(cluster, lake, tmp_path):
    path = copy_example(tmp_path)
    check_example(lake, cluster.run(_on_cluster, lake.uri, path))
