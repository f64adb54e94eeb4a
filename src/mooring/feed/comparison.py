"""What happened between two looks at a catalog.

A table is followed by its location, which a rename, a drop and an undrop leave as it is. Where a
kind of catalog does not tell locations, by its name alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mooring.feed.event import OLD_ID, Event, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mooring.feed.look import Look, SeenDrop, SeenTable
    from mooring.identifiers import ObjectId

__all__ = ["compare"]


def compare(before: Look, after: Look, at_ms: int) -> list[Event]:
    """Tell what happened, in an order in which it can have happened.

    Args:
        before: The older look.
        after: The newer one.
        at_ms: When that was.
    """
    namespaces = _Namespaces(before, after, at_ms)
    return [
        *namespaces.came(),
        *_Tables(before, after, at_ms).events(),
        *namespaces.changed(),
        *namespaces.gone(),
    ]


class _Namespaces:
    """What happened to namespaces."""

    def __init__(self, before: Look, after: Look, at_ms: int) -> None:
        self._before = before
        self._after = after
        self._at_ms = at_ms

    def came(self) -> list[Event]:
        """Tell which are new, those around others first."""
        back = self._before.dropped_namespaces - self._after.dropped_namespaces
        return [
            Event(
                Kind.NAMESPACE_UNDROPPED if one in back else Kind.NAMESPACE_CREATED,
                one,
                self._at_ms,
            )
            for one in sorted(self._after.namespaces.keys() - self._before.namespaces.keys())
        ]

    def gone(self) -> list[Event]:
        """Tell which are gone, those in others first."""
        gone = sorted(self._before.namespaces.keys() - self._after.namespaces.keys(), reverse=True)
        kept = self._after.dropped_namespaces
        return [
            Event(Kind.NAMESPACE_DROPPED, one, self._at_ms, details={"in_trash": one in kept})
            for one in gone
        ]

    def changed(self) -> list[Event]:
        """Tell which have other properties."""
        found = []
        for one, properties in self._after.namespaces.items():
            known = self._before.namespaces.get(one)
            if properties is None or known is None or properties == known:
                continue
            details = {"changed": _changed(known, properties)}
            found.append(Event(Kind.NAMESPACE_CHANGED, one, self._at_ms, details=details))
        return found


class _Tables:
    """What happened to tables."""

    def __init__(self, before: Look, after: Look, at_ms: int) -> None:
        self._before = before.tables
        self._at_ms = at_ms
        self._stayed: dict[ObjectId, SeenTable] = {}
        self._came: dict[ObjectId, SeenTable] = {}
        for one, table in after.tables.items():
            known = before.tables.get(one)
            if known is None or _is_replaced(known, table):
                self._came[one] = table
            elif known is not table:
                self._stayed[one] = table
        self._gone = {
            one: table
            for one, table in before.tables.items()
            if one not in after.tables or one in self._came
        }
        was, is_ = ({drop.key: drop for drop in look.drops} for look in (before, after))
        self._new_drops = [drop for key, drop in is_.items() if key not in was]
        self._left_drops = [drop for key, drop in was.items() if key not in is_]

    def events(self) -> list[Event]:
        """Tell all of it: first what is gone, then what came, then what is otherwise."""
        gone = [self._end(one, table) for one, table in sorted(self._gone.items(), key=_name)]
        again = [self._drop(drop) for drop in self._new_drops]
        came = [self._begin(one, table) for one, table in sorted(self._came.items(), key=_name)]
        dropped = {drop.id for drop in self._new_drops}
        purged = [
            self._event(Kind.TABLE_PURGED, drop.id)
            for drop in self._left_drops
            if drop.id not in dropped
        ]
        changed = [event for one in self._stayed.items() for event in self._changes(*one)]
        return [*gone, *again, *purged, *came, *changed]

    def _event(self, kind: Kind, one: ObjectId, **details: object) -> Event:
        told = {key: value for key, value in details.items() if value is not None}
        return Event(kind, one, self._at_ms, details=told)

    def _end(self, one: ObjectId, table: SeenTable) -> Event:
        """Tell what became of a table that is no longer there."""
        drop = _find(self._new_drops, one, table.location)
        if drop is not None and drop.id == one:
            self._new_drops.remove(drop)
            return self._drop(drop)
        new = next((key for key, found in self._came.items() if _is_same(found, table)), None)
        if new is None:
            return self._event(Kind.TABLE_REMOVED, one)
        moved = self._came.pop(new)
        old = list(one.names)
        return self._event(Kind.TABLE_RENAMED, new, **{OLD_ID: old}, location=moved.location)

    def _drop(self, drop: SeenDrop) -> Event:
        times = {"deleted_at_ms": drop.deleted_at_ms, "expires_at_ms": drop.expires_at_ms}
        return replace(self._event(Kind.TABLE_DROPPED, drop.id, **times), by=drop.by)

    def _begin(self, one: ObjectId, table: SeenTable) -> Event:
        """Tell where a table came from that was not there."""
        left = _find(self._left_drops, one, table.location)
        if left is None:
            return self._event(
                Kind.TABLE_CREATED, one, location=table.location, version=table.version
            )
        self._left_drops.remove(left)
        old = None if left.id == one else list(left.id.names)
        return self._event(Kind.TABLE_UNDROPPED, one, location=table.location, **{OLD_ID: old})

    def _changes(self, one: ObjectId, table: SeenTable) -> Iterable[Event]:
        known = self._before[one]
        if table.properties is not None and known.properties is not None:
            changed = _changed(known.properties, table.properties)
            # Where only the mark differs, somebody else has to look what was decided.
            if changed or table.mark != known.mark:
                yield self._event(Kind.TABLE_CHANGED, one, changed=changed or None)
        if table.version is not None and table.version != known.version:
            yield self._event(Kind.TABLE_WRITTEN, one, version=table.version)


def _find(drops: list[SeenDrop], one: ObjectId, location: str | None) -> SeenDrop | None:
    """Find the drop of a table: by where it lies and what it is called, or by one of the two."""
    there = [drop for drop in drops if location is not None and drop.location == location]
    unplaced = [drop for drop in drops if location is None or drop.location is None]
    named = (drop for drop in [*there, *unplaced] if drop.id == one)
    return next(named, there[0] if there else None)


def _is_replaced(known: SeenTable, found: SeenTable) -> bool:
    """Whether a name is another table's now."""
    return None not in (known.location, found.location) and known.location != found.location


def _is_same(found: SeenTable, known: SeenTable) -> bool:
    return known.location is not None and found.location == known.location


def _changed(known: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str | None]:
    keys = sorted(known.keys() | found.keys())
    return {key: found.get(key) for key in keys if known.get(key) != found.get(key)}


def _name(item: tuple[ObjectId, SeenTable]) -> ObjectId:
    return item[0]
