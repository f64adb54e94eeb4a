"""Names that are close to one that is not there, for the message that says so."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring.cli.listing import is_iceberg
from mooring.errors import (
    MooringError,
    NotLanceTableError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from mooring.hints import close_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.catalog import Catalog
    from mooring.table import Table

__all__ = [
    "close_names",
    "did_you_mean",
    "known_or_close",
    "names_in",
    "open_table",
    "suggesting",
    "tables_around",
]

_KNOWN: dict[type[MooringError], str] = {
    TableColumnNotFoundError: "columns",
    TableTagNotFoundError: "tags",
    TableBranchNotFoundError: "branches",
    TableIndexNotFoundError: "indexes",
}
_NOUNS = {"tags": "tag", "branches": "branch", "indexes": "index"}
_WORD = re.compile(r"[^\W\d]\w*")
_FEW = 8


def did_you_mean(close: Sequence[str]) -> str:
    """Write close names as the end of a message; nothing where there are none."""
    if not close:
        return ""
    quoted = [f"'{name}'" for name in close]
    return f"; did you mean {' or '.join(quoted)}?"


def known_or_close(name: str, known: Sequence[str]) -> str:
    """Write the end of a message about a name that is not there."""
    close = close_names(name, known)
    if close:
        return did_you_mean(close)
    if not known:
        return "; there is none"
    shown = ", ".join(known[:_FEW])
    more = f" and {len(known) - _FEW} more" if len(known) > _FEW else ""
    return f"; there {'is' if len(known) == 1 else 'are'} {shown}{more}"


def open_table(catalog: Catalog, name: str) -> Table:
    """Find a live table.

    Raises:
        TableNotFoundError: there is none; close names are told.
    """
    try:
        return catalog.table(name)
    except NotLanceTableError:
        raise  # it is there, and something else
    except TableNotFoundError as exc:
        close = did_you_mean(close_names(name, tables_around(catalog, name)))
        raise TableNotFoundError(f"{exc}{close}") from exc


def names_in(table: Table, what: str) -> list[str]:
    """Name the columns, tags, branches or indexes of a table."""
    match what:
        case "columns":
            return list(table.schema.names)
        case "tags":
            return table.tags.names()
        case "branches":
            return ["main", *table.branches.names()]
        case _:
            return [index.name for index in table.indexes.list()]


@contextmanager
def suggesting(table: Table, *said: str | None) -> Iterator[None]:
    """Add what is there to a failure about a column, tag, branch, index or version that is not.

    Args:
        table: Whose they are.
        said: What the user wrote: names and expressions, in which the wrong word is.
    """
    try:
        yield
    except TableVersionNotFoundError as exc:
        raise TableVersionNotFoundError(_about_version(table, str(exc))) from exc
    except tuple(_KNOWN) as exc:
        better = _reworded(table, exc, [text for text in said if text])
        if better is None:
            raise
        raise type(exc)(better) from exc


def _reworded(table: Table, exc: MooringError, said: Sequence[str]) -> str | None:
    """Return a better message, where the wrong word is found."""
    what = _KNOWN[type(exc)]
    try:
        known = names_in(table, what)
    except MooringError:
        return None
    if what == "columns":
        return _about_column(str(exc), said, known)
    wrong = next((text for text in said if text not in known and text in str(exc)), None)
    if wrong is None:
        return None
    noun = _NOUNS[what]
    return f"table '{table.info.id}' has no {noun} '{wrong}'{known_or_close(wrong, known)}"


def _about_version(table: Table, text: str) -> str:
    if " branch " in text or text.startswith("branch "):
        return text
    named = text.replace("the table has", f"table '{table.info.id}' has", 1)
    return f"{named}; the newest is {table.version}"


def _about_column(text: str, said: Sequence[str], known: Sequence[str]) -> str | None:
    words = [word for one in said for word in (one, *_WORD.findall(one))]
    wrong = next((word for word in words if word not in known and word in text), None)
    if wrong is None or "did you mean" in text.casefold():
        return None
    if not close_names(wrong, known) and all(name in text for name in known):
        return None
    return text + known_or_close(wrong, known)


def tables_around(catalog: Catalog, name: str) -> list[str]:
    """Name the tables that could be meant: of a server that is asked for each namespace, few."""
    try:
        if is_iceberg(catalog):
            around = catalog.identifier(name).parent
            return [str(around.child(table)) for table in catalog.list_tables(around)]
        return [str(table) for table in catalog.list_all_tables()]
    except MooringError:
        return []
