"""Writing a data frame into a table: tasks write data files, one commit makes them visible.

Spark begins, commits and aborts each in a process of its own, with the writer pickled: all that
they need of each other is in the write that was begun.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from mooring.jobs.open_write import begin_write
from mooring.jobs.writing import PartWritten, WriteMode
from mooring.spark.conversion import Conversion, check_table_takes
from mooring.spark.types import canonical, from_spark, parse_vectors
from mooring.tables.runs import RunMark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.types import StructType

    from mooring.jobs.open_write import OpenWrite
    from mooring.spark.options import SourceOptions
    from mooring.tables.fragments import Landed

__all__ = ["TableWriter"]

_OF_READERS = ("version", "tag", "as_of", "branch", "columns", "filter", "pushdown", "tasks")
# Spark ends tasks of a job that failed within two seconds.
_STRAGGLERS_S = 3.0
_POLL_S = 0.25


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote."""

    part: PartWritten


class TableWriter(DataSourceArrowWriter):
    """Writes rows into a table."""

    def __init__(self, write: OpenWrite, rows_a_file: int | None) -> None:
        """Write what was begun.

        Args:
            write: The write.
            rows_a_file: At most so many rows a data file.
        """
        self._write = write
        self._rows_a_file = rows_a_file

    @classmethod
    def begin(cls, options: SourceOptions, schema: StructType, *, overwrite: bool) -> TableWriter:
        """Begin to write.

        Raises:
            InvalidInputError: an option makes no sense.
            TableColumnNotFoundError: the table that is appended to lacks a column.
            TableSchemaValidationError: a column does not fit the table.
        """
        options.refuse(_OF_READERS, "is for reading")
        vectors = parse_vectors(options.get("vectors") or "")
        run = options.get("run")
        catalog = options.open(must_exist=False)
        name = catalog.identifier(options.table)

        def fit(table: pa.Schema | None) -> pa.Schema:
            if table is None:
                return from_spark(schema, vectors)
            rows = [pa.field(one.name, canonical(one.dataType, one.name)) for one in schema.fields]
            check_table_takes(pa.schema(rows), table, f"table '{name}'")
            return table

        write = begin_write(
            catalog,
            name,
            fit,
            mode=WriteMode.OVERWRITE if overwrite else WriteMode.APPEND,
            mark=None if run is None else RunMark(run),
            create_only=options.flag("create_only"),
        )
        return cls(write, options.number("rows_a_file"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task; a failure leaves nothing."""
        return Written(self.write_part(iterator))

    def write_part(self, batches: Iterable[pa.RecordBatch]) -> PartWritten:
        """Write some rows; a failure leaves nothing."""
        return self._write.write(self._convert(batches), rows_a_file=self._rows_a_file)

    def finish(self, parts: Sequence[PartWritten]) -> Landed | None:
        """Make what was written visible; None where the run was in the table already."""
        return self._write.finish(parts)

    def _convert(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        convert: Conversion | None = None
        for batch in batches:
            convert = convert or Conversion(batch.schema, self._write.schema, self._write.what)
            yield convert(batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what all tasks wrote visible, by one commit."""
        self.finish(_parts(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, also those that are only about to be ended."""
        self._write.give_up()
        if len(messages) < 2:  # noqa: PLR2004  # the only task is the one that failed
            return
        ends_at = time.monotonic() + _STRAGGLERS_S
        while time.monotonic() < ends_at:
            time.sleep(_POLL_S)
            if self._write.is_left():
                self._write.give_up()


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[PartWritten]:
    return [message.part for message in messages if isinstance(message, Written)]
