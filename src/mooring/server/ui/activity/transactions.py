"""The transactions of a metastore, and what one of them did."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError, InvalidNameError, UnsupportedError
from mooring.identifiers import ObjectId, quote
from mooring.server.mooring.kinds import name_kind
from mooring.server.ui.activity.signs import Signs
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from mooring.metastore.backend import MetastoreBackend
    from mooring.metastore.entry import Record
    from mooring.metastore.telling import ToldChange
    from mooring.server.ui.visit import Visit

__all__ = [
    "ChangesView",
    "ShownChange",
    "ShownTransaction",
    "Transactions",
    "list_transactions",
    "metastore_of",
    "show_changes",
]

_A_PAGE = 50
_MOST_CHANGES = 500
# Who asks for those of one namespace is shown what is found in so many.
_MOST_LOOKED_AT = 2000
_TABLE_LEVEL = 2
_TONES = {"create": "good", "delete": "warn"}


class ShownTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction.

    Attributes:
        id: Its id.
        commit: The entry that holds it.
        by: Who committed it.
        at_ms: When.
        message: What it was for.
        changes: How many objects it changed.
        href: Its page.
    """

    id: str
    commit: int
    by: str
    at_ms: int
    message: str
    changes: int
    href: str


class Transactions(msgspec.Struct, frozen=True, kw_only=True):
    """A page of transactions.

    Attributes:
        shown: The transactions, the newest first.
        newest: Where the newest are; empty where these are they.
        older: Where those before are; empty where there are none.
        note: What was left out.
    """

    shown: list[ShownTransaction]
    newest: str = ""
    older: str = ""
    note: str = ""


class ShownChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a transaction did to an object.

    Attributes:
        operation: What was done.
        tone: How it looks.
        kind: What the object is.
        object: What it was called.
        href: The page of the table or namespace that it belongs to; empty where there is none.
        revision: The number of the revision.
        names: Names that began or ended.
    """

    operation: str
    tone: str
    kind: str
    object: str
    href: str
    revision: int
    names: list[str]


class ChangesView(View, frozen=True, kw_only=True):
    """A transaction with what it did.

    Attributes:
        transaction: The transaction.
        began_at_ms: When it began.
        changes: The first of its changes.
        back: Where all transactions are.
    """

    transaction: ShownTransaction
    began_at_ms: int
    changes: list[ShownChange]
    back: str


def metastore_of(visit: Visit) -> MetastoreBackend:
    """Return the catalog where it is a metastore.

    Raises:
        UnsupportedError: it is of another kind.
    """
    from mooring.metastore.backend import MetastoreBackend  # what directories do not need

    backend = visit.backend
    if isinstance(backend, MetastoreBackend):
        return backend
    msg = f"catalog {quote(visit.served.name)} is {name_kind(visit.kind)}, and no metastore"
    raise UnsupportedError(msg)


def list_transactions(visit: Visit, within: ObjectId) -> Transactions:
    """Show a page of transactions.

    Args:
        visit: The request; its ``before`` says from where on.
        within: Only those that changed something in this namespace, or this table.
    """
    metastore, before = metastore_of(visit).metastore, visit.number("before", least=1)
    place = _ids_of(visit, within)
    shown: list[tuple[int, Record]] = []
    older = note = ""
    query = {"within": str(within) if within.names else None}
    found = metastore.transactions(_MOST_LOOKED_AT + 1, before=before)
    for looked_at, (seq, record) in enumerate(found):
        if looked_at == _MOST_LOOKED_AT:
            older = visit.links.to("activity", before=seq + 1, **query)
            note = f"{_MOST_LOOKED_AT:,} transactions were looked through."
            break
        if place is None or not _touches(record, place):
            continue
        # Those of one entry stay together: a page ends with an entry.
        if len(shown) >= _A_PAGE and seq != shown[-1][0]:
            older = visit.links.to("activity", before=shown[-1][0], **query)
            break
        shown.append((seq, record))
    return Transactions(
        shown=[_shown(visit, seq, record) for seq, record in shown],
        newest="" if before is None else visit.links.to("activity", **query),
        older=older,
        note=note,
    )


def _ids_of(visit: Visit, within: ObjectId) -> tuple[str, ...] | None:
    """Return the ids of a namespace or table, none for the root; None where it is not there."""
    from mooring.metastore.locator import Locator

    if not within.names:
        return ()
    try:
        found = metastore_of(visit).metastore.begin().find(Locator.of(*within.names))
    except (InvalidInputError, InvalidNameError):
        return None
    return None if found is None else found.ids


def _touches(record: Record, place: tuple[str, ...]) -> bool:
    return not place or any(one.ids[: len(place)] == place for one in record.changes)


def _shown(visit: Visit, seq: int, record: Record) -> ShownTransaction:
    return ShownTransaction(
        id=record.txn_id,
        commit=seq,
        by=record.by,
        at_ms=record.end_ms,
        message=record.message or "",
        changes=len(record.changes),
        href=visit.links.transaction(record.txn_id),
    )


def show_changes(visit: Visit) -> ChangesView:
    """Show what a transaction did.

    Raises:
        TransactionNotFoundError: there is none.
        UnsupportedError: the catalog is no metastore.
    """
    from mooring.metastore.telling import tell_changes  # what directories do not need

    metastore = metastore_of(visit).metastore
    seq, record = metastore.find_transaction(visit.path["txn"])
    signs = Signs(visit)
    told = islice(tell_changes(metastore, seq, record), _MOST_CHANGES)
    return ChangesView(
        cli=visit.cli("txn", "show", names=[record.txn_id]),
        transaction=_shown(visit, seq, record),
        began_at_ms=record.start_ms,
        changes=[_change(signs, one) for one in told],
        back=visit.links.to("activity"),
    )


def _change(signs: Signs, told: ToldChange) -> ShownChange:
    # What lies in a table has the table's page; what listings hide has none.
    names = ("|".join(parts) for parts in told.locator.levels[:_TABLE_LEVEL])
    return ShownChange(
        operation=told.operation,
        tone=_TONES.get(told.operation, "accent"),
        kind=told.kind,
        object=str(told.locator),
        href=signs.to(ObjectId(tuple(names))),
        revision=told.revision,
        names=list(told.names),
    )
