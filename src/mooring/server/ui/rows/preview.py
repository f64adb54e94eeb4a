"""Rows of one version of a Lance table: never more of them, or of a value, than a page has."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mooring.errors import InvalidInputError, NotFoundError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.server.ui.rows.cells import Cell, blob_cell, make_cell
from mooring.server.ui.rows.image_kinds import HEAD_BYTES
from mooring.server.ui.rows.values import kind_of
from mooring.server.ui.rows.vectors import is_vector, read_vector
from mooring.server.ui.rows.view import RowView, ShownColumn
from mooring.server.ui.type_words import say_type
from mooring.tables.blobs import describe_blob
from mooring.tables.field_paths import format_path
from mooring.tables.query import build_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from mooring.server.ui.rows.selection import Selection
    from mooring.server.ui.visit import Visit
    from mooring.tables.query import Query
    from mooring.tables.snapshot import Snapshot

__all__ = ["MOST_COLUMNS", "Preview", "longest_of", "read_one", "show_column"]

# Unless they are chosen, no more columns are shown.
MOST_COLUMNS = 40
_ROW_ID = "_rowid"
_FOUND = {"_distance": "distance", "_score": "score"}
# So much is read for a page; what was not reached is on the next one.
_MOST_BYTES = 64 * 1024 * 1024
_LONGEST_S = 10.0
# All texts of a page together, and of one value.
_PAGE_CHARACTERS = 1_000_000
_LEAST_CHARACTERS, _MOST_CHARACTERS = 200, 4000


@dataclass(slots=True)
class Preview:
    """Reads the rows that a page shows.

    Attributes:
        visit: The request.
        selection: What is looked at.
        snapshot: The version.
        columns: The names of the columns.
        shown: The columns as the page shows them, with what a search found out.
        rows: The rows.
        has_more: Whether others follow.
        stopped: Why there are fewer than there is room for; nothing where there are no more.
    """

    visit: Visit
    selection: Selection
    snapshot: Snapshot
    columns: Sequence[str]
    shown: list[ShownColumn] = field(default_factory=list)
    rows: list[RowView] = field(default_factory=list)
    has_more: bool = False
    stopped: str = ""
    _blobs: dict[int, list[Any]] = field(default_factory=dict)

    def read(self) -> None:
        """Read them.

        Raises:
            MooringError: the filter, the columns or the search make no sense.
        """
        reader = self.snapshot.query(self._query())
        self.shown = self._shown(reader.schema)
        began_s, read_bytes = time.monotonic(), 0
        for batch in reader:
            self._take(batch)
            read_bytes += batch.nbytes
            if self.has_more:
                break
            if read_bytes > _MOST_BYTES or time.monotonic() - began_s > _LONGEST_S:
                self._stop()
                break
        for index, blobs in self._blobs.items():
            self._read_blobs(index, blobs)

    def _stop(self) -> None:
        if len(self.rows) < self.selection.limit:
            self.has_more = True
            self.stopped = (
                f"The rows are large: {len(self.rows):,} of {self.selection.limit:,} are on this"
                " page. Choose fewer columns to see more at once."
            )

    def _query(self) -> Query:
        selection = self.selection
        common: dict[str, Any] = {
            "columns": [format_path((name,)) for name in self.columns],
            "where": selection.where or None,
            "with_row_id": True,
            "prefilter": True,
        }
        if selection.like is not None:
            row, column = selection.like
            vector = read_one(self.snapshot, column, row)
            if not is_vector(vector.type) or not vector.is_valid:
                raise InvalidInputError(f"row {row} has no vector in column {quote(column)}")
            numbers = read_vector(vector).tolist()
            path = format_path((column,))
            return build_query(vector=numbers, vector_column=path, k=selection.limit, **common)
        common |= {"limit": selection.limit + 1, "offset": selection.offset}
        return build_query(text=selection.text or None, **common)

    def _shown(self, schema: pa.Schema) -> list[ShownColumn]:
        """Name the columns of the result, what a search found out first."""
        own = [self.snapshot.schema.field(name) for name in self.columns]
        found = [_FOUND[name] for name in schema.names if name in _FOUND]
        return [
            *(ShownColumn(name=name, type="float32", kind="number") for name in found),
            *(show_column(one, self.snapshot.blob_columns) for one in own),
        ]

    def _take(self, batch: pa.RecordBatch) -> None:
        ids = batch.column(batch.schema.names.index(_ROW_ID)).to_pylist()
        found = [index for index, name in enumerate(batch.schema.names) if name in _FOUND]
        positions = [*found, *range(len(self.columns))]
        longest = longest_of(self.selection.limit, len(positions))
        for row, row_id in enumerate(ids):
            if len(self.rows) == self.selection.limit:
                self.has_more = True
                return
            cells = [
                self._cell(batch.column(at)[row], shown, row_id, longest)
                for shown, at in enumerate(positions)
            ]
            number = self.selection.offset + len(self.rows) + 1
            self.rows.append(RowView(id=row_id, number=number, cells=cells))

    def _cell(self, value: pa.Scalar, shown: int, row_id: int, longest: int) -> Cell:
        column = self.shown[shown]
        if column.kind == "blob":
            self._blobs.setdefault(shown, []).append(value.as_py())
            return Cell(kind="null")  # until the first bytes are read, of all at once
        cell = make_cell(value, longest)
        is_own = shown >= len(self.shown) - len(self.columns)
        return self._linked(cell, column.name, row_id) if is_own else cell

    def _read_blobs(self, index: int, described: Sequence[Any]) -> None:
        column = self.shown[index].name
        blobs = [describe_blob(one) for one in described]
        parts = [
            (row.id or 0, 0, min(HEAD_BYTES, blob.size_bytes))
            for row, blob in zip(self.rows, blobs, strict=True)
            if blob is not None and blob.is_own
        ]
        heads = iter(self.snapshot.blob_parts(column, parts))
        for row, blob in zip(self.rows, blobs, strict=True):
            head = next(heads) if blob is not None and blob.is_own else None
            row.cells[index] = self._linked(blob_cell(blob, head), column, row.id or 0)

    def _linked(self, cell: Cell, column: str, row: int) -> Cell:
        """Add where all of a value is, and what else it leads to."""
        at, links = self.snapshot.at, self.visit.links
        address = {"version": at.version, "branch": at.branch, "column": column, "row": row}
        if cell.media_type and not cell.note:
            cell = replace(cell, image=links.table(self.visit.table, "image", **address))
        if cell.vector is not None:
            like = self.selection.href(self.visit, at=at, like=(row, column), offset=0, text="")
            cell = replace(cell, like_href=like)
        if cell.is_cut and not (cell.kind == "blob" and not cell.size_bytes):
            cell = replace(cell, href=links.table(self.visit.table, "cell", **address))
        return cell


def longest_of(rows: int, columns: int) -> int:
    """Say how many characters of each value a page has room for."""
    each = _PAGE_CHARACTERS // max(1, rows * columns)
    return max(_LEAST_CHARACTERS, min(_MOST_CHARACTERS, each))


def show_column(one: pa.Field, blobs: frozenset[str] = frozenset()) -> ShownColumn:
    """Show a column of a schema."""
    if one.name in blobs:
        return ShownColumn(name=one.name, type="blob", kind="blob")
    kind = "vector" if is_vector(one.type) else kind_of(one.type)
    told = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (one.metadata or {}).items()
    }
    return ShownColumn(name=one.name, type=say_type(one.type, told), kind=kind)


def read_one(snapshot: Snapshot, column: str, row: int) -> pa.Scalar:
    """Read one value; of a blob, its description.

    Raises:
        TableColumnNotFoundError: there is no such column.
        NotFoundError: there is no such row.
    """
    if column not in snapshot.schema.names:
        raise TableColumnNotFoundError(f"the table has no column {quote(column)}")
    query = build_query([format_path((column,))], f"_rowid = {row}", limit=1)
    for batch in snapshot.query(query):
        if batch.num_rows:
            return batch.column(0)[0]
    raise NotFoundError(f"version {snapshot.version} has no row with the id {row}")
