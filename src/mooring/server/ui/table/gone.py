"""A table that is not there: dropped, with the way back, or unknown, with names that are close."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError, NotLanceTableError, TableNotFoundError
from mooring.hints import close_names
from mooring.namespace.states import Exists, SoftDeleted
from mooring.server.roles import Role
from mooring.server.ui.lifespan import part_left
from mooring.server.ui.table.subject import TableView

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = ["GONE_TEMPLATE", "GoneView", "show_gone"]

GONE_TEMPLATE = "table/gone.html"
_NOT_FOUND, _GONE = 404, 410
_MOST_COMPARED = 20_000  # more take long, and a search finds them


class Close(msgspec.Struct, frozen=True, kw_only=True):
    """A table with a name that is close."""

    id: list[str]
    href: str


class GoneView(TableView, frozen=True, kw_only=True):
    """A table that is not there, or none that the page can show.

    Attributes:
        status: Of HTTP.
        message: What, which and what next.
        is_dropped: Whether it was dropped and can come back.
        deleted_at_ms: When it was dropped.
        expires_at_ms: When its time in the trash is over; None for never.
        by: Who dropped it, where that is known.
        left: The part of its time that is left, from 0 to 1; None where it has no end.
        undrop_href: Where it is brought back, for those who may.
        purge_href: Where its bytes are deleted, for those who may.
        close: Tables with names that are close.
        search_href: Where to look for it.
    """

    status: int
    message: str
    is_dropped: bool = False
    deleted_at_ms: int | None = None
    expires_at_ms: int | None = None
    by: str = ""
    left: float | None = None
    undrop_href: str = ""
    purge_href: str = ""
    close: list[Close] = msgspec.field(default_factory=list)
    search_href: str = ""


def show_gone(visit: Visit, failure: TableNotFoundError) -> GoneView:
    """Say what became of a table that a page is about.

    Args:
        visit: Who looks.
        failure: Why the page cannot be made.

    Raises:
        TableNotFoundError: the table is there; the failure says more.
    """
    table = visit.table
    if isinstance(failure, NotLanceTableError):
        return GoneView(id=list(table.names), status=failure.http_status, message=str(failure))
    match visit.backend.table_status(table):
        case SoftDeleted(deleted_at_ms, expires_at_ms):
            return _dropped(visit, failure, deleted_at_ms, expires_at_ms)
        case Exists():
            raise failure
        case _:
            return _unknown(visit, failure)


def _dropped(
    visit: Visit, failure: TableNotFoundError, deleted_at_ms: int, expires_at_ms: int | None
) -> GoneView:
    table, links = visit.table, visit.links
    return GoneView(
        cli=visit.cli("table", "undrop", names=[str(table)]),
        id=list(table.names),
        status=_GONE,
        message=str(failure),
        is_dropped=True,
        deleted_at_ms=deleted_at_ms,
        expires_at_ms=expires_at_ms,
        by=_dropped_by(visit),
        left=part_left(deleted_at_ms, expires_at_ms, visit.now_ms),
        undrop_href=links.table(table, "undrop") if visit.may(Role.WRITER, table) else "",
        purge_href=links.table(table, "purge") if visit.may(Role.ADMIN, table) else "",
    )


def _dropped_by(visit: Visit) -> str:
    with suppress(MooringError):  # not every catalog tells
        for change in reversed(visit.backend.table_history(visit.table)):
            if change.action == "drop":
                return change.by
    return ""


def _unknown(visit: Visit, failure: TableNotFoundError) -> GoneView:
    table = visit.table
    return GoneView(
        id=list(table.names),
        status=_NOT_FOUND,
        message=str(failure),
        close=[Close(id=list(one.names), href=visit.links.table(one)) for one in _close(visit)],
        search_href=visit.links.to("search", q=table.name),
    )


def _close(visit: Visit) -> list[ObjectId]:
    """Find tables that may be meant, of those that whoever looks may know."""
    table = visit.table
    try:
        names = visit.atlas.picture().tables_in.get(table.parent, ())
    except MooringError:
        return []
    known = [
        name
        for name in names[:_MOST_COMPARED]
        if visit.identity.role_in(visit.served.name, table.parent.child(name))
    ]
    return [table.parent.child(name) for name in close_names(table.name, known)]
