"""``mooring trash sweep``: what crashed creators left, and no name leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.ages import parse_age
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time, directory_of, is_iceberg
from mooring.cli.options import DryRun, Yes, command
from mooring.cli.session import Session
from mooring.errors import UnsupportedError

if TYPE_CHECKING:
    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.manifest_backend import ManifestBackend
    from mooring.directory.sweeping import Orphan

__all__ = ["add_to"]

_COLUMNS = ("location", "action", "files", "bytes", "newest")


@command
def sweep_command(
    session: Session,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="DURATION", help="Only where nothing was written for so long."
        ),
    ] = "1d",
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete directories that no name leads to: somebody crashed while creating a table.

    A directory that holds a whole table is shown and kept: it may be a deregistered one.
    """
    age_ms = parse_age(older_than)
    backend = _with_manifest(session)
    orphans = backend.find_orphans(age_ms)
    doomed = [orphan for orphan in orphans if not orphan.is_table]
    plan = Plan(f"delete {_count(doomed)}", _COLUMNS, [_row(orphan) for orphan in orphans])
    if dry_run:
        plan.show(session.output)
        return
    if not doomed:
        session.output.message(_nothing(orphans, older_than))
    else:
        plan.confirm(session.output, yes=yes)
    _tell(session, orphans, backend.delete_orphans(doomed))


def add_to(app: typer.Typer) -> None:
    """Add the verb to ``mooring trash``."""
    app.command("sweep")(sweep_command)


def _with_manifest(session: Session) -> CompatBackend | ManifestBackend:
    from mooring.directory.listing_backend import ListingBackend
    from mooring.metastore.backend import MetastoreBackend

    catalog = session.open_catalog()
    if isinstance(catalog.backend, MetastoreBackend):
        msg = f"what was left in a metastore is found by another verb: {session.suggest('vacuum')}"
        raise UnsupportedError(msg)
    if is_iceberg(catalog):
        msg = (
            f"'{catalog.uri}' is an Iceberg catalog, which does not know where all its tables"
            " lie: what has no name in it is to be found in its storage, by hand"
        )
        raise UnsupportedError(msg)
    backend = directory_of(catalog)
    if isinstance(backend, ListingBackend):
        msg = (
            "a catalog that is opened as a plain directory has nothing to sweep, for a table's"
            " name is its directory's; where there is a manifest, open the catalog with it"
        )
        raise UnsupportedError(msg)
    return backend


def _tell(session: Session, orphans: list[Orphan], gone: list[Orphan]) -> None:
    if not session.output.is_for_people:
        results = dict.fromkeys(gone, "deleted")
        rows = [{**_row(orphan), "action": results.get(orphan, "kept")} for orphan in orphans]
        session.output.rows(_COLUMNS, rows)
        return
    for orphan in gone:
        session.output.message(f"deleted '{orphan.location}': {orphan.files:,} files")


def _nothing(orphans: list[Orphan], older_than: str) -> str:
    if not orphans:
        return f"nothing to sweep: every directory older than {older_than} has a name"
    return (
        f"nothing to sweep: {_count(orphans)} without a name hold whole tables and are kept;"
        " register them, or delete them by hand"
    )


def _count(orphans: list[Orphan]) -> str:
    return how_many(len(orphans), "directory", "directories")


def _row(orphan: Orphan) -> dict[str, object]:
    return {
        "location": orphan.location,
        "action": "keep" if orphan.is_table else "delete",
        "files": orphan.files,
        "bytes": orphan.size_bytes,
        "newest": as_time(orphan.newest_at_ms),
    }
