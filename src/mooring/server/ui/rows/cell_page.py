"""The page of one value, and the picture that it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.server.ui.formats import size
from mooring.server.ui.rows.content import Part, open_bytes, open_content
from mooring.server.ui.rows.image_kinds import HEAD_BYTES, LARGEST_BYTES, image_type
from mooring.server.ui.rows.preview import read_one, show_column
from mooring.server.ui.rows.selection import Selection, read_at
from mooring.server.ui.rows.vectors import Vector, is_vector, read_vector, summarize
from mooring.server.ui.view import Attachment, View
from mooring.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from mooring.server.ui.rows.content import Content
    from mooring.server.ui.visit import Visit

__all__ = ["CellView", "make_image", "show_cell"]


class CellView(View, frozen=True, kw_only=True):
    """One value.

    Attributes:
        id: The table.
        column: The column.
        type: Its type.
        row: The row's id.
        version: The version.
        branch: Its branch; nothing for main.
        is_null: Whether there is none.
        part: The part of it that is shown.
        size: How much there is of it.
        unit: What is counted.
        is_cut: Whether there is more, which is not shown here at all.
        image: Where the picture is that it is.
        vector: What is told of a vector.
        before_href: The part before; empty where there is none.
        next_href: The next one; empty where there is none.
        rows_href: The rows of the version.
    """

    id: list[str]
    column: str
    type: str
    row: int
    version: int
    branch: str
    is_null: bool = False
    part: Part | None = None
    size: int = 0
    unit: str = ""
    is_cut: bool = False
    image: str = ""
    vector: Vector | None = None
    before_href: str = ""
    next_href: str = ""
    rows_href: str


def show_cell(visit: Visit) -> CellView:
    """Show one value of a table.

    Raises:
        TableNotFoundError: there is no such table.
        TableColumnNotFoundError: it has no such column.
        NotFoundError: it has no such row.
        InvalidInputError: the address names no value, or the value lies elsewhere.
    """
    column, row = _which(visit)
    snapshot = _opened(visit)
    value = read_one(snapshot, column, row)
    shown = show_column(snapshot.schema.field(column), snapshot.blob_columns)
    view = CellView(
        id=list(visit.table.names),
        column=column,
        type=shown.type,
        row=row,
        version=snapshot.version,
        branch=snapshot.at.branch or "",
        is_null=not value.is_valid,
        vector=(
            summarize(read_vector(value)) if value.is_valid and is_vector(value.type) else None
        ),
        rows_href=Selection(at=snapshot.at).address(visit),
    )
    if view.is_null:
        return view
    return _with_content(visit, view, open_content(snapshot, column, row, value))


def _with_content(visit: Visit, view: CellView, content: Content) -> CellView:
    part = content.part(min(visit.number("from") or 0, max(0, content.size - 1)))
    address = {
        "version": view.version,
        "branch": view.branch or None,
        "column": view.column,
        "row": view.row,
    }

    def link(begin: int) -> str:
        return visit.links.table(visit.table, "cell", **{**address, "from": begin or None})

    is_image = bool(part.lines) and _is_image(content)
    return replace(
        view,
        part=part,
        size=content.size,
        unit=content.unit,
        is_cut=content.is_cut,
        image=visit.links.table(visit.table, "image", **address) if is_image else "",
        before_href=link(max(0, part.begin - content.step)) if part.begin else "",
        next_href=link(part.end) if part.begin < part.end < content.size else "",
    )


def _is_image(content: Content) -> bool:
    read = getattr(content, "read", None)
    if read is None or content.size > LARGEST_BYTES:
        return False
    return image_type(read(0, min(HEAD_BYTES, content.size))) is not None


def make_image(visit: Visit) -> Attachment:
    """Return the picture that a value is.

    Raises:
        TableNotFoundError: there is no such table.
        TableColumnNotFoundError: it has no such column.
        NotFoundError: it has no such row.
        InvalidInputError: the value is no picture, or one that is too large.
    """
    column, row = _which(visit)
    snapshot = _opened(visit)
    content = open_bytes(snapshot, column, row, read_one(snapshot, column, row))
    media_type = image_type(content.read(0, min(HEAD_BYTES, content.size)))
    if media_type is None:
        msg = f"column {quote(column)} has no picture in row {row} that browsers draw safely"
        raise InvalidInputError(msg)
    if content.size > LARGEST_BYTES:
        msg = f"the picture has {size(content.size)}: up to {size(LARGEST_BYTES)} are shown"
        raise InvalidInputError(msg)
    return Attachment(content.read(0, content.size), media_type)


def _opened(visit: Visit) -> Snapshot:
    """Open the version that an address names."""
    return Snapshot(visit.open_table().handle, read_at(visit))


def _which(visit: Visit) -> tuple[str, int]:
    row = visit.number("row")
    column = visit.query.get("column", "")
    if row is None or not column:
        raise InvalidInputError("which value? Say the column and the id of the row")
    return column, row
