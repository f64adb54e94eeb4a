"""Rows on their way to Lance, which would report a failure of theirs as one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import InvalidInputError, MooringError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WatchedRows"]


class WatchedRows:
    """Rows on their way; ``reader`` gives them once, ``count`` tells how many it gave."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        """Watch rows."""
        self._rows = rows
        self._failure: Exception | None = None
        self.count = 0
        self.reader = pa.RecordBatchReader.from_batches(rows.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rows:
                self.count += batch.num_rows
                yield batch
        except Exception as exc:
            self._failure = exc
            raise

    @property
    def failure(self) -> MooringError | None:
        """What went wrong with the rows themselves."""
        if self._failure is None or isinstance(self._failure, MooringError):
            return self._failure
        return InvalidInputError(f"the rows could not be read to their end: {self._failure}")
