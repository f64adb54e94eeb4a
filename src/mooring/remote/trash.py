"""Drops, and what becomes of what was dropped: more than Lance REST has words for.

Spec: soft-delete, "DROP vs PURGE in the namespace API".
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidTableStateError, MooringError
from mooring.identifiers import ObjectId, quote
from mooring.namespace.api import PurgeReport, TableInfo
from mooring.namespace.states import DroppedTable, Exists, NotFound, SoftDeleted, Standing
from mooring.remote.failures import error_of
from mooring.remote.times import ttl_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.api import Ttl
    from mooring.namespace.states import TableStatus
    from mooring.remote.connection import Connection
    from mooring.remote.tables import Tables

__all__ = ["Trash"]

# Files without number may have to be deleted before the answer.
_PURGE_TIMEOUT_S = 3600.0


class Trash:
    """The dropped tables of a remote catalog, and how they come and go."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            tables: The catalog's tables.
        """
        self._connection = connection
        self._tables = tables

    def status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there.

        A server of Lance REST alone knows nothing of dropped ones.
        """
        beside = self._connection.beside.offered()
        if beside is not None:
            return _read_status(beside.of_table(table, "status", method="GET"))
        return NotFound() if self._tables.look(table) is None else Exists()

    def drop(self, table: ObjectId, ttl: Ttl | None) -> TableInfo:
        """Drop a table.

        Raises:
            UnsupportedError: a time in the trash is wanted of a server that has none.
        """
        if ttl is not None:
            self._connection.beside.require("keep what is dropped for a time")

        def change() -> TableInfo:
            answer = self._connection.lance.of_table(
                table, "drop", headers=ttl_headers(ttl), changes=True
            )
            return _gone(table, answer)

        def look() -> TableInfo | None:
            return None if isinstance(self.status(table), Exists) else _gone(table, {})

        return self._connection.settle(change, look)

    def forget(self, table: ObjectId) -> TableInfo:
        """Forget a table's name and keep its bytes."""

        def change() -> TableInfo:
            return _gone(table, self._connection.lance.of_table(table, "deregister", changes=True))

        def look() -> TableInfo | None:
            # One that somebody dropped at the same time was not deregistered.
            return _gone(table, {}) if isinstance(self.status(table), NotFound) else None

        return self._connection.settle(change, look)

    def undrop(self, table: ObjectId, new: ObjectId | None) -> TableInfo:
        """Make a dropped table live again."""
        beside = self._connection.beside.require("bring a table back")
        body = {} if new is None else {"new_id": list(new.names)}
        target = new or table

        def change() -> TableInfo:
            answer = beside.of_table(table, "undrop", body=body, changes=True)
            with suppress(MooringError):  # it is done, and others may do more
                return self._tables.describe(target)
            return self._connection.info(target, answer)

        def look() -> TableInfo | None:
            is_gone = not isinstance(self.status(table), SoftDeleted)
            return self._tables.describe(target) if is_gone else None

        return self._connection.settle(change, look)

    def protect(self, table: ObjectId, *, protected: bool) -> None:
        """Make drops of a table refuse, or allow them again."""
        beside = self._connection.beside.require("protect a table")
        beside.of_table(table, "protect", body={"protected": protected}, changes=True)

    def read(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the dropped tables, sorted."""
        found = self._ask("list what was dropped", deleted_before_ms).get("tables") or ()
        return sorted(
            (
                DroppedTable(_id(one), int(one["deleted_at_ms"]), one.get("expires_at_ms"))
                for one in found
            ),
            key=lambda one: one.id,
        )

    def standings(self) -> list[tuple[ObjectId, Standing]]:
        """Tell of each dropped table since when it is; of none where the server does not tell."""
        return self._standings("tables")

    def namespaces(self) -> list[tuple[ObjectId, Standing]]:
        """List the dropped namespaces; none where the server does not tell."""
        return self._standings("namespaces")

    def _standings(self, kind: str) -> list[tuple[ObjectId, Standing]]:
        if self._connection.beside.offered() is None:
            return []
        found = self._ask("list what was dropped", None).get(kind) or ()
        return sorted(((_id(one), _standing(one)) for one in found), key=lambda pair: pair[0])

    def _ask(self, wish: str, deleted_before_ms: int | None) -> dict[str, Any]:
        beside = self._connection.beside.require(wish)
        before = None if deleted_before_ms is None else str(deleted_before_ms)
        return beside.of_catalog(
            "trash", "the trash", method="GET", query={"deleted_before_ms": before}
        )

    def purge(self, table: ObjectId) -> None:
        """Delete the bytes of a dropped table."""
        beside = self._connection.beside.require("delete a dropped table for good")

        def change() -> bool:
            beside.of_table(table, "purge", changes=True, timeout_s=_PURGE_TIMEOUT_S)
            return True

        def look() -> bool | None:
            return True if isinstance(self.status(table), NotFound) else None

        self._connection.settle(change, look)

    def purge_several(self, tables: Sequence[ObjectId] | None) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        beside = self._connection.beside.require("delete dropped tables for good")
        body = {} if tables is None else {"ids": [list(one.names) for one in tables]}
        answer = beside.of_catalog(
            "trash/purge", "the trash", body=body, changes=True, timeout_s=_PURGE_TIMEOUT_S
        )
        failed = answer.get("failed") or ()
        return PurgeReport(
            [ObjectId(tuple(names)) for names in answer.get("purged") or ()],
            {_id(one): error_of(int(one["code"]), str(one.get("error") or "")) for one in failed},
        )


def _gone(table: ObjectId, answer: Mapping[str, Any]) -> TableInfo:
    """Return what is known of a table that is live no more."""
    properties = {str(key): str(text) for key, text in (answer.get("properties") or {}).items()}
    return TableInfo(table, str(answer.get("location") or ""), {}, properties)


def _read_status(answer: Mapping[str, Any]) -> TableStatus:
    match answer.get("status"):
        case "exists":
            return Exists()
        case "soft_deleted":
            return SoftDeleted(int(answer["deleted_at_ms"]), answer.get("expires_at_ms"))
        case "not_found":
            return NotFound()
    msg = f"the server tells a state of the table that is not known: {quote(str(answer))}"
    raise InvalidTableStateError(msg)


def _id(found: Mapping[str, Any]) -> ObjectId:
    return ObjectId(tuple(found["id"]))


def _standing(found: Mapping[str, Any]) -> Standing:
    at_ms, ends = int(found["deleted_at_ms"]), found.get("expires_at_ms")
    return Standing("deleted", at_ms, None if ends is None else int(ends) - at_ms)
