"""``mooring compact``: what changes of change tables come to is written down."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.closeness import close_names, did_you_mean
from mooring.cli.completion import complete_changes
from mooring.cli.listing import as_time
from mooring.cli.options import command
from mooring.cli.progress import format_size, show_progress
from mooring.cli.session import Session
from mooring.cli.sizes import parse_size
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError, MooringError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.changes import ChangeTable
    from mooring.changes.compaction import CompactionReport
    from mooring.changes.compaction_plan import CompactionPlan, PartitionPlan
    from mooring.changes.rounds import Round
    from mooring.jobs.runner import Runner

__all__ = ["compact_command"]

_PLAN = ("table", "partition", "action", "deltas", "files", "bytes", "rewrite", "of", "read")
_ROUNDS = (
    "table",
    "partition",
    "round",
    "kind",
    "level",
    "after",
    "through",
    "deltas",
    "rewritten",
    "kept",
    "rows_in",
    "rows_out",
    "bytes_in",
    "bytes_out",
    "seconds",
    "by",
    "at",
)
_SHOWN_ROUNDS = (
    "table",
    "partition",
    "round",
    "level",
    "through",
    "deltas",
    "buckets",
    "rows",
    "bytes",
    "seconds",
    "by",
    "at",
)
_LEVELS = {1: "gather", 2: "merge"}
# What one machine still rewrites in well under an hour.
_LARGE_BYTES = 100 * 10**9

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Change tables; all of the catalog unless given.",
        autocompletion=complete_changes,
    ),
]


@command
def compact_command(
    session: Session,
    names: Names = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what is pending and would be done, do nothing.")
    ] = False,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="Show the rounds that were done, do nothing.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Rewrite everything, whether something is due or not.")
    ] = False,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            min=1,
            max=2,
            help="1 gathers changes in few files, 2 merges them; by size unless given.",
        ),
    ] = None,
    deltas: Annotated[
        int | None,
        typer.Option("--deltas", metavar="NUMBER", min=1, help="Due from so many changes on; 10."),
    ] = None,
    files: Annotated[
        int | None,
        typer.Option("--files", metavar="NUMBER", min=1, help="Due from so many files on; 100."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--bytes", metavar="SIZE", help="Due from so many bytes on; 256MiB."),
    ] = None,
    target_size: Annotated[
        str | None,
        typer.Option("--target-size", metavar="SIZE", help="How large a file may be; 256MiB."),
    ] = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Write down what the changes of change tables come to; reads find the same, and faster.

    Only key buckets that changed are rewritten. Writers and readers go on meanwhile: what is
    committed while it lasts is in the next round, and older positions can be read until a tidy.
    A partition is compacted when enough has come since it last was; the limits are options here,
    or properties of the table: compaction.deltas, compaction.files, compaction.bytes.
    """
    if plan and rounds:
        raise InvalidInputError("--plan shows what would be done, --rounds what was: name one")
    if full and level is not None:
        raise InvalidInputError("--full merges everything: leave --level out")
    catalog = session.open_catalog()
    tables = _tables(catalog, names or [])
    if rounds:
        _show_rounds(session, tables)
        return
    given = {
        "deltas": deltas,
        "files": files,
        "bytes": None if size is None else parse_size(size),
        "target_bytes": None if target_size is None else parse_size(target_size),
        "level": level,
        "force": full or None,
    }
    planned, failures = _plan_all(session, tables, given, is_named=bool(names))
    if plan:
        _show_plans(session, planned)
    else:
        total = sum(one.read_bytes for _, found in planned for one in found.due)
        with choose_runner(
            session, spark=spark, master=master, conf=conf, fits=total <= _LARGE_BYTES
        ) as runner:
            failures += _compact_all(session, planned, runner, is_named=bool(names))
    if failures:
        raise failures[0]


# -- tables ----------------------------------------------------------------------------------------


def _tables(catalog: Catalog, names: Sequence[str]) -> list[ChangeTable]:
    from mooring.changes import ChangeTable, list_change_tables

    if not names:
        return [ChangeTable(catalog, one) for one in list_change_tables(catalog)]
    return [_open(catalog, name) for name in names]


def _open(catalog: Catalog, name: str) -> ChangeTable:
    """Find a change table.

    Raises:
        InvalidInputError: it is a Lance table.
        TableNotFoundError: there is none; close names are told.
    """
    from mooring.changes import ChangeTable, list_change_tables

    try:
        return ChangeTable(catalog, name)
    except TableNotFoundError as exc:
        known = [str(one) for one in list_change_tables(catalog)]
        raise TableNotFoundError(f"{exc}{did_you_mean(close_names(name, known))}") from exc
    except MooringError as exc:
        try:
            catalog.table(name)
        except MooringError:
            raise exc from None
        msg = f"'{name}' is a Lance table: compact it with \"mooring table compact '{name}'\""
        raise InvalidInputError(msg) from exc


def _plan_all(
    session: Session, tables: Sequence[ChangeTable], given: Mapping[str, object], *, is_named: bool
) -> tuple[list[tuple[ChangeTable, CompactionPlan]], list[MooringError]]:
    """Plan all tables; where none was named, one that cannot be planned does not stop others."""
    from mooring.changes.compaction import plan_compaction, policy_of

    found: list[tuple[ChangeTable, CompactionPlan]] = []
    failures: list[MooringError] = []
    for table in tables:
        try:
            found.append((table, plan_compaction(table, policy_of(table, **given))))
        except MooringError as exc:
            if is_named:
                raise
            failures.append(exc)
            session.output.notice(f"left '{table.id}' alone: {exc}")
    return found, failures


def _compact_all(
    session: Session,
    planned: Sequence[tuple[ChangeTable, CompactionPlan]],
    runner: Runner,
    *,
    is_named: bool,
) -> list[MooringError]:
    """Compact all tables that need it; return what went wrong."""
    from mooring.jobs.runner import Threads

    failures: list[MooringError] = []
    rows: list[dict[str, object]] = []
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:
        for table, plan in planned:
            done = 0

            def hear(_: Round, table: ChangeTable = table, due: int = len(plan.due)) -> None:
                nonlocal done
                done += 1
                meter(f"compacting {table.id}", f"{done:,} of {due:,} partitions")

            meter(f"compacting {table.id}", "")
            try:
                report = table.compact(plan.policy, runner=runner, on_done=hear)
            except MooringError as exc:
                if is_named:
                    raise
                failures.append(exc)
                session.output.notice(f"'{table.id}' is not compacted: {exc}")
                continue
            rows += [_round_row(table, one) for one in report.rounds]
            if is_named or report.rounds:
                session.output.message(_sentence(table, report))
    if not session.output.is_for_people:
        session.output.rows(_ROUNDS, rows)
    elif not rows and not is_named and not failures:
        session.output.message("nothing is due in any change table")
    return failures


def _sentence(table: ChangeTable, report: CompactionReport) -> str:
    rounds = report.rounds
    beaten = f"; {report.beaten} given up, for somebody else was first" if report.beaten else ""
    if not rounds:
        return f"nothing is due in '{table.id}': --plan shows what is pending{beaten}"
    rewritten, kept = sum(one.rewritten for one in rounds), sum(one.kept for one in rounds)
    partitions = how_many(len(rounds), "partition")
    return (
        f"compacted '{table.id}': {partitions}, {sum(one.deltas for one in rounds):,} deltas;"
        f" rewrote {rewritten:,} of {rewritten + kept:,} buckets,"
        f" {format_size(sum(one.bytes_in for one in rounds))} to"
        f" {format_size(sum(one.bytes_out for one in rounds))},"
        f" in {max(one.seconds for one in rounds):.1f} s{beaten}"
    )


# -- listings --------------------------------------------------------------------------------------


def _show_plans(session: Session, planned: Sequence[tuple[ChangeTable, CompactionPlan]]) -> None:
    rows = [
        _plan_row(table, one, is_for_people=session.output.is_for_people)
        for table, plan in planned
        for one in plan.partitions
    ]
    session.output.rows(_PLAN, rows)


def _plan_row(table: ChangeTable, one: PartitionPlan, *, is_for_people: bool) -> dict[str, object]:
    from mooring.changes.transforms import show_values

    shown = format_size if is_for_people else round
    return {
        "table": str(table.id),
        "partition": show_values(one.values),
        "action": _LEVELS[one.level] if one.is_due else "nothing",
        "deltas": one.deltas,
        "files": one.files,
        "bytes": shown(one.bytes),
        "rewrite": one.rewritten_buckets if one.is_due else 0,
        "of": one.buckets,
        "read": shown(one.read_bytes if one.is_due else 0),
    }


def _show_rounds(session: Session, tables: Sequence[ChangeTable]) -> None:
    found = [(table, one) for table in tables for one in table.rounds()]
    if session.output.is_for_people:
        session.output.rows(_SHOWN_ROUNDS, [_shown_round(table, one) for table, one in found])
    else:
        session.output.rows(_ROUNDS, [_round_row(table, one) for table, one in found])


def _round_row(table: ChangeTable, one: Round) -> dict[str, object]:
    from mooring.changes.transforms import show_values

    told = {
        **asdict(one),
        "table": str(table.id),
        "partition": show_values(one.values),
        "seconds": round(one.seconds, 3),
        "at": as_time(one.at_ms),
    }
    return {name: told[name] for name in _ROUNDS}


def _shown_round(table: ChangeTable, one: Round) -> dict[str, object]:
    row = _round_row(table, one)
    return {
        **{name: row[name] for name in _SHOWN_ROUNDS if name in row},
        "level": _LEVELS[one.level] if one.kind == "compaction" else one.kind,
        "buckets": f"{one.rewritten:,} of {one.rewritten + one.kept:,}",
        "rows": f"{one.rows_in:,} to {one.rows_out:,}",
        "bytes": f"{format_size(one.bytes_in)} to {format_size(one.bytes_out)}",
        "seconds": f"{one.seconds:.1f}",
    }
