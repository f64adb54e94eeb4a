"""The verbs of ``mooring table`` about its versions: history, diff, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.listing import as_time, state_word
from mooring.cli.newest import limit_option
from mooring.cli.options import AnyName, LiveName, command
from mooring.cli.session import Session
from mooring.cli.states import Branch, complete_states, parse_state, restore_line
from mooring.errors import TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.namespace.api import Change
    from mooring.tables.comparison import VersionDiff
    from mooring.tables.log import LogEntry

__all__ = ["add_to"]

# Each version is looked into, and people read the newest.
_SHOWN = 100
_COLUMNS = ("action", "state", "version", "operation", "rows", "tags", "by", "at")
_OF_VERSIONS = ("operation", "rows", "tags")
_SCHEMA_COLUMNS = ("column", "change", "before", "after")

State = Annotated[
    str,
    typer.Argument(
        metavar="STATE",
        help="A version, a tag, a branch, or BRANCH:VERSION.",
        autocompletion=complete_states,
    ),
]


@command
def history_command(
    session: Session,
    name: AnyName,
    limit: Annotated[int | None, limit_option(_SHOWN)] = None,
    branch: Branch = None,
) -> None:
    """Show what happened to a table, oldest first: in the catalog, and version by version.

    A table that is not live shows what the catalog knows of it.
    """
    if limit is None and session.output.is_for_people:
        limit = _SHOWN
    catalog = session.open_catalog()
    wanted = None if limit is None else limit + 1
    rows = (
        _merge(_changes(catalog, name), _versions(catalog, name, wanted))
        if branch is None
        else _branch_rows(catalog, name, branch, wanted)
    )
    shown = rows if limit is None else rows[-limit:]
    columns = [
        column
        for column in _COLUMNS
        if column not in _OF_VERSIONS
        or not session.output.is_for_people
        or any(row.get(column) is not None for row in shown)
    ]
    if session.output.is_for_people:
        shown = [{**row, "tags": _joined(row["tags"])} for row in shown]
    session.output.rows(columns, shown)
    if len(shown) < len(rows):
        session.output.message("older entries are left out: --limit shows more")


@command
def diff_command(
    session: Session,
    name: LiveName,
    old: State,
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="STATE",
            help="Another one; the newest version by default.",
            autocompletion=complete_states,
        ),
    ] = None,
) -> None:
    """Show how two states of a table differ: schema, rows, files and indexes."""
    from mooring.tables.comparison import compare
    from mooring.tables.handle import NEWEST

    table = open_table(session.open_catalog(), name)
    start = parse_state(table, old)
    end = NEWEST if new is None else parse_state(table, new)
    with suggesting(table, start.branch, end.branch):
        found = compare(table.handle, start, end)
    _show_diff(session, name, found)


@command
def restore_command(session: Session, name: LiveName, state: State, branch: Branch = None) -> None:
    """Make the content of an older version the newest; those in between stay."""
    from mooring.errors import InvalidInputError
    from mooring.tables.handle import At
    from mooring.tables.tags import resolve

    table = open_table(session.open_catalog(), name)
    target = At(branch=branch).branch
    with suggesting(table, branch):
        source = At(int(state), branch=branch) if state.isdecimal() else parse_state(table, state)
        found = resolve(table.handle, source)
        if found.version is None or found.branch != target:
            place = f"branch '{target}'" if target else "main; say its branch with --branch"
            msg = f"'{state}' is no version of {place}"
            raise InvalidInputError(msg)
        done = table.restore(found.version, branch=branch)
    undo = restore_line(session, name, done.version - 1, branch)
    session.output.change(
        {"table": name, "result": "restored", "restored": found.version, "version": done.version},
        f"restored version {found.version} of '{name}': version {done.version}; undo: {undo}",
    )


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("history")(history_command)
    app.command("diff")(diff_command)
    app.command("restore")(restore_command)


# -- history -------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """An entry, when it was, and its place among those that the catalog told."""

    at_ms: int
    row: dict[str, object]
    place: int = 0


def _changes(catalog: Catalog, name: str) -> list[Change]:
    """Return what the catalog knows.

    Raises:
        TableNotFoundError: there is no such table and never was.
    """
    from mooring.cli.closeness import close_names, did_you_mean
    from mooring.identifiers import quote
    from mooring.namespace.states import NotFound

    changes = catalog.history(name)
    if not changes and isinstance(catalog.table_status(name), NotFound):
        close = close_names(name, map(str, catalog.list_all_tables()))
        msg = f"there is no table {quote(name)}, and there never was{did_you_mean(close)}"
        raise TableNotFoundError(msg)
    return changes


def _versions(catalog: Catalog, name: str, limit: int | None) -> list[LogEntry]:
    """Return the versions of a live table with data; of others, none."""
    try:
        return catalog.table(name).log(limit)
    except TableNotFoundError:
        return []


def _merge(changes: Sequence[Change], entries: Sequence[LogEntry]) -> list[dict[str, object]]:
    """Put what the catalog and what the table's versions tell into one list by time."""
    versions = {entry.version: entry for entry in entries}
    written = {entry.version: _Told(*_written(entry)) for entry in entries}
    others: list[_Told] = []
    for place, change in enumerate(changes):
        version = change.version if change.action == "write" else None
        row = {
            "action": change.action,
            "state": state_word(change.state),
            "version": change.version,
            **_of_version(versions.get(version) if version else None),
            "by": change.by,
            "at": as_time(change.at_ms),
        }
        told = _Told(change.at_ms, row, place)
        if version is None:
            others.append(told)
        else:
            written[version] = told
    found = [*_in_order(written), *others]
    return [told.row for told in sorted(found, key=lambda told: (told.at_ms, told.place))]


def _in_order(written: Mapping[int, _Told]) -> Iterator[_Told]:
    """Go through versions by number; a store that tells whole seconds would mix them up."""
    latest_ms = place = 0
    for _, told in sorted(written.items(), key=lambda pair: pair[0]):
        latest_ms, place = max(latest_ms, told.at_ms), max(place, told.place)
        yield _Told(latest_ms, told.row, place)


def _branch_rows(
    catalog: Catalog, name: str, branch: str, limit: int | None
) -> list[dict[str, object]]:
    table = open_table(catalog, name)
    with suggesting(table, branch):
        entries = table.log(limit, branch=branch)
    return [row for _, row in map(_written, reversed(entries))]


def _written(entry: LogEntry) -> tuple[int, dict[str, object]]:
    at_ms = 0 if entry.at is None else int(entry.at.timestamp() * 1000)
    row = {
        "action": "write",
        "state": "live",
        "version": entry.version,
        **_of_version(entry),
        "by": entry.by,
        "at": None if entry.at is None else as_time(at_ms),
    }
    return at_ms, row


def _of_version(entry: LogEntry | None) -> dict[str, object]:
    return {
        "operation": entry and entry.operation,
        "rows": entry and entry.rows,
        "tags": (entry and list(entry.tags)) or None,
    }


def _joined(tags: object) -> str | None:
    return ", ".join(tags) if isinstance(tags, list) else None


# -- differences ---------------------------------------------------------------------------------


def _show_diff(session: Session, name: str, found: VersionDiff) -> None:
    schema = [
        {
            "column": change.path or None,
            "change": str(change.kind),
            "before": change.before,
            "after": change.after,
        }
        for change in found.schema
    ]
    record: dict[str, object] = {
        "table": name,
        "old": found.old,
        "new": found.new,
        "rows_before": found.rows_before,
        "rows_after": found.rows_after,
        "rows_added": found.rows.added,
        "rows_updated": found.rows.updated,
        "rows_deleted": found.rows.deleted,
        "files_added": found.files_added,
        "files_removed": found.files_removed,
        "bytes_added": found.bytes_added,
        "bytes_removed": found.bytes_removed,
        "indexes_added": list(found.indexes_added),
        "indexes_removed": list(found.indexes_removed),
    }
    if not session.output.is_for_people:
        session.output.record({**record, "schema": schema})
        return
    session.output.record(_for_people(found))
    if schema:
        session.output.gap()
        session.output.rows(_SCHEMA_COLUMNS, schema)
    else:
        session.output.message("the schema is the same")


def _for_people(found: VersionDiff) -> dict[str, object]:
    from mooring.cli.progress import format_size

    added, removed = format_size(found.bytes_added), format_size(found.bytes_removed)
    changes = [f"+{found.rows.added:,}", f"-{found.rows.deleted:,}"]
    if found.rows.updated:
        changes.append(f"{found.rows.updated:,} updated")
    indexes = [f"+{name}" for name in found.indexes_added]
    indexes += [f"-{name}" for name in found.indexes_removed]
    return {
        "versions": f"{found.old} -> {found.new}",
        "rows": f"{found.rows_before:,} -> {found.rows_after:,} ({', '.join(changes)})",
        "files": f"+{found.files_added:,} ({added}), -{found.files_removed:,} ({removed})",
        "indexes": ", ".join(indexes) or None,
    }
