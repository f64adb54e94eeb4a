"""``mooring txn``: the transactions of a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.listing import as_time, metastore_of
from mooring.cli.options import command, group
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.metastore.entry import Record
    from mooring.metastore.telling import ToldChange

__all__ = ["app"]

_SHOWN = 20
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
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            metavar="NUMBER",
            min=1,
            help=f"Only the newest so many; {_SHOWN} to read, and all for programs.",
        ),
    ] = None,
) -> None:
    """List the committed transactions, the newest first."""
    if limit is None and session.output.is_for_people:
        limit = _SHOWN
    metastore = metastore_of(session.open_catalog()).metastore
    wanted = None if limit is None else limit + 1
    rows = [_row(seq, record) for seq, record in metastore.transactions(wanted)]
    session.output.rows(_COLUMNS, rows[:limit])
    if limit is not None and len(rows) > limit:
        session.output.message("older transactions are left out: --limit shows more")


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
