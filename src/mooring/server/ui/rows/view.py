"""What the page of rows shows."""

from __future__ import annotations

import msgspec

from mooring.server.ui.rows.cells import Cell
from mooring.server.ui.view import View

__all__ = ["RowView", "RowsView", "ShownColumn"]


class ShownColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the table.

    Attributes:
        name: Its name.
        type: Its type.
        kind: How its values are shown.
        is_shown: Whether they are.
    """

    name: str
    type: str
    kind: str = "text"
    is_shown: bool = True


class RowView(msgspec.Struct, frozen=True, kw_only=True):
    """A row.

    Attributes:
        id: Its id in this version; None where rows have none.
        number: Which row it is, from 1.
        cells: Its values, by the columns that are shown.
    """

    id: int | None
    number: int
    cells: list[Cell]


class RowsView(View, frozen=True, kw_only=True):
    """Rows of a table.

    Attributes:
        id: The table.
        absent: Why there are no rows to look at; empty where there are.
        command: What to do about it in a terminal.
        version: The version; None for a change table.
        branch: Its branch; nothing for main.
        tag: The tag by which it was asked for.
        newest: The newest version of the branch, where another was asked for.
        newest_href: The same rows there.
        position: Of a change table: the position.
        is_changes: Whether it is a change table.
        where: The filter, as it was typed.
        columns: All columns, as far as they can be chosen here.
        chosen: Those that were asked for, as it was written; nothing for all.
        error: What is wrong with the filter, the columns or the words.
        shown: The columns that are shown, as the cells of a row are.
        rows: The rows.
        offset: So many come before them.
        limit: So many are shown at most.
        total: How many rows the table has; None where nobody counted.
        matching: How many the filter leaves; None where nobody counted.
        notes: What was left out, a sentence each.
        text: The words that were looked for.
        text_columns: Where words can be looked for.
        like: The id of the row of which those like it are shown.
        by: The column of its vector.
        all_href: All rows, of the same version.
        before_href: The rows before; empty where there are none.
        next_href: Those that follow; empty where there are none.
        hidden: What a form sends along.
    """

    id: list[str]
    absent: str = ""
    command: str = ""
    version: int | None = None
    branch: str = ""
    tag: str = ""
    newest: int | None = None
    newest_href: str = ""
    position: int | None = None
    is_changes: bool = False
    where: str = ""
    columns: list[ShownColumn] = msgspec.field(default_factory=list)
    chosen: str = ""
    error: str = ""
    shown: list[ShownColumn] = msgspec.field(default_factory=list)
    rows: list[RowView] = msgspec.field(default_factory=list)
    offset: int = 0
    limit: int = 50
    total: int | None = None
    matching: int | None = None
    notes: list[str] = msgspec.field(default_factory=list)
    text: str = ""
    text_columns: list[str] = msgspec.field(default_factory=list)
    like: int | None = None
    by: str = ""
    all_href: str = ""
    before_href: str = ""
    next_href: str = ""

    @property
    def last(self) -> int:
        """The number of the last row that is shown."""
        return self.offset + len(self.rows)

    @property
    def is_filtered(self) -> bool:
        """Whether rows may be left out by a filter or search."""
        return bool(self.where or self.text) or self.like is not None
