"""``mooring audit``: what is wrong in a catalog, and its repair."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.ages import parse_age
from mooring.cli.confirm import Plan
from mooring.cli.options import DryRun, OptionalNamespace, Yes, command
from mooring.cli.session import Session
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.catalog import Catalog
    from mooring.cli.output import Row
    from mooring.jobs.runner import Runner
    from mooring.upkeep.audit import Audit
    from mooring.upkeep.findings import Fault, Finding
    from mooring.upkeep.repairs import Repaired

__all__ = ["audit_command"]

_COLUMNS = ("severity", "kind", "table", "path", "message", "files", "bytes", "repair", "advice")
_SHOWN = ("severity", "kind", "table", "path", "message", "size", "repair")
_PLAN = ("repair", "kind", "table", "path", "files", "size")
_DONE = ("repair", "kind", "table", "path", "result", "detail")
_FOUND = 1


@command
def audit_command(
    session: Session,
    namespace: OptionalNamespace = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only findings of this kind; may be repeated."),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="What nobody wrote to for so long is no longer anybody's who is at work.",
        ),
    ] = "7d",
    all_versions: Annotated[
        bool,
        typer.Option(
            "--all-versions", help="Look for the files of all versions, not only the newest."
        ),
    ] = False,
    footers: Annotated[
        bool,
        typer.Option(
            "--footers/--no-footers",
            show_default=False,
            help="Read the end of each data file of the newest versions; so it is by default.",
        ),
    ] = True,
    wants_repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Do the repairs that are offered; a restore only where --kind names its kind.",
        ),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Find what is wrong: damaged or missing files, orphans, leftovers of crashed operations.

    Nothing is changed unless --repair says so. It ends with 0 where nothing is wrong, apart from
    information, and with 1 where something is.
    """
    age_ms = parse_age(older_than)
    wanted = _parse_kinds(kinds or [])
    catalog = session.open_catalog()
    with choose_runner(
        session, spark=spark, master=master, conf=conf, fits=_fits(catalog)
    ) as runner:
        told = _run(
            session,
            catalog,
            runner,
            namespace=namespace,
            older_than_ms=age_ms,
            all_versions=all_versions,
            footers=footers,
        )
    found = [one for one in told.findings if not wanted or one.kind in wanted]
    if wants_repair or dry_run:
        _repair(session, catalog, found, wanted, older_than_ms=age_ms, yes=yes, dry_run=dry_run)
        return
    _tell(session, found, told.tables)
    _end(found)


def _fits(catalog: Catalog) -> bool:
    from mooring.upkeep.audit import FEW_TABLES

    return len(catalog.list_all_tables()) < FEW_TABLES


def _run(  # the arguments of an audit
    session: Session,
    catalog: Catalog,
    runner: Runner,
    *,
    namespace: str,
    older_than_ms: int,
    all_versions: bool,
    footers: bool,
) -> Audit:
    from mooring.cli.progress import show_progress
    from mooring.identifiers import ROOT
    from mooring.jobs.runner import Threads
    from mooring.upkeep.audit import audit

    within = catalog.identifier(namespace) if namespace else ROOT
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:

        def progress(done: int, total: int) -> None:
            meter("auditing", f"{done:,} of {total:,} tables")

        return audit(
            catalog,
            within,
            runner=runner,
            older_than_ms=older_than_ms,
            all_versions=all_versions,
            footers=footers,
            progress=progress,
        )


def _parse_kinds(texts: Sequence[str]) -> list[Fault]:
    from mooring.upkeep.findings import Fault

    known = {kind.value: kind for kind in Fault}
    for text in texts:
        if text not in known:
            msg = f"'{text}' is no kind of finding: there are {', '.join(known)}"
            raise InvalidInputError(msg)
    return [known[text] for text in texts]


# -- telling --------------------------------------------------------------------------------------


def _tell(session: Session, found: Sequence[Finding], tables: int) -> None:
    if not session.output.is_for_people:
        session.output.rows(_COLUMNS, [one.row() for one in found])
        return
    if found:
        session.output.rows(_SHOWN, [_shown(one) for one in found])
    counts = Counter(one.severity.value for one in found)
    said = ", ".join(
        f"{counts[severity]:,} {word}"
        for severity, word in (("error", "errors"), ("warning", "warnings"), ("info", "notes"))
        if counts[severity]
    )
    session.output.message(f"looked at {how_many(tables, 'table')}: {said or 'all is well'}")
    if any(one.repair for one in found):
        session.output.message("do the repairs with --repair, or see them with --dry-run")


def _shown(finding: Finding) -> Row:
    from mooring.cli.progress import format_size

    none = f"none: {finding.advice}" if finding.advice else None
    return {
        **finding.row(),
        "size": format_size(finding.bytes) if finding.bytes else None,
        "repair": finding.repair.value if finding.repair else none,
    }


def _end(found: Sequence[Finding]) -> None:
    from mooring.upkeep.findings import Severity

    if any(one.severity is not Severity.INFO for one in found):
        raise typer.Exit(_FOUND)


# -- repairing ------------------------------------------------------------------------------------


def _repair(  # what was found, and how to go about it
    session: Session,
    catalog: Catalog,
    found: Sequence[Finding],
    kinds: Sequence[Fault],
    *,
    older_than_ms: int,
    yes: bool,
    dry_run: bool,
) -> None:
    from mooring.upkeep.repairs import choose

    chosen, left = choose(found, kinds)
    plan = Plan(f"do {how_many(len(chosen), 'repair')}", _PLAN, [_planned(one) for one in chosen])
    if dry_run:
        plan.show(session.output)
        _end(found)
        return
    if chosen:
        plan.confirm(session.output, yes=yes)
        done = _do(session, catalog, chosen, older_than_ms)
    else:
        session.output.message("nothing to repair")
        done = []
    _tell_repaired(session, done, left)
    _end([*left, *(one.finding for one in done if one.result == "failed")])


def _do(
    session: Session, catalog: Catalog, chosen: Sequence[Finding], older_than_ms: int
) -> list[Repaired]:
    from mooring.cli.progress import show_progress
    from mooring.upkeep.repairs import repair

    with show_progress(session.output) as meter:

        def progress(finding: Finding) -> None:
            meter(f"repairing {finding.table or finding.path}", str(finding.repair))

        return repair(catalog, chosen, older_than_ms=older_than_ms, progress=progress)


def _planned(finding: Finding) -> Row:
    from mooring.cli.progress import format_size

    return {**finding.row(), "size": format_size(finding.bytes) if finding.bytes else None}


def _tell_repaired(session: Session, done: Sequence[Repaired], left: Sequence[Finding]) -> None:
    output = session.output
    if not output.is_for_people:
        output.rows(_DONE, list(_results(done, left)))
        return
    for one in done:
        subject = one.finding.table or one.finding.path
        output.message(f"{one.result} {one.finding.kind.value} of '{subject}': {one.detail}")
    for finding in left:
        subject = finding.table or finding.path
        output.message(f"left {finding.kind.value} of '{subject}': {_why_left(finding)}")


def _results(done: Sequence[Repaired], left: Sequence[Finding]) -> Iterator[Row]:
    for one in done:
        yield {**one.finding.row(), "result": one.result, "detail": one.detail}
    for finding in left:
        yield {**finding.row(), "result": "left", "detail": _why_left(finding)}


def _why_left(finding: Finding) -> str:
    if finding.repair is None:
        return finding.advice or "nothing is offered"
    return f"{finding.repair.value} is done with --kind {finding.kind.value}"
