"""What a manifest catalog tells of its trash, and which of it a purge takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.decisions import Hint, State
from mooring.directory.entries import is_dropped, is_namespace, is_table, object_id_of
from mooring.directory.row_keys import key_of
from mooring.errors import TableNotFoundError
from mooring.identifiers import quote
from mooring.namespace.presence import was_dropped
from mooring.namespace.purging import came_back, is_over, nothing_to_purge
from mooring.namespace.states import Exists, NotFound, SoftDeleted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mooring.clock import Clock
    from mooring.directory.entries import DroppedRow
    from mooring.directory.manifest import Manifest
    from mooring.directory.trash import Trash
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import PurgeProgress
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.tables.manifest import ManifestRow

__all__ = ["Dropped"]


class Dropped:
    """The trash of a manifest by identifiers."""

    def __init__(
        self, manifest: Manifest, trash: Trash, clock: Clock, is_live: Callable[[ObjectId], bool]
    ) -> None:
        """Look into a trash.

        Args:
            manifest: The catalog's manifest.
            trash: Its trash.
            clock: Tells whose time is over.
            is_live: Whether a live table has an identifier.
        """
        self._manifest = manifest
        self._trash = trash
        self._clock = clock
        self._is_live = is_live

    # -- telling -------------------------------------------------------------------------------

    def status(self, table: ObjectId) -> SoftDeleted | NotFound:
        """Tell whether a dropped table of an identifier can come back."""
        return _status(self._trash.newest_of(key_of(table)))

    def status_beside(
        self, table: ObjectId, is_live: Callable[[ManifestRow | None], bool]
    ) -> TableStatus:
        """Tell whether a table is live, dropped or not there, all by one version.

        Args:
            table: Its identifier.
            is_live: Whether a row makes it live.
        """
        row, found = self._trash.look(key_of(table))
        return Exists() if is_live(row) else _status(found)

    def list_tables(self, before_ms: int | None) -> list[DroppedTable]:
        """List the tables that can come back, sorted; if wanted, those dropped before a time."""
        return [
            table
            for table in sorted(self._trash.tables(), key=lambda table: table.id)
            if before_ms is None or table.deleted_at_ms < before_ms
        ]

    def tables(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table in the trash is."""
        return [_tell(row) for row in self._trash.rows() if is_table(row.row)]

    def namespaces(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every namespace in the trash is, sorted, without those that went with one."""
        found = [
            _tell(row)
            for row in self._trash.rows()
            if is_namespace(row.row) and row.record.top == row.object_id
        ]
        return sorted(found, key=lambda told: told[0])

    def why_not_live(self, table: ObjectId) -> TableNotFoundError:
        """Word what happened to a table that is not live."""
        dropped = self._trash.newest_of(key_of(table))
        if dropped is None:
            return TableNotFoundError(f"there is no table {quote(str(table))}")
        record = dropped.record
        above = None if record.top == dropped.object_id else record.top
        return was_dropped(str(table), self._clock.now_ms() - record.deleted_at_ms, above)

    # -- purging -------------------------------------------------------------------------------

    def purge(self, table: ObjectId, progress: PurgeProgress | None) -> None:
        """Purge every drop of a table.

        Raises:
            TableNotFoundError: there is none.
            ConcurrentModificationError: the table came back.
        """
        found = self._drops_of(table)
        if not found:
            raise nothing_to_purge(table, is_live=self._is_live(table))
        # One that came back and was dropped again meanwhile is another drop.
        while found and not self._purge(found, progress):
            if self._are_back(found):
                raise came_back(table)
            found = self._drops_of(table)

    def _drops_of(self, table: ObjectId) -> list[DroppedRow]:
        key = key_of(table)
        return [row for row in self._trash.rows() if row.object_id == key and is_table(row.row)]

    def _are_back(self, rows: list[DroppedRow]) -> bool:
        """Whether what was in the trash left it by an undrop, and not by another's purge."""
        locations = {row.row.location for row in rows}
        with self._manifest.reading() as draft:
            return any(
                row.location in locations and not is_dropped(row.object_id) for row in draft.rows()
            )

    def purge_over(
        self, progress: PurgeProgress | None, only: Collection[ObjectId] | None = None
    ) -> list[ObjectId]:
        """Purge what is due, or of it the drops of some tables only; tell which tables it was."""
        now_ms = self._clock.now_ms()
        over = [row for row in self._trash.rows() if _is_over(row, now_ms)]
        if only is not None:
            wanted = set(map(key_of, only))
            over = [row for row in over if is_table(row.row) and row.object_id in wanted]
        return self._purge(over, progress)

    def _purge(self, rows: list[DroppedRow], progress: PurgeProgress | None) -> list[ObjectId]:
        def report(key: str, files: int, size_bytes: int) -> None:
            if progress:
                progress(object_id_of(key), files, size_bytes)

        if not rows:
            return []
        purged = self._trash.purge([row.key for row in rows], report)
        return [object_id_of(row.object_id) for row in purged if is_table(row.row)]


def _tell(row: DroppedRow) -> tuple[ObjectId, Hint]:
    """Tell whose row of the trash it is, and what its owner is."""
    state = State.PURGING if row.record.purging else State.DELETED
    hint = Hint(state, row.record.deleted_at_ms, row.record.ttl_ms)
    return object_id_of(row.object_id), hint


def _is_over(row: DroppedRow, now_ms: int) -> bool:
    return is_over(row.expires_at_ms, now_ms, purging=row.record.purging)


def _status(found: DroppedRow | None) -> SoftDeleted | NotFound:
    if found is None:
        return NotFound()
    return SoftDeleted(found.record.deleted_at_ms, found.expires_at_ms)
