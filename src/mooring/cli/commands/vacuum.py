"""``mooring vacuum``: what nobody can reach any more in a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time, metastore_of
from mooring.cli.options import DryRun, OptionalUri, Yes, command
from mooring.cli.session import Session
from mooring.clock import parse_ttl
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    of a time before it may not find all data.
    """
    session = session.at(uri)
    age_ms = parse_ttl(older_than)
    if age_ms is None:
        msg = f"'{older_than}' is no age: say how long nothing was written, as in 7d or 12h"
        raise InvalidInputError(msg)
    backend = metastore_of(session.open_catalog())
    metastore = backend.metastore
    leftovers = metastore.sweep(older_than_ms=age_ms, dry_run=True)
    strays = metastore.vacuum(older_than_ms=age_ms, dry_run=True)
    rows = [*map(_leftover, leftovers), *map(_stray, strays)]
    plan = Plan(f"delete {_count(rows)}", _COLUMNS, rows)
    if dry_run:
        plan.show(session.output)
        return
    if not rows:
        session.output.message(f"nothing to delete: all that is older than {older_than} is in use")
        session.output.rows(_COLUMNS, [])
        return
    plan.confirm(session.output, yes=yes)
    backend.require_writable()
    swept = metastore.sweep(older_than_ms=age_ms)
    gone = metastore.vacuum(older_than_ms=age_ms)
    _tell(session, swept, gone)


def _tell(session: Session, swept: Sequence[Leftover], gone: Sequence[Stray]) -> None:
    from mooring.cli.progress import format_size

    rows = [{**row, "action": "deleted"} for row in (*map(_leftover, swept), *map(_stray, gone))]
    if not session.output.is_for_people:
        session.output.rows(_COLUMNS, rows)
        return
    files = sum(len(one.paths) for one in swept) + len(gone)
    size = sum(one.size_bytes for one in swept) + sum(one.size_bytes for one in gone)
    session.output.message(f"deleted {files:,} files and directories, {format_size(size)}")


def _count(rows: Sequence[dict[str, object]]) -> str:
    return "1 leftover" if len(rows) == 1 else f"{len(rows)} leftovers"


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
