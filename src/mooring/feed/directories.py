"""Looking at directory catalogs: the manifest tells its rows, one listing of the root the rest.

Of a root table in `<name>.lance`, the newest decision tells who dropped it, brought it back or
protected it, and what else a listing does not show. It is read for those that changed.

Spec: directory-namespace, "V1: Directory Listing" and "V2: Manifest".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mooring.directory.chain import Chains
from mooring.directory.decisions import UNDO_RENAME
from mooring.directory.entries import (
    is_dropped,
    is_namespace,
    is_table,
    object_id_of,
    properties_of,
    read_dropped,
)
from mooring.directory.layout import (
    is_table_name,
    parse_state_file,
    reserved_marker_path,
    table_dir,
)
from mooring.directory.locations import is_by_hash, looks_by_hash
from mooring.errors import MooringError, TableNotFoundError
from mooring.feed.event import OLD_ID, Event, Kind
from mooring.feed.look import Look, SeenDrop, SeenTable
from mooring.identifiers import DELIMITER, ROOT, ObjectId
from mooring.namespace.locations import is_outside
from mooring.namespace.properties import PROTECTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.decisions import Decision
    from mooring.directory.entries import DroppedRow
    from mooring.directory.listing_backend import ListingBackend
    from mooring.namespace.states import DroppedTable
    from mooring.store import Store
    from mooring.tables.manifest import ManifestRow

__all__ = ["ListedDirectory", "NamedDirectory"]

# Beyond so many changes at once nobody waits for a look at each: it is told what was seen.
_CLOSE_LOOKS = 200
_CAME = frozenset({Kind.TABLE_CREATED, Kind.TABLE_UNDROPPED})
_BY_ACTION = {
    "undrop": Kind.TABLE_UNDROPPED,
    UNDO_RENAME: Kind.TABLE_UNDROPPED,
    "register": Kind.TABLE_REGISTERED,
    "create": Kind.TABLE_CREATED,
    "declare": Kind.TABLE_DECLARED,
}
# What a decision must be for whoever made it to have ended a table's life.
_ENDS = {
    Kind.TABLE_DROPPED: ("drop", "rename"),
    Kind.TABLE_REMOVED: ("deregister", "rename"),
    Kind.TABLE_PURGED: ("purge",),
}
_PROTECTION = {"protect": "true", "unprotect": None}
_RENAME = "rename"


class ListedDirectory:
    """A directory without a manifest."""

    def __init__(self, backend: ListingBackend) -> None:
        """Look at a directory."""
        self._backend = backend
        self._files: Sequence[str] = ()

    @property
    def is_decisive(self) -> bool:
        """Whether nothing changed where the stamp is the same as before."""
        return self._backend.settings.adopted  # else others may leave markers inside of tables

    def stamp(self) -> object:
        """Return what lies in the root: one listing."""
        listing = self._backend.store.list_dir("")
        self._files = listing.files
        return sorted(listing.directories), sorted(listing.files)

    def look(self) -> Look:
        """Tell all tables by one listing."""
        marks = _marks(self._files)
        scan = self._backend.scan()
        tables = {
            ROOT.child(name): SeenTable(table_dir(name), {}, mark=marks.get(name))
            for name in scan.live
        }
        drops = [
            SeenDrop(
                ROOT.child(name), hint.deleted_at_ms or 0, _expiry(hint.deleted_at_ms, hint.ttl_ms)
            )
            for name, hint in scan.other.items()
            if hint.state.in_trash
        ]
        return Look({ROOT: None}, tables, drops)

    def refine(self, events: list[Event], before: Look) -> list[Event]:
        """Read what was decided about the tables that changed."""
        del before
        return _Closer(self._backend, lambda _: True).refine(events)


class NamedDirectory:
    """A directory with a manifest, whose root may hold tables that it does not name."""

    def __init__(self, backend: CompatBackend) -> None:
        """Look at a directory."""
        self._backend = backend
        self._files: Sequence[str] = ()
        self._rows: Mapping[str, ManifestRow] = {}
        # What tables were in the last look, with their rows.
        self._known: dict[tuple[str, ...], tuple[ManifestRow | None, SeenTable]] = {}

    @property
    def is_decisive(self) -> bool:
        """Whether nothing changed where the stamp is the same as before."""
        # Else others may leave markers inside of tables that lie in the root.
        return self._backend.settings.adopted or not self._backend.listing

    def stamp(self) -> object:
        """Return the manifest's version, and what lies in the root where that counts."""
        with self._backend.manifest.reading() as draft:
            version = draft.version
        if not self._backend.listing:
            return version
        listing = self._backend.store.list_dir("")
        self._files = listing.files
        return version, sorted(listing.directories), sorted(listing.files)

    def look(self) -> Look:
        """Tell everything by the manifest and one listing."""
        root = self._backend.describe_namespace(ROOT)
        with self._backend.manifest.reading() as draft:
            rows = {row.object_id: row for row in draft.rows()}
        self._rows = rows
        namespaces: dict[ObjectId, Mapping[str, str] | None] = {ROOT: root}
        namespaces |= {
            object_id_of(key): properties_of(row)
            for key, row in rows.items()
            if is_namespace(row) and not is_dropped(key)
        }
        trash = [found for row in rows.values() if (found := read_dropped(row))]
        gone = [_gone(one) for one in trash if is_namespace(one.row)]
        return Look(namespaces, self._tables(rows), self._drops(trash), gone)

    def _tables(self, rows: Mapping[str, ManifestRow]) -> dict[ObjectId, SeenTable]:
        marks = _marks(self._files)
        found: dict[ObjectId, SeenTable] = {}
        kept: dict[tuple[str, ...], tuple[ManifestRow | None, SeenTable]] = {}
        for one in self._backend.list_all_tables():
            row = rows.get(DELIMITER.join(one.names))
            own = table_dir(one.name) if one.level == 1 else None
            location = row.location if row is not None and row.location else own
            mark = marks.get(one.name) if location == own else None
            known = self._known.get(one.names)
            # Most rows are those of the look before; to read their properties takes long.
            if known is None or known[0] is not row or known[1].mark != mark:
                known = row, SeenTable(location, _kept(row, own), mark=mark)
            kept[one.names] = known
            found[one] = known[1]
        self._known = kept
        return found

    def _drops(self, trash: Iterable[DroppedRow]) -> list[SeenDrop]:
        known = {
            (object_id_of(one.object_id), one.record.deleted_at_ms): one
            for one in trash
            if is_table(one.row)
        }
        return [
            _seen(one, known.get((one.id, one.deleted_at_ms)))
            for one in self._backend.list_purgable_tables()
        ]

    def refine(self, events: list[Event], before: Look) -> list[Event]:
        """Read what was decided about the root's tables that changed."""
        closer = _Closer(self._backend, self._is_chosen)

        def was_renamed(event: Event) -> bool:
            return event.id in before.tables and closer.was_renamed(event)

        told = closer.refine(events)
        return _join_renames(told, was_renamed) if len(events) <= _CLOSE_LOOKS else told

    def _is_chosen(self, event: Event) -> bool:
        """Whether the catalog chose where a table lies."""
        row = self._rows.get(DELIMITER.join(event.id.names))
        return row is None or is_by_hash(row) or row.location == table_dir(event.id.name)


class _Closer:
    """Looks closely at what changed."""

    def __init__(
        self,
        backend: ListingBackend | CompatBackend,
        is_chosen: Callable[[Event], bool],
    ) -> None:
        home = backend.home
        self._backend = backend
        self._is_chosen = is_chosen
        self._chains = Chains(home.store, home.clock, home.ids, home.author)

    def decision(self, name: str) -> Decision | None:
        """Read what was decided last about a table of the root."""
        return self._chains.read(name).decision

    def was_renamed(self, event: Event) -> bool:
        """Whether a name is gone because its table has another."""
        is_gone = event.kind in {Kind.TABLE_DROPPED, Kind.TABLE_REMOVED}
        if not is_gone or event.id.level != 1 or not is_table_name(event.id.name):
            return False
        try:
            found = self.decision(event.id.name)
        except MooringError:
            return False  # it cannot be read: what was seen is told
        return found is not None and found.action == _RENAME

    def refine(self, events: list[Event]) -> list[Event]:
        is_few = len(events) <= _CLOSE_LOOKS
        told = [self._look(event) if is_few else event for event in events]
        return [
            _placed(event, self._backend.store)
            for event in told
            if event is not None
            # Without a look, a decision that changed nothing else is none to tell.
            and (event.details or event.kind is not Kind.TABLE_CHANGED)
        ]

    def _look(self, event: Event) -> Event | None:
        if event.kind.is_of_namespaces:
            return event
        try:
            decision = self._decide(event)
            return self._judge(event, decision)
        except MooringError:
            return event  # it is gone again, or cannot be read: what was seen is told

    def _decide(self, event: Event) -> Decision | None:
        """Read the newest decision about a table of the root that lives by its directory."""
        name = event.id.name
        location = event.details.get("location", table_dir(name))
        if event.id.level != 1 or not is_table_name(name) or location != table_dir(name):
            return None
        return self.decision(name)

    def _judge(self, event: Event, decision: Decision | None) -> Event | None:
        if event.kind is Kind.TABLE_CHANGED:
            return event if event.details else _protection(event, decision)
        if decision is not None and decision.action in _ENDS.get(event.kind, ()):
            return replace(event, by=event.by or decision.by)
        if event.kind not in _CAME:
            return event
        kind = _BY_ACTION.get(decision.action) if decision else None
        if decision is not None and kind is not None:
            event = replace(event, kind=kind, by=decision.by)
        return self._sort_out(event)

    def _sort_out(self, event: Event) -> Event:
        """Tell a table that was created from one that was declared, or lay there already."""
        if event.kind is not Kind.TABLE_CREATED:
            return event
        if not self._is_chosen(event):
            return replace(event, kind=Kind.TABLE_REGISTERED)
        try:
            is_declared = self._is_declared(event)
        except TableNotFoundError:
            return event  # gone again, which the next poll tells
        return replace(event, kind=Kind.TABLE_DECLARED) if is_declared else event

    def _is_declared(self, event: Event) -> bool:
        info = self._backend.describe_table(event.id, check_declared=True)
        if not info.is_only_declared or event.details.get("location") != table_dir(event.id.name):
            return bool(info.is_only_declared)
        # A directory is there before the first version of a table that is just being created.
        marker = reserved_marker_path(event.id.name)
        return bool(self._backend.store.existing([marker]))


def _protection(event: Event, decision: Decision | None) -> Event | None:
    """Tell whether a decision that left a table live protects it, or no longer."""
    if decision is None or decision.action not in _PROTECTION:
        return None
    changed = {PROTECTED: _PROTECTION[decision.action]}
    return replace(event, by=decision.by, details={"changed": changed})


def _join_renames(events: list[Event], was_renamed: Callable[[Event], bool]) -> list[Event]:
    """Tell a rename that moved a table's directory: its name was taken away for that.

    Where several tables were renamed at once, nothing tells which became which.
    """
    taken = [event for event in events if was_renamed(event)]
    fresh = [event for event in events if event.kind is Kind.TABLE_CREATED and _is_moved(event)]
    if len(taken) != 1 or len(fresh) != 1:
        return events
    old, new = taken[0], fresh[0]
    details = {OLD_ID: list(old.id.names), **new.details}
    renamed = Event(Kind.TABLE_RENAMED, new.id, new.at_ms, old.by, details)
    return [renamed if event is old else event for event in events if event is not new]


def _is_moved(event: Event) -> bool:
    location = str(event.details.get("location", ""))
    return looks_by_hash(location.rpartition("/")[2])


def _placed(event: Event, store: Store) -> Event:
    """Tell the whole location."""
    location = event.details.get("location")
    if not isinstance(location, str) or is_outside(location):
        return event
    return replace(event, details={**event.details, "location": store.location(location)})


def _marks(files: Iterable[str]) -> dict[str, int]:
    """Return the number of the newest decision about each table."""
    found: dict[str, int] = {}
    for file in files:
        if state := parse_state_file(file):
            found[state.name] = max(state.seq, found.get(state.name, 0))
    return found


def _kept(row: ManifestRow | None, own: str | None) -> dict[str, str]:
    """Return the properties in a row; that a root table is protected is a decision instead."""
    properties = properties_of(row)
    if own is not None and (row is None or row.location == own):
        properties.pop(PROTECTED, None)
    return properties


def _seen(dropped: DroppedTable, known: DroppedRow | None) -> SeenDrop:
    return SeenDrop(
        dropped.id,
        dropped.deleted_at_ms,
        dropped.expires_at_ms,
        known.row.location if known else None,
        known.record.by if known else None,
    )


def _gone(dropped: DroppedRow) -> SeenDrop:
    record = dropped.record
    where = object_id_of(dropped.object_id)
    return SeenDrop(where, record.deleted_at_ms, dropped.expires_at_ms, by=record.by)


def _expiry(deleted_at_ms: int | None, ttl_ms: int | None) -> int | None:
    return None if ttl_ms is None else (deleted_at_ms or 0) + ttl_ms
