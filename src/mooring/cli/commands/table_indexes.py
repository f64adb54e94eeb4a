"""``mooring table index``: list, create, look at and drop the indexes of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.completion import complete_columns, complete_indexes
from mooring.cli.options import LiveName, command, group
from mooring.cli.session import Session, parse_pairs
from mooring.cli.spark import Conf, Master, UseSpark
from mooring.cli.states import AtVersion, Branch
from mooring.cli.workers import SparkOptions, workers

if TYPE_CHECKING:
    from mooring.tables.indexes import Index

__all__ = ["app"]

app = typer.Typer()

IndexName = Annotated[
    str, typer.Argument(metavar="INDEX", help="An index.", autocompletion=complete_indexes)
]
_COLUMNS = ("name", "type", "columns", "distance", "rows_indexed", "rows_unindexed", "size_bytes")


@app.callback(invoke_without_command=True)
@group
def index() -> None:
    """Indexes of a table."""


@app.command("list")
@command
def list_command(
    session: Session, name: LiveName, version: AtVersion = None, branch: Branch = None
) -> None:
    """List the indexes, and how many rows each covers."""
    from mooring.tables.handle import At

    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        found = table.indexes.list(At(version, branch=branch))
    if session.output.is_for_people:
        shown = ["name", "type", "columns", "rows_indexed", "rows_unindexed", "size"]
        session.output.rows(shown, [_shown(one) for one in found])
        if not found:
            session.output.message(f"'{name}' has no indexes")
        return
    session.output.rows(_COLUMNS, [_row(one) for one in found])


@app.command("create")
@command
def create_command(
    session: Session,
    name: LiveName,
    column: Annotated[
        str,
        typer.Argument(metavar="COLUMN", help="The column.", autocompletion=complete_columns),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER, RTREE; FTS for full text;"
            " IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, IVF_HNSW_FLAT, IVF_HNSW_PQ, IVF_HNSW_SQ for"
            " vectors.",
        ),
    ] = "BTREE",
    index_name: Annotated[
        str | None,
        typer.Option("--name", metavar="INDEX", help="Its name; made of the column's by default."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the type, such as distance_type=cosine; may be repeated.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Build it anew where it is there.")
    ] = False,
    branch: Branch = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Build an index over the rows that are there."""
    from mooring.jobs.runner import Threads
    from mooring.upkeep import build_index

    given: Any = {
        key: _parse(value) for key, value in parse_pairs(parameters or (), "parameter").items()
    }
    catalog = session.open_catalog()
    table = open_table(catalog, name)
    options = SparkOptions(spark, master, conf)
    with (
        suggesting(table, column, branch),
        workers(session, table, options, f"indexing {column}", branch) as runner,
    ):
        if isinstance(runner, Threads):
            # One process has threads of Lance's own for it.
            done = table.indexes.create(
                column, kind, name=index_name, replace=replace, branch=branch, **given
            )
            index, version = done.name, done.commit.version
        else:
            built = build_index(
                catalog,
                table.info.id,
                column,
                kind,
                runner=runner,
                index_name=index_name,
                replace=replace,
                branch=branch,
                **given,
            )
            index, version = built.name, built.commit.version
            if built.whole_because is not None:
                session.output.message(f"one process built it: {built.whole_because}")
    session.output.change(
        {"table": name, "result": "indexed", "index": index, "version": version},
        f"built index '{index}' of '{name}': version {version}",
    )


@app.command("stats")
@command
def stats_command(
    session: Session,
    name: LiveName,
    index_name: IndexName,
    version: AtVersion = None,
    branch: Branch = None,
) -> None:
    """Show what there is to know about an index."""
    from mooring.clock import format_time
    from mooring.tables.handle import At

    table = open_table(session.open_catalog(), name)
    with suggesting(table, index_name, branch):
        found = table.indexes.get(index_name, At(version, branch=branch))
    at = found.created_at
    session.output.record(
        {
            **_row(found),
            "segments": found.segments,
            "created_at": at and format_time(int(at.timestamp() * 1000)),
            "format_version": found.format_version,
            "details": json.loads(json.dumps(dict(found.details), default=str)),
        }
    )


@app.command("drop")
@command
def drop_command(
    session: Session, name: LiveName, index_name: IndexName, branch: Branch = None
) -> None:
    """Drop an index; queries get slower and find the same."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, index_name, branch):
        done = table.indexes.drop(index_name, branch=branch)
    session.output.change(
        {"table": name, "result": "dropped", "index": index_name, "version": done.version},
        f"dropped index '{index_name}' of '{name}': version {done.version}",
    )


def _row(found: Index) -> dict[str, object]:
    return {
        "name": found.name,
        "type": found.kind,
        "columns": list(found.columns),
        "distance": found.distance,
        "rows_indexed": found.rows_indexed,
        "rows_unindexed": found.rows_unindexed,
        "size_bytes": found.size_bytes,
    }


def _shown(found: Index) -> dict[str, object]:
    from mooring.cli.progress import format_size

    kind = found.kind if found.distance is None else f"{found.kind} ({found.distance})"
    size = None if found.size_bytes is None else format_size(found.size_bytes)
    return {**_row(found), "type": kind, "columns": ", ".join(found.columns), "size": size}


def _parse(text: str) -> object:
    """Read a value as JSON where it is some, else as the text that it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
