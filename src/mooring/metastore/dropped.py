"""What a metastore tells of its trash, and which of it a purge takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.namespace.purging import came_back, is_over, nothing_to_purge
from mooring.namespace.states import DroppedTable, NotFound, SoftDeleted, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mooring.clock import Clock
    from mooring.identifiers import ObjectId
    from mooring.metastore.locator import Locator
    from mooring.metastore.trash import DroppedObject, Trash
    from mooring.namespace.api import PurgeProgress

__all__ = ["Dropped"]


class Dropped:
    """The trash of a metastore by identifiers."""

    def __init__(self, trash: Trash, clock: Clock, is_live: Callable[[ObjectId], bool]) -> None:
        """Look into a trash.

        Args:
            trash: The trash.
            clock: Tells whose time is over.
            is_live: Whether a live table has an identifier.
        """
        self._trash = trash
        self._clock = clock
        self._is_live = is_live

    # -- telling ---------------------------------------------------------------------------------

    def status(self, table: ObjectId) -> SoftDeleted | NotFound:
        """Tell whether a dropped table of an identifier can come back."""
        found = self._trash.newest_of(table)
        if found is None:
            return NotFound()
        return SoftDeleted(found.record.at_ms, found.record.expires_at_ms)

    def list_tables(self, before_ms: int | None) -> list[DroppedTable]:
        """List the tables that can come back; if wanted, those dropped before a time."""
        return [
            DroppedTable(one.id, one.record.at_ms, one.record.expires_at_ms)
            for one in self._trash.tables()
            if before_ms is None or one.record.at_ms < before_ms
        ]

    def tables(self) -> list[tuple[ObjectId, Standing]]:
        """Tell what every table in the trash is."""
        return [(one.id, _standing(one)) for one in self._trash.read() if one.table]

    def namespaces(self) -> list[tuple[ObjectId, Standing]]:
        """Tell what every namespace in the trash is, sorted."""
        return [(one.id, _standing(one)) for one in self._trash.read() if one.table is None]

    def places_of(self, table: ObjectId) -> list[Locator]:
        """Tell where everything lies that was dropped under an identifier."""
        return [one.locator for one in self._trash.read() if one.id == table]

    # -- purging ---------------------------------------------------------------------------------

    def purge(self, table: ObjectId, progress: PurgeProgress | None) -> None:
        """Purge every drop of a table.

        Raises:
            TableNotFoundError: there is none.
            ConcurrentModificationError: the table came back.
        """
        found = self._drops_of(table)
        if not found:
            raise nothing_to_purge(table, is_live=self._is_live(table))
        while found and not self._trash.purge(found, progress):
            found = self._drops_of(table)
            if not found and self._is_live(table):
                raise came_back(table)

    def _drops_of(self, table: ObjectId) -> list[DroppedObject]:
        return [one for one in self._trash.read() if one.id == table and one.table is not None]

    def purge_over(
        self, progress: PurgeProgress | None, only: Collection[ObjectId] | None = None
    ) -> list[ObjectId]:
        """Purge what is due, or of it the drops of some tables only; tell which tables it was."""
        now_ms = self._clock.now_ms()
        over = [one for one in self._trash.read() if _is_over(one, now_ms)]
        if only is not None:
            over = [one for one in over if one.table is not None and one.id in only]
        purged = self._trash.purge(over, progress) if over else []
        return [one.id for one in purged if one.table is not None]


def _standing(found: DroppedObject) -> Standing:
    state = "purging" if found.record.purging else "deleted"
    return Standing(state, found.record.at_ms, found.record.ttl_ms)


def _is_over(found: DroppedObject, now_ms: int) -> bool:
    return is_over(found.record.expires_at_ms, now_ms, purging=found.record.purging)
