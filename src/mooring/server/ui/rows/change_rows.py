"""Rows of a change table, as all its changes come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.errors import InvalidInputError, TableColumnNotFoundError
from mooring.server.ui.rows.cells import make_cell
from mooring.server.ui.rows.preview import MOST_COLUMNS, longest_of, show_column
from mooring.server.ui.rows.selection import join_names
from mooring.server.ui.rows.view import RowsView, RowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.glance import Glance
    from mooring.changes.plan import Moment
    from mooring.server.ui.rows.selection import Selection
    from mooring.server.ui.visit import Visit

__all__ = ["show_change_rows"]


def show_change_rows(visit: Visit, selection: Selection) -> RowsView:
    """Show rows of a change table, as far as a look is cheap.

    Raises:
        TableNotFoundError: there is none.
    """
    from mooring.changes import ChangeTable
    from mooring.changes.glance import glance

    table = ChangeTable(visit.catalog, visit.table)
    try:
        moment = table.at(visit.number("position"))
    except InvalidInputError as exc:
        return RowsView(id=list(visit.table.names), is_changes=True, absent=f"{exc}.")
    names = moment.table.definition.schema.names
    wanted = list(selection.columns or names[:MOST_COLUMNS])
    view = _frame(visit, selection, moment, wanted)
    try:
        found = glance(
            table,
            moment,
            wanted,
            selection.where or None,
            offset=selection.offset,
            limit=selection.limit,
        )
    except (InvalidInputError, TableColumnNotFoundError) as exc:
        return replace(view, error=f"{exc}.")
    return replace(view, **_rows(visit, selection, moment, found))


def _frame(visit: Visit, selection: Selection, moment: Moment, wanted: Sequence[str]) -> RowsView:
    """Show everything but the rows."""
    fields = moment.table.definition.schema
    words = ["changes", "read", f"--at-position={moment.position}", f"--limit={selection.limit}"]
    options = {"--where": selection.where, "--columns": ",".join(selection.columns or ())}
    for option, value in options.items():
        words += [f"{option}={value}"] if value else []
    return RowsView(
        id=list(visit.table.names),
        cli=visit.cli(*words, names=[str(visit.table)]),
        is_changes=True,
        position=moment.position,
        where=selection.where,
        columns=[replace(show_column(one), is_shown=one.name in wanted) for one in fields],
        chosen="" if selection.columns is None else join_names(selection.columns),
        offset=selection.offset,
        limit=selection.limit,
        all_href=visit.links.table(visit.table, "rows", position=moment.position),
    )


def _rows(visit: Visit, selection: Selection, moment: Moment, found: Glance) -> dict[str, object]:
    longest = longest_of(selection.limit, found.rows.num_columns)
    rows = [
        RowView(
            id=None,
            number=selection.offset + index + 1,
            cells=[make_cell(column[index], longest) for column in found.rows.columns],
        )
        for index in range(found.rows.num_rows)
    ]
    last = selection.offset + len(rows)
    has_more = found.found > last or (not found.is_all and len(rows) == selection.limit)
    total = found.found if found.is_all else None
    return {
        "shown": [show_column(one) for one in found.rows.schema],
        "rows": rows,
        "total": None if selection.where else total,
        "matching": total if selection.where else None,
        "notes": _notes(selection, found, len(rows)),
        "before_href": _at(visit, selection, moment, -selection.limit) if selection.offset else "",
        "next_href": _at(visit, selection, moment, len(rows)) if has_more else "",
    }


def _notes(selection: Selection, found: Glance, shown: int) -> list[str]:
    if found.is_all or shown == selection.limit:
        return []
    note = (
        f"Changes are merged as they are read, which was done for {found.buckets:,} of"
        f" {found.of:,} parts of the table: read the others in a terminal."
    )
    return [note]


def _at(visit: Visit, selection: Selection, moment: Moment, by: int) -> str:
    return visit.links.table(
        visit.table,
        "rows",
        position=moment.position,
        where=selection.where or None,
        columns=None if selection.columns is None else join_names(selection.columns),
        offset=max(0, selection.offset + by) or None,
    )
