"""A table at one version, opened once: what is read of it belongs together, whoever writes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from mooring.tables.blobs import blob_columns, read_blob_parts
from mooring.tables.handle import NEWEST, At
from mooring.tables.query import count, indexed_columns, run
from mooring.tables.tags import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from mooring.tables.handle import TableHandle
    from mooring.tables.query import Query

__all__ = ["Snapshot"]


class Snapshot:
    """A version of a table that is looked at."""

    def __init__(self, handle: TableHandle, at: At = NEWEST) -> None:
        """Open the table.

        Args:
            handle: The table.
            at: The version, tag or branch; the newest version unless given.

        Raises:
            TableNotFoundError: the table is only declared.
            UnsupportedError: it lies where this program cannot reach it.
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            TableBranchNotFoundError: there is no such branch.
        """
        self._handle = handle
        found = resolve(handle, at)
        self._dataset = handle.open(found)
        self.at = At(int(self._dataset.version), branch=found.branch)

    @property
    def version(self) -> int:
        """Its number."""
        assert self.at.version is not None  # noqa: S101  # set when it was opened
        return self.at.version

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._dataset.schema

    @cached_property
    def rows(self) -> int:
        """How many rows there are, which is known without a look at them."""
        return count(self._handle, opened=self._dataset)

    @cached_property
    def blob_columns(self) -> frozenset[str]:
        """The names of the columns that hold blobs."""
        return blob_columns(self.schema)

    @cached_property
    def text_columns(self) -> list[str]:
        """The columns that have a full-text index."""
        return indexed_columns(self._dataset)

    def count(self, where: str) -> int:
        """Count the rows for which a filter holds.

        Raises:
            MooringError: as a query does.
        """
        return count(self._handle, where, opened=self._dataset)

    def query(self, query: Query) -> pa.RecordBatchReader:
        """Answer a query by a stream of batches; what it says of a version does not count.

        Raises:
            MooringError: as `mooring.tables.query.run` does.
        """
        return run(self._handle, query, self._dataset)

    def blob_parts(self, column: str, parts: Sequence[tuple[int, int, int]]) -> list[bytes | None]:
        """Read parts of blobs: of each the row's id, where it begins and how long it is.

        Raises:
            MooringError: they cannot be read.
        """
        return read_blob_parts(self._dataset, column, parts, self._handle.what)
