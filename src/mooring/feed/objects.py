"""Looking at a metastore: everything is in memory once its newest commits are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mooring.errors import MooringError
from mooring.feed.event import Kind
from mooring.feed.look import Look, SeenDrop, SeenTable
from mooring.identifiers import ROOT, ObjectId
from mooring.metastore.dialect import DOCUMENT
from mooring.metastore.ground import live_namespaces
from mooring.metastore.lance_table import any_in, find_any, locator_of
from mooring.metastore.layout import TABLES_DIR
from mooring.metastore.trash import Trash
from mooring.namespace.locations import is_outside

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from mooring.feed.event import Event
    from mooring.metastore.backend import MetastoreBackend
    from mooring.metastore.locator import Locator
    from mooring.metastore.model import Namespace
    from mooring.metastore.transaction import Transaction
    from mooring.metastore.trash import DroppedObject

__all__ = ["Objects"]

_TABLE_IDS = 2
# After more commits than this, all is read again.
_MOST_ENTRIES = 100


class Objects:
    """A metastore."""

    def __init__(self, backend: MetastoreBackend) -> None:
        """Look at a metastore."""
        self._home = backend.home
        self._metastore = backend.metastore
        self._trash = Trash(backend.home, backend.metastore)
        self._before = self._seq = 0
        # The tables of each namespace, by its id, as they were in the last look.
        self._known: dict[str, dict[ObjectId, SeenTable]] = {}

    @property
    def is_decisive(self) -> bool:
        """Whether nothing changed where the stamp is the same as before."""
        # Commits of another library can still get an earlier number.
        return self._metastore.dialect is DOCUMENT

    def stamp(self) -> object:
        """Return the number of the newest commit: one request where there is no newer one."""
        return self._metastore.chain.refresh()

    def look(self) -> Look:
        """Look at one state."""
        seq = self._metastore.chain.refresh()
        view = self._metastore.begin(at=seq)
        namespaces: dict[ObjectId, Mapping[str, str] | None] = {ROOT: None}
        tables: dict[ObjectId, SeenTable] = {}
        unchanged, known = self._unchanged(seq), self._known
        self._known = {}
        for found in live_namespaces(view):
            properties = cast("Namespace", found.value).properties
            namespaces[ObjectId(found.locator.parts)] = dict(properties)
            is_known = found.id in unchanged and found.id in known
            inside = known[found.id] if is_known else _tables(view, found.locator)
            self._known[found.id] = inside
            tables |= inside
        self._before, self._seq = self._seq, seq
        return Look(namespaces, tables, *self._dropped(seq))

    def _unchanged(self, seq: int) -> Container[str]:
        """Return the ids of namespaces in which nothing was changed since the last look."""
        # Commits of another library can still come in between.
        if not (self.is_decisive and 0 <= seq - self._seq <= _MOST_ENTRIES):
            return ()
        try:
            entries = self._metastore.chain.between(self._seq, seq)
        except MooringError:
            return ()  # then all of them are read
        changes = (change for entry in entries for one in entry.records for change in one.changes)
        return self._known.keys() - {change.ids[0] for change in changes}

    def _dropped(self, seq: int) -> tuple[list[SeenDrop], list[SeenDrop]]:
        trash = [one for one in self._trash.read(at=seq) if not one.record.purging]
        tables = [_seen(one) for one in trash if one.table is not None]
        return tables, [_seen(one) for one in trash if one.table is None]

    def refine(self, events: list[Event], before: Look) -> list[Event]:
        """Tell who it was, by the transactions in between, and tables that came otherwise."""
        del before
        view = self._metastore.begin(at=self._seq)
        authors = self._authors()
        return [self._told(self._sorted_out(event, view), view, authors) for event in events]

    def _authors(self) -> Mapping[tuple[str, ...], str]:
        """Return who changed what since; under no ids, whoever it was if it was one alone."""
        try:
            entries = self._metastore.chain.between(self._before, self._seq)
        except MooringError:
            return {}  # it is only told with what is known anyway
        records = [record for entry in entries for record in entry.records]
        found = {change.ids[:_TABLE_IDS]: one.by for one in records for change in one.changes}
        everybody = {one.by for one in records}
        return {**found, (): everybody.pop()} if len(everybody) == 1 else found

    def _told(
        self, event: Event, view: Transaction, authors: Mapping[tuple[str, ...], str]
    ) -> Event:
        if event.by is not None:
            return event
        found = None if event.id.is_root else view.find(locator_of(event.id))
        by = authors.get(found.ids) if found is not None else None
        return replace(event, by=by or authors.get(()))

    def _sorted_out(self, event: Event, view: Transaction) -> Event:
        """Tell a table that was created from one that was declared, or lay there already."""
        location = event.details.get("location")
        if not isinstance(location, str):
            return event
        if not is_outside(location):
            location = self._home.store.location(location)
        told = replace(event, details={**event.details, "location": location})
        table = find_any(view, locator_of(event.id))
        if event.kind is not Kind.TABLE_CREATED or table is None or not table.is_lance:
            return told
        if not table.location.startswith(f"{TABLES_DIR}/"):
            return replace(told, kind=Kind.TABLE_REGISTERED)
        return replace(told, kind=Kind.TABLE_DECLARED) if table.newest is None else told


def _tables(view: Transaction, namespace: Locator) -> dict[ObjectId, SeenTable]:
    return {
        one.id: SeenTable(one.location, dict(one.value.properties), one.newest)
        for one in any_in(view, namespace)
        if one.value.dropped is None
    }


def _seen(dropped: DroppedObject) -> SeenDrop:
    record, table = dropped.record, dropped.table
    location = None if table is None else table.location
    return SeenDrop(dropped.id, record.at_ms, record.expires_at_ms, location, record.by or None)
