"""What is said where a table is there already, or is there no more because it was dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.clock import format_duration
from mooring.errors import TableAlreadyExistsError, TableNotFoundError
from mooring.hints import suggest
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId

__all__ = ["already_there", "was_dropped"]


def already_there(table: ObjectId) -> TableAlreadyExistsError:
    """Word that a name is taken."""
    return TableAlreadyExistsError(f"there is a table {quote(str(table))} already")


def was_dropped(table: str, ago_ms: int, above: str | None = None) -> TableNotFoundError:
    """Word that a table is in the trash, and what brings it back.

    Args:
        table: What it was called.
        ago_ms: How long ago it was dropped.
        above: The namespace that it was dropped with, if it was.
    """
    when = f"table {quote(table)} was dropped {format_duration(ago_ms)} ago"
    if above is None:
        undo = suggest("table undrop", table)
        return TableNotFoundError(f'{when}; bring it back with "{undo}"')
    undo = suggest("namespace undrop", above)
    return TableNotFoundError(f'{when} with namespace {quote(above)}; bring it back with "{undo}"')
