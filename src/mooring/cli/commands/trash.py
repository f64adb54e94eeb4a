"""``mooring trash``: dropped tables, and the end of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.batches import finish_batch
from mooring.cli.confirm import Plan
from mooring.cli.listing import (
    DEREGISTERED,
    LIVE,
    PURGING,
    Listed,
    as_time,
    list_everything,
    list_namespaces,
)
from mooring.cli.options import DroppedNames, DryRun, Yes, command, group
from mooring.cli.session import Session
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.clock import format_duration, parse_ttl
from mooring.errors import InvalidInputError, MooringError, TableNotFoundError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.jobs.runner import Runner
    from mooring.namespace.api import PurgeReport

__all__ = ["app"]

app = typer.Typer()
# Up to so many are gone sooner than Spark takes to start.
_MANY_TABLES = 4000


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
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Delete the bytes of dropped tables. There is no way back."""
    if names and expired:
        msg = "name the tables, or say --expired, not both"
        raise InvalidInputError(msg)
    catalog = session.open_catalog()
    now_ms = session.clock.now_ms()
    doomed = _named(catalog, names) if names else _expired(catalog, now_ms)
    namespaces = [] if names else _expired_namespaces(catalog, now_ms)
    plan = _plan(doomed, namespaces, now_ms)
    if dry_run:
        plan.show(session.output)
        return
    if not plan.rows:
        session.output.message("nothing to purge: no dropped table has expired")
        finish_batch(session, [], [])
        return
    plan.confirm(session.output, yes=yes)
    fits = len(doomed) < _MANY_TABLES
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner:
        # By name, all drops of it go; among the expired ones only those whose own time is over.
        _purge(session, catalog, doomed, namespaces, runner=runner, only_expired=not names)


def _purge(
    session: Session,
    catalog: Catalog,
    doomed: list[Listed],
    namespaces: list[Listed],
    *,
    runner: Runner,
    only_expired: bool,
) -> None:
    from mooring.cli.progress import format_size, show_progress
    from mooring.jobs.runner import Threads
    from mooring.upkeep.purging import purge

    done: dict[ObjectId, tuple[int, int]] = {}
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:

        def progress(table: ObjectId, files: int, size_bytes: int) -> None:
            done[table] = files, size_bytes
            meter(f"purging {table}", f"{files:,} files, {format_size(size_bytes)}")

        tables = [catalog.identifier(table.name) for table in doomed]
        report = purge(catalog, tables, runner=runner, only_expired=only_expired, progress=progress)
    gone = [found.name for found in namespaces]
    _tell(session, report, done, gone)


def _tell(
    session: Session,
    report: PurgeReport,
    done: dict[ObjectId, tuple[int, int]],
    namespaces: list[str],
) -> None:
    from mooring.cli.progress import format_size

    rows: list[dict[str, object]] = []
    for name in namespaces:
        rows.append({"namespace": name, "result": "purged"})
        session.output.message(f"purged the name of namespace '{name}'")
    for table in report.purged:
        # A server that did it tells no numbers.
        files, size_bytes = done.get(table, (None, None))
        rows.append({"table": str(table), "result": "purged", "files": files, "bytes": size_bytes})
        known = "" if files is None else f": {files:,} files, {format_size(size_bytes or 0)}"
        session.output.message(f"purged '{table}'{known}")
    for table, exc in report.failed.items():
        rows.append({"table": str(table), "result": "failed", "error": str(exc)})
    failures = [exc for exc in report.failed.values() if isinstance(exc, MooringError)]
    finish_batch(session, rows, failures)


def _plan(tables: list[Listed], namespaces: list[Listed], now_ms: int) -> Plan:
    rows: list[dict[str, object]] = [
        {"table": table.name, **_plan_row(table, now_ms)} for table in tables
    ]
    rows += [{"namespace": found.name, **_plan_row(found, now_ms)} for found in namespaces]
    doomed = how_many(len(tables), "table")
    columns = ["table", "action", "state", "dropped", "expires_at"]
    if namespaces:
        doomed += f" and the names of {how_many(len(namespaces), 'namespace')}"
        columns.insert(0, "namespace")
    return Plan(f"purge {doomed} for good", columns, rows)


def _plan_row(listed: Listed, now_ms: int) -> dict[str, object]:
    gone_ms = None if listed.deleted_at_ms is None else now_ms - listed.deleted_at_ms
    return {
        "action": "purge",
        "state": listed.state,
        "dropped": None if gone_ms is None else f"{format_duration(gone_ms)} ago",
        "expires_at": as_time(listed.expires_at_ms),
    }


def _expired(catalog: Catalog, now_ms: int) -> list[Listed]:
    """Tell whose time is over; a purge that was cut off is always to be finished."""
    return [
        table
        for table in list_everything(catalog)
        if table.is_expired(now_ms) or table.state == PURGING
    ]


def _expired_namespaces(catalog: Catalog, now_ms: int) -> list[Listed]:
    """Name the dropped namespaces whose time is over; their names go with the expired tables."""
    return [found for found in list_namespaces(catalog) if found.is_expired(now_ms)]


def _named(catalog: Catalog, names: list[str]) -> list[Listed]:
    """Find the tables to purge.

    A purged name counts: somebody may have written into its directory since.

    Raises:
        TableNotFoundError: nothing dropped has one of the names.
    """
    listed = list_everything(catalog)
    doomed = [table for table in listed if table.state not in {LIVE, DEREGISTERED}]
    gone = {table.name for table in doomed}
    for name in names:
        if name not in gone:
            raise TableNotFoundError(_why_not(name, listed))
    return [table for table in doomed if table.name in names]


def _why_not(name: str, listed: list[Listed]) -> str:
    states = [table.state for table in listed if table.name == name]
    if not states:
        return f"nothing dropped is named {quote(name)}"
    if LIVE in states:
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
