"""What was dropped, and the end of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.identifiers import ROOT, ObjectId
from mooring.server.mooring import shapes
from mooring.server.mooring.calls import Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.mooring.calls import Call

__all__ = ["doomed", "list_trash", "purge_trash"]

logger = logging.getLogger(__name__)


def list_trash(call: Call) -> shapes.Trash:
    """List the dropped tables and namespaces that whoever asks may read."""
    before_ms = call.number("deleted_before_ms")
    tables = [
        shapes.DroppedObject(list(one.id.names), one.deleted_at_ms, one.expires_at_ms)
        for one in call.backend.list_purgable_tables(before_ms)
        if call.identity.role_in(call.served.name, one.id)
    ]
    return shapes.Trash(tables, _namespaces(call, before_ms))


def _namespaces(call: Call, before_ms: int | None) -> list[shapes.DroppedObject]:
    backend, found = call.backend, []
    for one, standing in backend.dropped_namespaces() if isinstance(backend, Whole) else ():
        at_ms, ttl_ms = standing.deleted_at_ms or 0, standing.ttl_ms
        is_wanted = before_ms is None or at_ms < before_ms
        if is_wanted and call.identity.role_in(call.served.name, one):
            ends = None if ttl_ms is None else at_ms + ttl_ms
            found.append(shapes.DroppedObject(list(one.names), at_ms, ends))
    return found


def doomed(call: Call) -> Sequence[ObjectId]:
    """Return what a purge is about: the tables that it names, else the whole catalog.

    Raises:
        InvalidNameError: one cannot be an identifier.
    """
    asked: shapes.Purge = call.asked
    return [ROOT] if asked.ids is None else _unique(asked.ids)


def purge_trash(call: Call) -> shapes.PurgeResult:
    """Delete the bytes of dropped tables: of those that are named, else of all that expired."""
    asked: shapes.Purge = call.asked
    wanted = None if asked.ids is None else _unique(asked.ids)
    report = call.backend.purge_tables(wanted)
    return shapes.PurgeResult(
        purged=[list(one.names) for one in report.purged],
        failed=[_failed(one, exc) for one, exc in report.failed.items()],
    )


def _unique(ids: Sequence[Sequence[str]]) -> list[ObjectId]:
    return list(dict.fromkeys(ObjectId.of(one) for one in ids))


def _failed(table: ObjectId, exc: Exception) -> shapes.FailedPurge:
    if isinstance(exc, MooringError):
        return shapes.FailedPurge(list(table.names), exc.code, str(exc))
    logger.error("the purge of '%s' failed unexpectedly", table, exc_info=exc)
    msg = "something unexpected happened; the server's log tells what"
    return shapes.FailedPurge(list(table.names), MooringError.code, msg)
