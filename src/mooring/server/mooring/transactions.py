"""The transactions of a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.mooring import shapes
from mooring.server.mooring.calls import MOST

if TYPE_CHECKING:
    from mooring.metastore.telling import ToldChange
    from mooring.server.mooring.calls import Call

__all__ = ["describe_transaction", "list_transactions"]

_USUAL = 100


def list_transactions(call: Call) -> shapes.Transactions:
    """List the committed transactions, the newest first."""
    limit = call.number("limit", least=1, most=MOST) or _USUAL
    return shapes.Transactions(
        [
            shapes.Transaction(
                id=one.txn_id,
                commit=seq,
                by=one.by,
                at_ms=one.end_ms,
                changes=len(one.changes),
                message=one.message,
            )
            for seq, one in call.metastore.metastore.transactions(limit)
        ]
    )


def describe_transaction(call: Call) -> shapes.TransactionWithChanges:
    """Tell what a transaction did."""
    from mooring.metastore.telling import tell_changes  # what directories do not need

    metastore = call.metastore.metastore
    seq, record = metastore.find_transaction(call.path["txn"])
    return shapes.TransactionWithChanges(
        id=record.txn_id,
        commit=seq,
        by=record.by,
        began_at_ms=record.start_ms,
        at_ms=record.end_ms,
        message=record.message,
        changes=[_change(one) for one in tell_changes(metastore, seq, record)],
    )


def _change(told: ToldChange) -> shapes.TransactionChange:
    return shapes.TransactionChange(
        operation=told.operation,
        kind=told.kind,
        object=str(told.locator),
        id=told.id,
        revision=told.revision,
        names=list(told.names),
    )
