"""Conditions, removal, tidying and purges on a real object store."""

from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.tidying import tidy
from mooring.errors import TableNotFoundError

pytestmark = [pytest.mark.interop, pytest.mark.s3]

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])


@pytest.fixture
def lake(seaweedfs):
    uri = f"metastore+{seaweedfs.uri(f'changes-{uuid.uuid4().hex}')}"
    catalog = mooring.connect(uri, storage_options=seaweedfs.options)
    catalog.create_namespace("shop")
    return catalog


@pytest.mark.parametrize("keys", [["id", "part"], []])
def test_a_life_of_a_table_on_s3(lake, keys):
    table = create_change_table(lake, "shop$t", SCHEMA, keys=keys, partition_by=["part"])
    for number in range(4):
        table.append([{"id": n, "part": "ab"[n % 2], "v": number} for n in range(10)])
    assert table.delete_where("v = 1 AND part = 'a'").rows == 5
    assert table.count() == 35
    table.compact(CompactionPolicy(force=True))
    position = table.position
    table.truncate([("b",)])
    assert table.count("v < 3") == 10
    assert tidy(table, keep=position).deltas > 0
    time.sleep(1.1)  # the store keeps whole seconds
    assert lake.metastore.vacuum(older_than_ms=0)
    assert table.to_arrow(position=position).num_rows == 35
    lake.drop_table("shop$t")
    with pytest.raises(TableNotFoundError, match="undrop"):
        ChangeTable(lake, "shop$t")
    lake.purge_table("shop$t")
    assert lake.metastore.store.list_prefix("_data") == []
