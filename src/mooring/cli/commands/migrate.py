"""``mooring migrate``: from a directory of tables to a manifest that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.cli.options import DryRun, OptionalUri, command
from mooring.cli.session import Session
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.cli.output import Row
    from mooring.directory.migration import MigrationReport
    from mooring.jobs.runner import Runner

__all__ = ["migrate_command"]

_COLUMNS = ["table", "result", "reason", "detail"]
# The commits are what takes time, and they wait for each other: Spark helps only with the looks.
_MANY_TABLES = 1_000_000


@command
def migrate_command(
    session: Session,
    uri: OptionalUri = None,
    dry_run: DryRun = False,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Give every table of the root its row in the manifest; no file moves.

    It can be cut off and run again at any time. What it leaves out is listed with the reason.
    """
    from mooring.upkeep.migrating import migration_of

    session = session.at(uri)
    catalog = session.open_catalog()
    plan = migration_of(catalog).plan()
    if dry_run:
        _tell(session, catalog, plan, dry_run=True)
        return
    fits = len(plan.to_do) < _MANY_TABLES
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner:
        report = _run(session, catalog, runner)
    _tell(session, catalog, report, dry_run=False)


def _run(session: Session, catalog: Catalog, runner: Runner) -> MigrationReport:
    from mooring.cli.progress import show_progress
    from mooring.jobs.runner import Threads
    from mooring.upkeep.migrating import migrate

    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:
        meter("migrating", "looking")

        def progress(done: int, total: int) -> None:
            meter("migrating", f"{done:,} of {total:,} tables")

        return migrate(catalog, runner=runner, progress=progress)


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
            f"dry run: would add {how_many(len(report.missing), 'table')} to the manifest,"
            f" {len(report.already):,} are there already; nothing was changed"
        )
    else:
        gone = f", removed {len(report.removed):,}" if report.removed else ""
        output.message(
            f"added {how_many(len(report.added), 'table')} to the manifest{gone},"
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
