"""Change tables in a metastore on disk."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table

ORDERS = pa.schema([("id", pa.int64()), ("item", pa.string()), ("count", pa.int64())])


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """The machine does not die in these tests; a sync costs most of one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def lake(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def orders(lake):
    return create_change_table(lake, "shop$orders", ORDERS, keys=["id"])
