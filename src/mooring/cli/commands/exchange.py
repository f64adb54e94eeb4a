"""``mooring export`` and ``mooring import``: a catalog's names and properties as a file."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.options import DryRun, command
from mooring.cli.session import Session
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mooring.exchange import Outcome, Snapshot

__all__ = ["export_command", "import_command"]

_STREAM = "-"
_LEFT_OUT = "what was dropped is not in it"
_COLUMNS = ("type", "name", "result", "location", "reason")


class ImportMode(StrEnum):
    """What to do where an object is there and differs."""

    CREATE = "create"
    EXIST_OK = "exist_ok"
    OVERWRITE = "overwrite"


@command
def export_command(
    session: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to write; - is standard output.")
    ],
) -> None:
    """Write the names and properties of the whole catalog as JSON lines.

    Live namespaces and tables only: neither what is in the trash nor the tables' bytes.
    """
    from mooring.exchange import take_snapshot, write_lines

    snapshot = take_snapshot(session.open_catalog())
    lines = write_lines(snapshot)
    if file == _STREAM:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(lines)
        session.output.message(f"exported {_count(snapshot)}; {_LEFT_OUT}")
        return
    _replace(Path(file), lines)
    record = {
        "file": file,
        "result": "exported",
        "namespaces": _made(snapshot),
        "tables": len(snapshot.tables),
    }
    session.output.change(record, f"exported {_count(snapshot)} to '{file}'; {_LEFT_OUT}")


@command
def import_command(
    session: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What export wrote; - is standard input.")
    ],
    mode: Annotated[
        ImportMode,
        typer.Option(
            "--mode",
            help="Where an object is there and differs: fail it, leave it, or change it.",
        ),
    ] = ImportMode.CREATE,
    dry_run: DryRun = False,
) -> None:
    """Make the namespaces of an export, and register its tables.

    A table is registered where its location is in the catalog's storage, and skipped where it is
    not. What is there already stays; an import that was cut off is finished by another one.
    """
    from mooring.cli.progress import show_progress
    from mooring.exchange import bring_in, read_lines
    from mooring.namespace.api import CreateMode

    with _open(file) as lines:
        snapshot = read_lines(lines)
    catalog = session.open_catalog()
    outcomes: list[Outcome] = []
    with show_progress(session.output) as meter:
        for outcome in bring_in(catalog, snapshot, CreateMode(mode), dry_run=dry_run):
            outcomes.append(outcome)
            meter(f"importing {outcome.name}", f"{len(outcomes):,} of {len(snapshot):,}")
    _tell(session, outcomes, dry_run=dry_run)


def _tell(session: Session, outcomes: list[Outcome], *, dry_run: bool) -> None:
    """Write what became of each object, and end with the code of the first failure."""
    rows = [_row(outcome) for outcome in outcomes]
    if dry_run or not session.output.is_for_people:
        session.output.rows(_COLUMNS, rows)
    for outcome in outcomes:
        if outcome.reason and not outcome.error:
            session.output.message(f"{_what(outcome)} {outcome.result}: {outcome.reason}")
    counts = Counter(str(outcome.result) for outcome in outcomes)
    summary = ", ".join(f"{count:,} {result}" for result, count in counts.items()) or "nothing"
    session.output.message(
        f"dry run: {summary}; nothing was changed" if dry_run else f"imported: {summary}"
    )
    failures = [outcome for outcome in outcomes if outcome.error]
    for outcome in failures:
        error = outcome.error
        assert error is not None  # noqa: S101  # chosen above
        session.output.error(type(error).__name__, error.code, f"{_what(outcome)}: {error}")
    for outcome in failures[:1]:
        raise typer.Exit(outcome.error.exit_code if outcome.error else 0)


def _row(outcome: Outcome) -> dict[str, object]:
    from mooring.exchange import TableEntry

    entry = outcome.entry
    return {
        "type": "table" if isinstance(entry, TableEntry) else "namespace",
        "name": outcome.name,
        "result": str(outcome.result),
        "location": entry.location if isinstance(entry, TableEntry) else None,
        "reason": outcome.reason,
    }


def _what(outcome: Outcome) -> str:
    return f"{_row(outcome)['type']} '{outcome.name}'"


def _made(snapshot: Snapshot) -> int:
    """Count the namespaces that somebody made: the root is a line as well."""
    return sum(1 for entry in snapshot.namespaces if entry.id)


def _count(snapshot: Snapshot) -> str:
    tables = how_many(len(snapshot.tables), "table")
    return f"{how_many(_made(snapshot), 'namespace')} and {tables}"


@contextmanager
def _open(file: str) -> Iterator[Iterable[bytes]]:
    if file == _STREAM:
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as exc:
        msg = f"'{file}' cannot be read: {exc.strerror}"
        raise InvalidInputError(msg) from exc


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file whole or not at all.

    Raises:
        InvalidInputError: it cannot be written.
    """
    import secrets

    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as opened:
            opened.writelines(lines)
        temporary.replace(path)
    except OSError as exc:
        msg = f"'{path}' cannot be written: {exc.strerror}"
        raise InvalidInputError(msg) from exc
    finally:
        temporary.unlink(missing_ok=True)
