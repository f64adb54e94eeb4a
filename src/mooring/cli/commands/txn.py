"""``mooring txn``: the transactions of a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.listing import as_time, metastore_of
from mooring.cli.newest import Newest, show_newest
from mooring.cli.options import command, group
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.metastore.entry import Record
    from mooring.metastore.telling import ToldChange

__all__ = ["app"]

_COLUMNS = ("id", "commit", "by", "at", "changes", "message")
_CHANGE_COLUMNS = ("operation", "kind", "object", "revision", "names")

app = typer.Typer()


@app.callback(invoke_without_command=True)
@group
def txn() -> None:
    """Transactions of a metastore."""


@app.command("list")
@command
def list_command(
    session: Session,
    limit: Newest = None,
) -> None:
    """List the committed transactions, the newest first."""
    metastore = metastore_of(session.open_catalog()).metastore

    def read(wanted: int | None) -> list[dict[str, object]]:
        return [_row(seq, record) for seq, record in metastore.transactions(wanted)]

    show_newest(session.output, _COLUMNS, read, limit=limit, what="transactions")


@app.command("show")
@command
def show_command(
    session: Session,
    txn_id: Annotated[str, typer.Argument(metavar="ID", help="The transaction, as listed.")],
) -> None:
    """Show what a transaction did."""
    from mooring.metastore.telling import tell_changes

    metastore = metastore_of(session.open_catalog()).metastore
    seq, record = metastore.find_transaction(txn_id)
    changes = [_change(one) for one in tell_changes(metastore, seq, record)]
    head = {**_row(seq, record), "began": as_time(record.start_ms)}
    if not session.output.is_for_people:
        session.output.record({**head, "changes": changes})
        return
    session.output.record(head)
    session.output.gap()
    session.output.rows(_CHANGE_COLUMNS, [{**row, "names": _joined(row)} for row in changes])


def _row(seq: int, record: Record) -> dict[str, object]:
    return {
        "id": record.txn_id,
        "commit": seq,
        "by": record.by,
        "at": as_time(record.end_ms),
        "changes": len(record.changes),
        "message": record.message,
    }


def _change(told: ToldChange) -> dict[str, object]:
    return {
        "operation": told.operation,
        "kind": told.kind,
        "object": str(told.locator),
        "id": told.id,
        "revision": told.revision,
        "names": list(told.names),
    }


def _joined(row: dict[str, object]) -> str | None:
    names = row["names"]
    return " ".join(names) or None if isinstance(names, list) else None
