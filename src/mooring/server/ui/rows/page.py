"""The page of rows: what a table holds, a page of it at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as with_fields

from mooring.config import mask_uris
from mooring.errors import (
    InvalidInputError,
    NotLanceTableError,
    TableColumnNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.server.ui.rows.change_rows import show_change_rows
from mooring.server.ui.rows.preview import MOST_COLUMNS, Preview, show_column
from mooring.server.ui.rows.selection import Selection, join_names
from mooring.server.ui.rows.view import RowsView, ShownColumn
from mooring.tables.handle import At
from mooring.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit
    from mooring.table import Table

__all__ = ["show_rows"]

# Of a table with no more rows, those that a filter leaves are counted.
_COUNTED_ROWS = 500_000
_MOST_CHOICES = 500
_COLUMNS = "; its columns are "


def show_rows(visit: Visit) -> RowsView:
    """Show rows of a table.

    Raises:
        TableNotFoundError: there is none.
        TableVersionNotFoundError: there is no such version.
        TableTagNotFoundError: there is no such tag.
        TableBranchNotFoundError: there is no such branch.
    """
    selection = Selection.of(visit)
    try:
        table = visit.open_table()
    except NotLanceTableError as exc:
        if visit.kind == "metastore":
            return show_change_rows(visit, selection)
        return _absent(visit, _plainly(str(exc), visit))
    except UnsupportedError as exc:
        return _absent(visit, _plainly(str(exc), visit))
    return _show_lance(visit, table, selection)


def _show_lance(visit: Visit, table: Table, selection: Selection) -> RowsView:
    try:
        snapshot = Snapshot(table.handle, selection.at)
    except TableNotFoundError:
        return _absent(
            visit,
            "This table is only declared: it has a name and a place, and no rows yet.",
            visit.cli("table", "create", "--from", "FILE", names=[str(visit.table)]),
        )
    except UnsupportedError as exc:
        return _absent(visit, _plainly(str(exc), visit))
    # From here on all addresses name this version: others may write meanwhile.
    view = _frame(visit, table, selection, snapshot)
    return _with_rows(visit, replace(selection, at=snapshot.at), snapshot, view)


def _absent(visit: Visit, why: str, command: str = "") -> RowsView:
    return RowsView(id=list(visit.table.names), absent=why, command=command)


def _frame(visit: Visit, table: Table, selection: Selection, snapshot: Snapshot) -> RowsView:
    """Show everything but the rows."""
    pinned = replace(selection, at=snapshot.at)
    newest = _newest(table, selection, snapshot)
    at_newest = replace(pinned, at=At(branch=snapshot.at.branch), offset=0, like=None)
    everything = Selection(at=snapshot.at, columns=selection.columns, limit=selection.limit)
    return RowsView(
        id=list(visit.table.names),
        cli=_command(visit, pinned),
        version=snapshot.version,
        branch=snapshot.at.branch or "",
        tag=selection.at.tag or "",
        newest=newest,
        newest_href=at_newest.address(visit) if newest is not None else "",
        where=selection.where,
        columns=_choices(selection, snapshot),
        chosen="" if selection.columns is None else join_names(selection.columns),
        offset=selection.offset,
        limit=selection.limit,
        total=snapshot.rows,
        text=selection.text,
        text_columns=snapshot.text_columns,
        like=None if selection.like is None else selection.like[0],
        by="" if selection.like is None else selection.like[1],
        all_href=everything.address(visit),
    )


def _with_rows(visit: Visit, selection: Selection, snapshot: Snapshot, view: RowsView) -> RowsView:
    try:
        names = _columns(selection, snapshot)
        preview = Preview(visit, selection, snapshot, names)
        preview.read()
    except (InvalidInputError, TableColumnNotFoundError) as exc:
        return with_fields(view, error=_plainly(str(exc), visit))
    before, after = _around(visit, selection, preview)
    return with_fields(
        view,
        shown=preview.shown,
        rows=preview.rows,
        matching=_matching(selection, snapshot, preview),
        notes=_notes(selection, snapshot, preview),
        before_href=before,
        next_href=after,
    )


def _columns(selection: Selection, snapshot: Snapshot) -> list[str]:
    """Return the columns that are shown.

    Raises:
        TableColumnNotFoundError: one is not there.
    """
    known = snapshot.schema.names
    if selection.columns is None:
        return list(known[:MOST_COLUMNS])
    for name in selection.columns:
        if name not in known:
            raise TableColumnNotFoundError(f"there is no column {quote(name)}")
    return list(selection.columns)


def _choices(selection: Selection, snapshot: Snapshot) -> list[ShownColumn]:
    wanted = selection.columns or snapshot.schema.names[:MOST_COLUMNS]
    return [
        with_fields(show_column(one, snapshot.blob_columns), is_shown=one.name in wanted)
        for one in list(snapshot.schema)[:_MOST_CHOICES]
    ]


def _around(visit: Visit, selection: Selection, preview: Preview) -> tuple[str, str]:
    """Return where the rows before and after these are."""
    before = max(0, selection.offset - selection.limit)
    after = selection.offset + len(preview.rows)
    has_more = preview.has_more and selection.like is None
    return (
        selection.href(visit, offset=before) if selection.offset else "",
        selection.href(visit, offset=after) if has_more else "",
    )


def _matching(selection: Selection, snapshot: Snapshot, preview: Preview) -> int | None:
    """Count what a filter leaves, where that is quick."""
    if selection.is_search or not selection.where:
        return None
    if not preview.has_more and (preview.rows or not selection.offset):
        return selection.offset + len(preview.rows)
    if snapshot.rows > _COUNTED_ROWS:
        return None
    return snapshot.count(selection.where)


def _notes(selection: Selection, snapshot: Snapshot, preview: Preview) -> list[str]:
    notes = [preview.stopped] if preview.stopped else []
    known = len(snapshot.schema.names)
    if selection.columns is None and known > MOST_COLUMNS:
        notes.append(f"The first {MOST_COLUMNS:,} of {known:,} columns are shown.")
    return notes


def _newest(table: Table, selection: Selection, snapshot: Snapshot) -> int | None:
    """Find the newest version, where another one is looked at."""
    if selection.at.version is None and selection.at.tag is None:
        return None
    newest = int(table.handle.open(At(branch=snapshot.at.branch)).version)
    return newest if newest != snapshot.version else None


def _plainly(message: str, visit: Visit) -> str:
    """Leave out which table a message is about, and its columns: the page has both."""
    own = mask_uris(message).removeprefix(f"table {quote(str(visit.table))}: ")
    plain = own.partition(_COLUMNS)[0]
    ending = "" if plain.endswith(("?", ".")) else "."
    return f"{plain[:1].upper()}{plain[1:]}{ending}"


def _command(visit: Visit, selection: Selection) -> str:
    words = ["table", "query", f"--limit={selection.limit}"]
    options = {
        "--version": selection.at.version,
        "--branch": selection.at.branch,
        "--where": selection.where,
        "--columns": ",".join(selection.columns or ()),
        "--text": selection.text,
        "--offset": selection.offset,
    }
    for option, value in options.items():
        words += [f"{option}={value}"] if value else []
    return "" if selection.like is not None else visit.cli(*words, names=[str(visit.table)])
