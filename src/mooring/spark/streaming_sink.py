"""The streaming sink of `mooring`: a micro-batch is one version of a table, and counts once.

Spark makes a writer for each batch and sends it to the workers; another one, made in a process that
lives on, commits what they wrote or gives it up. Both know the stream by its name alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from mooring.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.jobs.streaming import BatchPart, Stream
from mooring.spark.conversion import Conversion, check_table_takes
from mooring.spark.options import SourceOptions
from mooring.spark.streaming_checkpoint import Checkpoint
from mooring.spark.types import from_spark, parse_vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from mooring.jobs.streaming import BatchDraft
    from mooring.table import Table

__all__ = ["StreamWriter", "find_query", "make_stream_writer"]

_READING = ("version", "tag", "as_of", "branch", "columns", "filter")


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool = False
) -> StreamWriter:
    """Make what writes the batches of a stream.

    Args:
        options: Those of the data source, as Spark hands them over.
        schema: The stream's columns.
        overwrite: Whether Spark wants each batch to replace what is there.

    Raises:
        InvalidInputError: an option is missing or makes no sense.
        UnsupportedError: the output mode is not ``append``.
        TableNotFoundError: the table is gone, and the stream has written into it before.
    """
    given = SourceOptions.parse(options)
    if overwrite:
        msg = (
            "a stream only appends to a table: outputMode('complete') would replace its rows with"
            " each batch; use outputMode('append'), with a watermark where rows are grouped"
        )
        raise UnsupportedError(msg)
    given.refuse(_READING, "is for reading: a stream is written to the newest version")
    checkpoint = Checkpoint(given.get("checkpointlocation"))
    query = find_query(given, checkpoint)
    return StreamWriter(given, query, schema, may_create=not checkpoint.has_batches)


def find_query(options: SourceOptions, checkpoint: Checkpoint) -> str:
    """Return the name by which a stream's batches are known again.

    Raises:
        InvalidInputError: nobody can tell it.
    """
    query = options.get("query") or checkpoint.query_id
    if query is None:
        msg = (
            "the stream needs a name by which its batches are known again, as its checkpoint cannot"
            " be read from here: give it one of its own with the option 'query' (Spark's queryName"
            " is only a label), and keep it as long as the checkpoint"
        )
        raise InvalidInputError(msg)
    return query


@dataclass
class _Written(WriterCommitMessage):
    """What a worker tells the driver."""

    part: BatchPart


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one stream into one table."""

    def __init__(
        self, options: SourceOptions, query: str, schema: StructType, *, may_create: bool
    ) -> None:
        """Begin a batch; a table that is missing is made, empty, with the stream's columns.

        Args:
            options: The options.
            query: The stream's name.
            schema: Its columns.
            may_create: Whether the stream can be at its first batch.

        Raises:
            TableNotFoundError: the table is gone, and the stream has written into it before.
            TableColumnNotFoundError: the table lacks a column of the stream.
            TableSchemaValidationError: a column is of another type.
        """
        self._options = options
        self._query = query
        rows = from_spark(schema, parse_vectors(options.get("vectors") or ""))
        table = self._find(rows, may_create=may_create)
        self._draft: BatchDraft = self._of(table).begin()
        check_table_takes(rows, self._draft.schema, table.handle.what)

    def _find(self, rows: pa.Schema, *, may_create: bool) -> Table:
        catalog = self._options.open(must_exist=not may_create)
        name = self._options.table
        try:
            table = catalog.table(name)
            table.handle.open()
        except TableNotFoundError as exc:
            if not may_create:
                msg = (
                    f"{exc}; stream '{self._query}' has written into it before: bring the table"
                    " back, or begin anew with another checkpoint"
                )
                raise TableNotFoundError(msg) from exc
        else:
            return table
        with suppress(TableAlreadyExistsError):  # another start of the stream was faster
            catalog.create_table(name, rows.empty_table())
        return catalog.table(name)

    def _of(self, table: Table) -> Stream:
        return Stream(table.handle, self._query, self._options.get("driver"))

    @property
    def _stream(self) -> Stream:
        return self._of(self._options.open(must_exist=True).table(self._options.table))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write a partition of a batch, in a worker."""
        rows = (batch for batch in iterator if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return _Written(self._draft.nothing)
        reader = pa.RecordBatchReader.from_batches(self._draft.schema, self._converted(first, rows))
        return _Written(self._draft.write(reader, rows_a_file=self._options.number("rows_a_file")))

    def _converted(
        self, first: pa.RecordBatch, rest: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        schema = self._draft.schema
        convert = Conversion(
            first.schema, schema, f"table {quote(self._options.table)}", is_exact=True
        )
        yield convert(first)
        for batch in rest:
            yield convert(batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Make a batch visible, on the driver; one that is there already adds nothing."""
        self._stream.commit(batchId, _parts(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  # Spark's name
        """Delete what is left of a batch that failed, unless it may be in a version."""
        self._stream.give_up(part.run for part in _parts(messages))


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[BatchPart]:
    return [message.part for message in messages if isinstance(message, _Written)]
