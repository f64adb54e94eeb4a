"""The changes of a table themselves, as rows: which change brought each, and at which position.

A row has the table's columns. An append or add brings all of them; of an upsert those that it
lacks are null, of a deletion all but the keys and the merge order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from mooring.changes.files import read_segments
from mooring.changes.merging import with_all_columns
from mooring.changes.replacement import REPLACEMENT
from mooring.changes.rounds import KIND
from mooring.errors import InvalidInputError, InvalidTableStateError
from mooring.identifiers import quote
from mooring.metastore import DeltaType, Segment
from mooring.spark.changes_table import (
    FixedTable,
    bare_schema,
    choose_columns,
    number_of,
    spark_columns,
)
from mooring.spark.conversion import Conversion
from mooring.spark.types import to_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from mooring.changes.definition import Definition
    from mooring.changes.plan import Moment
    from mooring.changes.table import ChangeTable
    from mooring.metastore import DataFile
    from mooring.spark.options import SourceOptions
    from mooring.store import Store

__all__ = ["ChangesReader", "ChangesStreamReader", "feed_schema", "fix_feed"]

TYPE, POSITION = "_change_type", "_change_position"
_OFFSET, _TABLE = "position", "table"
Offset = dict[str, int | str]
_EARLIEST, _LATEST = "earliest", "latest"
# Spark sets up a task for each partition: small files share one.
_ROWS_A_TASK = 1024 * 1024
_FILES_A_TASK = 64
_BATCH_ROWS = 64 * 1024
_AT_A_POSITION = ("position", "txn", "as_of")


def fix_feed(table: ChangeTable, options: SourceOptions) -> FixedTable:
    """Find which changes a query reads: from one position to another, both included.

    Raises:
        InvalidInputError: there is no such position.
    """
    options.refuse(_AT_A_POSITION, "names one state: changes are read 'fromPosition' 'toPosition'")
    _refuse_filter(options)
    moment = table.at(number_of(options, "toPosition"))
    first = number_of(options, "fromPosition")
    if first is not None and not 1 <= first <= moment.position + 1:
        msg = (
            f"option 'fromPosition' is the first position that is read, from 1 to"
            f" {moment.position + 1}, not {first}"
        )
        raise InvalidInputError(msg)
    return FixedTable(
        options.catalog,
        tuple(table.id.names),
        moment.table.definition,
        moment.position,
        after=0 if first is None else first - 1,
    )


def feed_schema(fixed: FixedTable, options: SourceOptions) -> StructType:
    """Return the schema that Spark sees.

    Raises:
        TableColumnNotFoundError: a column that was named is not there.
        UnsupportedError: Spark has no type for a column.
    """
    return to_spark(_own_columns(fixed, options))


def _own_columns(fixed: FixedTable, options: SourceOptions) -> pa.Schema:
    """Return the columns that there are: what tells of the change comes last, named or not."""
    told = [pa.field(TYPE, pa.string()), pa.field(POSITION, pa.int64())]
    every = pa.schema([*bare_schema(fixed.definition.schema), *told])
    chosen = choose_columns(every, options, fixed.what)
    return pa.schema([*chosen, *(one for one in told if one.name not in chosen.names)])


def _refuse_filter(options: SourceOptions) -> None:
    why = "is for merged rows: a change may lack the columns; filter the data frame"
    options.refuse(("filter",), why)


@dataclass(frozen=True)
class _Piece:
    """Rows of one file that one change brought."""

    position: int
    type: DeltaType
    file: DataFile
    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)


@dataclass
class _Pieces(InputPartition):
    """What one task reads."""

    value: list[_Piece]


@dataclass(frozen=True)
class _Feed:
    """How changes are read; it travels."""

    fixed: FixedTable
    wanted: pa.Schema
    batch_rows: int
    skip_replacements: bool

    @classmethod
    def make(cls, fixed: FixedTable, options: SourceOptions, schema: StructType) -> _Feed:
        wanted = spark_columns(schema, _own_columns(fixed, options), fixed.what)
        return cls(
            fixed,
            wanted,
            options.number("batch_rows") or _BATCH_ROWS,
            options.flag("skipreplacements"),
        )

    def plan(self, after: int, until: int) -> list[_Pieces]:
        """Divide the changes after a position, up to another, among tasks."""
        if until <= after:
            return []
        moment = self.fixed.now()
        _require_there(moment, after, until)
        if not self.skip_replacements:
            _refuse_replacements(moment, after, until)
        return _divide(_find_pieces(moment, after, until))

    def read(self, pieces: Sequence[_Piece]) -> Iterator[pa.RecordBatch]:
        """Read changes, in a worker."""
        store = self.fixed.catalog.open().metastore.store
        names = [name for name in self.wanted.names if name not in {TYPE, POSITION}]
        convert: Conversion | None = None
        for piece in pieces:
            for rows in _read_piece(store, piece, self.fixed.definition, names):
                for batch in rows.to_batches(max_chunksize=self.batch_rows):
                    convert = convert or Conversion(
                        batch.schema, self.wanted, self.fixed.what, is_exact=False
                    )
                    yield convert(batch)


def _require_there(moment: Moment, after: int, until: int) -> None:
    table = moment.table
    if until > table.position:
        msg = (
            f"{table.what} has no position {until}, the newest is {table.position}: it is another"
            " table than the one that was read before; begin anew with another checkpoint"
        )
        raise InvalidTableStateError(msg)
    if after < table.horizon:
        msg = (
            f"changes of {table.what} before position {table.horizon + 1} are tidied away: read the"
            f" table at position {table.horizon}, then its changes from {table.horizon + 1} on"
        )
        raise InvalidInputError(msg)


def _refuse_replacements(moment: Moment, after: int, until: int) -> None:
    found = {
        base.through
        for log in moment.partitions.values()
        for base in log.bases
        if base.properties.get(KIND) == REPLACEMENT and after < base.through <= until
    }
    if found:
        msg = (
            f"rows of {moment.table.what} were replaced at position {min(found)}, which is no"
            " change of single rows: read the table anew from there, or pass over it with the"
            " option skipReplacements=true"
        )
        raise InvalidTableStateError(msg)


def _find_pieces(moment: Moment, after: int, until: int) -> list[_Piece]:
    found = [
        _Piece(delta.position, type_, file, segments)
        for log in moment.partitions.values()
        for delta in log.deltas_between(after, until)
        for file in delta.files
        for type_, segments in _by_type(file, delta.type).items()
    ]
    return sorted(found, key=lambda one: one.position)


def _by_type(file: DataFile, type_: DeltaType) -> dict[DeltaType, tuple[Segment, ...]]:
    """Tell what the rows of a file do; rows that all do the same are read at once."""
    plain = all(one.type in {None, type_} and one.columns is None for one in file.segments)
    if plain:
        return {type_: (Segment(0, 0, file.rows or 0),)}
    found: dict[DeltaType, tuple[Segment, ...]] = {}
    for one in file.segments:
        own = one.type or type_
        found[own] = (*found.get(own, ()), one)
    return found


def _divide(pieces: Sequence[_Piece]) -> list[_Pieces]:
    """Put pieces into tasks, in their order."""
    tasks: list[_Pieces] = []
    room = 0
    for piece in pieces:
        if room <= 0:
            tasks.append(_Pieces([]))
            room = _ROWS_A_TASK
        tasks[-1].value.append(piece)
        room -= max(piece.rows, _ROWS_A_TASK // _FILES_A_TASK)
    return tasks


def _read_piece(
    store: Store, piece: _Piece, table: Definition, names: Sequence[str]
) -> Iterator[pa.Table]:
    wanted = pa.schema([table.schema.field(name) for name in names])
    if piece.type not in {DeltaType.APPEND, DeltaType.ADD}:
        wanted = bare_schema(wanted)  # nothing is known of what the change does not bring
    for rows in read_segments(store, piece.file, piece.segments, table=table, names=names):
        whole = with_all_columns(rows, wanted) if names else rows
        count = rows.num_rows if names else piece.rows
        type_ = pa.repeat(pa.scalar(piece.type.value), count)
        position = pa.repeat(pa.scalar(piece.position, pa.int64()), count)
        columns = [*whole.columns, type_, position] if names else [type_, position]
        yield pa.Table.from_arrays(columns, names=[*names, TYPE, POSITION])


class ChangesReader(DataSourceReader):
    """Reads the changes of a table from one position to another."""

    def __init__(self, fixed: FixedTable, options: SourceOptions, schema: StructType) -> None:
        """Plan to read columns of changes.

        Raises:
            TableColumnNotFoundError: there is no such column.
            TableSchemaValidationError: a column is of another type than the one that is wanted.
        """
        self._feed = _Feed.make(fixed, options, schema)

    def partitions(self) -> list[InputPartition]:
        """Divide the changes among tasks.

        Raises:
            InvalidTableStateError: rows were replaced meanwhile.
            InvalidInputError: changes were tidied away.
        """
        return [*self._feed.plan(self._feed.fixed.after, self._feed.fixed.position)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read some changes, in a worker."""
        if isinstance(partition, _Pieces):
            yield from self._feed.read(partition.value)


class ChangesStreamReader(DataSourceStreamReader):
    """Reads the changes of a table as they come; an offset is the last position that was read."""

    def __init__(self, table: ChangeTable, options: SourceOptions, schema: StructType) -> None:
        """Begin to read columns of changes, as the table calls them now.

        Raises:
            InvalidInputError: an option makes no sense.
            TableColumnNotFoundError: there is no such column.
        """
        options.refuse(_AT_A_POSITION, "names one state, and a stream goes on: 'startingPosition'")
        options.refuse(
            ("fromposition", "toposition"), "is for a batch: a stream has 'startingPosition'"
        )
        _refuse_filter(options)
        if not options.flag("changes"):
            msg = (
                f"a stream of change table {quote(str(table.id))} gives its changes, deletions"
                " among them: say so with the option changes=true, which adds the columns"
                f" {TYPE} and {POSITION}"
            )
            raise InvalidInputError(msg)
        moment = table.at()
        fixed = FixedTable(
            options.catalog, tuple(table.id.names), moment.table.definition, moment.position
        )
        self._feed = _Feed.make(fixed, options, schema)
        self._starting = options.get("startingposition")

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return what a new query has read before it begins.

        Raises:
            InvalidInputError: ``startingPosition`` makes no sense.
        """
        newest = self._newest()
        text = (self._starting or _EARLIEST).lower()
        if text == _EARLIEST:
            return self._offset(0)
        if text == _LATEST:
            return self._offset(newest)
        if not text.isdecimal() or not 0 < int(text) <= newest + 1:
            msg = (
                f"option 'startingPosition' is '{_EARLIEST}', '{_LATEST}' or a position from 1 to"
                f" {newest + 1}, the next one, not {quote(text)}"
            )
            raise InvalidInputError(msg)
        return self._offset(int(text) - 1)

    def latestOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return the newest position."""
        return self._offset(self._newest())

    def _newest(self) -> int:
        return self._feed.fixed.table().position

    def _offset(self, position: int) -> Offset:
        """Return a position of the table that is there now, whatever came before it."""
        return {_OFFSET: position, _TABLE: self._feed.fixed.table().definition.identity}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Divide the changes after one position, up to another.

        Raises:
            InvalidTableStateError: rows were replaced, or the table is another one.
            InvalidInputError: changes were tidied away.
        """
        now = self._feed.fixed.table().definition.identity
        if any(one.get(_TABLE, now) != now for one in (start, end)):
            msg = (
                f"{self._feed.fixed.what} is another table than the one that was read before: bring"
                " that one back, or begin anew with another checkpoint"
            )
            raise InvalidTableStateError(msg)
        return self._feed.plan(int(start[_OFFSET]), int(end[_OFFSET]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read some changes, in a worker."""
        assert isinstance(partition, _Pieces)  # noqa: S101  # ours, as Spark handed it back
        yield from self._feed.read(partition.value)
