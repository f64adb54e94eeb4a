"""``mooring publish``: change tables become, and stay, Lance tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.amounts import how_many
from mooring.cli.completion import complete_changes
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time
from mooring.cli.options import DryRun, command
from mooring.cli.session import Session, require_directory
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.changes import ChangeTable
    from mooring.changes.publication_status import PublicationStatus
    from mooring.changes.publish_plan import PublishPlan
    from mooring.changes.publish_report import PublishReport
    from mooring.jobs.runner import Runner
    from mooring.jobs.writing import PartWritten

__all__ = ["publish_command"]

_PLAN = ("table", "into", "action", "why", "from", "to", "buckets", "changed_rows")
_STATUS = ("table", "into", "catalog", "state", "position", "newest", "version", "at", "by")
_DONE = (
    "table",
    "into",
    "catalog",
    "action",
    "why",
    "position",
    "previous",
    "version",
    "rows",
    "rows_written",
    "rows_deleted",
    "buckets",
    "buckets_in_all",
    "indexes",
    "seconds",
    "is_new",
)
# What one machine still merges in a quarter of an hour.
_FITS_BYTES = 20 * 10**9

ChangeName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A change table.", autocompletion=complete_changes),
]


@command
def publish_command(
    session: Session,
    name: ChangeName = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="NAME", help="The Lance table; the one of before unless given."
        ),
    ] = None,
    to_catalog: Annotated[
        str | None,
        typer.Option("--to-catalog", metavar="URI", help="Its catalog; the same one unless given."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Columns, as in a,b as c; all unless given."),
    ] = None,
    vector: Annotated[
        str | None,
        typer.Option(
            "--vector",
            metavar="NAME=SOURCE",
            help="A vector column: v=file.py:function, v=module:function, v=COLUMN of arrays, or"
            " v=A,B,C of numbers; v[384]=... gives the length.",
        ),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            metavar="COLUMN:KIND",
            help="An index, as in id:BTREE or v:IVF_PQ:distance_type=cosine; may be repeated.",
        ),
    ] = None,
    at_position: Annotated[
        int | None,
        typer.Option(
            "--at-position", metavar="NUMBER", min=0, help="The position; the newest unless given."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All that was published before, of every table.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Write all rows anew.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Go on although somebody else changed the Lance table."),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status", help="Only show how far publications have come, of all unless named."
        ),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Publish it no more with --all; the Lance table stays."),
    ] = False,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Let a Lance table hold what a change table is at a position.

    The first time it is made; then only buckets that changed are looked at, and one commit takes
    old rows away and adds new ones. What is given is kept: the next time the name is enough. What
    is published already is not published again.
    """
    every = every or (status and name is None)
    if (name is None) != every:
        raise InvalidInputError("name a change table, or say --all, and not both")
    given = _Given(session, into, to_catalog, columns, vector, index, at_position, full, force)
    if every and given.is_special:
        msg = "--all publishes as before: give --into, columns and the like with one table"
        raise InvalidInputError(msg)
    catalog = session.open_catalog()
    wanted = _find(catalog, name, given)
    if status:
        _show_status(session, [table for table, _ in wanted])
        return
    if forget:
        _forget(session, wanted)
        return
    jobs = [_Job(table, options) for table, options in wanted]
    plans = [job.plan() for job in jobs] if dry_run or spark is None else []
    if dry_run:
        rows = [_plan_row(job, plan) for job, plan in zip(jobs, plans, strict=True)]
        Plan(f"publish {how_many(len(rows), 'table')}", _PLAN, rows).show(session.output)
        return
    fits = sum(map(_size, plans)) <= _FITS_BYTES
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner:
        reports = _run(session, jobs, runner)
    _tell(session, reports, is_list=every)


@dataclass(frozen=True)
class _Given:
    """What was said about a publication."""

    session: Session
    into: str | None
    to_catalog: str | None
    columns: str | None
    vector: str | None
    index: list[str] | None
    position: int | None
    full: bool
    force: bool

    @property
    def is_special(self) -> bool:
        """Whether it is about one publication."""
        said = (self.into, self.to_catalog, self.columns, self.vector, self.position)
        return any(one is not None for one in said) or bool(self.index)

    @property
    def options(self) -> dict[str, Any]:
        """The same as ``publish`` takes it."""
        columns = self.columns
        return {
            "into": self.into,
            "catalog": None if self.to_catalog is None else self._open(self.to_catalog),
            "columns": [one.strip() for one in columns.split(",")] if columns else None,
            "vector": self.vector,
            "indexes": self.index or None,
            "position": self.position,
            "full": self.full,
            "force": self.force,
        }

    def _open(self, uri: str) -> Catalog:
        from mooring.opening import connect

        require_directory(uri)
        config = self.session.config
        return connect(
            uri,
            read_only=config.is_read_only,
            author=config.value("user"),
            storage_options=config.storage_options,
        )


@dataclass(frozen=True)
class _Job:
    """A table, and how it is published."""

    table: ChangeTable
    options: dict[str, Any]

    def plan(self) -> PublishPlan:
        from mooring.changes.publishing import plan_publication

        return plan_publication(self.table, **self.options)


def _find(
    catalog: Catalog, name: str | None, given: _Given
) -> list[tuple[ChangeTable, dict[str, Any]]]:
    """Find what is to be published: one thing, or all that a table or all tables were before."""
    from mooring.changes import list_change_tables
    from mooring.changes.publication import saved_publications
    from mooring.cli.commands.changes import open_changes

    if name is not None and given.is_special:
        return [(open_changes(catalog, name), given.options)]
    names = list_change_tables(catalog) if name is None else [catalog.identifier(name)]
    found = []
    for one in names:
        table = open_changes(catalog, str(one))
        for publication in saved_publications(table):
            target = {"into": publication.target, "catalog": publication.open_catalog(catalog)}
            found.append((table, {**given.options, **target}))
    if not found and name is not None:
        return [(open_changes(catalog, name), given.options)]  # whose lack is told there
    return found


def _run(session: Session, jobs: Sequence[_Job], runner: Runner) -> list[PublishReport]:
    from mooring.changes.publishing import publish
    from mooring.cli.progress import show_progress
    from mooring.jobs.runner import Threads

    reports = []
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:
        for job in jobs:
            subject = f"publishing {job.table.id}"
            meter(subject, "")
            hear = _counting(partial(meter, subject))
            reports.append(publish(job.table, **job.options, runner=runner, on_done=hear))
    return reports


def _counting(show: Callable[[str], None]) -> Callable[[PartWritten], None]:
    rows = 0

    def hear(part: PartWritten) -> None:
        nonlocal rows
        rows += part.rows
        show(f"{rows:,} rows")

    return hear


def _size(plan: PublishPlan) -> int:
    files = {
        piece.file.path: piece.file.size_bytes or 0
        for change in plan.changes
        for piece in change.read.pieces
    }
    return sum(files.values())


def _plan_row(job: _Job, plan: PublishPlan) -> dict[str, object]:
    from mooring.changes.publication import choose_publication

    options = job.options
    target = choose_publication(job.table, options["into"], catalog=options["catalog"]).target
    return {
        "table": str(job.table.id),
        "into": str(target),
        "action": str(plan.action),
        "why": plan.why,
        "from": plan.since,
        "to": plan.moment.position,
        "buckets": f"{len(plan.changes):,} of {plan.buckets:,}",
        "changed_rows": plan.rows,
    }


def _show_status(session: Session, tables: Sequence[ChangeTable]) -> None:
    from mooring.changes.publication_status import publication_status

    each = {table.id: table for table in tables}
    found = [one for table in each.values() for one in publication_status(table)]
    session.output.rows(_STATUS, [_status_row(one) for one in found])
    behind = sum(one.state == "behind" for one in found)
    session.output.message(f"{how_many(len(found), 'publication')}, {behind:,} behind")


def _status_row(one: PublicationStatus) -> dict[str, object]:
    told = asdict(one)
    told["at"] = as_time(told.pop("at_ms"))
    return {name: told[name] for name in _STATUS}


def _forget(session: Session, wanted: Sequence[tuple[ChangeTable, dict[str, Any]]]) -> None:
    from mooring.changes.publication import (
        choose_publication,
        forget_publication,
        saved_publications,
    )

    for table, options in wanted:
        one = choose_publication(table, options["into"], catalog=options["catalog"])
        if not any(kept.is_same(one) for kept in saved_publications(table)):
            msg = f"'{table.id}' is not published into '{one.target}': see --status"
            raise NotFoundError(msg)
        forget_publication(table, one)
        record = {"table": str(table.id), "into": str(one.target), "result": "forgotten"}
        session.output.change(
            record, f"'{table.id}' is no longer published into '{one.target}', which stays"
        )


def _tell(session: Session, reports: Sequence[PublishReport], *, is_list: bool) -> None:
    rows = [_row(report) for report in reports]
    if session.output.is_for_people:
        for report in reports:
            session.output.message(_sentence(report))
        if not reports:
            session.output.message("nothing was published before")
        return
    if is_list or len(rows) != 1:
        session.output.rows(_DONE, rows)
    else:
        session.output.record(rows[0])


def _row(report: PublishReport) -> dict[str, object]:
    told = asdict(report)
    told["indexes"] = [{**one, "state": str(one["state"])} for one in told["indexes"]]
    told["seconds"] = round(report.seconds, 3)
    return told


def _sentence(report: PublishReport) -> str:
    where = f"'{report.into}'" + (f" of {report.catalog}" if report.catalog else "")
    if not report.is_new:
        told = f"{where} holds position {report.position} of '{report.table}' already"
        return f"{told}, as version {report.version}: nothing changed" + _indexes(report)
    done = {
        "create": f"made {where} with {report.rows_written:,} rows",
        "overwrite": f"wrote all {report.rows_written:,} rows of {where} anew ({report.why})",
        "append": f"added {report.rows_written:,} rows to {where}",
        "update": f"replaced {report.rows_deleted:,} rows of {where} by {report.rows_written:,}",
    }[report.action]
    looked = f"{report.buckets:,} of {report.buckets_in_all:,} buckets looked at"
    return (
        f"published position {report.position} of '{report.table}': {done}: version"
        f" {report.version}; {looked}" + _indexes(report)
    )


def _indexes(report: PublishReport) -> str:
    told = [f"{one.name} {one.state}" for one in report.indexes if one.state != "kept"]
    return f"; indexes: {', '.join(told)}" if told else ""
