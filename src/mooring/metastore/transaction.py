"""A transaction: reads one state, keeps its changes to itself, and commits all of them or none.

Its draft notes what it read and what it changes. At commit these sets are held against those of
every entry that came after the state it read; if none interferes, the next number of the chain is
put, and that put is the commit. The files of the document's layout are written before, under names
that hold the transaction's id: nobody looks at them until the chain names it.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import (
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
from mooring.metastore.draft import NAMED, Draft
from mooring.metastore.entry import Record
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind, Locator
from mooring.metastore.model import decode_object, encode_object
from mooring.metastore.naming import Naming, taken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock, IdSource
    from mooring.metastore.chain import CommitChain, Snapshot
    from mooring.metastore.committer import Committer
    from mooring.metastore.dialect import Dialect
    from mooring.metastore.entry import Change, NameChange
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts
    from mooring.store import Store

__all__ = ["Found", "Transaction"]

_AT_ONCE = 16


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
        self._draft = Draft(state)
        self._naming = Naming(self._draft, dialect)
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
        change = None if ids is None else self._draft.look(ids)
        return None if change is None else self._found(change, locator)

    def find_below(self, above: Found, *names: Parts) -> Found | None:
        """Return an object below one that was found, by a name for each level; None without one.

        The same as `find`, without the way from the root, and without another look at names that
        are known to be some.
        """
        ids = self._draft.descend(above.ids, names)
        change = None if ids is None else self._draft.look(ids)
        if change is None:
            return None
        return self._found(change, Locator((*above.locator.levels, *names)))

    def children(self, parent: Locator) -> list[Found]:
        """Return the children of an object, or of the root, sorted by their names.

        Raises:
            NotFoundError: there is no such object.
        """
        above = self._require(parent)
        found = [self._found(change, None) for change in self._draft.look_below(above)]
        return sorted(found, key=lambda one: one.locator.levels)

    def locate(self, ids: Ids) -> Locator:
        """Return the names that an object has, or had last, by its ids."""
        return self._draft.locate(ids)

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
        return self._draft.names_of(self._require(locator))

    def _require(self, locator: Locator) -> Ids:
        return self.get(locator).ids if locator.levels else ()

    def _resolve(self, locator: Locator) -> Ids | None:
        return self._draft.descend((), locator.levels)

    def _found(self, change: Change, locator: Locator | None) -> Found:
        value = decode_object(change.body or b"", "/".join(change.ids))
        return Found(change.ids, locator or self._draft.locate(change.ids), change.revision, value)

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
            raise taken(locator)
        own = value.assigned_id or object_id or str(uuid.UUID(self._id_source.new_id(), version=4))
        ids = (*parent, own)
        if self._draft.look(ids) is not None:
            raise taken(locator)
        names = self._naming.follow(ids, [], self._dialect.aliases(value))
        if value.kind in NAMED:
            names = (self._naming.begin(ids, locator), *names)
        change = self._draft.change(
            ids, value.kind, Operation.CREATE, body=encode_object(value), names=names
        )
        self._draft.touch(parent)
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
        names = self._naming.follow(
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
        if locator.kind not in NAMED:
            msg = f"the name of a {locator.kind.value} is its id, and does not change"
            raise InvalidInputError(msg)
        new = locator.parent.child(*parts)
        if new == locator:
            return found
        if self._resolve(new) is not None:
            raise taken(new)
        parent = found.ids[:-1]
        old = self._draft.locate(found.ids)
        before = self._naming.locate_below(found.ids) if follow else {}
        names = (self._naming.end(found.ids, old), self._naming.begin(found.ids, new))
        change = self._revise(found, None, names=names)
        self._draft.touch(parent)
        self._naming.remap(before)
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
            raise taken(alias)
        begins = self._naming.begin(found.ids, alias, is_alias=True)
        self._revise(found, None, names=(begins,))

    def delete(self, locator: Locator, *, cascade: bool = False) -> None:
        """Delete an object, and with ``cascade`` all below it.

        Raises:
            NotFoundError: there is no such object.
            InvalidTableStateError: something is below it.
        """
        self._require_writable()
        found = self.get(locator)
        below = [self._found(change, None) for change in self._draft.look_below(found.ids)]
        if below and not cascade:
            raise _not_empty(locator, len(below))
        for child in below:
            self.delete(child.locator, cascade=True)
        self._delete(found.ids)

    def discard(self, ids: Ids) -> None:
        """Delete an object that nothing lies below, and nobody changes: a delta.

        What is above it is not read: who adds to that meanwhile is not in the way.

        Raises:
            NotFoundError: there is no such object.
        """
        self._require_writable()
        if self._draft.look(ids) is None:
            msg = f"there is no {Kind.at(len(ids)).value} {quote('/'.join(ids))}"
            raise NotFoundError(msg)
        self._delete(ids)

    def claim(self, place: str) -> None:
        """Be in conflict with whoever else claims the same place since this began."""
        self._require_writable()
        self._draft.reads.add(f"l:{place}")
        self._draft.writes.add(f"l:{place}")

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

    def _delete(self, ids: Ids) -> None:
        names = self._naming.end_all(ids)
        self._draft.change(ids, Kind.at(len(ids)), Operation.DELETE, body=None, names=names)
        self._draft.touch(ids[:-1])

    def _revise(
        self, found: Found, body: bytes | None, names: tuple[NameChange, ...] = ()
    ) -> Change:
        kept = body if body is not None else encode_object(found.value)
        return self._draft.change(
            found.ids, found.value.kind, Operation.UPDATE, body=kept, names=names
        )

    # -- the commit ------------------------------------------------------------------------------

    def commit(self) -> int:
        """Make the changes the newest state, all of them; return the entry that holds them.

        A transaction that changed nothing has nothing to commit: what it read was one state.

        Raises:
            ConcurrentModificationError: somebody else's commit changed what was read or written.
            UnknownOutcomeError: the store never said whether it happened.
        """
        if self.committed_at is not None or not self._draft.changes:
            return self.committed_at or self.seq
        self._chain.prepare()
        record = self._record()
        staged = self._stage(record)
        try:
            tokens = frozenset(self._tokens)
            request = Request(record, frozenset(self._draft.reads), self.seq, tokens)
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
            changes=tuple(self._draft.changes.values()),
            remapped=tuple(self._naming.remapped),
            writes=frozenset(self._draft.writes),
            touches=frozenset(self._draft.touches),
        )

    def _stage(self, record: Record) -> list[str]:
        """Write the files of the layout; nobody looks at them before the commit."""
        files = dict(self._dialect.files(record, self._view()))
        _put_all(self._store, files)
        return list(files)

    def _view(self) -> View:
        return View(self._draft.name_of, self._draft.value_of)

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


def _not_empty(locator: Locator, count: int) -> MooringError:
    msg = f"{count} objects are in {locator.kind.value} {quote(str(locator))}: delete them, too"
    if locator.kind is Kind.NAMESPACE:
        return NamespaceNotEmptyError(msg)
    return InvalidTableStateError(msg)
