"""Jobs over a whole catalog say and do the same in threads and on Spark.

"Threads or --spark by size, the same findings either way".
"""

from __future__ import annotations

import shutil
from functools import partial

import pytest

from mooring.identifiers import ObjectId
from mooring.jobs.runner import Threads
from mooring.spark.runner import SparkRunner
from mooring.upkeep.inventory import take_inventory
from mooring.upkeep.migrating import migrate
from mooring.upkeep.purging import purge
from tests.upkeep.faults import (
    COMPAT,
    METASTORE,
    V1,
    damaged_footer,
    damaged_manifest,
    expired,
    fill,
    missing_data,
    never_written,
    orphan,
    pending_run,
    rows,
    staged_manifest,
)
from tests.upkeep.test_audit import connect, look, name_in

FAULTS = (
    damaged_footer,
    damaged_manifest,
    expired,
    missing_data,
    never_written,
    orphan,
    pending_run,
    staged_manifest,
)


@pytest.mark.parametrize("kind", [COMPAT, pytest.param(METASTORE, marks=pytest.mark.interop)])
def test_spark_finds_what_threads_find(kind, spark, tmp_path, monkeypatch):
    monkeypatch.setattr("mooring.upkeep.audit._GROUP", 3)
    catalog = connect(kind, tmp_path)
    if kind == METASTORE:
        catalog.create_namespace("ns")
    for fault in FAULTS:
        fault(catalog, fill(catalog, name_in(kind, fault.__name__)))

    here = look(catalog, runner=Threads(2), all_versions=True)
    there = look(catalog, runner=SparkRunner(spark), all_versions=True)

    assert there == here
    assert len({one.kind for one in here.findings}) == 7
    tables = take_inventory(catalog, runner=SparkRunner(spark)).tables
    assert tables == take_inventory(catalog, runner=Threads(2)).tables


def test_spark_purges_and_migrates_what_threads_do(spark, tmp_path):
    plain = connect(V1, tmp_path / "a")
    names = [f"t{number}" for number in range(4)]
    for name in names:
        plain.create_table(name, rows(1, 2))
    for name in names[:3]:
        plain.drop_table(name, ttl="0s")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    done = {}
    for root, runner in (("a", Threads(2)), ("b", SparkRunner(spark))):
        catalog = connect(COMPAT, tmp_path / root)
        told = {}
        wanted = [ObjectId((name,)) for name in names[:3]]
        report = purge(
            catalog,
            wanted,
            runner=runner,
            only_expired=True,
            progress=partial(_note, told),
        )
        moved = migrate(catalog, runner=runner, group=1)
        left = sorted(path.name for path in (tmp_path / root).glob("t*.lance/data/*"))
        done[root] = (report.purged, report.failed, told, moved.added, moved.is_complete, left)

    assert done["a"] == done["b"]
    assert [str(one) for one in done["b"][0]] == names[:3]
    assert done["b"][3] == ("t3",)


def _note(told, table, files, size_bytes):
    told[str(table)] = files, size_bytes
