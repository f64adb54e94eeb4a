"""What happened to a table in its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.errors import NotLanceTableError, UnsupportedError
from mooring.namespace.states import SoftDeleted
from mooring.server.ui.table.subject import TableView

if TYPE_CHECKING:
    from mooring.namespace.api import Change
    from mooring.server.ui.visit import Visit

__all__ = ["HistoryView", "show_history"]

_MOST = 500
_WORDS = {
    "create": "created",
    "write": "written",
    "drop": "dropped",
    "undrop": "undropped",
    "purge": "purged",
    "declare": "declared",
    "register": "registered",
    "deregister": "deregistered",
    "rename": "renamed",
    "protect": "protected",
    "unprotect": "no longer protected",
    "restore": "restored",
    "update": "properties changed",
    "delete": "deleted",
}


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened.

    Attributes:
        action: In the catalog's word.
        text: The same for people.
        tone: How its badge looks.
        state: What the table was after it.
        by: Who did it.
        at_ms: When.
        version: The version that was made; None where none was.
        href: That version's page; empty where there is none.
    """

    action: str
    text: str
    tone: str
    state: str
    by: str
    at_ms: int
    version: int | None
    href: str


class HistoryView(TableView, frozen=True, kw_only=True):
    """What happened to a table.

    Attributes:
        happenings: The newest first.
        in_all: How many are known.
        unsupported: Why nothing is known, where the catalog cannot tell.
        is_dropped: Whether it was dropped and can come back.
    """

    happenings: list[Happening] = msgspec.field(default_factory=list)
    in_all: int = 0
    unsupported: str = ""
    is_dropped: bool = False


def show_history(visit: Visit) -> HistoryView:
    """Show what happened to a table, the newest first.

    Raises:
        TableNotFoundError: there is no table of this name, live or dropped.
    """
    cli = visit.cli("table", "history", names=[str(visit.table)])
    names = list(visit.table.names)
    try:
        changes = visit.backend.table_history(visit.table)
    except UnsupportedError as exc:
        return HistoryView(cli=cli, id=names, unsupported=str(exc))
    is_dropped = isinstance(visit.backend.table_status(visit.table), SoftDeleted)
    if not changes and not is_dropped:
        _require_known(visit)
    newest = sorted(changes, key=lambda one: one.at_ms, reverse=True)
    return HistoryView(
        cli=cli,
        id=names,
        happenings=[_happening(visit, one) for one in newest[:_MOST]],
        in_all=len(changes),
        is_dropped=is_dropped,
    )


def _require_known(visit: Visit) -> None:
    """Refuse a name that nothing is known of; a table of others may have no past that is told."""
    try:
        visit.open_table()
    except NotLanceTableError:
        return


def _happening(visit: Visit, one: Change) -> Happening:
    href = ""
    if one.version is not None and one.state == "live":
        href = visit.links.table(visit.table, version=one.version)
    return Happening(
        action=str(one.action),
        text=_WORDS.get(str(one.action), str(one.action)),
        tone={"drop": "warn", "purge": "bad", "deregister": "warn"}.get(str(one.action), ""),
        state=str(one.state),
        by=one.by,
        at_ms=one.at_ms,
        version=one.version,
        href=href,
    )
