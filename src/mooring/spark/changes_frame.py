"""A change table as a data frame whose tasks read, without Spark's data source in between.

The data source starts processes of Python to ask for a schema and to plan, and costs more for every
row. Here the driver plans, and only what a task is to read travels to it.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from mooring.spark.changes_reader import MergedReader, merged_schema
from mooring.spark.changes_table import fix_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from mooring.changes.table import ChangeTable
    from mooring.spark.options import SourceOptions

__all__ = ["merged_frame"]


def merged_frame(spark: SparkSession, table: ChangeTable, options: SourceOptions) -> DataFrame:
    """Return what the changes up to a position come to.

    Raises:
        MooringError: an option makes no sense, or what it names is not there.
    """
    fixed = fix_table(table, options)
    schema = merged_schema(fixed, options)
    reader = MergedReader(fixed, options, schema)
    parts = [(number, pickle.dumps(part)) for number, part in enumerate(reader.partitions())]
    if not parts:
        return spark.createDataFrame([], schema)
    tasks = spark.createDataFrame(parts, "number int, part binary")
    divided = tasks.repartitionById(len(parts), tasks.number)
    return divided.mapInArrow(_Reading(reader), schema)


class _Reading:
    """What a task does: its part in, rows out."""

    def __init__(self, reader: MergedReader) -> None:
        self._reader = reader

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column("part").to_pylist():
                yield from self._reader.read(pickle.loads(part))  # noqa: S301  # our own driver's
