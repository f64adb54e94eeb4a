"""The verbs of ``mooring table`` that look after it: stats and compact."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.confirm import Plan
from mooring.cli.options import DryRun, LiveName, Yes, command
from mooring.cli.session import Session
from mooring.cli.states import Branch
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.tables.compaction import Compacted
    from mooring.tables.stats import TableStats

__all__ = ["add_to"]

_PLAN = ("table", "action", "fragments", "versions", "files", "size")


@command
def stats_command(session: Session, name: LiveName, branch: Branch = None) -> None:
    """Show rows, bytes, files, fragments and versions of a table."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        found = table.stats(branch=branch)
    if session.output.is_for_people:
        session.output.record(_for_people(name, found))
    else:
        session.output.record({"table": name, **asdict(found)})


@command
def compact_command(
    session: Session,
    name: LiveName,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="Then delete the versions older than this for good: 7d, 12h.",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", metavar="NUMBER", min=1, help="Then keep only the newest so many versions."
        ),
    ] = None,
    target_rows: Annotated[
        int | None,
        typer.Option(
            "--target-rows",
            metavar="NUMBER",
            min=1,
            help="How many rows a fragment should have; a million by default.",
        ),
    ] = None,
    branch: Branch = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Merge small fragments and drop deleted rows from files; queries find the same.

    Old versions stay unless --older-than or --keep says otherwise, which needs a confirmation.
    Versions that a tag names or a branch comes from stay in any case.
    """
    from mooring.cli.progress import show_progress

    age = _age(older_than)
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        compact = partial(
            table.compact, older_than=age, keep=keep, branch=branch, target_rows=target_rows
        )
        if dry_run or age is not None or keep is not None:
            plan = _plan(name, compact(dry_run=True))
            if dry_run:
                plan.show(session.output)
                return
            plan.confirm(session.output, yes=yes)
        with show_progress(session.output) as meter:
            meter(f"compacting {name}", "")
            done = compact()
    _tell(session, name, done)


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("stats")(stats_command)
    app.command("compact")(compact_command)


def _for_people(name: str, found: TableStats) -> dict[str, object]:
    from mooring.cli.progress import format_size

    lengths = found.lengths
    return {
        "table": name,
        "version": found.version,
        "versions": found.versions,
        "rows": found.rows,
        "deleted rows": found.deleted_rows,
        "columns": format_size(found.bytes),
        "data files": f"{found.data_files:,} ({format_size(found.file_bytes)})",
        "fragments": f"{found.fragments:,} ({found.small_fragments:,} small)",
        "fragment rows": f"{lengths.min:,} to {lengths.max:,}, {lengths.mean:,} on average",
        "indexes": found.indexes,
    }


def _age(text: str | None) -> timedelta | None:
    """Read a duration.

    Raises:
        InvalidInputError: it is none, or never ends.
    """
    from mooring.clock import parse_ttl

    if text is None:
        return None
    age_ms = parse_ttl(text)
    if age_ms is None:
        msg = "no version is older than never: leave --older-than out to keep them all"
        raise InvalidInputError(msg)
    return timedelta(milliseconds=age_ms)


def _plan(name: str, would: Compacted) -> Plan:
    from mooring.cli.progress import format_size

    cleaned = would.cleaned
    row = {
        "table": name,
        "action": "compact" if cleaned is None else "compact and clean",
        "fragments": f"{would.fragments_removed:,} -> {would.fragments_added:,}",
        "versions": None if cleaned is None else cleaned.versions,
        "files": None if cleaned is None else cleaned.files,
        "size": None if cleaned is None else format_size(cleaned.bytes),
    }
    what = f"compact '{name}'"
    if cleaned is not None:
        count = "1 version" if cleaned.versions == 1 else f"{cleaned.versions:,} versions"
        what = f"{what} and delete {count} for good"
    return Plan(what, _PLAN, [row])


def _tell(session: Session, name: str, done: Compacted) -> None:
    from mooring.cli.progress import format_size

    cleaned = done.cleaned
    record = {
        "table": name,
        "result": "compacted",
        "version": done.version,
        "fragments_removed": done.fragments_removed,
        "fragments_added": done.fragments_added,
        "versions_deleted": cleaned.versions if cleaned else 0,
        "bytes_deleted": cleaned.bytes if cleaned else 0,
    }
    merged = "nothing to merge"
    if done.fragments_removed:
        merged = f"{done.fragments_removed:,} fragments became {done.fragments_added:,}"
    sentence = f"compacted '{name}': {merged}: version {done.version}"
    if cleaned is not None:
        sentence += f"; deleted {cleaned.versions:,} versions, {format_size(cleaned.bytes)}"
    session.output.change(record, sentence)
