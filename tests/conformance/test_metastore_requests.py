"""What a metastore asks of the store: no more for many tables or versions than for few.

Listing N tables or D deltas is a handful of requests.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import mooring
from mooring.namespace.table_operations import Declare
from mooring.store import open_store
from mooring.store.observed import ObservedStore
from tests.lakes import table_id

NS = table_id("ns")
T = table_id("ns", "t")
MANY = 200


@pytest.fixture
def many(metastore):
    """A metastore of many tables, one of which has some versions."""
    metastore.make("ns", "other")
    metastore.backend.commit_tables(
        [Declare(table_id("ns", f"d{number:03}")) for number in range(MANY)]
    )
    metastore.create(T, [0])
    return metastore


class _Counted:
    """A catalog whose requests are counted from a moment on."""

    def __init__(self, lake) -> None:
        self.store = ObservedStore(open_store(lake.uri, lake.options))
        self.backend = lake.open(store=self.store)
        self.backend.list_namespaces(table_id())

    @property
    def table(self) -> mooring.Table:
        return mooring.Table(self.backend, self.backend.describe_table(T))

    def count(self, act) -> dict[str, int]:
        self.store.counts.clear()
        act()
        return dict(self.store.counts)


READS = {
    "describe a table": lambda backend: backend.describe_table(T),
    "list tables": lambda backend: backend.list_tables(NS),
    "list ten tables": lambda backend: backend.list_tables(NS, after="d099", limit=10),
    "describe all tables": lambda backend: backend.describe_tables(),
    "list all tables": lambda backend: backend.list_all_tables(),
    "list the trash": lambda backend: backend.list_purgable_tables(),
    "find the newest version": lambda backend: backend.list_table_versions(T, limit=1),
}


def test_whoever_has_read_before_reads_with_one_request(many):
    """It asks whether the chain has gone on."""
    counted = _Counted(many)
    for what, act in READS.items():
        assert counted.count(lambda act=act: act(counted.backend)) == {"get": 1}, what


def test_versions_are_listed_by_one_look_at_the_directory(many):
    counted = _Counted(many)
    for value in range(1, 20):
        counted.table.insert(pa.table({"n": [value]}))
    listing = counted.count(lambda: counted.backend.list_table_versions(T))
    assert listing == {"get": 1, "list_dir": 1}
    older = counted.count(lambda: counted.backend.describe_table_version(T, 3))
    assert older == {"get": 1, "head": 1}


def test_a_write_costs_the_same_at_every_version_and_beside_many_tables(many):
    counted = _Counted(many)
    counted.table.insert(pa.table({"n": [1]}))
    table = counted.table
    costs = [
        sum(counted.count(lambda: table.insert(pa.table({"n": [1]}))).values()) for _ in range(30)
    ]
    # Now and then a commit also writes a checkpoint, or removes old copies of manifests.
    assert sorted(costs)[len(costs) // 2] <= 15
    assert max(costs) <= 20


def test_a_drop_and_an_undrop_cost_the_same_beside_many_tables(many):
    counted = _Counted(many)
    counted.count(lambda: counted.backend.drop_table(T))
    counted.backend.undrop_table(T)
    for act in (
        lambda: counted.backend.drop_table(T),
        lambda: counted.backend.undrop_table(T),
        lambda: counted.backend.rename_table(T, table_id("ns", "u")),
    ):
        assert sum(counted.count(act).values()) <= 10
