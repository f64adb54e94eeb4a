"""The streaming source of `mooring`: the rows that versions of a table add.

An offset is the last version that was read. A batch is what the versions after it added, up to the
newest; of a stream that begins at the beginning the first batch is the table as it is then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.jobs.address import TableAddress
from mooring.spark.options import SourceOptions
from mooring.spark.reader import FragmentGroup, TableReader
from mooring.tables.additions import list_additions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from mooring.tables.additions import Addition
    from mooring.tables.handle import TableHandle

__all__ = ["StreamReader", "make_stream_reader"]

_VERSION = "version"
_EARLIEST, _LATEST = "earliest", "latest"
_AT_A_VERSION = ("version", "tag", "as_of", "branch")
# Spark sets up a task for each partition: small fragments share one.
_ROWS_A_TASK = 1024 * 1024
_FRAGMENTS_A_TASK = 64


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Make what reads a table as a stream.

    Args:
        options: Those of the data source, as Spark hands them over.
        schema: The columns that are wanted.

    Raises:
        InvalidInputError: an option makes no sense.
        TableNotFoundError: there is no such table.
    """
    given = SourceOptions.parse(options)
    given.refuse(_AT_A_VERSION, "names one state, and a stream goes on: use 'startingVersion'")
    return StreamReader(given, schema)


@dataclass
class _Piece(InputPartition):
    """Fragments that one task reads, by the version that added them."""

    fragments: list[tuple[int, tuple[int, ...]]]

    def add(self, version: int, number: int) -> None:
        """Take one more fragment."""
        if self.fragments and self.fragments[-1][0] == version:
            _, known = self.fragments.pop()
            self.fragments.append((version, (*known, number)))
        else:
            self.fragments.append((version, (number,)))


class StreamReader(DataSourceStreamReader):
    """Reads what versions of one table add."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Locate the table.

        Raises:
            TableNotFoundError: there is no such table.
        """
        catalog = options.open(must_exist=True)
        self._address = TableAddress(
            options.catalog, tuple(catalog.identifier(options.table).names)
        )
        self._starting = options.get("startingversion")
        self._skip_changes = options.flag("skipchangecommits")
        self._options = options
        self._schema = schema
        self._handle.open()

    @property
    def _handle(self) -> TableHandle:
        return self._address.table().handle

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Return what a new query has read before it begins.

        Raises:
            InvalidInputError: ``startingVersion`` makes no sense.
        """
        newest = self._newest()
        text = (self._starting or _EARLIEST).lower()
        if text == _EARLIEST:
            return {_VERSION: 0}
        if text == _LATEST:
            return {_VERSION: newest}
        if not text.isdecimal() or not 0 < int(text) <= newest + 1:
            msg = (
                f"option 'startingVersion' is '{_EARLIEST}', '{_LATEST}' or a version from 1 to"
                f" {newest + 1}, the next one, not {quote(text)}"
            )
            raise InvalidInputError(msg)
        return {_VERSION: int(text) - 1}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Return the newest version."""
        return {_VERSION: self._newest()}

    def _newest(self) -> int:
        newest = self._handle.ledger.newest(None)
        return 0 if newest is None else newest.version

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Divide what the versions after one, up to another, added.

        Raises:
            InvalidTableStateError: a version changed or deleted rows.
            TableVersionNotFoundError: versions were cleaned away.
        """
        if start == end:
            return []
        additions = list_additions(
            self._handle, start[_VERSION], end[_VERSION], skip_changes=self._skip_changes
        )
        return _divide(additions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition, in a worker."""
        assert isinstance(partition, _Piece)  # noqa: S101  # ours, as Spark handed it back
        for version, fragments in partition.fragments:
            yield from self._read(version, fragments)

    def _read(self, version: int, fragments: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        reader = TableReader(replace(self._address, version=version), self._options, self._schema)
        yield from reader.read(FragmentGroup(fragments))


def _divide(additions: Sequence[Addition]) -> list[_Piece]:
    """Put fragments into tasks, in their order; what one version added may be divided."""
    pieces: list[_Piece] = []
    room = 0
    for addition in additions:
        for number, rows in zip(addition.fragments, addition.rows, strict=True):
            if room <= 0:
                pieces.append(_Piece([]))
                room = _ROWS_A_TASK
            pieces[-1].add(addition.version, number)
            room -= max(rows, _ROWS_A_TASK // _FRAGMENTS_A_TASK)
    return pieces
