"""The objects of one state with a transaction's changes on top.

It notes by keys what is looked at and what is changed: by these a commit is held against others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.metastore.entry import Change
from mooring.metastore.keys import children_key, name_key, object_key
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind, Locator
from mooring.metastore.model import decode_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.metastore.chain import Snapshot
    from mooring.metastore.entry import NameChange
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts

__all__ = ["NAMED", "Draft"]

# What has a name that can change; the name of anything else is its id.
NAMED = {Kind.NAMESPACE, Kind.TABLE}


class Draft:
    """What a transaction sees and does.

    Attributes:
        timeline: Where the state is from; that of the chain may have gone on to where the state
            is forgotten.
        seq: The entry that made the state.
        reads: Keys of what was looked at, also of what was not there.
        writes: Keys of what is changed.
        touches: Keys of what gets or loses children.
        changes: The newest change of each object.
        names: What names mean that begin or end; None where they mean nothing any more.
    """

    def __init__(self, state: Snapshot) -> None:
        """Start without changes."""
        self.timeline = state.timeline
        self.seq = state.seq
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.touches: set[str] = set()
        self.changes: dict[Ids, Change] = {}
        self.names: dict[tuple[Ids, Parts], Ids | None] = {}

    # -- looking ---------------------------------------------------------------------------------

    def look(self, ids: Ids) -> Change | None:
        """Return an object as it would be; None where there would be none."""
        self.reads.add(object_key(ids))
        own = self.changes.get(ids)
        if own is not None:
            return None if own.operation is Operation.DELETE else own
        return self.timeline.find(ids, self.seq)

    def descend(self, ids: Ids, names: Sequence[Parts]) -> Ids | None:
        """Go down the names; every step is noted, also to where nothing is."""
        for level, parts in enumerate(names, start=len(ids) + 1):
            child = self._resolve_child(ids, Kind.at(level), parts)
            if child is None or self.look(child) is None:
                return None
            ids = child
        return ids

    def _resolve_child(self, parent: Ids, kind: Kind, parts: Parts) -> Ids | None:
        if kind not in NAMED and self.look((*parent, parts[0])) is not None:
            return (*parent, parts[0])
        return self.resolve(parent, parts)

    def resolve(self, parent: Ids, parts: Parts) -> Ids | None:
        """Return the ids of the child that a name means; None where it means none."""
        self.reads.add(name_key(parent, parts))
        if (parent, parts) in self.names:
            return self.names[parent, parts]
        return self.timeline.resolve(parent, parts, self.seq)

    def look_below(self, parent: Ids) -> list[Change]:
        """Return the children of an object, and note which they are."""
        self.reads.add(children_key(parent))
        return list(self._children(parent))

    def _children(self, parent: Ids) -> Iterator[Change]:
        for change in self.timeline.children(parent, self.seq):
            if change.ids not in self.changes:
                self.reads.add(object_key(change.ids))
                yield change
        for ids, change in self.changes.items():
            if ids[:-1] == parent and change.operation is not Operation.DELETE:
                yield change

    # -- telling, which notes nothing ------------------------------------------------------------

    def locate(self, ids: Ids) -> Locator:
        """Return the names that an object has, or had last, by its ids."""
        levels = tuple(self.name_of(ids[:level]) for level in range(1, len(ids) + 1))
        return Locator(levels)

    def name_of(self, ids: Ids) -> Parts:
        """Return what an object is called, or was last."""
        own = self.changes.get(ids)
        for name in reversed(own.names if own else ()):
            if name.operation is not Operation.DELETE and not name.is_alias:
                return name.parts
        known = self.timeline.name(ids, self.seq)
        return known if known is not None else (ids[-1],)

    def names_of(self, ids: Ids) -> list[Parts]:
        """Return every name and alias by which an object is found, sorted."""
        known = self.timeline.names_of(ids, self.seq)
        known |= {parts for (_, parts), means in self.names.items() if means == ids}
        return sorted(parts for parts in known if self.names.get((ids[:-1], parts), ids) == ids)

    def value_of(self, ids: Ids) -> MetaObject | None:
        """Return an object as it would be, or as it was where it is deleted."""
        own = self.changes.get(ids)
        known = own if own is not None and own.body is not None else None
        change = known or self.timeline.find(ids, self.seq)
        return None if change is None else decode_object(change.body or b"", "/".join(ids))

    # -- changing --------------------------------------------------------------------------------

    def change(
        self,
        ids: Ids,
        kind: Kind,
        operation: Operation,
        *,
        body: bytes | None,
        names: tuple[NameChange, ...],
    ) -> Change:
        """Change an object; with what was done to it before it stays one change."""
        earlier = self.changes.get(ids)
        if earlier is not None:
            names = (*earlier.names, *names)
            if earlier.operation is Operation.CREATE and operation is Operation.UPDATE:
                operation = Operation.CREATE
        revision = self.timeline.revision(ids, self.seq) + 1
        change = Change(
            ids=ids, kind=kind, operation=operation, revision=revision, body=body, names=names
        )
        self.changes[ids] = change
        self.writes.add(object_key(ids))
        return change

    def touch(self, parent: Ids) -> None:
        """Note that an object gets or loses a child, or one of them another name."""
        self.touches.add(children_key(parent))
