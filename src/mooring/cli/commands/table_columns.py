"""``mooring table column``: add, alter, fill and drop the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.column_texts import parse_type
from mooring.cli.completion import complete_columns
from mooring.cli.options import LiveName, command, group
from mooring.cli.session import Session, parse_pairs
from mooring.cli.spark import Conf, Master, UseSpark
from mooring.cli.states import Branch, restore_line
from mooring.cli.workers import SparkOptions, workers
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.tables.new_columns import NewColumn

__all__ = ["app"]

app = typer.Typer()

Column = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN",
        help="A column; a.b is b in the struct a.",
        autocompletion=complete_columns,
    ),
]


@app.callback(invoke_without_command=True)
@group
def column() -> None:
    """Columns of a table; "mooring table schema" shows them."""


@app.command("add")
@command
def add_command(
    session: Session,
    name: LiveName,
    expressions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COLUMN=EXPRESSION",
            help="A new column and its values in SQL, computed once: total=price * 2.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help="A new column of nulls: note=string, v=float[128]; may be repeated.",
        ),
    ] = None,
    computed: Annotated[
        bool,
        typer.Option(
            "--computed", help="Keep the expressions and leave nulls, which backfill computes."
        ),
    ] = False,
    branch: Branch = None,
) -> None:
    """Add columns, all of them in one version."""
    from mooring.tables.new_columns import NewColumn

    pairs = parse_pairs(expressions or (), "new column")
    new = [
        NewColumn(key, computed=sql) if computed else NewColumn(key, expression=sql)
        for key, sql in pairs.items()
    ]
    new += _of_types(types or [])
    if not new:
        msg = "nothing to add: give a column as COLUMN=EXPRESSION, or one with --type COLUMN=TYPE"
        raise InvalidInputError(msg)
    table = open_table(session.open_catalog(), name)
    with suggesting(table, *pairs.values(), branch):
        done = table.columns.add_all(new, branch=branch)
    names = [one.name for one in new]
    _tell(session, name, "added", names, done.version, branch=branch)


@app.command("alter")
@command
def alter_command(
    session: Session,
    name: LiveName,
    path: Column,
    rename: Annotated[
        str | None, typer.Option("--rename", metavar="NEW_NAME", help="Its name from now on.")
    ] = None,
    data_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Its type from now on: int64, float[128]."),
    ] = None,
    nullable: Annotated[
        bool | None,
        typer.Option(
            "--nullable/--not-nullable", show_default=False, help="Whether it may hold nulls."
        ),
    ] = None,
    branch: Branch = None,
) -> None:
    """Rename a column, change its type, or whether it may hold nulls."""
    kind = None if data_type is None else parse_type(data_type)
    table = open_table(session.open_catalog(), name)
    with suggesting(table, path, branch):
        done = table.columns.alter(
            path, rename=rename, data_type=kind, nullable=nullable, branch=branch
        )
    _tell(session, name, "altered", [path], done.version, branch=branch)


@app.command("backfill")
@command
def backfill_command(
    session: Session,
    name: LiveName,
    path: Column,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", "-w", metavar="FILTER", help="Which rows; those without a value by default."
        ),
    ] = None,
    expression: Annotated[
        str | None,
        typer.Option(
            "--expression", metavar="SQL", help="What to compute; by default the column's own."
        ),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            "--function",
            metavar="FILE.py:NAME",
            help="A Python function, or module:name: it gets Arrow batches of rows and returns an"
            " array. The column may be a new one.",
        ),
    ] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option(
            "--reads",
            metavar="COLUMN",
            help="A column that the function gets; all by default; may be repeated.",
        ),
    ] = None,
    data_type: Annotated[
        str | None,
        typer.Option(
            "--type", metavar="TYPE", help="The type of a new column; the function's by default."
        ),
    ] = None,
    branch: Branch = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compute the values of a column: its own expression's, another's, or a Python function's."""
    catalog = session.open_catalog()
    table = open_table(catalog, name)
    options = SparkOptions(spark, master, conf)
    if function is None:
        _require_function(reads=reads, data_type=data_type, spark=options)
        with suggesting(table, path, where, expression, branch):
            done = table.columns.backfill(path, where=where, expression=expression, branch=branch)
    else:
        from mooring.upkeep import fill_column

        if expression is not None:
            msg = "--expression and --function both say what to compute: give one of them"
            raise InvalidInputError(msg)
        with (
            suggesting(table, where, *(reads or ()), branch),
            workers(session, table, options, f"computing {path}", branch) as runner,
        ):
            done = fill_column(
                catalog,
                table.info.id,
                path,
                function,
                runner=runner,
                reads=reads,
                data_type=None if data_type is None else parse_type(data_type),
                where=where,
                branch=branch,
            )
    version = done.commit.version
    session.output.change(
        {
            "table": name,
            "result": "filled",
            "columns": [path],
            "version": version,
            "rows": done.rows,
        },
        f"filled column '{path}' of '{name}' in {done.rows:,} rows: version {version}",
    )


@app.command("drop")
@command
def drop_command(
    session: Session,
    name: LiveName,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="COLUMN", help="Columns.", autocompletion=complete_columns),
    ],
    branch: Branch = None,
) -> None:
    """Drop columns; earlier versions keep them."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, *paths, branch):
        done = table.columns.drop(*paths, branch=branch)
    _tell(session, name, "dropped", paths, done.version, branch=branch)


def _require_function(
    *, reads: list[str] | None, data_type: str | None, spark: SparkOptions
) -> None:
    """Refuse what only means something to a function.

    Raises:
        InvalidInputError: it was given.
    """
    given = {
        "--reads": reads,
        "--type": data_type,
        "--spark": spark.use or spark.master or spark.conf,
    }
    for option, value in given.items():
        if value:
            msg = f"{option} is for a column that a Python function computes: give --function, too"
            raise InvalidInputError(msg)


def _tell(
    session: Session,
    name: str,
    result: str,
    columns: list[str],
    version: int,
    *,
    branch: str | None,
) -> None:
    named = ", ".join(f"'{column}'" for column in columns)
    what = f"column {named}" if len(columns) == 1 else f"columns {named}"
    undo = restore_line(session, name, version - 1, branch)
    session.output.change(
        {"table": name, "result": result, "columns": columns, "version": version},
        f"{result} {what} of '{name}': version {version}; undo: {undo}",
    )


def _of_types(types: list[str]) -> list[NewColumn]:
    import pyarrow as pa

    from mooring.tables.new_columns import NewColumn

    return [
        NewColumn(key, field=pa.field(key, parse_type(value)))
        for key, value in parse_pairs(types, "new column").items()
    ]
