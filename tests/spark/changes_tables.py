"""Change tables for tests, and the data source asked as Spark asks it, in this process."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.changes import ChangeTable, create_change_table
from mooring.spark.options import options_of
from mooring.spark.source import MooringDataSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

SCHEMA = pa.schema(
    [("day", pa.date32()), ("id", pa.int64()), ("v", pa.int64()), ("word", pa.string())]
)


def make_orders(catalog, name: str = "shop$orders", **how: Any) -> ChangeTable:
    """Make a table by months with a composite key."""
    kept = {"keys": ["day", "id"], "partition_by": ["month(day)"], "buckets": 4, **how}
    return create_change_table(catalog, name, SCHEMA, **kept)


def order(month: int, number: int | None, v: int | None = None, word: str | None = None):
    return {"day": dt.date(2013, month, 1), "id": number, "v": v, "word": word}


def key(month: int, number: int | None):
    return {"day": dt.date(2013, month, 1), "id": number}


def source_of(table: ChangeTable, **options: object) -> MooringDataSource:
    return MooringDataSource(options_of(table.catalog, table.id, options))


def reader_of(source: MooringDataSource, filters: Iterable[Filter] | None = None):
    """Plan a read in the steps in which Spark does, each in another process."""
    schema = source.schema()
    moved = pickle.loads(pickle.dumps(source))  # noqa: S301  # our own
    reader = moved.reader(schema)
    if filters is not None:
        assert list(reader.pushFilters(list(filters))) == list(filters)
    return pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own


def rows_of(reader) -> list[dict[str, Any]]:
    parts = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301  # our own
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def read(table: ChangeTable, **options: object) -> list[dict[str, Any]]:
    return rows_of(reader_of(source_of(table, **options)))


def data_files(catalog) -> set[str]:
    """Name the data files that there are."""
    return {meta.path for meta in catalog.metastore.store.list_prefix("_data")}


def named_files(*tables: ChangeTable) -> set[str]:
    """Name the data files that tables have."""
    return {
        file.path
        for table in tables
        for log in table.at().partitions.values()
        for one in (*log.deltas, *log.bases)
        for file in one.files
    }
