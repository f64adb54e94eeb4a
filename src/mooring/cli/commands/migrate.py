"""``mooring migrate``: from a directory of tables to a manifest that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.cli.options import DryRun, OptionalUri, command
from mooring.cli.session import Session
from mooring.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.cli.output import Row
    from mooring.directory.migration import Migration, MigrationReport

__all__ = ["migrate_command"]

_COLUMNS = ["table", "result", "reason", "detail"]


@command
def migrate_command(session: Session, uri: OptionalUri = None, dry_run: DryRun = False) -> None:
    """Give every table of the root its row in the manifest; no file moves.

    It can be cut off and run again at any time. What it leaves out is listed with the reason.
    """
    session = session.at(uri)
    catalog = session.open_catalog()
    migration = _prepare(catalog)
    report = migration.plan() if dry_run else _run(session, migration)
    _tell(session, catalog, report, dry_run=dry_run)


def _prepare(catalog: Catalog) -> Migration:
    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.migration import Migration

    if not isinstance(catalog.backend, CompatBackend):
        msg = f"'{catalog.uri}' is opened without its manifest, and a migration leads to that"
        raise UnsupportedError(msg)
    return Migration(catalog.backend)


def _run(session: Session, migration: Migration) -> MigrationReport:
    from mooring.cli.progress import show_progress

    with show_progress(session.output) as meter:
        meter("migrating", "looking")

        def progress(done: int, total: int) -> None:
            meter("migrating", f"{done:,} of {total:,} tables")

        return migration.run(progress)


def _tell(session: Session, catalog: Catalog, report: MigrationReport, *, dry_run: bool) -> None:
    output = session.output
    if not output.is_for_people:
        output.record(_record(catalog, report, dry_run=dry_run))
        return
    rows = [*_planned(report), *_skipped(report)]
    if rows:
        output.rows(_COLUMNS, rows)
    if dry_run:
        output.message(
            f"dry run: would add {_tables(report.missing)} to the manifest,"
            f" {len(report.already):,} are there already; nothing was changed"
        )
    else:
        gone = f", removed {len(report.removed):,}" if report.removed else ""
        output.message(
            f"added {_tables(report.added)} to the manifest{gone},"
            f" {len(report.already):,} were there already, left out {len(report.skipped):,}"
        )
    if not (dry_run and report.to_do):
        output.message(report.advice)


def _record(catalog: Catalog, report: MigrationReport, *, dry_run: bool) -> Row:
    return {
        "catalog": catalog.uri,
        "dry_run": dry_run,
        "complete": report.is_complete,
        "added": list(report.added),
        "removed": list(report.removed),
        "already": len(report.already),
        "to_add": list(report.missing),
        "to_mend": list(report.stale),
        "skipped": [
            {"table": found.name, "reason": found.reason.value, "detail": found.detail}
            for found in report.skipped
        ],
        "advice": report.advice,
    }


def _planned(report: MigrationReport) -> Iterator[Row]:
    for name in report.missing:
        yield {"table": name, "result": "to add"}
    for name in report.stale:
        yield {"table": name, "result": "to mend"}


def _skipped(report: MigrationReport) -> Iterator[Row]:
    for found in report.skipped:
        yield {
            "table": found.name,
            "result": "left out",
            "reason": found.reason.value,
            "detail": found.detail,
        }


def _tables(names: tuple[str, ...]) -> str:
    return "1 table" if len(names) == 1 else f"{len(names):,} tables"
