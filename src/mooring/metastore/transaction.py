"""A transaction: reads one state, keeps its changes to itself, and commits all of them or none.

It notes what it read and what it changes. At commit these sets are held against those of every
entry that came after the state it read; if none interferes, the next number of the chain is put,
and that put is the commit. The files of the document's layout are written before, under names that
hold the transaction's id: nobody looks at them until the chain names it.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mooring.errors import (
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    NamespaceNotEmptyError,
    NotFoundError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.metastore.committer import Request
from mooring.metastore.entry import (
    Change,
    NameChange,
    Record,
    Remapped,
)
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind, Locator
from mooring.metastore.model import decode_object, encode_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.clock import Clock, IdSource
    from mooring.metastore.chain import CommitChain
    from mooring.metastore.committer import Committer
    from mooring.metastore.dialect import Dialect
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts
    from mooring.store import Store

__all__ = ["Found", "Transaction"]

_NAMED = {Kind.NAMESPACE, Kind.TABLE}
Object = TypeVar("Object", bound="MetaObject")


@dataclass(frozen=True, slots=True)
class Found:
    """An object as a transaction sees it.

    Attributes:
        ids: The ids from its namespace down to itself.
        locator: Its names.
        revision: The number of its newest revision.
        value: The object.
    """

    ids: Ids
    locator: Locator
    revision: int
    value: MetaObject

    @property
    def id(self) -> str:
        """The object's own id."""
        return self.ids[-1]


class Transaction:
    """Reads and changes of one state, committed together."""

    def __init__(
        self,
        store: Store,
        chain: CommitChain,
        *,
        author: str,
        clock: Clock,
        ids: IdSource,
        committer: Committer,
        dialect: Dialect,
        message: str | None = None,
        at: int | None = None,
    ) -> None:
        """Begin on the newest state, or on an older one, which can only be read.

        Args:
            store: The metastore's store.
            chain: Its commits.
            author: In whose name to commit.
            clock: Stamps, and decides nothing.
            ids: Makes ids.
            committer: Commits it.
            dialect: Names the files that it writes.
            message: What it is for.
            at: The entry whose state is read.
        """
        self._store = store
        self._chain = chain
        self._author = author
        self._clock = clock
        self._id_source = ids
        self._committer = committer
        self._dialect = dialect
        self._message = message
        self._start_ms = clock.now_ms()
        self.id = dialect.txn_id(self._start_ms, str(uuid.UUID(ids.new_id())))
        self.is_read_only = at is not None
        self.seq = chain.refresh() if at is None else at
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._touches: set[str] = set()
        self._changes: dict[Ids, Change] = {}
        self._names: dict[tuple[Ids, Parts], Ids | None] = {}
        self._remapped: list[Remapped] = []
        self.committed_at: int | None = None

    # -- reading ---------------------------------------------------------------------------------

    def get(self, locator: Locator) -> Found:
        """Return an object.

        Raises:
            NotFoundError: there is no such object, or none above it.
        """
        found = self.find(locator)
        if found is None:
            msg = f"there is no {locator.kind.value} {quote(str(locator))}"
            raise NotFoundError(msg)
        return found

    def find(self, locator: Locator) -> Found | None:
        """Return an object; None where there is none."""
        ids = self._resolve(locator)
        change = None if ids is None else self._look(ids)
        return None if change is None else self._found(change, locator)

    def children(self, parent: Locator) -> list[Found]:
        """Return the children of an object, or of the root, sorted by their names.

        Raises:
            NotFoundError: there is no such object.
        """
        above = self._require(parent)
        self._reads.add(_children(above))
        found = [self._found(change, None) for change in self._children_of(above)]
        return sorted(found, key=lambda one: one.locator.levels)

    def history(self, locator: Locator) -> list[tuple[int, Change]]:
        """Return the revisions of an object, the oldest first, with the entries that made them."""
        return self._chain.timeline.history(self._require(locator), self.seq)

    def _require(self, locator: Locator) -> Ids:
        return self.get(locator).ids if locator.levels else ()

    def _resolve(self, locator: Locator) -> Ids | None:
        """Go down the names; every step is noted, also to where nothing is."""
        ids: Ids = ()
        for level, parts in enumerate(locator.levels, start=1):
            child = self._resolve_child(ids, Kind.at(level), parts)
            if child is None or self._look(child) is None:
                return None
            ids = child
        return ids

    def _resolve_child(self, parent: Ids, kind: Kind, parts: Parts) -> Ids | None:
        if kind not in _NAMED and self._look((*parent, parts[0])) is not None:
            return (*parent, parts[0])
        self._reads.add(_name(parent, parts))
        if (parent, parts) in self._names:
            return self._names[parent, parts]
        return self._chain.timeline.resolve(parent, parts, self.seq)

    def _look(self, ids: Ids) -> Change | None:
        self._reads.add(_object(ids))
        own = self._changes.get(ids)
        if own is not None:
            return None if own.operation is Operation.DELETE else own
        return self._chain.timeline.find(ids, self.seq)

    def _children_of(self, parent: Ids) -> Iterator[Change]:
        for change in self._chain.timeline.children(parent, self.seq):
            if change.ids not in self._changes:
                self._reads.add(_object(change.ids))
                yield change
        for ids, change in self._changes.items():
            if ids[:-1] == parent and change.operation is not Operation.DELETE:
                yield change

    def _found(self, change: Change, locator: Locator | None) -> Found:
        value = decode_object(change.body or b"", "/".join(change.ids))
        return Found(change.ids, locator or self._locate(change.ids), change.revision, value)

    def _locate(self, ids: Ids) -> Locator:
        """Return the names of an object by its ids."""
        levels = tuple(self._name_of(ids[:level]) for level in range(1, len(ids) + 1))
        return Locator(levels)

    def _name_of(self, ids: Ids) -> Parts:
        own = self._changes.get(ids)
        for name in reversed(own.names if own else ()):
            if name.operation is not Operation.DELETE and not name.is_alias:
                return name.parts
        known = self._chain.timeline.name(ids, self.seq)
        return known if known is not None else (ids[-1],)

    # -- changing --------------------------------------------------------------------------------

    def create(self, locator: Locator, value: MetaObject) -> Found:
        """Make an object.

        Raises:
            ConflictError: the name or id is taken.
            NotFoundError: the object above is not there.
            InvalidInputError: the object is of another kind than the place, or lacks its id.
        """
        self._require_writable()
        if value.kind is not locator.kind:
            msg = f"a {value.kind.value} cannot lie where a {locator.kind.value} does"
            raise InvalidInputError(msg)
        parent = self._require(locator.parent)
        if self._resolve(locator) is not None:
            raise _taken(locator)
        own = value.assigned_id or str(uuid.UUID(self._id_source.new_id()))
        ids = (*parent, own)
        if self._look(ids) is not None:
            raise _taken(locator)
        names = (self._begin(ids, locator),) if value.kind in _NAMED else ()
        change = self._change(
            ids, value.kind, Operation.CREATE, body=encode_object(value), names=names
        )
        self._touches.add(_children(parent))
        return self._found(change, locator)

    def update(self, locator: Locator, value: MetaObject) -> Found:
        """Give an object another content.

        Raises:
            NotFoundError: there is no such object.
            InvalidInputError: the new content is of another kind, or has another id.
        """
        self._require_writable()
        found = self.get(locator)
        if value.kind is not locator.kind or (value.assigned_id or found.id) != found.id:
            msg = f"{quote(str(locator))} keeps its kind and its id: make another object instead"
            raise InvalidInputError(msg)
        body = encode_object(value)
        return self._found(self._revise(found, body), locator)

    def rename(self, locator: Locator, *parts: str) -> Found:
        """Give an object another name; it stays where it is.

        Raises:
            NotFoundError: there is no such object.
            ConflictError: the name is taken.
            InvalidInputError: objects of this kind have names that do not change.
        """
        self._require_writable()
        found = self.get(locator)
        if locator.kind not in _NAMED:
            msg = f"the name of a {locator.kind.value} is its id, and does not change"
            raise InvalidInputError(msg)
        new = locator.parent.child(*parts)
        if new == locator:
            return found
        if self._resolve(new) is not None:
            raise _taken(new)
        parent = found.ids[:-1]
        old = self._locate(found.ids)
        before = self._canonicals_below(found.ids)
        names = (self._end(found.ids, old), self._begin(found.ids, new))
        change = self._revise(found, None, names=names)
        self._touches.add(_children(parent))
        self._remap(before)
        return self._found(change, new)

    def add_alias(self, locator: Locator, *parts: str) -> None:
        """Give an object one more name.

        Raises:
            NotFoundError: there is no such object.
            ConflictError: the name is taken.
        """
        self._require_writable()
        found = self.get(locator)
        alias = locator.parent.child(*parts)
        if self._resolve(alias) is not None:
            raise _taken(alias)
        begins = self._begin(found.ids, alias, is_alias=True)
        self._revise(found, None, names=(begins,))

    def delete(self, locator: Locator, *, cascade: bool = False) -> None:
        """Delete an object, and with ``cascade`` all below it.

        Raises:
            NotFoundError: there is no such object.
            InvalidTableStateError: something is below it.
        """
        self._require_writable()
        found = self.get(locator)
        self._reads.add(_children(found.ids))
        below = [self._found(change, None) for change in self._children_of(found.ids)]
        if below and not cascade:
            raise _not_empty(locator, len(below))
        for child in below:
            self.delete(child.locator, cascade=True)
        names = self._end_all(found.ids)
        self._change(found.ids, locator.kind, Operation.DELETE, body=None, names=names)
        self._touches.add(_children(found.ids[:-1]))

    def _revise(
        self, found: Found, body: bytes | None, names: tuple[NameChange, ...] = ()
    ) -> Change:
        kept = body if body is not None else encode_object(found.value)
        return self._change(found.ids, found.value.kind, Operation.UPDATE, body=kept, names=names)

    def _change(
        self,
        ids: Ids,
        kind: Kind,
        operation: Operation,
        *,
        body: bytes | None,
        names: tuple[NameChange, ...],
    ) -> Change:
        earlier = self._changes.get(ids)
        if earlier is not None:
            names = (*earlier.names, *names)
            if earlier.operation is Operation.CREATE and operation is Operation.UPDATE:
                operation = Operation.CREATE
        revision = self._chain.timeline.revision(ids, self.seq) + 1
        change = Change(
            ids=ids, kind=kind, operation=operation, revision=revision, body=body, names=names
        )
        self._changes[ids] = change
        self._writes.add(_object(ids))
        return change

    # -- names -----------------------------------------------------------------------------------

    def _begin(self, ids: Ids, locator: Locator, *, is_alias: bool = False) -> NameChange:
        self._names[ids[:-1], locator.parts] = ids
        return self._map(ids[:-1], locator, Operation.CREATE, is_alias=is_alias)

    def _end(self, ids: Ids, locator: Locator) -> NameChange:
        self._names[ids[:-1], locator.parts] = None
        return self._map(ids[:-1], locator, Operation.DELETE, is_alias=False)

    def _end_all(self, ids: Ids) -> tuple[NameChange, ...]:
        """End every name and alias of an object."""
        above = self._locate(ids[:-1])
        known = self._chain.timeline.names_of(ids, self.seq)
        known |= {parts for (_, parts), means in self._names.items() if means == ids}
        alive = [parts for parts in known if self._names.get((ids[:-1], parts), ids) == ids]
        return tuple(self._end(ids, Locator((*above.levels, parts))) for parts in sorted(alive))

    def _map(
        self, parent: Ids, locator: Locator, operation: Operation, *, is_alias: bool
    ) -> NameChange:
        self._writes.add(_name(parent, locator.parts))
        revision = self._chain.timeline.mapping_revision(parent, locator.digest) + 1
        return NameChange(locator.digest, locator.parts, operation, revision, is_alias)

    def _canonicals_below(self, ids: Ids) -> dict[Ids, Locator]:
        """Note the names of what lies below an object and is found by a name."""
        if Kind.at(len(ids)) is not Kind.NAMESPACE:
            return {}
        return {child.ids: self._locate(child.ids) for child in self._children_of(ids)}

    def _remap(self, before: dict[Ids, Locator]) -> None:
        """Follow with the mapping files of children, whose canonical strings hold the name."""
        for child, old in before.items():
            new = self._locate(child)
            for locator, operation in ((old, Operation.DELETE), (new, Operation.CREATE)):
                revision = self._chain.timeline.mapping_revision(child[:-1], locator.digest) + 1
                self._remapped.append(Remapped(child, locator.digest, operation, revision))

    # -- the commit ------------------------------------------------------------------------------

    def commit(self) -> int:
        """Make the changes the newest state, all of them; return the entry that holds them.

        A transaction that changed nothing has nothing to commit: what it read was one state.

        Raises:
            ConcurrentModificationError: somebody else's commit changed what was read or written.
            UnknownOutcomeError: the store never said whether it happened.
        """
        if self.committed_at is not None or not self._changes:
            return self.committed_at or self.seq
        record = self._record()
        staged = self._stage(record)
        try:
            request = Request(record, frozenset(self._reads), self.seq)
            self.committed_at = self._committer.commit(request)
        except UnknownOutcomeError:
            raise  # what was staged may be committed
        except MooringError:
            self._store.delete(staged)
            raise
        # What follows from the commit can be done by whoever comes later as well.
        with suppress(ServiceUnavailableError):
            self._store.put(*self._dialect.log(record), derived=True)
            self._chain.checkpoint_if_due()
        return self.committed_at

    def _record(self) -> Record:
        return Record(
            txn_id=self.id,
            by=self._author,
            start_ms=self._start_ms,
            end_ms=self._clock.now_ms(),
            message=self._message,
            changes=tuple(self._changes.values()),
            remapped=tuple(self._remapped),
            writes=frozenset(self._writes),
            touches=frozenset(self._touches),
        )

    def _stage(self, record: Record) -> list[str]:
        """Write the files of the layout; nobody looks at them before the commit."""
        files = dict(self._dialect.files(record, self._name_of))
        for path, body in files.items():
            self._store.put(path, body)
        return list(files)

    def _require_writable(self) -> None:
        if self.is_read_only:
            msg = "a transaction as of an older state only reads"
            raise InvalidInputError(msg)
        if self.committed_at is not None:
            msg = "the transaction is committed: begin another"
            raise InvalidInputError(msg)


def _object(ids: Ids) -> str:
    return f"o:{'/'.join(ids)}"


def _name(parent: Ids, parts: Parts) -> str:
    return f"n:{'/'.join(parent)}:{'|'.join(parts)}"


def _children(parent: Ids) -> str:
    return f"c:{'/'.join(parent)}"


def _taken(locator: Locator) -> ConflictError:
    return ConflictError(f"there is a {locator.kind.value} {quote(str(locator))} already")


def _not_empty(locator: Locator, count: int) -> MooringError:
    msg = f"{count} objects are in {locator.kind.value} {quote(str(locator))}: delete them, too"
    if locator.kind is Kind.NAMESPACE:
        return NamespaceNotEmptyError(msg)
    return InvalidTableStateError(msg)
