"""The verbs of ``mooring table`` that look after it: stats, compact and cleanup."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.closeness import open_table, suggesting
from mooring.cli.confirm import Plan
from mooring.cli.options import DryRun, LiveName, Yes, command
from mooring.cli.session import Session
from mooring.cli.spark import Conf, Master, UseSpark
from mooring.cli.states import Branch
from mooring.cli.workers import SparkOptions, workers
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.tables.compaction import Compacted
    from mooring.tables.stats import TableStats
    from mooring.upkeep import CleanedUp, SweptRun

__all__ = ["add_to"]

_PLAN = ("table", "action", "fragments", "versions", "files", "size")
_ITEMS = ("item", "state", "action", "files", "size")
_USUAL_AGE = "7d"


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
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Merge small fragments and drop deleted rows from files; queries find the same.

    Old versions stay unless --older-than or --keep says otherwise, which needs a confirmation.
    Versions that a tag names or a branch comes from stay in any case.
    """
    from mooring.upkeep import compact as compact_table

    age = _age(older_than)
    catalog = session.open_catalog()
    table = open_table(catalog, name)
    options = SparkOptions(spark, master, conf)
    with suggesting(table, branch):
        compact = partial(
            table.compact, older_than=age, keep=keep, branch=branch, target_rows=target_rows
        )
        if dry_run or age is not None or keep is not None:
            plan = _plan(name, compact(dry_run=True))
            if not plan.is_agreed(session.output, yes=yes, dry_run=dry_run):
                return
        with workers(session, table, options, f"compacting {name}", branch) as runner:
            done = compact_table(
                catalog,
                table.info.id,
                runner=runner,
                older_than=age,
                keep=keep,
                branch=branch,
                target_rows=target_rows,
            )
    _tell(session, name, done)


@command
def cleanup_command(
    session: Session,
    name: LiveName,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help=f"Delete versions older than this: 12h; {_USUAL_AGE} unless --keep or --run is"
            " given.",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", metavar="NUMBER", min=1, help="Keep only the newest so many versions."
        ),
    ] = None,
    runs_older_than: Annotated[
        str,
        typer.Option(
            "--runs-older-than",
            metavar="DURATION",
            help="Give up writes that nobody ended and that wrote nothing for so long.",
        ),
    ] = "1d",
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Only what this run left, however old it is."),
    ] = None,
    branch: Branch = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete old versions, and what writes that were killed left behind.

    Versions that a tag names or a branch comes from stay, and every file that a version names.
    Writes that may still be at work are left alone. One that was about to commit and cannot be
    found in the table goes only where --run names it and --yes is said.
    """
    from mooring.upkeep import cleanup

    if older_than is None and keep is None and run is None:
        older_than = _USUAL_AGE
    age, runs_age = _age(older_than), _age(runs_older_than) or timedelta(0)
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        clean = partial(
            cleanup,
            table,
            older_than=age,
            keep=keep,
            runs_older_than=runs_age,
            run=run,
            force=yes,
            branch=branch,
        )
        would = clean(dry_run=True)
        plan = _cleanup_plan(session, name, would)
        if dry_run:
            plan.show(session.output)
            return
        if _has_work(would):
            plan.confirm(session.output, yes=yes)
        _tell_cleanup(session, name, clean())


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("stats")(stats_command)
    app.command("compact")(compact_command)
    app.command("cleanup")(cleanup_command)


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
        what = f"{what} and delete {how_many(cleaned.versions, 'version')} for good"
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


def _has_work(would: CleanedUp) -> bool:
    versions = would.versions
    has_versions = versions is not None and (versions.versions or versions.files)
    return bool(has_versions) or any(run.goes for run in would.runs)


def _cleanup_plan(session: Session, name: str, would: CleanedUp) -> Plan:
    from mooring.cli.progress import format_size

    rows = [_run_row(session, run) for run in would.runs]
    if would.versions is not None:
        versions = would.versions
        size = format_size(versions.bytes) if session.output.is_for_people else versions.bytes
        rows.insert(
            0,
            {
                "item": f"{versions.versions} old versions",
                "state": None,
                "action": "delete" if versions.versions or versions.files else "nothing to do",
                "files": versions.files,
                "size": size,
            },
        )
    gone = sum(run.goes for run in would.runs)
    count = would.versions.versions if would.versions else 0
    what = f"delete {count:,} old versions of '{name}' and what {gone:,} runs left, for good"
    return Plan(what, _ITEMS, rows)


def _run_row(session: Session, run: SweptRun) -> dict[str, object]:
    from mooring.cli.progress import format_size

    is_for_people = session.output.is_for_people
    return {
        "item": f"run {run.run}",
        "state": str(run.state),
        "action": "delete" if run.goes else "keep",
        "files": len(run.files) if is_for_people else list(run.files),
        "size": format_size(run.bytes) if is_for_people else run.bytes,
    }


def _tell_cleanup(session: Session, name: str, done: CleanedUp) -> None:
    from mooring.cli.progress import format_size

    gone = [run for run in done.runs if run.goes]
    kept = [run for run in done.runs if not run.goes]
    versions = done.versions.versions if done.versions else 0
    size = sum(run.bytes for run in gone) + (done.versions.bytes if done.versions else 0)
    record = {
        "table": name,
        "result": "cleaned",
        "versions_deleted": versions,
        "runs_ended": [run.run for run in gone],
        "runs_kept": [{"run": run.run, "state": str(run.state)} for run in kept],
        "bytes_deleted": size,
    }
    sentence = (
        f"cleaned '{name}': deleted {versions:,} versions and what {len(gone):,} runs left,"
        f" {format_size(size)}"
    )
    for run in kept:
        sentence += f"; left run {run.run} alone, which is {run.state}"
    session.output.change(record, sentence)
