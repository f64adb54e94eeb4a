"""The verbs of ``mooring changes`` that are about rows: write, read, delete, truncate, replace."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.commands.changes import ChangesName, open_changes, split_names
from mooring.cli.confirm import Plan
from mooring.cli.options import DryRun, Yes, command
from mooring.cli.row_options import SHOWN, FileFormat, OfFormat, RowLimit, ToFile
from mooring.cli.session import Session, parse_pairs
from mooring.cli.shown_rows import count_rows, show_rows, stream_rows, write_rows
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from mooring.catalog import Catalog
    from mooring.changes import ChangeTable, Landed
    from mooring.changes.plan import Moment
    from mooring.changes.transforms import Values
    from mooring.ingest.source import FileSource
    from mooring.jobs.runner import Runner

__all__ = ["add_to"]

# More than this outgrows one process.
_FITS_BYTES = 8 * 1024**3
_PLAN = ("table", "action", "rows", "position")


class ChangeType(StrEnum):
    """What rows do."""

    APPEND = "append"
    ADD = "add"
    UPSERT = "upsert"
    DELETE = "delete"


Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Files, directories, patterns, s3:// URIs."),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", "-w", metavar="CONDITION", help="Which rows, in SQL: n > 3 AND c = 'x'."
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="VALUES",
        help='Only this partition, as "changes show" writes it: 2013-01/eu; may be repeated.',
    ),
]
RunId = Annotated[
    str | None,
    typer.Option("--run-id", metavar="ID", help="A name for the run, which counts once."),
]
Message = Annotated[
    str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the change is for.")
]
SourceKind = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="The files' format; told by their suffixes unless given."
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="KEY=VALUE",
        help="An option of the store that the files lie in; may be repeated.",
    ),
]


@command
def write_command(
    session: Session,
    name: ChangesName,
    files: Files,
    type_: Annotated[
        ChangeType | None,
        typer.Option("--type", help="What the rows do; append where the table has no keys."),
    ] = None,
    type_column: Annotated[
        str | None,
        typer.Option(
            "--type-column",
            metavar="COLUMN",
            help="A column of the files that says it of each row: upsert, delete, u, d.",
        ),
    ] = None,
    kind: SourceKind = None,
    source_option: SourceOption = None,
    run_id: RunId = None,
    message: Message = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Change a table by the rows of files, in one transaction: all of them, or nothing.

    Columns that the files do not have keep their values in an upsert.
    """
    from mooring.changes.loading import load_files

    catalog = session.open_catalog()
    table = open_changes(catalog, name)
    source = _source(catalog, files, kind, source_option)
    fits = source.size_bytes <= _FITS_BYTES
    with (
        choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner,
        _counting(session, runner, name) as heard,
    ):
        landed = load_files(
            table,
            source,
            _type_of(table, type_, type_column),
            type_column=type_column,
            runner=runner,
            run=run_id,
            message=message,
            on_done=heard,
        )
    _tell(session, name, "wrote", landed)


@contextmanager
def _counting(session: Session, runner: Runner, name: str) -> Iterator[Callable[[int], None]]:
    """Show how many rows are written; Spark shows its own tasks."""
    from mooring.cli.progress import show_progress
    from mooring.jobs.runner import Threads

    total = 0
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:

        def hear(rows: int) -> None:
            nonlocal total
            total += rows
            meter(name, f"{total:,} rows")

        yield hear


def _type_of(table: ChangeTable, type_: ChangeType | None, column: str | None) -> str:
    """Return what rows do; nobody appends to a table with keys by mistake.

    Raises:
        InvalidInputError: it is not said.
    """
    if type_ is None and column is None and table.definition.is_keyed:
        msg = (
            f"change table {quote(str(table.id))} has keys: say what the rows do, with --type"
            " upsert, delete or append, or a column that says it with --type-column"
        )
        raise InvalidInputError(msg)
    return (type_ or ChangeType.APPEND).value


@command
def read_command(
    session: Session,
    name: ChangesName,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns", metavar="NAMES", help="Which columns, separated by commas; all by default."
        ),
    ] = None,
    where: Where = None,
    limit: RowLimit = None,
    position: Annotated[
        int | None,
        typer.Option("--at-position", metavar="NUMBER", min=0, help="As of this position."),
    ] = None,
    txn_id: Annotated[
        str | None, typer.Option("--at-txn", metavar="TXN", help="As of a transaction.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="As of a time: 2013-01-31T12:30:00Z; in UTC."),
    ] = None,
    to: ToFile = None,
    file_format: OfFormat = None,
) -> None:
    """Show the rows that all changes come to, now or as of a position, transaction or time."""
    table = open_changes(session.open_catalog(), name)
    moment = table.at(position, txn_id=txn_id, time_ms=_time(as_of))
    chosen = [part for text in columns or () for part in split_names(text)] or None
    rows = _Rows(session, table, moment, chosen, where)
    if to is not None:
        rows.write(to, file_format, limit)
    elif session.output.is_for_people:
        rows.show(SHOWN if limit is None else limit)
    else:
        rows.stream(limit)


@command
def delete_command(
    session: Session,
    name: ChangesName,
    where: Annotated[
        str,
        typer.Option(
            "--where", "-w", metavar="CONDITION", help="Which rows, in SQL: n > 3 AND c = 'x'."
        ),
    ],
    run_id: RunId = None,
    message: Message = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete the rows that a condition is true for; older positions keep them."""
    table = open_changes(session.open_catalog(), name)
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=True) as runner:
        moment = table.at()
        keys = list(moment.table.definition.keys) or moment.table.definition.schema.names[:1]
        found = table.to_batches(moment=moment, columns=keys, where=where, runner=runner)
        count = sum(rows.num_rows for rows in found)
        row = {"table": name, "action": "delete", "rows": count, "position": moment.position}
        plan = Plan(f"delete {count_rows(count)} of '{name}'", _PLAN, [row])
        if not plan.is_agreed(session.output, yes=yes, dry_run=dry_run):
            return
        landed = table.delete_where(where, runner=runner, run=run_id, message=message)
    _tell(session, name, "deleted", [landed])


@command
def truncate_command(
    session: Session,
    name: ChangesName,
    partitions: Partitions = None,
    run_id: RunId = None,
    message: Message = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove all rows, or those of some partitions; older positions keep them."""
    table = open_changes(session.open_catalog(), name)
    chosen = _partitions(table, partitions)
    what = f"remove all rows of '{name}'" + _of(partitions)
    row = {"table": name, "action": "truncate", "rows": None, "position": table.position}
    plan = Plan(what, _PLAN, [row])
    if not plan.is_agreed(session.output, yes=yes, dry_run=dry_run):
        return
    landed = table.truncate(chosen, run=run_id, message=message)
    _tell(session, name, "truncated", [landed])


@command
def replace_command(
    session: Session,
    name: ChangesName,
    files: Files,
    partitions: Partitions = None,
    only_touched: Annotated[
        bool,
        typer.Option("--only-touched", help="Replace only the partitions that rows fall into."),
    ] = False,
    kind: SourceKind = None,
    source_option: SourceOption = None,
    run_id: RunId = None,
    message: Message = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Put the rows of files in the place of those that are there, by one transaction."""
    from mooring.changes.loading import replace_by_files

    catalog = session.open_catalog()
    table = open_changes(catalog, name)
    source = _source(catalog, files, kind, source_option)
    if partitions and only_touched:
        raise InvalidInputError("say --partition or --only-touched: not both")
    chosen = _partitions(table, partitions)
    row = {"table": name, "action": "replace", "rows": None, "position": table.position}
    where = " in the partitions that rows fall into" if only_touched else _of(partitions)
    plan = Plan(f"replace the rows of '{name}'{where}", _PLAN, [row])
    if not plan.is_agreed(session.output, yes=yes, dry_run=dry_run):
        return
    fits = source.size_bytes <= _FITS_BYTES
    with (
        choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner,
        _counting(session, runner, name) as heard,
    ):
        landed = replace_by_files(
            table,
            source,
            partitions=chosen,
            only_touched=only_touched,
            runner=runner,
            run=run_id,
            message=message,
            on_done=heard,
        )
    _tell(session, name, "replaced", [landed])


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("write")(write_command)
    app.command("read")(read_command)
    app.command("delete")(delete_command)
    app.command("truncate")(truncate_command)
    app.command("replace")(replace_command)


# -- rows ----------------------------------------------------------------------------------------


class _Rows:
    """Rows of a table, and the ways to give them."""

    def __init__(
        self,
        session: Session,
        table: ChangeTable,
        moment: Moment,
        columns: Sequence[str] | None,
        where: str | None,
    ) -> None:
        self._output = session.output
        definition = moment.table.definition
        self._tasks = table.tasks(1, moment=moment, columns=columns, where=where)
        names = list(columns) if columns is not None else definition.schema.names
        self._schema = _select(definition.schema, names)

    def show(self, limit: int) -> None:
        """Write a screenful for people, and whether there is more."""
        rows = self._reader(limit + 1).read_all()
        show_rows(self._output, rows, limit, "--limit shows more, --to FILE takes all")

    def stream(self, limit: int | None) -> None:
        """Write every row for programs."""
        stream_rows(self._output, self._reader(limit))

    def write(self, file: str, file_format: FileFormat | None, limit: int | None) -> None:
        """Write every row to a file."""
        from mooring.cli.row_files import kind_of

        kind = kind_of(file, None if file_format is None else str(file_format))
        write_rows(self._output, self._reader(limit), file, kind)

    def _reader(self, limit: int | None) -> pa.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._schema, self._batches(limit))

    def _batches(self, limit: int | None) -> Iterator[pa.RecordBatch]:
        left = limit
        for rows in (rows for task in self._tasks for rows in task.read()):
            if left is not None and left <= 0:
                return
            cut = rows if left is None else rows.slice(0, left)
            left = None if left is None else left - cut.num_rows
            yield from cut.cast(self._schema).to_batches()


def _select(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([schema.field(name).remove_metadata() for name in names])


def _source(
    catalog: Catalog, files: Sequence[str], kind: str | None, options: list[str] | None
) -> FileSource:
    from mooring.ingest.source import FileSource

    given = parse_pairs(options or (), "source option")
    storage = given or dict(catalog.options.get("storage_options") or {})
    return FileSource.find(list(files), kind=kind, storage_options=storage)


def _time(text: str | None) -> int | None:
    from mooring.changes.literals import parse_instant

    return None if text is None else parse_instant(text).ns // 10**6


def _partitions(table: ChangeTable, wanted: Sequence[str] | None) -> list[Values] | None:
    """Find partitions by what is shown of them.

    Raises:
        InvalidInputError: there is none.
    """
    from mooring.changes.transforms import show_values

    if not wanted:
        return None
    known = {show_values(log.values): log.values for log in table.at().partitions.values()}
    for text in wanted:
        if text not in known:
            shown = ", ".join(sorted(known)[:10]) or "none"
            msg = f"'{table.id}' has no partition '{text}': they are {shown}"
            raise InvalidInputError(msg)
    return [known[text] for text in wanted]


def _of(partitions: Sequence[str] | None) -> str:
    return f" in {', '.join(partitions)}" if partitions else ""


def _tell(session: Session, name: str, verb: str, landed: Sequence[Landed]) -> None:
    rows = sum(one.rows for one in landed)
    is_new = any(one.is_new for one in landed)
    position = max((one.position for one in landed), default=None)
    record = {
        "table": name,
        "result": verb if is_new else "unchanged",
        "rows": rows,
        "position": position,
        "txn_id": next((one.txn_id for one in landed if one.txn_id), None),
    }
    sentence = f"{verb} '{name}': {count_rows(rows)}, position {position}"
    if verb == "truncated":
        sentence = f"{verb} '{name}': position {position}"
    if verb in {"wrote", "deleted"}:
        word = "to" if verb == "wrote" else "of"
        sentence = f"{verb} {count_rows(rows)} {word} '{name}': position {position}"
    if not is_new:
        sentence = f"nothing changed in '{name}'" + (
            f": this is there already, at position {position}" if rows else ""
        )
    session.output.change(record, sentence)
