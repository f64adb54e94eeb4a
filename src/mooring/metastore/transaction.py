"""A transaction: reads one state, keeps its changes to itself, and commits all of them or none.

It notes what it read and what it changes. At commit these sets are held against those of every
entry that came after the state it read; if none interferes, the next number of the chain is put,
and that put is the commit. The files of the document's layout are written before, under names that
hold the transaction's id: nobody looks at them until the chain names it.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
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
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.metastore.committer import Request, given_up
from mooring.metastore.dialect import View
from mooring.metastore.entry import Change, NameChange, Record, Remapped
from mooring.metastore.keys import children_key, name_key, object_key
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind, Locator
from mooring.metastore.model import decode_object, encode_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.clock import Clock, IdSource
    from mooring.metastore.chain import CommitChain, Snapshot
    from mooring.metastore.committer import Committer
    from mooring.metastore.dialect import Dialect
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts
    from mooring.store import Store

__all__ = ["Found", "Transaction"]

_AT_ONCE = 16
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
        state: Snapshot,
        message: str | None = None,
        is_read_only: bool = False,
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
            state: What it reads.
            message: What it is for.
            is_read_only: Whether the state is an older one.
        """
        self._store = store
        self._chain = chain
        self.author = author
        self._clock = clock
        self._id_source = ids
        self._committer = committer
        self._dialect = dialect
        self._message = message
        self.start_ms = clock.now_ms()
        self.id = dialect.txn_id(self.start_ms, str(uuid.UUID(ids.new_id(), version=4)))
        self.is_read_only = is_read_only
        self.seq = state.seq
        # Of its own: that of the chain may have gone on to where this state is forgotten.
        self.timeline = state.timeline
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._touches: set[str] = set()
        self._changes: dict[Ids, Change] = {}
        self._names: dict[tuple[Ids, Parts], Ids | None] = {}
        self._remapped: list[Remapped] = []
        self._mapped: dict[tuple[Ids, str], int] = {}
        self._tokens: set[str] = set()
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

    def find_below(self, above: Found, *names: Parts) -> Found | None:
        """Return an object below one that was found, by a name for each level; None without one.

        The same as `find`, without the way from the root, and without another look at names that
        are known to be some.
        """
        ids = self._descend(above.ids, names)
        change = None if ids is None else self._look(ids)
        if change is None:
            return None
        return self._found(change, Locator((*above.locator.levels, *names)))

    def children(self, parent: Locator) -> list[Found]:
        """Return the children of an object, or of the root, sorted by their names.

        Raises:
            NotFoundError: there is no such object.
        """
        above = self._require(parent)
        self._reads.add(children_key(above))
        found = [self._found(change, None) for change in self._children_of(above)]
        return sorted(found, key=lambda one: one.locator.levels)

    def locate(self, ids: Ids) -> Locator:
        """Return the names that an object has, or had last, by its ids."""
        return self._locate(ids)

    def history(self, locator: Locator) -> list[tuple[int, Change]]:
        """Return the revisions of an object, the oldest first, with the entries that made them.

        The chain is read backwards to the first of them.
        """
        ids = self._require(locator)
        found: list[tuple[int, Change]] = []
        for seq, entry in self._chain.backwards(self.seq):
            changes = (one for record in reversed(entry.records) for one in record.changes)
            found += [(seq, change) for change in changes if change.ids == ids]
            if found and found[-1][1].revision == 1:
                break
        return found[::-1]

    def names(self, locator: Locator) -> list[Parts]:
        """Return every name and alias by which an object is found, sorted.

        Raises:
            NotFoundError: there is no such object.
        """
        return sorted(self._names_of(self._require(locator)))

    def _require(self, locator: Locator) -> Ids:
        return self.get(locator).ids if locator.levels else ()

    def _resolve(self, locator: Locator) -> Ids | None:
        return self._descend((), locator.levels)

    def _descend(self, ids: Ids, names: Sequence[Parts]) -> Ids | None:
        """Go down the names; every step is noted, also to where nothing is."""
        for level, parts in enumerate(names, start=len(ids) + 1):
            child = self._resolve_child(ids, Kind.at(level), parts)
            if child is None or self._look(child) is None:
                return None
            ids = child
        return ids

    def _resolve_child(self, parent: Ids, kind: Kind, parts: Parts) -> Ids | None:
        if kind not in _NAMED and self._look((*parent, parts[0])) is not None:
            return (*parent, parts[0])
        return self._resolve_name(parent, parts)

    def _resolve_name(self, parent: Ids, parts: Parts) -> Ids | None:
        self._reads.add(name_key(parent, parts))
        if (parent, parts) in self._names:
            return self._names[parent, parts]
        return self.timeline.resolve(parent, parts, self.seq)

    def _look(self, ids: Ids) -> Change | None:
        self._reads.add(object_key(ids))
        own = self._changes.get(ids)
        if own is not None:
            return None if own.operation is Operation.DELETE else own
        return self.timeline.find(ids, self.seq)

    def _children_of(self, parent: Ids) -> Iterator[Change]:
        for change in self.timeline.children(parent, self.seq):
            if change.ids not in self._changes:
                self._reads.add(object_key(change.ids))
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
        known = self.timeline.name(ids, self.seq)
        return known if known is not None else (ids[-1],)

    # -- changing --------------------------------------------------------------------------------

    def create(self, locator: Locator, value: MetaObject, *, object_id: str | None = None) -> Found:
        """Make an object.

        Args:
            locator: Its names.
            value: What it is.
            object_id: The id of one that brings none along and had one elsewhere.

        Raises:
            ConflictError: the name or id is taken.
            NotFoundError: the object above is not there.
            InvalidInputError: the object is of another kind than the place, or lacks its id.
        """
        self._require_writable()
        if value.kind is not locator.kind:
            msg = f"a {value.kind.value} cannot lie where a {locator.kind.value} does"
            raise InvalidInputError(msg)
        self._dialect.check(locator, value)
        parent = self._require(locator.parent)
        if self._resolve(locator) is not None:
            raise _taken(locator)
        own = value.assigned_id or object_id or str(uuid.UUID(self._id_source.new_id(), version=4))
        ids = (*parent, own)
        if self._look(ids) is not None:
            raise _taken(locator)
        names = self._follow(ids, [], self._dialect.aliases(value))
        if value.kind in _NAMED:
            names = (self._begin(ids, locator), *names)
        change = self._change(
            ids, value.kind, Operation.CREATE, body=encode_object(value), names=names
        )
        self._touches.add(children_key(parent))
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
        self._dialect.check(locator, value)
        names = self._follow(
            found.ids, self._dialect.aliases(found.value), self._dialect.aliases(value)
        )
        return self._found(self._revise(found, encode_object(value), names), locator)

    def rename(self, locator: Locator, *parts: str, follow: bool = True) -> Found:
        """Give an object another name; it stays where it is.

        Args:
            locator: The object.
            parts: Its new name.
            follow: Whether the mapping files of what lies below follow, whose canonical strings
                hold the name. They need not where it gets its old one back.

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
        before = self._canonicals_below(found.ids) if follow else {}
        names = (self._end(found.ids, old), self._begin(found.ids, new))
        change = self._revise(found, None, names=names)
        self._touches.add(children_key(parent))
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
        self._reads.add(children_key(found.ids))
        below = [self._found(change, None) for change in self._children_of(found.ids)]
        if below and not cascade:
            raise _not_empty(locator, len(below))
        for child in below:
            self.delete(child.locator, cascade=True)
        names = self._end_all(found.ids)
        self._change(found.ids, locator.kind, Operation.DELETE, body=None, names=names)
        self._touches.add(children_key(found.ids[:-1]))

    def discard(self, ids: Ids) -> None:
        """Delete an object that nothing lies below, and nobody changes: a delta.

        What is above it is not read: who adds to that meanwhile is not in the way.

        Raises:
            NotFoundError: there is no such object.
        """
        self._require_writable()
        if self._look(ids) is None:
            msg = f"there is no {Kind.at(len(ids)).value} {quote('/'.join(ids))}"
            raise NotFoundError(msg)
        names = self._end_all(ids)
        self._change(ids, Kind.at(len(ids)), Operation.DELETE, body=None, names=names)
        self._touches.add(children_key(ids[:-1]))

    def claim(self, place: str) -> None:
        """Be in conflict with whoever else claims the same place since this began."""
        self._require_writable()
        self._reads.add(f"l:{place}")
        self._writes.add(f"l:{place}")

    def depends_on(self, token: str) -> None:
        """Commit only as long as no vacuum has given up what was staged under an id.

        Whoever names a data file below ``_data/<id>/`` or a table ``_tables/<id>.lance`` depends on
        the id; on its own a transaction always does.

        Raises:
            ConcurrentModificationError: it is given up already.
        """
        if self.timeline.is_aborted(token):
            raise given_up(token)
        self._tokens.add(token)

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
        revision = self.timeline.revision(ids, self.seq) + 1
        change = Change(
            ids=ids, kind=kind, operation=operation, revision=revision, body=body, names=names
        )
        self._changes[ids] = change
        self._writes.add(object_key(ids))
        return change

    # -- names -----------------------------------------------------------------------------------

    def _begin(self, ids: Ids, locator: Locator, *, is_alias: bool = False) -> NameChange:
        self._names[ids[:-1], locator.parts] = ids
        return self._map(ids[:-1], locator, Operation.CREATE, is_alias=is_alias)

    def _end(self, ids: Ids, locator: Locator) -> NameChange:
        self._names[ids[:-1], locator.parts] = None
        return self._map(ids[:-1], locator, Operation.DELETE, is_alias=False)

    def _follow(self, ids: Ids, before: list[Parts], after: list[Parts]) -> tuple[NameChange, ...]:
        """Begin and end the names that an object has on account of what it is.

        Raises:
            ConflictError: another object has one of them.
        """
        parent, above = ids[:-1], self._locate(ids[:-1])
        names = [
            self._end(ids, Locator((*above.levels, parts)))
            for parts in before
            if parts not in after and self._resolve_name(parent, parts) == ids
        ]
        for parts in after:
            alias = Locator((*above.levels, parts))
            means = self._resolve_name(parent, parts)
            if means == ids:
                continue
            if means is not None and self._look(means) is not None:
                raise _taken(alias)
            names.append(self._begin(ids, alias, is_alias=True))
        return tuple(names)

    def _end_all(self, ids: Ids) -> tuple[NameChange, ...]:
        """End every name and alias of an object."""
        above = self._locate(ids[:-1])
        alive = sorted(self._names_of(ids))
        return tuple(self._end(ids, Locator((*above.levels, parts))) for parts in alive)

    def _names_of(self, ids: Ids) -> list[Parts]:
        known = self.timeline.names_of(ids, self.seq)
        known |= {parts for (_, parts), means in self._names.items() if means == ids}
        return [parts for parts in known if self._names.get((ids[:-1], parts), ids) == ids]

    def _map(
        self, parent: Ids, locator: Locator, operation: Operation, *, is_alias: bool
    ) -> NameChange:
        self._writes.add(name_key(parent, locator.parts))
        digest = self._dialect.digest(locator)
        revision = self._next_mapping(parent, digest)
        return NameChange(digest, locator.parts, operation, revision, is_alias)

    def _next_mapping(self, parent: Ids, digest: str) -> int:
        """Number a mapping file: a name may begin and end more than once in a transaction."""
        known = self.timeline.mapping_revision(parent, digest)
        found = max(known, self._mapped.get((parent, digest), 0)) + 1
        self._mapped[parent, digest] = found
        return found

    def _canonicals_below(self, ids: Ids) -> dict[Ids, Locator]:
        """Note the names of what lies below an object and is found by a name."""
        if Kind.at(len(ids)) is not Kind.NAMESPACE:
            return {}
        # One that comes meanwhile would be mapped by the name that ends.
        self._reads.add(children_key(ids))
        return {child.ids: self._locate(child.ids) for child in self._children_of(ids)}

    def _remap(self, before: dict[Ids, Locator]) -> None:
        """Follow with the mapping files of children, whose canonical strings hold the name."""
        for child, old in before.items():
            was, becomes = (self._dialect.digest(one) for one in (old, self._locate(child)))
            if was == becomes:
                continue
            for digest, operation in ((was, Operation.DELETE), (becomes, Operation.CREATE)):
                revision = self._next_mapping(child[:-1], digest)
                self._remapped.append(Remapped(child, digest, operation, revision))

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
        self._chain.prepare()
        record = self._record()
        staged = self._stage(record)
        try:
            tokens = frozenset(self._tokens)
            request = Request(record, frozenset(self._reads), self.seq, tokens)
            self.committed_at = self._committer.commit(request)
        except UnknownOutcomeError:
            raise  # what was staged may be committed
        except MooringError:
            self._store.delete(staged)
            raise
        # What follows from the commit can be done by whoever comes later as well.
        with suppress(MooringError):
            self._store.put(*self._dialect.log(record, self._view()), derived=True)
            self._chain.checkpoint_if_due()
        return self.committed_at

    def _record(self) -> Record:
        return Record(
            txn_id=self.id,
            by=self.author,
            start_ms=self.start_ms,
            end_ms=self._clock.now_ms(),
            message=self._message,
            changes=tuple(self._changes.values()),
            remapped=tuple(self._remapped),
            writes=frozenset(self._writes),
            touches=frozenset(self._touches),
        )

    def _stage(self, record: Record) -> list[str]:
        """Write the files of the layout; nobody looks at them before the commit."""
        files = dict(self._dialect.files(record, self._view()))
        _put_all(self._store, files)
        return list(files)

    def _view(self) -> View:
        return View(self._name_of, self._value_of)

    def _value_of(self, ids: Ids) -> MetaObject | None:
        own = self._changes.get(ids)
        known = own if own is not None and own.body is not None else None
        change = known or self.timeline.find(ids, self.seq)
        return None if change is None else decode_object(change.body or b"", "/".join(ids))

    def _require_writable(self) -> None:
        if self.is_read_only:
            msg = "a transaction as of an older state only reads"
            raise InvalidInputError(msg)
        if self.committed_at is not None:
            msg = "the transaction is committed: begin another"
            raise InvalidInputError(msg)


def _put_all(store: Store, files: Mapping[str, bytes]) -> None:
    """Write several small objects, in no particular order; to a service some at once."""
    is_service = "://" in store.location("")
    if len(files) < 2 or not is_service:  # noqa: PLR2004  # one needs no threads
        for path, body in files.items():
            store.put(path, body)
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(files))) as writers:
        list(writers.map(store.put, files, files.values()))


def _taken(locator: Locator) -> ConflictError:
    return ConflictError(f"there is a {locator.kind.value} {quote(str(locator))} already")


def _not_empty(locator: Locator, count: int) -> MooringError:
    msg = f"{count} objects are in {locator.kind.value} {quote(str(locator))}: delete them, too"
    if locator.kind is Kind.NAMESPACE:
        return NamespaceNotEmptyError(msg)
    return InvalidTableStateError(msg)
