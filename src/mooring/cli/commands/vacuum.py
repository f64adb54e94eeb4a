"""``mooring vacuum``: what nobody can reach any more in a metastore, and old positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.ages import parse_age
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time, metastore_of
from mooring.cli.options import DryRun, OptionalUri, Yes, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.changes.tidying import Tidied
    from mooring.metastore.sweep import Leftover
    from mooring.metastore.vacuum import Stray

__all__ = ["vacuum_command"]

_COLUMNS = ("path", "action", "why", "files", "bytes", "newest")


@command
def vacuum_command(
    session: Session,
    uri: OptionalUri = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="Only what nobody wrote to for so long: the grace period.",
        ),
    ] = "7d",
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete what failed transactions left, and data that no object of a metastore names.

    What older states named, and no newer one does, goes after the grace period: whoever reads as
    of a time before it may not find all data. Of change tables the changes are forgotten first
    that a compaction has merged and that only positions before the grace period need; their files
    go once the grace period is over again.
    """
    session = session.at(uri)
    age_ms = parse_age(older_than)
    catalog = session.open_catalog()
    backend = metastore_of(catalog)
    metastore = backend.metastore
    old = _tidy(catalog, age_ms, dry_run=True)
    leftovers = metastore.sweep(older_than_ms=age_ms, dry_run=True)
    strays = metastore.vacuum(older_than_ms=age_ms, dry_run=True)
    rows = [*map(_old, old), *map(_leftover, leftovers), *map(_stray, strays)]
    plan = Plan(_headline(len(old), len(leftovers) + len(strays)), _COLUMNS, rows)
    if dry_run:
        plan.show(session.output)
        return
    if not rows:
        session.output.message(f"nothing to delete: all that is older than {older_than} is in use")
        session.output.rows(_COLUMNS, [])
        return
    plan.confirm(session.output, yes=yes)
    backend.require_writable()
    tidied = _tidy(catalog, age_ms)
    swept = metastore.sweep(older_than_ms=age_ms)
    gone = metastore.vacuum(older_than_ms=age_ms)
    _tell(session, tidied, swept, gone)


def _tidy(catalog: Catalog, age_ms: int, *, dry_run: bool = False) -> list[Tidied]:
    from mooring.changes.tidying import RUNS_KEPT_MS, tidy_all

    runs_ms = max(age_ms, RUNS_KEPT_MS)
    return tidy_all(catalog, older_than_ms=age_ms, runs_older_than_ms=runs_ms, dry_run=dry_run)


def _tell(
    session: Session,
    tidied: Sequence[Tidied],
    swept: Sequence[Leftover],
    gone: Sequence[Stray],
) -> None:
    from mooring.cli.progress import format_size

    deleted = (*map(_leftover, swept), *map(_stray, gone))
    rows = [{**row, "action": "forgot"} for row in map(_old, tidied)]
    rows += [{**row, "action": "deleted"} for row in deleted]
    if not session.output.is_for_people:
        session.output.rows(_COLUMNS, rows)
        return
    files = sum(len(one.paths) for one in swept) + len(gone)
    size = sum(one.size_bytes for one in swept) + sum(one.size_bytes for one in gone)
    for one in tidied:
        session.output.message(f"forgot {_show_old(one)} of '{one.table}'")
    session.output.message(f"deleted {files:,} files and directories, {format_size(size)}")


def _headline(tables: int, leftovers: int) -> str:
    deleted = f"delete {how_many(leftovers, 'leftover')}"
    if not tables:
        return deleted
    forgotten = f"forget old changes of {how_many(tables, 'table')}"
    return f"{forgotten} and {deleted}" if leftovers else forgotten


def _old(found: Tidied) -> dict[str, object]:
    return {
        "path": str(found.table),
        "action": "forget",
        "why": _show_old(found),
        "files": found.files,
        "bytes": found.bytes,
        "newest": None,
    }


def _show_old(found: Tidied) -> str:
    parts = []
    if found.deltas or found.rounds:
        parts.append(
            f"{found.deltas:,} changes and {found.rounds:,} rounds before position {found.horizon}"
        )
    if found.runs:
        parts.append(f"{found.runs:,} old runs")
    return ", ".join(parts)


def _leftover(found: Leftover) -> dict[str, object]:
    return {
        "path": found.txn_id,
        "action": "delete",
        "why": "a transaction that never committed",
        "files": len(found.paths),
        "bytes": found.size_bytes,
        "newest": as_time(found.newest_ms),
    }


def _stray(found: Stray) -> dict[str, object]:
    return {
        "path": found.path,
        "action": "delete",
        "why": "no object names it",
        "files": None,
        "bytes": found.size_bytes,
        "newest": as_time(found.modified_ms),
    }
