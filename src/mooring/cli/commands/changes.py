"""``mooring changes``: tables of changes in a metastore: create, list, show, log and alter."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.completion import complete_changes, complete_namespaces
from mooring.cli.listing import as_time
from mooring.cli.newest import Newest, show_newest
from mooring.cli.options import NewName, command, group
from mooring.cli.properties import show_properties
from mooring.cli.session import Session, parse_pairs
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from mooring.catalog import Catalog
    from mooring.changes import ChangeTable
    from mooring.changes.definition import Definition
    from mooring.changes.plan import Moment

__all__ = ["ChangesName", "app", "open_changes", "split_names"]

_LISTED = ("name", "position", "keys", "partitions", "buckets")
_COLUMNS = ("name", "type", "nullable", "default", "key")
_PARTITIONS = ("partition", "files", "bytes", "rows", "base", "pending")
_POSITIONS = ("position", "type", "rows", "files", "partitions", "by", "at", "message")

ChangesName = Annotated[
    str, typer.Argument(metavar="NAME", help="A change table.", autocompletion=complete_changes)
]

app = typer.Typer()


@app.callback(invoke_without_command=True)
@group
def changes() -> None:
    """Tables that are changed by upserts and deletions and read merged, in a metastore.

    Drop, rename, protect and purge them with "mooring table", as any other.
    """


@app.command("create")
@command
def create_command(
    session: Session,
    name: NewName,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="COLUMNS", help="Its columns: 'id int64 not null, at date32'."
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="FILE", help="Or: with the columns of a file."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="COLUMNS", help="By what rows are the same: a,b. Without: only added."
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            "--order", metavar="COLUMN", help="Whose greater value wins; the later one without."
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="FIELD",
            help="A column, month(at), day(at), bucket(16, id), truncate(4, zip); may be repeated.",
        ),
    ] = None,
    sort_by: Annotated[
        str | None,
        typer.Option("--sort-by", metavar="COLUMNS", help="How rows of a file are sorted: a,-b."),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option("--buckets", metavar="NUMBER", min=1, help="Parts of a partition by key."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="A property; may be repeated."),
    ] = None,
) -> None:
    """Make a change table."""
    from mooring.changes import create_change_table

    if (schema is None) == (like is None):
        raise InvalidInputError(
            "say the columns with --schema, or a file that has them with --like"
        )
    catalog = session.open_catalog()
    made = create_change_table(
        catalog,
        name,
        _schema(catalog, schema, like),
        keys=split_names(key),
        order=order,
        partition_by=partition_by or [],
        sort_by=split_names(sort_by),
        buckets=buckets,
        properties=parse_pairs(properties or (), "property"),
    )
    told = {"table": str(made.id), "result": "created", "columns": made.schema.names}
    session.output.change(told, f"created change table '{made.id}'")


@app.command("list")
@command
def list_command(
    session: Session,
    namespace: Annotated[
        str | None,
        typer.Argument(
            metavar="NAMESPACE",
            help="A namespace; all unless given.",
            autocompletion=complete_namespaces,
        ),
    ] = None,
) -> None:
    """List the change tables."""
    from mooring.changes import list_change_tables
    from mooring.changes.objects import find_objects

    catalog = session.open_catalog()
    names = list_change_tables(catalog, namespace)
    view = catalog.metastore.begin()
    found = [one for name in names if (one := find_objects(view, name)) is not None]
    rows = [
        {"name": str(one.id), "position": one.position, **one.definition.describe()}
        for one in found
    ]
    listed = [{name: row[name] if row[name] != "-" else None for name in _LISTED} for row in rows]
    session.output.rows(_LISTED, listed)


@app.command("show")
@command
def show_command(session: Session, name: ChangesName) -> None:
    """Show what a change table is, how far it has come, and what its partitions hold."""
    from mooring.changes.partition_figures import partition_figures

    catalog = session.open_catalog()
    table = open_changes(catalog, name)
    moment = table.at()
    definition = moment.table.definition
    head = {
        "table": name,
        "position": moment.position,
        "horizon": moment.table.horizon,
        **definition.describe(),
    }
    columns = [_column(one, definition.keys) for one in definition.schema]
    partitions = [asdict(one) for one in partition_figures(moment)]
    properties = _properties(table)
    if not session.output.is_for_people:
        parts = {"columns": columns, "partitions": partitions, "properties": properties}
        session.output.record({**head, **_told(definition), **parts})
        return
    session.output.record(head)
    session.output.gap()
    session.output.rows(_COLUMNS, columns)
    if partitions:
        session.output.gap()
        session.output.rows(_PARTITIONS, partitions)
    show_properties(session.output, properties)


@app.command("log")
@command
def log_command(
    session: Session,
    name: ChangesName,
    limit: Newest = None,
) -> None:
    """List the positions of a change table, the newest first: what changed, by whom and when."""
    moment = open_changes(session.open_catalog(), name).at()
    show_newest(
        session.output, _POSITIONS, lambda _: _positions(moment), limit=limit, what="positions"
    )


@app.command("alter")
@command
def alter_command(
    session: Session,
    name: ChangesName,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="COLUMN",
            help="A new column, with a default for older rows: 'n int32 = 7'; may be repeated.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Drop a column; may be repeated."),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="OLD=NEW", help="Rename a column; may be repeated."),
    ] = None,
    widen: Annotated[
        list[str] | None,
        typer.Option(
            "--widen", metavar="COLUMN=TYPE", help="Give a column a wider type; may be repeated."
        ),
    ] = None,
) -> None:
    """Change the columns; rows that are there are not written again."""
    from mooring.cli.column_texts import parse_type

    renamed = parse_pairs(rename or (), "new name")
    widened = {old: parse_type(kind) for old, kind in parse_pairs(widen or (), "type").items()}
    added = [_new_column(text) for text in add or ()]
    if not (renamed or widened or added or drop):
        raise InvalidInputError("nothing to change: give --add, --drop, --rename or --widen")
    table = open_changes(session.open_catalog(), name)
    table.alter(
        rename=renamed,
        widen=widened,
        add=[field for field, _ in added],
        defaults={field.name: value for field, value in added if value is not None},
        drop=drop or (),
    )
    columns = table.schema.names
    session.output.change(
        {"table": name, "result": "altered", "columns": columns},
        f"altered '{name}': its columns are {', '.join(columns)}",
    )


def open_changes(catalog: Catalog, name: str) -> ChangeTable:
    """Open a change table.

    Raises:
        TableNotFoundError: there is no such table; its message names close ones.
        InvalidTableStateError: it is a table of Lance.
    """
    from mooring.changes import ChangeTable, list_change_tables
    from mooring.cli.closeness import close_names, did_you_mean
    from mooring.errors import TableNotFoundError

    try:
        return ChangeTable(catalog, name)
    except TableNotFoundError as exc:
        close = close_names(name, map(str, list_change_tables(catalog)))
        if not close:
            raise
        raise TableNotFoundError(f"{exc}{did_you_mean(close)}") from exc


def split_names(text: str | None) -> list[str]:
    """Read names that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _schema(catalog: Catalog, schema: str | None, like: str | None) -> pa.Schema:
    from mooring.cli.column_texts import parse_columns
    from mooring.ingest.source import FileSource
    from mooring.jobs.runner import Threads

    if schema is not None:
        return parse_columns(schema)
    storage = dict(catalog.options.get("storage_options") or {})
    source = FileSource.find([like or ""], storage_options=storage)
    return source.plan(Threads(1), ()).natural().remove_metadata()


def _new_column(text: str) -> tuple[pa.Field, object]:
    from mooring.cli.column_texts import parse_column, parse_default

    column, equals, default = text.partition("=")
    return parse_column(column), parse_default(default) if equals else None


def _told(definition: Definition) -> dict[str, object]:
    """Tell the definition to programs."""
    from mooring.changes.transforms import show_field

    shown = definition.describe()
    return {
        "keys": list(definition.keys),
        "order": definition.order,
        "partition_by": list(map(show_field, definition.partitions)),
        "sort": shown["sort"].split(", ") if definition.sort else [],
        "buckets": definition.buckets,
    }


def _properties(table: ChangeTable) -> dict[str, str]:
    from mooring.metastore.lance_table import find_any, locator_of

    found = find_any(table.catalog.metastore.begin(), locator_of(table.id))
    return dict(found.value.properties) if found else {}


def _column(field: pa.Field, keys: Sequence[str]) -> dict[str, object]:
    from mooring.changes.definition import default_of

    default = default_of(field)
    return {
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
        "default": str(default.as_py()) if default.is_valid else None,
        "key": field.name in keys,
    }


def _positions(moment: Moment) -> list[dict[str, object]]:
    from mooring.changes.positions import positions_of

    return [
        {
            "position": one.number,
            "type": one.type,
            "rows": one.rows,
            "files": one.files,
            "partitions": one.partitions,
            "by": one.by,
            "at": as_time(one.at_ms),
            "message": one.message,
        }
        for one in positions_of(moment)
    ]
