"""Compaction whose buckets are rewritten by executors of a cluster, on disk and in S3."""

from __future__ import annotations

import random

import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.compaction_policy import GATHER, MERGE, CompactionPolicy
from mooring.jobs.runner import Threads
from mooring.metastore.layout import DATA_DIR
from mooring.spark.runner import SparkRunner
from tests.changes.model import KEYS, SCHEMA, Model, canonical, has_key, random_batch, to_table
from tests.spark import cluster as driver

NAME = "shop$orders"
POLICIES = [
    CompactionPolicy(deltas=1, level=level, force=level is None) for level in (GATHER, MERGE, None)
]


def _compact(uri: str, options: dict[str, str], policy: CompactionPolicy) -> list[int]:
    """Compact with executors, from a driver of the cluster; return the levels of the rounds."""
    table = ChangeTable(mooring.connect(uri, storage_options=options), NAME)
    return [one.level for one in table.compact(policy, runner=SparkRunner(driver.session())).rounds]


def _make(uri: str, options: dict[str, str]) -> ChangeTable:
    lake = mooring.connect(uri, storage_options=options)
    lake.create_namespace("shop")
    return create_change_table(
        lake, NAME, SCHEMA, keys=KEYS, partition_by=["truncate(1, part)"], buckets=2
    )


def _change(table: ChangeTable, model: Model, random_: random.Random) -> None:
    """Write a batch that is not empty."""
    rows = []
    while not rows:
        type_, rows = random_batch(random_)
        rows = [row for row in rows if has_key(row)]
    table._write(to_table(rows, SCHEMA), type_, None, None)
    model.apply(type_, rows)


def _rows(table: ChangeTable, **at) -> list[dict[str, object]]:
    return canonical(table.to_arrow(**at).to_pylist())


def _check(uri: str, options: dict[str, str], compact) -> None:
    """Change and compact by turns; the table is the model's at every position."""
    table, model, random_ = _make(uri, options), Model(), random.Random(5)
    seen = {0: []}
    for policy in POLICIES:
        for _ in range(4):
            _change(table, model, random_)
            seen[table.position] = model.rows()
        assert set(compact(uri, options, policy)) == {policy.level or MERGE}
        assert _rows(table) == model.rows()
    for position, rows in seen.items():
        assert _rows(table, position=position) == rows
    assert len({one.round for one in table.rounds()}) == len(POLICIES)


@pytest.mark.interop
def test_executors_of_a_cluster_compact_a_table_on_disk(tmp_path, cluster):
    def compact(*args) -> list[int]:
        return cluster.run(_compact, *args)

    _check(f"metastore+{tmp_path}", {}, compact)


@pytest.mark.interop
@pytest.mark.s3
def test_executors_of_a_cluster_compact_a_table_in_object_storage(seaweedfs, prefix, cluster):
    def compact(*args) -> list[int]:
        return cluster.run(_compact, *args)

    _check(f"metastore+{seaweedfs.uri(prefix)}", seaweedfs.options, compact)


@pytest.mark.interop
@pytest.mark.s3
def test_compaction_and_what_it_leaves_in_object_storage(seaweedfs, prefix):
    def compact(uri: str, options: dict[str, str], policy: CompactionPolicy) -> list[int]:
        table = ChangeTable(mooring.connect(uri, storage_options=options), NAME)
        return [one.level for one in table.compact(policy, runner=Threads(2)).rounds]

    uri = f"metastore+{seaweedfs.uri(prefix)}"
    _check(uri, seaweedfs.options, compact)
    lake = mooring.connect(uri, storage_options=seaweedfs.options)
    table = ChangeTable(lake, NAME)
    lake.metastore.store.put(f"{DATA_DIR}/killed/stray.parquet", b"of a round that was killed")
    before = _rows(table)
    lake.metastore.vacuum(older_than_ms=-600_000)
    assert lake.metastore.store.get(f"{DATA_DIR}/killed/stray.parquet") is None
    assert _rows(table) == before
    assert _rows(table, position=3)
