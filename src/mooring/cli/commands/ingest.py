"""The verb ``mooring ingest``: rows from files and databases into a table."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.completion import complete_live
from mooring.cli.options import command
from mooring.cli.session import Session, parse_pairs
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog
    from mooring.ingest import IngestReport, Progress
    from mooring.ingest.source import FileSource
    from mooring.jobs.runner import Runner

__all__ = ["ingest_command"]

# More than this outgrows one process.
_FITS_BYTES = 8 * 1024**3
_JDBC = "jdbc:"


class Mode(StrEnum):
    """What becomes of the rows."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    UPSERT = "upsert"
    DELETE = "delete"


class Conflict(StrEnum):
    """What becomes of appended rows whose key is there."""

    FAIL = "fail"
    REJECT = "reject"


class SourceFormat(StrEnum):
    """The format of a source."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ORC = "orc"
    LANCE = "lance"
    JDBC = "jdbc"


@command
def ingest_command(
    session: Session,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Files, directories, patterns, s3:// URIs, a table of Lance, or a jdbc: URL.",
        ),
    ] = None,
    into: Annotated[
        str,
        typer.Option(
            "--into",
            metavar="NAME",
            help="The table; it is made where it is not there.",
            autocompletion=complete_live,
        ),
    ] = "",
    mode: Annotated[Mode, typer.Option("--mode", help="What becomes of the rows.")] = Mode.APPEND,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="COLUMNS", help="By what rows are the same: id, or a,b."),
    ] = None,
    kind: Annotated[
        SourceFormat | None,
        typer.Option("--format", help="The source's format; told by its suffix unless given."),
    ] = None,
    source_catalog: Annotated[
        str | None,
        typer.Option("--source-catalog", metavar="URI", help="SOURCE is a table of this catalog."),
    ] = None,
    source_option: Annotated[
        list[str] | None,
        typer.Option(
            "--source-option",
            metavar="KEY=VALUE",
            help="An option of the source's store, or of JDBC: dbtable, user; may be repeated.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="SQL", help="Take the rows of a query of Spark instead."),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", metavar="CHARACTER", help="What stands between values of CSV."),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="Whether CSV names its columns.")
    ] = True,
    null_value: Annotated[
        list[str] | None,
        typer.Option(
            "--null-value",
            metavar="TEXT",
            help="A text of CSV that means null; may be repeated, the empty one unless given.",
        ),
    ] = None,
    evolve: Annotated[
        bool, typer.Option("--evolve", help="Add columns to the table, and widen their types.")
    ] = False,
    rejects: Annotated[
        str | None,
        typer.Option(
            "--rejects", metavar="FILE", help="Leave out records that do not fit; keep them here."
        ),
    ] = None,
    max_rejects: Annotated[
        int | None,
        typer.Option(
            "--max-rejects",
            metavar="NUMBER",
            min=0,
            help="Leave out at most so many; none without --rejects, any number with it.",
        ),
    ] = None,
    on_conflict: Annotated[
        Conflict,
        typer.Option("--on-conflict", help="What becomes of appended rows whose key is there."),
    ] = Conflict.FAIL,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", metavar="ID", help="A name for the run, which counts once."),
    ] = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Bring rows into a table, by one commit: all of them, or nothing.

    Columns are found by name, values are cast where nothing is lost. What is small is done by this
    process, what is large by Spark, with the same result.
    """
    from mooring.cli.progress import show_progress

    if not into:
        msg = "say which table the rows are for: --into NAME"
        raise InvalidInputError(msg)
    asked = _Sources(
        tuple(sources or ()),
        None if kind is None else str(kind),
        source_catalog,
        parse_pairs(source_option or (), "source option"),
        query,
    )
    asked.check()
    catalog = session.open_catalog()
    text = {"delimiter": delimiter, "header": header, "null_values": null_value}
    files = None if asked.needs_spark else asked.find(catalog, text)
    fits = files is not None and files.size_bytes <= _FITS_BYTES
    if asked.needs_spark and spark is False:
        msg = "a query and a database are read by Spark: leave --no-spark out"
        raise InvalidInputError(msg)
    chosen = True if asked.needs_spark else spark
    with (
        choose_runner(session, spark=chosen, master=master, conf=conf, fits=fits) as runner,
        show_progress(session.output) as meter,
    ):
        report = _run(
            runner,
            files or asked,
            catalog,
            into,
            mode=str(mode),
            key=tuple(part.strip() for part in key.split(",")) if key else (),
            evolve=evolve,
            rejects=rejects,
            max_rejects=max_rejects,
            on_conflict=str(on_conflict),
            run_id=run_id,
            on_progress=lambda progress: meter(f"ingesting into {into}", _done(progress)),
        )
    _tell(session, report)


class _Sources:
    """What is to be ingested."""

    def __init__(
        self,
        names: tuple[str, ...],
        kind: str | None,
        catalog: str | None,
        options: Mapping[str, str],
        query: str | None,
    ) -> None:
        self.names = names
        self.kind = kind
        self.catalog = catalog
        self.options = dict(options)
        self.query = query

    @property
    def is_jdbc(self) -> bool:
        return any(name.startswith(_JDBC) for name in self.names)

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark can read it."""
        return self.query is not None or self.is_jdbc

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if bool(self.names) == (self.query is not None):
            msg = "give a SOURCE, or a query of Spark with --query, and not both"
            raise InvalidInputError(msg)
        if (self.is_jdbc or self.catalog is not None) and len(self.names) > 1:
            msg = "name one table of a database or a catalog at a time"
            raise InvalidInputError(msg)
        if self.kind == "jdbc" and not self.is_jdbc:
            msg = f"a source of JDBC is a URL that begins with {_JDBC}, as in jdbc:postgresql:..."
            raise InvalidInputError(msg)

    def find(self, catalog: Catalog, text: Mapping[str, Any]) -> FileSource:
        """Find the files."""
        from mooring.ingest.source import FileSource
        from mooring.ingest.sources import TextOptions

        if self.catalog is not None:
            from mooring.opening import connect

            opened = connect(self.catalog, storage_options=self.options or None, read_only=True)
            return FileSource.of_table(opened, self.names[0])
        storage = self.options or dict(catalog.options.get("storage_options") or {})
        nulls = tuple(text["null_values"] or ("",))
        return FileSource.find(
            self.names,
            kind=self.kind,
            options=TextOptions(text["delimiter"], text["header"], nulls),
            storage_options=storage,
        )


def _run(
    runner: Runner,
    source: FileSource | _Sources,
    catalog: Catalog,
    into: str,
    **options: Any,  # noqa: ANN401  # those of mooring.ingest.ingest
) -> IngestReport:
    """Let Spark do it, or this process."""
    from mooring.jobs.runner import Threads

    if isinstance(runner, Threads) and not isinstance(source, _Sources):
        from mooring.ingest import ingest

        return ingest(catalog, source, into, runner=runner, **options)
    from mooring.spark.ingest import ingest_with, read_jdbc, read_query

    if not isinstance(source, _Sources):
        return ingest_with(runner, catalog, source, into, **options)
    if source.query is not None:
        rows = read_query(runner, source.query)
    else:
        rows = read_jdbc(runner, source.names[0], source.options)
    return ingest_with(runner, catalog, rows, into, **options)


def _done(progress: Progress) -> str:
    from mooring.cli.progress import format_size

    of = f" of {format_size(progress.total_bytes)}" if progress.total_bytes else ""
    return f"{progress.rows:,} rows, {format_size(progress.bytes)}{of}"


def _tell(session: Session, report: IngestReport) -> None:
    from mooring.cli.progress import format_size

    record = asdict(report)
    if not session.output.is_for_people:
        session.output.record({**record, "mode": str(report.mode)})
        return
    if not report.is_new:
        session.output.message(
            f"this run is in '{report.table}' already, as version {report.version}: nothing changed"
        )
        return
    shown: dict[str, object] = {
        "table": report.table,
        "mode": str(report.mode),
        "version": report.version,
        "records read": report.rows_in,
        "rows inserted": report.rows_inserted,
        "rows updated": report.rows_updated,
        "rows deleted": report.rows_deleted,
        "records rejected": report.rows_rejected,
        "files": f"{report.files:,} ({format_size(report.bytes_read)})",
        "seconds": f"{report.seconds:.1f} ({report.engine})",
    }
    if report.changes:
        shown["columns"] = ", ".join(report.changes)
    session.output.record(shown)
