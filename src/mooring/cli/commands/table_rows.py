"""The verbs of ``mooring table`` that change rows: insert, merge, update, delete."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.commands.table import CountedRows
from mooring.cli.completion import complete_columns
from mooring.cli.options import DryRun, LiveName, command
from mooring.cli.row_options import FileFormat
from mooring.cli.session import Session, parse_pairs
from mooring.cli.shown_rows import count_rows
from mooring.cli.states import Branch, restore_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from mooring.table import Table
    from mooring.tables.changes import Changed

__all__ = ["add_to"]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="Files of rows, or directories of them; - is standard input."
    ),
]
Kind = Annotated[
    FileFormat | None, typer.Option("--format", help="The files' format; their suffixes tell.")
]


@command
def insert_command(
    session: Session,
    name: LiveName,
    files: Files,
    file_format: Kind = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace all rows, and the schema by that of the files."),
    ] = False,
    branch: Branch = None,
) -> None:
    """Append the rows of files, all of them in one version.

    Columns are matched by name and get the table's types; those that the files lack are null.
    """
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        fit = None if overwrite else _schema(table, branch)
        with _rows(session, files, file_format, fit) as rows:
            done = table.insert(rows, overwrite=overwrite, branch=branch)
    if overwrite:
        sentence = f"overwrote '{name}' with {count_rows(done.inserted)}"
        _tell(session, name, "overwritten", done, sentence, branch=branch, can_undo=True)
    else:
        sentence = f"inserted {count_rows(done.inserted)} into '{name}'"
        _tell(session, name, "inserted", done, sentence, branch=branch)


@command
def merge_command(
    session: Session,
    name: LiveName,
    files: Files,
    on: Annotated[
        list[str],
        typer.Option(
            "--on",
            metavar="COLUMN",
            help="A column by which rows are the same; may be repeated.",
            autocompletion=complete_columns,
        ),
    ],
    file_format: Kind = None,
    update: Annotated[
        bool, typer.Option("--update/--no-update", help="Whether rows that are there change.")
    ] = True,
    update_if: Annotated[
        str | None,
        typer.Option(
            "--update-if",
            metavar="FILTER",
            help="Only where this holds: source.n > target.n.",
        ),
    ] = None,
    insert: Annotated[
        bool,
        typer.Option("--insert/--no-insert", help="Whether rows that are not there are added."),
    ] = True,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the rows that the files lack.")
    ] = False,
    delete_if: Annotated[
        str | None,
        typer.Option("--delete-if", metavar="FILTER", help="Only those for which this holds."),
    ] = None,
    branch: Branch = None,
) -> None:
    """Merge the rows of files by a key: update those that are there, insert the others."""
    table = open_table(session.open_catalog(), name)
    said = (*on, update_if, delete_if, branch)
    with suggesting(table, *said):
        fit = _schema(table, branch)
        with _rows(session, files, file_format, fit) as rows:
            done = table.merge(
                rows,
                on,
                update=update,
                update_if=update_if,
                insert=insert,
                delete=delete,
                delete_if=delete_if,
                branch=branch,
            )
    counts = f"{done.inserted:,} inserted, {done.updated:,} updated, {done.deleted:,} deleted"
    can_undo = bool(done.inserted or done.updated or done.deleted)
    sentence = f"merged into '{name}': {counts}"
    _tell(session, name, "merged", done, sentence, branch=branch, can_undo=can_undo)


@command
def update_command(
    session: Session,
    name: LiveName,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="COLUMN=EXPRESSION", help="A column and its new value in SQL: n=n+1, c=\"'x'\"."
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option("--where", "-w", metavar="FILTER", help="Which rows; all unless given."),
    ] = None,
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Set columns to expressions, in all rows or in those that a filter selects."""
    pairs = parse_pairs(values, "new value")
    table = open_table(session.open_catalog(), name)
    with suggesting(table, *pairs, *pairs.values(), where, branch):
        if dry_run:
            _tell_selected(session, table, "update", where, branch)
            return
        done = table.update(pairs, where, branch=branch)
    sentence = f"updated {count_rows(done.updated)} of '{name}'"
    _tell(session, name, "updated", done, sentence, branch=branch, can_undo=bool(done.updated))


@command
def delete_command(
    session: Session,
    name: LiveName,
    where: Annotated[
        str,
        typer.Option("--where", "-w", metavar="FILTER", help="Which rows; true selects all."),
    ],
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Delete the rows that a filter selects; earlier versions keep them."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, where, branch):
        if dry_run:
            _tell_selected(session, table, "delete", where, branch)
            return
        done = table.delete(where, branch=branch)
    sentence = f"deleted {count_rows(done.deleted)} of '{name}'"
    _tell(session, name, "deleted", done, sentence, branch=branch, can_undo=bool(done.deleted))


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("insert")(insert_command)
    app.command("merge")(merge_command)
    app.command("update")(update_command)
    app.command("delete")(delete_command)


@contextmanager
def _rows(
    session: Session, files: list[str], file_format: FileFormat | None, fit: pa.Schema | None
) -> Iterator[pa.RecordBatchReader]:
    """Stream the rows of files one after the other, in the table's types or in their own."""
    import pyarrow as pa

    from mooring.cli.progress import show_progress
    from mooring.cli.row_files import opened_files, read_files

    kind = None if file_format is None else str(file_format)
    with opened_files(files, kind) as opened, show_progress(session.output) as meter:
        readers = read_files(opened, fit)
        counted = [
            CountedRows(Path(source.label), reader, meter).reader()
            for source, reader in zip(opened, readers, strict=True)
        ]
        yield pa.RecordBatchReader.from_batches(readers[0].schema, chain.from_iterable(counted))


def _schema(table: Table, branch: str | None) -> pa.Schema:
    from mooring.tables.handle import At

    with table.handle.reading(At(branch=branch)) as dataset:
        return dataset.schema


def _tell_selected(
    session: Session, table: Table, verb: str, where: str | None, branch: str | None
) -> None:
    """Write how many rows a change would be about."""
    rows = table.count(where, branch=branch)
    session.output.change(
        {"table": str(table.info.id), "action": verb, "rows": rows},
        f"dry run: would {verb} {count_rows(rows)} of '{table.info.id}'; nothing was changed",
    )


def _tell(  # what is told, and by name how
    session: Session,
    name: str,
    result: str,
    done: Changed,
    sentence: str,
    *,
    branch: str | None,
    can_undo: bool = False,
) -> None:
    record = {
        "table": name,
        "result": result,
        "version": done.version,
        "inserted": done.inserted,
        "updated": done.updated,
        "deleted": done.deleted,
    }
    undo = f"; undo: {restore_line(session, name, done.version - 1, branch)}" if can_undo else ""
    session.output.change(record, f"{sentence}: version {done.version}{undo}")
