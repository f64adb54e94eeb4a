"""The streaming sink of `mooring` for change tables: a micro-batch is one change, and counts once.

Spark makes a writer for each batch and sends it to the workers; another one, made in a process of
its own, commits what they wrote or gives it up. Both know the stream by its name alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from mooring.changes.writing import ChangeRun
from mooring.errors import UnsupportedError
from mooring.spark.changes_abandoned import give_up
from mooring.spark.changes_batches import ChangesStream
from mooring.spark.changes_rows import check_rows, choose_change, write_part
from mooring.spark.changes_writer import READING, Written
from mooring.spark.streaming_checkpoint import Checkpoint
from mooring.spark.streaming_sink import find_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from mooring.changes.table import ChangeTable
    from mooring.spark.options import SourceOptions

__all__ = ["ChangesStreamWriter"]


class ChangesStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one stream as changes of one table."""

    def __init__(
        self,
        table: ChangeTable,
        options: SourceOptions,
        schema: StructType,
        *,
        overwrite: bool = False,
    ) -> None:
        """Begin a batch.

        Args:
            table: The table.
            options: Those of the data source.
            schema: The stream's columns.
            overwrite: Whether Spark wants each batch to replace what is there.

        Raises:
            InvalidInputError: an option is missing or makes no sense, or a key is missing.
            TableSchemaValidationError: a column is unknown or of another type.
            UnsupportedError: the output mode is ``complete``.
        """
        options.refuse((*READING, "run"), "is not for a stream into a table")
        if overwrite:
            msg = (
                "a stream changes rows of a table: outputMode('complete') would replace all of them"
                " with each batch; use outputMode('append'), or foreachBatch with"
                " mooring.spark.write_changes"
            )
            raise UnsupportedError(msg)
        checkpoint = Checkpoint(options.get("checkpointlocation"))
        self._options = options
        self._query = find_query(options, checkpoint)
        self._checkpoint = checkpoint.query_id
        type_ = choose_change(options.get("change"), table.definition, f"change table '{table.id}'")
        self._draft = ChangeRun(table.catalog).draft(table.id, type_)
        check_rows(schema, self._draft)

    @property
    def _stream(self) -> ChangesStream:
        catalog = self._options.open(must_exist=True)
        name = catalog.identifier(self._options.table)
        return ChangesStream(catalog, name, self._query, self._checkpoint)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write a partition of a batch, in a worker; a failure leaves nothing."""
        return Written(self._draft, write_part(self._draft, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Make a batch visible, on the driver; one that is there already changes nothing."""
        written = [message for message in messages if isinstance(message, Written)]
        draft = written[0].draft if written else None
        self._stream.commit(batchId, draft, [message.part for message in written])

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  # Spark's name
        """Delete what is left of a batch that failed, unless it is in the table."""
        tokens = {message.draft.token for message in messages if isinstance(message, Written)}
        if tokens:
            give_up(self._stream.catalog, self._stream.table, tokens)
