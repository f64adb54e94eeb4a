"""200 random batches: merged, compacted and published tables equal a model in plain Python.

Upserts of all or some columns, deletions and appends, over keys of three columns with nulls, parted
by month; written, read, compacted and published by the workers of each kind.
"""

from __future__ import annotations

import random

import pytest

import mooring
from mooring.changes import Batch, ChangeTable, create_change_table, write_changes
from mooring.changes.compaction import compact, policy_of
from mooring.changes.publishing import publish
from mooring.jobs.runner import Threads
from mooring.spark import read_table
from mooring.spark import write_changes as write_by_spark
from mooring.spark.runner import SparkRunner
from tests.changes.model import KEYS, SCHEMA, Model, canonical, has_key, random_batch, to_table
from tests.spark import cluster as driver

pytestmark = pytest.mark.interop

BATCHES = 200
NAME = "shop$orders"


class _Here:
    """Everything is done by threads of this process."""

    runner = Threads(2)

    def write(self, lake, type_, rows):
        return write_changes(lake, [Batch(NAME, to_table(rows, SCHEMA), type_)])[0].position

    def read(self, lake, position):
        return ChangeTable(lake, NAME).to_arrow(position=position).to_pylist()


class _Spark:
    """Everything is done by executors."""

    def __init__(self, session):
        self.runner = SparkRunner(session)
        self._session = session

    def write(self, lake, type_, rows):
        frame = self._session.createDataFrame(to_table(rows, SCHEMA))
        return write_by_spark(lake, [(frame, NAME, type_)])[0].position

    def read(self, lake, position):
        return read_table(self._session, lake, NAME, position=position).toArrow().to_pylist()


def _compare(lake, workers):
    lake.create_namespace("shop")
    table = create_change_table(
        lake, NAME, SCHEMA, keys=KEYS, partition_by=["month(at)"], buckets=4
    )
    model, random_, seen, versions = Model(), random.Random(11), {}, {}
    position = 0
    while position < BATCHES:
        type_, rows = random_batch(random_)
        rows = [row for row in rows if has_key(row)]
        if not rows:
            continue
        position = workers.write(lake, type_, rows)
        model.apply(type_, rows)
        if position % 10 == 0:
            seen[position] = model.rows()
        if position % 45 == 0:
            level = random_.choice([1, 2, None])
            assert compact(
                table, policy_of(table, deltas=1, level=level), runner=workers.runner
            ).rounds
        if position % 40 == 0:
            versions[position] = publish(table, "shop$published", runner=workers.runner).version
    assert sorted(seen) == list(range(10, BATCHES + 1, 10))
    for at, expected in seen.items():
        assert canonical(workers.read(lake, at)) == expected, at
    for at, version in versions.items():
        published = lake.table("shop$published").to_lance(version=version).to_table()
        assert canonical(published.select(SCHEMA.names).to_pylist()) == seen[at], at
    return len(versions)


def test_by_threads(tmp_path):
    assert _compare(mooring.connect(f"metastore+{tmp_path / 'lake'}"), _Here()) == 5


def test_by_local_spark(tmp_path, spark):
    assert _compare(mooring.connect(f"metastore+{tmp_path / 'lake'}"), _Spark(spark)) == 5


def test_by_a_cluster(tmp_path, cluster):
    assert cluster.run(_in_the_driver, f"metastore+{tmp_path / 'lake'}") == 5


def _in_the_driver(uri):
    return _compare(mooring.connect(uri), _Spark(driver.session()))
