"""The transactions of a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.mooring import shapes
from mooring.server.mooring.calls import MOST

if TYPE_CHECKING:
    from mooring.metastore.entry import Change
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction
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
    metastore = call.metastore.metastore
    seq, record = metastore.find_transaction(call.path["txn"])
    after = metastore.begin(at=seq)
    return shapes.TransactionWithChanges(
        id=record.txn_id,
        commit=seq,
        by=record.by,
        began_at_ms=record.start_ms,
        at_ms=record.end_ms,
        message=record.message,
        changes=[_change(metastore, after, seq, one) for one in record.changes],
    )


def _change(
    metastore: Metastore, after: Transaction, seq: int, change: Change
) -> shapes.TransactionChange:
    # What was deleted has its name in the state before.
    state = after if change.body is not None else metastore.begin(at=seq - 1)
    return shapes.TransactionChange(
        operation=change.operation.value,
        kind=change.kind.value,
        object=str(state.locate(change.ids)),
        id="/".join(change.ids),
        revision=change.revision,
        names=[
            f"{'-' if name.operation == 'delete' else '+'}{'|'.join(name.parts)}"
            for name in change.names
        ],
    )
