"""Filters that Lance evaluates find what Spark finds alone, on tricky values."""

from __future__ import annotations

from functools import reduce

import pytest
from pyspark.sql import DataFrame

import mooring
from mooring.spark import read_table
from tests.spark.test_source_filters import every_row

pytestmark = pytest.mark.interop

# Each is a query of its own; together they use every column and every filter that is pushed.
PREDICATES = [
    "n = 1 or f > 1",
    "n <> 1 and n <= 9223372036854775806",
    "n in (0, -1, null) and n is not null",
    "not (small in (5, 6))",
    "small <=> null",
    "big >= 9223372036854775808",
    "f > 1",
    "f = double('nan')",
    "f >= 0",
    "f <= -0.0",
    "g < 1e-30",
    "g <> float(1.5)",
    "`odd name` = 'it\\'s'",
    "`odd name` like 'é%' and `odd name` > 'a'",
    "not `odd name` like '%a%'",
    "`q\"x $` in ('a\\'b', '\\'\\'')",
    "word = 'it\\'s' or upper(word) = 'A'",
    "word like '%s'",
    "d >= date'2026-03-29' and d < date'9999-12-31'",
    "z > timestamp'2026-03-29 12:00:00'",
    "t = timestamp_ntz'2026-03-29 12:00:00.000001'",
    "x between -1.5 and 1.50",
    "b = X'00ff' or b = X''",
    "flag",
    "not flag",
    "deep.n >= 1 and deep.n <> 2",
    "deep.n is null",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = mooring.connect(tmp_path_factory.mktemp("pushdown") / "lake")
    lake.create_table("t", every_row())
    return lake


def test_results_are_the_same_with_and_without(spark, lake):
    plain = read_table(spark, lake, "t")
    asked = [f"coalesce({predicate}, false) as p{at}" for at, predicate in enumerate(PREDICATES)]
    rows = plain.selectExpr("at", *asked).collect()
    expected = {
        predicate: sorted(row["at"] for row in rows if row[f"p{at}"])
        for at, predicate in enumerate(PREDICATES)
    }
    # One query, in which each scan is of a frame of its own.
    pushed = [
        read_table(spark, lake, "t", pushdown=True).filter(predicate).selectExpr(f"{at} as p", "at")
        for at, predicate in enumerate(PREDICATES)
    ]
    found = {predicate: [] for predicate in PREDICATES}
    for row in reduce(DataFrame.union, pushed).orderBy("at").collect():
        found[PREDICATES[row.p]].append(row["at"])
    assert found == expected
    assert sum(map(len, expected.values())) > len(PREDICATES)


def test_without_the_setting_of_spark_reading_works(spark, lake):
    key = "spark.sql.python.filterPushdown.enabled"
    was = spark.conf.get(key)
    spark.conf.set(key, "false")
    try:
        frame = read_table(spark, lake, "t", columns=["at", "n"])
        assert [row.at for row in frame.filter("n = 1").collect()] == [3]
    finally:
        spark.conf.set(key, was)
