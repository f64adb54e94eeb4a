"""``mooring table``: list, describe and make tables. `lifecycle` adds the verbs of their lives."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.commands.catalog import All, show_tables
from mooring.cli.options import (
    AnyLiveName,
    DeregisteredName,
    LiveName,
    NewName,
    OptionalNamespace,
    command,
    group,
)
from mooring.cli.properties import (
    Description,
    Labels,
    Owner,
    Properties,
    Unset,
    gather_properties,
    require_updates,
    show_properties,
    tell_set,
)
from mooring.cli.row_options import OfFormat
from mooring.cli.session import Session
from mooring.cli.shown_rows import count_rows
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from mooring.catalog import Catalog
    from mooring.cli.progress import Meter
    from mooring.namespace.api import TableInfo

__all__ = ["app"]

app = typer.Typer()


class Mode(StrEnum):
    """What to do where the table exists already."""

    CREATE = "create"
    EXIST_OK = "exist_ok"
    OVERWRITE = "overwrite"


@app.callback(invoke_without_command=True)
@group
def table() -> None:
    """Tables and their lives."""


@app.command("list")
@command
def list_command(
    session: Session, namespace: OptionalNamespace = "", everything: All = False
) -> None:
    """List the tables; the same as "mooring ls"."""
    show_tables(session, namespace, everything=everything)


@app.command("describe")
@command
def describe_command(session: Session, name: LiveName) -> None:
    """Show where a table is, its version, rows and schema."""
    catalog = session.open_catalog()
    info = catalog.describe_table(name)
    record, fields = _describe(catalog, info)
    if not session.output.is_for_people:
        properties = dict(info.properties)
        session.output.record({**record, "properties": properties, "schema": fields})
        return
    session.output.record(record)
    show_properties(session.output, info.properties)
    if fields is not None:
        session.output.gap()
        session.output.rows(["name", "type", "nullable"], fields)


@app.command("create")
@command
def create_command(
    session: Session,
    name: NewName,
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="A file of rows, or a directory of them.")
    ],
    file_format: OfFormat = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="What to do where the table exists.")
    ] = Mode.CREATE,
    properties: Properties = None,
    description: Description = None,
    owner: Owner = None,
    labels: Labels = None,
) -> None:
    """Create a table from a file, and the catalog with it where there is none."""
    from mooring.cli.progress import show_progress
    from mooring.cli.row_files import kind_of
    from mooring.tables.rows import read_file

    wanted = _gather(properties, description, owner, labels)
    catalog = session.open_catalog(may_create=True)
    # A directory has no suffix, and the files in it are Parquet unless something else is said.
    told = kind_of(str(source), file_format) if source.is_file() else file_format
    reader = read_file(source, told)
    with show_progress(session.output) as meter:
        rows = CountedRows(source, reader, meter)
        created = catalog.create_table(name, rows.reader(), mode=mode, properties=wanted)
    _tell_created(session, created.info, rows)


@app.command("declare")
@command
def declare_command(
    session: Session,
    name: NewName,
    properties: Properties = None,
    description: Description = None,
    owner: Owner = None,
    labels: Labels = None,
) -> None:
    """Reserve a name without data; whoever writes the table first completes it."""
    wanted = _gather(properties, description, owner, labels)
    info = session.open_catalog(may_create=True).declare_table(name, properties=wanted)
    session.output.change(
        {"table": name, "result": "declared", "location": info.location},
        f"declared '{name}': its data belongs in '{info.location}'",
    )


@app.command("register")
@command
def register_command(
    session: Session,
    name: DeregisteredName,
    location: Annotated[
        str | None,
        typer.Option(
            "--location",
            metavar="PATH",
            help="Where it lies, relative to the root; NAME.lance unless given. A URI outside the"
            " root is accepted below what the catalog's settings allow.",
        ),
    ] = None,
) -> None:
    """Bring a deregistered table back, or name a table that lies in storage."""
    info = session.open_catalog().register_table(name, location)
    session.output.change(
        {"table": name, "result": "registered", "location": info.location},
        f"registered '{name}' at '{info.location}'",
    )


@app.command("set")
@command
def set_command(
    session: Session,
    name: LiveName,
    properties: Properties = None,
    unset: Unset = None,
    description: Description = None,
    owner: Owner = None,
    labels: Labels = None,
) -> None:
    """Change properties of a table; those that are not named stay."""
    updates = gather_properties(
        properties, description=description, owner=owner, labels=labels, unset=unset
    )
    require_updates(updates)
    kept = session.open_catalog().update_table(name, updates)
    tell_set(session.output, {"table": name}, f"'{name}'", kept)


@app.command("rename")
@command
def rename_command(
    session: Session,
    name: AnyLiveName,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its name from now on.")],
) -> None:
    """Give a table another name, where the catalog can."""
    info = session.open_catalog().rename_table(name, new_name)
    session.output.change(
        {"table": name, "result": "renamed", "new_name": new_name, "location": info.location},
        f"renamed '{name}' to '{new_name}'",
    )


def _gather(
    pairs: Sequence[str] | None,
    description: str | None,
    owner: str | None,
    labels: Sequence[str] | None,
) -> dict[str, str] | None:
    """Put the properties of a new table together; None without any."""
    gathered = gather_properties(pairs, description=description, owner=owner, labels=labels)
    return {key: value for key, value in gathered.items() if value is not None} or None


def _describe(
    catalog: Catalog, info: TableInfo
) -> tuple[dict[str, object], list[dict[str, object]] | None]:
    from mooring.namespace.properties import PROTECTED
    from mooring.table import Table

    is_declared = bool(info.is_only_declared)
    dataset = None if is_declared else Table(catalog.backend, info).to_lance()
    record: dict[str, object] = {
        "name": str(info.id),
        "location": info.location,
        "version": dataset and int(dataset.version),
        "rows": dataset and int(dataset.count_rows()),
        "protected": info.properties.get(PROTECTED) == "true",
        "declared": is_declared,
    }
    if info.keeps_versions is not None:  # each table of an Iceberg catalog has a word of its own
        record["managed_by"] = "impl" if info.keeps_versions else "storage"
    return record, None if dataset is None else _fields(dataset.schema)


def _fields(schema: pa.Schema) -> list[dict[str, object]]:
    return [
        {"name": field.name, "type": str(field.type), "nullable": field.nullable}
        for field in schema
    ]


def _tell_created(session: Session, info: TableInfo, rows: CountedRows) -> None:
    is_new = info.version is not None
    session.output.change(
        {
            "table": str(info.id),
            "result": "created" if is_new else "exists",
            "location": info.location,
            "version": info.version,
            "rows": rows.count if is_new else None,
        },
        f"created '{info.id}': {count_rows(rows.count)}, version {info.version}"
        if is_new
        else f"'{info.id}' exists already and stays as it is",
    )


class CountedRows:
    """Counts the rows of a file on their way into a table."""

    def __init__(self, source: Path, reader: pa.RecordBatchReader, meter: Meter) -> None:
        """Wrap a file's reader."""
        self.count = 0
        self._source = source
        self._reader = reader
        self._meter = meter

    def reader(self) -> pa.RecordBatchReader:
        """Return the reader to read from instead."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            for batch in self._reader:
                yield batch
                self.count += batch.num_rows
                self._meter(self._source.name, f"{self.count:,} rows")
        except (pa.ArrowException, OSError) as exc:
            reason = str(exc).partition("Detail:")[0].strip()
            msg = f"'{self._source}' cannot be read: {reason}"
            raise InvalidInputError(msg) from exc
