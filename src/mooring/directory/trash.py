"""Drop, undrop and purge in a manifest: each is decided by one commit.

A drop moves rows under an identifier of the trash. An undrop moves them back. A purge first
marks them, from which nothing comes back, then deletes files, then removes the rows: whoever
finds marked rows can finish it.

Spec: soft-delete, "DROP vs PURGE in the namespace API"; directory-namespace, "V2: Manifest".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.clock import parse_ttl
from mooring.directory.entries import (
    DropRecord,
    is_namespace,
    is_table,
    make_dropped,
    object_id_of,
    parent_of,
    properties_of,
    read_dropped,
)
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
    TableNotFoundError,
)
from mooring.hints import suggest
from mooring.identifiers import quote
from mooring.namespace.locations import is_outside, overlaps
from mooring.namespace.properties import PROTECTED, RETENTION
from mooring.namespace.states import DroppedTable
from mooring.tables.manifest import NAMESPACE, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mooring.clock import Clock, IdSource
    from mooring.directory.draft import Draft
    from mooring.directory.entries import DroppedRow
    from mooring.directory.manifest import Manifest
    from mooring.namespace.api import Ttl
    from mooring.store import Store
    from mooring.tables.manifest import ManifestRow

    Progress = Callable[[str, int, int], None]

__all__ = ["Drop", "Trash", "nearest_retention", "require_unprotected"]


class Trash:
    """What was dropped from a manifest, and the ways in and out."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        *,
        clock: Clock,
        ids: IdSource,
        author: str,
        keeps: Callable[[str], bool],
    ) -> None:
        """Work on a catalog's manifest in somebody's name.

        Args:
            store: The catalog's store.
            manifest: Its manifest.
            clock: Stamps drops.
            ids: Makes identifiers of drops.
            author: Who drops.
            keeps: Whether files are used beyond what the manifest says; asked once a purge of
                them is marked.
        """
        self._keeps = keeps
        self._store = store
        self._manifest = manifest
        self._clock = clock
        self._ids = ids
        self._author = author

    # -- dropping ------------------------------------------------------------------------------

    def drop_table(self, table: str, ttl: Ttl | None, default_ttl_ms: int | None) -> ManifestRow:
        """Move a live table into the trash.

        Raises:
            TableNotFoundError: no live table has this identifier.
            ProtectedError: the table or a namespace around it is protected.
        """
        drop = self.begin_drop()

        def plan(draft: Draft) -> ManifestRow:
            row = draft.require_table(table)
            require_unprotected(draft, row)
            ttl_ms = ttl.ms if ttl else nearest_retention(draft, table, default_ttl_ms)
            drop.move(draft, table, [row], ttl_ms)
            return row

        return self._manifest.change(plan)

    def begin_drop(self) -> Drop:
        """Prepare a drop that is part of a change."""
        return Drop(self._ids.new_id(), self._author, self._clock.now_ms())

    def drop_namespace(
        self, namespace: str, ttl: Ttl | None, default_ttl_ms: int | None, *, cascade: bool
    ) -> list[ManifestRow]:
        """Move a namespace, and with ``cascade`` all that is in it, into the trash.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            NamespaceNotEmptyError: something is in it, and ``cascade`` was not asked for.
            ProtectedError: it, or something in or around it, is protected.
        """
        drop = self.begin_drop()

        def plan(draft: Draft) -> list[ManifestRow]:
            draft.require_namespace(namespace)
            below = draft.descendants(namespace)
            if below and not cascade:
                raise _not_empty(namespace, below)
            row = draft.get(namespace)
            rows = [row, *below] if row else below
            for found in rows:
                require_unprotected(draft, found)
            ttl_ms = ttl.ms if ttl else nearest_retention(draft, namespace, default_ttl_ms)
            drop.move(draft, namespace, rows, ttl_ms)
            return rows

        return self._manifest.change(plan)

    # -- looking -------------------------------------------------------------------------------

    def rows(self) -> list[DroppedRow]:
        """Read the whole trash."""
        with self._manifest.reading() as draft:
            return _read_all(draft)

    def newest_of(self, table: str) -> DroppedRow | None:
        """Return the newest drop of a table's name that can come back."""
        return self.look(table)[1]

    def look(self, table: str) -> tuple[ManifestRow | None, DroppedRow | None]:
        """Return the row of a name, and its newest drop that can come back.

        Both are of one version: what comes back meanwhile is never in neither.
        """
        with self._manifest.reading() as draft:
            return draft.get(table), _newest(draft, table, TABLE)

    def tables(self) -> list[DroppedTable]:
        """List the dropped tables that can come back."""
        return [
            DroppedTable(object_id_of(row.object_id), row.record.deleted_at_ms, row.expires_at_ms)
            for row in self.rows()
            if is_table(row.row) and not row.record.purging
        ]

    # -- undropping ----------------------------------------------------------------------------

    def undrop_table(
        self, table: str, new: str, check: Callable[[Draft, str], None]
    ) -> ManifestRow:
        """Bring the newest drop of a table back, under its own or another identifier.

        Args:
            table: The identifier that was dropped.
            new: The one it gets.
            check: Whether that may be used, beyond what the manifest says.

        Raises:
            TableNotFoundError: nothing dropped has this identifier.
            NamespaceNotFoundError: the namespace it would lie in is not there.
            TableAlreadyExistsError: the identifier is taken.
        """

        def plan(draft: Draft) -> ManifestRow:
            found = _newest(draft, table, TABLE)
            if found is None:
                live = is_table(draft.get(table))
                why = "is live: there is nothing to undrop" if live else "is not in the trash"
                msg = f"table {quote(table)} {why}"
                raise TableNotFoundError(msg)
            draft.require_namespace(parent_of(new))
            draft.require_free(new)
            check(draft, new)
            row = found.restored(new)
            draft.remove(found.key)
            draft.put(row)
            return row

        return self._manifest.change(plan)

    def undrop_namespace(self, namespace: str) -> int:
        """Bring the newest drop of a namespace back, with all that was dropped with it.

        Returns:
            How many objects came back.

        Raises:
            NamespaceNotFoundError: nothing dropped has this identifier, or its parent is gone.
            TableAlreadyExistsError: the identifier of one of its tables is taken.
            NamespaceAlreadyExistsError: the identifier of a namespace is taken.
            InvalidTableStateError: part of it is being purged.
        """

        def plan(draft: Draft) -> int:
            top = _newest(draft, namespace, NAMESPACE)
            if top is None or top.record.top != namespace:
                msg = f"no dropped namespace is named {quote(namespace)}"
                raise NamespaceNotFoundError(msg)
            draft.require_namespace(parent_of(namespace))
            draft.look_below(namespace)
            tree = _read(draft.dropped_together(top.drop_id))
            for found in tree:
                if found.record.purging:
                    msg = f"{quote(found.object_id)} of namespace {quote(namespace)} is purged"
                    raise InvalidTableStateError(msg)
                draft.require_free(found.object_id)
                draft.remove(found.key)
                draft.put(found.restored(found.object_id))
            return len(tree)

        return self._manifest.change(plan)

    # -- purging -------------------------------------------------------------------------------

    def purge(self, keys: list[str], progress: Progress | None = None) -> list[DroppedRow]:
        """Delete the files of rows of the trash, then the rows.

        Args:
            keys: Rows of the trash; one that came back meanwhile is left alone.
            progress: Told the identifier, and files and bytes deleted so far.

        Returns:
            What was purged.
        """

        def mark(draft: Draft) -> list[tuple[DroppedRow, bool]]:
            marked = []
            for key in keys:
                row = draft.get(key)
                found = read_dropped(row) if row else None
                if found is not None:
                    draft.put(found.marked_purging())
                    marked.append(found)
            uses = _Uses(draft)
            return [(found, uses.has_other(found)) for found in marked]

        marked = self._manifest.change(mark)
        for found, shared in marked:
            location = found.row.location
            if location and not shared and not is_outside(location) and not self._keeps(location):
                self._delete_files(found, progress)
        self._manifest.change(lambda draft: draft.remove_all(found.key for found, _ in marked))
        return [found for found, _ in marked]

    def _delete_files(self, found: DroppedRow, progress: Progress | None) -> None:
        location = found.row.location or ""
        metas = self._store.list_prefix(location)
        self._store.delete(meta.path for meta in metas)
        self._store.delete_prefix(location)
        if progress:
            progress(found.object_id, len(metas), sum(meta.size_bytes for meta in metas))


class Drop:
    """One drop in the making.

    Tried again on a newer version it makes the same rows of the trash, unless others have dropped
    something of the same identifier meanwhile: what is written for a try serves the next one.
    """

    def __init__(self, drop_id: str, author: str, at_ms: int) -> None:
        """Prepare a drop by somebody at a time."""
        self._drop_id = drop_id
        self._author = author
        self._at_ms = at_ms
        self._seq = 0

    def move(self, draft: Draft, top: str, rows: Sequence[ManifestRow], ttl_ms: int | None) -> None:
        """Move into the trash what is dropped, and what is in it."""
        earlier = _read(draft.dropped_as(top, (row.object_id for row in rows)))
        newest = max((found.record.seq for found in earlier), default=0)
        if self._seq <= newest:
            self._seq = max(newest, draft.version) + 1
        record = DropRecord(
            top=top, seq=self._seq, deleted_at_ms=self._at_ms, by=self._author, ttl_ms=ttl_ms
        )
        for row in rows:
            draft.remove(row.object_id)
            draft.put(make_dropped(row, self._drop_id, record))


def require_unprotected(draft: Draft, row: ManifestRow) -> None:
    """Refuse to drop what is protected, itself or by a namespace around it.

    Raises:
        ProtectedError: it is.
    """
    key: str | None = row.object_id
    while key:
        found = draft.get(key)
        if properties_of(found).get(PROTECTED) == "true":
            kind = "namespace" if is_namespace(found) else "table"
            verb = "namespace set" if kind == "namespace" else "table unprotect"
            flag = " --unprotect" if kind == "namespace" else ""
            msg = (
                f"{kind} {quote(key)} is protected, so {quote(row.object_id)} cannot be dropped:"
                f' lift it first with "{suggest(verb, key)}{flag}"'
            )
            raise ProtectedError(msg)
        key = parent_of(key)


def nearest_retention(draft: Draft, object_id: str, default_ms: int | None) -> int | None:
    """Return the time to live that counts for a drop: that of the nearest namespace around it."""
    key = object_id
    while key:
        found = properties_of(draft.get(key)).get(RETENTION)
        if found is not None:
            try:
                return parse_ttl(found)
            except InvalidInputError:
                pass  # another program wrote it
        key = parent_of(key)
    return default_ms


def _read_all(draft: Draft) -> list[DroppedRow]:
    return _read(draft.dropped())


def _read(rows: Iterable[ManifestRow]) -> list[DroppedRow]:
    found = map(read_dropped, rows)
    return [row for row in found if row is not None and not row.record.parked]


def _newest(draft: Draft, object_id: str, kind: str) -> DroppedRow | None:
    found = [
        row
        for row in _read(draft.dropped_as(object_id))
        if row.row.object_type == kind and not row.record.purging
    ]
    return max(found, key=lambda row: row.record.seq, default=None)


class _Uses:
    """Which locations are used by names that may still be read."""

    def __init__(self, draft: Draft) -> None:
        self._used: set[str] = set()
        for row in draft.rows():
            dropped = read_dropped(row)
            if row.location and not (dropped and dropped.record.purging):
                self._used.add(row.location)
        # Most tables lie directly below the root, where none can be in another.
        self._nested = [location for location in self._used if "/" in location]

    def has_other(self, found: DroppedRow) -> bool:
        """Whether the files of a row that is purged are used elsewhere."""
        location = found.row.location or ""
        if location in self._used:
            return True
        alike = self._used if "/" in location else self._nested
        return any(overlaps(location, other) for other in alike)


def _not_empty(namespace: str, below: list[ManifestRow]) -> NamespaceNotEmptyError:
    tables = sum(is_table(row) for row in below)
    msg = (
        f"namespace {quote(namespace)} is not empty: {tables} tables and"
        f" {len(below) - tables} namespaces are in it, such as {quote(below[0].object_id)};"
        " drop it with cascade to drop them with it"
    )
    return NamespaceNotEmptyError(msg)
