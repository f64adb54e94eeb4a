"""What happened to an object: its revisions, with the transactions that made them.

Spec: deltacat-storage-model, "Revision Directory".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mooring.metastore.lance_table import branch_locator
from mooring.metastore.layout import Operation, revisions_dir
from mooring.metastore.model import Delta, Table, decode_object
from mooring.namespace.api import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.metastore.entry import Record
    from mooring.metastore.locator import Locator
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids
    from mooring.metastore.transaction import Transaction

__all__ = ["Revision", "read_past", "read_revisions"]


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of an object.

    Attributes:
        number: Counts from 1.
        operation: What was done.
        record: The transaction that did it.
        value: The object then; None where it was deleted.
        began: Names that it got.
        ended: Names that it lost.
    """

    number: int
    operation: Operation
    record: Record
    value: MetaObject | None
    began: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


def read_revisions(metastore: Metastore, ids: Ids) -> list[Revision]:
    """Return the committed revisions of an object, the oldest first.

    By its files: however long the chain is, an object has as many as it has revisions.
    """
    found = []
    for meta in metastore.store.list_prefix(revisions_dir(ids)):
        txn_id = metastore.dialect.writer_of(meta.path)
        record = metastore.find_record(txn_id) if txn_id else None
        if record is not None:
            found.append(_revision(record, ids))
    return sorted(found, key=lambda one: one.number)


def _revision(record: Record, ids: Ids) -> Revision:
    change = next(one for one in record.changes if one.ids == ids)
    value = None if change.body is None else decode_object(change.body, "/".join(ids))
    began = tuple("|".join(name.parts) for name in change.names if _begins(name.operation))
    ended = tuple("|".join(name.parts) for name in change.names if not _begins(name.operation))
    return Revision(change.revision, change.operation, record, value, began, ended)


def _begins(operation: Operation) -> bool:
    return operation is not Operation.DELETE


def read_past(metastore: Metastore, view: Transaction, table: Locator) -> list[Change]:
    """Tell what happened to a Lance table, in no particular order."""
    found = view.find(table)
    revisions = read_revisions(metastore, found.ids) if found else []
    changes = [*_changes(revisions)]
    main = view.find(branch_locator(table, None))
    for child in view.children(main.locator) if main else ():
        delta = cast("Delta", child.value)
        author, at_ms = delta.manifest.author or "", delta.at_ms or 0
        changes.append(Change("write", "live", author, at_ms, delta.stream_position))
    return changes


def _changes(revisions: list[Revision]) -> Iterator[Change]:
    """Name what each revision did to the table's life; changes of properties are updates."""
    was_dropped = False
    for one in revisions:
        dropped = cast("Table", one.value).dropped if one.value is not None else None
        action, state = _act(one, was_dropped=was_dropped, is_dropped=dropped is not None)
        if dropped is not None and dropped.purging:
            action, state = "purge", "purging"
        was_dropped = dropped is not None
        # A table is made before its first version, which the same transaction makes.
        is_first = one.operation is Operation.CREATE
        at_ms = one.record.start_ms if is_first else one.record.end_ms
        yield Change(action, state, one.record.by, at_ms)


def _act(one: Revision, *, was_dropped: bool, is_dropped: bool) -> tuple[str, str]:
    if one.operation is Operation.CREATE:
        return "create", "live"
    if is_dropped:
        return "drop", "deleted"
    if was_dropped:
        return "undrop", "live"
    return ("rename" if one.ended else "update"), "live"
