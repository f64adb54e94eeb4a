"""Writing a change of a table by Spark's own way, `rows.write`.

The write begins in one process of Python, is committed in another and given up in a third: all
that they share is the id that the files are written under.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from mooring.changes.commits import WrittenChange
from mooring.changes.parts import check_columns, require_distinct
from mooring.changes.replacement import replace_files
from mooring.changes.writing import ChangeRun
from mooring.metastore import DeltaType
from mooring.spark.changes_abandoned import give_up
from mooring.spark.changes_rows import (
    check_rows,
    choose_change,
    delete_stragglers,
    write_frame,
    write_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from mooring.changes.commits import Landed
    from mooring.changes.parts import Draft, PartWritten
    from mooring.changes.table import ChangeTable
    from mooring.spark.options import SourceOptions

__all__ = ["READING", "ChangesWriter", "Written"]

READING = (
    "position",
    "txn",
    "as_of",
    "columns",
    "filter",
    "pushdown",
    "tasks",
    "changes",
    "fromposition",
    "toposition",
    "startingposition",
    "skipreplacements",
)


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote, and by which draft."""

    draft: Draft
    part: PartWritten


class ChangesWriter(DataSourceArrowWriter):
    """Writes rows as one change of one table, or in the place of all its rows."""

    def __init__(self, options: SourceOptions, draft: Draft, *, overwrite: bool) -> None:
        """Write by a draft."""
        self._options = options
        self._definition = draft.table
        self._overwrite = overwrite
        # Rows that replace others are not merged any more: no order chooses among them.
        self._draft = draft.strict() if overwrite else draft

    @classmethod
    def begin(
        cls, table: ChangeTable, options: SourceOptions, schema: StructType, *, overwrite: bool
    ) -> ChangesWriter:
        """Begin to write.

        Raises:
            InvalidInputError: an option makes no sense, or a key is missing.
            TableSchemaValidationError: a column is unknown or of another type.
        """
        options.refuse(READING, "is for reading")
        definition = table.definition
        what = f"change table '{table.id}'"
        if overwrite:
            why = "is for the mode 'append': 'overwrite' replaces all rows of a change table"
            options.refuse(("change",), why)
            # Keys are looked at as those of an upsert are.
            type_ = DeltaType.UPSERT if definition.is_keyed else DeltaType.APPEND
        else:
            type_ = choose_change(options.get("change"), definition, what)
        draft = ChangeRun(table.catalog).draft(table.id, type_)
        rows = check_rows(schema, draft)
        if overwrite:
            check_columns(rows, draft.table, DeltaType.APPEND, what)
        return cls(options, draft, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one try at a task; a failure leaves nothing."""
        return Written(self._draft, write_part(self._draft, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what all tasks wrote visible, by one transaction."""
        with self._work() as work:
            self._land(work, _parts(messages))

    def run(self, rows: DataFrame) -> Landed | None:
        """Do all of it from this process; None where there was no row.

        Raises:
            MooringError: the rows do not fit, or Spark failed.
        """
        with self._work() as work:
            done = work.find_done([self._options.table])
            if done is not None:
                return done[0]
            return self._land(work, write_frame(self._draft, rows))

    def _land(self, work: ChangeRun, parts: Sequence[PartWritten]) -> Landed | None:
        if not self._overwrite:
            work.add(self._options.table, self._draft, parts)
            return next(iter(work.commit()), None)
        require_distinct(parts, self._draft.what, self._draft.table.keys)
        change = WrittenChange(
            self._draft.catalog.open().identifier(self._options.table),
            self._definition,
            DeltaType.APPEND,
            tuple(file for part in parts for file in part.files),
        )
        return replace_files(work, change)

    def _work(self) -> ChangeRun:
        catalog = self._draft.catalog.open()
        return ChangeRun(catalog, run=self._options.get("run"), token=self._draft.token)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, unless it is in the table."""
        catalog = self._draft.catalog.open()
        if give_up(catalog, catalog.identifier(self._options.table), {self._draft.token}) and (
            len(messages) > 1
        ):
            delete_stragglers(self._draft)


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[PartWritten]:
    return [message.part for message in messages if isinstance(message, Written)]
