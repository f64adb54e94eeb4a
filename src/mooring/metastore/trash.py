"""Drop, undrop and purge in a metastore: each is decided by one transaction.

A dropped object lives on under a name that nobody asks for, with a record of the drop; what is in
a dropped namespace is dropped with it. An undrop gives the name back. A purge first marks the
record, from which nothing comes back, then deletes files, then the objects: whoever finds a mark
can finish it.

Spec: soft-delete, "DROP vs PURGE in the namespace API".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.clock import parse_ttl
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
    TableNotFoundError,
)
from mooring.hints import suggest
from mooring.identifiers import ObjectId, quote
from mooring.metastore.lance_table import (
    any_in,
    check_names,
    find_any,
    locator_of,
    move_table,
    tables_in,
)
from mooring.metastore.locator import ROOT, Kind, Locator
from mooring.metastore.model import DataFile, Delta, Drop, Namespace, Table, decode_object
from mooring.namespace.locations import is_outside, overlaps, places_of
from mooring.namespace.presence import already_there, was_dropped
from mooring.namespace.properties import PROTECTED, RETENTION
from mooring.namespace.states import TRASH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Found, Transaction
    from mooring.namespace.api import Ttl
    from mooring.namespace.home import Home

    Progress = Callable[[ObjectId, int, int], None]

__all__ = ["DroppedObject", "Trash", "require_namespace", "require_unprotected", "why_not_live"]


@dataclass(frozen=True, slots=True)
class DroppedObject:
    """What is in the trash.

    Attributes:
        id: The identifier that it had.
        locator: Where it is.
        revision: The number of its newest revision.
        record: Its drop, or that of its namespace.
        table: The table; None for a namespace.
        is_top: Whether it was dropped itself, and not with its namespace.
    """

    id: ObjectId
    locator: Locator
    revision: int
    record: Drop
    table: LanceTable | None = None
    is_top: bool = True


class Trash:
    """What was dropped from a metastore, and the ways in and out."""

    def __init__(self, home: Home, metastore: Metastore) -> None:
        """Work on a catalog's objects."""
        self._home = home
        self._metastore = metastore

    # -- looking ---------------------------------------------------------------------------------

    def read(self, at: int | None = None) -> list[DroppedObject]:
        """Read the whole trash, now or in the state of an entry, sorted by identifier."""
        return _read(self._metastore.begin(at=at))

    def tables(self) -> list[DroppedObject]:
        """Return the dropped tables that can come back."""
        return [one for one in self.read() if one.table and not one.record.purging]

    def newest_of(
        self, object_id: ObjectId, *, is_table: bool = True, at: int | None = None
    ) -> DroppedObject | None:
        """Return the newest drop of an identifier that can come back."""
        return _newest(self.read(at), object_id, is_table=is_table)

    # -- dropping --------------------------------------------------------------------------------

    def drop_table(self, txn: Transaction, table: LanceTable, ttl: Ttl | None) -> None:
        """Move a live table into the trash, within a transaction.

        Raises:
            ProtectedError: the table or its namespace is protected.
        """
        namespace = cast("Namespace", txn.get(table.locator.parent).value)
        require_unprotected(table.id, table.value, namespace)
        drop = self._record(txn, table.id, ttl, table.value, namespace)
        move_table(txn, table.locator, self._place_for(table.locator), _dropped(table.value, drop))

    def drop_namespace(
        self, txn: Transaction, namespace: Found, ttl: Ttl | None, *, cascade: bool
    ) -> None:
        """Move a namespace, with all that is in it, into the trash, within a transaction.

        Raises:
            NamespaceNotEmptyError: something is in it, and ``cascade`` was not asked for.
            ProtectedError: it, or something in it, is protected.
        """
        value = cast("Namespace", namespace.value)
        own = ObjectId((namespace.locator.parts[0],))
        below = [
            child
            for child in txn.children(namespace.locator)
            if cast("Table", child.value).dropped is None
        ]
        if below and not cascade:
            raise _not_empty(own, below)
        _require_loose(own, own, value.properties)
        for child in below:
            name = own.child(child.locator.parts[0])
            _require_loose(name, name, cast("Table", child.value).properties)
        drop = self._record(txn, own, ttl, value)
        txn.update(namespace.locator, replace(value, dropped=drop))
        txn.rename(namespace.locator, *self._place_for(namespace.locator).parts, follow=False)

    def _place_for(self, locator: Locator) -> Locator:
        return locator.parent.child(f"{TRASH}.{self._home.ids.new_id()}")

    def _record(
        self, txn: Transaction, object_id: ObjectId, ttl: Ttl | None, *around: Table | Namespace
    ) -> Drop:
        return Drop(
            name=object_id.name,
            seq=txn.seq,
            at_ms=self._home.clock.now_ms(),
            ttl_ms=ttl.ms if ttl else _retention(around, self._home.settings.default_ttl_ms),
            by=self._home.author,
        )

    # -- undropping ------------------------------------------------------------------------------

    def undrop_table(self, txn: Transaction, table: ObjectId, new: ObjectId) -> None:
        """Bring the newest drop of a table back, within a transaction.

        Raises:
            TableNotFoundError: nothing dropped has this identifier.
            NamespaceNotFoundError: the namespace it would lie in is not there.
            TableAlreadyExistsError: the identifier is taken.
        """
        # Of the same state, and no part of the transaction: others may drop what they like.
        found = self.newest_of(table, at=txn.seq)
        if found is None or found.table is None:
            live = find_any(txn, locator_of(table)) is not None
            why = "is live: there is nothing to undrop" if live else "is not in the trash"
            msg = f"table {quote(str(table))} {why}"
            raise TableNotFoundError(msg)
        require_namespace(txn, new.parent)
        target = locator_of(new)
        if txn.find(target) is not None:
            raise already_there(new)
        move_table(txn, found.locator, target, _dropped(found.table.value, None))

    def undrop_namespace(self, txn: Transaction, namespace: ObjectId) -> int:
        """Bring the newest drop of a namespace back, within a transaction.

        Returns:
            How many objects came back.

        Raises:
            NamespaceNotFoundError: nothing dropped has this identifier.
            NamespaceAlreadyExistsError: the identifier is taken.
            InvalidTableStateError: part of it is being purged.
        """
        found = self.newest_of(namespace, is_table=False, at=txn.seq)
        if found is None:
            msg = f"no dropped namespace is named {quote(str(namespace))}"
            raise NamespaceNotFoundError(msg)
        target = locator_of(namespace)
        if txn.find(target) is not None:
            msg = f"there is a namespace {quote(str(namespace))} already"
            raise NamespaceAlreadyExistsError(msg)
        inside = [cast("Table", child.value) for child in txn.children(found.locator)]
        drops = [table.dropped for table in inside if table.dropped is not None]
        purged = next((drop.name for drop in drops if drop.purging), None)
        if purged is not None:
            msg = f"table {quote(str(namespace.child(purged)))} is being purged: finish that first"
            raise InvalidTableStateError(msg)
        value = cast("Namespace", txn.get(found.locator).value)
        txn.update(found.locator, replace(value, dropped=None))
        txn.rename(found.locator, *target.parts, follow=False)
        return 1 + sum(table.dropped is None for table in inside)

    # -- purging ---------------------------------------------------------------------------------

    def purge(
        self, objects: Sequence[DroppedObject], progress: Progress | None = None
    ) -> list[DroppedObject]:
        """Delete the files of what is in the trash, then the objects.

        Args:
            objects: What to purge; what came back meanwhile is left alone.
            progress: Told the identifier, and files and bytes deleted so far.

        Returns:
            What was purged.
        """
        tables = [one for one in objects if one.table is not None]
        marked, lone = self._metastore.run(
            lambda txn: self._mark(txn, tables), message="purge: mark"
        )
        # No table ever gets the place again: this purge may sleep before it deletes, while another
        # comes to the end.
        self._metastore.give_up(lone)
        for one in marked:
            if one.table is not None and one.table.location in lone:
                self._delete_files(one, one.table.location, progress)
        named = {one.locator: self._data_files(one) for one in marked if _has_data_files(one)}
        namespaces = [one for one in objects if one.table is None]
        gone = self._metastore.run(
            lambda txn: self._forget(txn, marked, namespaces), message="purge: forget"
        )
        # After the objects: what others name, too, stays. A vacuum finds what a crash leaves.
        for one in marked:
            files = self._metastore.delete_unnamed(named.get(one.locator, ()))
            if one.locator in named and progress:
                progress(one.id, len(files), sum(file.size_bytes for file in files))
        return [*marked, *gone]

    def _data_files(self, found: DroppedObject) -> list[DataFile]:
        """Return the data files that objects of a table name."""
        view = self._metastore.begin()
        known = view.find(found.locator)
        if known is None:
            return []
        below = list(view.timeline.children(known.ids, view.seq))
        files: list[DataFile] = []
        for change in below:
            below.extend(view.timeline.children(change.ids, view.seq))
            if change.kind is Kind.DELTA:
                delta = cast("Delta", decode_object(change.body or b"", "/".join(change.ids)))
                files += delta.manifest.files
        return files

    def _mark(
        self, txn: Transaction, objects: Sequence[DroppedObject]
    ) -> tuple[list[DroppedObject], set[str]]:
        """Mark tables, and tell which of their locations no other table uses."""
        marked = []
        for one in objects:
            if one.table is None or not _is_unchanged(txn, one):
                continue
            drop = one.table.value.dropped or replace(one.record, name=one.id.name)
            if not drop.purging:
                value = _dropped(one.table.value, replace(drop, purging=True))
                txn.update(one.locator, value)
            # Whoever registers a table at the same place waits for this, or this for them.
            for place in places_of(one.table.location) if one.table.is_lance else ():
                txn.claim(place)
            marked.append(one)
        purged = {one.locator for one in marked}
        used = {
            table.location
            for table in self._all_tables()
            if table.locator not in purged and not (table.value.dropped or _LIVE).purging
        }
        locations = {one.table.location for one in marked if one.table and one.table.is_lance}
        lone = {place for place in locations if not any(overlaps(place, use) for use in used)}
        return marked, {place for place in lone if not is_outside(place)}

    def _all_tables(self) -> Iterator[LanceTable]:
        view = self._metastore.begin()
        for namespace in view.children(ROOT):
            yield from tables_in(view, namespace.locator)

    def _delete_files(self, found: DroppedObject, location: str, progress: Progress | None) -> None:
        store = self._home.store
        metas = store.list_prefix(location)
        store.delete(meta.path for meta in metas)
        store.delete_prefix(location)
        if progress:
            progress(found.id, len(metas), sum(meta.size_bytes for meta in metas))

    def _forget(
        self,
        txn: Transaction,
        tables: Sequence[DroppedObject],
        namespaces: Sequence[DroppedObject],
    ) -> list[DroppedObject]:
        for one in tables:
            if txn.find(one.locator) is not None:
                txn.delete(one.locator, cascade=True)
        gone = []
        for one in namespaces:
            if _is_unchanged(txn, one) and not txn.children(one.locator):
                txn.delete(one.locator)
                gone.append(one)
        return gone


_LIVE = Drop(name="")


def why_not_live(view: Transaction, table: ObjectId) -> TableNotFoundError:
    """Word what happened to a table that is not live."""
    dropped = _newest(_read(view), table, is_table=True)
    if dropped is None:
        return TableNotFoundError(f"there is no table {quote(str(table))}")
    above = None if dropped.is_top else str(table.parent)
    return was_dropped(str(table), view.start_ms - dropped.record.at_ms, above)


def _read(view: Transaction) -> list[DroppedObject]:
    """Read the whole trash of a state, sorted by identifier."""
    return sorted(_objects(view), key=lambda one: (one.id, one.record.seq))


def _objects(view: Transaction) -> Iterator[DroppedObject]:
    for namespace in view.children(ROOT):
        above = cast("Namespace", namespace.value).dropped
        name = above.name if above else namespace.locator.parts[0]
        if above is not None:
            own = ObjectId((name,))
            yield DroppedObject(own, namespace.locator, namespace.revision, above)
        for table in any_in(view, namespace.locator, only_dropped=above is None):
            drop = table.value.dropped or above
            if drop is None:
                continue
            called = table.value.dropped.name if table.value.dropped else table.id.name
            yield DroppedObject(
                ObjectId((name, called)),
                table.locator,
                table.revision,
                drop,
                table,
                is_top=table.value.dropped is not None,
            )


def _newest(
    objects: Sequence[DroppedObject], object_id: ObjectId, *, is_table: bool
) -> DroppedObject | None:
    """Return the newest drop of an identifier that can come back."""
    found = [one for one in objects if one.id == object_id and (one.table is not None) is is_table]
    alive = [one for one in found if not one.record.purging]
    return max(alive, key=lambda one: one.record.seq, default=None)


def _has_data_files(found: DroppedObject) -> bool:
    return found.table is not None and not found.table.is_lance


def require_namespace(txn: Transaction, namespace: ObjectId) -> Found:
    """Return a live namespace.

    Raises:
        NamespaceNotFoundError: there is no such namespace.
    """
    check_names(namespace)
    found = txn.find(locator_of(namespace)) if namespace.level == 1 else None
    if found is None:
        msg = f"there is no namespace {quote(str(namespace))}"
        raise NamespaceNotFoundError(msg)
    return found


def require_unprotected(table: ObjectId, value: Table, namespace: Namespace) -> None:
    """Refuse to drop what is protected, itself or by its namespace.

    Raises:
        ProtectedError: it is.
    """
    _require_loose(table, table, value.properties)
    _require_loose(table, table.parent, namespace.properties)


def _require_loose(dropped: ObjectId, guard: ObjectId, properties: dict[str, str]) -> None:
    if properties.get(PROTECTED) != "true":
        return
    kind, verb, flag = "table", "table unprotect", ""
    if guard.level == 1:
        kind, verb, flag = "namespace", "namespace set", " --unprotect"
    msg = (
        f"{kind} {quote(str(guard))} is protected, so {quote(str(dropped))} cannot be dropped:"
        f' lift it first with "{suggest(verb, str(guard))}{flag}"'
    )
    raise ProtectedError(msg)


def _retention(around: Sequence[Table | Namespace], default_ms: int | None) -> int | None:
    """Return the time to live that counts: that of the nearest object that sets one."""
    for found in around:
        said = found.properties.get(RETENTION)
        if said is not None:
            try:
                return parse_ttl(said)
            except InvalidInputError:
                continue  # another program wrote it
    return default_ms


def _dropped(value: Table, drop: Drop | None) -> Table:
    return replace(value, dropped=drop)


def _is_unchanged(txn: Transaction, found: DroppedObject) -> bool:
    known = txn.find(found.locator)
    return known is not None and known.revision == found.revision


def _not_empty(namespace: ObjectId, below: Sequence[Found]) -> NamespaceNotEmptyError:
    first = namespace.child(below[0].locator.parts[0])
    msg = (
        f"namespace {quote(str(namespace))} is not empty: {len(below)} tables are in it, such as"
        f" {quote(str(first))}; drop it with cascade to drop them with it"
    )
    return NamespaceNotEmptyError(msg)
