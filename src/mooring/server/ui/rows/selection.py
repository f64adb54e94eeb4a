"""What of a table is looked at: which version, rows and columns, as the address tells it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.tables.handle import At

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.ui.visit import Visit

__all__ = ["COLUMN_BOX", "Selection", "join_names", "read_at", "split_names"]

# A form without script sends a parameter for each column that is marked.
COLUMN_BOX = "column."
_ROWS, _MOST_ROWS = 50, 200


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at.

    Attributes:
        at: The version, tag or branch.
        where: An SQL expression that holds for the rows; nothing for all.
        columns: The columns; None for all.
        offset: So many rows are skipped.
        limit: So many are shown.
        text: Words that are looked for.
        like: The id of a row, and the column of its vector, of which the nearest are looked for.
    """

    at: At
    where: str = ""
    columns: tuple[str, ...] | None = None
    offset: int = 0
    limit: int = _ROWS
    text: str = ""
    like: tuple[int, str] | None = None

    @classmethod
    def of(cls, visit: Visit) -> Selection:
        """Read what a request asks for.

        Raises:
            InvalidInputError: a number is none, or a tag is given with a version or branch.
        """
        query = visit.query
        like = visit.number("like")
        return cls(
            at=read_at(visit),
            where=query.get("where", "").strip(),
            columns=_read_columns(query),
            offset=visit.number("offset") or 0,
            limit=visit.number("limit", least=1, most=_MOST_ROWS) or _ROWS,
            text=query.get("text", "").strip(),
            like=None if like is None else (like, query.get("by", "")),
        )

    @property
    def is_search(self) -> bool:
        """Whether rows are ranked, not in the order of the table."""
        return bool(self.text) or self.like is not None

    def href(self, visit: Visit, **changes: object) -> str:
        """Return the address of the same page with something else."""
        return replace(self, **changes).address(visit)  # type: ignore[arg-type]  # its own fields

    def address(self, visit: Visit) -> str:
        """Return the address of what is looked at."""
        return visit.links.table(
            visit.table,
            "rows",
            version=self.at.version,
            tag=self.at.tag,
            branch=self.at.branch,
            where=self.where or None,
            columns=None if self.columns is None else join_names(self.columns),
            text=self.text or None,
            like=None if self.like is None else self.like[0],
            by=None if self.like is None else self.like[1],
            limit=None if self.limit == _ROWS else self.limit,
            offset=self.offset or None,
        )


def read_at(visit: Visit) -> At:
    """Read which version, tag or branch a request asks for.

    Raises:
        InvalidInputError: they contradict each other.
    """
    query = visit.query
    return At(visit.number("version"), query.get("tag") or None, query.get("branch") or None)


def split_names(text: str) -> list[str]:
    """Read names that are separated by commas; one with a comma stands in double quotes.

    Raises:
        InvalidInputError: they cannot be read.
    """
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as exc:
        raise InvalidInputError(f"the columns cannot be read: {exc}") from exc
    return list(dict.fromkeys(name for line in lines for name in line if name))


def join_names(names: Sequence[str]) -> str:
    """Write names so that they are read as they were."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="").writerow(names)
    return written.getvalue()


def _read_columns(query: Mapping[str, str]) -> tuple[str, ...] | None:
    marked = [name.removeprefix(COLUMN_BOX) for name in query if name.startswith(COLUMN_BOX)]
    names = marked or split_names(query.get("columns", ""))
    return tuple(names) or None
