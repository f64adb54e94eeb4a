"""What is known of single tables: columns, rows, size. It is learned one table after another.

A catalog tells names and properties of all tables at once, and nothing of their content. What was
found out about a table counts as long as the catalog shows it unchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from mooring.feed.look import SeenTable

if TYPE_CHECKING:
    from collections.abc import Container

    from mooring.identifiers import ObjectId

__all__ = ["Absence", "Finding", "Findings"]

_MOST_NOTES = 1_000


class Absence(StrEnum):
    """What is not there, so that nothing can be found out."""

    NONE = "none"
    DATA = "data"
    LANCE = "lance"
    OWN_FILES = "own files"
    OTHER = "other"


# There may be a hundred thousand; the garbage collector need not walk them.
class Finding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was found out about a table.

    Attributes:
        columns: The paths of its columns, those within others after them, a line each.
        width: How many columns there are at the top.
        rows: How many rows.
        version: Of which version all of this is.
        size_bytes: What its data files take.
        written_at_ms: When that version was made.
        properties: What the catalog keeps with it, where only a request for the table tells.
        found_at_ms: When somebody looked.
        seen: How the catalog showed it then.
        failure: Why nothing could be found out; empty where something was.
        lack: The same in short.
    """

    found_at_ms: int
    seen: SeenTable
    columns: str = ""
    width: int | None = None
    rows: int | None = None
    version: int | None = None
    size_bytes: int | None = None
    written_at_ms: int | None = None
    properties: Mapping[str, str] | None = None
    failure: str = ""
    lack: Absence = Absence.NONE


class Findings:
    """All that is known of the tables of a catalog; safe for threads."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._found: dict[ObjectId, Finding] = {}
        self._adding = threading.Lock()
        # Which tables were found out about or forgotten, one after another; the oldest are let go.
        self._journal: list[ObjectId] = []
        self._let_go = 0

    def __len__(self) -> int:
        """Count the tables that something was found out about."""
        return len(self._found)

    def get(self, table: ObjectId) -> Finding | None:
        """Return what is known of a table; None for nothing."""
        return self._found.get(table)

    def all(self) -> list[tuple[ObjectId, Finding]]:
        """Return all that is known."""
        with self._adding:
            return list(self._found.items())

    def is_current(self, table: ObjectId, seen: SeenTable) -> bool:
        """Whether what is known of a table counts, as the catalog shows it now."""
        found = self._found.get(table)
        if found is None or found.failure:
            return False  # what could not be read may be there now
        return found.seen is seen or found.seen == seen

    def since(self, place: int) -> tuple[int, list[ObjectId]]:
        """Return the tables of which other things are known than at a place, and the place now.

        Args:
            place: What was returned before; 0 for the beginning.
        """
        with self._adding:
            now = self._let_go + len(self._journal)
            if place < self._let_go:
                return now, list(self._found)
            return now, self._journal[place - self._let_go :]

    def add(self, table: ObjectId, finding: Finding) -> None:
        """Keep what was found out."""
        with self._adding:
            self._found[table] = finding
            self._note([table])

    def _note(self, tables: list[ObjectId]) -> None:
        self._journal += tables
        if len(self._journal) > _MOST_NOTES + 2 * len(self._found):
            self._let_go += len(self._journal)
            self._journal = []

    def keep_only(self, tables: Container[ObjectId]) -> None:
        """Forget tables that are gone.

        Args:
            tables: Those that are there.
        """
        with self._adding:
            gone = [one for one in self._found if one not in tables]
            for one in gone:
                del self._found[one]
            self._note(gone)
