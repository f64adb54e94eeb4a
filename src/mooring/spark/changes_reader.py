"""Reading a change table into Spark: merged by tasks of some buckets each, at one position."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mooring.changes.predicates import parse_predicate
from mooring.errors import InvalidInputError
from mooring.spark.changes_table import bare_schema, choose_columns, spark_columns
from mooring.spark.conversion import Conversion
from mooring.spark.filters import translate
from mooring.spark.types import to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from mooring.changes.predicates import Predicate
    from mooring.changes.reading import ReadTask
    from mooring.spark.changes_table import FixedTable
    from mooring.spark.options import SourceOptions

__all__ = ["MergedReader", "PushingMergedReader", "merged_schema"]

_BATCH_ROWS = 64 * 1024


def merged_schema(fixed: FixedTable, options: SourceOptions) -> StructType:
    """Return the schema that Spark sees.

    Raises:
        InvalidInputError: the filter makes no sense.
        TableColumnNotFoundError: a column that was named is not there.
        UnsupportedError: Spark has no type for a column.
    """
    where = options.get("filter")
    if where is not None:
        parse_predicate(where, fixed.definition)
    return to_spark(choose_columns(bare_schema(fixed.definition.schema), options, fixed.what))


class MergedReader(DataSourceReader):
    """Reads what the changes up to a position come to."""

    def __init__(self, fixed: FixedTable, options: SourceOptions, schema: StructType) -> None:
        """Plan to read columns of a table.

        Args:
            fixed: The table at its position.
            options: What is read of it, and how.
            schema: The columns as Spark wants them.

        Raises:
            TableColumnNotFoundError: the table has no such column.
            TableSchemaValidationError: a column is of another type than the one that is wanted.
        """
        self._fixed = fixed
        own = choose_columns(bare_schema(fixed.definition.schema), options, fixed.what)
        self._wanted = spark_columns(schema, own, fixed.what)
        self._where = options.get("filter")
        self._tasks = options.number("tasks") or os.cpu_count() or 1
        self._batch_rows = options.number("batch_rows") or _BATCH_ROWS

    def partitions(self) -> list[InputPartition]:
        """Divide the buckets that can have rows among tasks."""
        tasks = self._fixed.table().tasks(
            self._tasks,
            moment=self._fixed.moment(),
            columns=self._wanted.names,
            where=self._predicate(self._where),
        )
        return [_Buckets(task) for task in tasks]

    def _predicate(self, where: str | None) -> Predicate | None:
        return None if where is None else parse_predicate(where, self._fixed.definition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Merge and read some buckets, in a worker."""
        if not isinstance(partition, _Buckets):
            return  # a table without rows has none
        convert: Conversion | None = None
        for rows in partition.value.read():
            for batch in rows.to_batches(max_chunksize=self._batch_rows):
                convert = convert or Conversion(
                    batch.schema, self._wanted, self._fixed.what, is_exact=False
                )
                yield convert(batch)


class PushingMergedReader(MergedReader):
    """Leaves out, by statistics, what filters of Spark cannot match, before Spark looks again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's own
        """Take what can be evaluated here; all filters stay with Spark, too."""
        taken = [] if self._where is None else [self._where]
        for one in filters:
            written = translate(one, self._fixed.definition.schema)
            if written is not None and self._accepts(written):
                taken.append(written)
        if taken:
            self._where = " AND ".join(f"({one})" for one in taken)
        return filters

    def _accepts(self, where: str) -> bool:
        try:
            self._predicate(where)
        except InvalidInputError:
            return False
        return True


@dataclass
class _Buckets(InputPartition):
    """The buckets that one task reads."""

    value: ReadTask
