"""``mooring trash``: dropped tables, and the end of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.batches import finish_batch
from mooring.cli.confirm import Plan
from mooring.cli.listing import (
    DEREGISTERED,
    DROPPED,
    LIVE,
    ListedTable,
    as_time,
    list_everything,
)
from mooring.cli.options import DroppedNames, DryRun, Yes, command, group
from mooring.cli.session import Session
from mooring.clock import format_duration, parse_ttl
from mooring.errors import InvalidInputError, MooringError, TableNotFoundError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import PurgeReport

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
@group
def trash() -> None:
    """Dropped tables."""


@app.command("list")
@command
def list_command(
    session: Session,
    deleted_before: Annotated[
        str | None,
        typer.Option(
            "--deleted-before",
            metavar="WHEN",
            help="Only those dropped before a time, or longer ago: 2d, 2025-01-31T12:00Z.",
        ),
    ] = None,
) -> None:
    """List the dropped tables."""
    now_ms = session.clock.now_ms()
    before_ms = None if deleted_before is None else _parse_when(deleted_before, now_ms)
    dropped = session.open_catalog().list_purgable_tables(before_ms)
    rows = [
        {
            "name": str(table.id),
            "deleted_at": as_time(table.deleted_at_ms),
            "expires_at": as_time(table.expires_at_ms),
            "expired": table.is_expired(now_ms),
        }
        for table in dropped
    ]
    session.output.rows(["name", "deleted_at", "expires_at", "expired"], rows)


@app.command("purge")
@command
def purge_command(
    session: Session,
    names: DroppedNames = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="All whose time is over; so it is when none is named."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete the bytes of dropped tables. There is no way back."""
    if names and expired:
        msg = "name the tables, or say --expired, not both"
        raise InvalidInputError(msg)
    catalog = session.open_catalog()
    doomed = _named(catalog, names) if names else _expired(catalog, session.clock.now_ms())
    plan = _plan(doomed, session.clock.now_ms())
    if dry_run:
        plan.show(session.output)
        return
    if doomed:
        plan.confirm(session.output, yes=yes)
    else:
        session.output.message("nothing to purge: no dropped table has expired")
    _purge(session, catalog, [table.name for table in doomed])


def _purge(session: Session, catalog: Catalog, names: list[str]) -> None:
    from mooring.cli.progress import format_size, show_progress

    done: dict[ObjectId, tuple[int, int]] = {}
    with show_progress(session.output) as meter:

        def progress(table: ObjectId, files: int, size_bytes: int) -> None:
            done[table] = files, size_bytes
            meter(f"purging {table}", f"{files:,} files, {format_size(size_bytes)}")

        report = catalog.purge_tables(names, progress)
    _tell(session, report, done)


def _tell(session: Session, report: PurgeReport, done: dict[ObjectId, tuple[int, int]]) -> None:
    from mooring.cli.progress import format_size

    rows: list[dict[str, object]] = []
    for table in report.purged:
        files, size_bytes = done.get(table, (0, 0))
        rows.append({"table": str(table), "result": "purged", "files": files, "bytes": size_bytes})
        session.output.message(f"purged '{table}': {files:,} files, {format_size(size_bytes)}")
    for table, exc in report.failed.items():
        rows.append({"table": str(table), "result": "failed", "error": str(exc)})
    failures = [exc for exc in report.failed.values() if isinstance(exc, MooringError)]
    finish_batch(session, rows, failures)


def _plan(doomed: list[ListedTable], now_ms: int) -> Plan:
    rows: list[dict[str, object]] = []
    for table in doomed:
        gone_ms = None if table.deleted_at_ms is None else now_ms - table.deleted_at_ms
        rows.append(
            {
                "table": table.name,
                "action": "purge",
                "state": table.state,
                "dropped": None if gone_ms is None else f"{format_duration(gone_ms)} ago",
                "expires_at": as_time(table.expires_at_ms),
            }
        )
    count = "1 table" if len(doomed) == 1 else f"{len(doomed)} tables"
    columns = ["table", "action", "state", "dropped", "expires_at"]
    return Plan(f"purge {count} for good", columns, rows)


def _expired(catalog: Catalog, now_ms: int) -> list[ListedTable]:
    return [
        ListedTable(str(table.id), DROPPED, table.deleted_at_ms, table.expires_at_ms)
        for table in catalog.list_purgable_tables()
        if table.is_expired(now_ms)
    ]


def _named(catalog: Catalog, names: list[str]) -> list[ListedTable]:
    """Find the tables to purge.

    A purged name counts: somebody may have written into its directory since.

    Raises:
        TableNotFoundError: nothing dropped has one of the names.
    """
    listed = {table.name: table for table in list_everything(catalog)}
    for name in names:
        if name not in listed or listed[name].state in {LIVE, DEREGISTERED}:
            raise TableNotFoundError(_why_not(name, listed.get(name)))
    return [listed[name] for name in dict.fromkeys(names)]


def _why_not(name: str, found: ListedTable | None) -> str:
    if found is None:
        return f"nothing dropped is named {quote(name)}"
    if found.state == LIVE:
        return f"table {quote(name)} is live: only a dropped table can be purged"
    return f"table {quote(name)} is deregistered: register and drop it before a purge"


def _parse_when(text: str, now_ms: int) -> int:
    if text[:1].isdigit() and "-" not in text:
        age_ms = parse_ttl(text)
        return now_ms - (age_ms or 0)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        msg = f"'{text}' is neither an age (2d, 12h) nor a time (2025-01-31, 2025-01-31T12:00Z)"
        raise InvalidInputError(msg) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
